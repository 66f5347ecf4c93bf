//! The walls tried from inside, by native code in a sealed worker.

use sandbox::job::Ended;
use sandbox::pool::{Pool, RunError, Sharing};
use sandbox::walls::{self, Layer, attempt};

use crate::wall_help::{Echo, bare_settings, job, pool, real, settings, stand_in, worker};

async fn attempted(pool: &Pool, name: &str) -> Result<String, RunError> {
    let run = pool
        .run("tester", job(&format!("attempt {name}")), &Echo)
        .await?;
    match run.report.ended {
        Ended::Value(outcome) => Ok(outcome),
        other => panic!("{name}: {other:?}"),
    }
}

/// Each attempt has a process of its own, which must not survive it: none of
/// these calls is one that a worker of ours makes.
#[tokio::test]
async fn every_attempt_ends_the_worker() {
    let mut settings = settings(stand_in(), Sharing::PerCall);
    settings.workers = 2;
    let pool = pool(settings).await;
    let mut survived = Vec::new();
    for name in attempt::names() {
        let before = pool.status().lost_count;
        match attempted(&pool, name).await {
            Err(RunError::Lost) => {
                crate::wall_help::until(std::time::Duration::from_secs(5), || {
                    pool.status().lost_count > before
                })
                .await;
                // SIGSYS: killed for the call, not for anything else.
                let loss = pool.status().last_loss.unwrap_or_default();
                if !loss.ends_with("signal 31") {
                    survived.push(format!("{name}: {loss}"));
                }
            }
            other => survived.push(format!("{name}: {other:?}")),
        }
    }
    assert!(survived.is_empty(), "{survived:#?}");
    assert!(attempt::names().len() > 100, "the list has shrunk");
}

/// The same attempts without walls: most go through, so the test above tests
/// something.
#[tokio::test]
async fn without_walls_attempts_go_through() {
    let pool = pool(bare_settings(worker(&["bare"]))).await;
    for name in [
        "openat",
        "newfstatat",
        "getcwd",
        "chdir",
        "socket_inet",
        "socket_unix",
        "socketpair",
        "kill_parent",
        "getpid",
        "mmap_exec",
        "mmap_shared",
        "memfd_create",
        "prctl_dumpable",
        "prctl_parent_death",
        "prlimit64",
        "uname",
        "dup",
        "pipe2",
        "eventfd2",
        "epoll_create1",
        "timerfd_create",
        "inotify_init1",
    ] {
        assert_eq!(
            attempted(&pool, name).await,
            Ok("\"went through\"".to_owned()),
            "{name}"
        );
    }
}

#[tokio::test]
async fn the_worker_says_what_holds_it_and_the_kernel_agrees() {
    let pool = pool(settings(real(), Sharing::Shared)).await;
    let seen = pool.walls();
    for layer in walls::expected() {
        assert!(seen.has(layer), "{layer}: {seen:?}");
    }
    let pid = pool.status().pids.first().copied().expect("a worker");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    for line in [
        "Seccomp:\t2",
        "NoNewPrivs:\t1",
        "CapEff:\t0000000000000000",
        "CapPrm:\t0000000000000000",
    ] {
        assert!(
            status.lines().any(|found| found == line),
            "{line}\n{status}"
        );
    }
    // Every thread, not only the first.
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).expect("its threads") {
        let status = std::fs::read_to_string(task.expect("a thread").path().join("status"));
        assert!(status.expect("its status").contains("Seccomp:\t2"));
    }
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("its limits");
    assert!(
        limits
            .lines()
            .any(|line| line.starts_with("Max open files") && line.contains(" 1 "))
    );
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    assert!(environment.is_empty(), "{environment:?}");
}

/// Invariant 12: beside its pipe a worker has the memory the guest's image is in, sealed,
/// and the map of its own pages. Looked at from outside, while it is in use.
#[tokio::test]
async fn a_worker_holds_its_pipe_its_image_and_its_page_map() {
    let pool = pool(settings(real(), Sharing::Shared)).await;
    let run = pool.run("tester", job("return 1"), &Echo).await;
    assert!(run.is_ok(), "{run:?}");
    assert!(pool.walls().has(Layer::Descriptors));
    let pid = pool.status().pids.first().copied().expect("a worker");
    let folder = format!("/proc/{pid}/fd");
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        // Only root may look: it is not dumpable. It has looked itself, above.
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
            return;
        }
    };
    let mut held: Vec<_> = entries
        .map(|entry| std::fs::read_link(entry.expect("an entry").path()).expect("its target"))
        .map(|target| target.to_string_lossy().replace(&pid.to_string(), "PID"))
        .map(|target| match target.split_once(':') {
            Some(("socket", _)) => "socket".to_owned(),
            Some(_) | None => target,
        })
        .collect();
    held.sort();
    let known = [
        "/memfd:wasm-memory-image (deleted)",
        "/proc/PID/pagemap",
        "socket",
    ];
    assert!(
        held.iter().all(|target| known.contains(&target.as_str())),
        "{held:?}"
    );
    assert_eq!(held.iter().filter(|target| *target == "socket").count(), 1);
}

#[test]
fn layers_are_reported_without_a_worker() {
    let offered = walls::walls();
    assert_eq!(offered.layers.len(), Layer::ALL.len());
    for layer in walls::expected() {
        assert!(
            offered.has(layer) || layer == Layer::LandlockFiles,
            "{layer}: {offered:?}"
        );
    }
}

#[test]
fn layers_have_stable_names() {
    for layer in Layer::ALL {
        assert_eq!(Layer::from_name(layer.name()), Some(layer));
    }
    assert_eq!(Layer::from_name("magic"), None);
}
