//! The powers from outside, one module for each and for its attacks. No packet
//! leaves the machine: every connection goes to the lab on loopback, or is only
//! recorded.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that cannot go on should stop"
)]

#[path = "../lab/authority.rs"]
mod authority;
mod bomb;
mod client;
mod copy;
mod credential;
mod crypto;
mod egress;
mod egress_tunnel;
mod face;
mod fetch;
mod files;
mod files_fault;
mod files_oracle;
mod files_race;
mod fuzz;
mod intl;
#[path = "../lab/server.rs"]
mod lab;
mod parser;
mod scratch;
mod secrets;
mod url;
#[path = "../lab/wire.rs"]
mod wire;
mod world;
