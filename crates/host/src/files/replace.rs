//! Replacing a file as a whole: a temporary file beside it, flushed, renamed over
//! it, and the folder flushed. A reader sees the old content or the new.
//!
//! A rename changes what a *name* stands for, never a file in place: a link
//! planted under the name is replaced, not followed, and of a file with two
//! names the other keeps its content.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::fs::{
    Dir, File, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _, Permissions,
    PermissionsExt as _,
};

use model::sync::lock;

use crate::files::limit;
use crate::files::refusal::{PathPurpose, PathRefusal, shown};
use crate::files::root::PathEntry;

/// Reading, writing and running for owner, group and others; never more.
const MODE_MASK: u32 = 0o777;

/// Two calls that change one file must not undo each other's work, so a call that
/// reads a file to replace it holds the lock its path falls to.
static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// Holds what these paths fall to, in an order that cannot deadlock.
pub(crate) fn hold(paths: &[&Path]) -> Vec<MutexGuard<'static, ()>> {
    let index = |path: &&Path| {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        usize::try_from(hasher.finish() % 64).unwrap_or(0)
    };
    let mut indices: Vec<usize> = paths.iter().map(index).collect();
    // Sorted, so that two calls with the same two paths take them in one order.
    indices.sort_unstable();
    indices.dedup();
    let locks = indices.iter().filter_map(|index| LOCKS.get(*index));
    // A lock guards no data of its own, so one left by a panic is as good.
    locks.map(lock).collect()
}

/// Whether missing folders on the way are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parents {
    Make,
    Expect,
}

/// A name in an open folder of the workspace.
#[derive(Debug)]
pub(crate) struct ReplaceTarget<'a> {
    folder: Dir,
    name: &'a str,
    display: &'a str,
    /// What stands under the name now; never a link.
    pub(crate) existing: Option<Metadata>,
}

impl<'a> ReplaceTarget<'a> {
    /// Opens the folder of a place and looks at the name. Nothing, if the folder
    /// is missing and not to be made.
    pub(crate) fn open(
        place: &'a PathEntry<'_>,
        parents: Parents,
    ) -> Result<Option<ReplaceTarget<'a>>, PathRefusal> {
        let refusal =
            |error: &io::Error| PathRefusal::io(PathPurpose::Write, &place.display, error);
        let Some((parent, name)) = place.parent_and_name() else {
            return Err(refusal(&io::ErrorKind::IsADirectory.into()));
        };
        let opened = match place.is_operators {
            true => folder_without_links(place.root, parent, parents),
            false => folder(place.root, parent, parents),
        };
        let folder = match opened {
            Ok(folder) => folder,
            // Without its folder the file is missing too, which is an
            // answer and not a fault.
            Err(error) if error.kind() == io::ErrorKind::NotFound && parents == Parents::Expect => {
                return Ok(None);
            }
            Err(error) => return Err(refusal(&error)),
        };
        let existing = match folder.symlink_metadata(name) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(refusal(&error)),
        };
        if existing.as_ref().is_some_and(Metadata::is_symlink) {
            let message = format!("write through a symbolic link: {}", shown(&place.display));
            return Err(PathRefusal::security("write-through-symlink", message));
        }
        Ok(Some(ReplaceTarget {
            folder,
            name,
            display: &place.display,
            existing,
        }))
    }

    /// Refuses to replace anything but a regular file.
    pub(crate) fn expect_file(&self) -> Result<(), PathRefusal> {
        match &self.existing {
            Some(metadata) if metadata.is_dir() => {
                Err(self.refusal(&io::ErrorKind::IsADirectory.into()))
            }
            Some(metadata) if !metadata.is_file() => Err(PathRefusal::not_regular(self.display)),
            Some(_) | None => Ok(()),
        }
    }

    /// Puts a new file under the name. `fill` writes it.
    pub(crate) fn replace(
        &self,
        fill: impl FnOnce(&mut File) -> Result<u64, PathRefusal>,
    ) -> Result<u64, PathRefusal> {
        self.expect_file()?;
        let (mut file, temporary) = Temporary::create(&self.folder, self.first_mode())
            .map_err(|error| self.refusal(&error))?;
        let bytes = fill(&mut file)?;
        self.finish(&file, temporary)
            .map_err(|error| self.refusal(&error))?;
        Ok(bytes)
    }

    /// Renames what is here to there.
    pub(crate) fn rename(&self, to: &ReplaceTarget<'_>) -> Result<(), PathRefusal> {
        let renamed = self.folder.rename(self.name, &to.folder, to.name);
        // Where it went first: after a power cut it has two names rather than none.
        let flushed = renamed.and_then(|()| flush(&to.folder));
        let flushed = flushed.and_then(|()| flush(&self.folder));
        flushed.map_err(|error| to.refusal(&error))
    }

    /// Removes the file under the name; false if there is none any more.
    pub(crate) fn remove(&self) -> Result<bool, PathRefusal> {
        match self.folder.remove_file(self.name) {
            Ok(()) => flush(&self.folder)
                .map(|()| true)
                .map_err(|error| self.refusal(&error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.refusal(&error)),
        }
    }

    /// The folder the name is in.
    pub(crate) fn folder(&self) -> &Dir {
        &self.folder
    }

    /// The name.
    pub(crate) fn name(&self) -> &str {
        self.name
    }

    /// What the system said.
    pub(crate) fn refusal(&self, error: &io::Error) -> PathRefusal {
        PathRefusal::io(PathPurpose::Write, self.display, error)
    }

    /// What may be done with the file while it is written. One that replaces another is its
    /// owner's alone until it has the other's mode, which may be narrower than the usual one.
    fn first_mode(&self) -> u32 {
        match &self.existing {
            Some(_) => 0o600,
            None => 0o666,
        }
    }

    fn finish(&self, file: &File, temporary: Temporary<'_>) -> io::Result<()> {
        if let Some(existing) = &self.existing {
            let mode = existing.mode() & MODE_MASK;
            // On the open file, not by name, so that no other file gets the mode.
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        // Content before name: otherwise a power cut could leave an empty file
        // under the old name.
        file.sync_all()?;
        temporary.rename(self.name)?;
        flush(&self.folder)
    }
}

/// A file that is removed again unless it is renamed.
struct Temporary<'a> {
    folder: &'a Dir,
    name: Option<String>,
}

