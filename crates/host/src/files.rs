//! `safety.fs`: files for tool code, beneath directory handles.
//!
//! `Files` is made from a grant and sees a workspace and read roots. A path is
//! text until it has become a place below one of those; from there on everything
//! is opened beneath the root's handle (`openat2` with `RESOLVE_BENEATH` where
//! the kernel has it), so neither a link, nor `..`, nor a name swapped in the
//! middle leads out. Links inside a root that stay inside are followed for
//! reading; absolute links are not, even if they point back inside. Nothing is
//! written through a link, and no file is ever changed in place: content goes to
//! a temporary file that is renamed over the name, so of a file with two names
//! the other, which may lie outside, keeps its content.
//!
//! Unlike the reference, the user's home is not readable by default: the read
//! roots are the workspace and what the operator adds.
//!
//! Reasons beyond the specification's, each for a bound or a refusal it does not
//! have: `not-granted`, `unknown-function`, `invalid-arguments`,
//! `not-a-regular-file`, `not-utf8`, `file-too-large`, `answer-too-large`,
//! `too-many-entries`, `too-many-lines`, `line-too-long`, `tree-too-deep`,
//! `find-invalid-type`, `path-protected`, `timeout`.

mod answer;
mod argument;
pub mod changes;
mod copy;
pub mod limit;
mod line;
mod open;
mod pattern;
mod protect;
mod quota;
mod read;
mod refusal;
mod remove;
mod replace;
mod repository;
mod root;
mod untouchable;
mod walk;
mod write;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use model::policy::grant::FileGrant;
use model::sync::lock;
use serde_json::{Value, json};

use crate::files::answer::Done;
use crate::files::argument::FileArguments;
use crate::files::quota::Quota;
use crate::files::refusal::{PathRefusal, shown};
use crate::files::root::{PathEntry, Roots};
use crate::message::{FaultKind, PowerFault, PowerReply, PowerRequest};

pub use copy::{CopyError, copy_tree};
pub use protect::ProtectedHome;
pub use remove::remove_folder;
pub use repository::{is_bare_repository, makes_bare};
pub use untouchable::untouchable;

/// What an absolute path is to a repository around it, if the repository's settings name it
/// as something that git runs or obeys.
#[must_use]
pub fn named_by_repository(path: &Path) -> Option<&'static str> {
    repository::RepositoryPrograms::default().find(path)
}

/// What the operator and the moment decide, as opposed to the grant.
#[derive(Clone, Debug)]
pub struct FileSettings {
    /// The workspace when the grant names no folder: absolute, made for its owner
    /// only if it is missing.
    pub workspace: PathBuf,
    /// The id of a caller or a conversation that gets a folder of its own below
    /// the workspace and sees nothing else of it.
    pub sub_workspace: Option<String>,
    /// Folders that may be read beside the workspace; by default there are none.
    /// Mind that one around the workspace shows every sub-workspace.
    pub read_roots: Vec<PathBuf>,
    /// When the call of the tool ends; no walk goes on after it.
    pub deadline: Instant,
    /// Bytes a workspace may hold. A folder that the grant names has no such bound.
    pub workspace_bytes_max: u64,
    /// The program's own home, which no folder of a grant may be, hold or lie in.
    /// Without one, relative folders are refused.
    pub home: Option<ProtectedHome>,
    /// A copy that stands in for the folder a grant names, which is then left alone.
    pub stand_in: Option<PathBuf>,
}

/// The folders could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A folder of the grant or the settings is relative.
    #[error("`{path}` is not an absolute path")]
    Relative {
        /// The folder.
        path: String,
    },
    /// A folder's path cannot be shown to a script.
    #[error("`{path}` is not UTF-8")]
    NotText {
        /// The folder, as far as it can be shown.
        path: String,
    },
    /// A folder could not be opened or made.
    #[error("could not open the folder `{path}`")]
    Open {
        /// The folder.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// A relative folder with `..` in it.
    #[error("`{path}` leads upwards; name a folder without `..`, or an absolute path")]
    Upwards {
        /// The folder.
        path: String,
    },
    /// A folder no tool may see.
    #[error(
        "`{path}` {how} the home folder of Ringfence, with its rules, keys and secrets; name another folder"
    )]
    Home {
        /// The folder, links resolved.
        path: String,
        /// `is`, `holds` or `lies in`.
        how: &'static str,
    },
    /// An id that names no folder.
    #[error("`{id}` cannot name a workspace")]
    Id {
        /// The id.
        id: String,
    },
}

/// One call of a function, for the record of the tool's call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEvent {
    /// Such as `readText`; as the script wrote it if there is no such function.
    pub function: String,
    /// The path as the script sees it, whole; none if it gave none.
    pub path: Option<String>,
    /// The target of `copy` and `move`.
    pub target: Option<String>,
    /// Bytes of content read or written.
    pub bytes: u64,
    /// Why not; nothing if it went well.
    pub refused: Option<FileRefusal>,
}

