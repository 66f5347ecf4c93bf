//! What governance costs: a decision, limits, trust, `explain` and progressive listing.
//!
//! Prints one JSON object; `cargo xtask bench engine`. Microseconds are processor
//! time, of this process and its workers together where tools run. What is compared
//! takes turns in one run, so that the difference means something on a busy machine.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench ends on the first surprise and prints what it measured"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use engine::call::CallRequest;
use engine::{Alarm, Engine, EngineSettings};
use model::Environment;
use model::caller::{Caller, Origin};
use model::config::Config;
use model::document::params;
use model::govern::access::AccessLevel;
use model::govern::rules::{Effect, RuleInput};
use model::govern::trust::{
    Strategy, TrustConfig, TrustOutcome, TrustRecord, TrustState, evaluate,
};
use model::policy::resolve;
use model::policy::risk::{Level, rate};
use model::record::audit::Status;
use model::record::outcome::Outcome;
use model::time::DAY_MS;
use model::word::Word as _;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

/// Turns of each kind.
const TURNS: usize = 5;
/// Calls of one turn.
const CALLS: u32 = 1_000;
/// Decisions of one turn.
const DECISIONS: u32 = 5_000;
/// Tools of the long list.
const TOOLS: usize = 200;
/// Rules of the set that decides.
const RULES: usize = 100;
/// Attempts that trust looks back on.
const ATTEMPTS: i64 = 10_000;
/// A bundled tool that the preset of this home does not expose.
const HIDDEN: &str = "deleteFile";

