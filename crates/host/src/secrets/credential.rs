//! Credentials a service manager hands over: a folder with one file for each secret,
//! named by `$CREDENTIALS_DIRECTORY`. systemd makes it with `LoadCredential=` and
//! `SetCredentialEncrypted=`, readable by the service alone.
//!
//! The folder is read whole for each call, so a refreshed credential counts at once. A
//! file that cannot be a secret is a refusal, because a misspelt name would otherwise be a
//! variable that is silently unset.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use model::Environment;

use super::{Keeper, SecretsFault, checked, text};

/// Files a credentials folder may hold.
pub const CREDENTIALS_MAX: usize = 256;

/// The credential that is the token of the machine's owner, not a variable.
pub const TOKEN_CREDENTIAL: &str = "ringfence.token";

/// A folder of credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    folder: PathBuf,
}

impl Credentials {
    /// The folder at this path. Nothing is read yet.
    #[must_use]
    pub fn open(folder: impl Into<PathBuf>) -> Credentials {
        Credentials {
            folder: folder.into(),
        }
    }

    /// The values of variables, by the names of their files. A line break at the end of a
    /// file is none of the value.
    pub fn values(&self) -> Result<Environment, SecretsFault> {
        let mut values = Environment::empty();
        for path in self.files()? {
            let name = path.file_name().unwrap_or_default();
            if name == OsStr::new(TOKEN_CREDENTIAL) {
                continue;
            }
            // Not skipped: a misspelt name would be a variable that is silently unset.
            let Some(name) = name.to_str().filter(|name| is_variable(name)) else {
                return Err(SecretsFault::Name(name.to_string_lossy().into_owned()));
            };
            if let Some(value) = value(&path)? {
                values.set(name, value);
            }
        }
        Ok(values)
    }

    /// The path of the token's file.
    #[must_use]
    pub fn token_path(&self) -> PathBuf {
        self.folder.join(TOKEN_CREDENTIAL)
    }

    /// What the token's file holds; nothing if there is none.
    pub fn token(&self) -> Result<Option<String>, SecretsFault> {
        self.check_folder()?;
        value(&self.token_path())
    }

    fn files(&self) -> Result<Vec<PathBuf>, SecretsFault> {
        self.check_folder()?;
        let failed = |source| SecretsFault::Read {
            path: self.shown(),
            source,
        };
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            if files.len() == CREDENTIALS_MAX {
                return Err(SecretsFault::TooMany(self.shown()));
            }
            files.push(entry.map_err(failed)?.path());
        }
        // The first fault is the same one every time.
        files.sort();
        Ok(files)
    }

    /// Only the user and root may be able to add, change or remove a credential.
    fn check_folder(&self) -> Result<(), SecretsFault> {
        // `symlink_metadata`, because a link would hide who can replace the folder.
        let about = fs::symlink_metadata(&self.folder).map_err(|source| SecretsFault::Read {
            path: self.shown(),
            source,
        })?;
        let user = rustix::process::geteuid().as_raw();
        let is_kept = about.uid() == user || about.uid() == 0;
        let is_closed = about.mode() & 0o022 == 0;
        if self.folder.is_absolute() && about.is_dir() && is_kept && is_closed {
            return Ok(());
        }
        Err(SecretsFault::Folder(self.shown()))
    }

    fn shown(&self) -> String {
        self.folder.display().to_string()
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn value(path: &Path) -> Result<Option<String>, SecretsFault> {
    let Some((file, _)) = checked(path, Keeper::System)? else {
        return Ok(None);
    };
    let mut text = text(file, path)?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(Some(text))
}
