//! A version number in a small file that all processes can read cheaply, for state
//! that every call checks. It follows a counter in the database; where the two differ
//! the database is right.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use crate::error::StoreError;

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
        file.lock().map_err(fail)?;
        let written = match read(&file) {
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
