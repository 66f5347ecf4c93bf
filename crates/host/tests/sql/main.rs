//! Databases: every statement of `cases/sql`, in the session alone, with the other layers
//! off; then what a hostile file, a hostile server and a slow statement can do.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop"
)]

mod hostile;
mod postgres;
#[path = "../lab/postgres.rs"]
mod postgres_lab;
mod sqlite;
#[path = "../lab/wire.rs"]
mod wire;

use std::path::{Path, PathBuf};

use host::sql::SqlBounds;
use host::sql::limit::{SQL_ANSWER_BYTES_MAX, SQL_ROWS_MAX};

/// Bounds that no honest statement of a test meets.
pub(crate) fn bounds() -> SqlBounds {
    SqlBounds {
        rows_max: SQL_ROWS_MAX,
        bytes_max: SQL_ANSWER_BYTES_MAX,
        time_ms: 60_000,
    }
}

/// Nothing may ever give this text back.
pub(crate) const CANARY: &str = "CANARY-that-must-stay-outside";

/// A public address that names lead to; the wire takes it to the lab.
pub(crate) const PUBLIC: &str = "93.184.216.34";

/// A folder of one test, with a workspace in it and something outside.
pub(crate) struct Scratch {
    pub(crate) path: PathBuf,
}

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let folder = format!("sql-{name}-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        for part in ["ws", "outside"] {
            std::fs::create_dir_all(path.join(part)).unwrap();
        }
        std::fs::write(path.join("outside/canary.txt"), CANARY).unwrap();
        Scratch {
            path: path.canonicalize().unwrap(),
        }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path.join("ws")
    }

    /// The names of what is outside.
    pub(crate) fn outside(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path.join("outside")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.path));
    }
}

/// One line of a table of statements: what is expected of it, column by column.
pub(crate) struct StatementCase {
    pub(crate) expected: Vec<String>,
    pub(crate) statement: String,
}

fn table(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases/sql");
    PathBuf::from(folder).join(name)
}

/// The statements of a table that has so many columns before each.
pub(crate) fn cases(name: &str, columns: usize) -> Vec<StatementCase> {
    let text = std::fs::read_to_string(table(name)).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let case = |line: &str| {
        let mut parts = line.splitn(columns + 1, ' ').map(str::to_owned);
        let expected = parts.by_ref().take(columns).collect();
        StatementCase {
            expected,
            statement: parts.next().unwrap(),
        }
    };
    lines.map(case).collect()
}

/// Compares a column of a table with what was found, or writes what was found.
pub(crate) fn compare(name: &str, columns: usize, column: usize, found: &[&str]) {
    let cases = cases(name, columns);
    assert_eq!(cases.len(), found.len());
    if std::env::var_os("UPDATE_CASES").is_some_and(|set| !set.is_empty()) {
        let text = std::fs::read_to_string(table(name)).unwrap();
        let mut lines: Vec<String> = text
            .lines()
            .filter(|line| line.starts_with('#'))
            .map(str::to_owned)
            .collect();
        for (case, found) in cases.into_iter().zip(found) {
            let mut expected = case.expected;
            expected[column] = (*found).to_owned();
            lines.push(format!("{} {}", expected.join(" "), case.statement));
        }
        std::fs::write(table(name), lines.join("\n") + "\n").unwrap();
        return;
    }
    for (case, found) in cases.iter().zip(found) {
        assert_eq!(case.expected[column], *found, "{}", case.statement);
    }
}
