//! Changes that programs made beside an operator's folder. They are kept in the home until
//! `applyChanges` copies them into the folder, or they are too old. A set of changes is named
//! by a digest of all that is in it, so an answer to a question about it binds to it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::files::changes::{
    self, ChangeLayer, ChangeRule, ChangesFault, CollectedChanges, FileChange,
};
use host::files::{CopyError, copy_tree, remove_folder};
use model::document::digest;
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::CallError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::causes;
use crate::limit;
use crate::powers::Powers;
use crate::refusal::CallRefusal;

mod patch;

pub(crate) use patch::{ChangesText, TooManyToName};

/// The folder of all changes, in the home.
const FOLDER: &str = "changes";
/// What is known of a set of changes, in its folder.
const RECORD: &str = "record.json";
/// The changed files, in its folder.
const TREE: &str = "tree";
/// For the kernel, in its folder.
const WORK: &str = "work";

/// Changes that wait to be copied.
#[derive(Clone, Debug)]
pub(crate) struct KeptChanges {
    folder: PathBuf,
}

/// What is known of a set of changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangeRecord {
    /// The caller whose program made them.
    pub(crate) caller: String,
    /// The call it was.
    pub(crate) call_id: String,
    /// The operator's folder, as the settings name it.
    pub(crate) folder: String,
    /// What was changed.
    pub(crate) collected: CollectedChanges,
}

/// A place for the changes of one call. It goes with this value unless it is kept.
#[derive(Debug)]
pub(crate) struct Staging {
    path: PathBuf,
    /// The operator's folder, absolute.
    lower: PathBuf,
    layer: ChangeLayer,
    is_kept: bool,
}

/// A set of changes that was kept.
#[derive(Debug)]
pub(crate) struct KeptSet {
    pub(crate) id: String,
    pub(crate) record: ChangeRecord,
    path: PathBuf,
}

impl Staging {
    /// A layer over the folder, for a jail that can put one up.
    pub(crate) fn overlay(home: &Path, call_id: &str, lower: &Path) -> io::Result<Staging> {
        let staging = Staging::make(home, call_id, lower, ChangeLayer::Overlay)?;
        make_folder(&staging.tree())?;
        make_folder(&staging.work())?;
        Ok(staging)
    }

    /// A bounded copy of the folder, for a jail that cannot.
    pub(crate) fn copy(home: &Path, call_id: &str, lower: &Path) -> Result<Staging, CopyError> {
        let fault = |source| CopyError::Io {
            path: lower.display().to_string(),
            source,
        };
        let staging = Staging::make(home, call_id, lower, ChangeLayer::Copy).map_err(fault)?;
        let deadline = Instant::now() + Duration::from_secs(limit::COPY_SECONDS_MAX);
        copy_tree(lower, &staging.tree(), deadline)?;
        Ok(staging)
    }

    fn make(home: &Path, call_id: &str, lower: &Path, layer: ChangeLayer) -> io::Result<Staging> {
        let path = home.join(FOLDER).join(format!("new-{call_id}"));
        make_folder(&path)?;
        Ok(Staging {
            path,
            lower: lower.to_owned(),
            layer,
            is_kept: false,
        })
    }

    /// The changed files, or the copy.
    pub(crate) fn tree(&self) -> PathBuf {
        self.path.join(TREE)
    }

    /// For the kernel.
    pub(crate) fn work(&self) -> PathBuf {
        self.path.join(WORK)
    }

    /// Empties the part of the kernel, for another program over the same layer.
    pub(crate) fn empty_work(&self) -> io::Result<()> {
        if self.layer != ChangeLayer::Overlay {
            return Ok(());
        }
        let work = self.work();
        remove_if_there(&work)?;
        make_folder(&work)
    }

    pub(crate) fn layer(&self) -> ChangeLayer {
        self.layer
    }

    pub(crate) fn lower(&self) -> &Path {
        &self.lower
    }

    /// What was changed. Blocks on the disk.
    pub(crate) fn collect(&self, rule: &ChangeRule) -> Result<CollectedChanges, ChangesFault> {
        changes::collect(&self.lower, &self.tree(), self.layer, rule)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.is_kept {
            // What cannot be removed now is removed when an engine is next opened.
            let _ = remove_folder(&self.path);
        }
    }
}

impl KeptChanges {
    /// The changes of a home; old ones are removed.
    pub(crate) fn open(home: &Path) -> KeptChanges {
        let kept = KeptChanges {
            folder: home.join(FOLDER),
        };
        kept.sweep();
        kept
    }

    /// Lists what a program changed and keeps it; nothing if it changed nothing. Blocks on the
    /// disk.
    pub(crate) fn keep_program(
        &self,
        staging: Staging,
        mut record: ChangeRecord,
    ) -> Result<Option<KeptSet>, String> {
        let collected = staging.collect(&ChangeRule::Program);
        record.collected = collected.map_err(|fault| causes(&fault))?;
        if record.collected.changes.is_empty() && record.collected.left_out.is_empty() {
            return Ok(None);
        }
        let kept = self.keep(staging, record);
        kept.map(Some).map_err(|error| error.to_string())
    }

