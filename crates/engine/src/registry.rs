//! Which tools there are, right now.
//!
//! Documents are files, settings are a file, passes and publications are in the
//! store. A snapshot holds all of them as they were when it was taken; before
//! every call the registry asks the system whether anything changed since, and
//! takes a new one if so. A file that cannot be used is set aside with its
//! findings and takes nothing else down.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use model::govern::consent::Granted;
use model::govern::tool_policy::ToolPolicy;
use model::govern::trust::{Strategy, TrustState};
use model::record::audit::Act;
use store::{SharedFiles, Store, StoreError, SyncedFiles, ToolFolder};

use crate::callers::CallerBook;
use crate::catalog::Catalog;
use crate::error::{EngineError, causes};
use crate::notice::loudly;
use crate::services::Alarm;
use crate::settings::{self, Candidate, Settings, store_settings};
use crate::snapshot::next_serial;
use model::sync::lock;

mod build;
mod names;

pub(crate) use build::own_names;
use build::{Known, effective_baseline, stands, take, take_servers};

pub use crate::settings::read_config;
pub use crate::snapshot::{ShadowSnapshot, Snapshot};
pub use crate::tool::{SetAside, Tool, ToolBody, ToolState};
pub use names::Stranger;
pub use store::settings::CONFIG_FILE;

/// Which tools there are.
#[derive(Debug)]
pub struct Registry {
    home: PathBuf,
    folder: ToolFolder,
    store: Store,
    catalog: Arc<Catalog>,
    callers: Arc<CallerBook>,
    policy: ToolPolicy,
    alarm: Alarm,
    /// What is changed by hand is not sent to other nodes.
    follows: bool,
    latest: Mutex<Latest>,
}

#[derive(Debug)]
struct Latest {
    snapshot: Arc<Snapshot>,
    standing_version: u64,
    /// The revision of the files that nodes share.
    files_revision: u64,
    /// What callers earned when the snapshot was taken.
    earned: Arc<BTreeMap<String, TrustState>>,
    known: Known,
    /// Why the newest settings are not in force, if they are not.
    refused: Option<String>,
    /// What the settings in force name and is gone since, in a sentence.
    gone: Option<String>,
    /// The keys there were when settings were refused for a name nothing has: with
    /// another key they may be good.
    keys: Option<Vec<String>>,
    /// Settings could not be written down and are to be tried again.
    is_owing: bool,
    /// Why nothing could be read the last time, which is said once.
    failing: Option<String>,
}

/// Why the newest settings were not taken.
enum NotTaken {
    /// They are wrong, or could not be written down.
    Refused(String),
    /// The shared store does not answer, so it is not known what they would do.
    Store(EngineError),
}

impl NotTaken {
    fn of(fault: EngineError) -> NotTaken {
        match is_outage(&fault) {
            true => NotTaken::Store(fault),
            false => NotTaken::Refused(causes(&fault)),
        }
    }
}

fn is_outage(fault: &EngineError) -> bool {
    matches!(fault, EngineError::Store(StoreError::Unavailable { .. }))
}

impl Registry {
    /// Reads everything for the first time. Settings that cannot be understood
    /// are an error here; later they leave the last good ones in force.
    pub(crate) fn open(
        home: &Path,
        store: &Store,
        catalog: Arc<Catalog>,
        callers: Arc<CallerBook>,
        policy: ToolPolicy,
        (alarm, follows): (Alarm, bool),
    ) -> Result<Registry, EngineError> {
        let folder = ToolFolder::open(home)?;
        // Asked before reading: what changes while we read is read again.
        let _ = folder.changed();
        let standing_version = store.publications().version()?;
        let files_revision = match store.shared_files() {
            None => 0,
            Some(files) => say_synced(&alarm, &brought_together(files, follows)?),
        };
        let settings = Arc::new(settings::read(home)?);
        names::check_preset(home, &settings, &catalog)?;
        let earned = callers.earned()?;
        let mut known = Known::default();
        let inputs = (&settings, &*earned, &policy);
        // Names in the settings can be checked only against the tools there are.
        let mut snapshot = take(&folder, store, &catalog, inputs, &mut known)?;
        let gone = names::check(home, store, &settings, &snapshot, &catalog)?;
        let settings = names::tried(home, settings, &snapshot, &catalog);
        snapshot.try_settings(&settings);
        let registry = Registry {
            home: home.to_owned(),
            folder,
            store: store.clone(),
            catalog,
            callers,
            policy,
            alarm,
            follows,
            latest: Mutex::new(Latest {
                snapshot: Arc::new(snapshot),
                standing_version,
                files_revision,
                earned,
                known,
                refused: None,
                gone: None,
                keys: None,
                is_owing: false,
                failing: None,
            }),
        };
        registry.say_gone(&mut lock(&registry.latest), gone);
        registry.say_outdated(&settings);
        if let Err(fault) = settings::note(store, &settings, false) {
            // No good settings came before these, so nothing is in force until the
            // audit says what is. Every call tries again.
            let why = format!(
                "the settings could not be recorded in the audit: {}",
                causes(&fault)
            );
            registry.alarm.raise(&why);
            let mut latest = lock(&registry.latest);
            latest.snapshot = Arc::new(latest.snapshot.unsettled(why));
            latest.is_owing = true;
        }
        registry.watch_named(&settings);
        Ok(registry)
    }

