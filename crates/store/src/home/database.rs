//! The database file: where it is, what it holds, how a connection is set up.
//!
//! Only SQLite opens this file: closing a second handle would release the locks that
//! SQLite holds on it.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use model::sync::lock;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::StoreError;
use crate::home::database_file;
use crate::home::files::make_folder;
use crate::limit;

/// Marks the file as ours: `RFNC`.
const APPLICATION_ID: i64 = 0x5246_4e43;

/// The pause before trying again while another process creates the file.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Each step from one schema to the next; `user_version` counts them.
const MIGRATIONS: &[&str] = &[
    include_str!("schema/schema.sql"),
    include_str!("schema/approvals.sql"),
    include_str!("schema/keys.sql"),
    include_str!("schema/callers.sql"),
    include_str!("schema/scripts.sql"),
    include_str!("schema/script_steps.sql"),
    include_str!("schema/mark.sql"),
    include_str!("schema/who_answers.sql"),
    include_str!("schema/tool_grants.sql"),
    include_str!("schema/servers.sql"),
    include_str!("schema/former_keys.sql"),
    include_str!("schema/jobs.sql"),
    include_str!("schema/signed_heads.sql"),
    include_str!("schema/people.sql"),
    include_str!("schema/waiting_scripts.sql"),
];

/// Creates home and database if absent, brings the schema up to date, and returns a
/// connection for writing.
pub(crate) fn prepare(home: &Path) -> Result<Connection, StoreError> {
    make_folder(home)?;
    let path = database_file(home);
    make_file(&path)?;
    let mut connection = connect(home, ConnectionMode::Write)?;
    migrate(&mut connection, &path)?;
    Ok(connection)
}

/// Creates the file of a database if absent, readable only by its owner.
pub(crate) fn make_file(path: &Path) -> Result<(), StoreError> {
    let mut options = fs::OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        // It may have been copied here with a wider mode.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => narrow(path),
        Err(error) => Err(StoreError::file("create", path, error)),
    }
}

/// Refuses a database from before the log, when the audit was a table. Continuing
/// would start a second chain and lose the first without a word.
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

/// Takes permissions away from other users; the owner's stay as they are.
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
    // An empty file has neither number. Anything else that is not ours is left alone.
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
    // Before anything is changed: what is refused stays as it was.
    refuse_older(connection, path)?;
    if found == known {
        return Ok(());
    }
    // Outside of a transaction, where SQLite does not allow the change.
    keep_a_log(connection).map_err(&fail)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(&fail)?;
    // Another process may have done it meanwhile.
    // Under the lock of the transaction: the same steps twice would fail
    // or, worse, succeed.
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

/// Switches to a write-ahead log. While another process creates the same file, SQLite
/// answers "busy" at once here and ignores its busy timeout, so this waits itself.
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
pub(crate) enum ConnectionMode {
    Read,
    Write,
}

/// A connection that is opened when it is first used: most commands need few of them,
/// and opening each would make every command slower.
#[derive(Debug)]
pub(crate) struct LazyConnection {
    /// Contains no symbolic links.
    path: PathBuf,
    /// SQLite's `synchronous` setting: how soon a change is on the disk.
    synchronous: &'static str,
    made: OnceLock<Mutex<Connection>>,
}

impl LazyConnection {
    /// `home` contains no symbolic links.
    pub(crate) fn new(home: &Path, synchronous: &'static str) -> LazyConnection {
        LazyConnection {
            path: database_file(home),
            synchronous,
            made: OnceLock::new(),
        }
    }

    /// One that is open already.
    pub(crate) fn made_of(connection: Connection) -> LazyConnection {
        LazyConnection {
            path: PathBuf::new(),
            synchronous: "FULL",
            made: OnceLock::from(Mutex::new(connection)),
        }
    }

    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, Connection>, StoreError> {
        Ok(lock(self.made()?))
    }

    /// Nothing if another thread uses it, or it cannot be opened.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Connection>> {
        self.made().ok()?.try_lock().ok()
    }

    fn made(&self) -> Result<&Mutex<Connection>, StoreError> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let made = connect_to(&self.path, ConnectionMode::Write)?;
        made.pragma_update(None, "synchronous", self.synchronous)
            .map_err(StoreError::database("open the database"))?;
        // If another thread was faster, its connection is used.
        Ok(self.made.get_or_init(|| Mutex::new(made)))
    }
}

/// A connection to the database of a home.
pub(crate) fn connect(home: &Path, access: ConnectionMode) -> Result<Connection, StoreError> {
    let home = home
        .canonicalize()
        .map_err(|error| StoreError::file("find", home, error))?;
    connect_to(&database_file(&home), access)
}

/// A connection to a file without symbolic links in its path. Its wait for other
/// processes is bounded.
pub(crate) fn connect_to(path: &Path, access: ConnectionMode) -> Result<Connection, StoreError> {
    let fail = StoreError::database("open the database");
    let flags = match access {
        ConnectionMode::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        ConnectionMode::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    // Attack: a link in place of the database would make us write to another file. The
    // mutex is ours, so SQLite needs none.
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags).map_err(&fail)?;
    connection
        .busy_timeout(Duration::from_millis(limit::BUSY_MS_MAX))
        .map_err(&fail)?;
    connection
        // An edited schema must not call functions with side effects when
        // it is merely read.
        .execute_batch("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;")
        .map_err(&fail)?;
    // The write-ahead log is durable as it is; the next process that opens the
    // database can move it.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(&fail)?;
    Ok(connection)
}

/// A sequence or position as SQLite keeps it.
pub(crate) fn to_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A sequence or position as we count it. A value below zero is not ours; it counts
/// as 0, before the first record.
pub(crate) fn from_integer(integer: i64) -> u64 {
    u64::try_from(integer).unwrap_or(0)
}
