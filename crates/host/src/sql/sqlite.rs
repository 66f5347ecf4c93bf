//! SQLite, inside a process of its own.
//!
//! The file may come from anyone, so nothing in it is believed: it is opened without
//! following links, with SQLite's defensive settings, limits far below its own, a clock
//! it cannot miss, and an authorizer that knows the mode. What a flaw of SQLite gives an
//! attacker is a process in the jail.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, Row, Statement};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::sql::rows::{RowSink, bytes, integer, real};
use crate::sql::{SqlAnswer, SqlBounds, SqlFault, SqlFaultKind, SqlMode, limit};

mod allowed;

/// What is to be done with a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SqliteTask {
    /// One statement and the values for its parameters.
    Statement(String, Vec<Value>),
    /// The tables and views.
    Tables,
    /// The columns, indexes and references of one table.
    Describe(String),
}

/// Opens a file and does one thing with it.
///
/// # Errors
/// The file is none of SQLite's, the mode does not let the statement, it is wrong, or the
/// time is over.
pub fn run(
    path: &Path,
    mode: SqlMode,
    task: &SqliteTask,
    bounds: SqlBounds,
) -> Result<SqlAnswer, SqlFault> {
    let deadline = Instant::now() + Duration::from_millis(bounds.time_ms);
    let keeps_journal = mode != SqlMode::Read && has_file(path, "-journal");
    let hardened = |mut connection| {
        let kept = match keeps_journal {
            true => keep_journal(&connection),
            false => Ok(()),
        };
        let done = kept.and_then(|()| harden(&mut connection, mode, deadline));
        done.map(|()| connection).map_err(|error| explain(&error))
    };
    let mut connection = hardened(open(path, mode)?)?;
    if mode == SqlMode::Read && lacks_log(&connection, path) {
        connection = hardened(open_unlogged(path)?)?;
    }
    match task {
        SqliteTask::Statement(statement, parameters) => {
            execute(&connection, mode, statement, parameters, bounds)
        }
        SqliteTask::Tables => execute(&connection, mode, TABLES, &[], bounds),
        SqliteTask::Describe(table) => {
            let name = [Value::from(table.as_str())];
            let answer = execute(&connection, mode, DESCRIBE, &name, bounds)?;
            match answer.rows.is_empty() {
                true => Err(SqlFault::new(
                    SqlFaultKind::Statement,
                    format!("there is no table `{}`", table),
                )),
                false => Ok(answer),
            }
        }
    }
}

const TABLES: &str = "SELECT name, type FROM sqlite_schema \
    WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";

/// One row for each column, then for each index and for each column that refers to another
/// table: what an author of statements needs, in one answer.
const DESCRIBE: &str = "SELECT 'column' AS kind, name, type, \"notnull\" AS required, \
        dflt_value AS preset, pk AS key_position, NULL AS refers_to FROM pragma_table_xinfo(?1) \
    UNION ALL SELECT 'index', name, NULL, \"unique\", NULL, NULL, NULL FROM pragma_index_list(?1) \
    UNION ALL SELECT 'reference', \"from\", NULL, NULL, NULL, NULL, \
        \"table\" || coalesce('.' || \"to\", '') FROM pragma_foreign_key_list(?1)";

/// Links lead out of the folder, and one thread needs no locks.
const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX.union(OpenFlags::SQLITE_OPEN_NOFOLLOW);

