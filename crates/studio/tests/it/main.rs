//! The Studio as a browser uses it, and as those who attack one.

mod api;
mod attack;
mod audit;
mod door;
mod inbox;
mod tools;
mod world;
