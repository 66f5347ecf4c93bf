//! What a program changed in a folder of the operator's. It ran over the folder, and its
//! changes lie in a layer beside it (the upper folder of an overlay). Here they are listed,
//! checked, and copied into the folder.
//!
//! The layer was written by a program we do not trust: names, links, devices and sizes in
//! it are input. Only regular files and folders are copied; what no tool changes
//! ([`untouchable`](crate::files::untouchable())) is left out and named. Every file of the folder
//! is copied only if it still is what it was when the changes were listed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use cap_std::fs::PermissionsExt as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::files::limit;
use crate::files::open::{self, OpenError};
use crate::files::protect::ProtectedHome;
use crate::files::refusal::PathRefusal;
use crate::files::replace::{Parents, ReplaceTarget};
use crate::files::root::Roots;

mod content;
mod protection;
mod same;

use content::{digest_of, hex, open_plain};
use protection::Protection;
use same::{is_same, was_copied};

pub use content::{FileContent, read_content};

/// Who made the changes, and so which of them count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeRule {
    /// Any program: nothing that is untouchable.
    Program,
    /// One of our git tools, in the repository of this folder below the root: of `.git`
    /// what git itself keeps there, never settings, hooks or attributes.
    Git {
        /// The folder of the repository; empty for the root.
        repository: PathBuf,
    },
    /// A clone into this new folder below the root: the same, and the settings that we
    /// write ourselves.
    Clone {
        /// The new folder.
        folder: PathBuf,
    },
}

impl ChangeRule {
    /// Where the data lies of the repository that one of our git tools works on.
    #[must_use]
    pub fn own_data(&self) -> Option<PathBuf> {
        match self {
            ChangeRule::Program => None,
            ChangeRule::Git { repository: own } | ChangeRule::Clone { folder: own } => {
                Some(own.join(".git"))
            }
        }
    }
}

/// How the changes lie beside the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeLayer {
    /// Only what is different, as the upper folder of an overlay.
    Overlay,
    /// A whole copy of the folder, changed.
    Copy,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// Below the folder.
    pub path: String,
    /// What happens to it.
    pub kind: ChangeKind,
    /// The digest of the new content.
    pub digest: Option<String>,
    /// The digest of what was there.
    pub base: Option<String>,
    /// Bytes of the new content.
    pub bytes: u64,
    /// Bytes of what was there.
    // Sets that were kept before this was recorded have none.
    #[serde(default)]
    pub base_bytes: u64,
    /// Whether it can be executed.
    pub executable: bool,
    /// Whether what was there could be executed.
    #[serde(default)]
    pub base_executable: bool,
}

impl FileChange {
    /// The mode of the new file, as git writes it; nothing if there is none.
    #[must_use]
    pub fn mode(&self) -> Option<&'static str> {
        self.digest.as_ref().map(|_| git_mode(self.executable))
    }

    /// The mode of what was there; nothing if nothing was.
    #[must_use]
    pub fn base_mode(&self) -> Option<&'static str> {
        self.base.as_ref().map(|_| git_mode(self.base_executable))
    }
}

/// The mode of a regular file, as git writes it.
fn git_mode(executable: bool) -> &'static str {
    match executable {
        true => "100755",
        false => "100644",
    }
}

/// What happens to a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A new folder.
    FolderCreated,
    /// A new file.
    Created,
    /// Other content, or another right to execute it.
    Modified,
    /// No file any more.
    Deleted,
    /// No folder any more.
    FolderDeleted,
}

