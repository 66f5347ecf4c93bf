//! The history of signed heads: notes, one after the other, with an empty line behind
//! each. Heads are only added. When the file is long, older heads are thinned out; the
//! newest of them says everything an older one said.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use model::record::note::{SignedNote, TreeHead};

use crate::audit::log::{disk, lock, segment};
use crate::error::StoreError;
use crate::home::files::sync_folder;
use crate::limit;

/// The file of the history.
const NAME: &str = "heads";
/// What ends a note.
const END: &str = "\n\n";
/// What stands between the text of a note and its first signature.
const SIGNATURES: &[u8] = "\n\n\u{2014} ".as_bytes();

/// The history, locked for writing. While it lives, no other process signs.
#[derive(Debug)]
pub(crate) struct HeadFile {
    folder: PathBuf,
    file: File,
    /// Up to the last whole note.
    length: u64,
    _lock: File,
}

impl HeadFile {
    /// Opens the history, creating it if absent, and waits for the lock.
    pub(crate) fn lock(folder: &Path) -> Result<HeadFile, StoreError> {
        let lock = lock_file(folder)?;
        lock::patiently(&lock, folder)?;
        let path = folder.join(NAME);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options
            .mode(0o600)
            .open(&path)
            .map_err(|error| StoreError::file("open", &path, error))?;
        let mut heads = HeadFile {
            folder: folder.to_owned(),
            file,
            length: 0,
            _lock: lock,
        };
        heads.length = whole(&heads.folder, &heads.file)?;
        Ok(heads)
    }

    /// The newest head.
    pub(crate) fn last(&self) -> Result<Option<TreeHead>, StoreError> {
        let Some(note) = last_note(&self.folder, &self.file, self.length)? else {
            return Ok(None);
        };
        note.head().map(Some).map_err(|_| unreadable(&self.folder))
    }

    /// All heads, oldest first.
    pub(crate) fn all(&self) -> Result<Vec<SignedNote>, StoreError> {
        read(&self.folder)
    }

    /// Adds a head and gets it onto the disk.
    pub(crate) fn append(&mut self, note: &SignedNote) -> Result<(), StoreError> {
        if self.length > limit::HEADS_BYTES_MAX {
            self.thin()?;
        }
        let text = format!("{note}\n");
        let fail = |error| segment::failed("write", &self.folder, error);
        // Part of a note may be behind the last whole one.
        self.file.set_len(self.length).map_err(fail)?;
        let written = self.file.write_all_at(text.as_bytes(), self.length);
        written.map_err(fail)?;
        disk::sync(&self.file)?;
        self.length += segment::count(text.len());
        Ok(())
    }

    /// Leaves out every other head of the older ones. Heads that declare a fork stay.
    fn thin(&mut self) -> Result<(), StoreError> {
        let notes = self.all()?;
        let older = notes.len().saturating_sub(limit::HEADS_KEPT_MIN);
        let stays = |place: usize, note: &SignedNote| {
            place >= older
                || place.is_multiple_of(2)
                || note.head().is_ok_and(|head| head.fork.is_some())
        };
        let notes = notes.iter().enumerate();
        let kept = notes.filter(|(place, note)| stays(*place, note));
        let text: String = kept.map(|(_, note)| format!("{note}\n")).collect();
        let path = self.folder.join(NAME);
        let unfinished = self.folder.join("heads.unfinished");
        let fail = |error| segment::failed("write", &path, error);
        let _ = fs::remove_file(&unfinished);
        let mut options = OpenOptions::new();
        let made = options.read(true).write(true).create_new(true).mode(0o600);
        let file = made.open(&unfinished).map_err(fail)?;
        file.write_all_at(text.as_bytes(), 0).map_err(fail)?;
        disk::sync(&file)?;
        fs::rename(&unfinished, &path).map_err(fail)?;
        sync_folder(&self.folder)?;
        self.file = file;
        self.length = segment::count(text.len());
        Ok(())
    }
}

/// Keeps writers of heads out until it is dropped.
pub(crate) fn read_lock(folder: &Path) -> Result<File, StoreError> {
    let lock = lock_file(folder)?;
    lock::patiently_shared(&lock, folder)?;
    Ok(lock)
}

