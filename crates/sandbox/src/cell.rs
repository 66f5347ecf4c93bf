//! Wall one: a script inside WebAssembly, fresh for each call.
//!
//! `Cells` is made once in a worker; it holds the compiled guest and a pool of
//! memories. Each `Cell` is one running script. It is moved by `Cell::step`,
//! a few milliseconds at a time, so that one thread can serve many; it never
//! blocks. Everything a script can say or ask comes out of `step`; every bound of
//! its `JobLimits` is enforced here, from outside the script.
//!
//! Wall two, the process around this, is `walls`.

mod cache;
mod driver;
mod exchange;
mod imports;
mod mailbox;
#[cfg(feature = "testing")]
mod scan;
mod ticker;

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use wasmtime::{
    Enabled, Engine, InstanceAllocationStrategy, InstancePre, Linker, Module, ModuleExport,
    PoolingAllocationConfig, Store,
};

use self::cache::Cache;
use self::driver::Finished;
use model::sync::lock;

use self::exchange::Exchange;
use self::imports::StoreState;
use self::ticker::Ticker;
use crate::engine_config::engine_config;
use crate::job::{CallId, Ended, HostAnswer, HostCallId, Job, RunReport, RunUsage, Up};

/// The guest, compiled ahead of time, aligned as its loader wants it.
static GUEST: &Aligned<[u8]> = &Aligned {
    _align: [],
    bytes: *include_bytes!(concat!(env!("OUT_DIR"), "/guest.cwasm")),
};

#[repr(C)]
struct Aligned<T: ?Sized> {
    _align: [u128; 0],
    bytes: T,
}

/// The digest of the guest's sources: the same in parent and worker, or they are of
/// different builds.
pub fn guest_key() -> &'static str {
    env!("RINGFENCE_GUEST_KEY")
}

/// Reads any bytes as a guest's end. For fuzzing.
#[doc(hidden)]
pub fn fuzz_end(data: &[u8]) {
    mailbox::fuzz(data);
}

/// The bounds of a worker, as opposed to those of a job.
#[derive(Clone, Debug)]
pub struct CellSettings {
    /// Scripts alive at one time, the waiting ones included. Each costs 4 GiB of
    /// address space, but memory only as it is used.
    pub live_max: u32,
    /// The most linear memory any job may ask for.
    pub memory_bytes_max: u32,
    /// Compiled bodies kept for the next call.
    pub cache_bytes_max: usize,
    /// Whether to ask the kernel which pages a call wrote to, where it can tell (6.7
    /// and newer). Off only to measure what it costs to do without.
    pub page_scan: bool,
}

impl Default for CellSettings {
    fn default() -> CellSettings {
        CellSettings {
            live_max: 64,
            memory_bytes_max: 256 << 20,
            cache_bytes_max: 16 << 20,
            page_scan: true,
        }
    }
}

/// Why wall one could not be raised.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// The engine refused its settings, such as for lack of address space.
    #[error("could not set up the WebAssembly engine: {0}")]
    Engine(String),
    /// The embedded guest does not fit this engine.
    #[error("could not load the guest: {0}")]
    Guest(String),
    /// The thread that keeps the time did not start.
    #[error("could not start the timer thread")]
    Ticker(#[source] std::io::Error),
}

/// The guest, loaded; makes cells. One per worker.
#[derive(Clone)]
pub struct Cells {
    wall: Arc<Wall>,
}

impl std::fmt::Debug for Cells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cells").finish_non_exhaustive()
    }
}

/// The state that all cells of a worker share.
struct Wall {
    engine: Engine,
    guest: InstancePre<StoreState>,
    exports: Exports,
    /// Where the guest's mailbox is; the same in each copy of the image.
    mailbox: usize,
    memory_bytes_max: u32,
    cache: Mutex<Cache>,
    ticker: Ticker,
}

/// The guest's exports, looked up once by name.
struct Exports {
    memory: ModuleExport,
    run: ModuleExport,
    deliver: ModuleExport,
    reserve: ModuleExport,
}

impl Cells {
    /// Loads the guest. The allocator opens files, so it runs before the process is
    /// locked down; [`Cells::start_ticker`] comes after.
    pub fn load(settings: &CellSettings) -> Result<Cells, CellError> {
        let engine = engine(settings)?;
        let guest_error = |error: wasmtime::Error| CellError::Guest(format!("{error:#}"));
        let module = guest_module(&engine).map_err(guest_error)?;
        let export = |name: &str| {
            module
                .get_export_index(name)
                .ok_or_else(|| CellError::Guest(format!("it does not export `{name}`")))
        };
        let exports = Exports {
            memory: export("memory")?,
            run: export("run")?,
            deliver: export("deliver")?,
            reserve: export("reserve")?,
        };
        let mut linker = Linker::new(&engine);
        imports::define(&mut linker).map_err(guest_error)?;
        let guest = linker.instantiate_pre(&module).map_err(guest_error)?;
        // Asked once: every copy of the image has its mailbox in the same place.
        let mailbox = driver::mailbox(&engine, &guest).map_err(guest_error)?;
        let wall = Wall {
            ticker: Ticker::new(engine.clone()),
            engine,
            guest,
            exports,
            mailbox,
            memory_bytes_max: settings.memory_bytes_max,
            cache: Mutex::new(Cache::new(settings.cache_bytes_max)),
        };
        Ok(Cells {
            wall: Arc::new(wall),
        })
    }

