//! Folders and files of the home: private to the owner, and on the disk when a
//! function returns.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::StoreError;
use crate::limit;

/// Creates a folder that only its owner can enter. An existing folder keeps its
/// mode: it may be one that others need, named by mistake.
pub(crate) fn make_folder(path: &Path) -> Result<(), StoreError> {
    match fs::metadata(path) {
        Ok(about) if about.is_dir() => return Ok(()),
        // It may well be there, behind a folder of another user: making it would fail with
        // words that lead astray.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(StoreError::file("look at", path, error));
        }
        Ok(_) | Err(_) => {}
    }
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
    made.map_err(|error| StoreError::file("create", path, error))
}

/// Syncs a folder. Without this the name of a new or renamed file can be lost in a
/// power cut although the file itself was synced.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| StoreError::file("sync", folder, error))
}

/// Takes the lock of a file, waiting for other processes. The wait is bounded, because a
/// process may have been stopped (`SIGSTOP`) while it held the lock.
pub(crate) fn wait_for_lock(
    try_lock: impl Fn() -> Result<(), TryLockError>,
    path: &Path,
) -> Result<(), StoreError> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(50);
    loop {
        match try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => {
                return Err(StoreError::file("lock", path, error));
            }
        }
        if start.elapsed() > Duration::from_millis(limit::BUSY_MS_MAX) {
            return Err(StoreError::Busy);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// Writes a new private file and syncs it.
pub(crate) fn write_synced(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