impl ChangeKind {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ChangeKind::FolderCreated => "folder created",
            ChangeKind::Created => "created",
            ChangeKind::Modified => "modified",
            ChangeKind::Deleted => "deleted",
            ChangeKind::FolderDeleted => "folder deleted",
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CollectedChanges {
    /// What can be copied, in the order in which it is.
    pub changes: Vec<FileChange>,
    /// What is left out, and why.
    pub left_out: BTreeMap<String, String>,
}

/// The changes cannot be listed or copied.
#[derive(Debug, thiserror::Error)]
pub enum ChangesFault {
    /// There are more than are listed.
    #[error("there are more than {0}")]
    TooMany(String),
    /// A file of the folder is not what it was.
    #[error("`{path}` was changed in the folder meanwhile")]
    Stale {
        /// Which.
        path: String,
    },
    /// A file of the layer is not what was listed.
    #[error("`{path}` is not what was listed")]
    Altered {
        /// Which.
        path: String,
    },
    /// It could not be read or written.
    #[error("could not handle `{path}`")]
    Io {
        /// Which.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The folder refused it.
    #[error("could not change `{path}`: {why}")]
    Refused {
        /// Which.
        path: String,
        /// Why.
        why: String,
    },
}

/// Lists the changes in `upper` against `lower`. Blocks on the disk. Nothing may write to
/// either meanwhile.
pub fn collect(
    lower: &Path,
    upper: &Path,
    layer: ChangeLayer,
    rule: &ChangeRule,
) -> Result<CollectedChanges, ChangesFault> {
    let mut collector = Collector {
        lower,
        upper,
        layer,
        protection: Protection::new(lower, rule),
        found: CollectedChanges::default(),
        bytes: 0,
        entries: 0,
    };
    let names = collector.names(Path::new(""))?;
    collector.enter(Path::new(""), names, 0)?;
    // After the walk, because only then it is known which names a folder has in the end.
    collector.leave_out_repositories();
    Ok(collector.found)
}

struct Collector<'a> {
    lower: &'a Path,
    upper: &'a Path,
    layer: ChangeLayer,
    protection: Protection<'a>,
    found: CollectedChanges,
    bytes: u64,
    entries: usize,
}

impl Collector<'_> {
    /// The names in a folder of the layer.
    fn names(&mut self, below: &Path) -> Result<BTreeSet<OsString>, ChangesFault> {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(self.upper.join(below)).map_err(fault(below))? {
            let entry = entry.map_err(fault(below))?;
            self.count(1)?;
            names.insert(entry.file_name());
        }
        Ok(names)
    }

    fn enter(
        &mut self,
        below: &Path,
        names: BTreeSet<OsString>,
        depth: usize,
    ) -> Result<(), ChangesFault> {
        check_depth(depth)?;
        // A copy is the whole folder, so what is missing in it was deleted.
        if self.layer == ChangeLayer::Copy || is_opaque(&self.upper.join(below)) {
            self.delete_hidden(below, &names)?;
        }
        for name in names {
            let path = below.join(&name);
            let looked = self.look(&path, &name, depth);
            self.leave_out_unread(&path, looked)?;
        }
        Ok(())
    }

    /// What a program made so that it may not be read is left out; the rest still counts.
    fn leave_out_unread(
        &mut self,
        path: &Path,
        looked: Result<(), ChangesFault>,
    ) -> Result<(), ChangesFault> {
        // Of a repository with a part that is missing nothing is copied.
        let is_program = *self.protection.rule() == ChangeRule::Program;
        match looked {
            Err(ChangesFault::Io { source, .. })
                if is_program && source.kind() == io::ErrorKind::PermissionDenied =>
            {
                self.leave_out(path, "it may not be read");
                Ok(())
            }
            looked => looked,
        }
    }

    fn look(&mut self, path: &Path, name: &OsStr, depth: usize) -> Result<(), ChangesFault> {
        // Such a name could not be shown to a person, and what cannot be
        // shown is not agreed to.
        let is_plain =
            name.to_str().is_some() && !path.to_string_lossy().chars().any(char::is_control);
        let why = match is_plain {
            // Before the entry is looked at: a protected folder is not entered.
            true => self.protection.find_reason(path),
            false => Some("its name is not plain text"),
        };
        if let Some(why) = why {
            // A copy has all of the folder, so most of it is as it was.
            let is_copy = self.layer == ChangeLayer::Copy;
            if !is_copy || !is_same(&self.upper.join(path), &self.lower.join(path)) {
                self.leave_out(path, why);
            }
            return Ok(());
        }
        let about = fs::symlink_metadata(self.upper.join(path)).map_err(fault(path))?;
        let kind = about.file_type();
        let lower = fs::symlink_metadata(self.lower.join(path)).ok();
        // How an overlay writes that a name is gone.
        if kind.is_char_device() && about.rdev() == 0 {
            return self.delete(path, depth);
        }
        if kind.is_symlink() {
            // A link of a copy that is the same as before is no change.
            let target = |folder: &Path| fs::read_link(folder.join(path)).ok();
            // Attack: a copied link would lead a later write out of the folder.
            if target(self.upper) != target(self.lower) {
                self.leave_out(path, "links are not copied");
            }
            return Ok(());
        }
        if kind.is_dir() {
            if lower.as_ref().is_some_and(|lower| !lower.is_dir()) {
                self.leave_out(path, "a file becomes a folder");
                return Ok(());
            }
            // First: of a folder that may not be read nothing is copied.
            let names = self.names(path)?;
            if lower.is_none() {
                self.push(path, ChangeKind::FolderCreated, None, None);
            }
            return self.enter(path, names, depth + 1);
        }
        if !kind.is_file() {
            self.leave_out(path, "it is neither a file nor a folder");
            return Ok(());
        }
        self.file(path, &about, lower.as_ref())
    }

