//! Runs JavaScript inside limits, fresh each time, behind two walls.

pub mod cell;
mod engine_config;
pub mod frame;
pub mod job;
pub mod limit;
pub mod memory;
pub mod pool;
mod reason;
pub mod walls;
pub mod worker;

pub use pool::{HostCalls, Pool, PoolSettings};
pub use walls::walls;
pub use worker::worker_main;
