//! How much one workspace may hold. Tools write there without being asked again, so
//! without a bound one of them could fill the disk for all.
//!
//! Counting is cheap where there is room: what was written is added to what was found
//! at the last look. Before anything is refused, the workspace is looked at again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cap_fs_ext::DirExt as _;
use cap_std::fs::Dir;

use crate::files::limit;
use crate::files::refusal::PathRefusal;
use model::sync::lock;

/// Other processes write too, so a count is good for so long.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// What is known of each workspace of this process.
static KNOWN: Mutex<BTreeMap<PathBuf, Arc<Mutex<Option<Used>>>>> = Mutex::new(BTreeMap::new());

/// What a workspace holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    bytes: u64,
    entries: u64,
}

#[derive(Clone, Copy, Debug)]
struct Used {
    held: Held,
    looked: Instant,
}

/// The bound of one workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) bytes_max: u64,
    pub(crate) entries_max: u64,
}

impl Quota {
    /// Makes room for a new file of so many bytes, or refuses.
    pub(crate) fn admit(&self, path: &Path, root: &Dir, bytes: u64) -> Result<(), PathRefusal> {
        // One lock for each workspace, so that counting a large one holds up no other.
        let known = known(path);
        let mut known = lock(&known);
        let fresh = known.filter(|used| used.looked.elapsed() < LOOK_AGAIN);
        let (mut used, mut is_new) = match fresh {
            Some(used) => (used, false),
            None => (look(root)?, true),
        };
        loop {
            let after = Held {
                bytes: used.held.bytes.saturating_add(bytes),
                entries: used.held.entries.saturating_add(1),
            };
            if after.bytes <= self.bytes_max && after.entries <= self.entries_max {
                // Reserved before it is written: two calls together must not
                // go over the bound.
                used.held = after;
                *known = Some(used);
                return Ok(());
            }
            if is_new {
                *known = Some(used);
                return Err(self.refusal(used.held));
            }
            // Files may have been removed or overwritten since.
            (used, is_new) = (look(root)?, true);
        }
    }

    fn refusal(&self, held: Held) -> PathRefusal {
        let message = format!(
            "the workspace is full: it holds {} KiB in {} files and folders, at most {} KiB in {}; \
             remove some",
            held.bytes >> 10,
            held.entries,
            self.bytes_max >> 10,
            self.entries_max
        );
        PathRefusal::runtime("workspace-full", message)
    }
}

fn known(path: &Path) -> Arc<Mutex<Option<Used>>> {
    let mut all = lock(&KNOWN);
    if all.len() >= limit::WORKSPACES_KNOWN_MAX && !all.contains_key(path) {
        // They are counted again when they are next written to.
        all.clear();
    }
    Arc::clone(all.entry(path.to_owned()).or_default())
}

/// Counts what is there, without following links. Beyond the bound of a walk it counts
/// as full.
fn look(root: &Dir) -> Result<Used, PathRefusal> {
    let looked = Instant::now();
    let mut held = Held::default();
    let failed = |error: std::io::Error| {
        PathRefusal::runtime("io", format!("the workspace cannot be counted: {error}"))
    };
    let mut folders = vec![(root.try_clone().map_err(failed)?, 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in folder.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            held.entries += 1;
            if held.entries > limit::WORKSPACE_ENTRIES_MAX {
                return Ok(Used { held, looked });
            }
            let Ok(about) = entry.metadata() else {
                // It went in between.
                continue;
            };
            if !about.is_dir() {
                held.bytes = held.bytes.saturating_add(about.len());
            } else if depth < limit::WALK_DEPTH_MAX
                && let Ok(below) = folder.open_dir_nofollow(entry.file_name())
            {
                folders.push((below, depth + 1));
            }
        }
    }
    Ok(Used { held, looked })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(name: &str) -> (PathBuf, Dir) {
        let path = std::env::temp_dir().join(format!("host-quota-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("a/b")).expect("folders");
        std::fs::write(path.join("a/b/c"), [0; 1_000]).expect("a file");
        let root = Dir::open_ambient_dir(&path, cap_std::ambient_authority()).expect("a root");
        (path, root)
    }

    #[test]
    fn what_is_there_counts_and_what_is_removed_does_not() {
        let (path, root) = workspace("bytes");
        let quota = Quota {
            bytes_max: 3_000,
            entries_max: 100,
        };
        assert!(quota.admit(&path, &root, 1_000).is_ok());
        std::fs::write(path.join("x"), [0; 1_000]).expect("a file");
        assert!(quota.admit(&path, &root, 1_000).is_ok());
        std::fs::write(path.join("y"), [0; 1_000]).expect("a file");
        let refused = quota.admit(&path, &root, 1).expect_err("full");
        assert!(format!("{refused:?}").contains("workspace-full"));
        std::fs::remove_file(path.join("x")).expect("removed");
        assert!(quota.admit(&path, &root, 1_000).is_ok());
        std::fs::remove_dir_all(path).expect("removed");
    }

    #[test]
    fn files_and_folders_count_too() {
        let (path, root) = workspace("entries");
        let quota = Quota {
            bytes_max: 1 << 30,
            entries_max: 4,
        };
        assert!(quota.admit(&path, &root, 0).is_ok());
        std::fs::write(path.join("x"), "").expect("a file");
        assert!(quota.admit(&path, &root, 0).is_err());
        std::fs::remove_dir_all(path).expect("removed");
    }

    /// A link to a large folder elsewhere is an entry, not its contents.
    #[test]
    fn links_are_not_followed() {
        let (path, root) = workspace("links");
        std::os::unix::fs::symlink("/usr", path.join("usr")).expect("a link");
        let held = look(&root).expect("counted").held;
        assert_eq!(held.entries, 4);
        assert!(held.bytes < 2_000, "{held:?}");
        std::fs::remove_dir_all(path).expect("removed");
    }
}
