//! Files that are no databases, or lie about what they are.

use std::os::unix::fs::symlink;

use host::sql::{SqlFaultKind, SqlMode};
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::sqlite::{database, run};
use crate::{CANARY, Scratch};

/// Attack: links of the workspace that lead out of it.
#[test]
fn links_are_not_followed() {
    let scratch = Scratch::new("sqlite-links");
    let real = database(&scratch, "real.db");
    let outside = scratch.path.join("outside/secret.db");
    std::fs::rename(&real, &outside).unwrap();
    let workspace = scratch.workspace();
    symlink(&outside, workspace.join("link.db")).unwrap();
    symlink(scratch.path.join("outside"), workspace.join("folder")).unwrap();
    for path in [
        workspace.join("link.db"),
        workspace.join("folder/secret.db"),
    ] {
        for mode in [SqlMode::Read, SqlMode::Write, SqlMode::Admin] {
            let ended = run(&path, mode, "SELECT name FROM items");
            assert_eq!(
                ended.unwrap_err().kind,
                SqlFaultKind::Database,
                "{}",
                path.display()
            );
        }
    }
    // The control: by its own path it is a database.
    assert!(run(&outside, SqlMode::Read, "SELECT name FROM items").is_ok());
}

#[test]
fn other_files_are_no_databases_and_show_nothing() {
    let scratch = Scratch::new("sqlite-other");
    let workspace = scratch.workspace();
    std::fs::write(workspace.join("text.db"), CANARY.repeat(500)).unwrap();
    std::fs::write(workspace.join("empty.db"), "").unwrap();
    std::fs::create_dir(workspace.join("folder.db")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        workspace.join("pipe.db"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    for name in ["text.db", "folder.db", "missing.db"] {
        let ended = run(
            &workspace.join(name),
            SqlMode::Read,
            "SELECT * FROM sqlite_schema",
        );
        let fault = ended.unwrap_err();
        assert_eq!(fault.kind, SqlFaultKind::Database, "{name}");
        assert!(!fault.message.contains(CANARY));
    }
    let empty = run(
        &workspace.join("empty.db"),
        SqlMode::Read,
        "SELECT * FROM sqlite_schema",
    );
    assert_eq!(empty.unwrap().rows.len(), 0);
}

/// Attack: every byte of the header and of the schema, and pages cut off, so that the
/// file lies about sizes, links and types. It must end with an answer or a fault.
#[test]
fn a_damaged_file_ends_with_an_answer_or_a_fault() {
    let scratch = Scratch::new("sqlite-damage");
    let good = std::fs::read(database(&scratch, "good.db")).unwrap();
    let path = scratch.workspace().join("bad.db");
    let mut ends = [0_usize; 2];
    let changes = (0..good.len())
        .step_by(13)
        .flat_map(|at| [(at, 0xff), (at, 0), (at, 0x80)]);
    for (at, byte) in changes.take(6_000) {
        let mut bad = good.clone();
        bad[at] = byte;
        std::fs::write(&path, &bad).unwrap();
        for statement in [
            "SELECT * FROM items",
            "SELECT * FROM names ORDER BY name",
            "SELECT sql FROM sqlite_schema",
        ] {
            ends[usize::from(run(&path, SqlMode::Read, statement).is_ok())] += 1;
        }
    }
    for length in (0..good.len()).step_by(509) {
        std::fs::write(&path, &good[..length]).unwrap();
        ends[usize::from(run(&path, SqlMode::Read, "SELECT * FROM items").is_ok())] += 1;
    }
    assert!(ends[0] > 50 && ends[1] > 50, "{ends:?}");
}

/// Attack: a schema that was written by hand: views and triggers that call functions which
/// reach out, tables of modules that read files, a trigger that runs in place of a read.
#[test]
fn a_hostile_schema_does_nothing_to_its_reader() {
    let scratch = Scratch::new("sqlite-schema-hostile");
    let path = database(&scratch, "a.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)
        .unwrap();
    let made = "CREATE VIEW loads AS SELECT load_extension('/tmp/evil.so') AS x;
        CREATE VIEW tells AS SELECT * FROM pragma_database_list;
        CREATE TRIGGER grows AFTER INSERT ON items BEGIN INSERT INTO items SELECT NULL, name FROM items; END;
        CREATE TRIGGER admin AFTER DELETE ON items BEGIN INSERT INTO sqlite_schema VALUES ('a','b','c',0,'d'); END;
        INSERT INTO sqlite_schema VALUES ('table', 'files', 'files', 0, 'CREATE VIRTUAL TABLE files USING csv(filename=''/etc/passwd'')');";
    drop(connection.execute_batch(made));
    drop(connection);
    for statement in [
        "SELECT * FROM loads",
        "SELECT * FROM tells",
        "SELECT * FROM files",
    ] {
        let ended = run(&path, SqlMode::Read, statement);
        assert!(ended.is_err(), "{statement}: {ended:?}");
    }
    assert!(run(&path, SqlMode::Read, "SELECT * FROM items").is_ok());
    assert!(run(&path, SqlMode::Write, "DELETE FROM items").is_err());
}

/// Attack: values that are made far larger than any file.
#[test]
fn memory_is_bounded() {
    let scratch = Scratch::new("sqlite-memory");
    let path = database(&scratch, "a.db");
    for statement in [
        "SELECT zeroblob(1000000000)",
        "SELECT printf('%1000000000d', 1)",
        "SELECT replace(hex(zeroblob(8000000)), '0', 'aaaaaaaaaa')",
        "WITH RECURSIVE n(t) AS (SELECT 'a' UNION ALL SELECT t || t FROM n) SELECT length(t) FROM n",
        "SELECT group_concat(a.name || hex(zeroblob(1000000))) FROM items a, items b, items c, items d",
    ] {
        let ended = run(&path, SqlMode::Read, statement);
        let is_kept = ended.as_ref().map_or(true, |answer| answer.truncated);
        assert!(is_kept, "{statement}: {ended:?}");
    }
    let deep = format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    assert!(run(&path, SqlMode::Read, &deep).is_err());
    let chain = format!("SELECT 1{}", "+1".repeat(5_000));
    assert!(run(&path, SqlMode::Read, &chain).is_err());
}
