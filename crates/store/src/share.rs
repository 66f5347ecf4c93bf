//! Settings, rules and tool documents that nodes share. The database has each file with the
//! revision of its last change; every home has a working copy in its own files, which people
//! and programs read and edit as in a home that stands alone.
//!
//! `sync` brings both together: it writes what others changed and sends what was changed
//! here. If both changed the same file, the database counts, because it is in force
//! elsewhere, and the file of this node is kept in the trash. A node that joins takes what
//! is there and sends nothing, and so does a copy of a home. Files that vanished with their
//! folder, or all at once, were lost and not deleted: they are written again.

mod local;
mod own_tables;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use uuid::Uuid;

pub use self::own_tables::OWN_TABLES;

use self::local::{LocalFiles, check_path, check_size, digest, is_setting, unusable};
use self::place::HomePlace;
use crate::clock;
use crate::error::{SqlError, SqlResult, StoreError};
use crate::home::files::{sync_folder, write_synced};
use crate::home::settings::{self, CONFIG_FILE};
use crate::limit;
use crate::postgres::Cluster;
use crate::postgres::session::Session;
use crate::postgres::watch::NewsKind;

const DOING: &str = "share the files of the home";

/// What a home remembers of the last time, beside its database.
const STATE_FILE: &str = "shared.state";
/// Held while files are brought together, and while the settings are changed.
const LOCK_FILE: &str = "shared.lock";

/// The files that the nodes of a cluster share.
#[derive(Debug)]
pub struct SharedFiles {
    home: PathBuf,
    cluster: Arc<Cluster>,
}

/// What became of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncedFiles {
    /// The revision that holds here now.
    pub revision: u64,
    /// Written here, because others changed them.
    pub received: Vec<String>,
    /// Sent to others, because they were changed here.
    pub sent: Vec<String>,
    /// Changed here and elsewhere: the other version counts, ours is in the trash.
    pub overtaken: Vec<String>,
    /// Vanished here with their folder, or all at once, and written again.
    pub restored: Vec<String>,
    /// The home that this one is a copy of: it joined as a new one.
    pub copied_from: Option<String>,
    /// Why settings and rules that were changed here are not sent.
    pub unfit: Option<String>,
}

/// What this home and the database had in common the last time.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
struct CommonFiles {
    database: String,
    revision: i64,
    /// The digest of each file.
    files: BTreeMap<String, String>,
    /// Where the home was then.
    #[serde(default)]
    place: HomePlace,
}

/// Whether what was changed here is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    Yes,
    No,
}

/// What the database has.
struct Remote {
    database: String,
    version: i64,
    /// What changed since the revision that was asked for.
    rows: Vec<RemoteFile>,
}

struct RemoteFile {
    path: String,
    text: Option<String>,
}

impl SharedFiles {
    pub(crate) fn new(home: &Path, cluster: &Arc<Cluster>) -> SharedFiles {
        SharedFiles {
            home: home.to_owned(),
            cluster: Arc::clone(cluster),
        }
    }

    /// The files of a home; nothing if it shares none.
    pub(crate) fn of(home: &Path) -> Result<Option<SharedFiles>, StoreError> {
        let cluster = Cluster::of(home)?;
        Ok(cluster.map(|cluster| SharedFiles::new(home, &cluster)))
    }

    /// The newest revision: at most a second old, or as new as this question if the settings
    /// say `strict`.
    pub fn revision(&self) -> Result<u64, StoreError> {
        let news = self.cluster.news();
        news.version(NewsKind::Files, self.cluster.pool())
    }

    /// The newest revision that is known without asking. Right after another version was
    /// asked for, it is as new as that.
    #[must_use]
    pub fn known_revision(&self) -> u64 {
        self.cluster.news().known(NewsKind::Files)
    }

