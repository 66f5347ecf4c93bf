//! A bounded copy of a folder, for a run that must not change the real one.
//!
//! Regular files and folders are copied; links are made again with the same text and
//! never followed, so what they led to outside stays out of reach; pipes, sockets
//! and devices are left out.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{
    Dir, DirBuilder, DirBuilderExt as _, OpenOptions, OpenOptionsExt as _, PermissionsExt as _,
};

use crate::files::limit;

/// Why a folder was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// It holds more than is copied.
    #[error("the folder `{path}` holds more than {what}")]
    TooLarge {
        /// The folder.
        path: String,
        /// The bound.
        what: String,
    },
    /// It took too long.
    #[error("copying the folder `{path}` took too long")]
    Late {
        /// The folder.
        path: String,
    },
    /// The system said no.
    #[error("the folder `{path}` cannot be copied")]
    Io {
        /// The folder.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Copies a folder to a place that is not there yet. What was copied when it fails
/// stays for the caller to remove.
pub fn copy_tree(from: &Path, to: &Path, deadline: Instant) -> Result<(), CopyError> {
    let fault = |source| CopyError::Io {
        path: from.display().to_string(),
        source,
    };
    let mut builder = std::fs::DirBuilder::new();
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.recursive(true).mode(0o700);
    }
    builder.create(to).map_err(fault)?;
    let source = Dir::open_ambient_dir(from, ambient_authority()).map_err(fault)?;
    let target = Dir::open_ambient_dir(to, ambient_authority()).map_err(fault)?;
    let mut copy = Copy {
        path: from.display().to_string(),
        deadline,
        entries: 0,
        bytes: 0,
    };
    // A list instead of recursion: depth is bounded, and so is the stack.
    let mut folders: Vec<(Dir, Dir, usize)> = vec![(source, target, 0)];
    while let Some((source, target, depth)) = folders.pop() {
        copy.folder(&source, &target, depth, &mut folders)?;
    }
    Ok(())
}

struct Copy {
    path: String,
    deadline: Instant,
    entries: u64,
    bytes: u64,
}

impl Copy {
    fn folder(
        &mut self,
        source: &Dir,
        target: &Dir,
        depth: usize,
        folders: &mut Vec<(Dir, Dir, usize)>,
    ) -> Result<(), CopyError> {
        for entry in self.tried(source.entries())? {
            let entry = self.tried(entry)?;
            self.count()?;
            let name = PathBuf::from(entry.file_name());
            let Some(kind) = self.readable(entry.file_type())? else {
                continue;
            };
            if kind.is_dir() {
                if depth + 1 > limit::STAND_IN_DEPTH_MAX {
                    let what = format!("{} folders below each other", limit::STAND_IN_DEPTH_MAX);
                    return Err(self.too_large(what));
                }
                // By handle and without following: the folder may have become a link since
                // it was listed.
                let Some(inside) = self.readable(source.open_dir_nofollow(&name))? else {
                    continue;
                };
                let mut builder = DirBuilder::new();
                builder.mode(0o700);
                self.tried(target.create_dir_with(&name, &builder))?;
                let made = self.tried(target.open_dir_nofollow(&name))?;
                folders.push((inside, made, depth + 1));
            } else if kind.is_symlink() {
                if let Some(leads) = self.readable(source.read_link_contents(&name))? {
                    self.tried(target.symlink_contents(&leads, &name))?;
                }
            } else if kind.is_file() {
                self.file(source, target, &name)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, source: &Dir, target: &Dir, name: &Path) -> Result<(), CopyError> {
        let mut options = OpenOptions::new();
        // A file may have become a link or a pipe since it was listed.
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let Some(from) = self.readable(source.open_with(name, &options))? else {
            return Ok(());
        };
        let about = self.tried(from.metadata())?;
        if !about.is_file() {
            return Ok(());
        }
        // A script that its owner may run can be run in the copy, and nothing in it seems changed.
        let mode = match about.permissions().mode() & 0o100 {
            0 => 0o600,
            _ => 0o700,
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        let to = self.tried(target.open_with(name, &options))?;
        let left = limit::STAND_IN_BYTES_MAX.saturating_sub(self.bytes);
        // One more than is left, so that a file that grows while it is read is noticed.
        let mut from = io::Read::take(from.into_std(), left.saturating_add(1));
        let copied = self.tried(io::copy(&mut from, &mut to.into_std()))?;
        self.bytes = self.bytes.saturating_add(copied);
        match self.bytes > limit::STAND_IN_BYTES_MAX {
            true => Err(self.too_large(format!("{} MiB", limit::STAND_IN_BYTES_MAX >> 20))),
            false => Ok(()),
        }
    }

    /// What may not be read is left out: the tool could not read it either. What is
    /// gone meanwhile is gone.
    fn readable<T>(&self, tried: io::Result<T>) -> Result<Option<T>, CopyError> {
        match tried {
            Ok(got) => Ok(Some(got)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound
                ) =>
            {
                Ok(None)
            }
            Err(source) => self.tried(Err(source)),
        }
    }

    fn tried<T>(&self, tried: io::Result<T>) -> Result<T, CopyError> {
        tried.map_err(|source| CopyError::Io {
            path: self.path.clone(),
            source,
        })
    }

    fn count(&mut self) -> Result<(), CopyError> {
        self.entries += 1;
        if self.entries > limit::STAND_IN_ENTRIES_MAX {
            let what = format!("{} files and folders", limit::STAND_IN_ENTRIES_MAX);
            return Err(self.too_large(what));
        }
        match Instant::now() < self.deadline {
            true => Ok(()),
            false => Err(CopyError::Late {
                path: self.path.clone(),
            }),
        }
    }

    fn too_large(&self, what: String) -> CopyError {
        CopyError::TooLarge {
            path: self.path.clone(),
            what,
        }
    }
}
