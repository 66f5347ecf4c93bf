//! The file of secrets, written for its owner: a value is set or removed, and never read
//! back. The audit says that it was changed, never to what.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::{fs, io};

use host::secrets::{Secrets, SecretsFault};
use model::document::environment::Environment;
use model::govern::person::Actor;
use model::record::audit::{Act, Notice};
use store::StoreError;

use crate::engine::{Engine, SECRETS_FILE};
use crate::limit;
use crate::secret_line;

/// Why a secret is not changed.
#[derive(Debug, thiserror::Error)]
pub enum SecretFault {
    /// The name cannot be a variable's.
    #[error("a variable's name has letters, digits and `_`, and begins with no digit")]
    Name,
    /// The value cannot stand in the file.
    #[error(
        "the value must be one line of text, not empty, without blanks around it, and not too long"
    )]
    Value,
    /// The file would be too large.
    #[error("the file of secrets has no room for it")]
    Full,
    /// The file cannot be used.
    #[error(transparent)]
    Read(#[from] SecretsFault),
    /// The file cannot be written.
    #[error("the file of secrets cannot be written")]
    Write(#[source] io::Error),
    /// The change could not be written down, so it was not made.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// The names in the file of secrets.
    pub fn secret_names(&self) -> Result<BTreeSet<String>, SecretFault> {
        let path = self.home().join(SECRETS_FILE);
        // It must be one that only its owner can read before a byte of it is used.
        Secrets::open(&path).read()?;
        let text = read(&path)?;
        let names = text.lines().filter_map(name_of);
        Ok(names.map(str::to_owned).collect())
    }

    /// Sets a variable in the file of secrets, or removes it. Returns whether it was there
    /// before. The other lines stay as they are.
    pub fn set_secret(
        &self,
        name: &str,
        value: Option<&str>,
        actor: Actor<'_>,
    ) -> Result<bool, SecretFault> {
        let starts_well =
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        let is_plain = name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if !starts_well || !is_plain || name.len() > limit::SECRET_NAME_CHARS_MAX {
            return Err(SecretFault::Name);
        }
        let path = self.home().join(SECRETS_FILE);
        Secrets::open(&path).read()?;
        let text = read(&path)?;
        let mut had = false;
        let mut kept = String::with_capacity(text.len());
        for line in text.lines() {
            match name_of(line) == Some(name) {
                true => had = true,
                false => {
                    kept.push_str(line);
                    kept.push('\n');
                }
            }
        }
        if let Some(value) = value {
            // A blank at an end comes from copying, never from the one who issued it.
            let is_whole = !value.is_empty() && value.trim() == value;
            let line = secret_line::line(name, value).filter(|_| is_whole);
            let line = line.ok_or(SecretFault::Value)?;
            kept.push_str(&line);
            kept.push('\n');
            // What is read back must be what was typed, whatever is in it.
            let mut readable = Environment::empty();
            let is_read = readable.read_lines(&kept).is_ok();
            if !is_read || readable.get(name) != Some(value) || value.contains(['\n', '\r', '\0']) {
                return Err(SecretFault::Value);
            }
        } else if !had {
            return Ok(false);
        }
        if kept.len() > limit::SECRETS_FILE_BYTES_MAX {
            return Err(SecretFault::Full);
        }
        let what = if value.is_some() { "set" } else { "removed" };
        let message = format!("the secret `{name}` was {what}");
        let notice = Notice::new(Act::SecretChanged, actor.by, actor.through, &message);
        self.notice(notice.about(name))?;
        write(&path, &kept).map_err(SecretFault::Write)?;
        Ok(had)
    }
}

/// The name that a line sets, if it sets one.
fn name_of(line: &str) -> Option<&str> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let line = line.strip_prefix("export ").unwrap_or(line);
    line.split_once('=').map(|(name, _)| name.trim())
}

fn read(path: &Path) -> Result<String, SecretFault> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(SecretFault::Write(error)),
    }
}

/// Replaces the file atomically, readable by its owner alone from the first byte on.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension(format!("{}.tmp", uuid::Uuid::new_v4().simple()));
    let mut options = fs::OpenOptions::new();
    let made = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished);
    let written = made.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let named = written.and_then(|()| fs::rename(&unfinished, path));
    named.inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })
}
