//! The configuration file `<home>/ringfence.toml`, read and replaced as a whole, and
//! the rule files `<home>/rules/*.toml`, which are only read.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use model::limits;
use uuid::Uuid;

use crate::error::StoreError;
use crate::home::files::sync_folder;
use crate::home::files::write_synced;

/// The name of the configuration file in the home.
pub const CONFIG_FILE: &str = "ringfence.toml";

/// The name of the folder of rule files in the home.
pub const RULES_FOLDER: &str = "rules";

/// The text of the configuration file; nothing if there is none. A file that is too
/// long or not text is an error, never nothing.
pub fn read(home: &Path) -> Result<Option<String>, StoreError> {
    read_file(&home.join(CONFIG_FILE))
}

/// The text of another configuration file, under the same rules.
pub fn read_file(path: &Path) -> Result<Option<String>, StoreError> {
    let fail = |error| StoreError::file("read", path, error);
    // Opening a pipe would block until another process writes to it.
    if fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo()) {
        return Err(fail(io::Error::other("it is a pipe")));
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A dangling link is not an absent file: the operator expects one.
            return match fs::symlink_metadata(path) {
                Ok(_) => Err(fail(error)),
                Err(_) => Ok(None),
            };
        }
        Err(error) => return Err(fail(error)),
    };
    let mut text = String::new();
    let bytes_max = limits::CONFIG_BYTES_MAX as u64;
    // One byte more than the bound, so that the parser can tell it is too long.
    file.take(bytes_max + 1)
        .read_to_string(&mut text)
        .map_err(fail)?;
    Ok(Some(text))
}

/// A rule file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFile {
    /// Its name relative to the home, such as `rules/payments.toml`.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The rule files, by name. Files that do not end in `.toml` or that start with a dot
/// are ignored. One that cannot be read is an error: without it, less may be denied.
pub fn read_rules(home: &Path) -> Result<Vec<RuleFile>, StoreError> {
    let folder = home.join(RULES_FOLDER);
    let fail = |error| StoreError::file("read", &folder, error);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(fail)?.file_name();
        let bytes = name.as_encoded_bytes();
        // Editors leave files with a dot at the front; a half-written rule must not count.
        if bytes.starts_with(b".") || !bytes.ends_with(b".toml") {
            continue;
        }
        let name = name
            .into_string()
            // Ignoring it would mean that a rule the operator wrote is
            // silently not applied.
            .map_err(|_| fail(io::Error::other("the name of a rule file is not UTF-8")))?;
        names.push(name);
        if names.len() > limits::RULE_FILES_MAX {
            let most = limits::RULE_FILES_MAX;
            let message = format!("there are more than {most} rule files");
            return Err(fail(io::Error::other(message)));
        }
    }
    names.sort();
    let mut files = Vec::with_capacity(names.len());
    let mut bytes = 0;
    for name in names {
        // Deleted since the folder was listed; the watch reports that.
        let Some(text) = read_file(&folder.join(&name))? else {
            continue;
        };
        bytes += text.len();
        if bytes > limits::RULE_FILES_BYTES_MAX {
            let most = limits::RULE_FILES_BYTES_MAX >> 20;
            let message = format!("the rule files have more than {most} MiB together");
            return Err(fail(io::Error::other(message)));
        }
        let name = format!("{RULES_FOLDER}/{name}");
        files.push(RuleFile { name, text });
    }
    Ok(files)
}

/// Replaces the configuration file atomically.
pub(crate) fn write(home: &Path, text: &str) -> Result<(), StoreError> {
    let path = home.join(CONFIG_FILE);
    let unfinished: PathBuf = home.join(format!(".{CONFIG_FILE}.{}.tmp", Uuid::new_v4()));
    let written = write_synced(&unfinished, text).and_then(|()| fs::rename(&unfinished, &path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written.map_err(|error| StoreError::file("write", &path, error))?;
    sync_folder(home)
}
