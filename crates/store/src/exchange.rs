//! Where nodes find each other's heads, and leave their own. Each place is believed for
//! nothing: a head counts by its signature alone.
//!
//! Heads that peers show to this home as their witness are in its database. A folder that
//! all nodes share needs no network of ours. A database that records are shipped to has a
//! table of heads.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::limits;
use model::record::note::{NoteKey, SignedNote};

use crate::audit::evidence::key::is_sound;
use crate::audit::evidence::signer::unsigned;
use crate::error::StoreError;
use crate::limit;
use crate::ship::{ShipDatabase, check_published};
use crate::store::Store;

/// How files of heads end.
const ENDING: &str = "head";

/// A place where nodes find each other's heads.
#[derive(Clone, Debug)]
pub enum HeadExchange {
    /// What other nodes showed to this one as their witness. It is left to them to ask.
    Witnessed,
    /// A folder that all nodes write to, with one file each.
    Folder(PathBuf),
    /// The table `audit_heads` of the database that records are shipped to.
    Database(Arc<ShipDatabase>),
}

impl HeadExchange {
    /// The heads that are there, in any order. What is not a signed head is left out.
    pub async fn heads(&self, store: &Store) -> Result<Vec<SignedNote>, StoreError> {
        match self {
            HeadExchange::Witnessed => {
                let store = store.clone();
                let list = in_background(move || store.witnessed().list()).await?;
                Ok(list.iter().filter_map(|it| it.note.parse().ok()).collect())
            }
            HeadExchange::Folder(folder) => {
                let folder = folder.clone();
                in_background(move || read_folder(&folder)).await
            }
            HeadExchange::Database(database) => database.heads().await,
        }
    }

    /// Leaves the newest head of this log, unless a newer one of it is there.
    pub async fn publish(&self, note: &SignedNote, key: &NoteKey) -> Result<(), StoreError> {
        match self {
            HeadExchange::Witnessed => Ok(()),
            HeadExchange::Folder(folder) => {
                let (folder, note, key) = (folder.clone(), note.clone(), key.clone());
                in_background(move || write_folder(&folder, &note, &key)).await
            }
            HeadExchange::Database(database) => database.publish(note, key).await,
        }
    }
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| StoreError::Closed)?
}

fn read_folder(folder: &Path) -> Result<Vec<SignedNote>, StoreError> {
    let fail = |error| StoreError::file("read", folder, error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail(error)),
    };
    let mut notes = Vec::new();
    // Others write to this folder too; a bound keeps a full one from holding us up.
    for entry in entries.take(limits::PEERS_MAX * 4) {
        let path = entry.map_err(fail)?.path();
        if path.extension().is_none_or(|ending| ending != ENDING) {
            continue;
        }
        // A file that is being replaced may be gone again.
        let text = read_text(&path).unwrap_or_default();
        notes.extend(text.parse::<SignedNote>());
    }
    Ok(notes)
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let mut file = File::open(path)?.take(limit::HEAD_BYTES_MAX);
    file.read_to_string(&mut text)?;
    Ok(text)
}

fn write_folder(folder: &Path, note: &SignedNote, key: &NoteKey) -> Result<(), StoreError> {
    let fail = |error| StoreError::file("write", folder, error);
    let head = note.head();
    let head = head.map_err(|_| unsigned("the newest head cannot be read".to_owned()))?;
    fs::create_dir_all(folder).map_err(fail)?;
    let path = folder.join(file_name(key));
    let there: Option<SignedNote> = read_text(&path).ok().and_then(|text| text.parse().ok());
    // A file that is not signed by our key is not ours, and is replaced.
    let there = there.filter(|there| key.has_signed(there, &is_sound));
    let there = there.and_then(|there| there.head().ok());
    if let Some(there) = there {
        // A newer head of the same log elsewhere means that this home was
        // copied or set back.
        check_published(&there, &head, &path.display().to_string())?;
        if there == head {
            return Ok(());
        }
    }
    // Named by process, so that two of them do not write into one unfinished file.
    let unfinished = folder.join(format!(".{}.{}", file_name(key), std::process::id()));
    let written = File::create(&unfinished)
        .and_then(|mut file| file.write_all(note.to_string().as_bytes()))
        .and_then(|()| fs::rename(&unfinished, &path));
    written.map_err(fail)
}

/// The file of a log: its name, as far as files can have it, and the id of its key.
fn file_name(key: &NoteKey) -> String {
    let word = |it: char| match it.is_ascii_alphanumeric() {
        true => it,
        false => '-',
    };
    let name: String = key.name().chars().map(word).take(64).collect();
    let id = u32::from_be_bytes(key.id());
    format!("{name}-{id:08x}.{ENDING}")
}