fn main() -> ExitCode {
    if let Some(code) = sandbox::worker_main() {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (limits, explained, refused, disclosed) = runtime.block_on(async {
        let home = Home::new();
        let engine = home.engine();
        home.publish(&engine).await;
        let limits = limits(&engine).await;
        let explained = explained(&engine);
        let refused = hidden_against_absent(&engine);
        (limits, explained, refused, disclosed(&engine).await)
    });
    let report = json!({
        "cpu_us_per_decision_of_100_rules": decided(),
        "cpu_us_per_call_under_10_limits": limits,
        "cpu_us_per_explain": explained,
        "cpu_us_per_refused_tool": refused,
        "cpu_us_per_reckoning_of_10000_attempts": reckoned(),
        "cpu_us_with_200_tools": disclosed,
    });
    println!("{report:#}");
    ExitCode::SUCCESS
}

struct Home(PathBuf);

impl Home {
    /// A home with rules, with ten limits on one caller and none on the other, and
    /// progressive listing on.
    fn new() -> Home {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-govern");
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("tools")).unwrap();
        let mut settings = format!(
            "{}\n[progressive]\nenabled = true\n[exposure]\npreset = \"none\"\n",
            rules()
        );
        for number in 0..10 {
            let kind = ["calls_per_minute", "concurrent", "units_per_day"][number % 3];
            let _ = write!(
                settings,
                "[[limit]]\nid = \"l{number}\"\ncallers = [\"limited\"]\n{kind} = 1000000000\n"
            );
        }
        settings.push_str("[costs]\n\"tool1*\" = 3\n\"tool0\" = 2\n");
        std::fs::write(path.join("ringfence.toml"), settings).unwrap();
        Home(path)
    }

    fn engine(&self) -> Engine {
        let alarm = Alarm::new(|sentence| println!("{sentence}"));
        let settings = EngineSettings::new(self.0.clone(), Environment::empty(), alarm);
        Engine::open(settings).unwrap()
    }

    async fn publish(&self, engine: &Engine) {
        for number in 0..TOOLS {
            let name = format!("tool{number}");
            let path = self.0.join("tools").join(format!("{name}.json"));
            std::fs::write(path, document(&name).to_string()).unwrap();
        }
        for number in 0..TOOLS {
            let name = format!("tool{number}");
            assert!(engine.publish(&name, Origin::Cli).await.unwrap().ok);
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn document(name: &str) -> Value {
    json!({
        "name": name, "description": "Adds two numbers. Returns their sum, which is a number again.",
        "category": "MATH", "tags": ["sum"], "code": "return a + b", "codeType": "Javascript",
        "params": [
            {"name": "a", "description": "One.", "type": "NUMBER", "required": true, "testValue": "1"},
            {"name": "b", "description": "The other.", "type": "NUMBER", "required": true, "testValue": "2"},
        ],
    })
}

/// Rules of every kind, a third of them about the call that is decided; none holds,
/// so every one is looked at to its end.
fn rules() -> String {
    let mut text = String::new();
    for number in 0..RULES {
        let rest = match number % 6 {
            0 => "tools = ['tool*']\nwhen = 'args.a > 1000.0 && args.b < 0.0'",
            1 => "tools = ['payment.*']\nwhen = 'args.amount > 1000'",
            2 => "callers = ['bob', 'bot-*']",
            3 => "actions = ['deployment', 'database_write']",
            4 => "tools = ['tool*']\nrisk = 'L0-L3'\nwhen = 'args.a > 2000.0 || time.hour > 24'",
            _ => "categories = ['file', 'terminal']",
        };
        let _ = writeln!(text, "[[rule]]\nid = 'r{number}'\neffect = 'deny'\n{rest}");
    }
    text
}

/// One decision by itself.
fn decided() -> f64 {
    let config = Config::parse(&rules()).unwrap();
    let parsed = model::document::parse(&document("tool0").to_string());
    let document = parsed.items.into_iter().next().unwrap().document.unwrap();
    let caller = Caller::named("free");
    let rights = config.access.rights(&caller, document.category.as_deref());
    let baseline = config.effective_baseline().unwrap();
    let policy = resolve(&baseline, &document.sandbox_overrides).unwrap();
    let risk = rate(&baseline, &document.sandbox_overrides, &policy);
    let arguments = params::check(&document.params, &json!({"a": 1, "b": 2})).unwrap();
    let asked = RuleInput {
        caller: &caller,
        rights: &rights,
        origin: Origin::Mcp,
        document: &document,
        arguments: &arguments,
        policy: &policy,
        risk: &risk,
        body: model::govern::rules::BodyFacts::sandboxed(),
        at_ms: 1_794_799_200_000,
    };
    let decision = config.rules.decide(&asked);
    assert_eq!((decision.effect, decision.rule), (Effect::Allow, None));
    timed(DECISIONS, || {
        black_box(config.rules.decide(black_box(&asked)));
    })
}

/// The same call by a caller with ten limits and by one with none, taking turns.
async fn limits(engine: &Engine) -> Value {
    let (mut free, mut limited) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        free.push(calls(engine, "free").await);
        limited.push(calls(engine, "limited").await);
    }
    let (free, limited) = (median(free), median(limited));
    json!({
        "without": rounded(free), "with": rounded(limited), "added": rounded(limited - free),
    })
}

/// Processor time of one call. Workers are replaced after a number of calls; a turn
/// in which that happened is taken again.
async fn calls(engine: &Engine, caller: &str) -> f64 {
    loop {
        let (before, workers) = spent_with_workers(engine).await;
        for _ in 0..CALLS {
            called(engine, caller, "tool0", json!({"a": 1, "b": 2})).await;
        }
        let (after, same) = spent_with_workers(engine).await;
        if same == workers {
            return (after - before).as_secs_f64() * 1e6 / f64::from(CALLS);
        }
    }
}

async fn called(engine: &Engine, caller: &str, tool: &str, arguments: Value) -> Outcome {
    let request = CallRequest::new(Caller::named(caller), Origin::Mcp, tool, arguments);
    let outcome = engine.call(request).await.into_inner();
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    outcome
}

/// `explain` of a call that is not made, without limits and under ten.
fn explained(engine: &Engine) -> Value {
    let mut said = Map::new();
    for caller in ["free", "limited"] {
        let arguments = json!({"a": 1, "b": 2});
        let request = CallRequest::new(Caller::named(caller), Origin::Mcp, "tool0", arguments);
        assert_eq!(engine.explain(&request).effect, Effect::Allow);
        let spent = timed(CALLS, || {
            black_box(engine.explain(black_box(&request)));
        });
        said.insert(caller.to_owned(), json!(spent));
    }
    Value::Object(said)
}

/// The gates of a refused call: a tool that is hidden from the caller against one that
/// is not there. Nobody must be able to tell them apart, so this is near 1.
fn hidden_against_absent(engine: &Engine) -> Value {
    let refuse = |tool: &str| {
        let caller = Caller::named("free");
        let request = CallRequest::new(caller, Origin::Mcp, tool, json!({}));
        assert_eq!(engine.explain(&request).effect, Effect::Deny);
        timed(CALLS, || {
            black_box(engine.explain(black_box(&request)));
        })
    };
    let (hidden, absent) = (refuse(HIDDEN), refuse("noSuchTool"));
    json!({"hidden": hidden, "absent": absent, "ratio": rounded(hidden / absent)})
}

/// What a client pays to find and load one of two hundred tools.
async fn disclosed(engine: &Engine) -> Value {
    let ann = Caller::named("free");
    assert_eq!(engine.listed(&ann).len(), 7, "ours, and none of the others");
    let plain = timed(CALLS / 10, || {
        assert!(black_box(engine.callable_tools(&ann, Origin::Mcp)).len() > TOOLS);
    });
    let listed = called(engine, "free", "list_tools", json!({})).await;
    let page = listed.value.unwrap();
    assert_eq!(page["total"], TOOLS);
    assert_eq!(page["tools"][0]["cost"], 2);
    let (mut lists, mut loads) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let before = spent();
        for _ in 0..CALLS / 10 {
            called(engine, "free", "list_tools", json!({})).await;
        }
        let between = spent();
        for number in 0..CALLS / 10 {
            let name = format!("tool{}", number % 20);
            called(engine, "free", "load_tool", json!({"name": name})).await;
        }
        let after = spent();
        let each = |spent: Duration| spent.as_secs_f64() * 1e6 / f64::from(CALLS / 10);
        lists.push(each(between - before));
        loads.push(each(after - between));
    }
    json!({
        "offered": plain,
        "list_tools_call": rounded(median(lists)),
        "load_tool_call": rounded(median(loads)),
    })
}

/// Each strategy over ten thousand attempts of two months, one evaluation.
fn reckoned() -> Value {
    let record = |number: i64| TrustRecord {
        at_ms: 20_000 * DAY_MS + number * (60 * DAY_MS / ATTEMPTS),
        tool: format!("tool{}", number % 37),
        category: Some(
            ["WEB", "FILE", "DATABASE"][usize::try_from(number % 3).unwrap()].to_owned(),
        ),
        risk: Level::ALL[usize::try_from(number % 6).unwrap()],
        outcome: match number % 50 {
            0 => TrustOutcome::Failed,
            1 => TrustOutcome::Denied,
            _ => TrustOutcome::Done,
        },
    };
    let records: Vec<_> = (0..ATTEMPTS).map(record).collect();
    let mut said = Map::new();
    for strategy in Strategy::ALL {
        let mut config = TrustConfig::standard();
        config.strategy = *strategy;
        config.initial_level = AccessLevel::Restricted;
        let begun = TrustState::initial(&config, 20_000 * DAY_MS);
        let now_ms = 20_060 * DAY_MS;
        let tracks = evaluate(&config, &begun, &records, &[], now_ms).len();
        let expected = match strategy {
            Strategy::Disabled => 0,
            Strategy::Weighted | Strategy::Milestone => 1,
            Strategy::PerCategory => begun.categories.len(),
        };
        assert_eq!(tracks, expected, "{}", strategy.word());
        let spent = timed(20, || {
            black_box(evaluate(&config, &begun, black_box(&records), &[], now_ms));
        });
        said.insert(strategy.word().to_owned(), json!(spent));
    }
    Value::Object(said)
}

/// The median of several turns, each so many times.
fn timed(times: u32, mut work: impl FnMut()) -> f64 {
    let turn = |_| {
        let before = spent();
        for _ in 0..times {
            work();
        }
        let after = spent();
        (after - before).as_secs_f64() * 1e6 / f64::from(times)
    };
    rounded(median((0..TURNS).map(turn).collect()))
}

/// Processor time of this process and its workers so far, and which they are.
async fn spent_with_workers(engine: &Engine) -> (Duration, Vec<u32>) {
    let mut workers = engine.pool().await.unwrap().status().pids;
    workers.sort_unstable();
    let theirs: Duration = workers.iter().copied().map(of_worker).sum();
    (theirs + spent(), workers)
}

/// Processor time of this process so far, threads that ended included.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap())
}

/// The sum over the threads of a worker, in nanoseconds, as the scheduler counts.
fn of_worker(pid: u32) -> Duration {
    let mut total = Duration::ZERO;
    for entry in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let path = entry.unwrap().path().join("schedstat");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let nanos = text.split(' ').next().and_then(|word| word.parse().ok());
        total += Duration::from_nanos(nanos.unwrap_or(0));
    }
    total
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
