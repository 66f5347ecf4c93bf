//! The jail from outside: one binary for every integration test.
//!
//! An attack is a script in `attack/`. It runs twice: once without a jail, where it must
//! succeed, so that the test would notice a fence that is not there, and once behind it.
//! As root, each runs as an ordinary user as well.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise, also in the functions that tests share"
)]

mod help;

mod bound;
mod declare;
mod egress;
mod ending;
mod escape;
mod folder;
mod liar;
mod names;
mod program;
mod starter;
mod surface;
mod wall;
