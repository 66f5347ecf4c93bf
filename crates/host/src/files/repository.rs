//! What the settings of a git repository name as something that git runs or obeys: the
//! folder of its hooks, and the programs of its monitor, filters, drivers and helpers. A tool
//! that changed one of them would have its code run at the person's next `git status`.
//!
//! The settings themselves are in `.git`, which no tool changes, so they are the person's
//! word. Settings that cannot be read whole protect everything in their repository.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

use crate::files::limit;
use crate::files::untouchable::folded;

mod setting;

/// What is named, for people.
const HOOKS: &str = "hooks of a repository";
const PROGRAM: &str = "a program that the settings of a repository name";
const INCLUDED: &str = "settings of git";
const UNSEARCHED: &str = "files of a folder that is too large to find its repositories";
const UNREADABLE: &str = "files of a repository whose settings cannot be read";

/// The hooks that git runs.
const HOOK_NAMES: [&str; 28] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// Whether a folder with these names is a repository without a working tree, or a linked one,
/// as git takes it: a folder with ordinary names, whose settings git obeys.
pub(crate) fn is_bare(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

/// Whether a folder is a repository without a working tree.
#[must_use]
pub fn is_bare_repository(folder: &Path) -> bool {
    is_bare(|name| fs::symlink_metadata(folder.join(name)).is_ok())
}

/// Whether something at `path`, below `root`, would lie in a repository without a working
/// tree, or make a folder one. What is there already counts, and so do the folders of the
/// path itself.
#[must_use]
pub fn makes_bare(root: &Path, path: &Path) -> bool {
    let mut below = PathBuf::new();
    let mut parts = path.components().peekable();
    while let Some(part) = parts.peek() {
        let next = folded(&part.as_os_str().to_string_lossy());
        let has = |name: &str| {
            next == name.to_lowercase()
                || fs::symlink_metadata(root.join(&below).join(name)).is_ok()
        };
        if is_bare(has) {
            return true;
        }
        below.extend(parts.next());
    }
    // The path itself may be such a folder.
    is_bare_repository(&root.join(&below))
}

/// What the settings of repositories name, read once for each folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct RepositoryPrograms {
    folders: BTreeMap<PathBuf, FolderPrograms>,
    /// Repositories that were searched for: what they name counts wherever it lies.
    below: Vec<PathBuf>,
    /// A folder that could not be searched to its end: everything in it is protected.
    unsearched: Option<PathBuf>,
}

/// What the repository of one folder names.
#[derive(Clone, Debug, Default)]
enum FolderPrograms {
    /// There is no repository.
    #[default]
    None,
    Named(Vec<NamedPath>),
    /// Its settings could not be read.
    Unreadable,
}

#[derive(Clone, Debug)]
struct NamedPath {
    /// The parts of its absolute path, as file systems that do not tell letters apart take
    /// them.
    parts: Vec<String>,
    /// What lies below it counts too.
    with_content: bool,
    what: &'static str,
}

impl RepositoryPrograms {
    /// Of every repository in a folder. Attack: `core.hooksPath = ../../tools` of a nested
    /// one, which no folder above `tools` tells of. A search that does not end in time
    /// protects everything.
    pub(crate) fn of_tree(root: &Path, deadline: Option<Instant>) -> RepositoryPrograms {
        let mut programs = RepositoryPrograms::default();
        match repositories(root, deadline) {
            Some(found) => {
                for folder in &found {
                    let read = FolderPrograms::read(folder);
                    programs.folders.insert(folder.clone(), read);
                }
                programs.below = found;
            }
            None => programs.unsearched = Some(root.to_owned()),
        }
        programs
    }

    /// What an absolute path is to a repository around it, if its settings name it. The path
    /// has no `.` or `..`.
    pub(crate) fn find(&mut self, path: &Path) -> Option<&'static str> {
        let parts = parts_of(path);
        if self.unsearched.iter().any(|root| path.starts_with(root)) {
            return Some(UNSEARCHED);
        }
        let named_below = self.below.iter().find_map(|folder| {
            let known = self.folders.get(folder)?;
            known.find(&parts)
        });
        if named_below.is_some() {
            return named_below;
        }
        // Every folder above, because a repository around the folder decides
        // what git runs in it.
        path.ancestors().skip(1).find_map(|folder| {
            let known = match self.folders.get(folder) {
                Some(known) => known,
                None => {
                    let read = FolderPrograms::read(folder);
                    self.folders.entry(folder.to_owned()).or_insert(read)
                }
            };
            match known {
                // Invariant 8: settings that cannot be read protect everything.
                FolderPrograms::Unreadable => Some(UNREADABLE),
                FolderPrograms::None | FolderPrograms::Named(_) => known.find(&parts),
            }
        })
    }
}

impl NamedPath {
    fn is(&self, parts: &[String]) -> bool {
        match self.with_content {
            true => parts.starts_with(&self.parts),
            false => parts == self.parts,
        }
    }
}

impl FolderPrograms {
    /// What a path is by the names of this repository.
    fn find(&self, parts: &[String]) -> Option<&'static str> {
        match self {
            FolderPrograms::None | FolderPrograms::Unreadable => None,
            FolderPrograms::Named(names) => {
                let mut names = names.iter();
                names.find(|name| name.is(parts)).map(|name| name.what)
            }
        }
    }

    fn read(folder: &Path) -> FolderPrograms {
        let data = match git_folders(folder) {
            Ok(Some(data)) => data,
            Ok(None) => return FolderPrograms::None,
            Err(_) => return FolderPrograms::Unreadable,
        };
        let mut reader = Reader {
            folder,
            files: 0,
            named: Vec::new(),
        };
        for place in &data {
            for name in ["config", "config.worktree"] {
                if reader.file(&place.join(name)).is_err() {
                    return FolderPrograms::Unreadable;
                }
            }
        }
        FolderPrograms::Named(reader.named)
    }
}

