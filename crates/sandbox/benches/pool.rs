//! What a call costs through both walls: parent and worker together.
//!
//! Prints one JSON object. Times are microseconds of processor time unless the
//! name says otherwise; `cargo bench -p ringfence-sandbox --bench pool`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a bench ends on the first surprise and prints what it measured"
)]

#[path = "pool/emscripten.rs"]
mod emscripten;

use std::future::Future;
use std::pin::Pin;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sandbox::cell::{CellSettings, CellStep, Cells};
use sandbox::job::{Breach, CallId, Ended, HostAnswer, HostRequest, Job, JobLimits};
use sandbox::pool::{HostCalls, Pool, PoolSettings, Sharing, WorkerProgram};
use serde_json::{Map, Value, json};
use tokio::runtime::{Builder, Runtime};

/// The argument of a process that only measures its own start.
const START: &str = "start-to-first-result";

fn main() -> ExitCode {
    if let Some(code) = sandbox::worker::worker_main() {
        return code;
    }
    if std::env::args().any(|argument| argument == START) {
        return first_result();
    }
    // Names on the command line choose sections; without any all are measured.
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|one| !one.starts_with('-'))
        .collect();
    let mut report = Map::new();
    let one = single();
    let two = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let sections: [(&str, &dyn Fn() -> Value); 10] = [
        ("wall_one_alone_cpu_us", &|| wall_one(true)),
        ("wall_one_without_page_scan_cpu_us", &|| wall_one(false)),
        ("fresh_call", &|| fresh(&one)),
        ("fresh_call_two_threads", &|| fresh(&two)),
        ("quickjs_emscripten", &|| against_emscripten(&one)),
        ("kilobyte_in_and_out", &|| kilobyte(&one)),
        ("host_calls", &|| host_calls(&one)),
        ("kill", &|| kill(&one)),
        ("parked", &|| parked(&one)),
        ("start_to_first_result_ms", &start),
    ];
    for (name, section) in sections {
        if chosen.is_empty() || chosen.iter().any(|chosen| chosen == name) {
            report.insert(name.to_owned(), section());
        }
    }
    println!("{}", serde_json::to_string_pretty(&report).unwrap());
    ExitCode::SUCCESS
}

fn single() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn settings() -> PoolSettings {
    PoolSettings::new(WorkerProgram::ThisProgram, Sharing::Shared)
}

async fn pool(settings: PoolSettings) -> Arc<Pool> {
    let workers = settings.workers as usize;
    let pool = Pool::start(settings).await.unwrap();
    while pool.status().ready_count < workers {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Arc::new(pool)
}

fn job(body: &str, globals: &str) -> Job {
    Job {
        body: body.to_owned(),
        globals: globals.to_owned(),
        declared: Vec::new(),
        powers: vec!["probe".to_owned()],
        limits: JobLimits {
            work_max: 1_000_000_000_000,
            cpu_ms_max: 30_000,
            wall_ms_max: 30_000,
            memory_bytes_max: 64 << 20,
            result_bytes_max: 1 << 20,
            result_depth_max: 64,
            console_lines_max: 100,
            console_bytes_max: 64 << 10,
            host_calls_max: 1_000,
            host_outstanding_max: 64,
            payload_bytes_max: 1 << 20,
        },
        seed: 7,
        now_ms: 0,
    }
}

struct Echo;

impl HostCalls for Echo {
    fn call<'a>(
        &'a self,
        request: HostRequest,
    ) -> Pin<Box<dyn Future<Output = HostAnswer> + Send + 'a>> {
        Box::pin(async move { HostAnswer::Value(request.payload) })
    }
}

struct Never;

impl HostCalls for Never {
    fn call<'a>(&'a self, _: HostRequest) -> Pin<Box<dyn Future<Output = HostAnswer> + Send + 'a>> {
        Box::pin(std::future::pending())
    }
}

/// Processor time of a process so far, all its threads.
fn cpu(pid: u32) -> Duration {
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    #[expect(
        unsafe_code,
        reason = "the clock of another process has no safe wrapper"
    )]
    // Safety: both calls write only to the two values above.
    let failed = unsafe {
        libc::clock_getcpuclockid(pid.cast_signed(), &raw mut clock)
            | libc::clock_gettime(clock, &raw mut time)
    };
    assert_eq!(failed, 0, "no processor clock for {pid}");
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap(),
    )
}

struct Measured {
    parent_us: f64,
    worker_us: f64,
    wall_us: f64,
}

