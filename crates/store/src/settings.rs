//! `<home>/ringfence.toml`, the operator's file: read whole, replaced whole.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use model::limits;
use uuid::Uuid;

use crate::error::StoreError;
use crate::sync_folder;
use crate::tools::write_synced;

/// The operator's file in the home folder.
pub const CONFIG_FILE: &str = "ringfence.toml";

/// The text of the operator's file; nothing if there is none. One that is too
/// long or no text is an error, never nothing.
pub fn read(home: &Path) -> Result<Option<String>, StoreError> {
    let path = home.join(CONFIG_FILE);
    let fail = |error| StoreError::file("read", &path, error);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let mut text = String::new();
    let bytes_max = limits::CONFIG_BYTES_MAX as u64;
    // One byte more than the bound, so that the parser sees it is too long.
    file.take(bytes_max + 1)
        .read_to_string(&mut text)
        .map_err(fail)?;
    Ok(Some(text))
}

/// Puts a new text in the place of the old one, all at once.
pub fn write(home: &Path, text: &str) -> Result<(), StoreError> {
    let path = home.join(CONFIG_FILE);
    let unfinished: PathBuf = home.join(format!(".{CONFIG_FILE}.{}.tmp", Uuid::new_v4()));
    let written = write_synced(&unfinished, text).and_then(|()| fs::rename(&unfinished, &path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written.map_err(|error| StoreError::file("write", &path, error))?;
    sync_folder(home)
}
