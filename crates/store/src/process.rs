//! Who is alive. Each process that has the store open holds a lock on a file of
//! its own; the kernel lets go of it however the process ends. What a dead one
//! left open is closed as crashed by whoever comes next.
//!
//! The lock is one of the process (`fcntl`), not of the open file (`flock`): a
//! worker that was being started when its parent died holds copies of all
//! descriptors for a moment, and would keep the dead alive. The price is that the
//! kernel never tells a process about its own locks, so it remembers them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::audit::{Closing, Failure, Status, spell};
use rusqlite::{Connection, params};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use uuid::Uuid;

use crate::database::make_folder;
use crate::error::StoreError;
use crate::ledger::{Ledger, NewEnd, now_ms, place};
use crate::limit;

const DOING: &str = "look after other processes";

/// The locks this process holds, by their ids: one home can have several paths. It must not open one of these files again:
/// closing it would let go of the lock.
static OWN: Mutex<BTreeSet<OsString>> = Mutex::new(BTreeSet::new());

fn own() -> MutexGuard<'static, BTreeSet<OsString>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This process's sign of life. Dropped, it is gone.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) number: i64,
    _lock: Lock,
}

/// A lock file that is held.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    _file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        if let Some(id) = self.path.file_name() {
            own().remove(id);
        }
    }
}

/// Takes a lock, then tells the database about it: in this order nobody can take
/// us for dead.
pub(crate) fn begin(home: &Path, connection: &Connection) -> Result<Life, StoreError> {
    let folder = home.join("locks");
    make_folder(&folder)?;
    let id = Uuid::new_v4().to_string();
    let lock = take_lock(folder.join(&id))?;
    let fail = StoreError::database(DOING);
    connection
        .execute(
            "INSERT INTO processes (id, first)
             VALUES (?1, (SELECT coalesce(max(sequence), 0) + 1 FROM records))",
            [&id],
        )
        .map_err(&fail)?;
    Ok(Life {
        number: connection.last_insert_rowid(),
        _lock: lock,
    })
}

/// Leaves in peace, with nothing left open.
pub(crate) fn end(connection: &Connection, number: i64) -> Result<(), StoreError> {
    connection
        .execute("DELETE FROM processes WHERE number = ?1", [number])
        .map(|_| ())
        .map_err(StoreError::database(DOING))
}

fn take_lock(path: PathBuf) -> Result<Lock, StoreError> {
    let fail = |error| StoreError::file("lock", &path, error);
    own().extend(path.file_name().map(OsString::from));
    loop {
        let file = File::create(&path).map_err(fail)?;
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| fail(error.into()))?;
        // Somebody who cleans up may have removed it before it was locked.
        let held = file.metadata().map_err(fail)?;
        match fs::metadata(&path) {
            Ok(found) if found.ino() == held.ino() => return Ok(Lock { path, _file: file }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail(error)),
        }
    }
}

/// Closes what the dead left open. The answer is how many entries.
pub(crate) fn bury(home: &Path, ledger: &mut Ledger) -> Result<u64, StoreError> {
    let own = ledger.process();
    let others = others(ledger.connection(), own)?;
    remove_stray_locks(home, ledger.connection())?;
    let mut count = 0;
    for other in others {
        let path = home.join("locks").join(&other.id);
        match fate(&path)? {
            Fate::Alive => {}
            Fate::Dead(None) => count += close_all(ledger, &other)?,
            Fate::Dead(Some(_lock)) => {
                count += close_all(ledger, &other)?;
                let _ = fs::remove_file(&path);
            }
        }
    }
    ledger.act_for(own);
    Ok(count)
}

/// The other processes on the list.
fn others(connection: &Connection, own: i64) -> Result<Vec<Other>, StoreError> {
    let fail = StoreError::database(DOING);
    let mut statement = connection
        .prepare("SELECT number, id, first FROM processes WHERE number <> ?1 LIMIT ?2")
        .map_err(&fail)?;
    let processes_max = i64::try_from(limit::PROCESSES_MAX).unwrap_or(i64::MAX);
    let rows = statement
        .query_map([own, processes_max], |row| {
            Ok(Other {
                number: row.get(0)?,
                id: row.get(1)?,
                first: row.get(2)?,
            })
        })
        .map_err(&fail)?;
    rows.collect::<Result<_, _>>().map_err(&fail)
}

