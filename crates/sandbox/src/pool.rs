//! The parent of the workers: gives each run a place in one, carries out its host
//! calls, and checks everything a worker sends.
//!
//! Invariant 12: whatever a worker sends, the parent neither panics, hangs,
//! leaks nor grants. Every word is checked in `checker`; a wrong one ends the
//! worker. A run ends by its deadline whether or not the worker does.

mod call;
mod checker;
mod error;
mod json;
mod link;
mod roster;
mod run;
mod spawner;
mod supervise;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use futures_util::future::BoxFuture;
use model::sync::lock;
use tokio::sync::{Semaphore, watch};
use tokio::time;

use crate::cell;
use crate::job::{GuestLine, HostAnswer, HostRequest, Job, RunReport};
use crate::walls::{self, Layer, Walls};

use self::roster::{Admission, Bounds, Roster, WorkerSlot};
use self::spawner::Spawner;

pub use self::error::{PoolError, RunError, StartError, Violation};
pub use self::json::RESULT_DEPTH_MAX;
pub use self::spawner::WorkerProgram;

/// Reads any bytes as a worker's messages about a call. For fuzzing.
#[doc(hidden)]
pub fn fuzz_words(data: &[u8]) {
    checker::fuzz(data);
}

/// How long a worker process is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Any call may run in any worker.
    Shared,
    /// A worker belongs to the first caller that uses it.
    PerCaller,
    /// A worker runs one call and is never used again.
    PerCall,
}

/// How a pool is set up. All times and counts are bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// Which program is the worker.
    pub program: WorkerProgram,
    /// How long a worker is shared.
    pub sharing: Sharing,
    /// Workers kept ready. While one is being replaced there may be up to twice as many
    /// processes. Default: one for each core.
    pub workers: u32,
    /// Calls in one worker at one time. Default: 256.
    pub live_max: u32,
    /// Calls in a worker's life. Default: 20 000.
    pub calls_max: u32,
    /// A worker whose own memory stays above this is replaced. Default: 1 GiB.
    pub memory_bytes_max: u64,
    /// Callers that may wait for a place. Default: 1 024.
    pub queue_max: u32,
    /// How long a caller waits for a place. Default: 10 s.
    pub queue_ms_max: u32,
    /// How long a worker may take to be ready. Default: 10 s.
    pub start_ms_max: u32,
    /// The time a worker has beyond a call's deadline to report its end. Default: 1 s.
    pub deadline_grace_ms: u32,
    /// The time a worker has to end a cancelled call. Default: 1 s.
    pub cancel_grace_ms: u32,
    /// The layers without which no worker is used. Default: [`walls::expected`].
    pub require: BTreeSet<Layer>,
    /// The guest build that workers must run; not compared if absent. Default:
    /// this program's own.
    pub guest_key: Option<String>,
}

impl PoolSettings {
    /// The defaults, for one way of sharing: there is no default for that.
    pub fn new(program: WorkerProgram, sharing: Sharing) -> PoolSettings {
        // A machine that does not tell its cores still gets one worker.
        let cores = thread::available_parallelism().map_or(1, usize::from);
        PoolSettings {
            program,
            sharing,
            workers: u32::try_from(cores).unwrap_or(1),
            live_max: 256,
            calls_max: 20_000,
            memory_bytes_max: 1 << 30,
            queue_max: 1_024,
            queue_ms_max: 10_000,
            start_ms_max: 10_000,
            deadline_grace_ms: 1_000,
            cancel_grace_ms: 1_000,
            require: walls::expected(),
            guest_key: Some(cell::guest_key().to_owned()),
        }
    }
}

/// Answers a script's requests to its host. The engine implements it.
pub trait HostCalls: Send + Sync {
    /// Carries out one request. Several of one run may be under way at one time;
    /// all are dropped when the run ends.
    fn call<'a>(
        &'a self,
        request: HostRequest,
    ) -> Pin<Box<dyn Future<Output = HostAnswer> + Send + 'a>>;

    /// The run ended before these were asked: their answers are not needed.
    fn unasked(&self, requests: Vec<HostRequest>) {
        drop(requests);
    }

    /// Receives the console lines of a run that is dropped before its end, once. A run
    /// that ends has its lines in its result.
    fn left(&self, _console: Vec<GuestLine>) {}
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedRun {
    /// How it ended, and what it used. Never `Broken`: that is an error.
    pub report: RunReport,
    /// Its console lines, in order.
    pub console: Vec<GuestLine>,
}

/// The status of a pool, for metrics and tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolStatus {
    /// Workers that take calls.
    pub ready_count: usize,
    /// Places taken in them.
    pub live_count: u32,
    /// Callers waiting for a place.
    pub waiting_count: usize,
    /// Calls whose end has not been heard.
    pub pending_count: usize,
    /// Workers that ended before their time.
    pub lost_count: u64,
    /// How the last of them ended, for the operator.
    pub last_loss: Option<String>,
    /// Why the last start failed, if none has worked since.
    pub start_error: Option<StartError>,
    /// The processes, for tests.
    pub pids: Vec<u32>,
}

