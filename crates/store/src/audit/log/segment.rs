//! The files of the log. All of them concatenated are one long text; a file is named
//! by the position of its first byte in it, which does not change when older files are
//! deleted.
//!
//! The last file is appended to. A full one is sealed, that is, made read-only, so
//! that every process that has it open sees that there is a next one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxFlags};

use crate::audit::log::line::{self, Line};
use crate::error::StoreError;
use crate::limit;

/// The ending of a segment's file name.
const ENDING: &str = ".log";

/// The mode bit that lets the owner write.
const WRITABLE: u32 = 0o200;

/// The file of a segment.
pub(crate) fn path(folder: &Path, start: u64) -> PathBuf {
    folder.join(format!("{start:020}{ENDING}"))
}

/// The positions of all segments, oldest first.
pub(crate) fn starts(folder: &Path) -> Result<Vec<u64>, StoreError> {
    let fail = |error| StoreError::file("read", folder, error);
    let mut starts = Vec::new();
    for entry in fs::read_dir(folder).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        let start = name.to_str().and_then(|name| name.strip_suffix(ENDING));
        starts.extend(start.and_then(|start| start.parse::<u64>().ok()));
    }
    starts.sort_unstable();
    Ok(starts)
}

/// Creates an empty segment.
pub(crate) fn create(folder: &Path, start: u64) -> Result<File, StoreError> {
    let path = path(folder, start);
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| failed("create", &path, error))
}

/// Opens a segment for writing.
pub(crate) fn open(folder: &Path, start: u64) -> Result<File, StoreError> {
    let path = path(folder, start);
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .map_err(|error| StoreError::file("open", &path, error))
}

/// Opens a segment for reading.
pub(crate) fn open_to_read(folder: &Path, start: u64) -> Result<File, StoreError> {
    let path = path(folder, start);
    File::open(&path).map_err(|error| StoreError::file("open", &path, error))
}

/// Whether a segment is still the one to append to, and has this length.
pub(crate) fn is_same(file: &File, length: u64) -> io::Result<bool> {
    // Times are not asked for: once they were read, newer kernels take an exact
    // timestamp at the next write, which adds a third to its cost.
    let wanted = StatxFlags::MODE | StatxFlags::NLINK | StatxFlags::SIZE;
    let found = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, wanted)?;
    let is_writable = u32::from(found.stx_mode) & WRITABLE != 0;
    // A removed file has no link left. Lines that are appended to it would be lost.
    Ok(found.stx_size == length && found.stx_nlink > 0 && is_writable)
}

/// Whether a segment is sealed.
pub(crate) fn is_sealed(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.mode() & WRITABLE == 0)
}

/// The error of a failed write; a full disk has its own.
pub(crate) fn failed(doing: &'static str, path: &Path, error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            StoreError::Full {
                source: Some(std::sync::Arc::new(error)),
            }
        }
        _ => StoreError::file(doing, path, error),
    }
}

/// How a segment ends.
#[derive(Debug, Default)]
pub(crate) struct SegmentEnd {
    /// Its length up to the last line feed. What follows is a torn line.
    pub(crate) whole: u64,
    /// The last line that can be read.
    pub(crate) last: Option<Line>,
}

/// Finds the end of a segment, reading no more of it than necessary.
pub(crate) fn end(file: &File) -> io::Result<SegmentEnd> {
    let length = file.metadata()?.len();
    let mut wanted = 8 * 1024;
    loop {
        let taken = length.min(wanted);
        let start = length - taken;
        let mut bytes = vec![0; usize::try_from(taken).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut bytes, start)?;
        let end = end_within(&bytes, start);
        if start == 0 || end.last.is_some() {
            return Ok(end);
        }
        wanted = wanted.saturating_mul(4);
    }
}

/// Finds the end within the last bytes of a file, which begin at `start`.
fn end_within(bytes: &[u8], start: u64) -> SegmentEnd {
    let mut end = SegmentEnd::default();
    let mut rest = match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(last) => bytes.get(..last).unwrap_or_default(),
        None => return end,
    };
    end.whole = start + count(rest.len()) + 1;
    while end.last.is_none() {
        let line = match rest.iter().rposition(|byte| *byte == b'\n') {
            Some(before) => {
                let line = rest.get(before + 1..).unwrap_or_default();
                rest = rest.get(..before).unwrap_or_default();
                line
            }
            // Only at the start of the file this is a whole line.
            None if start == 0 => {
                end.last = line::read(rest);
                return end;
            }
            None => return end,
        };
        end.last = line::read(line);
    }
    end
}

/// The first line of a segment, if it can be read.
pub(crate) fn first(file: &File) -> io::Result<Option<Line>> {
    let mut wanted = 4 * 1024;
    loop {
        let mut bytes = vec![0; wanted];
        let read = file.read_at(&mut bytes, 0)?;
        let read = bytes.get(..read).unwrap_or_default();
        if let Some(end) = read.iter().position(|byte| *byte == b'\n') {
            return Ok(read.get(..end).and_then(line::read));
        }
        // A first line that has no end within this bound cannot be a record.
        if read.len() < wanted || wanted > limit::LINE_BYTES_MAX {
            return Ok(None);
        }
        wanted *= 4;
    }
}

pub(crate) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
