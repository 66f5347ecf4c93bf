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

use crate::files::limit;
use crate::files::untouchable::folded;

mod setting;

/// What is named, for people.
const HOOKS: &str = "hooks of a repository";
const PROGRAM: &str = "a program that the settings of a repository name";
const INCLUDED: &str = "settings of git";
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

/// What the settings of repositories name, read once for each folder.
#[derive(Debug, Default)]
pub(crate) struct RepositoryPrograms {
    folders: BTreeMap<PathBuf, FolderPrograms>,
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
    /// What an absolute path is to a repository around it, if its settings name it. The path
    /// has no `.` or `..`.
    pub(crate) fn find(&mut self, path: &Path) -> Option<&'static str> {
        let parts = parts_of(path);
        path.ancestors().skip(1).find_map(|folder| {
            let known = match self.folders.get(folder) {
                Some(known) => known,
                None => {
                    let read = FolderPrograms::read(folder);
                    self.folders.entry(folder.to_owned()).or_insert(read)
                }
            };
            match known {
                FolderPrograms::None => None,
                FolderPrograms::Unreadable => Some(UNREADABLE),
                FolderPrograms::Named(names) => {
                    let mut names = names.iter();
                    names.find(|name| name.is(&parts)).map(|name| name.what)
                }
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
                setting::Kind::Settings => {
                    let beside = path.parent().unwrap_or(self.folder);
                    let included = joined(beside, &setting.value);
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