    fn file(
        &mut self,
        path: &Path,
        about: &fs::Metadata,
        lower: Option<&fs::Metadata>,
    ) -> Result<(), ChangesFault> {
        // By the claimed length, before it is read: a sparse file costs nothing to make.
        self.bytes = self.bytes.saturating_add(about.len());
        if self.bytes > limit::CHANGES_BYTES_MAX {
            let most = limit::CHANGES_BYTES_MAX >> 20;
            return Err(ChangesFault::TooMany(format!(
                "{most} MiB of changed files"
            )));
        }
        let digest = digest_of(&self.upper.join(path)).map_err(fault(path))?;
        let new = FileSide::new(digest, about);
        match lower {
            None => self.push(path, ChangeKind::Created, Some(new), None),
            Some(lower) if lower.is_file() => {
                let base = digest_of(&self.lower.join(path)).map_err(fault(path))?;
                let old = FileSide::new(base, lower);
                // Touched and left as it was.
                if old.digest != new.digest || old.executable != new.executable {
                    self.push(path, ChangeKind::Modified, Some(new), Some(old));
                }
            }
            Some(_) => self.leave_out(path, "something else than a file becomes a file"),
        }
        Ok(())
    }

    /// Something that is gone: a file, or a folder with all in it, from the inside out.
    fn delete(&mut self, path: &Path, depth: usize) -> Result<(), ChangesFault> {
        self.count(1)?;
        check_depth(depth)?;
        if let Some(why) = self.protection.find_reason(path) {
            self.leave_out(path, why);
            return Ok(());
        }
        let place = self.lower.join(path);
        let Ok(about) = fs::symlink_metadata(&place) else {
            return Ok(());
        };
        if about.is_dir() {
            let before = self.found.left_out.len();
            for entry in fs::read_dir(&place).map_err(fault(path))? {
                let inside = path.join(entry.map_err(fault(path))?.file_name());
                let deleted = self.delete(&inside, depth + 1);
                self.leave_out_unread(&inside, deleted)?;
            }
            // A folder that keeps something stays.
            if self.found.left_out.len() == before {
                self.push(path, ChangeKind::FolderDeleted, None, None);
            }
        } else if about.is_file() {
            let base = digest_of(&place).map_err(fault(path))?;
            let old = FileSide::new(base, &about);
            self.push(path, ChangeKind::Deleted, None, Some(old));
        } else {
            self.leave_out(path, "it is neither a file nor a folder");
        }
        Ok(())
    }

    /// A folder that was replaced as a whole hides all that was in it.
    fn delete_hidden(
        &mut self,
        below: &Path,
        names: &BTreeSet<OsString>,
    ) -> Result<(), ChangesFault> {
        let Ok(entries) = fs::read_dir(self.lower.join(below)) else {
            return Ok(());
        };
        for entry in entries {
            let name = entry.map_err(fault(below))?.file_name();
            let path = below.join(&name);
            // What a copy never had was not deleted from it.
            let is_copy = self.layer == ChangeLayer::Copy;
            if !names.contains(&name) && (!is_copy || was_copied(&self.lower.join(&path))) {
                let deleted = self.delete(&path, below.components().count());
                self.leave_out_unread(&path, deleted)?;
            }
        }
        Ok(())
    }

    /// Leaves out what is, or lies in, a repository without a working tree.
    fn leave_out_repositories(&mut self) {
        let mut left_out = BTreeMap::new();
        for change in &self.found.changes {
            let path = Path::new(&change.path);
            if let Some(why) = self.protection.bare_reason(self.upper, path) {
                left_out.insert(change.path.clone(), why.to_owned());
            }
        }
        self.found
            .changes
            .retain(|change| !left_out.contains_key(&change.path));
        self.found.left_out.extend(left_out);
    }

    fn count(&mut self, more: usize) -> Result<(), ChangesFault> {
        self.entries += more;
        match self.entries > limit::CHANGES_ENTRIES_MAX {
            true => {
                let most = limit::CHANGES_ENTRIES_MAX;
                Err(ChangesFault::TooMany(format!("{most} changed files")))
            }
            false => Ok(()),
        }
    }

    fn leave_out(&mut self, path: &Path, why: &str) {
        let path = path.to_string_lossy().into_owned();
        self.found.left_out.insert(path, why.to_owned());
    }

