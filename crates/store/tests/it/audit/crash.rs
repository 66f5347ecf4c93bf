//! Death at every step and in the middle of a load: nothing that was acknowledged
//! is lost, what was open is closed as crashed by the next process, and the chain
//! is in order.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

use model::record::audit::Status;
use store::{AuditEntry, Filter, Store};

use crate::scratch::{Home, fill};

const SIGKILL: i32 = 9;

fn child(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_store-test-child"));
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

fn entries(store: &Store) -> BTreeMap<String, AuditEntry> {
    let entries = store.audit().list(&Filter::default()).unwrap();
    entries
        .into_iter()
        .map(|entry| (entry.opening.call_id.clone(), entry))
        .collect()
}

fn assert_in_order(store: &Store) {
    let verified = store.audit().verify(None).unwrap();
    assert_eq!(verified.broken, None);
    assert_eq!(verified.open, 0);
}

/// What an entry must look like after the process died at a step.
enum After {
    Nothing,
    Crashed,
    /// It was being written.
    NothingOr(Status),
    CrashedOr(Status),
    Is(Status),
}

#[test]
fn kill_at_every_step() {
    let steps = [
        ("before-open", After::Nothing),
        ("during-open", After::NothingOr(Status::Crashed)),
        ("after-open", After::Crashed),
        ("during-secure", After::Crashed),
        ("after-secure", After::Crashed),
        ("drop", After::CrashedOr(Status::Cancelled)),
        ("during-close", After::CrashedOr(Status::Done)),
        ("after-close", After::Is(Status::Done)),
        ("before-end", After::Is(Status::Done)),
        ("after-end", After::Is(Status::Done)),
    ];
    for durability in ["standard", "full"] {
        for (step, after) in &steps {
            let home = Home::new(step);
            // Something to follow on.
            fill(&home.store(), 0..3);
            let output = child(&["step", home.path.to_str().unwrap(), step])
                .env("STORE_TEST_DURABILITY", durability)
                .output()
                .unwrap();
            assert_eq!(output.status.signal(), Some(SIGKILL), "{step}");
            let store = home.store();
            let entries = entries(&store);
            let status = entries
                .get("stepped")
                .map(|entry| entry.closing.as_ref().unwrap().status);
            let is_right = match after {
                After::Nothing => status.is_none(),
                After::Crashed => status == Some(Status::Crashed),
                After::NothingOr(other) => status.is_none_or(|status| status == *other),
                After::CrashedOr(other) => [Some(Status::Crashed), Some(*other)].contains(&status),
                After::Is(other) => status == Some(*other),
            };
            assert!(is_right, "{durability} {step}: {status:?}");
            assert_eq!(
                store.status().crashed,
                u64::from(status == Some(Status::Crashed))
            );
            assert_in_order(&store);
        }
    }
}

/// Reads acknowledgements until there are so many, kills, and reads the rest.
fn kill_after(mut child: Child, lines_max: usize) -> BTreeMap<String, BTreeSet<String>> {
    let mut said: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    for count in 0.. {
        if count == lines_max {
            child.kill().unwrap();
        }
        line.clear();
        if lines.read_line(&mut line).unwrap() == 0 {
            break;
        }
        // The last line may be cut; then it was not said.
        if let Some((word, what)) = line
            .strip_suffix('\n')
            .and_then(|line| line.split_once(' '))
        {
            said.entry(word.to_owned())
                .or_default()
                .insert(what.to_owned());
        }
    }
    assert_eq!(child.wait().unwrap().signal(), Some(SIGKILL));
    said
}

#[test]
fn kill_under_load() {
    let home = Home::new("load");
    let path = home.path.to_str().unwrap().to_owned();
    let mut opened = BTreeSet::new();
    let mut closed = BTreeSet::new();
    for (round, lines_max) in [1, 17, 130, 700, 1500, 2400].into_iter().enumerate() {
        let callers = if round % 2 == 0 { "64" } else { "3" };
        let mut said = kill_after(child(&["load", &path, callers]).spawn().unwrap(), lines_max);
        opened.append(&mut said.remove("opened").unwrap_or_default());
        closed.append(&mut said.remove("closed").unwrap_or_default());
        let store = home.store();
        let entries = entries(&store);
        for call_id in &opened {
            assert!(entries.contains_key(call_id), "lost {call_id}");
        }
        for (call_id, entry) in &entries {
            let status = entry.closing.as_ref().map(|closing| closing.status);
            match status {
                Some(Status::Done) => {}
                Some(Status::Crashed) => assert!(!closed.contains(call_id), "{call_id}"),
                other => panic!("{call_id}: {other:?}"),
            }
        }
        for call_id in &closed {
            assert!(entries.contains_key(call_id), "lost {call_id}");
        }
        assert_in_order(&store);
    }
    assert!(opened.len() > 1000 && closed.len() > 1000);
}

/// Two stores of one process, one of them removing what the other writes.
#[test]
fn kill_during_removal() {
    let home = Home::new("churn");
    let path = home.path.to_str().unwrap().to_owned();
    let mut removals = 0;
    for lines_max in [300, 900, 1700] {
        let said = kill_after(child(&["churn", &path]).spawn().unwrap(), lines_max);
        removals += said.get("removed").map_or(0, BTreeSet::len);
        assert_in_order(&home.store());
    }
    assert!(removals > 0);
    let checkpoints = home.store().audit().verify(None).unwrap().checkpoints;
    assert!(checkpoints > 0);
}

#[test]
fn open_rows_of_live_processes_stay_open() {
    let home = Home::new("living");
    let path = home.path.to_str().unwrap().to_owned();
    let mut living = child(&["hold", &path, "living"]).spawn().unwrap();
    let mut lines = BufReader::new(living.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert_eq!(line, "opened living\n");
    let dead = child(&["hold", &path, "dead"]).spawn().unwrap();
    kill_after(dead, 1);

    let store = home.store();
    assert_eq!(store.status().crashed, 1);
    let now = entries(&store);
    assert_eq!(
        now["dead"].closing.as_ref().unwrap().status,
        Status::Crashed
    );
    assert_eq!(now["living"].closing, None);
    assert_eq!(store.audit().verify(None).unwrap().open, 1);

    living.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(living.wait().unwrap().success());
    let then = entries(&store);
    assert_eq!(
        then["living"].closing.as_ref().unwrap().status,
        Status::Done
    );
    assert_in_order(&store);
    let locks = std::fs::read_dir(home.path.join("locks")).unwrap().count();
    assert_eq!(locks, 1, "only our own is left");
}

/// A worker that is being started has copies of its parent's descriptors for a
/// moment. They must not keep a dead parent alive.
#[test]
fn an_inherited_lock_does_not_keep_a_process_alive() {
    use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

    let home = Home::new("copy");
    let path = home.path.to_str().unwrap().to_owned();
    let mut dead = child(&["hold", &path, "dead"]).spawn().unwrap();
    let mut lines = BufReader::new(dead.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    let pidfd = pidfd_open(Pid::from_child(&dead), PidfdFlags::empty()).unwrap();
    let mut copies = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{}/fd", dead.id())).unwrap() {
        let entry = entry.unwrap();
        let target = std::fs::read_link(entry.path()).unwrap();
        if target.parent() == Some(home.path.join("locks").as_path()) {
            let number = entry.file_name().to_str().unwrap().parse().unwrap();
            copies.push(pidfd_getfd(&pidfd, number, PidfdGetfdFlags::empty()).unwrap());
        }
    }
    assert_eq!(copies.len(), 1, "one lock");
    dead.kill().unwrap();
    dead.wait().unwrap();

    let store = home.store();
    assert_eq!(store.status().crashed, 1);
    drop(copies);
    assert_in_order(&store);
}

#[test]
fn two_processes_write_one_chain() {
    let home = Home::new("two");
    let path = home.path.to_str().unwrap().to_owned();
    let store = home.store();
    let mut children: Vec<_> = ["a", "b"]
        .map(|name| child(&["write", &path, name, "300"]).spawn().unwrap())
        .into();
    fill(&store, 0..300);
    for child in &mut children {
        let mut rest = BufReader::new(child.stdout.take().unwrap());
        while rest.skip_until(b'\n').unwrap() > 0 {}
        assert!(child.wait().unwrap().success());
    }
    let verified = store.audit().verify(None).unwrap();
    assert_eq!(verified.broken, None);
    assert_eq!(
        (verified.entries, verified.records, verified.open),
        (900, 1800, 0)
    );
    assert_eq!(entries(&store).len(), 900);
}

/// Somebody removes the lock files by hand: the next process takes us for dead, and
/// we stop instead of writing a second end.
#[test]
fn a_process_taken_for_dead_cannot_write() {
    let home = Home::new("taken");
    let first = home.store();
    let row = crate::scratch::wait(first.audit().open(crate::scratch::opening(1))).unwrap();
    std::fs::remove_dir_all(home.path.join("locks")).unwrap();
    let second = home.store();
    assert_eq!(second.status().crashed, 1);
    let closing = crate::scratch::closing(Status::Done);
    let closed = crate::scratch::wait(first.audit().close(row, closing));
    assert!(matches!(closed, Err(store::StoreError::TakenForDead)));
    let opened = crate::scratch::wait(first.audit().open(crate::scratch::opening(2)));
    assert!(matches!(opened, Err(store::StoreError::TakenForDead)));
    assert_in_order(&second);
}
