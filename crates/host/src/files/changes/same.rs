//! Whether something in a copy of a folder still is what it was copied from. What no tool
//! changes is in a copy too, and is named only if a program changed it there.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::content::{digest_of, open_plain};
use crate::files::limit;

/// Whether `copy` is as `original`, with all that is in it. What cannot be read or is too
/// much to compare is not.
pub(super) fn is_same(copy: &Path, original: &Path) -> bool {
    compare(copy, original).unwrap_or(false)
}

/// Whether a copy has what is at this place: it leaves out what may not be read, and what is
/// neither file, folder nor link.
pub(super) fn was_copied(original: &Path) -> bool {
    let Ok(about) = fs::symlink_metadata(original) else {
        return false;
    };
    let kind = about.file_type();
    match (kind.is_dir(), kind.is_file()) {
        (true, _) => fs::read_dir(original).is_ok(),
        (_, true) => open_plain(original).is_ok(),
        (false, false) => kind.is_symlink(),
    }
}

fn compare(copy: &Path, original: &Path) -> io::Result<bool> {
    let mut open = vec![PathBuf::new()];
    let mut entries = 0_usize;
    while let Some(below) = open.pop() {
        let (new, old) = match below.as_os_str().is_empty() {
            true => (copy.to_owned(), original.to_owned()),
            false => (copy.join(&below), original.join(&below)),
        };
        let about = (fs::symlink_metadata(&new)?, fs::symlink_metadata(&old)?);
        let (new_kind, old_kind) = (about.0.file_type(), about.1.file_type());
        if new_kind != old_kind {
            return Ok(false);
        }
        if new_kind.is_dir() {
            let names = list(&new)?;
            entries += names.len();
            let is_gone = |name: &OsString| !names.contains(name) && was_copied(&old.join(name));
            if entries > limit::CHANGES_ENTRIES_MAX || list(&old)?.iter().any(is_gone) {
                return Ok(false);
            }
            open.extend(names.iter().map(|name| below.join(name)));
            continue;
        }
        let is_same = match new_kind.is_symlink() {
            true => fs::read_link(&new)? == fs::read_link(&old)?,
            false => {
                let is_executable = |about: &fs::Metadata| about.mode() & 0o100 != 0;
                about.0.len() == about.1.len()
                    && is_executable(&about.0) == is_executable(&about.1)
                    && digest_of(&new)? == digest_of(&old)?
            }
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The names in a folder, at most as many as a set of changes has, and one more.
fn list(folder: &Path) -> io::Result<BTreeSet<OsString>> {
    let entries = fs::read_dir(folder)?.take(limit::CHANGES_ENTRIES_MAX + 1);
    entries
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect()
}
