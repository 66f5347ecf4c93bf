//! Journals of scripts: taken once, by one, in time, and bounded.

use model::limits;
use store::scripts::JournalChange;
use store::{JournalSave, ScriptJournal, Store, TakenJournal};

use super::Home;

const NOW: i64 = 1_000_000;
const LATER: i64 = NOW + 600_000;

fn script(key: &str, caller: &str) -> ScriptJournal {
    ScriptJournal {
        key: key.to_owned(),
        caller: caller.to_owned(),
        kept_at_ms: NOW,
        expires_at_ms: LATER,
        journal: format!("journal of {key}"),
    }
}

fn taken(store: &Store, key: &str, now_ms: i64) -> Option<TakenJournal> {
    store.scripts().take(key, now_ms).unwrap()
}

#[test]
fn a_journal_is_taken_once() {
    let home = Home::new("scripts");
    let store = home.store();
    let kept = store.scripts().keep(&script("a", "ann"), None).unwrap();
    assert_eq!(kept, JournalSave::Yes);
    assert_eq!(taken(&store, "b", NOW), None);
    // Another process takes it.
    let other = home.store();
    let found = taken(&other, "a", NOW).unwrap();
    assert_eq!(
        (found.journal.as_str(), found.steps.len()),
        ("journal of a", 0)
    );
    assert_eq!(taken(&store, "a", NOW), None);
    assert_eq!(taken(&other, "a", NOW), None);
    // Once it is over nobody finds it.
    other.scripts().end(found.id).unwrap();
    assert_eq!(taken(&other, "a", NOW), None);
    drop(other);
    assert_eq!(taken(&store, "a", NOW), None);
}

#[test]
fn the_latest_journal_of_a_key_is_used() {
    let home = Home::new("scripts");
    let store = home.store();
    store.scripts().keep(&script("a", "ann"), None).unwrap();
    let second = ScriptJournal {
        journal: "second".to_owned(),
        ..script("a", "ann")
    };
    assert_eq!(
        store.scripts().keep(&second, None).unwrap(),
        JournalSave::Yes
    );
    assert_eq!(taken(&store, "a", NOW).unwrap().journal, "second");
    assert_eq!(taken(&store, "a", NOW), None);
}

#[test]
fn expired_journals_are_deleted() {
    let home = Home::new("scripts");
    let store = home.store();
    store.scripts().keep(&script("a", "ann"), None).unwrap();
    assert_eq!(taken(&store, "a", LATER), None);
    // And was taken with it.
    assert_eq!(taken(&store, "a", NOW), None);
}

#[test]
fn every_step_survives_the_death_of_its_process() {
    let home = Home::new("scripts");
    let (store, other) = (home.store(), home.store());
    store.scripts().keep(&script("a", "ann"), None).unwrap();
    let first = taken(&other, "a", NOW).unwrap();
    for step in ["one", "two"] {
        let added = other.scripts().add(first.id, step, LATER).unwrap();
        assert_eq!(added, JournalSave::Yes);
    }
    // It is alive, and so nobody else's; not even when it is long due.
    assert_eq!(taken(&store, "a", LATER + 1), None);
    drop(other);
    let second = taken(&store, "a", NOW).unwrap();
    assert_eq!(second.steps, ["one", "two"]);
    assert_eq!(second.id, first.id);
    // Saved again it is one piece, and waits for any process.
    let whole = ScriptJournal {
        journal: "whole".to_owned(),
        ..script("a", "ann")
    };
    let kept = store.scripts().keep(&whole, Some(second.id)).unwrap();
    assert_eq!(kept, JournalSave::Yes);
    let third = taken(&home.store(), "a", NOW).unwrap();
    assert_eq!((third.journal.as_str(), third.steps.len()), ("whole", 0));
    // Whoever was taken for dead adds nothing to what is another's now.
    let late = store.scripts().add(third.id, "three", LATER).unwrap();
    assert_eq!(late, JournalSave::Gone);
    let late = store.scripts().keep(&whole, Some(third.id)).unwrap();
    assert_eq!(late, JournalSave::Gone);
}