    /// Watches what the settings name, and says what is wrong with a candidate.
    fn watch_named(&self, settings: &Settings) {
        let shadow = settings.config.shadow.iter();
        let named = shadow.map(|file| self.home.join(file)).collect();
        self.folder.watch_also(named);
        let broken = match &settings.shadow {
            None => None,
            Some(Candidate::Broken { file, why }) => Some((file, why.clone())),
            Some(Candidate::Good { .. }) => None,
        };
        if let Some((file, why)) = broken {
            self.alarm.raise(&format!(
                "the shadow candidate `{file}` is not evaluated: {why}"
            ));
            if let Some(notice) = settings::broken_candidate(&self.store, file, &why) {
                loudly(&self.store, &self.alarm, notice);
            }
        }
    }

    /// Everything as it would be if other settings were in force.
    pub fn under(&self, settings: &Arc<Settings>) -> Result<Snapshot, EngineError> {
        let latest = lock(&self.latest);
        // A copy: other settings judge files otherwise, and must not replace what is
        // known.
        let mut known = latest.known.clone();
        let earned = Arc::clone(&latest.earned);
        // Reading a folder takes long, and calls do not wait for a preview.
        drop(latest);
        let inputs = (settings, &*earned, &self.policy);
        take(&self.folder, &self.store, &self.catalog, inputs, &mut known)
    }

    /// What held at the last look, at no cost. It may be one change behind, so it
    /// serves to describe and never to decide.
    pub fn latest(&self) -> Arc<Snapshot> {
        Arc::clone(&lock(&self.latest).snapshot)
    }

    /// What holds now. Whatever a person changed before this was asked is in it.
    pub fn current(&self) -> Arc<Snapshot> {
        // The lock is held throughout: two calls that see the same change must not both
        // build a snapshot, and neither may go on with the old one.
        let mut latest = lock(&self.latest);
        // One read of inotify tells whether a file changed since. That is why no thread
        // watches, and why an edit holds from the next call on.
        let news = self.folder.news();
        let version = self
            .store
            .is_shared()
            .then(|| self.store.publications().version());
        let synced = self.sync_files(&mut latest, news.files);
        let is_other = news.files
            || !matches!(synced, Ok(false))
            || self.has_earned_news(&latest)
            || self.has_other_keys(&latest);
        let is_settled = latest.standing_version != u64::MAX && !latest.is_owing;
        // Changes of other nodes are in no file of this home.
        let is_covered = news.covers_publications && !self.store.is_shared();
        if !is_other && !news.publications && is_covered && is_settled {
            return Arc::clone(&latest.snapshot);
        }
        // Read before the tables: a change in between is seen at the next call.
        let version = version.unwrap_or_else(|| self.store.publications().version());
        let same = matches!(&version, Ok(version) if *version == latest.standing_version);
        if !is_other && same && !latest.is_owing {
            return Arc::clone(&latest.snapshot);
        }
        // Publishing is the most frequent change, and reads no file.
        // Another node may have published what no file here holds.
        let is_own = !is_other && is_settled && !self.store.is_shared();
        // A candidate has tools of its own, which `stood_again` does not look at.
        let only_standing = is_own && latest.snapshot.shadow.is_none();
        let taken = match (synced, only_standing) {
            (Err(fault), _) => Err(fault.into()),
            (Ok(_), true) => self.stood_again(&latest.snapshot),
            (Ok(_), false) => self.again(&mut latest),
        };
        match taken {
            Ok(snapshot) => {
                latest.snapshot = Arc::new(snapshot);
                if latest.failing.take().is_some() {
                    self.alarm.raise("the tools could be reloaded again");
                }
                // An unreadable version never equals; the next call tries again.
                latest.standing_version = version.unwrap_or(u64::MAX);
            }
            // Fails closed: an old list may offer what was taken away since.
            Err(fault) => {
                let why = causes(&fault);
                // Each call and each look at the settings tries again. An outage is one
                // cause, in whatever words each attempt ends.
                let cause = match is_outage(&fault) {
                    true => "the shared store does not answer".to_owned(),
                    false => why.clone(),
                };
                if latest.failing.as_ref() != Some(&cause) {
                    self.alarm
                        .raise(&format!("the tools could not be reloaded: {why}"));
                    latest.failing = Some(cause);
                }
                latest.snapshot = Arc::new(latest.snapshot.without_tools(why));
                // Equals no version, so the next call tries again.
                latest.standing_version = u64::MAX;
            }
        }
        Arc::clone(&latest.snapshot)
    }

