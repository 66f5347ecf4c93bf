//! The Studio as a browser uses it, and as those who attack one.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    clippy::too_many_lines,
    reason = "a test that cannot go on should stop"
)]

mod api;
mod attack;
mod audit;
mod door;
mod inbox;
mod issuer;
mod oauth;
mod servers;
mod tools;
mod world;
