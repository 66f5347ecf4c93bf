//! The pool over workers with real walls.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sandbox::job::{Breach, Ended, GuestLine, HostAnswer, HostRequest};
use sandbox::pool::{HostCalls, Pool, PoolError, RunError, Sharing, StartError};
use sandbox::walls::{self, Layer};

use crate::wall_help::{
    Big, Echo, Never, bare_settings, job, pool, real, settings, settle, stand_in, until, worker,
};

fn value(json: &str) -> Ended {
    Ended::Value(json.to_owned())
}

fn is_alive(pid: u32) -> bool {
    // A zombie still has its folder.
    Path::new(&format!("/proc/{pid}")).exists()
}

fn kill_9(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is there");
}

#[tokio::test]
async fn a_script_runs_behind_both_walls() {
    let pool = pool(settings(real(), Sharing::Shared)).await;
    let mut job = job("console.log('adding'); return a + b");
    job.globals = r#"{"a":1,"b":2}"#.to_owned();
    let run = pool.run("tester", job, &Echo).await.expect("it runs");
    assert_eq!(run.report.ended, value("3"));
    assert_eq!(
        run.console.first().map(|line| line.text.as_str()),
        Some("adding")
    );
    assert!(
        pool.walls().missing(&walls::expected()).is_empty(),
        "{:?}",
        pool.walls()
    );
}