impl<'a> Temporary<'a> {
    fn create(folder: &'a Dir, mode: u32) -> io::Result<(File, Temporary<'a>)> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        // Attack: a link planted under the temporary name would be written through.
        options.follow(FollowSymlinks::No);
        let mut tries = 0;
        loop {
            // Of random keys, so that two calls hardly meet. It may be guessed: `create_new`
            // opens nothing that is there, and no link.
            let name = format!(".ringfence-{:016x}.tmp", RandomState::new().hash_one(0));
            match folder.open_with(&name, &options) {
                Ok(file) => {
                    let name = Some(name);
                    return Ok((file, Temporary { folder, name }));
                }
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists
                        && tries < limit::TEMPORARY_TRIES_MAX =>
                {
                    tries += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn rename(mut self, to: &str) -> io::Result<()> {
        let Some(name) = &self.name else {
            return Ok(());
        };
        self.folder.rename(name, self.folder, to)?;
        self.name = None;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // No call is left to report to; the name says what the file is.
            let _ = self.folder.remove_file(name);
        }
    }
}

/// Opens a folder below a root, making what is missing.
fn folder(root: &Dir, path: &Path, parents: Parents) -> io::Result<Dir> {
    match root.open_dir(path) {
        // The usual case, in one step; `open_dir` beneath the handle cannot lead out.
        Err(error) if error.kind() == io::ErrorKind::NotFound && parents == Parents::Make => {}
        opened => return opened,
    }
    let names: Vec<_> = path.components().collect();
    let mut missing: Vec<&Component<'_>> = Vec::new();
    let mut here = root.try_clone()?;
    // From the longest path down, because most folders are there already.
    for count in (1..=names.len()).rev() {
        let above: PathBuf = names.iter().take(count).collect();
        match root.open_dir(&above) {
            Ok(found) => {
                here = found;
                break;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing.extend(names.get(count - 1));
            }
            Err(error) => return Err(error),
        }
    }
    for name in missing.iter().rev() {
        let name = name.as_os_str();
        match here.create_dir(name) {
            // Each new name is on the disk before something is put into it.
            Ok(()) => flush(&here)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        // Attack: a link that leads nowhere is missing to one call and present to
        // the next; what was just made is no link.
        here = here.open_dir_nofollow(name)?;
    }
    Ok(here)
}

/// [`folder`], name by name, through no link. Attack: `notes` that leads to `.git` makes
/// `notes/hooks/x` a hook.
fn folder_without_links(root: &Dir, path: &Path, parents: Parents) -> io::Result<Dir> {
    let mut here = root.try_clone()?;
    for part in path.components() {
        let Component::Normal(name) = part else {
            continue;
        };
        here = match here.open_dir_nofollow(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && parents == Parents::Make => {
                match here.create_dir(name) {
                    Ok(()) => flush(&here)?,
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(error),
                }
                here.open_dir_nofollow(name)?
            }
            opened => opened?,
        };
    }
    Ok(here)
}

/// Puts the names in a folder on the disk. The handle itself cannot be flushed,
/// for it was opened as a place only.
fn flush(folder: &Dir) -> io::Result<()> {
    folder.open(".")?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::root::Roots;

    /// Attack: another user reads the new content of a private file while it is written.
    #[test]
    fn a_file_is_no_wider_while_it_is_written_than_the_one_it_replaces() {
        let folder = std::env::temp_dir().join(format!("ringfence-replace-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mode = |name: &str, mode: u32| {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::write(folder.join(name), "old").unwrap();
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(folder.join(name), permissions).unwrap();
        };
        mode("private", 0o600);
        mode("shared", 0o664);
        let roots = Roots::base(&folder.to_string_lossy(), None).unwrap();
        for (name, last) in [("private", 0o600), ("shared", 0o664)] {
            let place = roots.writable(name).unwrap();
            let target = ReplaceTarget::open(&place, Parents::Expect)
                .unwrap()
                .unwrap();
            let replaced = target.replace(|file| {
                let first = file.metadata().unwrap().mode() & MODE_MASK;
                assert_eq!(first & 0o077, 0, "{name}: {first:o}");
                Ok(0)
            });
            replaced.unwrap();
            let about = target.folder().symlink_metadata(name).unwrap();
            assert_eq!(about.mode() & MODE_MASK, last, "{name}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