/// Runs `job` so often, so many at a time.
fn measure(
    runtime: &Runtime,
    pool: &Arc<Pool>,
    job: &Job,
    calls: usize,
    at_once: usize,
) -> Measured {
    let each = calls / at_once;
    let pids = pool.status().pids;
    let before = (
        cpu(std::process::id()),
        pids.iter().map(|pid| cpu(*pid)).sum::<Duration>(),
    );
    let began = Instant::now();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..at_once)
            .map(|_| {
                let (pool, job) = (Arc::clone(pool), job.clone());
                tokio::spawn(async move {
                    for _ in 0..each {
                        let run = pool.run("bench", job.clone(), &Echo).await.unwrap();
                        match run.report.ended {
                            Ended::Value(_) => {}
                            other => panic!("{other:?}"),
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    let wall = began.elapsed();
    let after = (
        cpu(std::process::id()),
        pids.iter().map(|pid| cpu(*pid)).sum::<Duration>(),
    );
    let per = |time: Duration| time.as_secs_f64() * 1e6 / (each * at_once) as f64;
    assert_eq!(
        pids,
        pool.status().pids,
        "a worker was replaced while it was measured"
    );
    Measured {
        parent_us: per(after.0 - before.0),
        worker_us: per(after.1 - before.1),
        wall_us: per(wall),
    }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The best of a few rounds: other work on the machine only ever adds.
fn best(runtime: &Runtime, pool: &Arc<Pool>, job: &Job, calls: usize, at_once: usize) -> Value {
    measure(runtime, pool, job, calls / 4, at_once);
    let measured = (0..5)
        .map(|_| measure(runtime, pool, job, calls, at_once))
        .min_by(|a, b| (a.parent_us + a.worker_us).total_cmp(&(b.parent_us + b.worker_us)))
        .unwrap();
    json!({
        "cpu_us": round(measured.parent_us + measured.worker_us),
        "parent_cpu_us": round(measured.parent_us),
        "worker_cpu_us": round(measured.worker_us),
        "wall_us": round(measured.wall_us),
    })
}

fn fresh(runtime: &Runtime) -> Value {
    let mut settings = settings();
    settings.calls_max = u32::MAX;
    let pool = runtime.block_on(pool(settings));
    let job = job("return a + b", r#"{"a":1,"b":2}"#);
    let mut report = Map::new();
    for at_once in [1, 2, 4, 8, 16, 32, 64] {
        report.insert(
            at_once.to_string(),
            best(runtime, &pool, &job, 4_000, at_once),
        );
    }
    let _inside = runtime.enter();
    drop(pool);
    Value::Object(report)
}

fn against_emscripten(runtime: &Runtime) -> Value {
    let mut settings = settings();
    settings.calls_max = u32::MAX;
    let pool = runtime.block_on(pool(settings));
    let job = job("return a + b", r#"{"a":1,"b":2}"#);
    emscripten::compare(|at_once| {
        measure(runtime, &pool, &job, 1_000, at_once);
        let measured = measure(runtime, &pool, &job, 4_000, at_once);
        measured.parent_us + measured.worker_us
    })
}

/// The same call without the process around it, to tell the two walls apart and
/// to compare runs on machines of different speed or load.
fn wall_one(page_scan: bool) -> Value {
    let cells = Cells::load(&CellSettings {
        page_scan,
        ..CellSettings::default()
    })
    .unwrap();
    cells.start_ticker().unwrap();
    let job = job("return a + b", r#"{"a":1,"b":2}"#);
    let round = || {
        let before = cpu(std::process::id());
        for number in 0..2_000 {
            let mut cell = cells.start(CallId(number), job.clone());
            while !matches!(cell.step(&mut Vec::new()), CellStep::Ended(_)) {}
        }
        (cpu(std::process::id()) - before).as_secs_f64() * 1e6 / 2_000.0
    };
    let best = (0..10).map(|_| round()).min_by(f64::total_cmp).unwrap();
    json!((best * 10.0).round() / 10.0)
}

fn kilobyte(runtime: &Runtime) -> Value {
    let mut settings = settings();
    settings.calls_max = u32::MAX;
    let pool = runtime.block_on(pool(settings));
    let items: Vec<Value> = (0..16)
        .map(|n| json!({"id": n, "name": format!("item {n}"), "tags": ["a", "b", "c"]}))
        .collect();
    let globals = json!({ "input": items }).to_string();
    let job = job("return input", &globals);
    json!({ "bytes": globals.len(), "1": best(runtime, &pool, &job, 4_000, 1), "16": best(runtime, &pool, &job, 4_000, 16) })
}

fn host_calls(runtime: &Runtime) -> Value {
    let mut settings = settings();
    settings.calls_max = u32::MAX;
    let pool = runtime.block_on(pool(settings));
    let mut report = Map::new();
    for (name, body) in [
        ("queued_1", "return await probe.queued('echo', 1)"),
        ("direct_1", "return probe.direct('echo', 1)"),
        (
            "queued_10",
            "let s = 0; for (let i = 0; i < 10; i++) s += await probe.queued('echo', i); return s",
        ),
        (
            "direct_10",
            "let s = 0; for (let i = 0; i < 10; i++) s += probe.direct('echo', i); return s",
        ),
        (
            "queued_10_together",
            "const all = await Promise.all([...Array(10).keys()].map((i) => probe.queued('echo', i))); return all.length",
        ),
    ] {
        let job = job(body, "{}");
        let alone = best(runtime, &pool, &job, 2_000, 1);
        let many = best(runtime, &pool, &job, 2_000, 16);
        report.insert(name.to_owned(), json!({ "1": alone, "16": many }));
    }
    Value::Object(report)
}

fn kill(runtime: &Runtime) -> Value {
    let pool = runtime.block_on(pool(settings()));
    let mut endless = job("while (true) {}", "{}");
    endless.limits.wall_ms_max = 100;
    // As the caller sees it, and how much of that passed before the worker's own end.
    let (mut times, mut inside): (Vec<f64>, Vec<f64>) = (0..20)
        .map(|_| {
            let began = Instant::now();
            let run = runtime
                .block_on(pool.run("bench", endless.clone(), &Echo))
                .unwrap();
            assert_eq!(run.report.ended, Ended::Breached(Breach::Wall));
            let seen = began.elapsed().as_secs_f64() * 1e3;
            (seen, run.report.usage.wall_us as f64 / 1e3)
        })
        .unzip();
    times.sort_by(f64::total_cmp);
    inside.sort_by(f64::total_cmp);
    let after = best(
        runtime,
        &pool,
        &job("return a + b", r#"{"a":1,"b":2}"#),
        2_000,
        1,
    );
    json!({
        "median_ms": round(times[10]),
        "worst_ms": round(times[19]),
        "in_worker_median_ms": round(inside[10]),
        "in_worker_worst_ms": round(inside[19]),
        "next_call": after,
    })
}

fn parked(runtime: &Runtime) -> Value {
    const COUNT: usize = 1_000;
    let mut settings = settings();
    settings.workers = 1;
    settings.live_max = 1_024;
    let pool = runtime.block_on(pool(settings));
    let pid = pool.status().pids[0];
    let (worker_before, parent_before) = (
        private_kilobytes(pid),
        private_kilobytes(std::process::id()),
    );
    let mut waiting = job("return await probe.queued('wait', a)", r#"{"a":1}"#);
    waiting.limits.wall_ms_max = 60_000;
    let (worker, parent) = runtime.block_on(async {
        let tasks: Vec<_> = (0..COUNT)
            .map(|_| {
                let (pool, job) = (Arc::clone(&pool), waiting.clone());
                tokio::spawn(async move { pool.run("bench", job, &Never).await.map(|_| ()) })
            })
            .collect();
        while pool.status().pending_count < COUNT {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let held = (
            private_kilobytes(pid),
            private_kilobytes(std::process::id()),
        );
        for task in &tasks {
            task.abort();
        }
        for task in tasks {
            let _ = task.await;
        }
        held
    });
    let each = |after: u64, before: u64| round(after.saturating_sub(before) as f64 / COUNT as f64);
    json!({
        "count": COUNT,
        "worker_kb_each": each(worker, worker_before),
        "parent_kb_each": each(parent, parent_before),
    })
}

/// Private memory, clean and dirty, as the kernel counts it.
fn private_kilobytes(pid: u32) -> u64 {
    let Ok(rollup) = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else {
        return 0;
    };
    rollup
        .lines()
        .filter(|line| line.starts_with("Private_"))
        .filter_map(|line| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok())
        .sum()
}

/// A fresh process that starts a pool with one worker and makes one call.
fn start() -> Value {
    let mut times: Vec<f64> = (0..15)
        .map(|_| {
            let began = Instant::now();
            let status = Command::new("/proc/self/exe")
                .arg(START)
                .stdin(Stdio::null())
                .status();
            assert!(status.unwrap().success());
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    json!({ "median": round(times[7]), "best": round(times[0]), "worst": round(times[14]) })
}

fn first_result() -> ExitCode {
    single().block_on(async {
        let mut settings = settings();
        settings.workers = 1;
        let pool = Pool::start(settings).await.unwrap();
        let run = pool
            .run("bench", job("return a + b", r#"{"a":1,"b":2}"#), &Echo)
            .await
            .unwrap();
        assert_eq!(run.report.ended, Ended::Value("3".to_owned()));
    });
    ExitCode::SUCCESS
}