/// Only `Admin` makes a file that is not there: a new database is a change of what tables
/// there are.
fn open(path: &Path, mode: SqlMode) -> Result<Connection, SqlFault> {
    let flags = match mode {
        SqlMode::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        SqlMode::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        SqlMode::Admin => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    Connection::open_with_flags(path, flags | FLAGS).map_err(|error| explain(&error))
}

/// Whether the file has a write-ahead log that was folded in and removed. SQLite would make
/// it again to read, which a folder that is only read does not let it.
fn lacks_log(connection: &Connection, path: &Path) -> bool {
    let read = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    let is_unopened = matches!(
        &read,
        Err(Error::SqliteFailure(failure, _)) if failure.code == ErrorCode::CannotOpen
    );
    is_unopened && ["-wal", "-journal"].iter().all(|end| !has_file(path, end))
}

fn has_file(path: &Path, end: &str) -> bool {
    let mut beside = path.as_os_str().to_owned();
    beside.push(end);
    // A link that leads nowhere counts as there.
    std::fs::symlink_metadata(beside).is_ok()
}

/// A journal that is there stays, emptied: in a folder of the operator's the process can make
/// and remove none. Before the file is first read, so that it holds for a journal that a
/// program left when it was killed, too. A database with a write-ahead log keeps its log.
fn keep_journal(connection: &Connection) -> Result<(), Error> {
    connection.pragma_update_and_check(None, "journal_mode", "TRUNCATE", |_| Ok(()))
}

/// All of the database is in its file, so it is read as it stands.
fn open_unlogged(path: &Path) -> Result<Connection, SqlFault> {
    let mut address = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                address.push(char::from(*byte));
            }
            other => address.push_str(&format!("%{other:02x}")),
        }
    }
    address.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | FLAGS;
    Connection::open_with_flags(address, flags).map_err(|error| explain(&error))
}

/// Everything that is set before the caller's statement is looked at.
fn harden(connection: &mut Connection, mode: SqlMode, deadline: Instant) -> Result<(), Error> {
    for (setting, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, false),
        (
            DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER,
            mode != SqlMode::Read,
        ),
    ] {
        let is_set = connection.set_db_config(setting, value)?;
        if is_set != value {
            return Err(Error::InvalidQuery);
        }
    }
    set_limits(connection)?;
    let left = deadline.saturating_duration_since(Instant::now());
    connection.busy_timeout(left.min(Duration::from_millis(limit::SQLITE_BUSY_MS)))?;
    // What the file says about its own cells is checked, nothing of it is mapped into
    // memory, and what does not fit the heap is an error, not a swap file.
    for (pragma, value) in [
        ("cell_size_check", 1_i64),
        ("mmap_size", 0),
        ("temp_store", 2),
        (
            "hard_heap_limit",
            i64::from(number(limit::SQLITE_HEAP_BYTES_MAX)),
        ),
        ("query_only", i64::from(mode == SqlMode::Read)),
    ] {
        connection
            .pragma_update_and_check(None, pragma, value, |_| Ok(()))
            .or_else(|error| {
                match error {
                    // Some answer with their new value, some with nothing.
                    Error::QueryReturnedNoRows => Ok(()),
                    error => Err(error),
                }
            })?;
    }
    let steps = number(limit::SQLITE_PROGRESS_STEPS);
    connection.progress_handler(steps, Some(move || Instant::now() >= deadline))?;
    connection.authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| {
        allowed::judge(mode, &context)
    }))
}

/// A bound as SQLite wants it.
fn number(bound: usize) -> i32 {
    i32::try_from(bound).unwrap_or(i32::MAX)
}

fn set_limits(connection: &Connection) -> Result<(), Error> {
    for (bound, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, limit::SQLITE_VALUE_BYTES_MAX),
        (
            Limit::SQLITE_LIMIT_SQL_LENGTH,
            model::limits::SQL_STATEMENT_BYTES_MAX,
        ),
        (Limit::SQLITE_LIMIT_COLUMN, limit::SQL_COLUMNS_MAX),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, limit::SQLITE_DEPTH_MAX),
        (
            Limit::SQLITE_LIMIT_COMPOUND_SELECT,
            limit::SQLITE_COMPOUND_MAX,
        ),
        (
            Limit::SQLITE_LIMIT_FUNCTION_ARG,
            limit::SQLITE_ARGUMENTS_MAX,
        ),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (
            Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH,
            limit::SQLITE_PATTERN_BYTES_MAX,
        ),
        (
            Limit::SQLITE_LIMIT_VARIABLE_NUMBER,
            limit::SQL_PARAMETERS_MAX,
        ),
        (
            Limit::SQLITE_LIMIT_TRIGGER_DEPTH,
            limit::SQLITE_TRIGGERS_MAX,
        ),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(bound, number(value))?;
    }
    Ok(())
}