    /// How many files there are.
    pub(crate) fn count(&self) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM shared_files WHERE text IS NOT NULL";
        let pool = self.cluster.pool();
        let counted = pool.with(|session| session.number(sql, &[]));
        let counted = counted.map_err(StoreError::sql(DOING))?;
        Ok(u64::try_from(counted).unwrap_or(0))
    }

    /// Whether all the database has is what this home has: no other home sent any of it.
    pub(crate) fn are_own(&self) -> Result<bool, StoreError> {
        let common = self.read_common();
        let remote = self.read_remote(0)?;
        let place = HomePlace::of(&self.home);
        if remote.database != common.database || place.copied_from(&common.place).is_some() {
            return Ok(remote.version == 0);
        }
        let mut texts = remote
            .rows
            .iter()
            .filter_map(|file| Some((&file.path, file.text.as_deref().map(digest)?)));
        Ok(texts.all(|(path, digest)| common.files.get(path) == Some(&digest)))
    }

    /// Brings the files of the home and of the database together.
    pub fn sync(&self) -> Result<SyncedFiles, StoreError> {
        let lock = take_lock(&self.home)?;
        self.sync_locked(&lock, Sending::Yes)
    }

    /// Writes what others changed, and sends nothing.
    pub fn follow(&self) -> Result<SyncedFiles, StoreError> {
        let lock = take_lock(&self.home)?;
        self.sync_locked(&lock, Sending::No)
    }

    fn sync_locked(&self, _lock: &File, sending: Sending) -> Result<SyncedFiles, StoreError> {
        let mut synced = SyncedFiles::default();
        for attempt in 0..limit::SHARE_ATTEMPTS_MAX {
            if self.try_sync(&mut synced, sending)? {
                return Ok(synced);
            }
            // Another node was first. Longer each time, so that several do not keep getting
            // in each other's way.
            std::thread::sleep(Duration::from_millis(u64::from(attempt.min(10))));
        }
        Err(StoreError::Unavailable {
            doing: DOING,
            why: "other nodes change them all the time".to_owned(),
        })
    }

    /// Whether all is done; not if another node changed something in between.
    fn try_sync(&self, synced: &mut SyncedFiles, sending: Sending) -> Result<bool, StoreError> {
        let mut common = self.read_common();
        let place = HomePlace::of(&self.home);
        if let Some(other) = place.copied_from(&common.place) {
            // Attack, or a slip: what was changed or lost in a copy is no change of the
            // home that it is a copy of.
            synced.copied_from = Some(other.to_owned());
            common = CommonFiles::default();
        }
        let mut remote = self.read_remote(common.revision)?;
        if remote.database != common.database || remote.version < common.revision {
            // Another database, or an older copy of it: this home joins as a new one.
            common = CommonFiles {
                database: remote.database.clone(),
                ..CommonFiles::default()
            };
            remote = self.read_remote(0)?;
        }
        let joins = common.revision == 0 && remote.version > 0;
        let mut local = LocalFiles::read(&self.home)?;
        let lost = place.lost(&common.place, common.files.keys(), |path| {
            local.exists(path)
        });
        if !lost.is_empty() {
            self.add_lost(&lost, &mut remote, synced)?;
        }
        self.receive(&mut local, &mut common, &remote, synced)?;
        if joins {
            leave_strangers(&mut local, &remote, synced)?;
        }
        // Looked at again: a folder may have been made.
        let place = HomePlace::of(&self.home);
        if common.revision != remote.version || common.place != place {
            (common.revision, common.place) = (remote.version, place);
            self.write_common(&common)?;
        }
        if sending == Sending::Yes && !self.send(&local, &mut common, synced)? {
            return Ok(false);
        }
        self.cluster.news().raise(NewsKind::Files, common.revision);
        synced.revision = u64::try_from(common.revision).unwrap_or(0);
        Ok(true)
    }

    /// Has files written again that are lost here.
    fn add_lost(
        &self,
        lost: &[&String],
        remote: &mut Remote,
        synced: &mut SyncedFiles,
    ) -> Result<(), StoreError> {
        let all = self.read_remote(0)?;
        for file in all.rows {
            let is_lost = lost.contains(&&file.path) && file.text.is_some();
            if is_lost && !remote.rows.iter().any(|row| row.path == file.path) {
                synced.restored.push(file.path.clone());
                remote.rows.push(file);
            }
        }
        Ok(())
    }

    /// Writes what others changed.
    fn receive(
        &self,
        local: &mut LocalFiles,
        common: &mut CommonFiles,
        remote: &Remote,
        synced: &mut SyncedFiles,
    ) -> Result<(), StoreError> {
        for file in &remote.rows {
            check_path(&file.path)?;
            check_size(&file.path, file.text.as_deref().unwrap_or_default())?;
            let here = local.text(&file.path).map(digest);
            let there = file.text.as_deref().map(digest);
            if here != there {
                let before = common.files.get(&file.path);
                let is_ours = here.is_some() || local.exists(&file.path);
                let is_blank = local
                    .text(&file.path)
                    .is_some_and(|text| text.trim().is_empty());
                // Changed here, too, since the last time. The other node was first, so this text
                // goes to the trash.
                if is_ours && !is_blank && here.as_ref() != before {
                    local.keep_copy(&file.path)?;
                    synced.overtaken.push(file.path.clone());
                }
                if is_ours || file.text.is_some() {
                    local.put(&file.path, file.text.as_deref())?;
                    synced.received.push(file.path.clone());
                }
            }
            match local.text(&file.path).map(digest) {
                Some(digest) => common.files.insert(file.path.clone(), digest),
                None => common.files.remove(&file.path),
            };
        }
        if synced.received.iter().any(|path| is_setting(path)) {
            // What was unfit here may be replaced now.
            local.unfit = LocalFiles::read(&self.home)?.unfit;
        }
        Ok(())
    }

    /// Sends what was changed here. Whether that could be done: not if another node was
    /// first.
    fn send(
        &self,
        local: &LocalFiles,
        common: &mut CommonFiles,
        synced: &mut SyncedFiles,
    ) -> Result<bool, StoreError> {
        let here = local.digests();
        let paths: BTreeSet<&String> = here.keys().chain(common.files.keys()).collect();
        let mut changed = Vec::new();
        for path in paths {
            // Settings and rules hold together; if some are unfit, none are sent. A file
            // that is there and cannot be read is not a deleted one.
            let is_held = local.unfit.is_some() && is_setting(path);
            let is_unread = !here.contains_key(path) && local.exists(path);
            if here.get(path) == common.files.get(path) || is_held || is_unread {
                continue;
            }
            check_path(path)?;
            changed.push((path.clone(), local.text(path)));
        }
        synced.unfit.clone_from(&local.unfit);
        if changed.is_empty() {
            return Ok(true);
        }
        let Some(version) = self.write_remote(common.revision, &changed)? else {
            return Ok(false);
        };
        common.revision = version;
        for (path, text) in changed {
            match text.map(digest) {
                Some(digest) => common.files.insert(path.clone(), digest),
                None => common.files.remove(&path),
            };
            synced.sent.push(path);
        }
        self.write_common(common)?;
        Ok(true)
    }

    fn read_remote(&self, since: i64) -> Result<Remote, StoreError> {
        let read = |session: &Session| {
            let version = session.query("SELECT id, version FROM files_version", &[])?;
            let (database, version) = match version.first() {
                Some(row) => (column(row, 0)?, column(row, 1)?),
                None => return Err(SqlError::Unknown("a row is missing".to_owned())),
            };
            let sql = "SELECT path, text FROM shared_files WHERE revision > ?1 ORDER BY path";
            let rows = session.query(sql, &[&since])?;
            let rows = rows.iter().map(|row| {
                Ok(RemoteFile {
                    path: column(row, 0)?,
                    text: column(row, 1)?,
                })
            });
            Ok(Remote {
                database,
                version,
                rows: rows.collect::<SqlResult<_>>()?,
            })
        };
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let pool = self.cluster.pool();
        let done = pool.with(|session| session.in_transaction(begin, read));
        done.map_err(StoreError::sql(DOING))
    }

    /// Writes files if nothing changed since a revision. The new revision, if so.
    fn write_remote(
        &self,
        since: i64,
        changed: &[(String, Option<&str>)],
    ) -> Result<Option<i64>, StoreError> {
        let (by, at_ms) = (node_name(), clock::now_ms());
        let write = |session: &Session| {
            let sql = "UPDATE files_version SET version = version + 1 WHERE version = ?1 \
                       RETURNING version";
            let rows = session.query(sql, &[&since])?;
            // Of two nodes that start from one version, the second finds no row and has to read
            // first.
            let Some(row) = rows.first() else {
                return Ok(None);
            };
            let version: i64 = column(row, 0)?;
            let sql = "INSERT INTO shared_files (path, text, revision, updated_by, updated_ms) \
                 SELECT path, text, ?3, ?4, ?5 FROM unnest(?1::TEXT[], ?2::TEXT[]) \
                 AS sent (path, text) ON CONFLICT (path) DO UPDATE SET text = excluded.text, \
                 revision = excluded.revision, updated_by = excluded.updated_by, \
                 updated_ms = excluded.updated_ms";
            for some in changed.chunks(limit::SHARE_PIECE_FILES_MAX) {
                let paths: Vec<&str> = some.iter().map(|(path, _)| path.as_str()).collect();
                let texts: Vec<Option<&str>> = some.iter().map(|(_, text)| *text).collect();
                session.execute(sql, &[&paths, &texts, &version, &by, &at_ms])?;
            }
            Ok(Some(version))
        };
        let pool = self.cluster.pool();
        let done = pool.with(|session| session.in_transaction("BEGIN", write));
        done.map_err(StoreError::sql(DOING))
    }

    /// A state that cannot be read is none: the home joins, and loses no file.
    fn read_common(&self) -> CommonFiles {
        let text = fs::read_to_string(self.home.join(STATE_FILE));
        let read = text.ok().and_then(|text| serde_json::from_str(&text).ok());
        read.unwrap_or_default()
    }

    fn write_common(&self, common: &CommonFiles) -> Result<(), StoreError> {
        let path = self.home.join(STATE_FILE);
        let text = serde_json::to_string(common)
            .map_err(|error| unusable(STATE_FILE, &error.to_string()))?;
        let unfinished = self
            .home
            .join(format!(".{STATE_FILE}.{}.tmp", Uuid::new_v4()));
        let written =
            write_synced(&unfinished, &text).and_then(|()| fs::rename(&unfinished, &path));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written.map_err(|error| StoreError::file("write", &path, error))?;
        sync_folder(&self.home)
    }
}

