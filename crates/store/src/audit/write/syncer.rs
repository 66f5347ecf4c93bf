//! Getting committed records onto the disk. One thread syncs for all calls: those
//! that wait while a sync runs share the next one. A commit that no call waits for
//! still reaches the disk in time.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::sync::lock;
use tokio::sync::oneshot;

use crate::audit::log::disk;
use crate::error::StoreError;
use crate::limit;

/// How long a commit waits for company; the rest of the time is for the sync itself.
const WAIT: Duration = Duration::from_millis(limit::SYNC_MS_MAX * 6 / 10);

/// Knows what is committed and what is on the disk, counted in commits.
#[derive(Debug, Default)]
pub(crate) struct Syncer {
    state: Mutex<State>,
    wake: Condvar,
    syncs: AtomicU64,
    /// Microseconds that all syncs took.
    sync_us: AtomicU64,
}

type Waiter = oneshot::Sender<Result<(), StoreError>>;

#[derive(Debug, Default)]
struct State {
    committed: u64,
    synced: u64,
    dirty_since: Option<Instant>,
    waiters: Vec<Waiter>,
    /// The segment of the last commit. Earlier segments were synced before this one
    /// began.
    file: Option<Arc<File>>,
    failed: Option<StoreError>,
    stop: bool,
}

/// A sync that is due, and the calls that wait for it.
struct Due {
    commit: u64,
    file: Arc<File>,
    waiters: Vec<Waiter>,
}

impl Syncer {
    /// Notes a commit to a file and returns its number.
    pub(crate) fn note_commit(&self, file: &Arc<File>, is_synced: bool) -> u64 {
        let mut state = self.lock();
        state.committed += 1;
        if !state
            .file
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, file))
        {
            state.file = Some(Arc::clone(file));
        }
        let commit = state.committed;
        if is_synced {
            state.synced = commit;
            self.syncs.fetch_add(1, Ordering::Relaxed);
        } else if state.dirty_since.is_none() {
            state.dirty_since = Some(Instant::now());
            drop(state);
            self.wake.notify_one();
        }
        commit
    }

    /// Resolves when a commit is on the disk.
    pub(crate) async fn wait_for(&self, commit: u64) -> Result<(), StoreError> {
        let answer = {
            let mut state = self.lock();
            // First of all: a row that was written before the failure is in doubt too.
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            if state.synced >= commit {
                return Ok(());
            }
            if state.stop {
                return Err(StoreError::Closed);
            }
            let (sender, answer) = oneshot::channel();
            state.waiters.push(sender);
            answer
        };
        self.wake.notify_one();
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Why nothing can be written any more, if a sync failed.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.lock().failed.clone()
    }

    /// How many syncs were made.
    pub(crate) fn count(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Microseconds that the thread spent on them.
    pub(crate) fn took_us(&self) -> u64 {
        self.sync_us.load(Ordering::Relaxed)
    }

    /// How long the oldest commit waits for the disk, in microseconds.
    pub(crate) fn lag_us(&self) -> u64 {
        let since = self.lock().dirty_since;
        let lag = since.map_or(0, |since| since.elapsed().as_micros());
        u64::try_from(lag).unwrap_or(u64::MAX)
    }

    /// Ends the thread, after a last sync.
    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.wake.notify_one();
    }

    /// Body of the sync thread.
    pub(crate) fn run(&self) {
        while let Some(due) = self.next() {
            let began = Instant::now();
            let result = disk::sync(&due.file);
            let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.sync_us.fetch_add(took, Ordering::Relaxed);
            self.syncs.fetch_add(1, Ordering::Relaxed);
            if let Err(failure) = result {
                self.fail(&failure);
                for waiter in due.waiters {
                    let _ = waiter.send(Err(failure.clone()));
                }
                return;
            }
            {
                let mut state = self.lock();
                // `max`, because a writer may have synced a later commit
                // by itself meanwhile.
                state.synced = state.synced.max(due.commit);
            }
            for waiter in due.waiters {
                let _ = waiter.send(Ok(()));
            }
        }
    }

    /// Waits until a sync is due; nothing once the syncer is stopped and all is synced.
    fn next(&self) -> Option<Due> {
        let mut state = self.lock();
        loop {
            let wait = match state.dirty_since {
                None if !state.waiters.is_empty() => Duration::ZERO,
                None if state.stop => return None,
                None => Duration::MAX,
                Some(_) if state.stop || !state.waiters.is_empty() => Duration::ZERO,
                Some(since) => WAIT.saturating_sub(since.elapsed()),
            };
            if wait.is_zero()
                && let Some(file) = state.file.clone()
            {
                // The sync that follows does not cover later commits.
                state.dirty_since = None;
                return Some(Due {
                    commit: state.committed,
                    file,
                    waiters: std::mem::take(&mut state.waiters),
                });
            }
            state = match wait {
                Duration::MAX => self
                    .wake
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                wait => {
                    let waited = self.wake.wait_timeout(state, wait);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Refuses everything from now on. After a failed sync the content of the disk is
    /// unknown: the kernel may have dropped the pages, and a second sync would then
    /// report success.
    pub(crate) fn fail(&self, failure: &StoreError) {
        let waiters = {
            let mut state = self.lock();
            state.failed.get_or_insert_with(|| failure.clone());
            std::mem::take(&mut state.waiters)
        };
        for waiter in waiters {
            let _ = waiter.send(Err(failure.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}
