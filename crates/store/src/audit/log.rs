//! The log: the chain as append-only text in the folder `audit` of the home, one line
//! per record. It is the truth; the index is made from it.
//!
//! A writer takes the lock, checks whether another process wrote since, appends the
//! lines of a whole group with one write, and releases the lock. A line that is torn
//! because its writer died was never acknowledged, and is set aside.

pub(crate) mod disk;
pub(crate) mod line;
pub(crate) mod lock;
pub(crate) mod remove;
pub(crate) mod segment;
pub(crate) mod snapshot;

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::record::audit::chain::{Head, RecordKind, link};

use crate::error::StoreError;
use crate::home::audit_folder;
use crate::home::files::make_folder;
use crate::home::files::sync_folder;
use crate::limit;
use snapshot::LogSnapshot;

/// The log, for writing.
#[derive(Debug)]
pub(crate) struct Log {
    folder: PathBuf,
    lock: File,
    is_locked: bool,
    /// The segment that is appended to.
    active: Arc<File>,
    /// The position of its first byte.
    start: u64,
    /// Its length in bytes.
    length: u64,
    /// The position of the oldest byte that is kept.
    oldest: u64,
    written_head: Head,
    /// The lines of the current group.
    group: Vec<u8>,
    group_head: Head,
    /// Why nothing can be written any more.
    broken: Option<StoreError>,
}

/// How long to wait for the lock of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockWait {
    /// Not at all.
    None,
    /// Up to [`limit::BUSY_MS_MAX`].
    Bounded,
}

/// Whether the log changed since this process last wrote to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogChange {
    None,
    ByOthers,
}

impl Log {
    /// Opens the log of a home, creating it if absent.
    pub(crate) fn open(home: &Path) -> Result<Log, StoreError> {
        let folder = audit_folder(home);
        let is_new = !folder.is_dir();
        make_folder(&folder)?;
        // A new folder that is lost in a power cut would take the first records along.
        if is_new {
            sync_folder(home)?;
        }
        let lock = lock::open(&folder)?;
        lock::patiently(&lock, &folder)?;
        // Before anything is read: a removal that was interrupted left records
        // that count as gone.
        remove::finish(&folder)?;
        let (start, file) = last_segment(&folder)?;
        let mut log = Log {
            folder,
            lock,
            is_locked: true,
            active: Arc::new(file),
            start,
            length: 0,
            oldest: 0,
            written_head: Head::START,
            group: Vec::new(),
            group_head: Head::START,
            broken: None,
        };
        log.catch_up()?;
        log.unlock();
        Ok(log)
    }

    /// Where the chain ends, the current group included.
    pub(crate) fn head(&self) -> Head {
        self.group_head
    }

