//! `<home>/ringfence.toml`, the operator's file: read whole, replaced whole. And the
//! files of rules beside it, `<home>/rules/*.toml`, which are only read.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use model::limits;
use uuid::Uuid;

use crate::error::StoreError;
use crate::sync_folder;
use crate::tools::write_synced;

/// The operator's file in the home folder.
pub const CONFIG_FILE: &str = "ringfence.toml";

/// The folder of files of rules in the home folder.
pub const RULES_FOLDER: &str = "rules";

/// The text of the operator's file; nothing if there is none. One that is too
/// long or no text is an error, never nothing.
pub fn read(home: &Path) -> Result<Option<String>, StoreError> {
    read_file(&home.join(CONFIG_FILE))
}

/// The text of another file like it.
pub fn read_file(path: &Path) -> Result<Option<String>, StoreError> {
    let fail = |error| StoreError::file("read", path, error);
    // Opening a pipe waits for somebody who writes to it.
    if fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo()) {
        return Err(fail(io::Error::other("it is a pipe")));
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A link that leads nowhere is a file somebody counts on.
            return match fs::symlink_metadata(path) {
                Ok(_) => Err(fail(error)),
                Err(_) => Ok(None),
            };
        }
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

/// A file of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFile {
    /// Its name under the home folder, such as `rules/payments.toml`.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The files of rules, by name. What does not end in `.toml` or starts with a dot
/// is none. One that cannot be read is an error: without it less may be denied.
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
        if bytes.starts_with(b".") || !bytes.ends_with(b".toml") {
            continue;
        }
        let name = name
            .into_string()
            .map_err(|_| fail(io::Error::other("the name of a file of rules is no text")))?;
        names.push(name);
        if names.len() > limits::RULE_FILES_MAX {
            let most = limits::RULE_FILES_MAX;
            let message = format!("there are more than {most} files of rules");
            return Err(fail(io::Error::other(message)));
        }
    }
    names.sort();
    let mut files = Vec::with_capacity(names.len());
    let mut bytes = 0;
    for name in names {
        // One that went in between is as good as never there: the watch tells.
        let Some(text) = read_file(&folder.join(&name))? else {
            continue;
        };
        bytes += text.len();
        if bytes > limits::RULE_FILES_BYTES_MAX {
            let most = limits::RULE_FILES_BYTES_MAX >> 20;
            let message = format!("the files of rules have more than {most} MiB together");
            return Err(fail(io::Error::other(message)));
        }
        let name = format!("{RULES_FOLDER}/{name}");
        files.push(RuleFile { name, text });
    }
    Ok(files)
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
