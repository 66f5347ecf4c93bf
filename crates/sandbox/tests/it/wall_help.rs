//! Shared by the tests of wall two.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::{Duration, Instant};

use sandbox::job::{HostAnswer, HostRequest, Job, JobLimits, Payload};
use sandbox::pool::{HostCalls, Pool, PoolSettings, Sharing, WorkerProgram};
use sandbox::walls::Layer;

/// The test worker with these arguments; see its source.
pub(crate) fn worker(added: &[&str]) -> WorkerProgram {
    let added = added.iter().map(|one| (*one).to_owned()).collect();
    WorkerProgram::Other(
        PathBuf::from(env!("CARGO_BIN_EXE_sandbox-test-worker")),
        added,
    )
}

/// The real guest behind the real walls.
pub(crate) fn real() -> WorkerProgram {
    worker(&[])
}

/// The small language of `stand_in.rs` behind the real walls.
pub(crate) fn stand_in() -> WorkerProgram {
    worker(&["stand-in"])
}

/// Settings with one worker and short waits. All layers are required, but for
/// wall one where there is none.
pub(crate) fn settings(program: WorkerProgram, sharing: Sharing) -> PoolSettings {
    let mut settings = PoolSettings::new(program.clone(), sharing);
    settings.workers = 1;
    settings.live_max = 16;
    settings.queue_ms_max = 5_000;
    if matches!(&program, WorkerProgram::Other(_, added) if !added.is_empty()) {
        // A stand-in has no wall one and is of no build.
        settings.require.remove(&Layer::Wasm);
        settings.guest_key = None;
    }
    settings
}

/// Settings for a worker without walls.
pub(crate) fn bare_settings(program: WorkerProgram) -> PoolSettings {
    let mut settings = settings(program, Sharing::Shared);
    settings.require = BTreeSet::new();
    settings
}

pub(crate) async fn pool(settings: PoolSettings) -> Pool {
    Pool::start(settings).await.expect("the pool starts")
}

pub(crate) fn job(body: &str) -> Job {
    Job {
        body: body.to_owned(),
        globals: "{}".to_owned(),
        declared: Vec::new(),
        powers: Vec::new(),
        limits: JobLimits {
            work_max: 1_000_000_000,
            cpu_ms_max: 5_000,
            wall_ms_max: 5_000,
            memory_bytes_max: 64 << 20,
            result_bytes_max: 1 << 20,
            result_depth_max: 64,
            console_lines_max: 100,
            console_bytes_max: 64 << 10,
            host_calls_max: 100,
            host_outstanding_max: 32,
            payload_bytes_max: 256 << 10,
        },
        seed: 7,
        now_ms: 0,
    }
}

/// Waits until nothing is under way in the pool.
#[track_caller]
pub(crate) fn settle(pool: &Pool) -> impl Future<Output = ()> + '_ {
    until(Duration::from_secs(5), move || {
        let status = pool.status();
        status.pending_count == 0 && status.live_count == 0 && status.waiting_count == 0
    })
}

/// Waits until `done`, looking often.
#[track_caller]
pub(crate) fn until(limit: Duration, done: impl Fn() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let end = Instant::now() + limit;
        while !done() {
            assert!(
                Instant::now() < end,
                "not so within {limit:?}, asked at {caller}"
            );
            // Sleeps: between two looks.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

type Answering<'a> = Pin<Box<dyn Future<Output = HostAnswer> + Send + 'a>>;

/// Answers each request with its own payload.
pub(crate) struct Echo;

impl HostCalls for Echo {
    fn call<'a>(&'a self, request: HostRequest) -> Answering<'a> {
        Box::pin(async move { HostAnswer::Value(request.payload) })
    }
}

/// Never answers.
pub(crate) struct Never;

impl HostCalls for Never {
    fn call<'a>(&'a self, _: HostRequest) -> Answering<'a> {
        Box::pin(std::future::pending())
    }
}

/// Answers with so many bytes.
pub(crate) struct Big(pub(crate) usize);

impl HostCalls for Big {
    fn call<'a>(&'a self, _: HostRequest) -> Answering<'a> {
        let payload = Payload {
            json: "null".to_owned(),
            bytes: vec![7; self.0],
        };
        Box::pin(async move { HostAnswer::Value(payload) })
    }
}
