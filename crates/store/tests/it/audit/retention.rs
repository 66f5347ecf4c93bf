//! Removing what is old, and what the chain says about it.

use std::io::Write as _;
use std::process::{Command, Stdio};

use model::record::audit::chain::{Body, Ending, Record, RecordKind};
use model::record::audit::walk;
use model::record::audit::{Act, Notice, Status};
use store::{Filter, Retention, Store};

use crate::scratch::{Home, KIND, closing, cut, fill, opening, wait};

/// Entries are opened a millisecond apart, from here on.
const START_MS: i64 = 1_700_000_000_000;

fn older_than(number: i64) -> Retention {
    Retention {
        older_than_ms: Some(START_MS + number),
        ..Retention::default()
    }
}

fn count(store: &Store) -> usize {
    store.audit().list(&Filter::default()).unwrap().len()
}

fn assert_in_order(store: &Store) {
    assert_eq!(store.audit().verify(None).unwrap().broken, None);
    // What is exported is enough to see the same elsewhere.
    let mut records = Vec::new();
    let exported = store.audit().export(&Filter::default(), &mut |record| {
        records.push(record.clone());
        Ok(())
    });
    let verified = walk::verify(&records, Some(&store.audit().head().unwrap()));
    assert_eq!(verified.broken, None);
    assert_eq!(verified.records, exported.unwrap());
}

