//! Which processes of a home are alive. Each process that has the store open holds a
//! lock on a file of its own; the kernel releases it however the process ends. The
//! calls of a dead process are closed by the next one that opens the store.
//!
//! The lock belongs to the process (`fcntl`), not to the open file (`flock`): a
//! worker that was being started when its parent died holds copies of all
//! descriptors for a moment, and with `flock` the dead parent would look alive. The
//! price is that the kernel never tells a process about its own locks, so `OWN`
//! remembers them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use model::sync::lock;
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use uuid::Uuid;

use crate::error::StoreError;
use crate::home::files::make_folder;
use crate::home::lock_folder;
use crate::limit;

/// The lock files this process holds, by id, with the store that each uses: one home can
/// have several paths. It
/// must never open one of these files again: closing that second handle would
/// release the lock.
static OWN: Mutex<BTreeMap<OsString, String>> = Mutex::new(BTreeMap::new());

fn own() -> MutexGuard<'static, BTreeMap<OsString, String>> {
    lock(&OWN)
}

/// Keeps this process alive in the eyes of others until it is dropped.
#[derive(Debug)]
pub(crate) struct Liveness {
    identity: ProcessIdentity,
    lock: LockFile,
}

impl Liveness {
    pub(crate) fn identity(&self) -> &ProcessIdentity {
        &self.identity
    }

    /// Tells other processes of the home which store this one uses: its address, or nothing
    /// for the store of the home.
    pub(crate) fn tell_store(&self, address: Option<&str>) -> Result<(), StoreError> {
        let store = address.unwrap_or(HOME_STORE);
        let mut file = &self.lock.file;
        let told = file.write_all(store.as_bytes());
        told.map_err(|error| StoreError::file("write", &self.lock.path, error))?;
        if let Some(id) = self.lock.path.file_name() {
            own().insert(id.to_owned(), store.to_owned());
        }
        Ok(())
    }
}

/// What stands in the lock file of a process that uses the store of its home.
const HOME_STORE: &str = "home";

/// A lock file that is held.
#[derive(Debug)]
struct LockFile {
    path: PathBuf,
    file: File,
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Removed while it is still locked: unlocked, it would look like that
        // of a dead process.
        let _ = fs::remove_file(&self.path);
        if let Some(id) = self.path.file_name() {
            own().remove(id);
        }
    }
}

/// The id of a process, and how it notices that others took it for dead.
#[derive(Clone, Debug)]
pub(crate) struct ProcessIdentity {
    id: Arc<str>,
    path: PathBuf,
    inode: u64,
}

impl ProcessIdentity {
    pub(crate) fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Whether our lock file is still the one that others look at.
    pub(crate) fn has_lock(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| found.ino() == self.inode)
    }
}

/// Takes a lock for this process, before anything is written in its name.
pub(crate) fn begin(home: &Path) -> Result<Liveness, StoreError> {
    let folder = lock_folder(home);
    make_folder(&folder)?;
    let id = Uuid::new_v4().to_string();
    let lock = take_lock(folder.join(&id))?;
    let held = lock.file.metadata();
    let held = held.map_err(|error| StoreError::file("lock", &lock.path, error))?;
    Ok(Liveness {
        identity: ProcessIdentity {
            id: Arc::from(id),
            path: lock.path.clone(),
            inode: held.ino(),
        },
        lock,
    })
}

fn take_lock(path: PathBuf) -> Result<LockFile, StoreError> {
    let fail = |error| StoreError::file("lock", &path, error);
    // Before the file exists: from its first moment `fate` must not open
    // it in this process.
    let id = path.file_name().map(OsString::from);
    own().extend(id.map(|id| (id, String::new())));
    let start = Instant::now();
    loop {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(&path).map_err(fail)?;
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            // Another process cleans up, has locked it and is about to remove it.
            Err(Errno::AGAIN | Errno::ACCESS)
                if start.elapsed() < Duration::from_millis(limit::BUSY_MS_MAX) =>
            {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            Err(error) => return Err(fail(error.into())),
        }
        // Another process that cleans up may have removed it before we locked it.
        let held = file.metadata().map_err(fail)?;
        match fs::metadata(&path) {
            Ok(found) if found.ino() == held.ino() => return Ok(LockFile { path, file }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail(error)),
        }
    }
}

