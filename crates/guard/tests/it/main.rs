//! The guard from outside: attacks that must be found, honest scripts that must
//! pass and run, and what holds for any text.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests read their own folders and stop when they cannot go on"
)]

mod attack;
mod case;
mod compiles;
mod innocent;
mod preset;
mod property;
