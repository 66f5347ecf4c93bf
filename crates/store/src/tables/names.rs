//! Names in the database, read without taking part in the home: no file is made, no
//! schema changed, no process registered.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::StoreError;
use crate::home::database_file;
use crate::postgres::Cluster;
use crate::postgres::address::Address;
use crate::sql::{Executor, values};

/// How long to wait for a process that writes.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Callers that have a key or a row of their own, at most so many. A home without a
/// database has none.
pub fn callers(home: &Path, count_max: usize) -> Result<BTreeSet<String>, StoreError> {
    let fail = StoreError::sql("read the names of callers");
    let count_max = i64::try_from(count_max).unwrap_or(i64::MAX);
    let read = |executor: Executor<'_>| {
        let sql = "SELECT name FROM keys UNION SELECT shown FROM callers LIMIT ?1";
        executor.query(sql, values![count_max], |row| row.get(0))
    };
    let names: Vec<String> = if let Some(address) = Address::of(home)? {
        let cluster = Cluster::open(address)?;
        let pool = cluster.pool();
        pool.with(|session| read(Executor::Postgres(session)))
            .map_err(fail)?
    } else {
        match open(home)? {
            Some(connection) => read(Executor::Sqlite(&connection)).map_err(fail)?,
            None => Vec::new(),
        }
    };
    Ok(names.into_iter().collect())
}

/// A connection that cannot write. Without a write-ahead log there is nothing to share
/// with other processes, so SQLite need not make the files for it; with one they are
/// there already.
fn open(home: &Path) -> Result<Option<Connection>, StoreError> {
    let fail = StoreError::database("open the database");
    let Ok(home) = home.canonicalize() else {
        return Ok(None);
    };
    let path = database_file(&home);
    let mut log = path.clone().into_os_string();
    log.push("-wal");
    if !path.is_file() {
        return Ok(None);
    }
    let has_log = std::fs::metadata(log).is_ok_and(|about| about.len() > 0);
    let connection = match (has_log, path.to_str()) {
        (false, Some(text)) => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(address(text), flags)
        }
        (true, _) | (false, None) => {
            Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        }
    };
    let connection = connection.map_err(&fail)?;
    connection.busy_timeout(WAIT_MAX).map_err(&fail)?;
    Ok(Some(connection))
}

/// The path as SQLite reads addresses; `?`, `#` and `%` would end it or change it.
fn address(path: &str) -> String {
    let path = path.replace('%', "%25").replace('?', "%3f");
    format!("file:{}?immutable=1", path.replace('#', "%23"))
}