    /// Keeps a set of changes under the name of its content. Blocks on the disk.
    fn keep(&self, mut staging: Staging, record: ChangeRecord) -> io::Result<KeptSet> {
        // Caller and folder included: the same files changed by another caller are
        // another set.
        let content = json!({
            "caller": record.caller, "folder": record.folder, "changes": record.collected.changes,
        });
        let id = digest::of_value(&content).map_err(|error| io::Error::other(error.to_string()))?;
        let path = self.folder.join(&id);
        let text = serde_json::to_vec(&record)?;
        // Before the rename, so that a set under its name is always whole.
        fs::write(staging.path.join(RECORD), text)?;
        // The same changes may have been kept before.
        remove_if_there(&path)?;
        fs::rename(&staging.path, &path)?;
        staging.is_kept = true;
        self.bound();
        Ok(KeptSet { id, record, path })
    }

    /// A set of changes of a caller, by its name.
    fn get(&self, id: &str, caller: &str) -> Option<KeptSet> {
        // Attack: a name with `/` or `..` would lead out of the folder.
        let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let path = is_id.then(|| self.folder.join(id))?;
        let text = fs::read(path.join(RECORD)).ok()?;
        let record: ChangeRecord = serde_json::from_slice(&text).ok()?;
        (record.caller == caller).then(|| KeptSet {
            id: id.to_owned(),
            record,
            path,
        })
    }

    /// Removes what a call wrote whose process died.
    pub(crate) fn forget_unfinished(&self, call_id: &str) {
        // Attack: an id with `/` or `..`, in a database that others write to.
        if call_id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        {
            let _ = remove_folder(&self.folder.join(format!("new-{call_id}")));
        }
    }

    /// A set of changes that a caller may copy into the operator's folder of its call, or the
    /// refusal: in the same words whether there is none, it is another's, or it was made in
    /// another folder.
    pub(crate) fn find(
        &self,
        id: &str,
        caller: &str,
        folder: Option<&str>,
    ) -> Result<KeptSet, CallRefusal> {
        let kept = self.get(id, caller);
        let kept = kept.filter(|kept| Some(kept.record.folder.as_str()) == folder);
        kept.ok_or_else(|| {
            let message = "you have no such changes";
            let error = CallError::new(Reason::ChangesUnknown, message);
            CallRefusal::with_status(Status::Failed, error)
        })
    }

    /// Removes what is too old, or was left by a process that died.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        let age_max = Duration::from_secs(limit::CHANGES_SECONDS_MAX);
        for entry in entries.flatten().take(limit::SWEEP_ENTRIES_MAX) {
            let age = entry.metadata().and_then(|about| about.modified());
            let age = age.ok().and_then(|modified| modified.elapsed().ok());
            if age.is_some_and(|age| age > age_max) {
                let _ = remove_folder(&entry.path());
            }
        }
    }

    /// Of too many sets the oldest go.
    fn bound(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        let mut sets: Vec<_> = entries
            .flatten()
            // A call still writes to these.
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with("new-"))
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        sets.sort();
        let over = sets.len().saturating_sub(limit::CHANGES_KEPT_MAX);
        for (_, path) in sets.into_iter().take(over) {
            let _ = remove_folder(&path);
        }
    }
}

impl KeptSet {
    /// The changed files.
    pub(crate) fn tree(&self) -> PathBuf {
        self.path.join(TREE)
    }

    /// It was copied, and is not needed any more.
    pub(crate) fn remove(&self) {
        let _ = remove_folder(&self.path);
    }

    /// The changes in words. `lower` is the operator's folder. Blocks on the disk.
    pub(crate) fn describe(&self, lower: &Path) -> Result<ChangesText, TooManyToName> {
        patch::describe(&self.record.collected, lower, &self.tree())
    }

    /// What changed, in short.
    pub(crate) fn files(&self) -> Vec<Value> {
        let changes = self.record.collected.changes.iter();
        changes
            .take(limit::CHANGES_SHOWN_MAX)
            .map(|change| {
                json!({
                    "path": change.path, "change": change.kind.word(), "bytes": change.bytes,
                    "mode": change.mode(),
                })
            })
            .collect()
    }
}

/// Notes in the record of a call what was copied into the operator's folder: every file up to
/// a bound, then how many more, with a digest over all of them.
pub(crate) fn note_copied(powers: &Powers, function: &str, copied: &[FileChange]) {
    for change in copied.iter().take(limit::CHANGES_EVENTS_MAX) {
        powers.note(json!({
            "kind": "file", "function": function, "path": change.path,
            "change": change.kind.word(), "bytes": change.bytes, "digest": change.digest,
            "base": change.base, "mode": change.mode(), "refusal": null,
        }));
    }
    let more = copied.len().saturating_sub(limit::CHANGES_EVENTS_MAX);
    if more > 0 {
        // Without a canonical form there is no digest; the number still tells what is
        // missing.
        let listed = digest::of_value(&json!(copied)).ok();
        powers.note(json!({
            "kind": "file", "function": function, "changes": copied.len(), "unnamed": more,
            "digest": listed, "refusal": null,
        }));
    }
}

/// Notes in the record of a call what was left out of the changes, and why: every path up to
/// the same bound, then how many more.
pub(crate) fn note_left_out(powers: &Powers, function: &str, left_out: &BTreeMap<String, String>) {
    let more = left_out.len().saturating_sub(limit::CHANGES_EVENTS_MAX);
    for (path, why) in left_out.iter().take(limit::CHANGES_EVENTS_MAX) {
        powers.note(json!({
            "kind": "file", "function": function, "path": path,
            "refusal": format!("left out: {why}"),
        }));
    }
    if more > 0 {
        powers.note(json!({
            "kind": "file", "function": function, "unnamed": more, "refusal": "left out",
        }));
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match remove_folder(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}