    /// Starts the thread that keeps the time, unless it runs already. Without it no
    /// deadline is kept, so it comes before the first script that is not ours.
    pub fn start_ticker(&self) -> Result<(), CellError> {
        self.wall.ticker.start().map_err(CellError::Ticker)
    }

    /// A cell for one job. Nothing runs before its first step; its time on the wall
    /// begins now.
    pub fn start(&self, id: CallId, job: Job) -> Cell {
        let exchange = Arc::new(Mutex::new(Exchange::new(id, &job)));
        let started = lock(&exchange).started();
        let deadline = lock(&exchange).deadline();
        let run = driver::drive(Arc::clone(&self.wall), job, Arc::clone(&exchange));
        Cell {
            wall: Arc::clone(&self.wall),
            exchange,
            run: Some(Box::pin(run)),
            started,
            deadline,
        }
    }
}

#[expect(unsafe_code, reason = "compiled code cannot be loaded any other way")]
fn guest_module(engine: &Engine) -> wasmtime::Result<Module> {
    // Safety: the bytes are what the builder's compiler wrote, part of this binary and
    // checked against the builder's key when it was made. Nothing from outside the
    // binary ever comes here.
    unsafe { Module::deserialize(engine, &GUEST.bytes) }
}

/// The engine: the settings shared with the builder, and a pool of slots. Where the
/// kernel can say which pages of a slot are dirty, those are copied back from the image.
/// Elsewhere all are given back and mapped again: what could be copied without asking is
/// a range from address zero on, where the C stack is, and that was measured slower.
fn engine(settings: &CellSettings) -> Result<Engine, CellError> {
    let scan = settings.page_scan && PoolingAllocationConfig::is_pagemap_scan_available();
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(settings.live_max)
        .total_memories(settings.live_max)
        .total_tables(settings.live_max)
        .total_stacks(settings.live_max)
        .max_memories_per_module(1)
        .max_tables_per_module(1)
        .max_memory_size(settings.memory_bytes_max as usize)
        .table_elements(4096)
        .table_keep_resident(64 << 10)
        .linear_memory_keep_resident(if scan { 512 << 10 } else { 0 })
        .pagemap_scan(if scan { Enabled::Yes } else { Enabled::No })
        .max_unused_warm_slots(100)
        // Each slot is reset when its call ends. Data of a call must not wait in memory for
        // others to be reset with it.
        .decommit_batch_size(1);
    let mut config = engine_config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config).map_err(|error| CellError::Engine(format!("{error:#}")))
}

/// The result of one step.
#[derive(Debug)]
pub enum CellStep {
    /// It used its slice of time and can continue.
    Ready,
    /// It can do nothing before an answer, or its deadline.
    Waiting,
    /// It is over, with this report.
    Ended(Box<RunReport>),
}

/// One running script.
pub struct Cell {
    wall: Arc<Wall>,
    exchange: Arc<Mutex<Exchange>>,
    run: Option<Pin<Box<dyn Future<Output = Finished> + Send>>>,
    started: Instant,
    deadline: Instant,
}

impl std::fmt::Debug for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cell")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl Cell {
    /// Runs at most one slice. Lines and requests of the script are added to `out`;
    /// the end is returned, not added.
    pub fn step(&mut self, out: &mut Vec<Up>) -> CellStep {
        let Some(run) = self.run.as_mut() else {
            return CellStep::Ended(Box::new(over()));
        };
        lock(&self.exchange).begin_slice();
        let ticking = self.wall.ticker.ticking();
        // No waker: the worker steps a cell when an answer or a deadline arrives, never
        // because the future asked.
        let polled = run.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(ticking);
        let mut exchange = lock(&self.exchange);
        exchange.end_slice();
        out.append(&mut exchange.out);
        match polled {
            Poll::Pending if exchange.is_waiting() => CellStep::Waiting,
            Poll::Pending => CellStep::Ready,
            Poll::Ready(finished) => {
                // Dropped now, not with the cell: the slot goes back to the
                // pool and is wiped.
                self.run = None;
                let usage = RunUsage {
                    work: finished.work,
                    cpu_us: exchange.cpu_us(),
                    wall_us: micros(self.started),
                    memory_bytes: finished.memory_bytes,
                    host_calls: exchange.host_calls(),
                };
                CellStep::Ended(Box::new(RunReport {
                    ended: finished.ended,
                    usage,
                    notes: finished.notes,
                    rejections: finished.rejections,
                    stopped_at: finished.stopped_at,
                }))
            }
        }
    }

    /// Gives the answer to one host call. An unknown id is ignored.
    pub fn answer(&mut self, id: HostCallId, answer: HostAnswer) {
        lock(&self.exchange).answer(id, answer);
    }

    /// The next step ends it with [`Ended::Cancelled`].
    pub fn cancel(&mut self) {
        lock(&self.exchange).cancel();
    }

    /// When it must be stepped again at the latest, even while it waits.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }
}

/// The report of a cell that was stepped once more after its end.
fn over() -> RunReport {
    RunReport::new(Ended::Broken("stepped after its end".to_owned()))
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// A store for one run.
fn store(wall: &Wall, exchange: Arc<Mutex<Exchange>>, state: StoreState) -> Store<StoreState> {
    let mut store = Store::new(&wall.engine, state);
    // Without a limiter memory grows to the bound of the pool, not to that of the job.
    store.limiter(|state| state);
    store.epoch_deadline_callback(move |_| lock(&exchange).tick());
    // One tick ahead, so that the first look at the clocks comes within a millisecond.
    store.set_epoch_deadline(1);
    store
}
