//! What the audit costs: CPU of an open and a close together, alone and among 64
//! callers, a list over 100,000 entries, walking them all, asking whether
//! anything changed. `cargo xtask bench store` runs it.
//!
//! Costs of writing are CPU time of the whole process, all its threads, because
//! wall time on a busy machine measures its neighbours. The last line is one JSON
//! object.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a bench that cannot go on should stop, and its result is printed"
)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::caller::Origin;
use model::record::audit::{
    Closing, Failure, GateRecord, Opening, Status, Timing, ToolFacts, chain,
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};
use store::{Filter, Pass, Store, StoreSettings, ToolFolder};
use tokio::runtime::{Builder, Runtime};

const ROUNDS: usize = 9;

fn main() {
    // What `cargo test` asks of a bench.
    let is_test = has_argument("--test") || has_argument("--list");
    let (pairs, entries) = if is_test { (64, 640) } else { (6_400, 100_000) };
    let entries = number("--entries").unwrap_or(entries);
    let mut result = Map::new();
    // How fast this machine is right now: hashing a kibibyte.
    let text = "x".repeat(1024);
    let hash = cpu_of(|| {
        for _ in 0..10_000 {
            std::hint::black_box(chain::link(&chain::ChainHash::ZERO, &text));
        }
    });
    note(&mut result, "hash_1kib_cpu_us", hash.as_secs_f64() * 100.0);
    if !has_argument("--reading") {
        writing(pairs, &mut result);
    }
    if !has_argument("--writing") {
        let home = Home::new("reading");
        let store = home.store();
        run(&many(), &store, 64, entries, 0);
        note(&mut result, "entries", entries as f64);
        opening_cost(&home, &mut result);
        reading(&store, &mut result);
        proving(&store, entries, &mut result);
        standing(&store, &mut result);
        folder(&home, &mut result);
    }
    println!("{}", Value::Object(result));
}

/// The number behind an argument.
fn number(name: &str) -> Option<usize> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)?.parse().ok()
}

