//! SQLite files: what each mode lets through.

use std::path::{Path, PathBuf};

use host::sql::role::{SqliteOrder, read_report, write_order};
use host::sql::sqlite::{self, SqliteTask};
use host::sql::{SqlAnswer, SqlBounds, SqlFault, SqlFaultKind, SqlMode};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{Scratch, bounds, cases, compare};

/// A database with one table.
pub(crate) fn database(scratch: &Scratch, name: &str) -> PathBuf {
    let path = scratch.workspace().join(name);
    let connection = Connection::open(&path).unwrap();
    let made = "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        INSERT INTO items VALUES (1, 'apple'), (2, 'bread'), (3, 'cheese');
        CREATE VIEW names AS SELECT name FROM items;
        CREATE INDEX by_name ON items (name);";
    connection.execute_batch(made).unwrap();
    path
}

pub(crate) fn run(path: &Path, mode: SqlMode, statement: &str) -> Result<SqlAnswer, SqlFault> {
    run_with(path, mode, statement, &[])
}

fn run_with(
    path: &Path,
    mode: SqlMode,
    statement: &str,
    parameters: &[Value],
) -> Result<SqlAnswer, SqlFault> {
    let task = SqliteTask::Statement(statement.to_owned(), parameters.to_vec());
    sqlite::run(path, mode, &task, bounds())
}

fn kind(path: &Path, mode: SqlMode, statement: &str) -> SqlFaultKind {
    let ended = run(path, mode, statement);
    ended.expect_err(statement).kind
}

