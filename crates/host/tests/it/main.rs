//! `fetch` against a server we write and a DNS that lies. No packet leaves the
//! machine: every connection goes to the lab on loopback, or is only recorded.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop when they cannot go on"
)]

mod fetch;
mod lab;
mod world;
