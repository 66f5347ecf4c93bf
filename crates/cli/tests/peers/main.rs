//! Clients that other people wrote, against the `ringfence` program as a user starts it: over
//! HTTP with a token and over pipes, in both eras of the protocol.
//!
//! Runs with the feature `peers`, after `cargo xtask peers`; `cargo xtask test` does both.
//! What the clients do is a plan, `peers/README.md`; what must come of it stands here.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test ends on the first surprise"
)]

mod approvals;
mod balancers;
mod client;
mod codecall;
mod connect;
mod inspector;
mod makers;
mod prometheus;
mod servers;
mod story;
mod toolbox;
mod tools;
mod world;