/// Lock files of dead processes, locked by us now.
pub(crate) type DeadLocks = Vec<(PathBuf, File)>;

/// Locks the lock files that no live process holds.
pub(crate) fn dead_locks(home: &Path, own: &str) -> Result<DeadLocks, StoreError> {
    let folder = lock_folder(home);
    let fail = |error| StoreError::file("read", &folder, error);
    let mut locks = Vec::new();
    for entry in fs::read_dir(&folder)
        .map_err(fail)?
        // A folder full of strange files must not keep the store from opening.
        .take(limit::PROCESSES_MAX)
    {
        let path = entry.map_err(fail)?.path();
        if path.ends_with(own) {
            continue;
        }
        // In doubt alive: closing the calls of a live process would be worse than
        // leaving them open.
        if let Ok(Fate::Dead(Some(lock))) = fate(&path) {
            locks.push((path, lock));
        }
    }
    Ok(locks)
}

/// The lock file of a process.
pub(crate) fn lock_path(home: &Path, id: &str) -> PathBuf {
    lock_folder(home).join(id)
}

/// Whether a process of this home is dead. In doubt it counts as alive.
pub(crate) fn is_dead(home: &Path, id: &str) -> bool {
    matches!(fate(&lock_path(home, id)), Ok(Fate::Dead(_)))
}

/// Whether any process has the store of this home open.
pub(crate) fn is_any_alive(home: &Path) -> Result<bool, StoreError> {
    let folder = lock_folder(home);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(StoreError::file("read", &folder, error)),
    };
    for entry in entries.take(limit::PROCESSES_MAX).flatten() {
        if matches!(fate(&entry.path()), Ok(Fate::Alive)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Fails if a living process of this home uses another store than this one: what is decided
/// in one has no effect in the other.
pub(crate) fn check_store(home: &Path, address: Option<&str>) -> Result<(), StoreError> {
    let folder = lock_folder(home);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::file("read", &folder, error)),
    };
    let named = address.unwrap_or(HOME_STORE);
    for entry in entries.take(limit::PROCESSES_MAX).flatten() {
        let used = store_of(&entry.path());
        // Of an older program nothing is known, nor of a process that only begins.
        if let Some(used) = used.filter(|used| !used.is_empty() && used != named) {
            let shown = |store: &str| match store {
                HOME_STORE => "that of the home".to_owned(),
                address => format!("`{}`", model::text::one_line(address)),
            };
            return Err(StoreError::OtherStore {
                used: shown(&used),
                named: shown(named),
            });
        }
    }
    Ok(())
}

/// What a living process says of its store.
fn store_of(path: &Path) -> Option<String> {
    // Our own must not be opened.
    if let Some(store) = own().get(path.file_name()?) {
        return Some(store.clone());
    }
    if !matches!(fate(path), Ok(Fate::Alive)) {
        return None;
    }
    let mut store = String::new();
    let file = File::open(path).ok()?;
    let bytes_max = model::limits::CONFIG_BYTES_MAX as u64;
    file.take(bytes_max).read_to_string(&mut store).ok()?;
    Some(store)
}

enum Fate {
    Alive,
    /// With the lock, if the file still exists.
    Dead(Option<File>),
}

fn fate(path: &Path) -> Result<Fate, StoreError> {
    let fail = |error| StoreError::file("look at", path, error);
    match fs::symlink_metadata(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Fate::Dead(None)),
        Err(error) => return Err(fail(error)),
    }
    // Asked before opening, because closing a second handle would release our own lock.
    if path.file_name().is_some_and(|id| own().contains_key(id)) {
        return Ok(Fate::Alive);
    }
    // An exclusive lock needs a file opened for writing.
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
