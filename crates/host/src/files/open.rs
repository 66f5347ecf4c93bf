//! Opening and reading regular files beneath a directory handle.

use std::io::{self, Read as _};
use std::path::Path;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use crate::files::limit;
use crate::files::refusal::{PathPurpose, PathRefusal};
use crate::files::root::PathEntry;

/// Why a file could not be opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// The system says so.
    Io(io::Error),
    /// It is a folder.
    Folder,
    /// It is a pipe, a socket or a device.
    NotRegular,
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::Io(error)
    }
}

impl OpenError {
    /// As the script sees it.
    pub(crate) fn into_refusal(self, path: &str) -> PathRefusal {
        match self {
            OpenError::Io(error) => PathRefusal::io(PathPurpose::Read, path, &error),
            OpenError::Folder => {
                PathRefusal::io(PathPurpose::Read, path, &io::ErrorKind::IsADirectory.into())
            }
            OpenError::NotRegular => PathRefusal::not_regular(path),
        }
    }
}

/// Opens a regular file for reading; a link in its name is followed as long as
/// it stays beneath the folder.
pub(crate) fn regular(folder: &Dir, path: &Path) -> Result<(File, Metadata), OpenError> {
    // Attack: opening a device may already do something. So look first.
    is_regular(&folder.metadata(path)?)?;
    open(folder, path, FollowSymlinks::Yes)
}

/// Opens a regular file by its name alone, following nothing.
pub(crate) fn regular_entry(folder: &Dir, name: &Path) -> Result<(File, Metadata), OpenError> {
    open(folder, name, FollowSymlinks::No)
}

fn open(folder: &Dir, path: &Path, follow: FollowSymlinks) -> Result<(File, Metadata), OpenError> {
    let mut options = OpenOptions::new();
    // Attack: opening a pipe without a writer waits forever unless it is non-blocking.
    options.read(true).follow(follow).nonblock(true);
    let file = folder.open_with(path, &options)?;
    // Attack: whatever was looked at before may have been swapped since; this
    // asks the open file itself.
    let metadata = file.metadata()?;
    is_regular(&metadata)?;
    Ok((file, metadata))
}

fn is_regular(metadata: &Metadata) -> Result<(), OpenError> {
    match (metadata.is_file(), metadata.is_dir()) {
        (true, _) => Ok(()),
        (false, true) => Err(OpenError::Folder),
        (false, false) => Err(OpenError::NotRegular),
    }
}

/// The whole text of a file at a place.
pub(crate) fn text(place: &PathEntry<'_>) -> Result<String, PathRefusal> {
    let opened = regular(place.root, &place.relative);
    let (file, metadata) = opened.map_err(|error| error.into_refusal(&place.display))?;
    whole(file, &metadata, &place.display)
}

/// The whole text of an open file.
pub(crate) fn whole(file: File, metadata: &Metadata, path: &str) -> Result<String, PathRefusal> {
    let bytes_max = limit::FILE_BYTES_MAX;
    if metadata.len() > bytes_max {
        return Err(PathRefusal::too_large(path, bytes_max));
    }
    let capacity = usize::try_from(metadata.len()).unwrap_or(0);
    let mut bytes = Vec::with_capacity(capacity.saturating_add(1));
    // The size may be a lie, as in `/proc`, or may change while we read.
    let read = file.into_std().take(bytes_max + 1).read_to_end(&mut bytes);
    let count = read.map_err(|error| PathRefusal::io(PathPurpose::Read, path, &error))?;
    if u64::try_from(count).is_ok_and(|count| count > bytes_max) {
        return Err(PathRefusal::too_large(path, bytes_max));
    }
    String::from_utf8(bytes).map_err(|_| {
        let path = crate::files::refusal::shown(path);
        PathRefusal::runtime("not-utf8", format!("the file is not UTF-8: {path}"))
    })
}
