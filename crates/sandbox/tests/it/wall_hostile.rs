//! A worker that lies, at every point of a call. The parent must neither panic,
//! hang past its deadline, leak a pending call nor grant anything, and the pool
//! must heal.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sandbox::job::{Ended, Job};
use sandbox::pool::{FinishedRun, Pool, PoolError, RunError, StartError, Violation};

use crate::wall_help::{Echo, bare_settings, job, settle, until, worker};

const WALL_MS: u32 = 300;
const GRACE_MS: u32 = 200;

/// A path that does not exist yet.
fn fresh_path() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("sandbox-hostile-{}-{number}", std::process::id()))
}

fn short_job() -> Job {
    let mut job = job("anything");
    job.limits.wall_ms_max = WALL_MS;
    job.limits.result_bytes_max = 64 << 10;
    job
}

/// Runs one call against a worker with this plan, then one against its
/// successor, which behaves.
async fn outcome(plan: &str) -> Result<FinishedRun, RunError> {
    let path = fresh_path();
    let plan = format!("once {};{plan}", path.display());
    let mut settings = bare_settings(worker(&["hostile", &plan]));
    settings.deadline_grace_ms = GRACE_MS;
    settings.cancel_grace_ms = GRACE_MS;
    settings.start_ms_max = 500;
    let pool = Pool::start(settings).await.expect("the pool starts");
    let began = Instant::now();
    let first = pool.run("tester", short_job(), &Echo).await;
    let took = began.elapsed();
    let most = Duration::from_millis(u64::from(WALL_MS + GRACE_MS)) + Duration::from_secs(2);
    assert!(took < most, "`{plan}` took {took:?}");
    if first.is_err() || plan.contains("ended;") {
        // Whatever it did after that, the pool has thrown it out by now or will.
        until(Duration::from_secs(3), || pool.status().lost_count > 0).await;
        until(Duration::from_secs(3), || pool.status().ready_count > 0).await;
        let second = pool
            .run("tester", short_job(), &Echo)
            .await
            .expect("the pool has healed");
        assert_eq!(
            second.report.ended,
            Ended::Value("\"healed\"".to_owned()),
            "`{plan}`"
        );
    }
    settle(&pool).await;
    let _ = std::fs::remove_file(path);
    first
}

#[track_caller]
fn check(plan: &'static str, expected: RunError) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let outcome = runtime.block_on(outcome(plan));
    match (&outcome, &expected) {
        // The text of a broken sandbox is cut and is not compared.
        (Err(RunError::Broken(_)), RunError::Broken(_)) => {}
        (Err(error), expected) if error == expected => {}
        other => panic!("`{plan}`: {other:?}"),
    }
}

#[track_caller]
fn in_doubt(plan: &'static str, violation: Violation) {
    check(plan, RunError::InDoubt(violation));
}

#[test]
fn results_that_are_not_allowed() {
    in_doubt("hello;start;not-json;hang", Violation::ResultNotJson);
    in_doubt("hello;start;deep;hang", Violation::ResultSize);
    in_doubt(
        "hello;start;cancelled-unasked;hang",
        Violation::NotCancelled,
    );
    check("hello;start;broken;hang", RunError::Broken(String::new()));
    // Longer than any frame about this job may be: its header is enough.
    check("hello;start;long;hang", RunError::Lost);
}

#[test]
fn host_calls_that_are_not_allowed() {
    in_doubt("hello;start;host;replay;hang", Violation::HostCallOrder);
    in_doubt("hello;start;host 5;host 4;hang", Violation::HostCallOrder);
    in_doubt("hello;start;hosts 200;hang", Violation::HostCallCount);
    in_doubt("hello;start;long-operation;hang", Violation::HostCallLength);
    check("hello;start;long-host;hang", RunError::Lost);
    check(
        "hello;start;host;answered;replay;hang",
        RunError::InDoubt(Violation::HostCallOrder),
    );
}

#[test]
fn console_that_is_not_allowed() {
    in_doubt("hello;start;consoles 200;hang", Violation::Console);
    check(
        "hello;start;long-console;hang",
        RunError::InDoubt(Violation::Console),
    );
    in_doubt("hello;start;flood-console", Violation::Console);
}

#[test]
fn messages_about_other_calls_kill_the_worker() {
    check("hello;start;other-call;hang", RunError::Lost);
}

/// Words before the first job, in one piece with the hello or after it.
#[tokio::test]
async fn messages_before_the_first_job_kill_the_worker() {
    for plan in [
        "hello;ended;start;hang",
        "hello;console;hang",
        "hello;hello;hang",
    ] {
        match Pool::start(bare_settings(worker(&["hostile", plan]))).await {
            Err(PoolError::Worker(StartError::Hello(_))) => {}
            Err(error) => panic!("`{plan}`: {error}"),
            Ok(pool) => {
                let mut never = short_job();
                never.limits.wall_ms_max = 5_000;
                let error = pool.run("tester", never, &Echo).await.expect_err("it lied");
                assert!(
                    matches!(error, RunError::Lost | RunError::Waited),
                    "`{plan}`: {error}"
                );
            }
        }
    }
}