#[tokio::test]
async fn host_calls_of_both_kinds_are_answered() {
    let pool = pool(settings(real(), Sharing::Shared)).await;
    let mut job = job(
        "const all = await Promise.all([1, 2, 3].map((n) => probe.queued('echo', n)));
         return [all, probe.direct('echo', 'now')]",
    );
    job.powers = vec!["probe".to_owned()];
    let run = pool.run("tester", job, &Echo).await.expect("it runs");
    assert_eq!(run.report.ended, value(r#"[[1,2,3],"now"]"#));
    assert_eq!(run.report.usage.host_calls, 4);
}

#[tokio::test]
async fn an_endless_loop_ends_and_the_worker_stays() {
    let pool = pool(settings(real(), Sharing::Shared)).await;
    let mut endless = job("while (true) {}");
    endless.limits.wall_ms_max = 100;
    let began = Instant::now();
    let run = pool.run("tester", endless, &Echo).await.expect("it ends");
    assert_eq!(run.report.ended, Ended::Breached(Breach::Wall));
    assert!(
        began.elapsed() < Duration::from_millis(500),
        "{:?}",
        began.elapsed()
    );
    let next = pool
        .run("tester", job("return 1"), &Echo)
        .await
        .expect("it runs");
    assert_eq!(next.report.ended, value("1"));
    assert_eq!(pool.status().lost_count, 0);
}

#[tokio::test]
async fn a_busy_sandbox_does_not_stop_the_others() {
    let pool = pool(settings(real(), Sharing::Shared)).await;
    let mut endless = job("while (true) {}");
    endless.limits.wall_ms_max = 2_000;
    let busy = (0..4).map(|_| pool.run("tester", endless.clone(), &Echo));
    let quick = async {
        // Sleeps: gives the others time to be under way.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let began = Instant::now();
        let run = pool
            .run("tester", job("return 1"), &Echo)
            .await
            .expect("it runs");
        assert_eq!(run.report.ended, value("1"));
        began.elapsed()
    };
    let (_, took) = tokio::join!(join_all(busy), quick);
    assert!(took < Duration::from_millis(1_000), "{took:?}");
}

#[tokio::test]
async fn a_missing_layer_keeps_the_pool_from_starting_unless_it_is_waived() {
    let mut strict = settings(stand_in(), Sharing::Shared);
    strict.require = walls::expected();
    match Pool::start(strict.clone()).await {
        Err(PoolError::Worker(error)) => {
            assert_eq!(error.code(), "sandbox.layer_missing");
            assert!(error.to_string().contains("`wasm`"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    strict.require = BTreeSet::from([Layer::Seccomp]);
    pool(strict).await;
    // A worker without walls cannot claim seccomp; the kernel is asked as well.
    let mut bare = bare_settings(worker(&["bare"]));
    bare.require = BTreeSet::from([Layer::Seccomp]);
    assert!(Pool::start(bare).await.is_err());
}

#[tokio::test]
async fn another_guest_is_refused() {
    let mut settings = settings(stand_in(), Sharing::Shared);
    settings.guest_key = Some("mine".to_owned());
    match Pool::start(settings).await {
        Err(PoolError::Worker(StartError::Guest(key))) => assert_eq!(key, "stand-in"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn dropping_the_run_stops_the_script() {
    for body in ["spin", "park", "host never"] {
        let pool = pool(settings(stand_in(), Sharing::Shared)).await;
        let mut endless = job(body);
        endless.limits.wall_ms_max = 60_000;
        let run = pool.run("tester", endless, &Never);
        assert!(
            tokio::time::timeout(Duration::from_millis(50), run)
                .await
                .is_err()
        );
        settle(&pool).await;
        assert_eq!(pool.status().lost_count, 0, "{body}");
    }
}

#[tokio::test]
async fn a_worker_that_ignores_a_cancellation_is_killed() {
    let mut settings = settings(stand_in(), Sharing::Shared);
    settings.cancel_grace_ms = 100;
    let pool = pool(settings).await;
    let pid = pool.status().pids[0];
    let mut stalled = job("stall");
    stalled.limits.wall_ms_max = 60_000;
    let run = pool.run("tester", stalled, &Never);
    assert!(
        tokio::time::timeout(Duration::from_millis(50), run)
            .await
            .is_err()
    );
    until(Duration::from_secs(5), || !is_alive(pid)).await;
    let next = pool
        .run("tester", job("value 1"), &Echo)
        .await
        .expect("the pool has healed");
    assert_eq!(next.report.ended, value("1"));
}

#[tokio::test]
async fn a_hung_worker_is_killed_at_the_deadline_and_its_other_calls_are_lost() {
    let mut settings = settings(stand_in(), Sharing::Shared);
    settings.deadline_grace_ms = 100;
    let pool = pool(settings).await;
    let mut stalled = job("stall");
    stalled.limits.wall_ms_max = 100;
    let mut parked = job("park");
    parked.limits.wall_ms_max = 60_000;
    let began = Instant::now();
    let (parked, stalled) =
        tokio::join!(pool.run("a", parked, &Echo), pool.run("b", stalled, &Echo));
    assert_eq!(stalled, Err(RunError::Hung));
    assert_eq!(parked, Err(RunError::Lost));
    assert!(RunError::Hung.retryable() && RunError::Lost.retryable());
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    let next = pool
        .run("tester", job("value 1"), &Echo)
        .await
        .expect("the pool has healed");
    assert_eq!(next.report.ended, value("1"));
    settle(&pool).await;
}

#[tokio::test]
async fn a_broken_sandbox_costs_the_worker() {
    let pool = pool(settings(stand_in(), Sharing::Shared)).await;
    let pid = pool.status().pids[0];
    let broken = pool
        .run("tester", job("broken out of nowhere"), &Echo)
        .await;
    assert_eq!(broken, Err(RunError::Broken("out of nowhere".to_owned())));
    until(Duration::from_secs(5), || !is_alive(pid)).await;
    pool.run("tester", job("value 1"), &Echo)
        .await
        .expect("the pool has healed");
}

/// Kills one of two workers again and again under load. Calls in it end with an
/// error that says they may be repeated; calls in the other one do not notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_under_load() {
    let mut settings = settings(real(), Sharing::Shared);
    settings.workers = 2;
    let pool = Arc::new(pool(settings).await);
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let pool = Arc::clone(&pool);
            tokio::spawn(async move {
                let (mut done, mut lost) = (0_u32, 0_u32);
                let end = Instant::now() + Duration::from_secs(2);
                while Instant::now() < end {
                    match pool.run("tester", job("return 6 * 7"), &Echo).await {
                        Ok(run) => {
                            assert_eq!(run.report.ended, value("42"));
                            done += 1;
                        }
                        Err(error) => {
                            assert_eq!(error, RunError::Lost);
                            lost += 1;
                        }
                    }
                }
                (done, lost)
            })
        })
        .collect();
    let mut killed = 0;
    while killed < 10 {
        // Sleeps: between two kills, so that the pool heals in between.
        tokio::time::sleep(Duration::from_millis(120)).await;
        if let Some(pid) = pool.status().pids.first() {
            kill_9(*pid);
            killed += 1;
        }
    }
    let (mut done, mut lost) = (0, 0);
    for task in tasks {
        let (more_done, more_lost) = task.await.expect("no panic");
        done += more_done;
        lost += more_lost;
    }
    assert!(done > 100, "{done} done, {lost} lost");
    // Each kill costs at most the calls that were in the worker.
    assert!(lost <= 10 * 8, "{done} done, {lost} lost");
    until(Duration::from_secs(5), || pool.status().ready_count == 2).await;
    settle(&pool).await;
    assert_eq!(pool.status().lost_count, 10);
}

#[tokio::test]
async fn calls_in_one_worker_outlive_the_death_of_another() {
    let mut settings = settings(stand_in(), Sharing::Shared);
    settings.workers = 2;
    let pool = pool(settings).await;
    until(Duration::from_secs(5), || pool.status().ready_count == 2).await;
    let parked = || async {
        let mut parked = job("park");
        parked.limits.wall_ms_max = 600;
        pool.run("tester", parked, &Echo).await
    };
    let kill = async {
        until(Duration::from_secs(5), || pool.status().pending_count == 2).await;
        kill_9(pool.status().pids[0]);
    };
    let (one, two, ()) = tokio::join!(parked(), parked(), kill);
    let ended: Vec<_> = [one, two].into_iter().collect();
    let lost = ended
        .iter()
        .filter(|one| **one == Err(RunError::Lost))
        .count();
    let done = ended
        .iter()
        .flatten()
        .filter(|run| run.report.ended == Ended::Breached(Breach::Wall));
    assert_eq!((lost, done.count()), (1, 1));
}

#[tokio::test]
async fn the_queue_is_bounded_and_served_in_order() {
    let mut settings = settings(stand_in(), Sharing::Shared);
    settings.live_max = 1;
    settings.queue_max = 2;
    settings.queue_ms_max = 10_000;
    let pool = pool(settings).await;
    let mut first = job("park");
    first.limits.wall_ms_max = 300;
    let order = AtomicU32::new(0);
    let queued = |number: u32| {
        let (pool, order) = (&pool, &order);
        async move {
            // Sleeps: so that they queue in this order.
            tokio::time::sleep(Duration::from_millis(u64::from(number) * 30)).await;
            let outcome = pool.run("tester", job("value 1"), &Echo).await;
            (outcome, order.fetch_add(1, Ordering::Relaxed))
        }
    };
    let (first, (second, at_second), (third, at_third), (fourth, at_fourth)) = tokio::join!(
        pool.run("tester", first, &Echo),
        queued(1),
        queued(2),
        queued(3)
    );
    assert_eq!(
        first.expect("it ends").report.ended,
        Ended::Breached(Breach::Wall)
    );
    assert!(second.is_ok() && third.is_ok());
    assert_eq!(fourth, Err(RunError::Busy));
    // The one turned away is first to return; the others keep their order.
    assert_eq!((at_fourth, at_second, at_third), (0, 1, 2));
    settle(&pool).await;
}

#[tokio::test]
async fn waiting_for_a_place_is_bounded() {
    let mut settings = settings(stand_in(), Sharing::Shared);
    settings.live_max = 1;
    settings.queue_ms_max = 50;
    let pool = pool(settings).await;
    let mut long = job("park");
    long.limits.wall_ms_max = 400;
    let (_, waited) = tokio::join!(
        pool.run("a", long, &Echo),
        pool.run("b", job("value 1"), &Echo)
    );
    assert_eq!(waited, Err(RunError::Waited));
    settle(&pool).await;
    pool.run("b", job("value 1"), &Echo)
        .await
        .expect("the place is free again");
}

#[tokio::test]
async fn per_call_uses_each_worker_once() {
    let pool = pool(settings(stand_in(), Sharing::PerCall)).await;
    let mut seen = BTreeSet::new();
    for _ in 0..5 {
        until(Duration::from_secs(5), || pool.status().ready_count > 0).await;
        let pid = *pool.status().pids.last().expect("a worker");
        assert!(seen.insert(pid), "{pid} was used twice");
        pool.run("tester", job("value 1"), &Echo)
            .await
            .expect("it runs");
        until(Duration::from_secs(5), || !is_alive(pid)).await;
    }
    assert_eq!(pool.status().lost_count, 0);
}

#[tokio::test]
async fn per_caller_keeps_callers_apart() {
    let mut settings = settings(stand_in(), Sharing::PerCaller);
    settings.workers = 2;
    let pool = pool(settings).await;
    until(Duration::from_secs(5), || pool.status().ready_count == 2).await;
    let before = pool.status().pids;
    // Two callers, two workers, each keeps its own.
    for _ in 0..3 {
        for caller in ["anna", "ben"] {
            pool.run(caller, job("value 1"), &Echo)
                .await
                .expect("it runs");
        }
    }
    assert_eq!(pool.status().pids, before);
    // A third takes the place of an idle one, whose worker is not used again.
    pool.run("carla", job("value 1"), &Echo)
        .await
        .expect("it runs");
    until(Duration::from_secs(5), || pool.status().pids.len() == 2).await;
    let after = pool.status().pids;
    assert_eq!(
        after.iter().filter(|pid| before.contains(pid)).count(),
        1,
        "{before:?} {after:?}"
    );
}

#[tokio::test]
async fn a_worker_is_replaced_after_so_many_calls() {
    let mut settings = settings(stand_in(), Sharing::Shared);
    settings.calls_max = 3;
    let pool = pool(settings).await;
    let first = pool.status().pids;
    for _ in 0..3 {
        pool.run("tester", job("value 1"), &Echo)
            .await
            .expect("it runs");
    }
    pool.run("tester", job("value 1"), &Echo)
        .await
        .expect("it runs");
    assert_ne!(pool.status().pids, first);
    until(Duration::from_secs(5), || !is_alive(first[0])).await;
    assert_eq!(pool.status().lost_count, 0);
}

#[tokio::test]
async fn a_retiring_worker_finishes_its_calls_beside_its_successor() {
    let mut settings = settings(stand_in(), Sharing::Shared);
    settings.calls_max = 1;
    let pool = pool(settings).await;
    let mut long = job("park");
    long.limits.wall_ms_max = 800;
    let began = Instant::now();
    let quick = async {
        // Sleeps: so that the long one is under way.
        tokio::time::sleep(Duration::from_millis(20)).await;
        pool.run("tester", job("value 1"), &Echo)
            .await
            .expect("it runs");
        began.elapsed()
    };
    let (long, quick) = tokio::join!(pool.run("tester", long, &Echo), quick);
    assert_eq!(
        long.expect("it ends").report.ended,
        Ended::Breached(Breach::Wall)
    );
    assert!(quick < Duration::from_millis(700), "{quick:?}");
}

#[tokio::test]
async fn a_worker_whose_memory_stays_high_is_replaced() {
    let mut settings = settings(stand_in(), Sharing::Shared);
    settings.memory_bytes_max = 64 << 20;
    let pool = pool(settings).await;
    let first = pool.status().pids;
    pool.run("tester", job("leak 100000000\nvalue 1"), &Echo)
        .await
        .expect("it runs");
    for _ in 0..200 {
        pool.run("tester", job("value 1"), &Echo)
            .await
            .expect("it runs");
    }
    until(Duration::from_secs(5), || !is_alive(first[0])).await;
    assert_eq!(pool.status().lost_count, 0);
}

#[tokio::test]
async fn dropping_the_pool_leaves_no_process() {
    let mut settings = settings(stand_in(), Sharing::Shared);
    settings.workers = 3;
    let pool = pool(settings).await;
    until(Duration::from_secs(5), || pool.status().ready_count == 3).await;
    let pids = pool.status().pids;
    drop(pool);
    for pid in pids {
        assert!(!is_alive(pid), "{pid} is left, or its zombie");
    }
}

#[test]
fn dropping_the_runtime_first_leaves_no_process() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let pool = runtime.block_on(pool(settings(stand_in(), Sharing::Shared)));
    let pid = pool.status().pids[0];
    drop(runtime);
    drop(pool);
    assert!(!is_alive(pid), "{pid} is left, or its zombie");
}

/// Killed, so that nothing in the parent can clean up.
#[tokio::test]
async fn a_worker_dies_with_its_parent() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let mut parent = Command::new(env!("CARGO_BIN_EXE_sandbox-test-worker"))
        .arg("parent")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let output = parent.stdout.take().expect("its output");
    BufReader::new(output).read_line(&mut line).expect("a line");
    let worker: u32 = line.trim().parse().expect("the worker's process id");
    assert!(is_alive(worker));
    parent.kill().expect("it is there");
    parent.wait().expect("it ends");
    // Its parent may be gone; then only the system's first process can reap it.
    until(Duration::from_secs(5), || {
        !is_alive(worker) || is_zombie(worker)
    })
    .await;
}

fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('Z'))
}

#[tokio::test]
async fn an_answer_above_its_bound_is_a_breach() {
    let pool = pool(settings(stand_in(), Sharing::Shared)).await;
    let run = pool
        .run("tester", job("host big\nanswer"), &Big(1 << 20))
        .await
        .expect("it ends");
    assert_eq!(run.report.ended, Ended::Breached(Breach::PayloadBytes));
    settle(&pool).await;
    assert_eq!(pool.status().lost_count, 0);
}

#[tokio::test]
async fn a_job_that_fits_no_frame_is_refused() {
    let pool = pool(settings(stand_in(), Sharing::Shared)).await;
    let huge = job(&"x".repeat(40 << 20));
    assert_eq!(
        pool.run("tester", huge, &Echo).await,
        Err(RunError::TooLarge)
    );
    settle(&pool).await;
    pool.run("tester", job("value 1"), &Echo)
        .await
        .expect("nothing is lost");
}

/// Many large answers at once: more than the pipe holds.
#[tokio::test]
async fn large_answers_pass_the_pipe() {
    let pool = pool(settings(real(), Sharing::Shared)).await;
    let mut many = job(
        "const all = await Promise.all([...Array(32).keys()].map(() => probe.queued('big', 0)));
         return all.reduce((sum, one) => sum + one.bytes.length, 0)",
    );
    many.powers = vec!["probe".to_owned()];
    let runs = (0..8).map(|_| pool.run("tester", many.clone(), &Big(200_000)));
    for run in join_all(runs).await {
        assert_eq!(run.expect("it runs").report.ended, value("6400000"));
    }
    settle(&pool).await;
}

/// Host calls of one run are under way together, never more than the job allows.
#[tokio::test]
async fn host_calls_run_side_by_side() {
    struct Counting {
        now: AtomicU32,
        most: AtomicU32,
    }
    impl HostCalls for Counting {
        fn call<'a>(
            &'a self,
            request: HostRequest,
        ) -> std::pin::Pin<Box<dyn Future<Output = HostAnswer> + Send + 'a>> {
            Box::pin(async move {
                let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
                self.most.fetch_max(now, Ordering::Relaxed);
                // Sleeps: gives the others time to be under way.
                tokio::time::sleep(Duration::from_millis(100)).await;
                self.now.fetch_sub(1, Ordering::Relaxed);
                HostAnswer::Value(request.payload)
            })
        }
    }
    let counting = Counting {
        now: AtomicU32::new(0),
        most: AtomicU32::new(0),
    };
    let pool = pool(settings(stand_in(), Sharing::Shared)).await;
    let began = Instant::now();
    let run = pool
        .run("tester", job("hosts 20 wait 1\nvalue 1"), &counting)
        .await;
    assert_eq!(run.expect("it runs").report.ended, value("1"));
    assert_eq!(counting.most.load(Ordering::Relaxed), 20);
    assert!(
        began.elapsed() < Duration::from_millis(1_500),
        "{:?}",
        began.elapsed()
    );
}

