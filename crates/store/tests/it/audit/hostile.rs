//! Edits past the store, by somebody with the file in hand.

use std::fs;
use std::path::Path;

use model::record::audit::{Act, Notice};
use store::{Filter, StoreError};

use crate::scratch::{BODY, Fields, HASH, Home, KIND, PREVIOUS, SEQUENCE, cut, fill, line};

type Edit = fn(&mut Vec<Fields>);

/// What is done to the log, and the record that must be named.
const EDITS: &[(&str, Edit, u64)] = &[
    (
        "another tool",
        |lines| replace(lines, 9, "tool-4", "tool-5"),
        9,
    ),
    (
        "another length",
        |lines| replace(lines, 9, "tool-4", "tool-four"),
        9,
    ),
    (
        "another hash",
        |lines| line(lines, 4)[HASH] = "0".repeat(64),
        4,
    ),
    (
        "another previous",
        |lines| line(lines, 4)[PREVIOUS] = "0".repeat(64),
        4,
    ),
    (
        "an end for a beginning",
        |lines| line(lines, 5)[KIND] = "close".to_owned(),
        5,
    ),
    (
        "a checkpoint for a beginning",
        |lines| line(lines, 5)[KIND] = "checkpoint".to_owned(),
        5,
    ),
    (
        "a checkpoint at the start",
        |lines| line(lines, 1)[KIND] = "checkpoint".to_owned(),
        1,
    ),
    (
        "no kind",
        |lines| line(lines, 5)[KIND] = "nothing".to_owned(),
        5,
    ),
    ("one missing", |lines| cut(lines, 8..=8), 8),
    ("several missing", |lines| cut(lines, 8..=11), 8),
    ("the first missing", |lines| cut(lines, ..5), 1),
    (
        "another place",
        |lines| line(lines, 8)[SEQUENCE] = "1000".to_owned(),
        8,
    ),
    (
        "no place",
        |lines| line(lines, 8)[SEQUENCE] = "-8".to_owned(),
        8,
    ),
    (
        "swapped places",
        |lines| {
            line(lines, 3)[SEQUENCE] = "x".to_owned();
            line(lines, 7)[SEQUENCE] = "3".to_owned();
            let third = lines.iter_mut().find(|line| line[SEQUENCE] == "x");
            third.unwrap()[SEQUENCE] = "7".to_owned();
        },
        3,
    ),
    ("swapped lines", |lines| lines.swap(2, 6), 3),
    (
        "one more",
        |lines| {
            let mut more = line(lines, 20).clone();
            more[SEQUENCE] = "21".to_owned();
            lines.push(more);
        },
        21,
    ),
    ("not a line", |lines| lines[9] = Fields::default(), 10),
];

fn replace(lines: &mut [Fields], sequence: u64, from: &str, to: &str) {
    let body = &mut line(lines, sequence)[BODY];
    *body = body.replace(from, to);
}

/// What is done to the index, and the record that must be named.
const INDEX_EDITS: &[(&str, u64)] = &[
    ("UPDATE entries SET tool = 'harmless' WHERE opened = 7", 7),
    ("UPDATE entries SET caller = 'nobody' WHERE opened = 7", 7),
    ("UPDATE entries SET origin = 'mcp' WHERE opened = 7", 7),
    ("UPDATE entries SET at_ms = at_ms + 1 WHERE opened = 7", 7),
    ("UPDATE entries SET call_id = 'x' WHERE opened = 7", 7),
    ("UPDATE entries SET opened_at = opened_at + 1 WHERE opened = 7", 7),
    ("UPDATE entries SET closed_at = closed_at + 1 WHERE opened = 7", 8),
    ("UPDATE entries SET status = 'done' WHERE opened = 1", 2),
    ("UPDATE entries SET closed = 10 WHERE opened = 7", 8),
    ("DELETE FROM entries WHERE opened = 7", 7),
    (
        "INSERT INTO entries SELECT 900, 0, 901, 0, process, at_ms, 'x', origin, caller, tool, 'done', 0
         FROM entries WHERE opened = 7",
        900,
    ),
    ("UPDATE indexed SET through = 6", 7),
];

#[test]
fn every_edit_is_named_at_its_record() {
    for (what, edit, sequence) in EDITS {
        let home = Home::new("hostile");
        fill(&home.store(), 0..10);
        home.edit(edit);
        let store = home.store();
        let broken = store.audit().verify(None).unwrap().broken;
        let broken = broken.unwrap_or_else(|| panic!("not found: {what}"));
        assert_eq!(broken.sequence, *sequence, "{what}: {}", broken.what);
        // Whatever it is, calls go on behind it, and it stays to be seen.
        fill(&store, 10..12);
        let broken = store.audit().verify(None).unwrap().broken.unwrap();
        assert_eq!(broken.sequence, *sequence, "{what}: {}", broken.what);
    }
    for (sql, sequence) in INDEX_EDITS {
        let home = Home::new("hostile");
        fill(&home.store(), 0..10);
        home.index_sql(sql);
        let store = home.store();
        let broken = store.audit().verify(None).unwrap().broken;
        let broken = broken.unwrap_or_else(|| panic!("not found: {sql}"));
        assert_eq!(broken.sequence, *sequence, "{sql}: {}", broken.what);
    }
}