/// Signing everything that was written, and proving single records: time on the wall,
/// because an auditor waits for it.
fn proving(store: &Store, entries: usize, result: &mut Map<String, Value>) {
    let sign = Instant::now();
    let records = store.audit().sign().unwrap();
    note(result, "sign_all_ms", sign.elapsed().as_secs_f64() * 1e3);
    note(result, "signed_records", records as f64);
    assert!(records <= 2 * entries as u64 + 10);
    let places: Vec<u64> = (1..=ROUNDS as u64)
        .map(|round| 1 + round * 7_919 * 31 % records)
        .collect();
    let mut times: Vec<f64> = places
        .iter()
        .map(|place| {
            let began = Instant::now();
            assert_eq!(store.audit().prove(&[*place]).unwrap().len(), 1);
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    note(result, "prove_median_ms", *times.get(ROUNDS / 2).unwrap());
    note(result, "prove_worst_ms", *times.last().unwrap());
}

fn has_argument(name: &str) -> bool {
    std::env::args().any(|argument| argument == name)
}

fn note(result: &mut Map<String, Value>, name: &str, value: f64) {
    result.insert(name.to_owned(), json!((value * 1000.0).round() / 1000.0));
}

fn alone() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

fn many() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap()
}

fn writing(pairs: usize, result: &mut Map<String, Value>) {
    let lanes = [
        ("1", alone(), 1),
        ("64", many(), 64),
        ("64_one_thread", alone(), 64),
    ];
    for (name, runtime, callers) in lanes {
        let cost = pair_cost(&runtime, callers, pairs);
        note(result, &format!("pair_cpu_us_{name}"), cost.cpu_us);
        note(result, &format!("pair_wall_us_{name}"), cost.wall_us);
        note(
            result,
            &format!("records_per_commit_{name}"),
            cost.records_per_commit,
        );
    }
    for (name, records) in [("1", 1), ("64", 40)] {
        note(
            result,
            &format!("floor_cpu_us_{name}"),
            floor(pairs, records),
        );
    }
    // What making the two texts costs, which is part of the above.
    let spelling = cpu_of(|| {
        for number in 0..pairs {
            let opening = model::record::audit::spell::opening(&opening(number));
            let closing = model::record::audit::spell::closing(&closing(number));
            std::hint::black_box((opening.unwrap(), closing.unwrap()));
        }
    });
    let spelling = spelling.as_secs_f64() * 1e6 / pairs as f64;
    note(result, "of_it_making_and_spelling_cpu_us", spelling);
}

/// The same texts into one table of a database of its own, so many to a
/// transaction: no chain, no index, no threads. What is above it is ours.
fn floor(pairs: usize, records: usize) -> f64 {
    let home = Home::new("floor");
    std::fs::create_dir_all(&home.path).unwrap();
    let database = rusqlite::Connection::open(home.path.join("floor.db")).unwrap();
    database
        .execute_batch(
            "PRAGMA journal_mode = wal; PRAGMA synchronous = normal;
             CREATE TABLE texts (number INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT",
        )
        .unwrap();
    let texts = [
        model::record::audit::spell::opening(&opening(1)).unwrap(),
        model::record::audit::spell::closing(&closing(1)).unwrap(),
    ];
    let mut insert = database
        .prepare("INSERT INTO texts (text) VALUES (?1)")
        .unwrap();
    let mut begin = database.prepare("BEGIN IMMEDIATE").unwrap();
    let mut commit = database.prepare("COMMIT").unwrap();
    let mut round = || {
        for number in 0..2 * pairs {
            if number % records == 0 {
                begin.execute([]).unwrap();
            }
            insert.execute([texts.get(number % 2).unwrap()]).unwrap();
            if number % records == records - 1 || number == 2 * pairs - 1 {
                commit.execute([]).unwrap();
            }
        }
    };
    median(|| cpu_of(&mut round)).as_secs_f64() * 1e6 / pairs as f64
}

/// What a process pays before its first call, beside one that runs.
fn opening_cost(home: &Home, result: &mut Map<String, Value>) {
    let cost = median(|| cpu_of(|| drop(home.store())));
    note(result, "open_store_cpu_ms", millis(cost));
    let start = Instant::now();
    drop(home.store());
    note(result, "open_store_wall_ms", millis(start.elapsed()));
}

fn reading(store: &Store, result: &mut Map<String, Value>) {
    let none = Filter::default();
    let lists = [
        ("all", none.clone()),
        (
            "tool",
            Filter {
                tool: Some("tool-7".to_owned()),
                ..none.clone()
            },
        ),
        (
            "rare_tool",
            Filter {
                tool: Some("rare".to_owned()),
                ..none.clone()
            },
        ),
        (
            "caller",
            Filter {
                caller: Some("caller-3".to_owned()),
                ..none.clone()
            },
        ),
        (
            "failed",
            Filter {
                status: Some(Status::Failed),
                ..none.clone()
            },
        ),
        (
            "absent_status",
            Filter {
                status: Some(Status::Crashed),
                ..none.clone()
            },
        ),
        (
            "since",
            Filter {
                since_ms: Some(1_700_000_000_000 + 99_000),
                ..none.clone()
            },
        ),
        (
            "until",
            Filter {
                until_ms: Some(1_700_000_000_000 + 1_000),
                ..none.clone()
            },
        ),
        (
            "absent_origin",
            Filter {
                origin: Some(Origin::Script),
                ..none
            },
        ),
    ];
    for (name, filter) in lists {
        let filter = Filter {
            limit: Some(50),
            ..filter
        };
        let cost = median(|| cpu_of(|| drop(store.audit().list(&filter).unwrap())));
        note(result, &format!("list_50_{name}_cpu_ms"), millis(cost));
    }
    let verify = cpu_of(|| assert_eq!(store.audit().verify(None).unwrap().broken, None));
    note(result, "verify_cpu_ms", millis(verify));
}

fn standing(store: &Store, result: &mut Map<String, Value>) {
    for number in 0..1_000 {
        let pass = Pass {
            digest: format!("ringfence-tool-1:sha256:rfc8785:{number:064x}"),
            name: format!("tool-{number}"),
            ok: true,
            at_ms: 1,
            error: None,
            elapsed_ms: 1,
        };
        store.publications().record_pass(&pass).unwrap();
        store
            .publications()
            .publish(&pass.name, &pass.digest, 1)
            .unwrap();
    }
    let all = median(|| {
        cpu_of(|| assert_eq!(store.publications().all().unwrap().published.len(), 1_000))
    });
    note(result, "standing_all_cpu_ms", millis(all));
    let version = cpu_of(|| {
        for _ in 0..10_000 {
            store.publications().version().unwrap();
        }
    });
    note(
        result,
        "standing_version_cpu_us",
        version.as_secs_f64() * 100.0,
    );
}

fn folder(home: &Home, result: &mut Map<String, Value>) {
    let folder = ToolFolder::open(&home.path).unwrap();
    let quiet = cpu_of(|| {
        for _ in 0..10_000 {
            assert!(!folder.changed());
        }
    });
    note(result, "changed_cpu_us", quiet.as_secs_f64() * 100.0);
    for number in 0..1_000 {
        folder
            .write(&format!("tool-{number}"), &"x".repeat(2_000))
            .unwrap();
    }
    let scan = median(|| cpu_of(|| assert_eq!(folder.scan().unwrap().len(), 1_000)));
    note(result, "scan_1000_cpu_ms", millis(scan));
}

struct Cost {
    cpu_us: f64,
    wall_us: f64,
    records_per_commit: f64,
}

/// CPU of the whole process for each pair, the median of some rounds.
fn pair_cost(runtime: &Runtime, callers: usize, pairs: usize) -> Cost {
    let home = Home::new("pairs");
    let store = home.store();
    let mut costs: Vec<_> = (0..ROUNDS)
        .map(|round| {
            let (cpu, start) = (cpu_time(), Instant::now());
            run(runtime, &store, callers, pairs, round * pairs);
            let per_pair = |time: Duration| time.as_secs_f64() * 1e6 / pairs as f64;
            (per_pair(cpu_time() - cpu), per_pair(start.elapsed()))
        })
        .collect();
    costs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (cpu_us, wall_us) = costs.get(ROUNDS / 2).copied().unwrap();
    let records_per_commit = (2 * ROUNDS * pairs) as f64 / store.status().commits as f64;
    Cost {
        cpu_us,
        wall_us,
        records_per_commit,
    }
}

fn run(runtime: &Runtime, store: &Store, callers: usize, pairs: usize, first: usize) {
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let store = store.clone();
            runtime.spawn(async move {
                for number in (first + caller..first + pairs).step_by(callers) {
                    let row = store.audit().open(opening(number)).await.unwrap();
                    // A call does something meanwhile, and others come in.
                    tokio::task::yield_now().await;
                    store.audit().close(row, closing(number)).await.unwrap();
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
    let tool = match number % 10_000 {
        77 => "rare".to_owned(),
        number => format!("tool-{}", number % 50),
    };
    Opening {
        call_id: uuid::Uuid::now_v7().to_string(),
        parent_id: None,
        at_ms: 1_700_000_000_000 + i64::try_from(number).unwrap(),
        origin: Origin::Mcp,
        caller: format!("caller-{}", number % 8),
        tool,
        arguments_digest: "9f86d081884c7d659a2feaa0c55ad015".repeat(2),
    }
}

fn closing(number: usize) -> Closing {
    let status = if number % 100 == 3 {
        Status::Failed
    } else {
        Status::Done
    };
    let error = (status == Status::Failed).then(|| Failure {
        code: "tool.threw".to_owned(),
        message: "the answer had no field `rate`".to_owned(),
    });
    let mut closing = Closing::bare(1_700_000_000_500, status, error);
    let facts = ToolFacts {
        tool_id: "7d1e6f0a-3b52-4b8e-9a68-2d5b1e1f6c33".to_owned(),
        name: format!("tool-{}", number % 50),
        category: Some("web".to_owned()),
        digest: format!("ringfence-tool-1:sha256:rfc8785:{}", "ab".repeat(32)),
        risk: "L2".to_owned(),
        risk_reasons: vec!["network: allowlist".to_owned()],
        tool_safety: json!({
            "engine": "quickjs", "sandboxed": true, "networkMode": "allowlist",
            "hostsAllow": ["api.example.com"], "fileRead": false, "fileWrite": false,
            "destructive": false, "timeoutMs": 30_000, "statementsMax": 500_000,
            "memoryBytesMax": 67_108_864, "approval": "off", "riskLevel": "L2",
        }),
    };
    closing.tool = Some(facts.into());
    closing.gates = ["access", "params", "policy", "risk", "rules"]
        .map(|gate| GateRecord {
            gate: gate.into(),
            verdict: "pass".into(),
            reason: None,
            note: None,
            rule: None,
            us: Some(12),
        })
        .to_vec();
    closing.arguments = Some(json!({"from": "EUR", "to": "USD", "amount": number}));
    closing.result_digest = Some("9f86d081884c7d659a2feaa0c55ad015".repeat(2));
    closing.timing = Some(Timing {
        total_us: 812,
        run_us: 640,
        cpu_us: 75,
    });
    closing
}

/// CPU of the whole process, all threads.
fn cpu_of(work: impl FnOnce()) -> Duration {
    let start = cpu_time();
    work();
    cpu_time() - start
}

fn median(mut measure: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<_> = (0..ROUNDS).map(|_| measure()).collect();
    times.sort();
    times.get(ROUNDS / 2).copied().unwrap()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
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
        let folder = format!("bench-store-{name}-{}", std::process::id());
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