    /// Brings the files of this home and those of other nodes together, if either changed.
    /// Returns whether any was written here.
    fn sync_files(&self, latest: &mut Latest, is_changed_here: bool) -> Result<bool, StoreError> {
        let Some(files) = self.store.shared_files() else {
            return Ok(false);
        };
        // As new as the version of the publications, which was asked for before.
        if !is_changed_here && latest.files_revision == files.known_revision() {
            return Ok(false);
        }
        // Should it fail, the next call tries again.
        latest.files_revision = u64::MAX;
        let synced = brought_together(files, self.follows)?;
        latest.files_revision = say_synced(&self.alarm, &synced);
        Ok(!synced.received.is_empty())
    }

    /// Whether the level of any caller changed. If that cannot be read, the snapshot is
    /// rebuilt, which fails and leaves no tools.
    fn has_earned_news(&self, latest: &Latest) -> bool {
        if latest.snapshot.config.trust.strategy == Strategy::Disabled {
            return false;
        }
        let earned = self.callers.earned();
        !matches!(&earned, Ok(earned) if Arc::ptr_eq(earned, &latest.earned))
    }

    /// The same tools where something was tested, published or unpublished. No file
    /// is looked at: of ten thousand, that would take longer than a test.
    fn stood_again(&self, before: &Snapshot) -> Result<Snapshot, EngineError> {
        let standing = self.store.publications().all()?;
        let mut snapshot = before.clone();
        // The search index is made for a serial, and this is another snapshot.
        snapshot.serial = next_serial();
        for (name, tool) in &mut snapshot.own {
            tool.state = stands(&tool.usable, &standing);
            tool.granted = Granted::Only(standing.grants.of(name, ""));
        }
        snapshot.grants = Arc::new(standing.grants);
        // Cloned first: `take_servers` changes the snapshot that it is read from.
        let servers = Arc::clone(&snapshot.servers);
        take_servers(&mut snapshot, &standing.servers, Some(&servers));
        Ok(snapshot)
    }

    fn again(&self, latest: &mut Latest) -> Result<Snapshot, EngineError> {
        let settings = match self.newest(latest) {
            Ok(settings) => settings,
            // The settings may be good: an outage says nothing about them.
            Err(NotTaken::Store(fault)) => return Err(fault),
            Err(NotTaken::Refused(why)) => {
                self.alarm.raise(&match latest.snapshot.owed {
                    None => {
                        format!("the new settings are not in force, the last good ones stay: {why}")
                    }
                    Some(_) => format!("no settings are in force, so no call runs: {why}"),
                });
                // While something is owed every call tries again. The audit gets one
                // notice for each reason.
                if latest.refused.as_ref() != Some(&why) {
                    let notice = settings::notice(Act::SettingsRefused, &why);
                    loudly(&self.store, &self.alarm, notice.about(CONFIG_FILE));
                }
                latest.refused = Some(why);
                Arc::clone(&latest.snapshot.settings)
            }
        };
        if let Some(why) = &latest.snapshot.owed
            && latest.is_owing
        {
            return Ok(latest.snapshot.unsettled(why.clone()));
        }
        latest.earned = self.callers.read_earned()?;
        let now = self.taken(&settings, latest)?;
        self.look_for_gone(latest, &settings, &now);
        Ok(now)
    }