/// The folders below `root` that have a repository, without following links; `None` if there
/// are too many files to say, or too little time.
fn repositories(root: &Path, deadline: Option<Instant>) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut entries = 0_usize;
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return None;
        }
        let Ok(listed) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in listed.flatten() {
            entries += 1;
            if entries > limit::REPOSITORY_SEARCH_ENTRIES_MAX {
                return None;
            }
            if entry.file_name() == ".git" {
                found.push(folder.clone());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
        }
    }
    Some(found)
}

/// The folders that hold the data of a folder's repository: `.git` itself, or the place that a
/// file `.git` names (a linked working tree, a submodule) with the one it shares.
fn git_folders(folder: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    let place = folder.join(".git");
    let about = match fs::metadata(&place) {
        Ok(about) => about,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    if about.is_dir() {
        return Ok(Some(vec![place]));
    }
    let link = read_whole(&place)?.unwrap_or_default();
    let Some(named) = link.trim().strip_prefix("gitdir:") else {
        return Ok(None);
    };
    let own = joined(folder, named.trim());
    // A linked working tree shares the settings of its repository.
    let shared = read_whole(&own.join("commondir"))?;
    let shared = shared.map(|named| joined(&own, named.trim()));
    Ok(Some([Some(own), shared].into_iter().flatten().collect()))
}

/// Reads the settings of one repository.
struct Reader<'a> {
    folder: &'a Path,
    files: usize,
    named: Vec<NamedPath>,
}

impl Reader<'_> {
    /// One file of settings, and those it includes.
    fn file(&mut self, path: &Path) -> io::Result<()> {
        self.files += 1;
        // Attack: a file that includes itself would be read without end.
        if self.files > limit::REPOSITORY_CONFIG_FILES_MAX {
            return Err(io::Error::other("too many files of settings"));
        }
        let Some(text) = read_whole(path)? else {
            return Ok(());
        };
        for setting in setting::read(&text) {
            match setting.kind() {
                setting::Kind::Ordinary => {}
                setting::Kind::HooksFolder => self.hooks(&setting.value),
                setting::Kind::Command => self.command(&setting.value),
                setting::Kind::Path => self.name(&setting.value, true, PROGRAM),
                setting::Kind::Settings => {
                    let beside = path.parent().unwrap_or(self.folder);
                    let included = joined(beside, &setting.value);
                    // The included file is protected as well: changing it
                    // changes what git runs.
                    self.push(&included, false, INCLUDED);
                    self.file(&included)?;
                }
            }
        }
        Ok(())
    }

    /// The folder of hooks; where it is the working tree itself, the names of hooks in it.
    fn hooks(&mut self, raw_path: &str) {
        let place = joined(self.folder, raw_path);
        match self.folder.starts_with(&place) && !raw_path.is_empty() {
            true => {
                for hook in HOOK_NAMES {
                    self.push(&place.join(hook), true, HOOKS);
                }
            }
            false => self.name(raw_path, true, HOOKS),
        }
    }

    /// Every word of a command may be a path: of the program, or of what it runs. The first
    /// one without a slash is looked for elsewhere.
    fn command(&mut self, command: &str) {
        let command = command.strip_prefix(setting::EXTERNAL).unwrap_or(command);
        let words =
            command.split(|sign: char| sign.is_whitespace() || ";|&()<>!'\"`=".contains(sign));
        let words = words.filter(|word| !word.is_empty()).enumerate();
        for (index, word) in words.take(limit::REPOSITORY_COMMAND_WORDS_MAX) {
            let has_slash = word.contains('/');
            if index > 0 || has_slash {
                self.name(word, has_slash, PROGRAM);
            }
        }
    }

    /// A path as the settings write it, and where it leads.
    fn name(&mut self, raw_path: &str, with_content: bool, what: &'static str) {
        if raw_path.is_empty() {
            return;
        }
        let place = joined(self.folder, raw_path);
        // Where it leads as well: writing to the target of a link changes what git runs.
        if let Ok(leads) = place.canonicalize()
            && leads != place
            && leads != self.folder
        {
            self.push(&leads, with_content, what);
        }
        self.push(&place, with_content, what);
    }

    fn push(&mut self, place: &Path, with_content: bool, what: &'static str) {
        // The whole working tree would be too much.
        if self.folder.starts_with(place) {
            return;
        }
        self.named.push(NamedPath {
            parts: parts_of(place),
            with_content,
            what,
        });
    }
}

fn parts_of(path: &Path) -> Vec<String> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(folded(&name.to_string_lossy())),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            None
        }
    });
    parts.collect()
}

/// A path below a folder, or absolute, `.` and `..` folded.
fn joined(folder: &Path, raw_path: &str) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in folder.join(raw_path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                whole.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => whole.push(part),
        }
    }
    whole
}

/// The text of a regular file; nothing if it is not there, an error if it is overlong.
fn read_whole(path: &Path) -> io::Result<Option<String>> {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let opened = fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    let most = limit::REPOSITORY_CONFIG_BYTES_MAX;
    // One more than the bound: settings that are cut could hide what comes after.
    file.take(most + 1).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()).is_ok_and(|count| count <= most) {
        true => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        false => Err(io::Error::other("it is overlong")),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests;
