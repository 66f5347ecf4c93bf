//! Which folder is which. A home that was copied, and a folder that was lost and made again,
//! have the right name and the wrong content: what is missing there was not deleted.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::home::settings::RULES_FOLDER;

use super::local::TOOLS_FOLDER;

/// The folders of files that nodes share.
const FOLDERS: [&str; 2] = [RULES_FOLDER, TOOLS_FOLDER];

/// Where a home was the last time, and which folders it had. Empty where an older program
/// wrote it: nothing is known then.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub(super) struct HomePlace {
    path: String,
    /// The folder itself, whatever its path is.
    folder: String,
    /// Each folder of shared files that is there.
    folders: BTreeMap<String, String>,
}

impl HomePlace {
    /// Looks at a home.
    pub(super) fn of(home: &Path) -> HomePlace {
        let path = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        let folders = FOLDERS.iter().filter_map(|name| {
            let identity = identity(&home.join(name))?;
            Some(((*name).to_owned(), identity))
        });
        HomePlace {
            path: path.display().to_string(),
            folder: identity(home).unwrap_or_default(),
            folders: folders.collect(),
        }
    }

    /// The path of the other home if this one is a copy of it. A home that was moved is the
    /// same folder, and one that was restored is at the same path.
    pub(super) fn copied_from<'a>(&self, before: &'a HomePlace) -> Option<&'a str> {
        let is_known = !before.path.is_empty();
        let is_same = before.path == self.path || before.folder == self.folder;
        (is_known && !is_same).then_some(before.path.as_str())
    }

    /// The files that vanished with their folder, or all at once, and were thus not deleted
    /// one by one. `common` has the files of the last time, `exists` says what is there.
    pub(super) fn lost<'a>(
        &self,
        before: &HomePlace,
        common: impl Iterator<Item = &'a String> + Clone,
        exists: impl Fn(&str) -> bool,
    ) -> Vec<&'a String> {
        let mut lost = Vec::new();
        for name in FOLDERS {
            let of_folder = |path: &&String| {
                let rest = path.strip_prefix(name);
                rest.is_some_and(|rest| rest.starts_with('/'))
            };
            let all: Vec<&String> = common.clone().filter(of_folder).collect();
            let gone: Vec<&String> = all.iter().copied().filter(|path| !exists(path)).collect();
            let (now, then) = (self.folders.get(name), before.folders.get(name));
            // A lost mount leaves an empty folder, a restore makes another.
            let is_other = then.is_some() && now != then;
            let is_emptied = gone.len() > 1 && gone.len() == all.len();
            if now.is_none() || is_other || is_emptied {
                lost.extend(gone);
            }
        }
        lost
    }
}

/// What no other folder has. Numbers of folders are given again, so the time counts too.
fn identity(folder: &Path) -> Option<String> {
    let found = fs::metadata(folder).ok().filter(fs::Metadata::is_dir)?;
    let made = found.created().ok();
    let made = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    let made = made.map(|made| made.as_nanos()).unwrap_or_default();
    Some(format!("{}:{}:{made}", found.dev(), found.ino()))
}