/// Why a function gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRefusal {
    /// Which of the three kinds.
    pub kind: FaultKind,
    /// The stable word.
    pub reason: &'static str,
}

impl FileEvent {
    /// As the audit record keeps it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "kind": "file",
            "function": self.function,
            "path": self.path,
            "target": self.target,
            "bytes": self.bytes,
            "refusal": self.refused.map(|refused| refused.reason),
        })
    }
}

/// The events of one call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileEvents {
    /// The first of them, in order.
    pub kept: Vec<FileEvent>,
    /// How many more there were.
    pub dropped_count: u64,
}

/// The files one call may touch.
#[derive(Debug)]
pub struct Files {
    grant: FileGrant,
    roots: Roots,
    quota: Option<Quota>,
    deadline: Instant,
    events: Mutex<FileEvents>,
}

impl Files {
    /// The power a grant gives; nothing if it grants neither reading nor writing.
    ///
    /// Fails if a folder cannot be opened. The folder a grant names is never
    /// made, for its author may have mistyped it.
    pub fn open(grant: &FileGrant, settings: &FileSettings) -> Result<Option<Files>, FilesError> {
        if !grant.read && !grant.write {
            // No handle at all: what does not exist cannot be called by mistake.
            return Ok(None);
        }
        let home = settings.home.as_ref();
        let is_ours = grant.base_path.is_none() || settings.stand_in.is_some();
        let quota = is_ours.then_some(Quota {
            bytes_max: settings.workspace_bytes_max,
            entries_max: limit::WORKSPACE_ENTRIES_MAX,
        });
        let roots = match (&grant.base_path, &settings.stand_in) {
            (Some(raw_path), Some(copy)) => Roots::stand_in(copy, raw_path)?,
            (Some(raw_path), None) => Roots::base(raw_path, home)?,
            (None, _) => Roots::workspace(settings, grant.read)?,
        };
        Ok(Some(Files {
            grant: grant.clone(),
            roots: roots.until(settings.deadline),
            quota,
            deadline: settings.deadline,
            events: Mutex::default(),
        }))
    }

    /// The folder a grant names, links resolved, if it may be used. A relative one is
    /// made when it is missing.
    pub fn base(raw_path: &str, home: Option<&ProtectedHome>) -> Result<PathBuf, FilesError> {
        root::base_path(raw_path, home)
    }

    /// The folder that is written to, absolute and without links.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        PathBuf::from(self.roots.workspace_path())
    }

    /// Makes room in the workspace for a file of so many bytes, or refuses.
    pub(crate) fn admit(&self, place: &PathEntry<'_>, bytes: usize) -> Result<(), PathRefusal> {
        let Some(quota) = self.quota else {
            return Ok(());
        };
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let workspace = self.roots.workspace_path();
        quota.admit(Path::new(&workspace), place.root, bytes)
    }

    /// The functions that exist under the grant.
    #[must_use]
    pub fn functions(&self) -> Vec<&'static str> {
        let granted = FUNCTIONS.iter().filter(|function| self.has(function));
        granted.map(|function| function.name).collect()
    }

    /// Calls a function by its name after `safety.fs.`; `ask.arguments` is the
    /// array of its arguments, `null` for what was left out. Blocks on the disk.
    ///
    /// Refuses for the reasons of the specification and those in the head of
    /// this module.
    pub fn call(&self, function: &str, ask: &PowerRequest) -> Result<PowerReply, PowerFault> {
        let known = FUNCTIONS.iter().find(|known| known.name == function);
        let answered = match known {
            None => Err(PathRefusal::invalid(
                "unknown-function",
                format!("no such function: {}", shown(function)),
            )),
            // Checked again here: the list of functions in the sandbox is only what a
            // script sees.
            Some(known) if !self.has(known) => Err(PathRefusal::security(
                "not-granted",
                format!("not granted: {function}"),
            )),
            Some(known) => FileArguments::new(&ask.arguments)
                .and_then(|arguments| (known.run)(self, arguments)),
        };
        self.record(function, ask, &answered);
        match answered {
            Ok(done) => Ok(PowerReply {
                value: done.value,
                bytes: Vec::new(),
            }),
            Err(refusal) => Err(refusal.into_fault(&shown(function))),
        }
    }

    /// The events since the last time, in order.
    #[must_use]
    pub fn take_events(&self) -> FileEvents {
        let mut events = lock(&self.events);
        std::mem::take(&mut *events)
    }

    fn has(&self, function: &Function) -> bool {
        match function.group {
            Group::Always => true,
            Group::Read => self.grant.read,
            Group::Write => self.grant.write,
        }
    }

    /// Refuses once the call of the tool is over.
    fn in_time(&self) -> Result<(), PathRefusal> {
        match Instant::now() < self.deadline {
            true => Ok(()),
            false => Err(PathRefusal::runtime(
                "timeout",
                "the time of the call is over",
            )),
        }
    }

    /// [`Files::in_time`] for a line, asked now and then.
    fn in_time_at(&self, index: usize, line: &str) -> Result<(), PathRefusal> {
        // Asking the clock for each short line would cost more than reading it.
        match index.is_multiple_of(256) || line.len() > 1_024 {
            true => self.in_time(),
            false => Ok(()),
        }
    }

    /// The event of a call that was given up before it answered: it may have taken
    /// place all the same.
    #[must_use]
    pub fn interrupted(&self, function: &str, ask: &PowerRequest) -> FileEvent {
        let refusal = FileRefusal {
            kind: FaultKind::HelperRuntime,
            reason: "interrupted",
        };
        self.event(function, ask, 0, Some(refusal))
    }

    fn event(
        &self,
        function: &str,
        ask: &PowerRequest,
        bytes: u64,
        refused: Option<FileRefusal>,
    ) -> FileEvent {
        let known = FUNCTIONS.iter().find(|known| known.name == function);
        let path = |index: Option<usize>| {
            let raw_path = ask.arguments.get(index?)?.as_str()?;
            let display = match self.roots.readable(raw_path) {
                Ok(place) => place.display,
                // As it was written, whole: half a path could hide half a
                // secret from the masking.
                Err(_) => raw_path.to_owned(),
            };
            Some(shown(&display))
        };
        FileEvent {
            function: shown(function),
            path: path(known.and_then(|known| known.path_index)),
            target: path(known.and_then(|known| known.target_index)),
            bytes,
            refused,
        }
    }

    fn record(&self, function: &str, ask: &PowerRequest, answered: &Result<Done, PathRefusal>) {
        let bytes = answered.as_ref().map_or(0, |done| done.bytes);
        let refused = answered.as_ref().err().map(|refusal| FileRefusal {
            kind: refusal.kind,
            reason: refusal.reason,
        });
        let event = self.event(function, ask, bytes, refused);
        let mut events = lock(&self.events);
        match events.kept.len() < limit::EVENTS_MAX {
            true => events.kept.push(event),
            false => events.dropped_count = events.dropped_count.saturating_add(1),
        }
    }
}

