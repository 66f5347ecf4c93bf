//! What the decisions and records of one governed call cost in the store of a home and in a
//! Postgres on loopback, in turn, with one caller and with many. `cargo xtask bench shared` runs
//! it. The last line is one JSON object.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench that cannot go on should stop, and its result is printed"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use model::caller::Origin;
use model::govern::access::quota::{self, LimitUsage, LimitedCall, RateLimit};
use model::record::audit::{Closing, Opening, Status};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use store::{Store, StoreSettings};

#[path = "../../host/tests/lab/postgres.rs"]
#[expect(dead_code, reason = "tests need more of the lab")]
mod postgres_lab;

const CALLERS: usize = 64;
const CALLS: usize = 200;
const ROUNDS: usize = 3;

/// What one way of keeping decisions took, for each call.
struct Taken {
    cpu_us: f64,
    p50_ms: f64,
}

fn main() {
    // `cargo test` runs every bench once, with this.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    store::set_secret_reader(|_, _| Ok(Some(postgres_lab::PASSWORD.to_owned())));
    let folder = std::env::temp_dir().join(format!("ringfence-shared-{}", std::process::id()));
    let (home, node) = (folder.join("home"), folder.join("node"));
    write_settings(&node);
    let stores = [open(&home), open(&node)];
    let mut report = serde_json::Map::new();
    for callers in [1, CALLERS] {
        let mut taken: [Vec<Taken>; 2] = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (store, taken) in stores.iter().zip(&mut taken) {
                taken.push(measure(store, callers));
            }
        }
        let middle = |taken: &[Taken], of: &dyn Fn(&Taken) -> f64| {
            let mut all: Vec<f64> = taken.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let cpu = |taken: &[Taken]| middle(taken, &|taken| taken.cpu_us);
        let p50 = |taken: &[Taken]| middle(taken, &|taken| taken.p50_ms);
        println!(
            "{callers} callers: home {:.0} us of processor, p50 {:.2} ms; postgres {:.0} us, {:.2} ms",
            cpu(&taken[0]),
            p50(&taken[0]),
            cpu(&taken[1]),
            p50(&taken[1]),
        );
        let ratio = cpu(&taken[1]) / cpu(&taken[0]);
        report.insert(format!("shared_cpu_ratio_{callers}"), json!(ratio));
        report.insert(format!("shared_p50_ms_{callers}"), json!(p50(&taken[1])));
    }
    drop(stores);
    report.insert(
        "shared_three_nodes_ratio".to_owned(),
        json!(three_nodes(&folder)),
    );
    let _ = fs::remove_dir_all(&folder);
    println!("{}", serde_json::Value::Object(report));
}

/// Calls a second of three nodes on one database, as a part of those of one node. Both are
/// measured in turn, with as many callers in all.
fn three_nodes(folder: &Path) -> f64 {
    let nodes = ["a", "b", "c"].map(|name| {
        let node = folder.join(name);
        write_settings(&node);
        open(&node)
    });
    let mut rates: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (count, rates) in [1, 3].into_iter().zip(&mut rates) {
            let began = Instant::now();
            std::thread::scope(|scope| {
                for caller in 0..CALLERS {
                    let node = &nodes[caller % count];
                    scope.spawn(move || calls(node, &format!("many-{caller}")));
                }
            });
            #[expect(clippy::cast_precision_loss, reason = "a count of calls")]
            let made = (CALLERS * CALLS) as f64;
            rates.push(made / began.elapsed().as_secs_f64());
        }
    }
    let [one, three] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    println!("calls a second: one node {one:.0}, three nodes {three:.0}");
    three / one
}

fn write_settings(node: &Path) {
    fs::create_dir_all(node).unwrap();
    fs::set_permissions(node, fs::Permissions::from_mode(0o700)).unwrap();
    let port = postgres_lab::server().address.port();
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable");
    fs::write(
        node.join("ringfence.toml"),
        format!("[store]\nurl = \"{url}\"\n"),
    )
    .unwrap();
}

fn open(home: &Path) -> Store {
    Store::open(home, StoreSettings::standard()).unwrap()
}

fn cpu() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(spent.tv_sec).unwrap();
    Duration::new(seconds, u32::try_from(spent.tv_nsec).unwrap())
}

/// So many callers, each with a limit of its own, make calls at the same time.
fn measure(store: &Store, callers: usize) -> Taken {
    let began = cpu();
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers)
            .map(|caller| scope.spawn(move || calls(store, &format!("caller-{caller}"))))
            .collect();
        let ended = threads.into_iter();
        ended.flat_map(|thread| thread.join().unwrap()).collect()
    });
    let spent = cpu().saturating_sub(began);
    times.sort();
    #[expect(clippy::cast_precision_loss, reason = "a count of calls")]
    let count = times.len() as f64;
    Taken {
        cpu_us: spent.as_secs_f64() * 1e6 / count,
        p50_ms: times[times.len() / 2].as_secs_f64() * 1e3,
    }
}

fn calls(store: &Store, caller: &str) -> Vec<Duration> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.unwrap();
    let limit = RateLimit {
        id: "many".to_owned(),
        callers: Vec::new(),
        groups: Vec::new(),
        tools: Vec::new(),
        calls_per_minute: None,
        concurrent: Some(1_000),
        units_per_day: None,
    };
    let one = |number: usize| {
        let start = Instant::now();
        runtime.block_on(call(store, caller, &limit, number));
        start.elapsed()
    };
    (0..CALLS).map(one).collect()
}

/// What a call asks of the store: versions, its place under a limit, two records.
async fn call(store: &Store, caller: &str, limit: &RateLimit, number: usize) {
    let opening = Opening {
        call_id: format!("{caller}-{number}"),
        parent_id: None,
        at_ms: 1_700_000_000_000,
        origin: Origin::ALL[0],
        caller: caller.to_owned(),
        tool: "tool".to_owned(),
        arguments_digest: "00".repeat(32),
    };
    let row = store.audit().open(opening).await.unwrap();
    store.reach().unwrap();
    store.publications().version().unwrap();
    store.callers().version().unwrap();
    let usage = store.usage();
    let key = [("many".to_owned(), caller.to_owned())];
    let (process, name) = (usage.process().clone(), caller.to_owned());
    let limit = limit.clone();
    let entering = move |tallies: &mut Vec<LimitUsage>| {
        let visit = LimitedCall {
            caller: &name,
            groups: &[],
            tool: "tool",
            units: 1,
            at_ms: 0,
        };
        let mut held = vec![(&limit, tallies.remove(0))];
        let entered = quota::enter(&mut held, &visit, &process);
        tallies.extend(held.into_iter().map(|(_, tally)| tally));
        entered.is_ok()
    };
    let entered = usage.change_in_task(&key, 0, entering).await;
    assert_eq!(entered.unwrap(), Some(true));
    let process = usage.process().clone();
    let leaving = move |tallies: &mut Vec<LimitUsage>| {
        for tally in tallies {
            tally.leave(&process, 0, 0);
        }
    };
    usage.change_in_task(&key, 0, leaving).await.unwrap();
    let closing = Closing::bare(1_700_000_000_001, Status::Done, None);
    store.audit().close(row, closing).await.unwrap();
}
