//! How much a child has written, without asking all the time: the free space of the file
//! systems is looked at often, and only when it has fallen by more than the child may
//! write are the child's folders counted: what changed since the child started. A child
//! can set the time of a file, but not when the file was last touched.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::limit;
use crate::message::JailOrder;

/// The folders a child writes to, and how they were.
#[derive(Debug)]
pub(crate) struct DiskUse {
    folders: Vec<PathBuf>,
    bytes_max: u64,
    /// When the child started, in seconds.
    started: i64,
    /// Free bytes when they were last counted, for each file system.
    free: BTreeMap<PathBuf, u64>,
}

impl DiskUse {
    pub(crate) fn new(order: &JailOrder) -> DiskUse {
        let mut folders = order.own.clone();
        folders.extend(order.overlays.iter().map(|overlay| overlay.upper.clone()));
        let free = folders
            .iter()
            .filter_map(|folder| Some((folder.clone(), free(folder)?)))
            .collect();
        // One second for a clock of the file system that is behind.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        DiskUse {
            started: now.tv_sec.saturating_sub(1),
            folders,
            bytes_max: order.limits.disk_bytes,
            free,
        }
    }

    /// Whether the folders have grown by more than they may.
    pub(crate) fn is_too_much(&mut self) -> bool {
        let fallen = self.free.iter().any(|(folder, before)| {
            free(folder).is_some_and(|now| before.saturating_sub(now) > self.bytes_max)
        });
        if !fallen {
            return false;
        }
        let written = count(&self.folders, self.started);
        if written.is_none_or(|written| written > self.bytes_max) {
            return true;
        }
        // Another program wrote.
        for (folder, before) in &mut self.free {
            *before = free(folder).unwrap_or(*before);
        }
        false
    }
}

fn free(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bfree.saturating_mul(found.f_frsize))
}

/// Bytes that the files in some folders take, of those touched since a time; `None` if there
/// are too many files.
fn count(folders: &[PathBuf], since: i64) -> Option<u64> {
    const BLOCK_BYTES: u64 = 512;
    let mut entries = 0_usize;
    let mut bytes = 0_u64;
    let mut open: Vec<PathBuf> = folders.to_vec();
    while let Some(path) = open.pop() {
        entries += 1;
        if entries > limit::DISK_ENTRIES_MAX {
            return None;
        }
        let Ok(found) = fs::symlink_metadata(&path) else {
            continue;
        };
        if found.ctime() >= since {
            bytes = bytes.saturating_add(found.blocks().saturating_mul(BLOCK_BYTES));
        }
        if found.is_dir() {
            let inner = fs::read_dir(&path).into_iter().flatten().flatten();
            open.extend(inner.map(|entry| entry.path()));
        }
    }
    Some(bytes)
}
