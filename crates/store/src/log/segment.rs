//! The files of the log. The bytes of all of them, one after the other, are one
//! long text, and a file is named by the place of its first byte in it. Such a
//! place stays what it is when older files go.
//!
//! The last file is written; one that is full is sealed, which is to say made
//! read-only, so that every process that has it open sees that there is a next.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxFlags};

use crate::error::StoreError;
use crate::limit;
use crate::log::line::{self, Line};

/// What the name of a segment ends in.
const ENDING: &str = ".log";

/// The owner may write.
const WRITABLE: u32 = 0o200;

/// Where the files are.
pub(crate) fn path(folder: &Path, start: u64) -> PathBuf {
    folder.join(format!("{start:020}{ENDING}"))
}

/// The starts of all segments, oldest first.
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

/// A new, empty segment.
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

/// Opens a segment to write.
pub(crate) fn open(folder: &Path, start: u64) -> Result<File, StoreError> {
    let path = path(folder, start);
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .map_err(|error| StoreError::file("open", &path, error))
}

/// Opens a segment to read.
pub(crate) fn open_to_read(folder: &Path, start: u64) -> Result<File, StoreError> {
    let path = path(folder, start);
    File::open(&path).map_err(|error| StoreError::file("open", &path, error))
}

/// Whether a segment is still the one to write to, and has so many bytes.
pub(crate) fn is_same(file: &File, length: u64) -> io::Result<bool> {
    // Without asking for its times: where somebody looked at them, newer kernels
    // make the next write note an exact one, at a third of the cost of that write.
    let wanted = StatxFlags::MODE | StatxFlags::NLINK | StatxFlags::SIZE;
    let found = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, wanted)?;
    let is_writable = u32::from(found.stx_mode) & WRITABLE != 0;
    Ok(found.stx_size == length && found.stx_nlink > 0 && is_writable)
}

/// Whether nothing is to be written to a segment any more.
pub(crate) fn is_sealed(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.mode() & WRITABLE == 0)
}

/// An error of writing, with a full disk told apart.
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
pub(crate) struct End {
    /// Its bytes up to the last line feed. What comes after was never finished.
    pub(crate) whole: u64,
    /// The last line that can be read.
    pub(crate) last: Option<Line>,
}

/// Looks at the end of a segment, reading no more of it than necessary.
pub(crate) fn end(file: &File) -> io::Result<End> {
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

/// The same, as far as these bytes say, which start at a place of the file.
fn end_within(bytes: &[u8], start: u64) -> End {
    let mut end = End::default();
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
            // Only at the start of the file is this a whole line.
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
        if read.len() < wanted || wanted > limit::LINE_BYTES_MAX {
            return Ok(None);
        }
        wanted *= 4;
    }
}

pub(crate) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
