//! Real processes in their jail: servers that behave, and servers that do not.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop"
)]

mod attack;
mod support;
mod work;
