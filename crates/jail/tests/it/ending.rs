//! Nothing a child starts outlives it, whatever it does and however its parent ends.

use std::io::{BufRead as _, BufReader};
use std::time::{Duration, Instant};

use jail::{JailExit, JailGrace, JailedChild};
use rustix::process::{Pid, Signal};

use crate::help::{PROGRAM, Scratch, User, marked, marker, start, this_program, wait_for};

/// As `npx` does: a shell that starts a program that starts others, some in the background.
const TREE: &str = r#"sleep "$0" & sh -c 'sleep "$0" & sh -c "sleep $0; true" & wait' "$0" & wait"#;

/// Leaves its parent, its group and its session behind.
const DAEMON: &str = include_str!("attack/daemon.py");

/// A process that starts its successor and ends, again and again.
const RELAY: &str = include_str!("attack/relay.py");

const SHORT: JailGrace = JailGrace {
    close: Duration::from_millis(100),
    term: Duration::from_millis(100),
};

async fn spawn(scratch: &Scratch, command: &[&str]) -> JailedChild {
    let settings = scratch.settings(command);
    jail::spawn(settings, &this_program()).await.unwrap()
}

#[tokio::test]
async fn a_tree_of_children_is_gone_after_terminate() {
    let (scratch, marker) = (Scratch::new(User::Same), marker());
    let child = spawn(&scratch, &["/bin/sh", "-c", TREE, &marker]).await;
    // Three times `sleep`, and the shells that carry the word themselves.
    wait_for(&marker, |count| count >= 5);
    child.terminate(SHORT).await;
    assert_eq!(marked(&marker), 0);
}

#[tokio::test]
async fn a_daemon_is_gone_after_terminate() {
    let (scratch, marker) = (Scratch::new(User::Same), marker());
    let command = ["/usr/bin/python3", "-c", DAEMON, &marker, "stay"];
    let child = spawn(&scratch, &command).await;
    wait_for(&marker, |count| count >= 3);
    child.terminate(SHORT).await;
    assert_eq!(marked(&marker), 0);
}

#[tokio::test]
async fn a_daemon_is_gone_when_the_child_ends_by_itself() {
    let (scratch, marker) = (Scratch::new(User::Same), marker());
    let command = ["/usr/bin/python3", "-c", DAEMON, &marker, "end"];
    let mut child = spawn(&scratch, &command).await;
    assert_eq!(child.wait().await, JailExit::Code(7));
    assert_eq!(marked(&marker), 0);
}

#[tokio::test]
async fn a_daemon_outlives_a_parent_without_a_jail() {
    // The control of the two above.
    let (scratch, marker) = (Scratch::new(User::Same), marker());
    let status = scratch
        .user
        .command("/usr/bin/python3")
        .args(["-c", DAEMON, &marker, "end"])
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(7));
    wait_for(&marker, |count| count >= 2);
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(&marker) {
            let pid = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            let pid = pid.and_then(Pid::from_raw).unwrap();
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
    wait_for(&marker, |count| count == 0);
}

#[tokio::test]
async fn a_relay_of_processes_is_caught() {
    let (scratch, marker) = (Scratch::new(User::Same), marker());
    let mut settings = scratch.settings(&["/usr/bin/python3", "-c", RELAY, &marker]);
    settings.write = vec![scratch.path("project")];
    settings.folder = Some(scratch.path("project"));
    let child = jail::spawn(settings, &this_program()).await.unwrap();
    let stdout = child.stdout.as_ref().unwrap();
    stdout.readable().await.unwrap();
    let begun = Instant::now();
    child.kill().await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(marked(&marker), 0);
}

#[tokio::test]
async fn ignoring_sigterm_does_not_help() {
    let (scratch, marker) = (Scratch::new(User::Same), marker());
    let script = r#"trap "" TERM HUP INT; sleep "$0" & while true; do wait; sleep "$0"; done"#;
    let child = spawn(&scratch, &["/bin/sh", "-c", script, &marker]).await;
    wait_for(&marker, |count| count >= 2);
    assert_eq!(child.terminate(SHORT).await, JailExit::Signal(9));
    assert_eq!(marked(&marker), 0);
}

#[tokio::test]
async fn a_child_that_reads_ends_when_its_input_is_closed() {
    let scratch = Scratch::new(User::Same);
    let child = spawn(&scratch, &["/bin/cat"]).await;
    let grace = JailGrace {
        close: Duration::from_secs(10),
        term: Duration::from_secs(10),
    };
    assert_eq!(child.terminate(grace).await, JailExit::Code(0));
}

#[tokio::test]
async fn a_child_that_does_not_read_is_sent_sigterm() {
    let (scratch, marker) = (Scratch::new(User::Same), marker());
    let child = spawn(&scratch, &["/bin/sleep", &marker]).await;
    let grace = JailGrace {
        close: Duration::from_millis(50),
        term: Duration::from_secs(10),
    };
    assert_eq!(child.terminate(grace).await, JailExit::Signal(15));
}

#[tokio::test]
async fn a_dropped_child_is_gone() {
    let (scratch, marker) = (Scratch::new(User::Same), marker());
    let child = spawn(&scratch, &["/bin/sh", "-c", TREE, &marker]).await;
    wait_for(&marker, |count| count >= 5);
    drop(child);
    wait_for(&marker, |count| count == 0);
}

#[test]
fn nothing_outlives_a_parent_that_is_killed() {
    for user in User::all() {
        let (scratch, marker) = (Scratch::new(user), marker());
        for command in [
            vec!["/bin/sh", "-c", TREE, &marker],
            vec!["/usr/bin/python3", "-c", DAEMON, &marker, "stay"],
        ] {
            let request = scratch.request(&command);
            let mut parent = start(&request, user.command(PROGRAM).arg("hold"));
            let mut said = String::new();
            let mut stdout = BufReader::new(parent.stdout.take().unwrap());
            stdout.read_line(&mut said).unwrap();
            assert!(said.contains("pid"), "{said}");
            wait_for(&marker, |count| count >= 3);
            parent.kill().unwrap();
            parent.wait().unwrap();
            wait_for(&marker, |count| count == 0);
        }
    }
}

#[tokio::test]
async fn a_child_dies_with_its_supervisor() {
    let (scratch, marker) = (Scratch::new(User::Same), marker());
    let script = r#"sleep "$0" & sleep "$0""#;
    let mut child = spawn(&scratch, &["/bin/sh", "-c", script, &marker]).await;
    wait_for(&marker, |count| count >= 3);
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.pid().unwrap())).unwrap();
    let supervisor = status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))
        .unwrap();
    let supervisor = Pid::from_raw(supervisor.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(supervisor, Signal::KILL).unwrap();
    match child.wait().await {
        JailExit::Unknown(reason) => assert!(reason.contains("signal 9"), "{reason}"),
        other => panic!("{other:?}"),
    }
    wait_for(&marker, |count| count == 0);
}
