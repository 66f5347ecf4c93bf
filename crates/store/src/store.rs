//! The store of one home. Opening it makes what is absent, closes the calls of dead
//! processes and starts three threads: one writes the audit, one syncs it, one signs it.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::audit::Audit;
use crate::audit::settings::{Room, StoreSettings};
use crate::audit::write::writer::Writer;
use crate::error::StoreError;
use crate::home::database::LazyConnection;
use crate::home::process::Liveness;
use crate::home::{database, permission, process};
use crate::postgres::Cluster;
use crate::postgres::address::Address;
use crate::postgres::watch::NewsKind;
use crate::share::SharedFiles;
use crate::sql::peers::Peers;
use crate::sql::tables::Tables;
use crate::sql::version::VersionCounter;
use crate::tables::approvals::Approvals;
use crate::tables::callers::CallerRecords;
use crate::tables::jobs::Jobs;
use crate::tables::people::People;
use crate::tables::publications::Publications;
use crate::tables::scripts::Scripts;
use crate::tables::usage::QuotaUsage;
use crate::tables::waiting_scripts::WaitingScripts;
use crate::tables::witnessed::WitnessedHeads;

/// The store of one home. Clones share it; dropping the last one closes it.
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
    /// Microseconds the disk took to confirm, all times together.
    pub sync_us: u64,
    /// How long the oldest record waits for the disk, in microseconds.
    pub lag_us: u64,
    /// Records that wait to be written.
    pub queue: u64,
    /// Ends of calls that could not be written yet.
    pub owed: u64,
    /// Calls of dead processes that were closed when this process opened the store.
    pub crashed: u64,
}

#[derive(Debug)]
struct Inner {
    audit: Audit,
    publications: Publications,
    approvals: Approvals,
    callers: CallerRecords,
    people: People,
    usage: Arc<QuotaUsage>,
    scripts: Scripts,
    waiting_scripts: WaitingScripts,
    jobs: Jobs,
    witnessed: WitnessedHeads,
    files: Option<SharedFiles>,
    writer: Arc<Writer>,
    crashed: u64,
    threads: Vec<JoinHandle<()>>,
    /// The nodes this one shares its decisions with.
    cluster: Option<Arc<Cluster>>,
    process: Arc<str>,
    /// Dropped last: while records are written, this process counts as alive.
    _liveness: Liveness,
}

impl Store {
    /// Opens the store of a home, creating both if absent, and closes the calls that
    /// dead processes left open.
    pub fn open(home: &Path, settings: StoreSettings) -> Result<Store, StoreError> {
        Store::open_with(home, settings, |home, liveness| {
            let address = Address::of(home)?.map(|address| address.shown());
            // Told first: of two processes that begin at once, at least one sees the other.
            liveness.tell_store(address.as_deref())?;
            process::check_store(home, address.as_deref())?;
            Cluster::of(home)
        })
    }

