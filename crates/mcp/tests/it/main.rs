//! The MCP door from outside.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop"
)]

mod gate_auth;
mod gate_host;
mod gate_issuer;
mod gate_jwt;
mod gate_local;
mod gate_oauth;
mod gate_session;
mod gate_world;