    /// The position of the next line.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.length + segment::count(self.group.len())
    }

    /// Bytes of the whole log.
    pub(crate) fn bytes(&self) -> u64 {
        self.end().saturating_sub(self.oldest)
    }

    /// The folder of its files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file to sync.
    pub(crate) fn file(&self) -> &Arc<File> {
        &self.active
    }

    /// Whether it is time for a new segment.
    pub(crate) fn is_long(&self) -> bool {
        self.length >= limit::SEGMENT_BYTES_MAX
    }

    /// Begins a group. No other process writes until it is committed or rolled back.
    pub(crate) fn begin(&mut self, wait: LockWait) -> Result<LogChange, StoreError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        match wait {
            LockWait::None if lock::at_once(&self.lock, &self.folder)? => {}
            LockWait::None => return Err(StoreError::Busy),
            LockWait::Bounded => lock::patiently(&self.lock, &self.folder)?,
        }
        self.is_locked = true;
        // The group begins only after a look: a line that follows an outdated
        // head breaks the chain.
        let seen = self.look();
        seen.inspect_err(|_| self.roll_back())
    }

    fn look(&mut self) -> Result<LogChange, StoreError> {
        let is_same = segment::is_same(&self.active, self.length)
            .map_err(|error| StoreError::file("look at", &self.folder, error))?;
        if is_same {
            return Ok(LogChange::None);
        }
        self.catch_up()?;
        Ok(LogChange::ByOthers)
    }

    /// Adds a record to the group; `body` gets its sequence and appends its body. Returns
    /// the new head of the chain and the position of the line.
    pub(crate) fn add(
        &mut self,
        kind: RecordKind,
        process: Option<&str>,
        body: impl FnOnce(&mut Vec<u8>, u64) -> Result<(), StoreError>,
    ) -> Result<(Head, u64), StoreError> {
        let position = self.end();
        let before = self.group.len();
        let previous = self.group_head.hash;
        let sequence = self.group_head.sequence + 1;
        let hash_at = line::begin(&mut self.group, sequence, kind, process, &previous);
        let body_at = self.group.len();
        if let Err(error) = body(&mut self.group, sequence) {
            // A body that cannot be written must not leave half a line in
            // front of the next one.
            self.group.truncate(before);
            return Err(error);
        }
        let hash = link(&previous, self.group.get(body_at..).unwrap_or_default());
        line::end(&mut self.group, hash_at, &hash);
        self.group_head = Head { sequence, hash };
        Ok((self.group_head, position))
    }

    /// Writes the group. On failure nothing was written.
    pub(crate) fn commit(&mut self) -> Result<(), StoreError> {
        // Written at an explicit place: the shared cursor of a descriptor
        // is not ours alone.
        let written = self.active.write_all_at(&self.group, self.length);
        if let Err(error) = written {
            // Part of the group may be in the file; none of it was acknowledged.
            // A half-written group would be followed by whole lines of the next one, and
            // then be a broken line within the chain.
            if let Err(cut) = self.active.set_len(self.length) {
                self.broken = Some(StoreError::file("cut", &self.folder, cut));
            }
            self.roll_back();
            return Err(segment::failed("write", &self.folder, error));
        }
        self.length += segment::count(self.group.len());
        self.written_head = self.group_head;
        self.roll_back();
        Ok(())
    }

    /// Discards the current group and lets other processes write.
    pub(crate) fn roll_back(&mut self) {
        self.group.clear();
        // One long record should not keep its memory forever.
        self.group.shrink_to(limit::GROUP_BYTES_KEPT_MAX);
        self.group_head = self.written_head;
        self.unlock();
    }

    fn unlock(&mut self) {
        if self.is_locked {
            self.is_locked = self.lock.unlock().is_err();
        }
    }

    /// Begins a new segment, between [`Log::begin`] and the first line of the group.
    /// Everything before it is synced first.
    pub(crate) fn roll(&mut self) -> Result<(), StoreError> {
        let fail = |error| StoreError::file("seal", &self.folder, error);
        // Everything in a sealed segment is on the disk. The syncer relies on it and syncs
        // the last file alone.
        disk::sync(&self.active)?;
        let mode = |mode| self.active.set_permissions(Permissions::from_mode(mode));
        mode(0o400).map_err(fail)?;
        let start = self.start + self.length;
        let made = segment::create(&self.folder, start).and_then(|file| {
            // The name of the new segment too, before a record in it is acknowledged.
            sync_folder(&self.folder)?;
            Ok(file)
        });
        // Writable again, or this process would take its own segment for sealed.
        let file = made.inspect_err(|_| {
            let _ = mode(0o600);
        })?;
        self.active = Arc::new(file);
        self.start = start;
        self.length = 0;
        Ok(())
    }

    /// The log as it is, within a group.
    pub(crate) fn snapshot(&self) -> Result<LogSnapshot, StoreError> {
        LogSnapshot::of(&self.folder)
    }

    /// Deletes what the newest checkpoint says was removed, within a group.
    pub(crate) fn remove_old(&mut self) -> Result<(), StoreError> {
        remove::finish(&self.folder)?;
        self.oldest = oldest(&self.folder)?;
        Ok(())
    }

    /// Finds the end of the log after another process wrote.
    fn catch_up(&mut self) -> Result<(), StoreError> {
        let fail = |error| StoreError::file("read", &self.folder, error);
        let (start, file) = last_segment(&self.folder)?;
        let end = segment::end(&file).map_err(fail)?;
        // Under the lock, so the torn line is not one that another process is just writing.
        self.put_aside(&file, start, end.whole)?;
        self.written_head = match end.last {
            Some(line) => line.head(),
            None => head_before(&self.folder, start)?,
        };
        self.active = Arc::new(file);
        self.start = start;
        self.length = end.whole;
        self.oldest = oldest(&self.folder)?;
        self.group_head = self.written_head;
        Ok(())
    }

    /// Moves a torn line from the end of the log to a file beside it.
    fn put_aside(&self, file: &File, start: u64, whole: u64) -> Result<(), StoreError> {
        let position = start + whole;
        let path = self.folder.join(format!("{position:020}.torn"));
        let fail = |error| segment::failed("write", &path, error);
        let length = file.metadata().map_err(fail)?.len();
        if length == whole {
            return Ok(());
        }
        let torn = usize::try_from(length - whole).unwrap_or(usize::MAX);
        let mut bytes = vec![0; torn.min(limit::LINE_BYTES_MAX)];
        file.read_exact_at(&mut bytes, whole).map_err(fail)?;
        // Kept, not dropped: a person can see what was being written. Its call
        // was never answered.
        write_privately(&path, &bytes).map_err(fail)?;
        file.set_len(whole).map_err(fail)
    }
}

/// Writes a file that only its owner can read, replacing an earlier one.
fn write_privately(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    // An earlier file of that name keeps its mode when it is opened.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(bytes)
}

/// The segment to append to, created if there is none.
fn last_segment(folder: &Path) -> Result<(u64, File), StoreError> {
    let fail = |error| StoreError::file("read", folder, error);
    let make = |start| -> Result<(u64, File), StoreError> {
        let file = segment::create(folder, start)?;
        sync_folder(folder)?;
        Ok((start, file))
    };
    let Some(start) = segment::starts(folder)?.pop() else {
        return make(0);
    };
    let read = segment::open_to_read(folder, start)?;
    if segment::is_sealed(&read).map_err(fail)? {
        // The process that sealed it died before it created the next one.
        return make(start + segment::end(&read).map_err(fail)?.whole);
    }
    Ok((start, segment::open(folder, start)?))
}

/// The last record before a segment.
fn head_before(folder: &Path, start: u64) -> Result<Head, StoreError> {
    let fail = |error| StoreError::file("read", folder, error);
    let starts = segment::starts(folder)?;
    for earlier in starts.into_iter().rev().filter(|it| *it < start) {
        let file = segment::open_to_read(folder, earlier)?;
        if let Some(line) = segment::end(&file).map_err(fail)?.last {
            return Ok(line.head());
        }
    }
    Ok(Head::START)
}

fn oldest(folder: &Path) -> Result<u64, StoreError> {
    Ok(segment::starts(folder)?.first().copied().unwrap_or(0))
}