    fn push(
        &mut self,
        path: &Path,
        kind: ChangeKind,
        new: Option<FileSide>,
        old: Option<FileSide>,
    ) {
        let (new, old) = (new.unwrap_or_default(), old.unwrap_or_default());
        self.found.changes.push(FileChange {
            path: path.to_string_lossy().into_owned(),
            kind,
            digest: new.digest,
            base: old.digest,
            bytes: new.bytes,
            base_bytes: old.bytes,
            executable: new.executable,
            base_executable: old.executable,
        });
    }
}

fn check_depth(depth: usize) -> Result<(), ChangesFault> {
    let most = limit::CHANGES_DEPTH_MAX;
    match depth > most {
        true => Err(ChangesFault::TooMany(format!(
            "{most} folders in each other"
        ))),
        false => Ok(()),
    }
}

/// One side of a changed file.
#[derive(Default)]
struct FileSide {
    digest: Option<String>,
    bytes: u64,
    executable: bool,
}

impl FileSide {
    fn new(digest: String, about: &fs::Metadata) -> FileSide {
        FileSide {
            digest: Some(digest),
            bytes: about.len(),
            executable: about.mode() & 0o100 != 0,
        }
    }
}

/// Copying ended before its end.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", self.copied_words())]
pub struct CopyStop {
    /// How many changes are in the folder now, in the order of the list.
    pub copied: usize,
    /// How many there were to copy.
    pub listed: usize,
    /// What ended it.
    pub fault: ChangesFault,
}

impl CopyStop {
    fn copied_words(&self) -> String {
        match self.copied {
            0 => "nothing was copied".to_owned(),
            copied => format!("only {copied} of {} changes were copied", self.listed),
        }
    }
}

/// Copies listed changes into the folder `raw_lower`. Every one is checked before the first
/// is copied, by the rule under which they were listed: the settings of a repository may have
/// changed since. Blocks on the disk. How many were copied.
pub fn apply(
    raw_lower: &str,
    home: Option<&ProtectedHome>,
    upper: &Path,
    changes: &[FileChange],
    rule: &ChangeRule,
) -> Result<usize, CopyStop> {
    let stop = |copied: usize| {
        move |fault| CopyStop {
            copied,
            listed: changes.len(),
            fault,
        }
    };
    let roots = check_all(raw_lower, home, upper, changes, rule).map_err(stop(0))?;
    for (copied, change) in changes.iter().enumerate() {
        apply_one(&roots, upper, change).map_err(stop(copied))?;
    }
    Ok(changes.len())
}

/// All are checked before the first is applied: a folder that is half changed is worse than a
/// refusal.
fn check_all(
    raw_lower: &str,
    home: Option<&ProtectedHome>,
    upper: &Path,
    changes: &[FileChange],
    rule: &ChangeRule,
) -> Result<Roots, ChangesFault> {
    let opened = Roots::base(raw_lower, home);
    let roots = opened.map_err(|error| ChangesFault::Refused {
        path: raw_lower.to_owned(),
        why: error.to_string(),
    })?;
    let lower = PathBuf::from(roots.workspace_path());
    let mut protection = Protection::new(&lower, rule);
    for change in changes {
        let path = Path::new(&change.path);
        // Attack: two lists, each of which lacks what the other adds.
        let is_data = protection.bare_reason(upper, path);
        if let Some(what) = protection.find_reason(path).or(is_data) {
            return Err(ChangesFault::Refused {
                path: change.path.clone(),
                why: format!("no tool changes {what}"),
            });
        }
        check(&lower, upper, change)?;
    }
    Ok(roots)
}

/// Whether both sides are what they were.
fn check(lower: &Path, upper: &Path, change: &FileChange) -> Result<(), ChangesFault> {
    let place = lower.join(&change.path);
    let stale = || ChangesFault::Stale {
        path: change.path.clone(),
    };
    let about = fs::symlink_metadata(&place).ok();
    let is_as_listed = match (change.kind, &change.base) {
        // Another process may have made it meanwhile; then there is nothing left to do.
        (ChangeKind::FolderCreated, _) => about.is_none_or(|about| about.is_dir()),
        (ChangeKind::FolderDeleted, _) => about.is_none_or(|about| about.is_dir()),
        (_, None) => about.is_none(),
        (_, Some(base)) => {
            about.is_some_and(|about| about.is_file())
                && digest_of(&place).is_ok_and(|digest| digest == *base)
        }
    };
    if !is_as_listed {
        return Err(stale());
    }
    if let Some(listed) = &change.digest {
        // The layer may have been changed since a person saw the patch.
        let found = digest_of(&upper.join(&change.path)).map_err(fault(Path::new(&change.path)))?;
        if found != *listed {
            return Err(ChangesFault::Altered {
                path: change.path.clone(),
            });
        }
    }
    Ok(())
}