/// What a run had said does not go with it; one that ends tells it itself.
#[tokio::test]
async fn a_dropped_run_leaves_what_it_said() {
    #[derive(Default)]
    struct Hearing {
        asked: tokio::sync::Notify,
        left: std::sync::Mutex<Vec<Vec<String>>>,
    }
    impl HostCalls for Hearing {
        fn call<'a>(
            &'a self,
            request: HostRequest,
        ) -> std::pin::Pin<Box<dyn Future<Output = HostAnswer> + Send + 'a>> {
            self.asked.notify_one();
            match request.operation.as_str() {
                "wait" => Box::pin(std::future::pending()),
                _ => Box::pin(std::future::ready(HostAnswer::Value(request.payload))),
            }
        }

        fn left(&self, console: Vec<GuestLine>) {
            let texts = console.into_iter().map(|line| line.text).collect();
            self.left.lock().expect("whole").push(texts);
        }
    }
    let pool = pool(settings(real(), Sharing::Shared)).await;
    let probing = |code: &str| {
        let mut job = job(code);
        job.powers = vec!["probe".to_owned()];
        job
    };
    let host = Hearing::default();
    let waits = probing("console.log('one'); console.warn('two'); await probe.queued('wait', 0)");
    tokio::select! {
        run = pool.run("tester", waits, &host) => panic!("it ended: {run:?}"),
        () = host.asked.notified() => {}
    }
    assert_eq!(*host.left.lock().expect("whole"), [["one", "two"]]);
    let ends = probing("console.log('three'); return await probe.queued('echo', 4)");
    let run = pool.run("tester", ends, &host).await.expect("it runs");
    assert_eq!(run.console.len(), 1);
    assert_eq!(host.left.lock().expect("whole").len(), 1);
    settle(&pool).await;
}

