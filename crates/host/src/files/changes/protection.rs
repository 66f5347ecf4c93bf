//! Which changes count: by who made them, by their names, and by what repositories name.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use super::ChangeRule;
use crate::files::repository::{RepositoryPrograms, is_bare};
use crate::files::untouchable::{GIT_DATA, untouchable};

/// Which paths of a folder count, for who made the changes.
pub(super) struct Protection<'a> {
    lower: &'a Path,
    rule: &'a ChangeRule,
    /// What repositories of the folder, and those around it, name as theirs to run.
    programs: RepositoryPrograms,
}

impl<'a> Protection<'a> {
    pub(super) fn new(lower: &'a Path, rule: &'a ChangeRule) -> Protection<'a> {
        Protection {
            lower,
            rule,
            programs: RepositoryPrograms::of_tree(lower, None),
        }
    }

    pub(super) fn rule(&self) -> &ChangeRule {
        self.rule
    }

    /// Why a change does not count, by its path.
    pub(super) fn find_reason(&mut self, path: &Path) -> Option<&'static str> {
        let by_name = self.name_reason(path);
        if by_name.is_some() || self.is_own_data(path) {
            return by_name;
        }
        // By its absolute path, because a repository around the folder may name it too.
        self.programs.find(&self.lower.join(path))
    }

    /// Whether it is data of the repository that one of our git tools works on.
    fn is_own_data(&self, path: &Path) -> bool {
        self.rule
            .own_data()
            .is_some_and(|own| path.starts_with(own))
    }

    /// Why a change does not count that would lie in a repository without a working tree, or
    /// make one, once both layers are one folder. Attack: it is a folder with ordinary names,
    /// and git obeys its settings. Commits may hold one, too.
    pub(super) fn bare_reason(&self, upper: &Path, path: &Path) -> Option<&'static str> {
        let is = |folder: &&Path| {
            is_bare(|name| {
                let path = folder.join(name);
                fs::symlink_metadata(upper.join(&path)).is_ok()
                    || fs::symlink_metadata(self.lower.join(&path)).is_ok()
            })
        };
        // The path itself as well, because a change may create that folder.
        let mut folders = path.ancestors();
        let found = match self.rule {
            ChangeRule::Program => folders.find(is),
            // Git finds `.git` in a folder before it takes the folder itself for a repository.
            ChangeRule::Git { repository: own } => match self.is_own_data(path) {
                true => None,
                false => folders.filter(|folder| *folder != own).find(is),
            },
            // A clone has whatever its commits have, and its caller is told. Attack: a clone
            // into `refs`, in a folder that has the rest.
            ChangeRule::Clone { folder: own } => own.ancestors().skip(1).find(is),
        };
        found.map(|_| GIT_DATA)
    }

    fn name_reason(&self, path: &Path) -> Option<&'static str> {
        let own = match self.rule {
            ChangeRule::Program => return untouchable(path),
            ChangeRule::Git { repository } => repository,
            ChangeRule::Clone { folder } => folder,
        };
        let inside = match own.as_os_str().is_empty() {
            true => Some(path),
            false => path.strip_prefix(own).ok(),
        };
        let Some(inside) = inside else {
            // Folders on the way to it.
            return match own.starts_with(path) {
                true => None,
                false => Some("it is outside of the repository"),
            };
        };
        match inside.strip_prefix(".git") {
            Ok(data) => {
                let is_clone = matches!(self.rule, ChangeRule::Clone { .. });
                let is_ours = is_clone && data == Path::new("config");
                (!is_ours && !is_git_data(data)).then_some("git tools do not change it")
            }
            // Files of the working tree come from commits, which anyone wrote.
            Err(_) => match self.rule {
                // A clone has whatever its commits have; only another repository is none
                // of their business.
                ChangeRule::Clone { .. } => untouchable(inside).filter(|what| *what == GIT_DATA),
                ChangeRule::Program | ChangeRule::Git { .. } => untouchable(inside),
            },
        }
    }
}

/// What git keeps in `.git` while it works: objects, references, the index. Never what
/// decides what git runs.
fn is_git_data(path: &Path) -> bool {
    let mut parts = path.components();
    let first = parts.next().map(|part| part.as_os_str());
    let Some(first) = first.and_then(OsStr::to_str) else {
        return true;
    };
    let second = parts.next().map(|part| part.as_os_str());
    match first {
        // Alternates read the objects of other repositories.
        "objects" => {
            let is_info = second == Some(OsStr::new("info"));
            let third = parts.next().map(|part| part.as_os_str());
            !is_info || third.is_none() || third == Some(OsStr::new("commit-graphs"))
        }
        "refs" | "logs" => true,
        "branches" | "description" | "info" => second.is_none(),
        "HEAD" | "index" | "packed-refs" | "ORIG_HEAD" | "FETCH_HEAD" | "COMMIT_EDITMSG"
        | "shallow" => second.is_none(),
        // Closed: a name that a later git adds is not data until a person decides.
        _ => false,
    }
}
