//! The guard from outside: attacks that must be found, honest scripts that must
//! pass and run, and what holds for any text.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod attack;
mod case;
mod innocent;
mod preset;
mod property;