/// Locks of processes that died before they were listed, or after they left the
/// list.
fn remove_stray_locks(home: &Path, connection: &Connection) -> Result<(), StoreError> {
    let folder = home.join("locks");
    let fail = |error| StoreError::file("read", &folder, error);
    let mut statement = connection
        .prepare("SELECT EXISTS (SELECT 1 FROM processes WHERE id = ?1)")
        .map_err(StoreError::database(DOING))?;
    for entry in fs::read_dir(&folder)
        .map_err(fail)?
        .take(limit::PROCESSES_MAX)
    {
        let path = entry.map_err(fail)?.path();
        let id = path.file_name().and_then(|name| name.to_str());
        let is_listed: bool = statement
            .query_row([id], |row| row.get(0))
            .map_err(StoreError::database(DOING))?;
        // Held while it is removed, so that its owner sees that it is gone.
        if !is_listed && let Ok(Fate::Dead(Some(_lock))) = fate(&path) {
            let _ = fs::remove_file(&path);
        }
    }
    Ok(())
}

struct Other {
    number: i64,
    id: String,
    first: i64,
}

enum Fate {
    Alive,
    /// With the lock, if its file is still there.
    Dead(Option<File>),
}

fn fate(path: &Path) -> Result<Fate, StoreError> {
    let fail = |error| StoreError::file("look at", path, error);
    match fs::symlink_metadata(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Fate::Dead(None)),
        Err(error) => return Err(fail(error)),
    }
    if path.file_name().is_some_and(|id| own().contains(id)) {
        return Ok(Fate::Alive);
    }
    // A lock needs a file that may be written.
    let file = match File::options().write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Fate::Dead(None)),
        Err(error) => return Err(fail(error)),
    };
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Fate::Dead(Some(file))),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(Fate::Alive),
        Err(error) => Err(StoreError::file("lock", path, error.into())),
    }
}

fn close_all(ledger: &mut Ledger, other: &Other) -> Result<u64, StoreError> {
    ledger.act_for(other.number);
    match ledger.begin() {
        Ok(()) => {}
        // A third process was faster.
        Err(StoreError::TakenForDead) => {
            ledger.roll_back();
            return Ok(0);
        }
        Err(error) => {
            ledger.roll_back();
            return Err(error);
        }
    }
    let closed = close_within(ledger, other).and_then(|count| {
        ledger.commit()?;
        Ok(count)
    });
    closed.inspect_err(|_| ledger.roll_back())
}

fn close_within(ledger: &mut Ledger, other: &Other) -> Result<u64, StoreError> {
    ledger.index()?;
    let open = open_entries(ledger.connection(), other)?;
    let mut count = 0;
    for (opened, call_id) in open {
        let error = Failure {
            code: "call.crashed".to_owned(),
            message: "the process ended before the call did".to_owned(),
        };
        let closing = Closing::bare(now_ms(), Status::Crashed, Some(error));
        let end = NewEnd {
            opened: place(opened),
            call_id,
            status: Status::Crashed,
            part: spell::closing(&closing)?,
        };
        ledger.close(&end)?;
        count += 1;
    }
    end(ledger.connection(), other.number)?;
    Ok(count)
}

fn open_entries(connection: &Connection, other: &Other) -> Result<Vec<(i64, String)>, StoreError> {
    let fail = StoreError::database(DOING);
    let mut statement = connection
        .prepare(
            "SELECT opened, call_id FROM entries
             WHERE opened >= ?1 AND closed IS NULL AND process = ?2 ORDER BY opened",
        )
        .map_err(&fail)?;
    let rows = statement
        .query_map(params![other.first, other.number], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .map_err(&fail)?;
    rows.collect::<Result<_, _>>().map_err(&fail)
}
