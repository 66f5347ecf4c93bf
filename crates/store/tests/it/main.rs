//! The store from outside. Every test has a home of its own.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod audit;
mod home;
mod scratch;
mod tables;
mod tools;
