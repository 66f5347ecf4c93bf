//! The door from outside: raw messages over HTTP and over pipes, in both eras. Every
//! packet stays on loopback.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop"
)]

mod ask;
mod ask_matrix;
mod ask_scene;
mod auth_credential;
mod auth_host;
mod auth_issuer;
mod auth_jwt;
mod auth_local;
mod auth_oauth;
mod auth_session;
mod auth_world;
mod batch;
mod both_eras;
mod bound;
mod cancel;
mod client;
mod codecall;
mod concurrent;
mod era;
mod first_contact;
mod fuzz;
mod inbox;
#[path = "../support/jsonrpc.rs"]
mod jsonrpc;
mod lab;
mod list_changed;
mod malformed;
mod plain;
mod progress;
mod progressive;
mod recorded;
mod script;
mod server_changes;
mod servers;
mod shutdown;
mod slow_client;
mod soak;
#[path = "../support/unlocked.rs"]
mod unlocked;
mod unsent;
mod world;