    fn taken(
        &self,
        settings: &Arc<Settings>,
        latest: &mut Latest,
    ) -> Result<Snapshot, EngineError> {
        let earned = Arc::clone(&latest.earned);
        let inputs = (settings, &*earned, &self.policy);
        let known = &mut latest.known;
        take(&self.folder, &self.store, &self.catalog, inputs, known)
    }

    /// The settings as they are now, if they can be used and were written down.
    fn newest(&self, latest: &mut Latest) -> Result<Arc<Settings>, NotTaken> {
        let read = settings::read(&self.home).and_then(|settings| {
            names::check_preset(&self.home, &settings, &self.catalog)?;
            effective_baseline(&settings.config)?;
            Ok(settings)
        });
        let settings = Arc::new(read.map_err(NotTaken::of)?);
        let is_same = settings == latest.snapshot.settings;
        if is_same && !latest.is_owing {
            latest.refused = None;
            return Ok(Arc::clone(&latest.snapshot.settings));
        }
        let now = self.taken(&settings, latest);
        let now = now.map_err(NotTaken::of)?;
        let gone = names::check(&self.home, &self.store, &settings, &now, &self.catalog);
        latest.keys = gone
            .is_err()
            .then(|| names::keys(&self.home).ok())
            .flatten();
        let gone = gone.map_err(NotTaken::of)?;
        // After an attempt that failed the audit may end with settings that were never in
        // force, so the settings are recorded again even if they are the same. The store
        // gets its own settings first: they may give the audit room for the record.
        let before = store_settings(&latest.snapshot.config);
        let noted = self
            .store
            .set(store_settings(&settings.config))
            .and_then(|()| settings::note(&self.store, &settings, latest.is_owing));
        if let Err(fault) = noted {
            // Back to what is in force. It is owing from here on, so the next call tries
            // again even if this fails.
            let _ = self.store.set(before);
            latest.is_owing = true;
            let why = causes(&fault);
            let why = format!("the change could not be recorded: {why}");
            return Err(NotTaken::Refused(why));
        }
        let heads_file = settings::heads_file(&self.home, &settings.config);
        self.store.audit().copy_heads_to(heads_file);
        latest.is_owing = false;
        latest.refused = None;
        self.say_gone(latest, gone);
        let settings = names::tried(&self.home, settings, &now, &self.catalog);
        self.watch_named(&settings);
        Ok(settings)
    }

    /// Shares a document that was changed here with other nodes, if there are any. If
    /// another node changed it first, nothing of the change holds.
    pub(crate) fn share(&self, stem: &str) -> Result<(), EngineError> {
        let Some(files) = self.store.shared_files() else {
            return Ok(());
        };
        let synced = files.sync()?;
        say_synced(&self.alarm, &synced);
        Ok(synced.check(&self.home, &format!("tools/{stem}.json"))?)
    }

    /// The folder the documents are in.
    #[must_use]
    pub fn folder(&self) -> &ToolFolder {
        &self.folder
    }
}

fn brought_together(files: &SharedFiles, follows: bool) -> Result<SyncedFiles, StoreError> {
    match follows {
        true => files.follow(),
        false => files.sync(),
    }
}

/// Tells the operator what became of files that two nodes changed. Returns the revision.
fn say_synced(alarm: &Alarm, synced: &SyncedFiles) -> u64 {
    if !synced.overtaken.is_empty() {
        let files = synced.overtaken.join("`, `");
        alarm.raise(&format!(
            "other nodes have another version of `{files}`, which holds; this node's is in `trash`"
        ));
    }
    if let Some(other) = &synced.copied_from {
        alarm.raise(&format!(
            "this home is a copy of `{other}`: it joins as a new node, takes what the other nodes \
             have, and sends nothing of what was changed in it"
        ));
    }
    if !synced.restored.is_empty() {
        let files = synced.restored.join("`, `");
        alarm.raise(&format!(
            "`{files}` vanished together, which looks like damage: they are restored and hold on \
             all nodes; to delete them, delete one at a time"
        ));
    }
    if let Some(why) = &synced.unfit {
        alarm.raise(&format!(
            "the settings and rules of this node are not shared: {why}"
        ));
    }
    synced.revision
}