/// The newest head of a folder; reads no more than the end of the history.
pub(crate) fn last(folder: &Path) -> Result<Option<SignedNote>, StoreError> {
    let path = folder.join(NAME);
    match File::open(&path) {
        Ok(file) => {
            let length = whole(folder, &file)?;
            last_note(folder, &file, length)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::file("read", path, error)),
    }
}

/// All heads of a folder, oldest first. A torn end is left out.
pub(crate) fn read(folder: &Path) -> Result<Vec<SignedNote>, StoreError> {
    read_file(&folder.join(NAME))
}

/// All heads of a file, oldest first. A torn end is left out, anything else that is not
/// a head is an error.
pub fn read_file(path: &Path) -> Result<Vec<SignedNote>, StoreError> {
    let fail = |error| StoreError::file("read", path, error);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail(error)),
    };
    let mut text = String::new();
    let mut bounded = file.take(limit::HEADS_BYTES_MAX * 4);
    bounded.read_to_string(&mut text).map_err(fail)?;
    let mut notes = Vec::new();
    let mut parts = text.split(END);
    loop {
        let (Some(head), Some(signatures)) = (parts.next(), parts.next()) else {
            return Ok(notes);
        };
        // Behind each note there is an empty line. Without it, the note is torn.
        if parts.clone().next().is_none() {
            return Ok(notes);
        }
        let note = format!("{head}{END}{signatures}\n").parse();
        notes.push(note.map_err(|_| StoreError::Unsigned {
            what: format!(
                "head {} of `{}` cannot be read",
                notes.len() + 1,
                path.display()
            ),
        })?);
    }
}

/// Adds a head to a copy of the history that the operator keeps elsewhere.
pub(crate) fn append_copy(path: &Path, note: &SignedNote) -> Result<(), StoreError> {
    use std::io::Write as _;
    let fail = |error| StoreError::file("write", path, error);
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).open(path);
    let mut file = file.map_err(fail)?;
    file.write_all(format!("{note}\n").as_bytes())
        .map_err(fail)?;
    file.sync_data().map_err(fail)
}

fn lock_file(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join("heads.lock");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.mode(0o600).open(&path);
    file.map_err(|error| StoreError::file("open", path, error))
}

/// The newest head of a file whose whole notes end at a length.
fn last_note(folder: &Path, file: &File, length: u64) -> Result<Option<SignedNote>, StoreError> {
    if length == 0 {
        return Ok(None);
    }
    let taken = length.min(limit::HEAD_BYTES_MAX * 2);
    let mut bytes = vec![0; usize::try_from(taken).unwrap_or(usize::MAX)];
    let read = file.read_exact_at(&mut bytes, length - taken);
    read.map_err(|error| StoreError::file("read", folder, error))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut parts = text.trim_end_matches('\n').rsplit(END);
    match (parts.next(), parts.next()) {
        (Some(signatures), Some(head)) => {
            let note = format!("{head}{END}{signatures}\n");
            note.parse().map(Some).map_err(|_| unreadable(folder))
        }
        (_, _) => Err(unreadable(folder)),
    }
}

/// The length of a file up to its last whole note.
fn whole(folder: &Path, file: &File) -> Result<u64, StoreError> {
    let fail = |error| StoreError::file("read", folder, error);
    let length = file.metadata().map_err(fail)?.len();
    let taken = length.min(limit::HEAD_BYTES_MAX * 2);
    let start = length - taken;
    let mut bytes = vec![0; usize::try_from(taken).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, start).map_err(fail)?;
    // A whole note ends with its signatures and an empty line.
    let mut upto = bytes.len();
    while let Some(at) = find_last(bytes.get(..upto).unwrap_or_default(), SIGNATURES) {
        let signatures = at + END.len();
        let rest = bytes.get(signatures..).unwrap_or_default();
        if let Some(end) = find_first(rest, END.as_bytes()) {
            return Ok(start + segment::count(signatures + end + END.len()));
        }
        // This note is torn; the one before it is whole.
        upto = at;
    }
    match start {
        0 => Ok(0),
        _ => Err(unreadable(folder)),
    }
}

fn unreadable(folder: &Path) -> StoreError {
    StoreError::Unsigned {
        what: format!("`{}` cannot be read", folder.join(NAME).display()),
    }
}

fn find_first(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|it| it == wanted)
}

fn find_last(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).rposition(|it| it == wanted)
}