#[test]
fn silence_and_sudden_ends() {
    check("hello;hang", RunError::Hung);
    check("hello;start;hang", RunError::Hung);
    check("hello;start;host;hang", RunError::Hung);
    check("hello;start;host;answered;hang", RunError::Hung);
    check("hello;start;half-hang", RunError::Hung);
    check("hello;start;exit", RunError::Lost);
    check("hello;start;die", RunError::Lost);
    check("hello;start;host;exit", RunError::Lost);
    check("hello;start;host;answered;die", RunError::Lost);
    check("hello;start;half", RunError::Lost);
}

#[test]
fn bytes_that_are_no_frames() {
    check("hello;start;oversize;hang", RunError::Lost);
    check("hello;start;empty;hang", RunError::Lost);
    check("hello;start;wrong-magic;hang", RunError::Lost);
    check("hello;start;hello;hang", RunError::Lost);
}

#[tokio::test]
async fn after_the_end_nothing_changes_the_result() {
    for plan in [
        "hello;start;ended;ended;hang",
        "hello;start;ended;replay;hang",
        "hello;start;ended;host;hang",
        "hello;start;ended;console;hang",
        "hello;start;ended;noise 3;exit",
        "hello;start;ended;flood-ended",
        "hello;start;ended;oversize;hang",
        "hello;start;ended;exit",
        "hello;start;ended;die",
    ] {
        match outcome(plan).await {
            Ok(run) => {
                assert_eq!(run.report.ended, Ended::Value("1".to_owned()));
                assert_eq!(run.report.usage.host_calls, 0, "the parent counts itself");
                assert!(run.report.usage.wall_us < 10_000_000, "and measures itself");
            }
            // The second word may arrive with the first.
            Err(error) => panic!("`{plan}`: {error}"),
        }
    }
}

#[tokio::test]
async fn a_worker_that_is_wrong_from_the_start_is_not_used() {
    for (plan, expected) in [
        ("exit", StartError::Ended),
        ("die", StartError::Ended),
        ("half", StartError::Ended),
        ("hang", StartError::Late),
        ("half-hang", StartError::Late),
    ] {
        assert_eq!(start_error(plan).await, expected, "`{plan}`");
    }
    for plan in [
        "oversize",
        "noise 5",
        "flood-noise 9",
        "wrong-magic",
        "wrong-version",
        "empty;hang",
        "console",
        "ended;hang",
    ] {
        let error = start_error(plan).await;
        assert!(matches!(error, StartError::Hello(_)), "`{plan}`: {error:?}");
    }
}

async fn start_error(plan: &str) -> StartError {
    let mut settings = bare_settings(worker(&["hostile", plan]));
    settings.start_ms_max = 300;
    match Pool::start(settings).await {
        Err(PoolError::Worker(error)) => error,
        other => panic!("`{plan}`: {other:?}"),
    }
}

/// Noise at every point of a call, with many seeds. Whatever comes out of it, it
/// is not a grant: no host call beyond those the job allows reaches the host, and
/// a value is JSON.
#[test]
fn noise_at_every_point() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let seeds: u64 = if std::env::var_os("SLOW_TESTS").is_some() {
        400
    } else {
        40
    };
    runtime.block_on(async {
        for seed in 0..seeds {
            for plan in [
                format!("hello;start;noise {seed};exit"),
                format!("hello;start;console;noise {seed};hang"),
                format!("hello;start;host;noise {seed};exit"),
                format!("hello;start;host;answered;noise {seed};exit"),
                format!("hello;start;host;answered;flood-noise {seed}"),
            ] {
                match outcome(&plan).await {
                    Ok(run) => match run.report.ended {
                        Ended::Value(json) => {
                            serde_json::from_str::<serde_json::Value>(&json).expect("JSON");
                        }
                        Ended::Undefined | Ended::Threw(_) | Ended::Breached(_) => {}
                        Ended::Cancelled | Ended::Broken(_) => panic!("`{plan}`"),
                    },
                    Err(error) => assert!(!error.code().is_empty()),
                }
            }
        }
    });
}

/// A worker that never reads: jobs and answers back up, and the calls end by
/// their deadlines without the parent's memory growing past its bound.
#[tokio::test]
async fn a_deaf_worker_is_killed_at_the_deadline() {
    let mut settings = bare_settings(worker(&["hostile", "hello;deaf"]));
    settings.live_max = 64;
    settings.deadline_grace_ms = GRACE_MS;
    let pool = Pool::start(settings).await.expect("the pool starts");
    let mut big = short_job();
    big.body = "x".repeat(400_000);
    let began = Instant::now();
    let runs = (0..32).map(|_| pool.run("tester", big.clone(), &Echo));
    for outcome in futures_util::future::join_all(runs).await {
        let error = outcome.expect_err("no worker answers");
        assert!(error.retryable(), "{error}");
    }
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    settle(&pool).await;
}
