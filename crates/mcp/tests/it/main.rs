//! The door from outside: raw messages over HTTP and over pipes, in both eras. Every
//! packet stays on loopback.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop"
)]

mod ask;
mod ask_matrix;
mod ask_scene;
mod both;
mod bound;
mod cancel;
mod client;
mod codecall;
mod disclosure;
mod edge;
mod end;
mod first;
mod fuzz;
mod gate_auth;
mod gate_host;
mod gate_issuer;
mod gate_jwt;
mod gate_local;
mod gate_oauth;
mod gate_session;
mod gate_world;
mod inbox;
mod lab;
mod news;
mod progress;
mod refused;
mod script;
mod soak;
mod together;
mod unsent;
mod wire;
mod world;
