//! What the path of a call adds to the bare sandbox run, and how long a list takes.
//!
//! Prints one JSON object; `cargo xtask bench engine`. Microseconds are processor
//! time of this process and its workers. Bare and whole calls take turns in one run,
//! so that their difference means something on a busy machine.
//!
//! Gates, policy and audit log are work of this process. A worker does the same job for
//! a bare call and for a whole one, but sleeps and wakes at another rhythm: bare calls come
//! so fast one by one that it sleeps between them. So what a whole call adds is taken from
//! this process alone.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench ends on the first surprise and prints what it measured"
)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use engine::call::CallRequest;
use engine::powers::Powers;
use engine::{Alarm, Engine, EngineSettings};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use model::Environment;
use model::caller::{Caller, Origin};
use model::record::audit::Status;
use sandbox::job::{Ended, Job, JobLimits};
use serde_json::{Map, Value, json};

/// Calls of one turn.
const CALLS: usize = 2_000;
/// Turns of each kind.
const TURNS: usize = 7;
/// Scripts of one turn.
const SCRIPTS: usize = 200;
/// Tools of the long list.
const TOOLS: usize = 1_000;

fn main() -> ExitCode {
    if let Some(code) = sandbox::worker_main() {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    // Names on the command line choose sections; without any all are measured.
    let mut arguments = std::env::args().skip(1);
    let chosen: Vec<String> = arguments
        .by_ref()
        .filter(|one| !one.starts_with('-'))
        .collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|chosen| chosen == name);
    let mut report = Map::new();
    let home = Home::new("call");
    runtime.block_on(async {
        let engine = home.engine();
        publish(&home, &engine).await;
        if is_chosen("calls") {
            let calls = json!({
                "one_at_a_time": turns(&engine, 1).await,
                "sixty_four_at_a_time": turns(&engine, 64).await,
            });
            report.insert("cpu_us_per_call".to_owned(), calls);
        }
        if is_chosen("scripts") {
            let scripts = json!({
                "one_at_a_time": scripts(&engine, 1).await,
                "sixteen_at_a_time": scripts(&engine, 16).await,
            });
            report.insert("cpu_us_per_script_of_ten_calls".to_owned(), scripts);
        }
    });
    if is_chosen("list") {
        report.insert("list_of_1000_ms".to_owned(), lists());
    }
    println!("{:#}", Value::Object(report));
    ExitCode::SUCCESS
}

struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Home {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{name}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("tools")).unwrap();
        Home(path)
    }

    fn engine(&self) -> Engine {
        let alarm = Alarm::new(|sentence| println!("{sentence}"));
        Engine::open(EngineSettings::new(
            self.0.clone(),
            Environment::empty(),
            alarm,
        ))
        .unwrap()
    }

    fn tool(&self, name: &str) {
        let document = json!({
            "name": name, "description": "Adds two numbers. Returns their sum.",
            "category": "MATH", "tags": ["sum"], "code": "return a + b", "codeType": "Javascript",
            "params": [
                {"name": "a", "description": "One.", "type": "NUMBER", "required": true, "testValue": "1"},
                {"name": "b", "description": "The other.", "type": "NUMBER", "required": true, "testValue": "2"},
            ],
        });
        let path = self.0.join("tools").join(format!("{name}.json"));
        std::fs::write(path, format!("{document:#}")).unwrap();
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn publish(home: &Home, engine: &Engine) {
    home.tool("add");
    assert!(engine.publish("add", Origin::Cli).await.unwrap().ok);
}

/// Medians of bare and whole calls, taking turns.
async fn turns(engine: &Engine, at_a_time: usize) -> Value {
    let (mut bare, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        bare.push(measured_of(engine, CALLS, at_a_time, &|| bare_call(engine)).await);
        whole.push(measured_of(engine, CALLS, at_a_time, &|| whole_call(engine)).await);
    }
    let of = |turns: &[Spent], part: fn(&Spent) -> f64| median(turns.iter().map(part).collect());
    let own = [&bare, &whole].map(|turns| of(turns, |spent| spent.own));
    let workers = [&bare, &whole].map(|turns| of(turns, |spent| spent.workers));
    let (run, added) = (own[0] + workers[0], own[1] - own[0]);
    json!({
        "bare": rounded(run),
        "added": rounded(added),
        "governed": rounded(run + added),
        "engine": {"bare": rounded(own[0]), "whole": rounded(own[1])},
        "workers": {"bare": rounded(workers[0]), "whole": rounded(workers[1])},
    })
}

/// A script with ten awaited calls, and what is left of it without the calls: ten of
/// the same by themselves take turns with it.
async fn scripts(engine: &Engine, at_a_time: usize) -> Value {
    let number = std::cell::Cell::new(0_u32);
    let (mut alone, mut script, mut again) = (Vec::new(), Vec::new(), Vec::new());
    let mut empty = Vec::new();
    for _ in 0..TURNS {
        alone.push(
            measured_of(engine, CALLS, at_a_time, &|| whole_call(engine))
                .await
                .all(),
        );
        // Each a text of its own, as models write them.
        let fresh = || {
            number.set(number.get() + 1);
            script_call(engine, ten_calls(&format!("n{}", number.get())))
        };
        script.push(measured_of(engine, SCRIPTS, at_a_time, &fresh).await.all());
        let same = || script_call(engine, ten_calls("same"));
        again.push(measured_of(engine, SCRIPTS, at_a_time, &same).await.all());
        let nothing = || script_call(engine, "return { sum: 55 };".to_owned());
        empty.push(
            measured_of(engine, SCRIPTS, at_a_time, &nothing)
                .await
                .all(),
        );
    }
    let (alone, script, again) = (median(alone), median(script), median(again));
    json!({
        "ten_calls_alone": rounded(10.0 * alone),
        "new_script": rounded(script),
        "new_script_before_its_tools": rounded(script - 10.0 * alone),
        "same_script_before_its_tools": rounded(again - 10.0 * alone),
        "script_of_no_calls": rounded(median(empty)),
    })
}

fn ten_calls(name: &str) -> String {
    format!(
        "let {name} = 0;\nfor (let i = 0; i < 10; i++) {{\n  {name} += await callTool('add', {{ a: i, b: 1 }});\n}}\nreturn {{ sum: {name} }};"
    )
}

async fn script_call(engine: &Engine, script: String) {
    let caller = Caller::named("bench");
    let arguments = json!({"script": script});
    let request = CallRequest::new(caller, Origin::Mcp, "codecall_execute", arguments);
    let outcome = engine.call(request).await;
    assert_eq!(outcome.get().status, Status::Done);
}

/// Microseconds of processor time of one call.
struct Spent {
    /// Of this process.
    own: f64,
    workers: f64,
}

impl Spent {
    fn all(&self) -> f64 {
        self.own + self.workers
    }
}

/// Workers are replaced after a number of calls; a turn in which that happened is taken
/// again.
async fn measured_of<F: Future<Output = ()>>(
    engine: &Engine,
    calls: usize,
    at_a_time: usize,
    call: &impl Fn() -> F,
) -> Spent {
    loop {
        let (before, workers) = spent(engine).await;
        let mut running = FuturesUnordered::new();
        for _ in 0..calls {
            if running.len() >= at_a_time {
                running.next().await;
            }
            running.push(call());
        }
        while running.next().await.is_some() {}
        let (after, same) = spent(engine).await;
        if same == workers {
            let calls = f64::from(u32::try_from(calls).unwrap());
            let each = |part: usize| (after[part] - before[part]).as_secs_f64() * 1e6 / calls;
            return Spent {
                own: each(0),
                workers: each(1),
            };
        }
    }
}

async fn bare_call(engine: &Engine) {
    let job = Job {
        body: "return a + b".to_owned(),
        globals: r#"{"a":1,"b":2}"#.to_owned(),
        declared: vec!["a".to_owned(), "b".to_owned()],
        powers: Vec::new(),
        limits: JobLimits::standard(),
        seed: 1,
        now_ms: 0,
    };
    let pool = engine.pool().await.unwrap();
    let run = pool.run("bench", job, &Powers::none()).await.unwrap();
    assert!(matches!(run.report.ended, Ended::Value(_)));
}

async fn whole_call(engine: &Engine) {
    let caller = Caller::named("bench");
    let arguments = json!({"a": 1, "b": 2});
    let request = CallRequest::new(caller, Origin::Mcp, "add", arguments);
    let outcome = engine.call(request).await;
    assert_eq!(outcome.get().status, Status::Done);
}

/// Processor time of this process and of its workers so far, and which they are.
async fn spent(engine: &Engine) -> ([Duration; 2], Vec<u32>) {
    let mut workers = engine.pool().await.unwrap().status().pids;
    workers.sort_unstable();
    let of_workers = workers.iter().copied().map(of_process).sum();
    ([of_process(std::process::id()), of_workers], workers)
}

/// The sum over the threads, in nanoseconds, as the scheduler counts.
fn of_process(pid: u32) -> Duration {
    let mut total = Duration::ZERO;
    for entry in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let path = entry.unwrap().path().join("schedstat");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let nanos = text.split(' ').next().and_then(|word| word.parse().ok());
        total += Duration::from_nanos(nanos.unwrap_or(0));
    }
    total
}

/// From opening the home to the state of each of many tools.
fn lists() -> Value {
    let home = Home::new("list");
    for index in 0..TOOLS {
        home.tool(&format!("tool{index}"));
    }
    let mut first = Vec::new();
    let mut again = Vec::new();
    for _ in 0..TURNS {
        let started = Instant::now();
        let engine = home.engine();
        first.push(listed(&engine, started));
        let started = Instant::now();
        again.push(listed(&engine, started));
    }
    json!({"opened": rounded(median(first)), "again": rounded(median(again))})
}

fn listed(engine: &Engine, started: Instant) -> f64 {
    let now = engine.registry().current();
    let none = Environment::empty();
    let states = now.tools().map(|tool| tool.lifecycle(&none));
    assert!(states.count() >= TOOLS);
    started.elapsed().as_secs_f64() * 1e3
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}
