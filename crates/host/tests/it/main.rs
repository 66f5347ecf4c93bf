//! The powers, called as the sandbox calls them.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that cannot go on should stop"
)]

mod bomb;
mod crypto;
mod face;
mod intl;
mod parser;
mod url;