/// One process of the home at a time.
fn take_lock(home: &Path) -> Result<File, StoreError> {
    let path = home.join(LOCK_FILE);
    let fail = |error| StoreError::file("lock", &path, error);
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(fail)?;
    let until = Instant::now() + Duration::from_millis(limit::BUSY_MS_MAX);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(TryLockError::WouldBlock) => return Err(StoreError::Busy),
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        }
    }
}

/// Files of a home that joins and that the cluster has not go to the trash.
fn leave_strangers(
    local: &mut LocalFiles,
    remote: &Remote,
    synced: &mut SyncedFiles,
) -> Result<(), StoreError> {
    for path in local.paths() {
        let is_known = remote.rows.iter().any(|file| file.path == path);
        if !is_known && path != CONFIG_FILE {
            local.put(&path, None)?;
            synced.overtaken.push(path);
        }
    }
    Ok(())
}

/// A change of the configuration file of a home. From the beginning to the end no other
/// process of the home changes it, nor takes over what another node made of it: what is read
/// here is what is replaced. While it lives, nothing else may share files of the home.
#[derive(Debug)]
pub struct SettingsEdit {
    home: PathBuf,
    lock: File,
}

impl SettingsEdit {
    /// Waits until no other process changes it; for a while.
    pub fn begin(home: &Path) -> Result<SettingsEdit, StoreError> {
        Ok(SettingsEdit {
            home: home.to_owned(),
            lock: take_lock(home)?,
        })
    }

