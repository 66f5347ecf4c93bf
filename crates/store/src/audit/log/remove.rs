//! Deleting old records from the log, file by file, after a checkpoint says that they
//! were removed. The checkpoint is on the disk first; a process that finds it together
//! with the records finishes the removal.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use model::record::audit::chain::{ChainHash, Checkpoint};

use crate::audit::log::line::{self, Line};
use crate::audit::log::snapshot::LogSnapshot;
use crate::audit::log::{disk, segment};
use crate::error::StoreError;
use crate::home::files::sync_folder;

/// The file of open records that stay although their segment is deleted.
const KEPT: &str = "kept";
/// A file that is still being written.
const UNFINISHED: &str = "unfinished";

/// The records that stayed.
pub(crate) fn kept(folder: &Path) -> Result<Vec<Line>, StoreError> {
    let path = folder.join(KEPT);
    match fs::read(&path) {
        Ok(bytes) => {
            let lines = bytes.split(|byte| *byte == b'\n');
            Ok(lines.filter_map(line::read).collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(StoreError::file("read", path, error)),
    }
}

/// Deletes what the newest checkpoint says was removed, if it is still there. The
/// caller holds the lock.
pub(crate) fn finish(folder: &Path) -> Result<(), StoreError> {
    let snapshot = LogSnapshot::of(folder)?;
    let Some(checkpoint) = snapshot.unfinished()? else {
        return Ok(());
    };
    // The checkpoint must survive a power cut before anything is deleted.
    snapshot.sync_checkpoint()?;
    let mut stay = wanted(&checkpoint);
    let mut kept: Vec<Line> = Vec::new();
    let mut keep = |line: Line| {
        // By hash and not by number alone: a line that was changed is not the one the
        // checkpoint keeps.
        if stay.get(&line.record.sequence) == Some(&line.record.hash) {
            stay.remove(&line.record.sequence);
            kept.push(line);
        }
    };
    snapshot.kept().iter().cloned().for_each(&mut keep);
    let mut cut = snapshot.end();
    for placed in snapshot.lines(0) {
        let (position, line) = placed?;
        match line {
            Some(line) if line.record.sequence > checkpoint.through.sequence => {
                cut = position;
                break;
            }
            Some(line) => keep(line),
            // An unreadable line among those that were removed.
            None => {}
        }
    }
    // Readers expect them in the order of the chain.
    kept.sort_by_key(|line| line.record.sequence);
    // Before the segments go, because afterwards these records are nowhere else.
    write_kept(folder, &kept)?;
    cut_off(folder, cut)?;
    sync_folder(folder)
}

fn wanted(checkpoint: &Checkpoint) -> BTreeMap<u64, ChainHash> {
    let heads = checkpoint.kept.iter();
    heads.map(|head| (head.sequence, head.hash)).collect()
}

fn write_kept(folder: &Path, kept: &[Line]) -> Result<(), StoreError> {
    let path = folder.join(KEPT);
    let mut bytes = Vec::new();
    kept.iter()
        .for_each(|line| line::write_again(&mut bytes, line));
    replace(folder, &path, |file| file.write_all(&bytes))
}

/// Deletes every byte before a position.
fn cut_off(folder: &Path, cut: u64) -> Result<(), StoreError> {
    for start in segment::starts(folder)? {
        if start >= cut {
            break;
        }
        let path = segment::path(folder, start);
        let fail = |error| StoreError::file("cut", &path, error);
        let file = segment::open_to_read(folder, start)?;
        let length = file.metadata().map_err(fail)?.len();
        // The rest gets its own file, named by its first byte, before the old one is
        // deleted. A process that dies in between leaves both, and the next one finishes.
        if start + length > cut {
            let rest = segment::path(folder, cut);
            let seal = Permissions::from_mode(0o400);
            replace(folder, &rest, |unfinished| {
                copy(&file, cut - start, unfinished)?;
                unfinished.set_permissions(seal.clone())
            })?;
        }
        fs::remove_file(&path).map_err(fail)?;
    }
    Ok(())
}

fn copy(from: &File, mut offset: u64, to: &mut File) -> io::Result<()> {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let read = from.read_at(&mut buffer, offset)?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(buffer.get(..read).unwrap_or_default())?;
        offset += segment::count(read);
    }
}

/// Replaces a file atomically and syncs it and its name: what it is made from may be deleted
/// afterwards.
fn replace(
    folder: &Path,
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), StoreError> {
    let unfinished: PathBuf = folder.join(UNFINISHED);
    let _ = fs::remove_file(&unfinished);
    let written = || -> io::Result<File> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)?;
        fill(&mut file)?;
        Ok(file)
    };
    let fail = |error| segment::failed("write", path, error);
    disk::sync(&written().map_err(fail)?)?;
    fs::rename(&unfinished, path).map_err(fail)?;
    sync_folder(folder)
}