fn apply_one(roots: &Roots, upper: &Path, change: &FileChange) -> Result<(), ChangesFault> {
    let refused = |refusal: PathRefusal| ChangesFault::Refused {
        path: change.path.clone(),
        why: refusal.message,
    };
    let io_fault = |error| fault(Path::new(&change.path))(error);
    let place = roots.copied(&change.path).map_err(refused)?;
    match change.kind {
        ChangeKind::FolderCreated => {
            let target = ReplaceTarget::open(&place, Parents::Make).map_err(refused)?;
            let Some(target) = target.filter(|target| target.existing.is_none()) else {
                return Ok(());
            };
            target.folder().create_dir(target.name()).map_err(io_fault)
        }
        ChangeKind::Created | ChangeKind::Modified => {
            let target = ReplaceTarget::open(&place, Parents::Make).map_err(refused)?;
            let Some(target) = target else {
                return Err(io_fault(io::ErrorKind::NotFound.into()));
            };
            // Checked once more while it is copied: between the check and here the layer
            // could change.
            let copied = target.replace(|file| copy(upper, change, file));
            copied.map(|_| ()).map_err(refused)?;
            set_executable(&target, change.executable).map_err(io_fault)
        }
        ChangeKind::Deleted => {
            let target = ReplaceTarget::open(&place, Parents::Expect).map_err(refused)?;
            match target {
                Some(target) => target.remove().map(|_| ()).map_err(refused),
                None => Ok(()),
            }
        }
        ChangeKind::FolderDeleted => {
            let target = ReplaceTarget::open(&place, Parents::Expect).map_err(refused)?;
            let removed = target.map(|target| target.folder().remove_dir(target.name()));
            match removed {
                // Something new lies in it.
                // A file that a person put there in the meantime stays, and
                // so does its folder.
                Some(Err(error)) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
                Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Some(removed) => removed.map_err(io_fault),
                None => Ok(()),
            }
        }
    }
}

/// Copies the new content, and checks it as it goes.
fn copy(
    upper: &Path,
    change: &FileChange,
    file: &mut cap_std::fs::File,
) -> Result<u64, PathRefusal> {
    let refuse = |error: io::Error| PathRefusal::runtime("io", error.to_string());
    let mut from = open_plain(&upper.join(&change.path)).map_err(refuse)?;
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; 64 << 10];
    let mut bytes = 0;
    loop {
        let count = from.read(&mut chunk).map_err(refuse)?;
        let Some(read) = chunk.get(..count).filter(|read| !read.is_empty()) else {
            break;
        };
        hasher.update(read);
        file.write_all(read).map_err(refuse)?;
        bytes += u64::try_from(count).unwrap_or(u64::MAX);
    }
    match Some(hex(&hasher.finalize())) == change.digest {
        true => Ok(bytes),
        false => Err(PathRefusal::runtime("io", "it is not what was listed")),
    }
}

fn set_executable(target: &ReplaceTarget<'_>, executable: bool) -> io::Result<()> {
    // Attack: the name may be another's link by now.
    let opened = open::regular_entry(target.folder(), target.name().as_ref());
    let (file, about) = opened.map_err(|error| match error {
        OpenError::Io(error) => error,
        OpenError::Folder | OpenError::NotRegular => {
            io::Error::other("it is not a regular file any more")
        }
    })?;
    let mode = about.permissions().mode();
    let wanted = match executable {
        // Execution for those who may read it, never more than that.
        true => mode | 0o100 | ((mode & 0o044) >> 2),
        false => mode & !0o111,
    };
    match wanted == mode {
        true => Ok(()),
        false => file.set_permissions(cap_std::fs::Permissions::from_mode(wanted)),
    }
}

/// Whether a folder of the layer stands for itself alone.
fn is_opaque(folder: &Path) -> bool {
    let mut value = [0; 1];
    let names = ["user.overlay.opaque", "trusted.overlay.opaque"];
    names.into_iter().any(|name| {
        let read = rustix::fs::lgetxattr(folder, name, &mut value);
        read.is_ok_and(|count| count == 1) && value == *b"y"
    })
}

fn fault(path: &Path) -> impl FnOnce(io::Error) -> ChangesFault + '_ {
    move |source| ChangesFault::Io {
        path: path.display().to_string(),
        source,
    }
}
