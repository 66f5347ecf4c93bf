//! Files that are replaced whole: a reader, and a crash, see the old one or the new one.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Replaces a file atomically, with this mode, and waits until it is on the disk.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> anyhow::Result<()> {
    let unfinished = beside(path, &format!(".{}.tmp", std::process::id()));
    let mut options = fs::OpenOptions::new();
    // Private while it is written: its final mode may be wider, and it may hold a key.
    let options = options.write(true).create_new(true).mode(0o600);
    let written = options.open(&unfinished).and_then(|mut file| {
        file.write_all(bytes)?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()
    });
    let named = written.and_then(|()| fs::rename(&unfinished, path));
    let synced = named.and_then(|()| {
        let folder = path.parent().filter(|folder| folder != &Path::new(""));
        // The folder too, or a crash could lose the new name.
        fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    });
    synced
        .inspect_err(|_| {
            let _ = fs::remove_file(&unfinished);
        })
        .with_context(|| format!("cannot write `{}`", path.display()))
}

/// A path beside another, with a suffix.
pub(crate) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Removes a file; one that is gone already is no error.
pub(crate) fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).context(format!("cannot remove `{}`", path.display())),
    }
}
