//! The store from outside. Every test has a home of its own.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod approvals;
mod audit;
mod callers;
mod crash;
mod full;
mod guarded;
mod home;
mod hostile;
mod keys;
mod notices;
mod retention;
mod scripts;
mod settings;
mod standing;
mod sync;
mod tools;
mod torn;
mod usage;