/// Workers, started before the first call. They die with it.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: PoolSettings,
    spawner: Spawner,
    roster: Arc<Roster>,
    processes: Arc<Semaphore>,
    worker_next: AtomicU64,
    lost_count: AtomicU64,
    notes: Mutex<Notes>,
    /// Whether any worker has come up, or why the last one has not.
    started: watch::Sender<Option<Result<(), StartError>>>,
    closing: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Notes {
    walls: Walls,
    last_loss: Option<String>,
}

impl Pool {
    /// Starts the workers and returns when the first is ready. Fails if the first
    /// to answer is not fit for use, naming what is missing.
    pub fn start(settings: PoolSettings) -> BoxFuture<'static, Result<Pool, PoolError>> {
        // Boxed at the crate's edge: rustc compiles a future again in every crate that
        // awaits it.
        Box::pin(Pool::start_workers(settings))
    }

    async fn start_workers(settings: PoolSettings) -> Result<Pool, PoolError> {
        for (name, value) in [
            ("workers", settings.workers),
            ("live_max", settings.live_max),
            ("calls_max", settings.calls_max),
        ] {
            if value == 0 {
                return Err(PoolError::Setting(name));
            }
        }
        let bounds = Bounds {
            sharing: settings.sharing,
            // One call each is a worker of one place and one use; the roster needs no third
            // case for it.
            live_max: if settings.sharing == Sharing::PerCall {
                1
            } else {
                settings.live_max
            },
            calls_max: if settings.sharing == Sharing::PerCall {
                1
            } else {
                settings.calls_max
            },
            queue_max: settings.queue_max as usize,
        };
        let spawner = Spawner::start(settings.program.clone(), bounds.live_max);
        let workers = settings.workers;
        let shared = Arc::new(Shared {
            spawner: spawner.map_err(PoolError::Thread)?,
            settings,
            roster: Arc::new(Roster::new(bounds)),
            // Twice as many, because a retiring worker finishes its calls while its
            // successor starts. A replacement beyond that waits until a process is gone.
            processes: Arc::new(Semaphore::new(workers as usize * 2)),
            worker_next: AtomicU64::new(1),
            lost_count: AtomicU64::new(0),
            notes: Mutex::default(),
            started: watch::Sender::new(None),
            closing: watch::Sender::new(false),
        });
        // Subscribed before the first worker starts, so that no outcome is missed.
        let mut started = shared.started.subscribe();
        let pool = Pool { shared };
        for _ in 0..workers {
            tokio::spawn(supervise::supervise(Arc::clone(&pool.shared)));
        }
        match started
            .wait_for(Option::is_some)
            .await
            .map(|first| first.clone())
        {
            Ok(Some(Err(error))) => Err(error.into()),
            // A worker that comes up later may still fail; its supervisor
            // tries again by itself.
            Ok(Some(Ok(())) | None) => Ok(pool),
            Err(_) => Err(StartError::Closed.into()),
        }
    }

    /// Runs one job in a fresh sandbox, its host calls carried out by `host`.
    ///
    /// Returns by the job's wall-clock limit and some grace, plus the wait for a
    /// place. Dropping the future stops the script.
    pub async fn run(
        &self,
        caller: &str,
        job: Job,
        host: &dyn HostCalls,
    ) -> Result<FinishedRun, RunError> {
        let place = self.place(caller).await?;
        run::run(&self.shared, place, job, host).await
    }

    /// The walls around the worker that started last.
    pub fn walls(&self) -> Walls {
        self.shared.notes().walls.clone()
    }

    /// The status of the pool.
    pub fn status(&self) -> PoolStatus {
        let (ready_count, live_count, waiting_count, pending_count) = self.shared.roster.counts();
        PoolStatus {
            ready_count,
            live_count,
            waiting_count,
            pending_count,
            lost_count: self.shared.lost_count.load(Ordering::Relaxed),
            last_loss: self.shared.notes().last_loss.clone(),
            start_error: self.shared.started.borrow().clone().and_then(Result::err),
            pids: self.shared.roster.pids(),
        }
    }

    async fn place(&self, caller: &str) -> Result<WorkerSlot, RunError> {
        let later = match self.shared.roster.admit(caller) {
            Admission::Now(place) => return Ok(place),
            Admission::Later(later) => later,
            Admission::Busy => return Err(RunError::Busy),
            Admission::Closed => return Err(RunError::Closed),
        };
        let limit = Duration::from_millis(u64::from(self.shared.settings.queue_ms_max));
        match time::timeout(limit, later).await {
            Ok(Ok(place)) => Ok(place),
            // The sender goes only when the queue is emptied, which closing does.
            Ok(Err(_)) => Err(RunError::Closed),
            Err(_) => Err(RunError::Waited),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Before the workers end, so that no call is admitted into one that is
        // about to be killed.
        self.shared.roster.close();
        self.shared.closing.send_replace(true);
        // Here and not when the last task lets go, so that no worker outlives
        // the pool even if the runtime is gone.
        self.shared.spawner.stop();
    }
}

impl Shared {
    fn note_start(&self, outcome: Result<(), StartError>) {
        self.started.send_replace(Some(outcome));
    }

    fn note_walls(&self, walls: Walls) {
        self.notes().walls = walls;
    }

    fn note_loss(&self, text: String) {
        self.notes().last_loss = Some(text);
    }

    fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        lock(&self.notes)
    }
}
