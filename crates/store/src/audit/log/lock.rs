//! One writer at a time among all processes of a home: a lock on a small file beside
//! the log, held for as long as one write takes.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::error::StoreError;
use crate::home::files::wait_for_lock;

const DOING: &str = "lock";

/// The lock's file.
pub(crate) fn open(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join("lock");
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|error| StoreError::file("open", path, error))
}

/// Locks writers out until it is dropped; other readers can hold it too.
pub(crate) fn shared(folder: &Path) -> Result<File, StoreError> {
    let file = open(folder)?;
    wait_for_lock(|| file.try_lock_shared(), folder)?;
    Ok(file)
}

/// Locks every other process out until it is dropped.
pub(crate) fn exclusive(folder: &Path) -> Result<File, StoreError> {
    let file = open(folder)?;
    wait_for_lock(|| file.try_lock(), folder)?;
    Ok(file)
}

/// Takes the lock if it is free. Returns whether it was taken.
pub(crate) fn at_once(file: &File, folder: &Path) -> Result<bool, StoreError> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(StoreError::file(DOING, folder, error)),
    }
}

/// Takes the lock, waiting for other processes. The wait is bounded, because a process
/// may have been stopped (`SIGSTOP`) while it held the lock.
pub(crate) fn patiently(file: &File, folder: &Path) -> Result<(), StoreError> {
    wait_for_lock(|| file.try_lock(), folder)
}

/// The same, shared with other readers.
pub(crate) fn patiently_shared(file: &File, folder: &Path) -> Result<(), StoreError> {
    wait_for_lock(|| file.try_lock_shared(), folder)
}
