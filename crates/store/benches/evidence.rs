//! What evidence costs: signing and proving in a log of a million records, and shipping to
//! a Postgres while calls are written. `cargo xtask bench evidence` runs it.
//!
//! With `--ship` only shipping is measured.
//!
//! Proofs are time on the wall, because an auditor waits for them; signing is CPU time of
//! the whole process. The last line is one JSON object.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a bench that cannot go on should stop, and its result is printed"
)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use model::caller::Origin;
use model::record::audit::{Closing, Opening, Status};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value};
use store::{ShipDatabase, Shipper, Store, StoreSettings};
use tokio::runtime::{Builder, Runtime};

#[path = "../tests/it/audit/database.rs"]
mod database;

/// Proofs that are timed.
const PROOFS: u64 = 200;

fn main() {
    let is_test = has_argument("--test") || has_argument("--list");
    // To see that it runs, without waiting for numbers.
    let is_small = is_test || has_argument("--small");
    let (records, shipped) = if is_small {
        (2_000, 2_000)
    } else {
        (1_000_000, 200_000)
    };
    let mut result = Map::new();
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    if !has_argument("--ship") {
        proving(&runtime, records, &mut result);
    }
    // A database needs a package that not every machine has.
    if !is_test && Path::new("/usr/lib/postgresql").exists() {
        shipping(&runtime, shipped, &mut result);
    }
    println!("{}", Value::Object(result));
}

fn has_argument(name: &str) -> bool {
    std::env::args().any(|argument| argument == name)
}

fn note(result: &mut Map<String, Value>, name: &str, value: f64) {
    println!("{name}: {value:.3}");
    result.insert(name.to_owned(), value.into());
}

/// Signs a log of so many records at once, and proves some of them.
fn proving(runtime: &Runtime, records: usize, result: &mut Map<String, Value>) {
    let home = Home::new("proving");
    let store = home.store();
    write(runtime, &store, records / 2, &Arc::default());
    drop(store);
    let store = home.store();
    // A process signs when it ends, so what is measured is signed again from nothing.
    for name in ["heads", "tree.0", "tree.1", "tree.2"] {
        let _ = std::fs::remove_file(home.path.join("audit").join(name));
    }
    let forgotten = rusqlite::Connection::open(home.path.join("ringfence.db")).unwrap();
    forgotten.execute_batch("DELETE FROM audit_signed").unwrap();
    drop(forgotten);
    let began = cpu_time();
    let signed = store.audit().sign().unwrap();
    let cpu = cpu_time().saturating_sub(began);
    note(result, "signed_records", signed as f64);
    let each = cpu.as_secs_f64() * 1e6 / signed as f64;
    note(result, "sign_cpu_us_per_record", each);
    let began = Instant::now();
    assert_eq!(store.audit().sign().unwrap(), signed);
    note(
        result,
        "sign_nothing_ms",
        began.elapsed().as_secs_f64() * 1e3,
    );
    let mut times: Vec<f64> = (0..PROOFS)
        .map(|round| {
            let place = 1 + round * 7_919 * 31 % signed;
            let began = Instant::now();
            assert_eq!(store.audit().prove(&[place]).unwrap().len(), 1);
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times.get(times.len() * part / 100).copied();
    note(result, "prove_median_ms", at(50).unwrap());
    note(result, "prove_p99_ms", at(99).unwrap());
}

/// Writes calls while they are shipped: how long a record waited until it was acknowledged,
/// at worst and when the last call ended.
fn shipping(runtime: &Runtime, records: usize, result: &mut Map<String, Value>) {
    let home = Home::new("shipping");
    let store = home.store();
    let url = database::new_database();
    let database = Arc::new(ShipDatabase::new(&url, None, None).unwrap());
    store.audit().sign().unwrap();
    let written = Arc::new(Written::default());
    let (shipped_store, watched) = (store.clone(), Arc::clone(&written));
    let before = store.audit().head().unwrap().sequence;
    let began = Instant::now();
    let watching = Arc::clone(&written);
    let watch = std::thread::spawn(move || watching.watch());
    let shipper = runtime.spawn(async move {
        let mut shipper = Shipper::new(&shipped_store, database).unwrap();
        let (mut worst, mut said) = (Duration::ZERO, 0);
        loop {
            let was_over = watched.is_over.load(Ordering::Acquire);
            let from = shipped_store.audit().shipping().shipped;
            let waits = shipper.step().await.unwrap();
            let status = shipped_store.audit().shipping();
            if status.shipped > from {
                worst = worst.max(watched.age(from.saturating_sub(before)));
            }
            said = said.max(status.lag_ms);
            let end = shipped_store.audit().head().unwrap().sequence;
            if was_over && !waits && status.shipped == end {
                return (worst, said);
            }
            if !waits {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    });
    write(runtime, &store, records / 2, &written);
    let took = began.elapsed().as_secs_f64();
    written.is_over.store(true, Ordering::Release);
    let (worst, said) = runtime.block_on(shipper).unwrap();
    let all = began.elapsed().as_secs_f64();
    watch.join().unwrap();
    note(result, "written_records_per_second", records as f64 / took);
    note(result, "shipped_records_per_second", records as f64 / all);
    note(result, "ship_lag_worst_seconds", worst.as_secs_f64());
    note(result, "ship_lag_said_seconds", said as f64 / 1e3);
    note(result, "ship_behind_seconds", all - took);
}

/// How many records were written, and when.
#[derive(Default)]
struct Written {
    count: AtomicU64,
    is_over: AtomicBool,
    moments: Mutex<Vec<(u64, Instant)>>,
}

impl Written {
    /// Looks until writing is over.
    fn watch(&self) {
        while !self.is_over.load(Ordering::Acquire) {
            let count = self.count.load(Ordering::Relaxed);
            self.moments.lock().unwrap().push((count, Instant::now()));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// How long ago the record after so many was written.
    fn age(&self, shipped: u64) -> Duration {
        let moments = self.moments.lock().unwrap();
        let at = moments.partition_point(|(count, _)| *count <= shipped);
        let moment = moments.get(at).map(|(_, at)| at.elapsed());
        moment.unwrap_or_default()
    }
}

/// Writes calls from 64 callers.
fn write(runtime: &Runtime, store: &Store, calls: usize, written: &Arc<Written>) {
    const CALLERS: usize = 64;
    let tasks: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (store, written) = (store.clone(), Arc::clone(written));
            runtime.spawn(async move {
                for number in (caller..calls).step_by(CALLERS) {
                    let row = store.audit().open(opening(number)).await.unwrap();
                    written.count.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    let closing = Closing::bare(1_700_000_000_500, Status::Done, None);
                    store.audit().close(row, closing).await.unwrap();
                    written.count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
}

fn opening(number: usize) -> Opening {
    Opening {
        call_id: uuid::Uuid::now_v7().to_string(),
        parent_id: None,
        at_ms: 1_700_000_000_000 + i64::try_from(number).unwrap(),
        origin: Origin::Mcp,
        caller: format!("caller-{}", number % 8),
        tool: format!("tool-{}", number % 50),
        arguments_digest: "9f86d081884c7d659a2feaa0c55ad015".repeat(2),
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap(),
        u32::try_from(time.tv_nsec).unwrap(),
    )
}

struct Home {
    path: PathBuf,
}

impl Home {
    fn new(name: &str) -> Home {
        let folder = format!("bench-evidence-{name}-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        let _ = std::fs::remove_dir_all(&path);
        Home { path }
    }

    fn store(&self) -> Store {
        Store::open(&self.path, StoreSettings::standard()).unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
