//! Faults for tests: a disk whose syncs fail and that remembers what it synced, which
//! is what a power cut leaves; transactions that fail; an audit that refuses notices.
//! Never in a release.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use model::sync::lock;
use rustix::process::{Signal, getpid, kill_process};

use crate::error::StoreError;

/// Device, inode and birth time: inode numbers are reused.
type Key = (u64, u64, SystemTime);

/// Synced bytes of each file.
static CONFIRMED: Mutex<BTreeMap<Key, u64>> = Mutex::new(BTreeMap::new());
/// Folders of logs whose syncs fail.
static FAILED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The change of a table that fails just before it commits, if one does.
#[derive(Debug)]
pub(crate) struct Failing<S>(Mutex<Option<S>>);

impl<S> Default for Failing<S> {
    fn default() -> Failing<S> {
        Failing(Mutex::new(None))
    }
}

impl<S: Copy + PartialEq> Failing<S> {
    pub(crate) fn set(&self, step: Option<S>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = step;
    }

    pub(crate) fn at(&self, step: S) -> rusqlite::Result<()> {
        if *self.0.lock().unwrap_or_else(PoisonError::into_inner) != Some(step) {
            return Ok(());
        }
        let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_WRITE);
        Err(rusqlite::Error::SqliteFailure(error, None))
    }
}

/// How many statements this process may still send to a shared store before it is killed.
/// Zero: as many as it likes.
static STEPS_LEFT: AtomicU64 = AtomicU64::new(0);

/// Kills this process, without a word, before its n-th statement to a shared store: after the
/// answer to the one before it.
pub fn kill_at_step(step: u64) {
    STEPS_LEFT.store(step, Ordering::SeqCst);
}

pub(crate) fn step_shared() {
    let left = STEPS_LEFT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
        left.checked_sub(1)
    });
    if left == Ok(1) {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

/// How far the clock of this process is wrong, in milliseconds.
static CLOCK_AHEAD_MS: AtomicI64 = AtomicI64::new(0);

/// Sets the clock of this process wrong.
pub fn set_clock_ahead(ms: i64) {
    CLOCK_AHEAD_MS.store(ms, Ordering::SeqCst);
}

pub(crate) fn clock_ahead_ms() -> i64 {
    CLOCK_AHEAD_MS.load(Ordering::SeqCst)
}

/// Homes whose audit refuses notices.
static DEAF: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// From now on the audit of a home refuses notices and takes calls as before.
pub fn refuse_notices(home: &Path) {
    let mut deaf = lock(&DEAF);
    deaf.push(home.to_owned());
}

pub(crate) fn takes_notices(home: &Path) -> Result<(), StoreError> {
    let deaf = lock(&DEAF);
    match deaf.iter().any(|deaf| deaf == home) {
        true => Err(StoreError::Closed),
        false => Ok(()),
    }
}

/// From now on every sync of a home's log fails.
pub fn fail_syncs(home: &Path) {
    let mut failed = lock(&FAILED);
    failed.push(crate::home::audit_folder(home));
}

/// Ends the faults of a home.
pub fn mend(home: &Path) {
    let mut deaf = lock(&DEAF);
    deaf.retain(|deaf| deaf != home);
    drop(deaf);
    let mut failed = lock(&FAILED);
    failed.retain(|folder| *folder != crate::home::audit_folder(home));
}

fn key(metadata: &Metadata) -> Key {
    let born = metadata.created().unwrap_or(SystemTime::UNIX_EPOCH);
    (metadata.dev(), metadata.ino(), born)
}

pub(crate) fn confirmed(file: &File) -> io::Result<()> {
    let metadata = file.metadata()?;
    let key = key(&metadata);
    let failed = lock(&FAILED).clone();
    for folder in failed {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let found = entry.metadata();
            if found.is_ok_and(|found| self::key(&found) == key) {
                return Err(io::Error::from_raw_os_error(5));
            }
        }
    }
    // Bytes written during the sync may not be covered by it.
    let length = metadata.len();
    file.sync_data()?;
    let mut all = lock(&CONFIRMED);
    let confirmed = all.entry(key).or_default();
    *confirmed = length.max(*confirmed);
    Ok(())
}

/// Copies a home as a power cut would leave its log: of each segment what was synced,
/// and `beyond` bytes more if they were written. The index is left out, because it may
/// be half written.
pub fn cut_power(home: &Path, to: &Path, beyond: u64) -> Result<(), StoreError> {
    let fail = |error| StoreError::file("copy", home, error);
    let (from, into) = (
        crate::home::audit_folder(home),
        crate::home::audit_folder(to),
    );
    fs::create_dir_all(&into).map_err(fail)?;
    for entry in fs::read_dir(&from).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_name().unwrap_or_default();
        if name.as_encoded_bytes().starts_with(b"index") {
            continue;
        }
        let copy = into.join(name);
        fs::copy(&path, &copy).map_err(fail)?;
        if path.extension().is_none_or(|ending| ending != "log") {
            continue;
        }
        let metadata = fs::metadata(&path).map_err(fail)?;
        let key = key(&metadata);
        let all = lock(&CONFIRMED);
        let confirmed = all.get(&key).copied().unwrap_or(0);
        let length = metadata.len().min(confirmed + beyond);
        if length == metadata.len() {
            continue;
        }
        let file = File::options().write(true).open(&copy).map_err(fail)?;
        file.set_len(length).map_err(fail)?;
    }
    Ok(())
}