    fn open_with(
        home: &Path,
        settings: StoreSettings,
        find_cluster: impl FnOnce(&Path, &Liveness) -> Result<Option<Arc<Cluster>>, StoreError>,
    ) -> Result<Store, StoreError> {
        let database = database::prepare(home)?;
        // After the database was made: `prepare` takes rights away from
        // others where it can.
        permission::check(home)?;
        // Once and for all: the paths below must not depend on links that change later.
        let home = home
            .canonicalize()
            .map_err(|error| StoreError::file("find", home, error))?;
        // Before the audit is opened. A record in the name of a process without a lock
        // would look like that of a dead one.
        let liveness = process::begin(&home)?;
        let process = Arc::clone(liveness.identity().id());
        let cluster = find_cluster(&home, &liveness)?;
        let (writer, crashed) = Writer::open(&home, liveness.identity(), settings)?;
        let writer = Arc::new(writer);
        let shared = cluster.as_ref();
        if let Some(cluster) = shared {
            cluster.news().join(&process, cluster.pool())?;
        }
        let tables = |synchronous| Tables::new(shared, LazyConnection::new(&home, synchronous));
        let counter = |kind, file| VersionCounter::open(shared, kind, home.join(file));
        let peers = Peers::new(shared, &home);
        let made = Tables::new(shared, LazyConnection::made_of(database));
        let counted = counter(NewsKind::Publications, "standing.version")?;
        let callers = counter(NewsKind::Callers, "callers.version")?;
        let callers = CallerRecords::open(tables("FULL"), &made, callers)?;
        let mut inner = Inner {
            audit: Audit::new(home.clone(), Arc::clone(&writer)),
            publications: Publications::open(made, counted)?,
            // What is used must stay used if the power fails: approvals, codes, steps of
            // scripts, and what a cosignature was given for.
            approvals: Approvals::new(tables("FULL")),
            callers,
            people: People::new(tables("FULL")),
            usage: Arc::new(QuotaUsage::new(tables("NORMAL"), peers.clone(), &process)),
            waiting_scripts: WaitingScripts::new(tables("NORMAL")),
            scripts: Scripts::new(tables("FULL"), peers.clone(), &process),
            jobs: Jobs::new(tables("NORMAL"), peers, &process),
            witnessed: WitnessedHeads::new(&home, tables("FULL")),
            files: shared.map(|cluster| SharedFiles::new(&home, cluster)),
            writer: Arc::clone(&writer),
            crashed,
            threads: Vec::new(),
            cluster: cluster.clone(),
            process,
            _liveness: liveness,
        };
        let start = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread
                .spawn(work)
                .map_err(|error| StoreError::file("start the writer of", &home, error))
        };
        let (syncing, signing) = (Arc::clone(&writer), Arc::clone(&writer));
        let thread = start("audit-writer", Box::new(move || writer.run()))?;
        inner.threads.push(thread);
        let thread = start("audit-sync", Box::new(move || syncing.run_syncer()))?;
        inner.threads.push(thread);
        let thread = start("audit-sign", Box::new(move || signing.run_signer()))?;
        inner.threads.push(thread);
        Ok(Store {
            inner: Arc::new(inner),
        })
    }

    /// Whether other nodes share the decisions. Then no file of the home tells of a change.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.inner.cluster.is_some()
    }

    /// Whether the shared store answers, or did within a second. A home always does.
    pub fn reach(&self) -> Result<(), StoreError> {
        match &self.inner.cluster {
            None => Ok(()),
            Some(cluster) => {
                let version = cluster.news().version(NewsKind::Callers, cluster.pool());
                version.map(drop)
            }
        }
    }

    /// The audit.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.inner.audit
    }

    /// Test results, published documents and grants of tools.
    #[must_use]
    pub fn publications(&self) -> &Publications {
        &self.inner.publications
    }

    /// Questions to people and their answers.
    #[must_use]
    pub fn approvals(&self) -> &Approvals {
        &self.inner.approvals
    }

    /// Denials, pauses, trust levels and feedback of callers.
    #[must_use]
    pub fn callers(&self) -> &CallerRecords {
        &self.inner.callers
    }

    /// Codes and sessions of people at the Studio.
    #[must_use]
    pub fn people(&self) -> &People {
        &self.inner.people
    }

    /// How much of their quotas callers used.
    #[must_use]
    pub fn usage(&self) -> &Arc<QuotaUsage> {
        &self.inner.usage
    }

    /// Journals of scripts that wait for a person.
    #[must_use]
    pub fn scripts(&self) -> &Scripts {
        &self.inner.scripts
    }

    /// Texts of scripts whose calls ask a person.
    #[must_use]
    pub fn waiting_scripts(&self) -> &WaitingScripts {
        &self.inner.waiting_scripts
    }

    /// The heads of other people's logs.
    #[must_use]
    pub fn witnessed(&self) -> &WitnessedHeads {
        &self.inner.witnessed
    }

    /// Background jobs of callers.
    #[must_use]
    pub fn jobs(&self) -> &Jobs {
        &self.inner.jobs
    }

    /// Settings, rules and documents that nodes share; nothing if this home stands alone.
    #[must_use]
    pub fn shared_files(&self) -> Option<&SharedFiles> {
        self.inner.files.as_ref()
    }

    /// Applies other settings from the next record on. The length of the queue is
    /// fixed when the store is opened.
    pub fn set(&self, settings: StoreSettings) -> Result<(), StoreError> {
        self.inner.writer.batches()?.set(settings);
        Ok(())
    }

    /// Whether the opening of a call could be written now.
    pub fn ready(&self) -> Result<(), StoreError> {
        self.reach()?;
        self.inner.writer.ready()
    }

    /// How much of its allowed size the audit uses.
    pub fn room(&self) -> Result<Room, StoreError> {
        Ok(self.inner.writer.batches()?.room())
    }

    /// What was done so far.
    #[must_use]
    pub fn status(&self) -> StoreStatus {
        let shared = self.inner.writer.shared();
        StoreStatus {
            commits: shared.commits(),
            syncs: shared.syncer.count(),
            sync_us: shared.syncer.took_us(),
            lag_us: shared.syncer.lag_us(),
            queue: shared.queue.waiting(),
            owed: shared.owed(),
            crashed: self.inner.crashed,
        }
    }
}

/// The audit of one home without the rest of its store. Evidence is in the home alone, so
/// this opens while a store that the home shares with others does not answer.
#[derive(Clone, Debug)]
pub struct LocalAudit {
    store: Store,
}

impl LocalAudit {
    /// Opens the audit of a home, as [`Store::open`] does.
    pub fn open(home: &Path, settings: StoreSettings) -> Result<LocalAudit, StoreError> {
        // Without the cluster, the other tables would be those of the home. They are not
        // reachable from here, so this process uses no store and tells of none: it neither
        // hinders another that uses one, nor needs its settings.
        let store = Store::open_with(home, settings, |_, _| Ok(None))?;
        Ok(LocalAudit { store })
    }

    /// The audit.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        self.store.audit()
    }
}

impl Drop for Inner {
    /// Writes what waits, syncs it, signs it, and ends the threads. The writer ends first,
    /// for the last sync and the last head must cover what it wrote.
    fn drop(&mut self) {
        let shared = self.writer.shared();
        shared.queue.close();
        let mut threads = self.threads.drain(..);
        if let Some(writer) = threads.next() {
            let _ = writer.join();
        }
        // After the writer, whose last records they have to cover.
        shared.syncer.stop();
        shared.signer.stop();
        for thread in threads {
            let _ = thread.join();
        }
        if let Some(cluster) = &self.cluster {
            cluster.news().leave(&self.process, cluster.pool());
        }
    }
}
