//! The history of signed heads: notes, one after the other, with an empty line behind
//! each. Heads are only added. When the file is long, older heads are thinned out; the
//! newest of them says everything an older one said.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use model::record::note::{SignedNote, TreeHead};

use crate::audit::log::{disk, lock, segment};
use crate::error::StoreError;
use crate::home::files::sync_folder;
use crate::limit;

/// The file of the history.
const NAME: &str = "heads";
/// The file of the heads that witnesses cosigned.
const COSIGNED: &str = "cosigned";
/// How much of the end of a file is read for its newest heads.
const END_BYTES: u64 = limit::HEAD_BYTES_MAX * 8;
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
        // A file of its own, because `thin` replaces the history by a rename: a lock on the
        // old file would keep no process out.
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
        let Some(note) = self.last_note()? else {
            return Ok(None);
        };
        note.head().map(Some).map_err(|_| unreadable(&self.folder))
    }

    /// The newest head, with its signatures.
    pub(crate) fn last_note(&self) -> Result<Option<SignedNote>, StoreError> {
        last_note(&self.folder, &self.file, self.length)
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
        // On the disk before the database remembers it: the other way round, a power cut
        // would look like a head that was taken away.
        disk::sync(&self.file)?;
        if self.length == 0 {
            // The name of a new file too, or a power cut takes the head with it.
            sync_folder(&self.folder)?;
        }
        self.length += segment::count(text.len());
        Ok(())
    }

    fn thin(&mut self) -> Result<(), StoreError> {
        (self.file, self.length) = thin(&self.folder, NAME)?;
        Ok(())
    }
}

/// Leaves out every other head of the older ones of a file. Heads that declare a fork stay.
/// The caller holds the lock. Returns the new file and its length.
fn thin(folder: &Path, name: &str) -> Result<(File, u64), StoreError> {
    let path = folder.join(name);
    let notes = read_file(&path)?;
    let older = notes.len().saturating_sub(limit::HEADS_KEPT_MIN);
    let stays = |place: usize, note: &SignedNote| {
        // Every other one of the older: thinning again later keeps
        // the spread over time.
        place >= older
            || place.is_multiple_of(2)
            // A head that declares a fork tells verification which earlier
            // heads count no more.
            || note.head().is_ok_and(|head| head.fork.is_some())
    };
    let notes = notes.iter().enumerate();
    let kept = notes.filter(|(place, note)| stays(*place, note));
    let text: String = kept.map(|(_, note)| format!("{note}\n")).collect();
    let unfinished = folder.join("heads.unfinished");
    let fail = |error| segment::failed("write", &path, error);
    let _ = fs::remove_file(&unfinished);
    let mut options = OpenOptions::new();
    let made = options.read(true).write(true).create_new(true).mode(0o600);
    let file = made.open(&unfinished).map_err(fail)?;
    file.write_all_at(text.as_bytes(), 0).map_err(fail)?;
    // Synced before the rename: otherwise a power cut could leave an empty history
    // under the name.
    disk::sync(&file)?;
    fs::rename(&unfinished, &path).map_err(fail)?;
    sync_folder(folder)?;
    Ok((file, segment::count(text.len())))
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
/// a head is an error. Of a file beyond the bound the newest count: each says everything
/// an older one said.
pub fn read_file(path: &Path) -> Result<Vec<SignedNote>, StoreError> {
    // A bound on what an edited file can make this process hold; `thin` keeps the history
    // of a home below it, a copy elsewhere may grow beyond it.
    read_end(path, limit::HEADS_BYTES_MAX * 4)
}

/// The newest heads of a file, as many as so many bytes hold, oldest first.
fn read_end(path: &Path, bytes_max: u64) -> Result<Vec<SignedNote>, StoreError> {
    let fail = |error| StoreError::file("read", path, error);
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail(error)),
    };
    let length = file.metadata().map_err(fail)?.len();
    let start = length.saturating_sub(bytes_max);
    file.seek(SeekFrom::Start(start)).map_err(fail)?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).map_err(fail)?;
    let unreadable = || StoreError::Unsigned {
        what: format!("`{}` cannot be read", path.display()),
    };
    let whole = match start {
        0 => bytes.as_slice(),
        // It begins somewhere in a note: the next one begins behind its signatures.
        _ => first_whole(&bytes).ok_or_else(unreadable)?,
    };
    let text = match std::str::from_utf8(whole) {
        Ok(text) => text,
        // A write may have ended within a character; such an end is torn.
        Err(error) if error.error_len().is_none() => {
            let valid = whole.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(valid).unwrap_or_default()
        }
        Err(_) => return Err(unreadable()),
    };
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

/// From the first note on whose beginning is surely there.
fn first_whole(bytes: &[u8]) -> Option<&[u8]> {
    let signatures = find_first(bytes, SIGNATURES)? + END.len();
    let rest = bytes.get(signatures..)?;
    let end = find_first(rest, END.as_bytes())? + END.len();
    rest.get(end..)
}

/// The newest head that a witness cosigned.
pub(crate) fn last_cosigned(folder: &Path) -> Result<Option<SignedNote>, StoreError> {
    Ok(read_end(&folder.join(COSIGNED), END_BYTES)?.pop())
}

/// All heads that witnesses cosigned, oldest first.
pub(crate) fn read_cosigned(folder: &Path) -> Result<Vec<SignedNote>, StoreError> {
    read_file(&folder.join(COSIGNED))
}

