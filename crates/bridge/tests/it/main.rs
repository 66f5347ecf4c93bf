//! Real processes in their jail: servers that behave, and servers that do not.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop"
)]

mod attack;
mod http;
mod http_lab;
mod http_oauth;
mod http_plain;
mod support;
mod work;
