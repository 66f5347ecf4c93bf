//! What a governed call costs where nodes share their decisions: through an engine on the
//! SQLite of a home and through one on a Postgres on loopback, in turn, with one caller and
//! with many, with and without a limit that applies; calls a second of three nodes against
//! one; and how far shipping is behind meanwhile. `cargo xtask bench shared` runs it.
//!
//! Microseconds are processor time of this process and its workers; that of the database
//! is apart. The last line is one JSON object.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench ends on the first surprise and prints what it measured"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::call::CallRequest;
use engine::{Alarm, Engine, EngineSettings};
use model::Environment;
use model::caller::{Caller, Origin};
use model::record::audit::Status;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};
use store::{ShipDatabase, Shipper};

#[path = "../../host/tests/lab/postgres.rs"]
#[expect(dead_code, reason = "tests need more of the lab")]
mod postgres_lab;

/// Callers at one time.
const CALLERS: usize = 64;
/// Calls of one turn.
const CALLS: usize = 3_200;
/// Turns of each kind.
const TURNS: usize = 5;
/// How long calls are made while their records are shipped.
const SHIPPING: Duration = Duration::from_secs(15);

/// A limit on some callers, which is never reached.
const LIMIT: &str = "[expected]
callers = [\"limited-*\"]
[[limit]]
id = \"many\"
callers = [\"limited-*\"]
concurrent = 1000
";

fn main() -> ExitCode {
    if let Some(code) = sandbox::worker_main() {
        return code;
    }
    // `cargo test` runs every bench once, with this. And a database needs a package that not
    // every machine has.
    let is_test = std::env::args().any(|argument| argument == "--test" || argument == "--list");
    if is_test || !Path::new("/usr/lib/postgresql").exists() {
        return ExitCode::SUCCESS;
    }
    store::set_secret_reader(|_, _| Ok(Some(postgres_lab::PASSWORD.to_owned())));
    // As many threads as a server has here.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let report = runtime.block_on(measure());
    println!("{}", Value::Object(report));
    ExitCode::SUCCESS
}

async fn measure() -> Map<String, Value> {
    let homes = [Home::new("home", false), Home::new("node", true)];
    let [home, node] = &homes;
    let engines = [home.engine(), node.engine()];
    for (home, engine) in homes.iter().zip(&engines) {
        home.publish(engine).await;
    }
    let mut report = Map::new();
    for (limited, name) in [("free", "shared_call"), ("limited", "shared_limited_call")] {
        for callers in [1, CALLERS] {
            compare(&engines, limited, callers, name, &mut report).await;
        }
    }
    let more = [Home::new("node-b", true), Home::new("node-c", true)];
    let [sqlite, first] = engines;
    drop(sqlite);
    let nodes = [first, more[0].engine(), more[1].engine()];
    for (kind, name) in [
        ("free", "shared_three_nodes_ratio_free"),
        ("limited", "shared_three_nodes_call_ratio"),
    ] {
        let ratio = three_nodes(&nodes, kind).await;
        note(&mut report, name, ratio);
    }
    let [first, ..] = nodes;
    let (worst, rate) = ship(first).await;
    note(&mut report, "shared_ship_lag_worst_seconds", worst);
    note(&mut report, "shared_ship_records_per_second", rate);
    report
}

fn note(report: &mut Map<String, Value>, name: &str, value: f64) {
    println!("{name}: {value:.3}");
    report.insert(name.to_owned(), json!(value));
}

/// What one turn took, for each call.
struct Turn {
    cpu_us: f64,
    database_us: f64,
    p50_ms: f64,
}

/// Both engines in turn.
async fn compare(
    engines: &[Arc<Engine>; 2],
    kind: &str,
    callers: usize,
    name: &str,
    report: &mut Map<String, Value>,
) {
    let mut turns: [Vec<Turn>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (engine, turns) in engines.iter().zip(&mut turns) {
            turns.push(turn(engine, kind, callers).await);
        }
    }
    let of = |at: usize, part: fn(&Turn) -> f64| median(turns[at].iter().map(part).collect());
    let cpu = [0, 1].map(|at| of(at, |turn| turn.cpu_us));
    let p50 = [0, 1].map(|at| of(at, |turn| turn.p50_ms));
    let database = of(1, |turn| turn.database_us);
    println!(
        "{kind}, {callers} callers: home {:.0} us, p50 {:.2} ms; node {:.0} us and {database:.0} \
         us of the database, p50 {:.2} ms",
        cpu[0], p50[0], cpu[1], p50[1],
    );
    let mut add = |what: &str, value: f64| {
        report.insert(format!("{name}_{what}_{callers}"), json!(value));
    };
    add("cpu_ratio", cpu[1] / cpu[0]);
    add("cpu_us", cpu[1]);
    add("database_cpu_us", database);
    add("p50_ms", p50[1]);
}

async fn turn(engine: &Arc<Engine>, kind: &str, callers: usize) -> Turn {
    loop {
        let (own, database) = (cpu(), database_cpu());
        let (workers, before) = workers_cpu(engine).await;
        let mut times = calls(engine, kind, callers, CALLS / callers).await;
        let (same, after) = workers_cpu(engine).await;
        let (own, database) = (cpu() - own, database_cpu().saturating_sub(database));
        // Workers are replaced after a number of calls; such a turn is taken again.
        if same != workers {
            continue;
        }
        times.sort();
        let count = f64::from(u32::try_from(times.len()).unwrap());
        let each = |spent: Duration| spent.as_secs_f64() * 1e6 / count;
        return Turn {
            cpu_us: each(own + after.saturating_sub(before)),
            database_us: each(database),
            p50_ms: times[times.len() / 2].as_secs_f64() * 1e3,
        };
    }
}

/// So many callers at one time, each with calls one after the other.
async fn calls(engine: &Arc<Engine>, kind: &str, callers: usize, each: usize) -> Vec<Duration> {
    let tasks: Vec<_> = (0..callers)
        .map(|number| {
            let (engine, caller) = (Arc::clone(engine), format!("{kind}-{number}"));
            tokio::spawn(async move {
                let mut times = Vec::with_capacity(each);
                for _ in 0..each {
                    let start = Instant::now();
                    call(&engine, &caller).await;
                    times.push(start.elapsed());
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.unwrap());
    }
    times
}

async fn call(engine: &Engine, caller: &str) {
    let arguments = json!({"a": 1, "b": 2});
    let request = CallRequest::new(Caller::named(caller), Origin::Mcp, "add", arguments);
    let outcome = engine.call(request).await;
    let outcome = outcome.get();
    assert_eq!(outcome.status, Status::Done, "{:?}", outcome.error);
}

/// Calls a second of three nodes on one database, as a part of those of one, in turn and
/// with as many callers in all.
async fn three_nodes(nodes: &[Arc<Engine>; 3], kind: &str) -> f64 {
    let mut rates: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    let mut database: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (at, count) in [1, nodes.len()].into_iter().enumerate() {
            let (began, before) = (Instant::now(), database_cpu());
            let tasks: Vec<_> = nodes[..count]
                .iter()
                .enumerate()
                .map(|(number, node)| {
                    let (node, kind) = (Arc::clone(node), format!("{kind}-{number}"));
                    let (callers, each) = (CALLERS / count, CALLS / CALLERS);
                    tokio::spawn(async move { calls(&node, &kind, callers, each).await.len() })
                })
                .collect();
            let mut made = 0;
            for task in tasks {
                made += task.await.unwrap();
            }
            let made = f64::from(u32::try_from(made).unwrap());
            rates[at].push(made / began.elapsed().as_secs_f64());
            let spent = database_cpu().saturating_sub(before);
            database[at].push(spent.as_secs_f64() * 1e6 / made);
        }
    }
    let ([one, three], database) = (rates.map(median), database.map(median));
    println!(
        "{kind}, calls a second: one node {one:.0} ({:.0} us of the database), three nodes \
         {three:.0} ({:.0} us)",
        database[0], database[1],
    );
    three / one
}

/// Ships the records of a node that makes calls as fast as it can, to the database that its
/// decisions are in. Returns the longest time a record waited, and records a second.
async fn ship(engine: Arc<Engine>) -> (f64, f64) {
    let is_over = Arc::new(AtomicBool::new(false));
    let store = engine.store().clone();
    store.audit().sign().unwrap();
    let (database, shipped_store) = (Arc::new(ship_database()), store.clone());
    let ended = Arc::clone(&is_over);
    // What was written before is not part of it.
    let mut shipper = Shipper::new(&store, Arc::clone(&database)).unwrap();
    while shipper.step().await.unwrap() {}
    let from = store.audit().shipping().shipped;
    let began = Instant::now();
    let shipping = tokio::spawn(async move {
        let mut worst = Duration::ZERO;
        loop {
            let was_over = ended.load(Ordering::Acquire);
            // The oldest record that waits now has waited longest when it is acknowledged.
            let (start, waited) = (Instant::now(), shipped_store.audit().shipping().lag_ms);
            let waits = shipper.step().await.unwrap();
            worst = worst.max(Duration::from_millis(waited) + start.elapsed());
            let status = shipped_store.audit().shipping();
            let end = shipped_store.audit().head().unwrap().sequence;
            if was_over && !waits && status.shipped == end {
                return (worst, end);
            }
            if !waits {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    });
    while began.elapsed() < SHIPPING {
        calls(&engine, "limited", CALLERS, 10).await;
    }
    is_over.store(true, Ordering::Release);
    let (worst, end) = shipping.await.unwrap();
    let taken = began.elapsed().as_secs_f64();
    let count = u32::try_from(end - from).unwrap();
    (worst.as_secs_f64(), f64::from(count) / taken)
}

fn ship_database() -> ShipDatabase {
    ShipDatabase::new(&url(), Some(postgres_lab::PASSWORD), None).unwrap()
}

fn url() -> String {
    let port = postgres_lab::server().address.port();
    format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable")
}

struct Home(PathBuf);

impl Home {
    /// A home with a limit on the callers whose names say so.
    fn new(name: &str, is_shared: bool) -> Home {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-shared-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("tools")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        let mut settings = String::new();
        if is_shared {
            let _ = write!(settings, "[store]\nurl = \"{}\"\n", url());
        }
        settings.push_str(LIMIT);
        fs::write(path.join("ringfence.toml"), settings).unwrap();
        Home(path)
    }

    fn engine(&self) -> Arc<Engine> {
        let alarm = Alarm::new(|sentence| println!("{sentence}"));
        let settings = EngineSettings::new(self.0.clone(), Environment::empty(), alarm);
        Arc::new(Engine::open(settings).unwrap())
    }

    async fn publish(&self, engine: &Engine) {
        let document = json!({
            "name": "add", "description": "Adds two numbers. Returns their sum.",
            "category": "MATH", "tags": ["sum"], "code": "return a + b", "codeType": "Javascript",
            "params": [
                {"name": "a", "description": "One.", "type": "NUMBER", "required": true, "testValue": "1"},
                {"name": "b", "description": "The other.", "type": "NUMBER", "required": true, "testValue": "2"},
            ],
        });
        fs::write(self.0.join("tools/add.json"), format!("{document:#}")).unwrap();
        assert!(engine.publish("add", Origin::Cli).await.unwrap().ok);
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Of this process, with threads that ended.
fn cpu() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(spent.tv_sec).unwrap();
    Duration::new(seconds, u32::try_from(spent.tv_nsec).unwrap())
}

/// The workers of an engine, and their time so far.
async fn workers_cpu(engine: &Engine) -> (BTreeSet<u32>, Duration) {
    let pids = engine.pool().await.unwrap().status().pids;
    let pids: BTreeSet<u32> = pids.into_iter().collect();
    let spent = pids.iter().map(|pid| of_process(*pid)).sum();
    (pids, spent)
}

/// The processes of the database, which this one started.
fn database_cpu() -> Duration {
    let mut total = Duration::ZERO;
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if name.trim() == "postgres" && is_ours(pid) {
            total += of_process(pid);
        }
    }
    total
}

/// Whether a process descends from this one.
fn is_ours(mut pid: u32) -> bool {
    while pid > 1 {
        if pid == std::process::id() {
            return true;
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name, in brackets, may have anything in it.
        let after = stat.rsplit(") ").next().unwrap_or_default();
        let parent = after.split(' ').nth(1).and_then(|word| word.parse().ok());
        pid = parent.unwrap_or(0);
    }
    false
}

/// The sum over the threads, as the scheduler counts.
fn of_process(pid: u32) -> Duration {
    let mut total = Duration::ZERO;
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    for entry in tasks.into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path().join("schedstat")).unwrap_or_default();
        let nanos = text.split(' ').next().and_then(|word| word.parse().ok());
        total += Duration::from_nanos(nanos.unwrap_or(0));
    }
    total
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