/// An index that takes the end of an entry away makes the next process write a
/// second end. That is found.
#[test]
fn an_end_that_the_index_forgot_is_found() {
    let home = Home::new("forgot");
    fill(&home.store(), 0..10);
    home.index_sql("UPDATE entries SET status = NULL, closed = NULL WHERE opened = 7");
    let broken = home.store().audit().verify(None).unwrap().broken.unwrap();
    assert_eq!(broken.sequence, 8, "{}", broken.what);
}

/// The index can be made again from the log, whatever happened to it.
#[test]
fn a_lost_or_damaged_index_is_rebuilt() {
    let home = Home::new("index");
    fill(&home.store(), 0..10);
    let all = home.store().audit().list(&Filter::default()).unwrap();
    for harm in ["gone", "no database", "half", "another schema"] {
        let path = home.path.join("audit/index.db");
        if harm != "another schema" {
            for ending in ["-wal", "-shm"] {
                let _ = fs::remove_file(home.path.join(format!("audit/index.db{ending}")));
            }
        }
        match harm {
            "gone" => fs::remove_file(&path).unwrap(),
            "no database" => fs::write(&path, "x".repeat(10_000)).unwrap(),
            "half" => {
                let bytes = fs::read(&path).unwrap();
                fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
            }
            _ => home.index_sql("PRAGMA user_version = 77"),
        }
        let store = home.store();
        assert_eq!(store.audit().verify(None).unwrap().broken, None, "{harm}");
        assert_eq!(
            store.audit().list(&Filter::default()).unwrap(),
            all,
            "{harm}"
        );
    }
}

/// Cutting the end off leaves a chain that is in order. The index or the database
/// remembers more: that is a notice, and the chain counts as broken until the owner
/// acknowledges it.
#[test]
fn a_cut_is_reported_until_acknowledged() {
    for forgets in ["nothing", "the index", "the database"] {
        let home = Home::new("cut");
        fill(&home.store(), 0..10);
        let head = home.store().audit().head().unwrap();
        home.edit(|lines| cut(lines, 15..));
        match forgets {
            "the index" => {
                for file in ["index.db", "index.db-wal", "index.db-shm"] {
                    let _ = fs::remove_file(home.path.join("audit").join(file));
                }
            }
            "the database" => home.sql("DELETE FROM audit_mark"),
            _ => {}
        }
        let store = home.store();
        let broken = store.audit().verify(None).unwrap().broken.unwrap();
        assert_eq!(broken.sequence, 15, "{forgets}: {}", broken.what);
        assert!(
            broken.what.contains("record 20 was on the disk"),
            "{}",
            broken.what
        );
        let cuts = || Filter {
            act: Some(Act::AuditCut),
            ..Filter::default()
        };
        let notices = store.audit().notices(&cuts()).unwrap();
        let [notice] = notices.as_slice() else {
            panic!("{forgets}: {notices:?}");
        };
        assert_eq!(
            notice.notice.details["known"],
            format!("20:{}", head.hash.hex())
        );
        // Calls go on, nothing is told twice, and the next process sees it too.
        fill(&store, 20..23);
        drop(store);
        let store = home.store();
        assert_eq!(
            store.audit().notices(&cuts()).unwrap().len(),
            1,
            "{forgets}"
        );
        assert_eq!(
            store.audit().verify(None).unwrap().broken.unwrap().sequence,
            15
        );
        let acknowledged = Notice::new(Act::AuditCutAcknowledged, "owner", "cli", "known");
        let acknowledged = acknowledged.about(&notice.notice.id);
        store.audit().notice(acknowledged).unwrap();
        let verified = store.audit().verify(None).unwrap();
        assert_eq!((verified.broken, verified.cuts), (None, 1), "{forgets}");
        // A head that was kept elsewhere still tells.
        let broken = store.audit().verify(Some(&head)).unwrap().broken.unwrap();
        assert_eq!(broken.sequence, 20, "{forgets}");
    }
}

/// A process that lives notices what was cut while it lived.
#[test]
fn a_cut_beside_a_live_process_is_noticed() {
    let home = Home::new("cut-living");
    let store = home.store();
    fill(&store, 0..10);
    while store.audit().notices(&Filter::default()).is_err()
        || home.indexed() < store.audit().head().unwrap().sequence
    {
        std::thread::yield_now();
    }
    home.edit(|lines| cut(lines, 15..));
    fill(&store, 20..23);
    drop(store);
    let store = home.store();
    let broken = store.audit().verify(None).unwrap().broken.unwrap();
    assert!(broken.what.contains("on the disk"), "{}", broken.what);
}