    /// The text as it is; empty if there is none.
    pub fn read(&self) -> Result<String, StoreError> {
        Ok(settings::read(&self.home)?.unwrap_or_default())
    }

    /// Replaces the text, for all nodes if the home shares its files. If another node was
    /// first, nothing of this change holds.
    pub fn write(self, text: &str) -> Result<(), StoreError> {
        // Asked first: if the store cannot be used, nothing is written. A change of the
        // store itself takes a restart, so until then the nodes are those of before.
        let files = SharedFiles::of(&self.home)?;
        settings::write(&self.home, text)?;
        match files {
            None => Ok(()),
            Some(files) => {
                let synced = files.sync_locked(&self.lock, Sending::Yes)?;
                synced.check(&self.home, CONFIG_FILE)
            }
        }
    }
}

impl SyncedFiles {
    /// Fails if what was written to a path does not hold.
    pub fn check(&self, home: &Path, path: &str) -> Result<(), StoreError> {
        match self.overtaken.iter().any(|overtaken| overtaken == path) {
            true => Err(StoreError::Overtaken {
                path: home.join(path),
            }),
            false => Ok(()),
        }
    }
}

fn column<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, place: usize) -> SqlResult<T> {
    row.try_get(place).map_err(SqlError::Postgres)
}

/// The name of this machine, for people who ask where a change came from.
fn node_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    model::text::elided(&model::text::one_line(name.trim()), 80)
}