#[test]
fn a_session_that_reads_changes_nothing_whatever_the_statement() {
    let scratch = Scratch::new("sqlite-cases");
    let path = database(&scratch, "a.db");
    let before = std::fs::read(&path).unwrap();
    let outside = scratch.outside();
    let mut found = Vec::new();
    for case in cases("sqlite.txt", 2) {
        let ended = run(&path, SqlMode::Read, &case.statement);
        found.push(if ended.is_ok() { "runs" } else { "refused" });
        assert_eq!(std::fs::read(&path).unwrap(), before, "{}", case.statement);
    }
    assert_eq!(scratch.outside(), outside);
    let left: Vec<_> = std::fs::read_dir(scratch.workspace()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    compare("sqlite.txt", 2, 1, &found);
}

#[test]
fn values_come_back_as_json() {
    let scratch = Scratch::new("sqlite-values");
    let path = database(&scratch, "a.db");
    let statement = "SELECT ?1 AS a, ?2 AS b, ?3, ?4, x'00ff', 9007199254740993, 1e999, NULL";
    let given = [json!(1), json!("é"), json!(2.5), json!(true)];
    let answer = run_with(&path, SqlMode::Read, statement, &given).unwrap();
    assert_eq!(&answer.columns[..2], ["a", "b"]);
    let row = json!([
        1,
        "é",
        2.5,
        1,
        "\\x00ff",
        "9007199254740993",
        "Infinity",
        null
    ]);
    assert_eq!(json!(answer.rows[0]), row);
    assert_eq!(answer.changed, None);
}

#[test]
fn parameters_are_single_values_and_as_many_as_wanted() {
    let scratch = Scratch::new("sqlite-parameters");
    let path = database(&scratch, "a.db");
    for given in [vec![], vec![json!(1), json!(2)], vec![json!([1])]] {
        let ended = run_with(&path, SqlMode::Read, "SELECT ?1", &given);
        assert_eq!(
            ended.unwrap_err().kind,
            SqlFaultKind::Statement,
            "{given:?}"
        );
    }
}

#[test]
fn a_session_that_writes_changes_rows_and_nothing_else() {
    let scratch = Scratch::new("sqlite-write");
    let path = database(&scratch, "a.db");
    let answer = run(
        &path,
        SqlMode::Write,
        "UPDATE items SET name = name || '!' RETURNING id",
    )
    .unwrap();
    assert_eq!((answer.changed, answer.rows.len()), (Some(3), 3));
    for refused in [
        "DROP TABLE items",
        "CREATE TABLE x (i)",
        "ALTER TABLE items RENAME TO things",
        "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 0, 'CREATE TABLE x (i)')",
        "ATTACH '/tmp/x' AS x",
        "PRAGMA writable_schema = 1",
        "VACUUM INTO '/tmp/x'",
        "BEGIN",
    ] {
        assert_eq!(
            kind(&path, SqlMode::Write, refused),
            SqlFaultKind::Refused,
            "{refused}"
        );
    }
    let missing = scratch.workspace().join("missing.db");
    assert_eq!(
        kind(&missing, SqlMode::Write, "SELECT 1"),
        SqlFaultKind::Database
    );
    assert!(!missing.exists());
}

#[test]
fn a_session_of_an_admin_makes_tables_but_reaches_no_other_file() {
    let scratch = Scratch::new("sqlite-admin");
    let path = scratch.workspace().join("new.db");
    for done in [
        "CREATE TABLE a (i INTEGER PRIMARY KEY AUTOINCREMENT, t TEXT)",
        "INSERT INTO a (t) VALUES ('x')",
        "CREATE INDEX b ON a (t)",
        "CREATE VIEW c AS SELECT t FROM a",
        "CREATE TRIGGER d AFTER INSERT ON a BEGIN UPDATE a SET t = upper(t); END",
        "INSERT INTO a (t) VALUES ('y')",
        "ALTER TABLE a ADD COLUMN u",
        "CREATE VIRTUAL TABLE e USING fts5(body)",
        "INSERT INTO e VALUES ('some words')",
        "ANALYZE",
        "REINDEX",
        "DROP VIEW c",
        "DROP TABLE e",
    ] {
        if let Err(fault) = run(&path, SqlMode::Admin, done) {
            panic!("{done}: {fault:?}");
        }
    }
    let answer = run(&path, SqlMode::Read, "SELECT t FROM a ORDER BY i").unwrap();
    assert_eq!(json!(answer.rows), json!([["X"], ["Y"]]));
    for refused in [
        "ATTACH 'other.db' AS x",
        "VACUUM INTO 'other.db'",
        "PRAGMA journal_mode = WAL",
        "PRAGMA temp_store_directory = '/tmp'",
        "SELECT load_extension('x')",
        "CREATE VIRTUAL TABLE x USING csv(filename='/etc/passwd')",
        "CREATE VIRTUAL TABLE x USING dbstat",
        "UPDATE sqlite_schema SET sql = 'x'",
    ] {
        assert!(run(&path, SqlMode::Admin, refused).is_err(), "{refused}");
    }
}

#[test]
fn tables_and_columns_are_told() {
    let scratch = Scratch::new("sqlite-schema");
    let path = database(&scratch, "a.db");
    let tables = sqlite::run(&path, SqlMode::Read, &SqliteTask::Tables, bounds()).unwrap();
    assert_eq!(
        json!(tables.rows),
        json!([["items", "table"], ["names", "view"]])
    );
    let task = SqliteTask::Describe("items".to_owned());
    let columns = sqlite::run(&path, SqlMode::Read, &task, bounds()).unwrap();
    assert_eq!(columns.columns[..3], ["kind", "name", "type"]);
    let names: Vec<_> = columns
        .rows
        .iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    let expected = [("column", "id"), ("column", "name"), ("index", "by_name")];
    assert_eq!(
        names,
        expected.map(|(kind, name)| (json!(kind), json!(name)))
    );
    for nothing in ["none", "items'; DROP TABLE items; --", ""] {
        let task = SqliteTask::Describe(nothing.to_owned());
        let ended = sqlite::run(&path, SqlMode::Read, &task, bounds());
        assert_eq!(ended.unwrap_err().kind, SqlFaultKind::Statement);
    }
}

#[test]
fn answers_are_cut_at_their_bounds() {
    let scratch = Scratch::new("sqlite-bounds");
    let path = database(&scratch, "a.db");
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let answer = run(&path, SqlMode::Read, many).unwrap();
    assert_eq!(
        (answer.rows.len(), answer.truncated),
        (bounds().rows_max, true)
    );
    let wide = "SELECT hex(zeroblob(100000)) FROM items a, items b, items c";
    let answer = run(&path, SqlMode::Read, wide).unwrap();
    assert!(
        answer.truncated && answer.rows.len() < 27,
        "{}",
        answer.rows.len()
    );
}

#[test]
fn a_statement_without_end_is_stopped_and_undone() {
    let scratch = Scratch::new("sqlite-endless");
    let path = database(&scratch, "a.db");
    let short = SqlBounds {
        time_ms: 50,
        ..bounds()
    };
    for (mode, statement) in [
        (
            SqlMode::Read,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n",
        ),
        (
            SqlMode::Write,
            "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n) INSERT INTO items SELECT i, 'x' FROM n",
        ),
    ] {
        let task = SqliteTask::Statement(statement.to_owned(), Vec::new());
        let ended = sqlite::run(&path, mode, &task, short);
        assert_eq!(
            ended.unwrap_err().kind,
            SqlFaultKind::Timeout,
            "{statement}"
        );
    }
    let answer = run(&path, SqlMode::Read, "SELECT count(*) FROM items").unwrap();
    assert_eq!(json!(answer.rows), json!([[3]]));
}

#[test]
fn a_log_that_was_folded_in_is_no_obstacle_and_one_that_is_there_is_read() {
    let scratch = Scratch::new("sqlite-wal");
    let path = database(&scratch, "a.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .unwrap();
    connection
        .execute("DELETE FROM items WHERE id = 3", [])
        .unwrap();
    let count = || {
        let answer = run(&path, SqlMode::Read, "SELECT count(*) FROM items").unwrap();
        answer.rows[0][0].clone()
    };
    assert_eq!(count(), 2);
    drop(connection);
    assert_eq!(count(), 2);
}

#[test]
fn a_report_beyond_its_bounds_is_none() {
    let row = |count: usize| json!({"Answer": {"columns": ["a"], "rows": vec![[1]; count], "truncated": false, "changed": null}});
    let few = SqlBounds {
        rows_max: 2,
        ..bounds()
    };
    assert!(read_report(row(2).to_string().as_bytes(), few).is_ok());
    for report in [
        row(3).to_string(),
        json!({"Answer": {"columns": ["a"], "rows": [[1, 2]], "truncated": false, "changed": null}}).to_string(),
        json!({"Answer": {"columns": ["a"], "rows": [[{"a": 1}]], "truncated": false, "changed": null}}).to_string(),
        String::new(),
        "{".to_owned(),
        row(1).to_string() + "x",
    ] {
        let fault = read_report(report.as_bytes(), few).unwrap_err();
        assert_eq!(fault.kind, SqlFaultKind::Database, "{report}");
    }
    let said = json!({"Fault": {"kind": "Statement", "message": "no such column: x"}}).to_string();
    let fault = read_report(said.as_bytes(), few).unwrap_err();
    assert_eq!(fault.message, "no such column: x");
}

#[test]
fn an_order_has_a_bound() {
    let mut order = SqliteOrder {
        path: PathBuf::from("/a"),
        mode: SqlMode::Read,
        task: SqliteTask::Tables,
        bounds: bounds(),
    };
    assert!(write_order(&order).is_ok());
    order.task = SqliteTask::Statement("x".repeat(3 << 20), Vec::new());
    assert!(write_order(&order).is_err());
}
