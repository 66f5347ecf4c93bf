//! How much a child has written, without asking all the time: the free space of the file
//! systems is looked at, the more often the less of it the child may still use. Only when
//! it has fallen by more than the child may write are the child's folders counted: what
//! changed since the child started. A child can set the time of a file, but not when the
//! file was last touched.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::limit;
use crate::message::JailOrder;

/// The folders a child writes to, and how they were.
#[derive(Debug)]
pub(crate) struct DiskUse {
    folders: Vec<PathBuf>,
    bytes_max: u64,
    /// When the child started, in seconds.
    started: i64,
    /// The most free bytes since they were last counted, for each file system.
    free: BTreeMap<PathBuf, u64>,
    /// Bytes by which it may fall before the folders are counted: what the child had left then.
    fall_max: u64,
    /// Bytes by which it may still fall.
    left: u64,
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
            fall_max: order.limits.disk_bytes,
            left: order.limits.disk_bytes,
        }
    }

    /// How long the child cannot write too much; `None` where it has nowhere to write. One that
    /// allocates files without writing them is faster than any pause.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let pause = self.left.saturating_mul(1_000) / limit::DISK_RATE_BYTES_MAX;
        let pause = pause.clamp(limit::LOOK_INTERVAL_MS_MIN, limit::LOOK_INTERVAL_MS_MAX);
        (!self.free.is_empty()).then(|| Duration::from_millis(pause))
    }

    /// Whether the folders have grown by more than they may.
    pub(crate) fn is_too_much(&mut self) -> bool {
        let mut fallen = 0;
        for (folder, before) in &mut self.free {
            let Some(now) = free(folder) else { continue };
            // What another program frees would hide what the child writes.
            *before = (*before).max(now);
            fallen = fallen.max(before.saturating_sub(now));
        }
        self.left = self.fall_max.saturating_sub(fallen);
        if fallen <= self.fall_max {
            return false;
        }
        // Invariant 8: too many files to count are too much.
        let Some(written) = count(&self.folders, self.started) else {
            return true;
        };
        if written > self.bytes_max {
            return true;
        }
        // Another program wrote, too. Of a child that is close to its bound not every byte is
        // worth a count.
        let left = self.bytes_max.saturating_sub(written);
        self.fall_max = left.max(self.bytes_max / limit::DISK_PARTS);
        self.left = self.fall_max;
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
        // Not the time of modification: a program can set that as it likes.
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