fn execute(
    connection: &Connection,
    mode: SqlMode,
    statement: &str,
    parameters: &[Value],
    bounds: SqlBounds,
) -> Result<SqlAnswer, SqlFault> {
    // Refuses several statements.
    let prepared = connection.prepare(statement);
    let mut prepared = prepared.map_err(|error| explain(&error))?;
    if mode == SqlMode::Read && !prepared.readonly() {
        let message = "the statement would change the database, which was opened to read";
        return Err(SqlFault::new(SqlFaultKind::Refused, message));
    }
    bind(&mut prepared, parameters)?;
    let columns: Vec<_> = prepared.column_names().map(str::to_owned).collect();
    let width = columns.len();
    let mut sink = RowSink::new(columns, bounds);
    let before = connection.total_changes();
    let mut rows = prepared.raw_query();
    let mut is_wanted = true;
    loop {
        match rows.next() {
            Ok(Some(row)) if is_wanted => {
                is_wanted = sink.push(values(row, width).map_err(|error| explain(&error))?);
                // What only reads is left where it is; what changes rows is seen through, or
                // it would change only some.
                if !is_wanted && mode == SqlMode::Read {
                    break;
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => return Err(explain(&error)),
        }
    }
    drop(rows);
    let changed = connection.total_changes().saturating_sub(before);
    Ok(sink.finish((mode != SqlMode::Read).then_some(changed)))
}

fn bind(prepared: &mut Statement<'_>, parameters: &[Value]) -> Result<(), SqlFault> {
    let wanted = prepared.parameter_count();
    // SQLite would bind NULL to what is missing.
    if wanted != parameters.len() {
        let message = format!(
            "the statement has {} and {} given",
            model::text::count(wanted, "parameter"),
            match parameters.len() {
                1 => "1 value was".to_owned(),
                count => format!("{count} values were"),
            }
        );
        return Err(SqlFault::new(SqlFaultKind::Statement, message));
    }
    for (index, value) in parameters.iter().enumerate() {
        let at = index + 1;
        let bound = match value {
            Value::Null => prepared.raw_bind_parameter(at, rusqlite::types::Null),
            Value::Bool(is_true) => prepared.raw_bind_parameter(at, is_true),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => prepared.raw_bind_parameter(at, whole),
                None => prepared.raw_bind_parameter(at, number.as_f64()),
            },
            Value::String(text) => prepared.raw_bind_parameter(at, text),
            Value::Array(_) | Value::Object(_) => {
                let message =
                    format!("value {at} is a list or an object; only single values can be bound");
                return Err(SqlFault::new(SqlFaultKind::Statement, message));
            }
        };
        bound.map_err(|error| explain(&error))?;
    }
    Ok(())
}

fn values(row: &Row<'_>, width: usize) -> Result<Vec<Value>, Error> {
    let value = |index| {
        Ok(match row.get_ref(index)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => integer(number),
            ValueRef::Real(number) => real(number),
            // A file of others may say that anything is a text.
            ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
            ValueRef::Blob(blob) => bytes(blob),
        })
    };
    (0..width).map(value).collect()
}

/// What SQLite said, as a fault.
fn explain(error: &Error) -> SqlFault {
    let (code, message) = match error {
        Error::SqliteFailure(failure, message) => {
            let words = message.clone().unwrap_or_else(|| failure.to_string());
            (failure.code, words)
        }
        Error::SqlInputError { error, msg, .. } => (error.code, msg.clone()),
        Error::MultipleStatement => {
            let message = "there is more than one statement; give them one by one";
            return SqlFault::new(SqlFaultKind::Refused, message);
        }
        other => {
            return SqlFault::new(SqlFaultKind::Statement, other.to_string());
        }
    };
    let refused = |words: &str| SqlFault::new(SqlFaultKind::Refused, format!("{words}: {message}"));
    match code {
        ErrorCode::AuthorizationForStatementDenied => refused("the statement may not do this"),
        ErrorCode::ReadOnly => refused("the database was opened to read"),
        ErrorCode::OperationInterrupted => SqlFault::late(),
        ErrorCode::CannotOpen
        | ErrorCode::NotADatabase
        | ErrorCode::DatabaseCorrupt
        | ErrorCode::PermissionDenied
        | ErrorCode::SystemIoFailure => SqlFault::new(
            SqlFaultKind::Database,
            format!("the file cannot be used as a database: {message}"),
        ),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => SqlFault::new(
            SqlFaultKind::Timeout,
            "another program writes to the database just now; try again",
        ),
        _ => SqlFault::new(SqlFaultKind::Statement, message),
    }
}
