//! Which folders no tool sees, whatever names them: the program's own home, with its
//! rules, keys, secrets and audit, and every folder that holds it.
//!
//! Folders are told apart by what they are (device and inode), not by how they are
//! spelled: a link or a second mount of the home is the home.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use cap_fs_ext::MetadataExt as _;
use cap_std::fs::Dir;

use crate::files::{FilesError, root};

/// A home folder, and the folders in it that tools may have.
#[derive(Clone, Debug)]
pub struct ProtectedHome {
    /// The home, absolute.
    pub path: PathBuf,
    /// Folders in it that are meant for the files of tools: absolute.
    pub workspaces: Vec<PathBuf>,
    /// Folders in it that are the program's own, even if a setting names one of them
    /// as a workspace: absolute.
    pub kept: Vec<PathBuf>,
    /// Where a relative folder lies; made when it is missing.
    pub relative_to: PathBuf,
}

/// The identity of a folder.
type Identity = (u64, u64);

impl ProtectedHome {
    /// Where a folder is, as it was written: relative ones lie below a place of their
    /// own in the home.
    pub(crate) fn absolute(&self, raw_path: &Path) -> Result<PathBuf, FilesError> {
        if raw_path.is_absolute() {
            return Ok(raw_path.to_owned());
        }
        let is_plain =
            |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !raw_path.components().all(is_plain) {
            return Err(FilesError::Upwards {
                path: raw_path.display().to_string(),
            });
        }
        Ok(self.relative_to.join(raw_path))
    }

    /// Whether a folder may be that of a tool, as it was written. A relative one that
    /// is not there yet may.
    pub fn allows(&self, raw_path: &Path) -> Result<(), FilesError> {
        let path = self.absolute(raw_path)?;
        // It will be made below a place of our own, so it cannot be the home.
        if !raw_path.is_absolute() && !path.exists() {
            return Ok(());
        }
        root::base_path(&path.to_string_lossy(), Some(self)).map(|_| ())
    }

    /// Refuses a folder, links resolved and opened, that is the home, holds it, or lies
    /// in it other than in a workspace.
    pub(crate) fn check(&self, folder: &Path, handle: &Dir) -> Result<(), FilesError> {
        let refused = |how| FilesError::Home {
            path: folder.display().to_string(),
            how,
        };
        let unseen = |source| FilesError::Open {
            path: folder.display().to_string(),
            source,
        };
        let home = match self.path.canonicalize() {
            Ok(home) => home,
            // Nothing is in a home that is not there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(unseen(source)),
        };
        // Attack: the name may lead elsewhere by now, so what was opened is looked at.
        let own = opened(handle).map_err(unseen)?;
        if own != identity(folder).map_err(unseen)? {
            return Err(unseen(io::Error::other(
                "it was changed while it was opened",
            )));
        }
        // The home's ancestors too: a folder that holds the home shows all of it.
        for (index, above) in home.ancestors().enumerate() {
            if own == identity(above).map_err(unseen)? {
                return Err(refused(if index == 0 { "is" } else { "holds" }));
            }
        }
        let workspaces = there(&self.workspaces).map_err(unseen)?;
        let kept = there(&self.kept).map_err(unseen)?;
        let home = identity(&home).map_err(unseen)?;
        for above in folder.ancestors() {
            let above = identity(above).map_err(unseen)?;
            // Before the workspaces: a setting must not open a folder that is
            // the program's own.
            if kept.contains(&above) || above == home {
                return Err(refused("lies in"));
            }
            if workspaces.contains(&above) {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn identity(folder: &Path) -> io::Result<Identity> {
    let about = fs::metadata(folder)?;
    Ok((about.dev(), about.ino()))
}

fn opened(handle: &Dir) -> io::Result<Identity> {
    let about = handle.dir_metadata()?;
    Ok((about.dev(), about.ino()))
}

/// The folders that are there.
fn there(folders: &[PathBuf]) -> io::Result<Vec<Identity>> {
    let mut there = Vec::with_capacity(folders.len());
    for folder in folders {
        match identity(folder) {
            Ok(identity) => there.push(identity),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(there)
}
