//! Who is alive. Each process that has the store open holds a lock on a file of
//! its own; the kernel lets go of it however the process ends. What a dead one
//! left open is closed as crashed by whoever comes next.
//!
//! The lock is one of the process (`fcntl`), not of the open file (`flock`): a
//! worker that was being started when its parent died holds copies of all
//! descriptors for a moment, and would keep the dead alive. The price is that the
//! kernel never tells a process about its own locks, so it remembers them.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::record::audit::{Closing, Failure, Status, spell};
use rusqlite::Connection;
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use uuid::Uuid;

use crate::database::make_folder;
use crate::error::StoreError;
use crate::index::place;
use crate::ledger::{Ledger, NewEnd, now_ms};
use crate::limit;
use crate::log::Patience;

const DOING: &str = "look after other processes";

/// The locks this process holds, by their ids: one home can have several paths. It
/// must not open one of these files again: closing it would let go of the lock.
static OWN: Mutex<BTreeSet<OsString>> = Mutex::new(BTreeSet::new());

fn own() -> MutexGuard<'static, BTreeSet<OsString>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This process's sign of life. Dropped, it is gone.
#[derive(Debug)]
pub(crate) struct Life {
    pulse: Pulse,
    _lock: Lock,
}

impl Life {
    pub(crate) fn pulse(&self) -> &Pulse {
        &self.pulse
    }
}

/// A lock file that is held.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        if let Some(id) = self.path.file_name() {
            own().remove(id);
        }
    }
}

/// Who a process is, and how it finds out that others take it for dead.
#[derive(Clone, Debug)]
pub(crate) struct Pulse {
    id: Arc<str>,
    path: PathBuf,
    inode: u64,
}

impl Pulse {
    pub(crate) fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Whether our lock is still the one others look at.
    pub(crate) fn beats(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| found.ino() == self.inode)
    }
}

/// Takes a lock of our own, before anything is written in our name.
pub(crate) fn begin(home: &Path) -> Result<Life, StoreError> {
    let folder = home.join("locks");
    make_folder(&folder)?;
    let id = Uuid::new_v4().to_string();
    let lock = take_lock(folder.join(&id))?;
    let held = lock.file.metadata();
    let held = held.map_err(|error| StoreError::file("lock", &lock.path, error))?;
    Ok(Life {
        pulse: Pulse {
            id: Arc::from(id),
            path: lock.path.clone(),
            inode: held.ino(),
        },
        _lock: lock,
    })
}

fn take_lock(path: PathBuf) -> Result<Lock, StoreError> {
    let fail = |error| StoreError::file("lock", &path, error);
    own().extend(path.file_name().map(OsString::from));
    let start = Instant::now();
    loop {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(&path).map_err(fail)?;
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            // Somebody who cleans up was faster, and is about to remove it.
            Err(Errno::AGAIN | Errno::ACCESS)
                if start.elapsed() < Duration::from_millis(limit::BUSY_MS_MAX) =>
            {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            Err(error) => return Err(fail(error.into())),
        }
        // Somebody who cleans up may have removed it before it was locked.
        let held = file.metadata().map_err(fail)?;
        match fs::metadata(&path) {
            Ok(found) if found.ino() == held.ino() => return Ok(Lock { path, file }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail(error)),
        }
    }
}

/// Closes what the dead left open. The answer is how many entries.
pub(crate) fn bury(home: &Path, ledger: &mut Ledger) -> Result<u64, StoreError> {
    let folder = home.join("locks");
    // What takes long, such as an index made anew, keeps nobody from writing.
    ledger.index()?;
    ledger.begin(Patience::Bounded)?;
    let buried = bury_within(&folder, ledger);
    if buried.is_err() {
        ledger.roll_back();
    }
    let (count, locks) = buried?;
    // Held until their entries are closed, so that nobody does it twice.
    for (path, _lock) in locks {
        let _ = fs::remove_file(&path);
    }
    Ok(count)
}

/// The locks of the dead, which we hold now.
type Locks = Vec<(PathBuf, File)>;

fn bury_within(folder: &Path, ledger: &mut Ledger) -> Result<(u64, Locks), StoreError> {
    ledger.index_within()?;
    let locks = dead_locks(folder, ledger.process())?;
    let mut fates = HashMap::new();
    let mut count = 0;
    for open in open_entries(ledger.connection())? {
        let is_dead = match open.process {
            // Nobody says it is theirs, so nobody will end it.
            None => true,
            Some(process) if process == **ledger.process() => false,
            Some(process) => match fates.entry(process) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => {
                    let path = folder.join(unknown.key());
                    let is_ours = locks.iter().any(|(held, _)| *held == path);
                    *unknown.insert(is_ours || !path.exists())
                }
            },
        };
        if !is_dead {
            continue;
        }
        let error = Failure {
            code: "call.crashed".to_owned(),
            message: "the process ended before the call did".to_owned(),
        };
        let closing = Closing::bare(now_ms(), Status::Crashed, Some(error));
        ledger.close(&NewEnd {
            opened: open.opened,
            call_id: open.call_id,
            status: Status::Crashed,
            differs: false,
            part: spell::closing(&closing)?,
        })?;
        count += 1;
    }
    ledger.commit()?;
    Ok((count, locks))
}

/// Takes the locks that nobody holds any more.
fn dead_locks(folder: &Path, own: &str) -> Result<Locks, StoreError> {
    let fail = |error| StoreError::file("read", folder, error);
    let mut locks = Vec::new();
    for entry in fs::read_dir(folder)
        .map_err(fail)?
        .take(limit::PROCESSES_MAX)
    {
        let path = entry.map_err(fail)?.path();
        if path.ends_with(own) {
            continue;
        }
        if let Ok(Fate::Dead(Some(lock))) = fate(&path) {
            locks.push((path, lock));
        }
    }
    Ok(locks)
}

/// Whether a process of this home is gone. What cannot be told counts as alive.
pub(crate) fn is_dead(home: &Path, id: &str) -> bool {
    let path = home.join("locks").join(id);
    matches!(fate(&path), Ok(Fate::Dead(_)))
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

/// An entry without an end.
struct OpenEntry {
    opened: u64,
    call_id: String,
    process: Option<String>,
}

fn open_entries(connection: &Connection) -> Result<Vec<OpenEntry>, StoreError> {
    let fail = StoreError::database(DOING);
    let mut statement = connection
        .prepare(
            "SELECT opened, call_id, process FROM entries WHERE closed IS NULL ORDER BY opened",
        )
        .map_err(&fail)?;
    let rows = statement
        .query_map([], |row| {
            Ok(OpenEntry {
                opened: place(row.get(0)?),
                call_id: row.get(1)?,
                process: row.get(2)?,
            })
        })
        .map_err(&fail)?;
    rows.collect::<Result<_, _>>().map_err(&fail)
}