/// Runs dropped at any moment of their lives, beside runs that are not: nothing is
/// lost, nothing is left behind and nothing looks like a violation.
#[tokio::test]
async fn cancellations_at_any_moment() {
    let mut settings = settings(real(), Sharing::Shared);
    settings.workers = 2;
    let pool = pool(settings).await;
    let mut talking = job("console.log('begin');
         let sum = 0;
         for (let i = 0; i < 20; i++) sum += await probe.queued('echo', i);
         return sum + probe.direct('echo', 1)");
    talking.powers = vec!["probe".to_owned()];
    for round in 0..12_u64 {
        let runs = (0..24_u64).map(|number| {
            let run = pool.run("tester", talking.clone(), &Echo);
            // From before the start to after the end of a run, in small steps.
            let limit = Duration::from_micros((round * 24 + number) * 97 % 12_000);
            tokio::time::timeout(limit, run)
        });
        let kept = pool.run("tester", talking.clone(), &Echo);
        let (dropped, kept) = tokio::join!(join_all(runs), kept);
        assert_eq!(kept.expect("it runs").report.ended, value("191"));
        for run in dropped.into_iter().flatten() {
            assert_eq!(run.expect("it runs").report.ended, value("191"));
        }
    }
    settle(&pool).await;
    let status = pool.status();
    assert_eq!(status.lost_count, 0, "{:?}", status.last_loss);
}

#[tokio::test]
async fn per_call_under_load_keeps_to_its_processes() {
    let mut settings = settings(stand_in(), Sharing::PerCall);
    settings.workers = 2;
    settings.queue_ms_max = 30_000;
    let pool = pool(settings).await;
    let runs = join_all((0..40).map(|_| pool.run("tester", job("value 1"), &Echo)));
    let watch = async {
        let mut most = 0;
        loop {
            most = most.max(pool.status().pids.len());
            assert!(most <= 4, "{most} processes");
            // Sleeps: between two looks.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::select! {
        done = runs => assert!(done.iter().all(Result::is_ok), "{done:?}"),
        () = watch => {}
    }
    settle(&pool).await;
    assert_eq!(pool.status().lost_count, 0);
}