/// Keeps a head with its cosignatures. A note that is asked for twice has the same text and
/// other cosignatures; one of each is kept.
pub(crate) fn keep_cosigned(folder: &Path, note: &SignedNote) -> Result<(), StoreError> {
    let lock = lock_file(folder)?;
    // Exclusive from the look to the write, so that two processes do not keep it twice.
    lock::patiently(&lock, folder)?;
    let path = folder.join(COSIGNED);
    // A head that is shown is one of the newest, so the end is enough.
    if read_end(&path, END_BYTES)?
        .iter()
        .any(|it| it.text() == note.text())
    {
        return Ok(());
    }
    if fs::metadata(&path).is_ok_and(|about| about.len() > limit::HEADS_BYTES_MAX) {
        thin(folder, COSIGNED)?;
    }
    append_copy(&path, note)
}

/// Adds a head to a copy that the operator keeps elsewhere, unless it is there.
pub(crate) fn complete_copy(path: &Path, note: &SignedNote) -> Result<(), StoreError> {
    // What cannot be read is found by verification; here it only means that the head may be
    // missing.
    let known = read_end(path, END_BYTES).unwrap_or_default();
    match known.iter().any(|it| it.text() == note.text()) {
        true => Ok(()),
        false => append_copy(path, note),
    }
}

/// Adds a head to a copy of the history that the operator keeps elsewhere.
pub(crate) fn append_copy(path: &Path, note: &SignedNote) -> Result<(), StoreError> {
    use std::io::Write as _;
    let fail = |error| StoreError::file("write", path, error);
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).open(path);
    let mut file = file.map_err(fail)?;
    let is_new = file.metadata().map_err(fail)?.len() == 0;
    // One write of a whole note with `append`, so that two processes cannot mix theirs.
    file.write_all(format!("{note}\n").as_bytes())
        .map_err(fail)?;
    file.sync_data().map_err(fail)?;
    match path.parent().filter(|_| is_new) {
        Some(folder) if folder.as_os_str().is_empty() => sync_folder(Path::new(".")),
        Some(folder) => sync_folder(folder),
        None => Ok(()),
    }
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
    // Twice the longest note: the end of the file surely holds a whole one.
    let taken = length.min(limit::HEAD_BYTES_MAX * 2);
    let mut bytes = vec![0; usize::try_from(taken).unwrap_or(usize::MAX)];
    let read = file.read_exact_at(&mut bytes, length - taken);
    read.map_err(|error| StoreError::file("read", folder, error))?;
    let text = String::from_utf8_lossy(&bytes);
    // From behind, because the text before may begin in the middle of another note.
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
        // A history with bytes in it and no whole note near its end was edited, not torn.
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

#[cfg(test)]
mod tests {
    use model::record::audit::chain::ChainHash;
    use model::record::tree::TreeHash;

    use super::*;
    use crate::audit::evidence::key::HomeKey;

    /// A folder with a file of heads, and the heads.
    fn heads(name: &str, count: u64) -> (PathBuf, PathBuf, Vec<SignedNote>) {
        let name = format!("ringfence-heads-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let key = HomeKey::make(&folder).unwrap();
        let path = folder.join(NAME);
        let sign = |size| {
            let head = TreeHead {
                origin: key.public().name().to_owned(),
                size,
                root: TreeHash::record(&ChainHash::ZERO),
                fork: None,
            };
            key.sign(head.to_string())
        };
        let notes: Vec<_> = (1..=count).map(sign).collect();
        for note in &notes {
            append_copy(&path, note).unwrap();
        }
        (folder, path, notes)
    }

    /// Attack: a copy that grew beyond the bound, whose newest heads are the ones that count.
    #[test]
    fn of_a_long_file_the_newest_heads_are_read() {
        let (folder, path, notes) = heads("long", 12);
        let length = fs::metadata(&path).unwrap().len();
        let one = length / 12 + 8;
        for bytes in one * 2..=length + 1 {
            let read = read_end(&path, bytes).unwrap();
            assert!(!read.is_empty(), "{bytes}");
            assert!(notes.ends_with(&read), "{bytes}");
        }
        assert_eq!(read_file(&path).unwrap(), notes);
        fs::remove_dir_all(folder).unwrap();
    }

    /// A write may end anywhere, within a character too.
    #[test]
    fn a_torn_end_is_left_out_wherever_it_is_torn() {
        let (folder, path, notes) = heads("torn", 3);
        let bytes = fs::read(&path).unwrap();
        let two = bytes.len() * 2 / 3 + 8;
        for end in two..bytes.len() {
            fs::write(&path, &bytes[..end]).unwrap();
            assert_eq!(read_file(&path).unwrap(), notes[..2], "{end}");
        }
        // Anything else that is no head is an error.
        let mut edited = bytes.clone();
        edited[3] = 0xff;
        fs::write(&path, &edited).unwrap();
        assert!(read_file(&path).is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_witnesses_cosigned_is_thinned_too() {
        let (folder, path, notes) = heads("thinned", 40);
        fs::rename(&path, folder.join(COSIGNED)).unwrap();
        let (_, length) = thin(&folder, COSIGNED).unwrap();
        assert_eq!(read_cosigned(&folder).unwrap(), notes);
        assert_eq!(length, fs::metadata(folder.join(COSIGNED)).unwrap().len());
        fs::remove_dir_all(folder).unwrap();
    }
}
