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
    clippy::disallowed_methods,
    reason = "a bench that cannot go on should stop, and its result is printed"
)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::audit::{Closing, Failure, GateRecord, Opening, Status, Timing, ToolFacts};
use model::caller::Origin;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use store::{Durability, Filter, Pass, Store, StoreSettings, ToolFolder};
use tokio::runtime::{Builder, Runtime};

const ROUNDS: usize = 9;
const ENTRIES: usize = 100_000;

fn main() {
    // What `cargo test` asks of a bench.
    let is_test = std::env::args().any(|argument| argument == "--test" || argument == "--list");
    let (pairs, entries) = if is_test { (64, 640) } else { (6_400, ENTRIES) };
    let alone = Builder::new_current_thread().build().unwrap();
    let many = Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    if std::env::args().any(|argument| argument == "--many") {
        println!("{}", pair_cost(&alone, 64, pairs * 4).cpu_us);
        return;
    }
    let one = pair_cost(&alone, 1, pairs);
    let sixty_four = pair_cost(&many, 64, pairs);
    let sixty_four_alone = pair_cost(&alone, 64, pairs);
    // Looking for where the time goes needs only this part.
    if std::env::args().any(|argument| argument == "--pairs") {
        println!(
            "{} {} {}",
            one.cpu_us, sixty_four.cpu_us, sixty_four_alone.cpu_us
        );
        return;
    }

    let home = Home::new("reading");
    let store = home.store(Durability::Standard);
    run(&many, &store, 64, entries, 0);
    let lists = [
        ("list_50_ms", Filter::default()),
        ("list_50_tool_ms", tool("tool-7")),
        ("list_50_rare_tool_ms", tool("rare")),
        (
            "list_50_caller_ms",
            Filter {
                caller: Some("caller-3".to_owned()),
                ..Filter::default()
            },
        ),
        (
            "list_50_failed_ms",
            Filter {
                status: Some(Status::Failed),
                ..Filter::default()
            },
        ),
        (
            "list_50_since_ms",
            Filter {
                since_ms: Some(1_700_000_000_000 + 99_000),
                ..Filter::default()
            },
        ),
        (
            "list_50_until_ms",
            Filter {
                until_ms: Some(1_700_000_000_000 + 1_000),
                ..Filter::default()
            },
        ),
        (
            "list_50_rare_origin_ms",
            Filter {
                origin: Some(Origin::Chat),
                ..Filter::default()
            },
        ),
    ];
    let mut result = json!({
        "pair_cpu_us_1": one.cpu_us,
        "pair_cpu_us_64": sixty_four.cpu_us,
        "pair_cpu_us_64_one_thread": sixty_four_alone.cpu_us,
        "pair_wall_us_1": one.wall_us,
        "pair_wall_us_64": sixty_four.wall_us,
    });
    for (name, filter) in lists {
        let filter = Filter {
            limit: Some(50),
            ..filter
        };
        let cost = median(|| timed(|| drop(store.audit().list(&filter).unwrap())));
        result[name] = json!(millis(cost));
    }
    let verify = timed(|| assert_eq!(store.audit().verify(None).unwrap().broken, None));
    result["verify_ms"] = json!(millis(verify));
    result["entries"] = json!(entries);
    result["database_bytes_per_entry"] = json!(
        std::fs::metadata(home.path.join("ringfence.db"))
            .unwrap()
            .len() as f64
            / entries as f64
    );
    standing(&store, &mut result);
    let folder = ToolFolder::open(&home.path).unwrap();
    let quiet = timed(|| {
        for _ in 0..10_000 {
            assert!(!folder.changed());
        }
    });
    result["changed_us"] = json!(quiet.as_secs_f64() * 100.0);
    println!("{result}");
}

fn standing(store: &Store, result: &mut serde_json::Value) {
    for number in 0..1_000 {
        let pass = Pass {
            digest: format!("ringfence-tool-1:sha256:rfc8785:{number:064x}"),
            name: format!("tool-{number}"),
            ok: true,
            at_ms: 1,
            error: None,
            elapsed_ms: 1,
        };
        store.standing().record_pass(&pass).unwrap();
        store
            .standing()
            .publish(&pass.name, &pass.digest, 1)
            .unwrap();
    }
    let all =
        median(|| timed(|| assert_eq!(store.standing().all().unwrap().published.len(), 1_000)));
    result["standing_all_ms"] = json!(millis(all));
    let version = timed(|| {
        for _ in 0..10_000 {
            store.standing().version().unwrap();
        }
    });
    result["standing_version_us"] = json!(version.as_secs_f64() * 100.0);
}

struct Cost {
    cpu_us: f64,
    wall_us: f64,
}

/// CPU of the whole process for each pair, the median of some rounds.
fn pair_cost(runtime: &Runtime, callers: usize, pairs: usize) -> Cost {
    let home = Home::new("pairs");
    let store = home.store(Durability::Standard);
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
    Cost { cpu_us, wall_us }
}

fn run(runtime: &Runtime, store: &Store, callers: usize, pairs: usize, first: usize) {
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let store = store.clone();
            runtime.spawn(async move {
                for number in (first + caller..first + pairs).step_by(callers) {
                    let row = store.audit().open(opening(number)).await.unwrap();
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
    closing.tool = Some(ToolFacts {
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
    });
    closing.gates = ["access", "params", "policy", "risk", "rules"]
        .map(|gate| GateRecord {
            gate: gate.to_owned(),
            verdict: "pass".to_owned(),
            reason: None,
            note: None,
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

fn tool(name: &str) -> Filter {
    Filter {
        tool: Some(name.to_owned()),
        ..Filter::default()
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
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

    fn store(&self, durability: Durability) -> Store {
        let settings = StoreSettings {
            durability,
            ..StoreSettings::standard()
        };
        Store::open(&self.path, settings).unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
