//! What `wrap` did to a client's file, kept in the home so that `unwrap` can undo it.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use model::document::digest;
use serde::{Deserialize, Serialize};

use super::file;

/// The folder of records in the home.
pub(crate) const FOLDER: &str = "wraps";
/// Records that are read.
const RECORDS_MAX: usize = 1_000;
/// A record, in bytes.
const RECORD_BYTES_MAX: u64 = 1024 * 1024;
const VERSION: u32 = 1;

/// One wrapped file. It holds digests and names, no key and no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct WrapRecord {
    pub(crate) version: u32,
    /// The client's file.
    pub(crate) file: PathBuf,
    /// The file as it was.
    pub(crate) backup: PathBuf,
    /// Its permissions.
    pub(crate) mode: u32,
    /// The section with the servers.
    pub(crate) section: String,
    /// The entries that were taken out.
    pub(crate) taken: Vec<String>,
    /// The servers they became.
    pub(crate) servers: Vec<String>,
    /// The secrets that were moved.
    pub(crate) secrets: Vec<String>,
    pub(crate) old_digest: String,
    pub(crate) new_digest: String,
    /// The caller that the client is, if a key was created for it.
    pub(crate) caller: Option<String>,
}

impl WrapRecord {
    pub(crate) fn version() -> u32 {
        VERSION
    }

    fn place(home: &Path, file: &Path) -> PathBuf {
        // A digest, because the path of a file is no name for a file.
        let name = digest::of_text(&file.display().to_string());
        let name: String = name.chars().take(16).collect();
        home.join(FOLDER).join(format!("{name}.json"))
    }

    /// The record of a file; nothing if it is not wrapped.
    pub(crate) fn of(home: &Path, file: &Path) -> anyhow::Result<Option<WrapRecord>> {
        let place = WrapRecord::place(home, file);
        match place.exists() {
            true => read(&place).map(Some),
            false => Ok(None),
        }
    }

    /// Every record of a home.
    pub(crate) fn all(home: &Path) -> anyhow::Result<Vec<WrapRecord>> {
        let folder = home.join(FOLDER);
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let entries = fs::read_dir(&folder);
        let entries = entries.with_context(|| format!("cannot read `{}`", folder.display()))?;
        let mut places = Vec::new();
        for entry in entries.take(RECORDS_MAX) {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "json") {
                places.push(path);
            }
        }
        places.sort();
        places.iter().map(|place| read(place)).collect()
    }

    pub(crate) fn keep(&self, home: &Path) -> anyhow::Result<()> {
        let place = WrapRecord::place(home, &self.file);
        let folder = home.join(FOLDER);
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&folder);
        made.with_context(|| format!("cannot make `{}`", folder.display()))?;
        let text = serde_json::to_string_pretty(self)?;
        file::replace(&place, text.as_bytes(), 0o600)
    }

    pub(crate) fn forget(&self, home: &Path) -> anyhow::Result<()> {
        file::remove(&WrapRecord::place(home, &self.file))
    }
}

fn read(place: &Path) -> anyhow::Result<WrapRecord> {
    let shown = place.display();
    let about = fs::metadata(place).with_context(|| format!("cannot read `{shown}`"))?;
    if !about.is_file() || about.len() > RECORD_BYTES_MAX {
        bail!("`{shown}` is not a record of `ringfence wrap`");
    }
    let text = fs::read_to_string(place).with_context(|| format!("cannot read `{shown}`"))?;
    let record: WrapRecord = serde_json::from_str(&text)
        .with_context(|| format!("`{shown}` is not a record of `ringfence wrap`"))?;
    if record.version != VERSION {
        bail!("`{shown}` has version {}, not {VERSION}", record.version);
    }
    Ok(record)
}