/// What must be granted for a function to exist.
#[derive(Clone, Copy)]
enum Group {
    Always,
    Read,
    Write,
}

struct Function {
    name: &'static str,
    group: Group,
    /// Which argument is the path.
    path_index: Option<usize>,
    /// Which argument is where it goes.
    target_index: Option<usize>,
    run: fn(&Files, FileArguments<'_>) -> Result<Done, PathRefusal>,
}

const fn reading(
    name: &'static str,
    path_index: usize,
    run: fn(&Files, FileArguments<'_>) -> Result<Done, PathRefusal>,
) -> Function {
    Function {
        name,
        group: Group::Read,
        path_index: Some(path_index),
        target_index: None,
        run,
    }
}

const fn writing(
    name: &'static str,
    target_index: Option<usize>,
    run: fn(&Files, FileArguments<'_>) -> Result<Done, PathRefusal>,
) -> Function {
    Function {
        name,
        group: Group::Write,
        path_index: Some(0),
        target_index,
        run,
    }
}

const fn always(
    name: &'static str,
    run: fn(&Files, FileArguments<'_>) -> Result<Done, PathRefusal>,
) -> Function {
    Function {
        name,
        group: Group::Always,
        path_index: None,
        target_index: None,
        run,
    }
}

/// All functions, in the order of the specification.
const FUNCTIONS: &[Function] = &[
    always("workspace", workspace),
    always("readRoots", read_roots),
    reading("readText", 0, read::read_text),
    reading("list", 0, read::list),
    reading("exists", 0, read::exists),
    reading("stat", 0, read::stat),
    reading("grep", 1, read::grep),
    reading("lineCount", 0, read::line_count),
    reading("slice", 0, read::slice),
    reading("cut", 0, read::cut),
    reading("sort", 0, read::sort),
    reading("find", 0, walk::find),
    reading("searchInFiles", 0, walk::search_in_files),
    writing("writeText", None, write::write_text),
    writing("appendText", None, write::append_text),
    writing("editText", None, write::edit_text),
    writing("copy", Some(1), write::copy),
    writing("move", Some(1), write::move_entry),
    writing("delete", None, write::delete),
    writing("deleteDir", None, write::delete_dir),
];

fn workspace(files: &Files, _: FileArguments<'_>) -> Result<Done, PathRefusal> {
    Ok(Done::plain(files.roots.workspace_path()))
}

fn read_roots(files: &Files, _: FileArguments<'_>) -> Result<Done, PathRefusal> {
    Ok(Done::plain(files.roots.read_paths()))
}

/// The fuzz target and its seeds call this, with the text of a path.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    root::fuzz(data);
    // A glob and a pattern are texts from outside too: reading them ends.
    let text = String::from_utf8_lossy(data);
    let _ = pattern::glob(&text);
    let _ = pattern::Expression::new(&text, pattern::Case::from_flag(true));
}
