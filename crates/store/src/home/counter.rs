//! A version number in a small file that all processes can read cheaply, for state
//! that every call checks. It follows a counter in the database; where the two differ
//! the database is right.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use crate::error::StoreError;
use crate::home::files::wait_for_lock;

#[derive(Debug)]
pub(crate) struct Counter {
    path: PathBuf,
    file: RwLock<File>,
}

impl Counter {
    pub(crate) fn open(path: PathBuf) -> Result<Counter, StoreError> {
        let file = RwLock::new(open(&path)?);
        Ok(Counter { path, file })
    }

    /// The number.
    pub(crate) fn read(&self) -> Result<u64, StoreError> {
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner);
        read(&file).map_err(|error| StoreError::file("read", &self.path, error))
    }

    /// Opens the file again if it was deleted by hand, because other processes would not
    /// see ours any more. Returns whether it was.
    pub(crate) fn find(&self) -> Result<bool, StoreError> {
        let fail = |error| StoreError::file("look at", &self.path, error);
        {
            let file = self.file.read().unwrap_or_else(PoisonError::into_inner);
            if file.metadata().map_err(fail)?.nlink() > 0 {
                return Ok(false);
            }
        }
        let mut file = self.file.write().unwrap_or_else(PoisonError::into_inner);
        *file = open(&self.path)?;
        Ok(true)
    }

    /// Raises the number to the database's version; never lowers it.
    pub(crate) fn raise(&self, version: i64) -> Result<(), StoreError> {
        let version = u64::try_from(version).unwrap_or(0);
        let fail = |error| StoreError::file("write", &self.path, error);
        self.find()?;
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner);
        // Bounded: a process may have been stopped while it held the lock.
        wait_for_lock(|| file.try_lock(), &self.path)?;
        let written = match read(&file) {
            // Never lower: another process may have raised it since our
            // change was committed.
            Ok(found) if found >= version => Ok(()),
            Ok(_) | Err(_) => file.write_all_at(&version.to_le_bytes(), 0),
        };
        file.unlock().map_err(fail)?;
        written.map_err(fail)
    }
}

fn open(path: &Path) -> Result<File, StoreError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| StoreError::file("open", path, error))
}

fn read(file: &File) -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that was stopped while it held the lock stops no other for good.
    #[test]
    fn the_wait_for_the_lock_is_bounded() {
        let name = format!("ringfence-counter-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let counter = Counter::open(path.clone()).unwrap();
        counter.raise(3).unwrap();
        let other = open(&path).unwrap();
        other.lock().unwrap();
        assert!(matches!(counter.raise(4), Err(StoreError::Busy)));
        other.unlock().unwrap();
        counter.raise(4).unwrap();
        assert_eq!(counter.read().unwrap(), 4);
        std::fs::remove_file(path).unwrap();
    }
}
