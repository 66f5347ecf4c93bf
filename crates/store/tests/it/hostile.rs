//! Edits past the store, by somebody with the file in hand.

use store::{Filter, StoreError};

use crate::home::{Home, fill};

/// What is done, and the record that must be named.
const EDITS: &[(&str, u64)] = &[
    (
        "UPDATE records SET body = replace(body, 'tool-4', 'tool-5') WHERE sequence = 9",
        9,
    ),
    ("UPDATE records SET hash = previous WHERE sequence = 4", 4),
    ("UPDATE records SET previous = hash WHERE sequence = 4", 4),
    ("UPDATE records SET kind = 'close' WHERE sequence = 5", 5),
    (
        "UPDATE records SET kind = 'checkpoint' WHERE sequence = 5",
        5,
    ),
    ("DELETE FROM records WHERE sequence = 8", 8),
    ("DELETE FROM records WHERE sequence BETWEEN 8 AND 11", 8),
    ("DELETE FROM records WHERE sequence < 5", 1),
    (
        "DELETE FROM records WHERE sequence < 5; DELETE FROM entries WHERE opened < 5",
        1,
    ),
    ("UPDATE records SET sequence = 1000 WHERE sequence = 8", 8),
    ("UPDATE records SET sequence = -8 WHERE sequence = 8", 0),
    (
        "UPDATE records SET sequence = -1 WHERE sequence = 3;
         UPDATE records SET sequence = 3 WHERE sequence = 7;
         UPDATE records SET sequence = 7 WHERE sequence = -1",
        3,
    ),
    (
        "INSERT INTO records SELECT 21, kind, process, previous, hash, body
         FROM records WHERE sequence = 20",
        21,
    ),
    // The index alone.
    ("UPDATE entries SET tool = 'harmless' WHERE opened = 7", 7),
    ("UPDATE entries SET caller = 'nobody' WHERE opened = 7", 7),
    ("UPDATE entries SET origin = 'cli' WHERE opened = 7", 7),
    ("UPDATE entries SET at_ms = at_ms + 1 WHERE opened = 7", 7),
    ("UPDATE entries SET call_id = 'x' WHERE opened = 7", 7),
    ("UPDATE entries SET status = 'done' WHERE opened = 1", 2),
    (
        "UPDATE entries SET status = NULL, closed = NULL WHERE opened = 7",
        8,
    ),
    ("UPDATE entries SET closed = 10 WHERE opened = 7", 8),
    ("DELETE FROM entries WHERE opened = 7", 7),
    (
        "INSERT INTO entries SELECT 900, NULL, process, at_ms, 'x', origin, caller, tool, NULL
      FROM entries WHERE opened = 7",
        900,
    ),
    ("UPDATE indexed SET through = 6", 7),
];

#[test]
fn every_edit_is_named_at_its_record() {
    for (sql, sequence) in EDITS {
        let home = Home::new("hostile");
        fill(&home.store(), 0..10);
        home.sql(sql);
        let store = home.store();
        let broken = store.audit().verify(None).unwrap().broken;
        let broken = broken.unwrap_or_else(|| panic!("not found: {sql}"));
        assert_eq!(broken.sequence, *sequence, "{sql}: {}", broken.what);
    }
}

/// Cutting the end off leaves a chain that is in order; who kept a head finds it.
#[test]
fn a_cut_end_is_found_by_a_kept_head() {
    let home = Home::new("cut");
    fill(&home.store(), 0..10);
    let head = home.store().audit().head().unwrap();
    home.sql(
        "DELETE FROM records WHERE sequence > 14; DELETE FROM entries WHERE opened > 14;
              UPDATE indexed SET through = 14",
    );
    let store = home.store();
    assert_eq!(store.audit().verify(None).unwrap().broken, None);
    let broken = store.audit().verify(Some(&head)).unwrap().broken.unwrap();
    assert_eq!(broken.sequence, 15);
}

/// A row that says two things is not shown as one of them.
#[test]
fn a_damaged_entry_is_an_error_and_not_a_guess() {
    let home = Home::new("damaged");
    fill(&home.store(), 0..3);
    home.sql("UPDATE records SET body = 'x' WHERE sequence = 4");
    let listed = home.store().audit().list(&Filter::default());
    assert!(matches!(
        listed,
        Err(StoreError::Damaged { sequence: 4, .. })
    ));
}

#[test]
fn a_newer_schema_and_a_foreign_file_are_refused() {
    let home = Home::new("newer");
    drop(home.store());
    home.sql("PRAGMA user_version = 99");
    let error = store::Store::open(&home.path, store::StoreSettings::standard()).unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { found: 99, .. }),
        "{error}"
    );
    assert!(!error.to_string().contains('\n'));
    let home = Home::new("foreign");
    std::fs::create_dir_all(&home.path).unwrap();
    home.sql("PRAGMA user_version = 1; CREATE TABLE theirs (a)");
    let error = store::Store::open(&home.path, store::StoreSettings::standard()).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
}
