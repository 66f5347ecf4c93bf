//! The door from outside: raw messages over HTTP and over pipes, in both eras. Every
//! packet stays on loopback.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop"
)]

mod ask;
mod both;
mod bound;
mod cancel;
mod client;
mod edge;
mod end;
mod lab;
mod news;
mod progress;
mod world;
