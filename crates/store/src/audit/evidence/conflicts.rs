//! Heads that other logs signed and that contradict what this home saw of them as their
//! witness. Both heads of a contradiction are kept beside the log: together they show
//! anyone with the public key that the log was forked or rolled back.
//!
//! The file has the form of the history of heads, two by two: the head that was seen, and
//! the one that contradicts it.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use model::limits;
use model::record::note::{SignedNote, TreeHead};
use model::record::witness::HeadConflict;

use crate::audit::evidence::head_file::{self, HeadFile};
use crate::error::StoreError;
use crate::home::files::sync_folder;
use crate::limit;

/// The file of the evidence.
const NAME: &str = "conflicts";

/// Two signed heads of one log that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptConflict {
    /// The name of the log.
    pub origin: String,
    /// How the second contradicts the first.
    pub conflict: HeadConflict,
    /// The head that was seen first.
    pub seen: SignedNote,
    /// The head that contradicts it.
    pub shown: SignedNote,
}

impl KeptConflict {
    /// A contradiction between two heads of one log; nothing if they are not.
    #[must_use]
    pub fn new(seen: SignedNote, shown: SignedNote) -> Option<KeptConflict> {
        let (first, second): (TreeHead, TreeHead) = (seen.head().ok()?, shown.head().ok()?);
        (first.origin == second.origin).then(|| KeptConflict {
            conflict: HeadConflict::between(&first, &second),
            origin: first.origin,
            seen,
            shown,
        })
    }

    fn is_like(&self, other: &KeptConflict) -> bool {
        self.origin == other.origin && self.conflict == other.conflict
    }
}

/// All that are kept, oldest first.
pub(crate) fn read(folder: &Path) -> Result<Vec<KeptConflict>, StoreError> {
    let mut notes = head_file::read_file(&folder.join(NAME))?.into_iter();
    let mut kept = Vec::new();
    while let (Some(seen), Some(shown)) = (notes.next(), notes.next()) {
        kept.extend(KeptConflict::new(seen, shown));
    }
    Ok(kept)
}

/// What became of a contradiction that was to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// It is the first of its kind about that log, and is kept.
    First,
    /// There was one of its kind about that log.
    Known,
    /// It is too long, or there are too many.
    TooMuch,
}

/// Keeps one, unless there is one of its kind about that log.
pub(crate) fn keep(folder: &Path, conflict: &KeptConflict) -> Result<Keeping, StoreError> {
    // The common case, without waiting for who signs: a log that was forked shows itself
    // twice a second.
    if read(folder)?.iter().any(|it| it.is_like(conflict)) {
        return Ok(Keeping::Known);
    }
    // Held, so that no other process writes at the same time.
    let _lock = HeadFile::lock(folder)?;
    let mut kept = read(folder)?;
    if kept.iter().any(|it| it.is_like(conflict)) {
        return Ok(Keeping::Known);
    }
    let notes = [&conflict.seen, &conflict.shown];
    let is_long = |note: &&SignedNote| note.to_string().len() > limits::ANCHOR_NOTE_BYTES_MAX;
    if kept.len() >= limit::CONFLICTS_MAX || notes.iter().any(is_long) {
        return Ok(Keeping::TooMuch);
    }
    kept.push(conflict.clone());
    write(folder, &kept)?;
    Ok(Keeping::First)
}

/// Forgets what was kept about a log.
pub(crate) fn forget(folder: &Path, origin: &str) -> Result<(), StoreError> {
    let _lock = HeadFile::lock(folder)?;
    let mut kept = read(folder)?;
    let count = kept.len();
    kept.retain(|it| it.origin != origin);
    match kept.len() == count {
        true => Ok(()),
        false => write(folder, &kept),
    }
}

fn write(folder: &Path, kept: &[KeptConflict]) -> Result<(), StoreError> {
    let path = folder.join(NAME);
    let unfinished = folder.join("conflicts.unfinished");
    let text: String = kept
        .iter()
        .map(|it| format!("{}\n{}\n", it.seen, it.shown))
        .collect();
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options.open(&unfinished).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        // A reader sees the old evidence or the new, never half of it.
        fs::rename(&unfinished, &path)
    });
    written.map_err(|error| StoreError::file("write", &path, error))?;
    sync_folder(folder)
}
