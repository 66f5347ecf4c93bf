//! A parent believes no supervisor: whatever one says, the parent neither panics, hangs,
//! grants nor kills what is not the child's.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use jail::{JailExit, JailFault, JailNetwork, JailRung, JailSettings, JailedChild, WorkerProgram};
use rustix::process::{Pid, Signal};

use crate::help::{
    Rung, Scratch, User, everywhere, is_in_container, marked, marker, start, this_program, wait_for,
};

const LIAR: &str = include_str!("attack/liar.py");

/// How long a parent may take to see through a lie.
const SOON: Duration = Duration::from_secs(8);

fn liar(scratch: &Scratch, how: &str) -> WorkerProgram {
    let path = scratch.path("liar.py");
    fs::write(&path, LIAR).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    WorkerProgram::Other(path, vec![how.to_owned()])
}

fn settings(scratch: &Scratch) -> JailSettings {
    let mut settings = scratch.settings(&["/bin/true"]);
    settings.network = JailNetwork::Proxy;
    settings
}

async fn spawn(scratch: &Scratch, how: &str) -> Result<JailedChild, JailFault> {
    let program = liar(scratch, how);
    let spawning = jail::spawn(settings(scratch), &program);
    tokio::time::timeout(SOON, spawning).await.unwrap()
}

#[tokio::test]
async fn the_truth_is_believed() {
    // The control of the others: what they say is understood.
    let scratch = Scratch::new(User::Same);
    let mut child = spawn(&scratch, "honest").await.unwrap();
    assert_eq!(child.rung, JailRung::Namespaces);
    assert_eq!(child.wait().await, JailExit::Code(5));
    assert_eq!(child.usage().unwrap().memory_peak_bytes, 2);
}

#[tokio::test]
async fn lies_before_the_start_are_seen_through() {
    let nonsense = "the program's supervisor said nonsense";
    for (how, expected) in [
        ("garbage", nonsense),
        ("unknown", nonsense),
        ("flood", nonsense),
        ("flood_of_lines", nonsense),
        ("started_first", nonsense),
        ("walls_twice", nonsense),
        ("ended_first", nonsense),
        (
            "no_walls",
            "the program's supervisor did not report `identity`",
        ),
        (
            "left_out",
            "the program's supervisor did not report `files`",
        ),
        ("missing", "missing around the program: files (gone)"),
    ] {
        let scratch = Scratch::new(User::Same);
        let fault = spawn(&scratch, how).await.unwrap_err().to_string();
        assert!(fault.contains(expected), "{how}: {fault}");
    }
    // Of two rungs the lower, where the higher is required.
    let scratch = Scratch::new(User::Same);
    let mut settings = settings(&scratch);
    settings.require = JailRung::Namespaces;
    let spawned = jail::spawn(settings, &liar(&scratch, "lower_rung")).await;
    let fault = spawned.unwrap_err().to_string();
    assert!(fault.contains("has only the rung `landlock`"), "{fault}");
}

#[tokio::test]
async fn no_other_process_is_killed_for_a_false_number() {
    // When a supervisor ends without a word, its parent kills the child's group: not the
    // group of another process that the supervisor named.
    let scratch = Scratch::new(User::Same);
    let marker = marker();
    let mut other = User::Same.command("/bin/sleep");
    let mut other = other.arg(&marker).spawn().unwrap();
    for number in [other.id(), u32::MAX] {
        let mut child = spawn(&scratch, &number.to_string()).await.unwrap();
        assert_eq!(child.pid(), None, "{number}");
        let exit = tokio::time::timeout(SOON, child.wait()).await.unwrap();
        assert!(matches!(exit, JailExit::Unknown(_)), "{number} {exit:?}");
        assert!(other.try_wait().unwrap().is_none(), "{number}");
    }
    // The control: it leads a group, and such a signal ends it.
    let group = Pid::from_raw(i32::try_from(other.id()).unwrap()).unwrap();
    rustix::process::kill_process_group(group, Signal::KILL).unwrap();
    other.wait().unwrap();
    assert_eq!(marked(&marker), 0);
}

#[tokio::test]
async fn lies_after_the_start_end_the_child() {
    for how in ["nonsense_later", "stays"] {
        let scratch = Scratch::new(User::Same);
        let mut child = spawn(&scratch, how).await.unwrap();
        let exit = tokio::time::timeout(SOON, child.wait()).await.unwrap();
        assert!(matches!(exit, JailExit::Unknown(_)), "{how} {exit:?}");
    }
}

#[tokio::test]
async fn descriptors_that_are_no_connections_are_not_used() {
    for how in ["datagram", "file", "local", "two_listeners", "kind"] {
        let scratch = Scratch::new(User::Same);
        let mut child = spawn(&scratch, how).await.unwrap();
        let mut egress = child.egress.take().unwrap();
        let accepted = tokio::time::timeout(SOON, egress.accept()).await.unwrap();
        assert!(accepted.is_err(), "{how}");
        child.kill().await;
    }
}

#[tokio::test]
async fn a_supervisor_that_is_stopped_does_not_save_its_child() {
    let (scratch, marker) = (Scratch::new(User::Same), marker());
    let settings = scratch.settings(&["/bin/sleep", &marker]);
    let child = jail::spawn(settings, &this_program()).await.unwrap();
    wait_for(&marker, |count| count == 1);
    let status = fs::read_to_string(format!("/proc/{}/status", child.pid().unwrap())).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    let supervisor = Pid::from_raw(parent.unwrap().trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(supervisor, Signal::STOP).unwrap();
    let begun = Instant::now();
    child.kill().await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    wait_for(&marker, |count| count == 0);
}

#[test]
fn a_child_that_stops_itself_and_others_is_killed_at_its_end() {
    // It stops its own children, its group, and at last itself; nothing of it may stay.
    let script = "import os, signal\n\
                  for _ in range(3):\n  if os.fork() == 0:\n    os.setsid()\n    \
                  os.kill(os.getpid(), signal.SIGSTOP)\n\
                  os.killpg(0, signal.SIGSTOP)";
    for (user, rung) in everywhere() {
        let (scratch, marker) = (Scratch::on(user, rung), marker());
        let request = scratch.attack(script, &[&marker]);
        let mut parent = user.command(crate::help::PROGRAM);
        parent.arg("hold");
        if rung == Rung::Landlock && !is_in_container() {
            parent.arg("without-namespaces");
        }
        let mut parent = start(&request, &mut parent);
        wait_for(&marker, |count| count == 4);
        parent.kill().unwrap();
        parent.wait().unwrap();
        wait_for(&marker, |count| count == 0);
    }
}
