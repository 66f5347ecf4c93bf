//! The powers from outside, one module for each and for its attacks.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod files;
mod files_fault;
mod files_oracle;
mod files_race;
mod scratch;
