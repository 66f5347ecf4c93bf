//! How far the records of this log were copied elsewhere, remembered beside the log. While
//! there is a mark, only records up to it may be removed: what was not acknowledged
//! elsewhere stays here.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::error::StoreError;
use crate::home::audit_folder;

/// The file of the mark.
const NAME: &str = "shipped";
/// Bytes of it that are read: a number.
const BYTES_MAX: u64 = 32;

/// How far records were copied elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShipStatus {
    /// The last record that was acknowledged.
    pub shipped: u64,
    /// Records on the disk that were not acknowledged yet.
    pub waiting: u64,
    /// How long the oldest of them has waited, in milliseconds, at most.
    pub lag_ms: u64,
    /// Why the last batch was not taken, if so.
    pub fault: Option<String>,
}

/// The last record that was acknowledged; nothing if records are not copied. A mark that
/// cannot be read counts as none acknowledged.
pub(crate) fn read(folder: &Path) -> Result<Option<u64>, StoreError> {
    let path = folder.join(NAME);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::file("read", path, error)),
    };
    let mut text = String::new();
    let read = file.take(BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| StoreError::file("read", path, error))?;
    Ok(Some(text.trim().parse().unwrap_or(0)))
}

/// The last record of a home that a database acknowledged; nothing if its records are not
/// shipped.
pub fn shipped_through(home: &Path) -> Result<Option<u64>, StoreError> {
    read(&audit_folder(home))
}

/// Remembers the last record that was acknowledged. Losing it in a power cut only means
/// that fewer records may be removed.
pub(crate) fn write(folder: &Path, sequence: u64) -> Result<(), StoreError> {
    let path = folder.join(NAME);
    let unfinished = folder.join("shipped.unfinished");
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options
        .open(&unfinished)
        .and_then(|mut file| writeln!(file, "{sequence}"))
        // A reader sees the old number or the new one, never half of one.
        .and_then(|()| fs::rename(&unfinished, &path));
    written.map_err(|error| StoreError::file("write", path, error))
}

/// Records are not copied any more.
pub(crate) fn forget(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join(NAME);
    match fs::remove_file(&path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::file("remove", path, error)),
    }
}