/// All of it written again past the store: the database remembers another hash.
#[test]
fn a_rewritten_chain_is_detected() {
    let home = Home::new("rewritten");
    fill(&home.store(), 0..10);
    let other = Home::new("rewriting");
    fill(&other.store(), 50..60);
    for folder in [&home, &other] {
        assert_eq!(folder.segments().len(), 1);
    }
    fs::copy(&other.segments()[0], &home.segments()[0]).unwrap();
    for file in ["index.db", "index.db-wal", "index.db-shm"] {
        let _ = fs::remove_file(home.path.join("audit").join(file));
    }
    let broken = home.store().audit().verify(None).unwrap().broken.unwrap();
    assert_eq!(broken.sequence, 20, "{}", broken.what);
}

/// A record that says two things is not shown as one of them.
#[test]
fn a_damaged_entry_is_an_error_and_not_a_guess() {
    let home = Home::new("damaged");
    fill(&home.store(), 0..3);
    home.edit(|lines| {
        let body = &mut line(lines, 4)[BODY];
        *body = format!("{:1$}", "x", body.len());
    });
    let listed = home.store().audit().list(&Filter::default());
    assert!(matches!(
        listed,
        Err(StoreError::Damaged { sequence: 4, .. })
    ));
}

/// Before the log, the audit was a table of the database.
#[test]
fn an_audit_in_the_database_is_refused() {
    let home = Home::new("older");
    drop(home.store());
    home.sql("CREATE TABLE records (sequence INTEGER PRIMARY KEY)");
    let error = store::Store::open(&home.path, store::StoreSettings::standard()).unwrap_err();
    assert!(matches!(error, StoreError::Older { .. }), "{error}");
    assert!(!error.to_string().contains('\n'));
    // Refused before it is changed: the steps that it lacks are not done.
    home.sql("PRAGMA user_version = 1");
    let error = store::Store::open(&home.path, store::StoreSettings::standard()).unwrap_err();
    assert!(matches!(error, StoreError::Older { .. }), "{error}");
    // Without the table it is an ordinary one, whose steps are tried.
    home.sql("DROP TABLE records");
    let error = store::Store::open(&home.path, store::StoreSettings::standard()).unwrap_err();
    assert!(!matches!(error, StoreError::Older { .. }), "{error}");
}

/// Parts of the store connect at their first use. If the database is gone by then, or
/// is something else, each refuses; none takes that for an empty one.
#[test]
fn a_table_that_cannot_connect_is_an_error() {
    let changes: [fn(&Path); 2] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::write(path, "no database").unwrap(),
    ];
    for change in changes {
        let home = Home::new("late");
        let store = home.store();
        for end in ["-wal", "-shm"] {
            let _ = fs::remove_file(home.path.join(format!("ringfence.db{end}")));
        }
        change(&home.path.join("ringfence.db"));
        let key = [("few".to_owned(), "ann".to_owned())];
        assert!(store.approvals().get("x").is_err());
        assert!(store.callers().all().is_err());
        assert!(store.usage().peek(&key).is_err());
        assert!(store.usage().change(&key, 0, |_| ()).is_err());
        assert!(!store.scripts().is_absent("x"));
        assert!(store.scripts().take("x", 0).is_err());
    }
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
    fs::create_dir_all(&home.path).unwrap();
    home.sql("PRAGMA user_version = 1; CREATE TABLE theirs (a)");
    let error = store::Store::open(&home.path, store::StoreSettings::standard()).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
}

/// Two processes that come to a new home at once: one finds the other preparing a
/// file, and waits for it.
#[test]
fn opening_waits_for_a_process_that_creates_the_home() {
    for file in ["ringfence.db", "audit/index.db"] {
        let home = Home::new("prepared");
        let path = home.path.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let begun = std::time::Instant::now();
        let pause = std::time::Duration::from_millis(100);
        let store = std::thread::scope(|scope| {
            let opening = scope.spawn(|| home.store());
            // Sleeps: the other one takes a while.
            std::thread::sleep(pause);
            assert!(!opening.is_finished(), "{file}: nobody waited");
            other.execute_batch("COMMIT").unwrap();
            opening.join().unwrap()
        });
        assert!(begun.elapsed() >= pause, "{file}");
        assert_eq!(store.status().crashed, 0);
    }
}

/// Whoever never finishes is waited for within bounds, and the home is not opened.
#[test]
fn the_wait_for_a_process_that_creates_the_home_is_bounded() {
    let home = Home::new("prepared-for-ever");
    fs::create_dir_all(&home.path).unwrap();
    let other = rusqlite::Connection::open(home.path.join("ringfence.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store::Store::open(&home.path, store::StoreSettings::standard()).unwrap_err();
    assert!(matches!(error, StoreError::Database { .. }), "{error}");
    other.execute_batch("COMMIT").unwrap();
    home.store();
}
