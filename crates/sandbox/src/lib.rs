//! Runs JavaScript inside limits, fresh each time, behind two walls.

/// Wall one: a script inside WebAssembly.
pub mod cell;
mod engine_config;
/// The wire format between parent and worker.
pub mod frame;
/// The messages between parent and worker.
pub mod job;
/// The limits a policy gives a job.
pub mod limit;
/// Returns freed memory to the system.
pub mod memory;
/// The parent's side: the workers there are, and the calls in them.
pub mod pool;
/// The stable reason and the sentence for each end of a run.
mod reason;
/// Wall two: the layers around a worker process.
pub mod walls;
/// The worker's side: one process that runs cells.
pub mod worker;

pub use pool::{HostCalls, Pool, PoolSettings};
pub use walls::walls;
pub use worker::worker_main;
