//! The database file: where it is, what it holds, how a connection is set up.
//!
//! The file is never opened here other than by SQLite: closing a second handle
//! would drop the locks SQLite holds on it.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::StoreError;
use crate::limit;

/// Says that the file is ours: `RFNC`.
const APPLICATION_ID: i64 = 0x5246_4e43;

/// How long we wait before we ask again whether others are done with a new file.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Each step from one schema to the next; `user_version` counts them.
const MIGRATIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("approvals.sql"),
    include_str!("keys.sql"),
    include_str!("callers.sql"),
    include_str!("scripts.sql"),
    include_str!("script_steps.sql"),
    include_str!("mark.sql"),
    include_str!("who_answers.sql"),
    include_str!("tool_grants.sql"),
];

/// The database's file.
pub(crate) fn path(home: &Path) -> PathBuf {
    home.join("ringfence.db")
}

/// Makes a folder that only its owner can enter. One that exists stays as it is:
/// it may be a folder others need, named by mistake.
pub(crate) fn make_folder(path: &Path) -> Result<(), StoreError> {
    if !path.is_dir() {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path);
        made.map_err(|error| StoreError::file("create", path, error))?;
    }
    Ok(())
}

/// Makes home and database if absent, brings the schema up to date, and gives the
/// connection that writes.
pub(crate) fn prepare(home: &Path) -> Result<Connection, StoreError> {
    make_folder(home)?;
    let path = path(home);
    make_file(&path)?;
    let mut connection = connect(home, Access::Write)?;
    migrate(&mut connection, &path)?;
    refuse_older(&connection, &path)?;
    Ok(connection)
}

/// Makes the file of a database if it is absent, for nobody but its owner.
pub(crate) fn make_file(path: &Path) -> Result<(), StoreError> {
    let mut options = fs::OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => narrow(path),
        Err(error) => Err(StoreError::file("create", path, error)),
    }
}

/// Before the log, the audit was a table here. Going on without it would begin a
/// second chain and say nothing about the first.
fn refuse_older(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'records')";
    let has_records: bool = connection
        .query_row(sql, [], |row| row.get(0))
        .map_err(StoreError::database("prepare the database"))?;
    match has_records {
        true => Err(StoreError::Older {
            path: path.to_owned(),
        }),
        false => Ok(()),
    }
}

/// Takes away what others may do; the owner's own bits stay as they are.
fn narrow(path: &Path) -> Result<(), StoreError> {
    let fail = |error| StoreError::file("protect", path, error);
    let mode = fs::metadata(path).map_err(fail)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700)).map_err(fail)
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let fail = StoreError::database("prepare the database");
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let version = |connection: &Connection| {
        connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))
    };
    let found = version(connection).map_err(&fail)?;
    let owner: i64 = connection
        .query_row("PRAGMA application_id", [], |row| row.get(0))
        .map_err(&fail)?;
    if (found > 0 || owner != 0) && owner != APPLICATION_ID {
        return Err(StoreError::Foreign {
            path: path.to_owned(),
        });
    }
    if found > known {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known,
        });
    }
    if found == known {
        return Ok(());
    }
    keep_a_log(connection).map_err(&fail)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(&fail)?;
    // Another process may have been faster.
    let found = version(&transaction).map_err(&fail)?;
    let done = usize::try_from(found).unwrap_or(0);
    for step in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(step).map_err(&fail)?;
    }
    transaction
        .pragma_update(None, "application_id", APPLICATION_ID)
        .map_err(&fail)?;
    transaction
        .pragma_update(None, "user_version", known)
        .map_err(&fail)?;
    transaction.commit().map_err(&fail)
}

/// Has SQLite write changes to a log of their own first. While somebody else
/// prepares the same file, SQLite says busy at once and does not wait as it does
/// elsewhere; so we do.
pub(crate) fn keep_a_log(connection: &Connection) -> rusqlite::Result<()> {
    let until = Instant::now() + Duration::from_millis(limit::BUSY_MS_MAX);
    loop {
        let changed = connection.pragma_update(None, "journal_mode", "wal");
        let is_busy = matches!(&changed, Err(error)
            if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy));
        if !is_busy || Instant::now() >= until {
            return changed;
        }
        std::thread::sleep(BUSY_PAUSE);
    }
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A connection of one part of the store, made when it is first used: most commands
/// need few of them, and somebody waits.
#[derive(Debug)]
pub(crate) struct Lazily {
    /// Without links.
    path: PathBuf,
    /// SQLite's word for how soon a change is on the disk.
    synchronous: &'static str,
    made: OnceLock<Mutex<Connection>>,
}

impl Lazily {
    /// `home` is without links.
    pub(crate) fn new(home: &Path, synchronous: &'static str) -> Lazily {
        Lazily {
            path: path(home),
            synchronous,
            made: OnceLock::new(),
        }
    }

    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, Connection>, StoreError> {
        let made = self.made()?.lock();
        Ok(made.unwrap_or_else(PoisonError::into_inner))
    }

    /// Nothing if somebody else has it, or it cannot be made.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Connection>> {
        self.made().ok()?.try_lock().ok()
    }

    fn made(&self) -> Result<&Mutex<Connection>, StoreError> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let made = connect_to(&self.path, Access::Write)?;
        made.pragma_update(None, "synchronous", self.synchronous)
            .map_err(StoreError::database("open the database"))?;
        // Another thread may have been faster; then its own is used.
        Ok(self.made.get_or_init(|| Mutex::new(made)))
    }
}

/// A connection to the database of a home.
pub(crate) fn connect(home: &Path, access: Access) -> Result<Connection, StoreError> {
    let home = home
        .canonicalize()
        .map_err(|error| StoreError::file("find", home, error))?;
    connect_to(&path(&home), access)
}

/// A connection to a file without links in its path, bounded in how long it waits
/// for others.
pub(crate) fn connect_to(path: &Path, access: Access) -> Result<Connection, StoreError> {
    let fail = StoreError::database("open the database");
    let flags = match access {
        Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags).map_err(&fail)?;
    connection
        .busy_timeout(Duration::from_millis(limit::BUSY_MS_MAX))
        .map_err(&fail)?;
    connection
        .execute_batch("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;")
        .map_err(&fail)?;
    // What the log holds is synced when we close; moving it into the database can
    // wait for whoever opens next.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(&fail)?;
    Ok(connection)
}