#[test]
fn a_released_journal_can_be_taken_again() {
    let home = Home::new("scripts");
    let (store, other) = (home.store(), home.store());
    store.scripts().keep(&script("a", "ann"), None).unwrap();
    let id = taken(&store, "a", NOW).unwrap().id;
    store.scripts().offer(id).unwrap();
    assert_eq!(taken(&other, "a", NOW), None, "it is still held");
    store.scripts().let_go(id);
    assert_eq!(taken(&other, "a", NOW), None, "nobody told the others");
    assert_eq!(taken(&store, "a", NOW).map(|taken| taken.id), Some(id));
    store.scripts().let_go(id);
    store.scripts().offer(id).unwrap();
    assert_eq!(taken(&other, "a", NOW).map(|taken| taken.id), Some(id));
}

#[test]
fn a_running_journal_is_not_replaced_by_a_waiting_one() {
    let home = Home::new("scripts");
    let store = home.store();
    store.scripts().keep(&script("a", "ann"), None).unwrap();
    let first = taken(&store, "a", NOW).unwrap();
    store.scripts().add(first.id, "one", LATER).unwrap();
    let second = ScriptJournal {
        journal: "second".to_owned(),
        ..script("a", "ann")
    };
    assert_eq!(
        store.scripts().keep(&second, None).unwrap(),
        JournalSave::Yes
    );
    let added = store.scripts().add(first.id, "two", LATER).unwrap();
    assert_eq!(added, JournalSave::Yes);
    assert_eq!(taken(&store, "a", NOW).unwrap().journal, "second");
    store.scripts().let_go(first.id);
    assert_eq!(taken(&store, "a", NOW).unwrap().steps, ["one", "two"]);
}

#[test]
fn a_failed_step_is_not_stored() {
    let home = Home::new("scripts");
    let store = home.store();
    let scripts = store.scripts();
    scripts.fail(Some(JournalChange::Keep));
    assert!(scripts.keep(&script("a", "ann"), None).is_err());
    scripts.fail(None);
    assert_eq!(taken(&store, "a", NOW), None);
    scripts.keep(&script("a", "ann"), None).unwrap();
    scripts.fail(Some(JournalChange::Take));
    assert!(scripts.take("a", NOW).is_err());
    scripts.fail(None);
    let id = taken(&store, "a", NOW).unwrap().id;
    scripts.fail(Some(JournalChange::Add));
    assert!(scripts.add(id, "one", LATER).is_err());
    scripts.fail(Some(JournalChange::End));
    assert!(scripts.end(id).is_err());
    scripts.fail(None);
    scripts.let_go(id);
    assert_eq!(taken(&store, "a", NOW).unwrap().steps.len(), 0);
}

#[test]
fn journals_are_bounded() {
    let home = Home::new("scripts");
    let store = home.store();
    let long = ScriptJournal {
        journal: "x".repeat(limits::SCRIPT_JOURNAL_BYTES_MAX + 1),
        ..script("long", "ann")
    };
    assert_eq!(
        store.scripts().keep(&long, None).unwrap(),
        JournalSave::TooLong
    );
    for count in 0..limits::SCRIPT_JOURNALS_PER_CALLER_MAX {
        let kept = store
            .scripts()
            .keep(&script(&count.to_string(), "ann"), None);
        assert_eq!(kept.unwrap(), JournalSave::Yes);
    }
    let more = script("more", "ann");
    assert_eq!(
        store.scripts().keep(&more, None).unwrap(),
        JournalSave::TooMany
    );
    // Others have room, and so has she once hers expired.
    let other = script("other", "bob");
    assert_eq!(
        store.scripts().keep(&other, None).unwrap(),
        JournalSave::Yes
    );
    let later = ScriptJournal {
        kept_at_ms: LATER,
        expires_at_ms: LATER + 1,
        ..more
    };
    assert_eq!(
        store.scripts().keep(&later, None).unwrap(),
        JournalSave::Yes
    );
    // What goes on is held to the same bound, step by step.
    let id = taken(&store, "more", NOW).unwrap().id;
    let half = "x".repeat(limits::SCRIPT_JOURNAL_BYTES_MAX / 2);
    let added = |step: &str| store.scripts().add(id, step, LATER).unwrap();
    assert_eq!(added(&half), JournalSave::Yes);
    assert_eq!(added(&half), JournalSave::TooLong);
    assert_eq!(added("short"), JournalSave::Yes);
}
