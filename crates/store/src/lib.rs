//! What outlives a process: the audit, what is remembered about tools, and the
//! files of the tools. All SQL is here, and no decision: the engine asks, the
//! store writes down.

pub mod approvals;
pub mod audit;
pub mod callers;
mod counter;
mod database;
mod desk;
mod error;
mod guarded;
mod index;
pub mod keys;
mod ledger;
pub mod limit;
mod log;
mod mark;
mod process;
mod queue;
mod retention;
pub mod scripts;
pub mod settings;
mod shift;
pub mod standing;
mod sync;
#[cfg(feature = "testing")]
pub mod testing;
pub mod together;
pub mod tools;
pub mod usage;

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

pub use approvals::{Approval, Approvals};
pub use audit::{Audit, Entry, Filter, Found, Item, Link, NoticeEntry, Removed, Retention, Rows};
pub use callers::Callers;
pub use error::StoreError;
pub use keys::Keys;
pub use queue::OpenRow;
pub use scripts::{Kept, KeptScript, Scripts, TakenScript};
pub use standing::{Pass, Standing, StandingTable, ToolGrants};
pub use tools::{ToolFile, ToolFolder};
pub use usage::Usage;

use desk::Desk;
use index::Index;
use ledger::Ledger;
use log::Log;
use mark::Mark;
use process::Life;
use queue::Queue;
use shift::{Shared, Shift};
use sync::Sync;

/// How soon a committed record is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// At once where somebody waits for it, else within [`limit::SYNC_MS_MAX`].
    Standard,
    /// Before any answer.
    Full,
}

/// What the operator decides about the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// How soon a record is on the disk.
    pub durability: Durability,
    /// The size of the audit's log, in bytes, beyond which calls are refused.
    pub audit_bytes_max: u64,
    /// Requests that may wait to be written; beyond that calls are refused.
    pub queue_max: usize,
}

impl StoreSettings {
    /// Standard durability, [`limit::AUDIT_BYTES_DEFAULT`] and
    /// [`limit::QUEUE_DEFAULT`].
    #[must_use]
    pub fn standard() -> StoreSettings {
        StoreSettings {
            durability: Durability::Standard,
            audit_bytes_max: limit::AUDIT_BYTES_DEFAULT,
            queue_max: limit::QUEUE_DEFAULT,
        }
    }
}

/// The store of one home. Clones share it; the last one to go ends it.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

/// What the store has done so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreStatus {
    /// Groups of records written.
    pub commits: u64,
    /// Times the disk was asked to confirm.
    pub syncs: u64,
    /// Ends that could not be written yet.
    pub owed: u64,
    /// Entries of dead processes that were closed when this one opened.
    pub crashed: u64,
}

/// How much of its allowed size the audit uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of the log.
    pub bytes: u64,
    /// Bytes it may have.
    pub bytes_max: u64,
}

impl Room {
    /// The used part, in percent.
    #[must_use]
    pub fn percent(&self) -> u64 {
        self.bytes.saturating_mul(100) / self.bytes_max.max(1)
    }
}

#[derive(Debug)]
struct Inner {
    audit: Audit,
    standing: Standing,
    approvals: Approvals,
    callers: Callers,
    usage: Usage,
    scripts: Scripts,
    desk: Arc<Desk>,
    crashed: u64,
    threads: Vec<JoinHandle<()>>,
    /// Let go of last, when the writer has left.
    _life: Life,
}

impl Store {
    /// Opens the store of a home, making both if absent, and closes what dead
    /// processes left open.
    pub fn open(home: &Path, settings: StoreSettings) -> Result<Store, StoreError> {
        let database = database::prepare(home)?;
        guarded::check(home)?;
        let home = home
            .canonicalize()
            .map_err(|error| StoreError::file("find", home, error))?;
        let life = process::begin(&home)?;
        let (log, index) = (Log::open(&home)?, Index::open(&home)?);
        let mark = Mark::new(&home);
        let mut ledger = Ledger::new(log, index, mark, life.pulse().clone())?;
        let crashed = process::bury(&home, &mut ledger)?;
        let shared = Shared {
            queue: Arc::new(Queue::new(settings.queue_max)),
            sync: Sync::default(),
            commits: AtomicU64::new(0),
            owed: AtomicU64::new(0),
        };
        if crashed > 0 {
            shared.sync.committed(ledger.file(), false);
        }
        let desk = Arc::new(Desk {
            shared,
            shift: Mutex::new(Shift::new(ledger, settings)),
        });
        let callers = Callers::open(&home, &database)?;
        let standing = Standing::open(&home, database)?;
        let approvals = Approvals::new(&home);
        let usage = Usage::new(&home, life.pulse().id());
        let scripts = Scripts::new(&home, life.pulse().id());
        let (writer, syncer) = (Arc::clone(&desk), Arc::clone(&desk));
        let mut inner = Inner {
            audit: Audit::new(home.clone(), Arc::clone(&desk)),
            standing,
            approvals,
            callers,
            usage,
            scripts,
            desk,
            crashed,
            threads: Vec::new(),
            _life: life,
        };
        let start = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread
                .spawn(work)
                .map_err(|error| StoreError::file("start the writer of", &home, error))
        };
        let writing = start("audit-writer", Box::new(move || writer.run()))?;
        inner.threads.push(writing);
        let syncing = start("audit-sync", Box::new(move || syncer.shared.sync.run()))?;
        inner.threads.push(syncing);
        Ok(Store {
            inner: Arc::new(inner),
        })
    }

    /// The audit.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.inner.audit
    }

    /// What is remembered about documents.
    #[must_use]
    pub fn standing(&self) -> &Standing {
        &self.inner.standing
    }

    /// Questions to people and their answers.
    #[must_use]
    pub fn approvals(&self) -> &Approvals {
        &self.inner.approvals
    }

    /// What is remembered about callers.
    #[must_use]
    pub fn callers(&self) -> &Callers {
        &self.inner.callers
    }

    /// What callers used of limits.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        &self.inner.usage
    }

    /// What scripts had done when they stopped for a person.
    #[must_use]
    pub fn scripts(&self) -> &Scripts {
        &self.inner.scripts
    }

    /// Puts other settings in force, from the next record on. How many requests may
    /// wait stays as it was.
    pub fn set(&self, settings: StoreSettings) -> Result<(), StoreError> {
        self.inner.desk.shift()?.set(settings);
        Ok(())
    }

    /// Whether a call could be written down now.
    pub fn ready(&self) -> Result<(), StoreError> {
        let shared = &self.inner.desk.shared;
        if let Some(failure) = shared.sync.failure() {
            return Err(failure);
        }
        self.inner.desk.shift()?.ready()
    }

    /// How much of its allowed size the audit uses.
    pub fn room(&self) -> Result<Room, StoreError> {
        Ok(self.inner.desk.shift()?.room())
    }

    /// What was done so far.
    #[must_use]
    pub fn status(&self) -> StoreStatus {
        let shared = &self.inner.desk.shared;
        StoreStatus {
            commits: shared.commits.load(Ordering::Relaxed),
            syncs: shared.sync.count(),
            owed: shared.owed.load(Ordering::Relaxed),
            crashed: self.inner.crashed,
        }
    }
}

impl Drop for Inner {
    /// Writes what waits, syncs it, and leaves.
    fn drop(&mut self) {
        self.desk.shared.queue.close();
        let mut threads = self.threads.drain(..);
        if let Some(writer) = threads.next() {
            let _ = writer.join();
        }
        self.desk.shared.sync.stop();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

/// The name of a new file is on the disk only with its folder.
fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| StoreError::file("sync", folder, error))
}
