//! The store from outside. Every test has a home of its own.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::duplicate_mod,
    reason = "a test that cannot go on should stop; the suite of the tables runs on both databases"
)]

mod audit;
mod cluster;
mod home;
/// A real Postgres for these tests.
mod lab;
mod scratch;
mod tables;
mod tools;
