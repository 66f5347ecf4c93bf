//! A workspace for one Local Pass: empty, its own, gone afterwards. So a test can
//! be repeated, and never touches real files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use host::files::remove_folder;
use model::limits;

use crate::limit;

/// Where scratch workspaces are, in the home folder.
const FOLDER: &str = "scratch";
/// No call takes longer.
const SWEEP_AGE_MIN: Duration = Duration::from_millis(2 * limits::TIMEOUT_MS_MAX);

/// A workspace that goes with this value.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// The scratch workspace of one call. The powers make it when they need it.
    pub(crate) fn new(home: &Path, call_id: &str) -> Scratch {
        Scratch {
            path: home.join(FOLDER).join(call_id),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what processes that died left: whatever is older than any call.
    pub(crate) fn sweep(home: &Path) {
        let Ok(entries) = std::fs::read_dir(home.join(FOLDER)) else {
            return;
        };
        for entry in entries.flatten().take(limit::SWEEP_ENTRIES_MAX) {
            let age = entry.metadata().and_then(|about| about.modified());
            let age = age.ok().and_then(|modified| modified.elapsed().ok());
            if age.is_some_and(|age| age > SWEEP_AGE_MIN) {
                let _ = remove_folder(&entry.path());
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is removed when an engine is next opened.
        let _ = remove_folder(&self.path);
    }
}
