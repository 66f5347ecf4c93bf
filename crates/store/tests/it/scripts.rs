//! Journals of scripts: taken once, by one, in time, and bounded.

use model::limits;
use store::{Kept, KeptScript};

use crate::home::Home;

const NOW: i64 = 1_000_000;
const LATER: i64 = NOW + 600_000;

fn script(key: &str, caller: &str) -> KeptScript {
    KeptScript {
        key: key.to_owned(),
        caller: caller.to_owned(),
        kept_at_ms: NOW,
        expires_at_ms: LATER,
        journal: format!("journal of {key}"),
    }
}

#[test]
fn a_journal_is_taken_once() {
    let home = Home::new("scripts");
    let store = home.store();
    assert_eq!(
        store.scripts().keep(&script("a", "ann")).unwrap(),
        Kept::Yes
    );
    assert_eq!(store.scripts().take("b", NOW).unwrap(), None);
    // Another process takes it.
    let other = home.store();
    let taken = other.scripts().take("a", NOW).unwrap();
    assert_eq!(taken.as_deref(), Some("journal of a"));
    assert_eq!(store.scripts().take("a", NOW).unwrap(), None);
}

#[test]
fn the_latest_of_a_key_counts() {
    let home = Home::new("scripts");
    let store = home.store();
    store.scripts().keep(&script("a", "ann")).unwrap();
    let second = KeptScript {
        journal: "second".to_owned(),
        ..script("a", "ann")
    };
    assert_eq!(store.scripts().keep(&second).unwrap(), Kept::Yes);
    let taken = store.scripts().take("a", NOW).unwrap();
    assert_eq!(taken.as_deref(), Some("second"));
}

#[test]
fn what_expired_is_gone() {
    let home = Home::new("scripts");
    let store = home.store();
    store.scripts().keep(&script("a", "ann")).unwrap();
    assert_eq!(store.scripts().take("a", LATER).unwrap(), None);
    // And was taken with it.
    assert_eq!(store.scripts().take("a", NOW).unwrap(), None);
}

#[test]
fn journals_are_bounded() {
    let home = Home::new("scripts");
    let store = home.store();
    let long = KeptScript {
        journal: "x".repeat(limits::SCRIPT_JOURNAL_BYTES_MAX + 1),
        ..script("long", "ann")
    };
    assert_eq!(store.scripts().keep(&long).unwrap(), Kept::TooLong);
    for count in 0..limits::SCRIPT_JOURNALS_PER_CALLER_MAX {
        let kept = store.scripts().keep(&script(&count.to_string(), "ann"));
        assert_eq!(kept.unwrap(), Kept::Yes);
    }
    let more = script("more", "ann");
    assert_eq!(store.scripts().keep(&more).unwrap(), Kept::TooMany);
    // Others have room, and so has she once hers expired.
    let other = script("other", "bob");
    assert_eq!(store.scripts().keep(&other).unwrap(), Kept::Yes);
    let later = KeptScript {
        kept_at_ms: LATER,
        expires_at_ms: LATER + 1,
        ..more
    };
    assert_eq!(store.scripts().keep(&later).unwrap(), Kept::Yes);
}
