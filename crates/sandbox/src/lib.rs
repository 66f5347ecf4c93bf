//! Runs JavaScript inside limits, fresh each time, behind two walls.

/// Wall one: a script inside WebAssembly.
pub mod cell;
mod engine_config;
/// How parent and worker write to each other.
pub mod frame;
/// What crosses between parent and worker, as plain types.
pub mod job;
/// The limits a policy gives a job.
pub mod limit;
/// Memory that goes back to the system.
pub mod memory;
/// The parent's side: the workers there are, and the calls in them.
pub mod pool;
/// The stable reason and the sentence for each end of a run.
mod reason;
/// Wall two: what keeps a worker process from the machine.
pub mod walls;
/// The worker's side: one process that runs cells.
pub mod worker;

pub use pool::{HostCalls, Pool, PoolSettings};
pub use walls::walls;
pub use worker::worker_main;
