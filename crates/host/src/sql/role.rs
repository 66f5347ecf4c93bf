//! This program as the process that opens a SQLite file: it gets one order on standard
//! input, answers with one report on standard output, and ends. It is started in the jail,
//! with the folder of the file and nothing else.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use crate::sql::sqlite::{self, SqliteTask};
use crate::sql::{SqlAnswer, SqlBounds, SqlFault, SqlFaultKind, SqlMode, limit};

/// The first argument of such a process.
const MARKER: &str = "__ringfence-sqlite";

/// The version of what is said: the file of this program may be replaced while it runs.
const VERSION: &str = "1";

/// The arguments that make this program such a process.
#[must_use]
pub fn arguments() -> [String; 2] {
    [MARKER.to_owned(), VERSION.to_owned()]
}

/// What such a process is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SqliteOrder {
    /// The file, by its whole path.
    pub path: PathBuf,
    /// What the statement may do.
    pub mode: SqlMode,
    /// What to do with the file.
    pub task: SqliteTask,
    /// How much, and for how long.
    pub bounds: SqlBounds,
}

/// What it did.
#[derive(Debug, Serialize, Deserialize)]
enum SqliteReport {
    Answer(SqlAnswer),
    Fault(SqlFault),
}

/// If these are the arguments of such a process it is one now, and this is its exit code;
/// otherwise nothing has happened.
pub fn sqlite_main(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != MARKER {
        return None;
    }
    // There is nowhere to print to.
    std::panic::set_hook(Box::new(|_| {}));
    let is_current = arguments.next().is_some_and(|version| version == VERSION);
    Some(match is_current.then(serve) {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(_)) | None => ExitCode::FAILURE,
    })
}

fn serve() -> io::Result<()> {
    let mut text = Vec::new();
    let most = u64::try_from(limit::SQLITE_ORDER_BYTES_MAX).unwrap_or(u64::MAX);
    io::stdin().lock().take(most).read_to_end(&mut text)?;
    let order: SqliteOrder = serde_json::from_slice(&text)?;
    let report = match sqlite::run(&order.path, order.mode, &order.task, order.bounds) {
        Ok(answer) => SqliteReport::Answer(answer),
        Err(fault) => SqliteReport::Fault(fault),
    };
    let mut out = io::stdout().lock();
    out.write_all(&serde_json::to_vec(&report)?)?;
    out.flush()
}

/// The order as the process reads it.
///
/// # Errors
/// The statement and its values are too long together.
pub fn write_order(order: &SqliteOrder) -> Result<Vec<u8>, SqlFault> {
    let text = serde_json::to_vec(order).unwrap_or_default();
    if text.is_empty() || text.len() >= limit::SQLITE_ORDER_BYTES_MAX {
        let message = "the statement and its values are too long";
        return Err(SqlFault::new(SqlFaultKind::Statement, message));
    }
    Ok(text)
}

/// What a process reported. It ran what others wrote, so its words are checked: a report
/// beyond the bounds of its order is none.
///
/// # Errors
/// It reported a fault, or nothing that can be believed.
pub fn read_report(report: &[u8], bounds: SqlBounds) -> Result<SqlAnswer, SqlFault> {
    let broken = || {
        let message = "the process that opened the database failed; the file may be damaged";
        SqlFault::new(SqlFaultKind::Database, message)
    };
    if report.len() > limit::SQLITE_REPORT_BYTES_MAX {
        return Err(broken());
    }
    let report: SqliteReport = serde_json::from_slice(report).map_err(|_| broken())?;
    match report {
        SqliteReport::Fault(fault) => Err(SqlFault::new(fault.kind, fault.message)),
        SqliteReport::Answer(answer) => {
            let width = answer.columns.len();
            let is_sound = width <= limit::SQL_COLUMNS_MAX
                && answer.rows.len() <= bounds.rows_max
                && answer
                    .rows
                    .iter()
                    .all(|row| row.len() == width && row.iter().all(crate::sql::is_parameter));
            is_sound.then_some(answer).ok_or_else(broken)
        }
    }
}