/// The guide gives a program that verifies an export. It is run as it stands, on a
/// chain with a checkpoint, an entry that stayed and one that is open.
#[test]
fn the_guide_can_verify_an_export() {
    let home = Home::new("guide");
    let store = home.store();
    fill(&store, 0..10);
    let open = wait(store.audit().open(opening(10))).unwrap();
    fill(&store, 11..30);
    store.audit().retain(&older_than(20)).unwrap();
    fill(&store, 30..40);
    let notice = Notice::new(Act::KeyMade, "owner", "cli", "a key was made");
    store.audit().notice(notice).unwrap();
    let mut lines = Vec::new();
    store
        .audit()
        .export(&Filter::default(), &mut |record| {
            lines.push(serde_json::to_string(record)?);
            Ok(())
        })
        .unwrap();
    drop(open);
    let guide = include_str!("../../../../../docs/guide/audit.md");
    let (_, program) = guide.split_once("```python\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let verify = |lines: &[String]| {
        let mut python = Command::new("python3")
            .args(["-c", program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let mut input = python.stdin.take().unwrap();
        // One that stops early closes its end.
        let _ = input.write_all(lines.join("\n").as_bytes());
        drop(input);
        let output = python.wait_with_output().unwrap();
        Some((
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        ))
    };
    let Some((said, errors)) = verify(&lines) else {
        println!("no python3 here");
        return;
    };
    let last: Record = serde_json::from_str(lines.last().unwrap()).unwrap();
    let expected = format!("in order up to {} {}\n", last.sequence, last.hash);
    assert_eq!(said, expected, "{errors}");
    for at in [0, 1, lines.len() - 2] {
        let mut changed = lines.clone();
        changed[at] = changed[at]
            .replace("tool-", "tool_")
            .replace("done", "gone");
        let (_, errors) = verify(&changed).unwrap();
        assert!(errors.ends_with("is broken\n"), "{at}: {errors}");
        let mut missing = lines.clone();
        missing.remove(at);
        let (said, _) = verify(&missing).unwrap();
        assert_eq!(said, "", "{at}");
    }
}

#[test]
fn entries_are_removed_by_age() {
    let home = Home::new("age");
    let store = home.store();
    fill(&store, 0..100);
    let head = store.audit().head().unwrap();
    let removed = store.audit().retain(&older_than(60)).unwrap();
    assert_eq!((removed.entries, removed.records), (60, 120));
    assert_eq!(removed.through, Some(120));
    assert_eq!(count(&store), 40);
    assert_in_order(&store);
    assert_eq!(store.audit().verify(Some(&head)).unwrap().broken, None);
    // The checkpoint says what is gone.
    let mut checkpoints = Vec::new();
    store
        .audit()
        .export(&Filter::default(), &mut |record| {
            if record.kind == RecordKind::Checkpoint {
                checkpoints.push(record.read::<Ending>().unwrap());
            }
            Ok(())
        })
        .unwrap();
    let [Body::Checkpoint(checkpoint)] = checkpoints.as_slice() else {
        panic!("one checkpoint");
    };
    assert_eq!((checkpoint.records, checkpoint.entries), (120, 60));
    assert_eq!(
        (checkpoint.from_ms, checkpoint.to_ms),
        (START_MS, START_MS + 59)
    );
    // Nothing more to remove is no reason for another checkpoint.
    let head = store.audit().head().unwrap();
    assert_eq!(store.audit().retain(&older_than(60)).unwrap().through, None);
    assert_eq!(store.audit().head().unwrap(), head);
    // Everything, and on from there.
    store.audit().retain(&older_than(1_000)).unwrap();
    assert_eq!(count(&store), 0);
    assert_in_order(&store);
    let head = store.audit().head().unwrap();
    store.audit().retain(&older_than(1_000)).unwrap();
    assert_eq!(store.audit().head().unwrap(), head);
    fill(&store, 100..110);
    assert_in_order(&store);
}

#[test]
fn entries_are_removed_by_size() {
    let home = Home::new("bytes");
    let store = home.store();
    fill(&store, 0..200);
    let rule = Retention {
        bytes_max: Some(50_000),
        ..Retention::default()
    };
    let removed = store.audit().retain(&rule).unwrap();
    assert!((50..190).contains(&removed.entries), "{removed:?}");
    let newest = store.audit().list(&Filter::default()).unwrap();
    assert_eq!(newest[0].opening, opening(199));
    assert_in_order(&store);
}

/// Open entries stay however old they are, and can still end.
#[test]
fn open_entries_stay() {
    let home = Home::new("stay");
    let store = home.store();
    fill(&store, 0..10);
    let open = wait(store.audit().open(opening(10))).unwrap();
    fill(&store, 11..20);
    let later = wait(store.audit().open(opening(20))).unwrap();
    fill(&store, 21..30);
    let removed = store.audit().retain(&older_than(100)).unwrap();
    assert_eq!(removed.entries, 28);
    assert_eq!(count(&store), 2);
    assert_in_order(&store);
    wait(store.audit().close(open, closing(Status::Done))).unwrap();
    fill(&store, 30..40);
    assert_in_order(&store);
    // The one that ended goes with the next removal, the other stays again.
    let removed = store.audit().retain(&older_than(100)).unwrap();
    assert_eq!(removed.entries, 11);
    assert_in_order(&store);
    assert_eq!(store.audit().verify(None).unwrap().open, 1);
    wait(store.audit().close(later, closing(Status::Done))).unwrap();
    assert_in_order(&store);
}

/// More than one step, with callers at work meanwhile.
#[test]
fn removal_proceeds_in_steps_between_calls() {
    let home = Home::new("steps");
    let store = home.store();
    fill(&store, 0..4_500);
    let beside = store.clone();
    let calls = std::thread::spawn(move || fill(&beside, 10_000..10_200));
    let removed = store.audit().retain(&older_than(4_500)).unwrap();
    calls.join().unwrap();
    assert_eq!((removed.entries, removed.records), (4_500, 9_000));
    assert_eq!(count(&store), 200);
    assert_in_order(&store);
    assert_eq!(store.audit().verify(None).unwrap().checkpoints, 3);
}

#[test]
fn removal_without_a_checkpoint_is_found() {
    let home = Home::new("unsaid");
    fill(&home.store(), 0..50);
    home.store().audit().retain(&older_than(10)).unwrap();
    home.edit(|lines| cut(lines, ..=40));
    let broken = home.store().audit().verify(None).unwrap().broken.unwrap();
    assert_eq!(broken.sequence, 21);
    // Nor may the checkpoint itself go.
    let home = Home::new("unsaid");
    fill(&home.store(), 0..50);
    home.store().audit().retain(&older_than(10)).unwrap();
    home.edit(|lines| lines.retain(|line| line[KIND] != "checkpoint"));
    let broken = home.store().audit().verify(None).unwrap().broken.unwrap();
    assert_eq!(broken.sequence, 1);
}
