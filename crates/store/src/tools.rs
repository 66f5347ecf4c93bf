//! Tools are files, one document each, in `<home>/tools/`: a person, an editor or
//! git may change them at any time, and a broken one never hides the others.
//!
//! What this module writes appears whole or not at all.

mod watch;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use model::text;
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use uuid::Uuid;

use crate::clock::now_ms;
use crate::error::StoreError;
use crate::home::files::sync_folder;
use crate::home::files::{make_folder, write_synced};
use crate::limit;
use crate::parallel;
use model::sync::lock;
use watch::{Changed, Watch};

/// The prefix of our own unfinished files.
const UNFINISHED: &str = ".ringfence-";

/// Unfinished files older than this were left by a dead process.
const UNFINISHED_AGE: Duration = Duration::from_secs(3600);

/// A file younger than this when it was read may change again within the same
/// tick of the file system's clock, so it is read again.
const SETTLED_AGE: Duration = Duration::from_secs(2);

/// The folder of the tools.
#[derive(Debug)]
pub struct ToolFolder {
    tools: PathBuf,
    trash: PathBuf,
    cache: Mutex<HashMap<OsString, Cached>>,
    watch: Mutex<Watch>,
}

/// One file of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFile {
    /// Its name, `hello.json`; made readable if it is no text.
    pub file_name: String,
    /// Its whole text, or why it cannot be used.
    pub text: Result<Arc<str>, FileFault>,
}

/// What changed in the home since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeChanges {
    /// A file that people edit changed, or may have changed.
    pub files: bool,
    /// A test result, publication or grant changed. Not set together with `files`, after
    /// which everything is read again.
    pub publications: bool,
    /// Whether such a change would have been noticed; if not, check
    /// [`crate::Publications::version`].
    pub covers_publications: bool,
}

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// The system refused.
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
    /// A folder, a pipe, a device.
    #[error("this is not a regular file")]
    NotAFile,
    /// A link, which could lead anywhere.
    #[error("this is a link; put the file itself here")]
    Link,
    /// Longer than any document.
    #[error("the file has more than {bytes_max} bytes")]
    TooLong {
        /// The bound.
        bytes_max: u64,
    },
    /// Not UTF-8.
    #[error("the file is not UTF-8 text")]
    NotText,
    /// The name is not UTF-8.
    #[error("the name of the file is not UTF-8 text")]
    NameNotText,
    /// The folder holds too many files.
    #[error("the folder holds more than {files_max} files; this one and others were left out")]
    TooMany {
        /// The bound.
        files_max: usize,
    },
}

#[derive(Clone, Debug)]
struct Cached {
    stamp: Stamp,
    file: ToolFile,
    is_settled: bool,
}

/// What changes when a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl ToolFolder {
    /// Opens the folder of a home, making it and the trash if absent.
    pub fn open(home: &Path) -> Result<ToolFolder, StoreError> {
        make_folder(home)?;
        let (tools, trash) = (home.join("tools"), home.join("trash"));
        make_folder(&tools)?;
        make_folder(&trash)?;
        remove_unfinished(&tools);
        Ok(ToolFolder {
            watch: Mutex::new(Watch::new(home)),
            cache: Mutex::default(),
            tools,
            trash,
        })
    }

    /// Every `*.json`, by name. Only what changed since the last scan is read.
    pub fn scan(&self) -> Result<Vec<ToolFile>, StoreError> {
        let fail = |error| StoreError::file("read", &self.tools, error);
        let mut listed = Vec::new();
        for entry in fs::read_dir(&self.tools).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name();
            if is_tool(&name) {
                // `file_type` of the listing costs no system call; the kind is checked
                // again after opening.
                let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
                listed.push((name, is_file));
            }
        }
        listed.sort();
        let first_beyond = listed.get(limit::TOOL_FILES_MAX);
        let first_beyond = first_beyond.map(|(name, _)| name.clone());
        listed.truncate(limit::TOOL_FILES_MAX);
        let mut cache = lock(&self.cache);
        let old = std::mem::take(&mut *cache);
        let look = |(name, is_file): &(OsString, bool)| self.look(name, *is_file, old.get(name));
        let looks = parallel::map(&listed, look).ok_or_else(|| {
            let died = io::Error::other("a thread that reads files died");
            StoreError::file("read", &self.tools, died)
        })?;
        let mut files = Vec::with_capacity(listed.len());
        for ((name, _), cached) in listed.into_iter().zip(looks) {
            // Deleted since the folder was listed.
            let Some(cached) = cached else {
                continue;
            };
            files.push(cached.file.clone());
            cache.insert(name, cached);
        }
        files.extend(first_beyond.map(|name| ToolFile {
            file_name: shown(&name),
            text: Err(FileFault::TooMany {
                files_max: limit::TOOL_FILES_MAX,
            }),
        }));
        Ok(files)
    }

    /// Whether anything people edit changed since the last look: tools, rules, the
    /// configuration file, the secrets.
    pub fn changed(&self) -> bool {
        lock(&self.watch).has_changed()
    }

    /// Watches more files from now on.
    pub fn watch_also(&self, files: Vec<PathBuf>) {
        lock(&self.watch).name(files);
    }

    /// What changed since the last look.
    pub fn news(&self) -> HomeChanges {
        let mut watch = lock(&self.watch);
        // A watch that was set up again may have missed some, and reports a change.
        let changed = watch.look();
        HomeChanges {
            files: changed == Changed::Files,
            publications: changed == Changed::Publications,
            covers_publications: watch.covers_publications(),
        }
    }

    /// Writes a tool's file, over an earlier one of that name if there is one.
    pub fn write(&self, file_stem: &str, text: &str) -> Result<(), StoreError> {
        self.put(file_stem, text, RenameFlags::empty())
    }

    /// Writes a new tool's file; fails if the file exists.
    pub fn create(&self, file_stem: &str, text: &str) -> Result<(), StoreError> {
        self.put(file_stem, text, RenameFlags::NOREPLACE)
    }

    /// Moves a tool's file to the trash and returns where it is.
    pub fn trash(&self, file_stem: &str) -> Result<PathBuf, StoreError> {
        check_stem(file_stem)?;
        let from = self.path(file_stem);
        let stamp = now_ms();
        for attempt in 0..limit::TRASH_ATTEMPTS_MAX {
            let name = match attempt {
                0 => format!("{file_stem}.{stamp}.json"),
                attempt => format!("{file_stem}.{stamp}-{attempt}.json"),
            };
            let to = self.trash.join(name);
            match renameat_with(CWD, &from, CWD, &to, RenameFlags::NOREPLACE) {
                Ok(()) => {
                    // The place it went to first, so that a power cut in between does not
                    // lose the file.
                    sync_folder(&self.trash)?;
                    sync_folder(&self.tools)?;
                    return Ok(to);
                }
                Err(rustix::io::Errno::EXIST) => {}
                Err(rustix::io::Errno::NOENT) => return Err(StoreError::Missing { path: from }),
                Err(error) => return Err(StoreError::file("move", from, error.into())),
            }
        }
        Err(StoreError::Exists {
            path: self.trash.clone(),
        })
    }

    /// The file of a tool.
    #[must_use]
    pub fn path(&self, file_stem: &str) -> PathBuf {
        self.tools.join(format!("{file_stem}.json"))
    }

    fn put(&self, file_stem: &str, text: &str, flags: RenameFlags) -> Result<(), StoreError> {
        check_stem(file_stem)?;
        self.check_clash(file_stem)?;
        let unfinished = self
            .tools
            .join(format!("{UNFINISHED}{}.tmp", Uuid::new_v4()));
        let path = self.path(file_stem);
        let put = write_synced(&unfinished, text)
            .map_err(|error| StoreError::file("write", &path, error))
            .and_then(|()| {
                let moved = renameat_with(CWD, &unfinished, CWD, &path, flags);
                moved.map_err(|error| match error {
                    rustix::io::Errno::EXIST => StoreError::Exists { path: path.clone() },
                    error => StoreError::file("write", &path, error.into()),
                })
            });
        if put.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        put?;
        sync_folder(&self.tools)
    }

    /// Two names that differ only in case would be one file on other systems.
    fn check_clash(&self, file_stem: &str) -> Result<(), StoreError> {
        let fail = |error| StoreError::file("read", &self.tools, error);
        let own = format!("{file_stem}.json");
        let folded = own.to_lowercase();
        for entry in fs::read_dir(&self.tools).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            let name = name.to_string_lossy();
            if name != own && name.to_lowercase() == folded {
                return Err(StoreError::Exists {
                    path: self.tools.join(&*name),
                });
            }
        }
        Ok(())
    }

    /// One file, read unless its cached text is current. `is_file` is what the listing of
    /// the folder says.
    fn look(&self, name: &OsStr, is_file: bool, known: Option<&Cached>) -> Option<Cached> {
        let path = self.tools.join(name);
        // A new plain file is opened at once: asking about it first would double the system
        // calls of the first scan.
        if known.is_none() && is_file && name.to_str().is_some() {
            return match read(&path) {
                Ok((metadata, text)) => Some(Cached::new(name, &metadata, text)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => Some(unreadable(name, &error)),
            };
        }
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return Some(unreadable(name, &error)),
        };
        if let Some(known) = known
            && known.stamp == Stamp::of(&metadata)
            && known.is_settled
        {
            return Some(known.clone());
        }
        // The kind is checked before opening: opening a device can have effects.
        let text = match (name.to_str(), check_kind(&metadata)) {
            (None, _) => Err(FileFault::NameNotText),
            (Some(_), Err(fault)) => Err(fault),
            (Some(_), Ok(())) => match read(&path) {
                Ok((read, text)) => return Some(Cached::new(name, &read, text)),
                Err(error) => Err(FileFault::Unreadable(error.to_string())),
            },
        };
        Some(Cached::new(name, &metadata, text))
    }
}

impl Cached {
    fn new(name: &OsStr, metadata: &Metadata, text: Result<Arc<str>, FileFault>) -> Cached {
        Cached {
            stamp: Stamp::of(metadata),
            // A file changed just now can change again within one tick of the clock and
            // look the same.
            is_settled: is_older(metadata, SETTLED_AGE),
            file: ToolFile {
                file_name: shown(name),
                text,
            },
        }
    }
}

fn unreadable(name: &OsStr, error: &io::Error) -> Cached {
    Cached {
        stamp: Stamp {
            device: 0,
            inode: 0,
            bytes: 0,
            modified: (0, 0),
            changed: (0, 0),
        },
        is_settled: false,
        file: ToolFile {
            file_name: shown(name),
            text: Err(FileFault::Unreadable(error.to_string())),
        },
    }
}

fn shown(name: &OsStr) -> String {
    text::one_line(&name.to_string_lossy())
}

fn is_tool(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    bytes.ends_with(b".json") && !bytes.starts_with(b".")
}

/// The name and text of every tool file of a folder that can be read, by name.
pub(crate) fn read_folder(folder: &Path) -> Result<Vec<(String, String)>, StoreError> {
    let fail = |error| StoreError::file("read", folder, error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fail)?;
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let name = entry.file_name();
        let Some(text_name) = name.to_str().filter(|_| is_file && is_tool(&name)) else {
            continue;
        };
        let stem = text_name.strip_suffix(".json").unwrap_or(text_name);
        if check_stem(stem).is_err() || found.len() >= limit::TOOL_FILES_MAX {
            continue;
        }
        if let Ok((_, Ok(text))) = read(&entry.path()) {
            found.push((text_name.to_owned(), text.to_string()));
        }
    }
    found.sort();
    Ok(found)
}

/// Reads a whole regular file. Its kind is checked again after opening, because the
/// name may lead to something else by now.
fn read(path: &Path) -> io::Result<(Metadata, Result<Arc<str>, FileFault>)> {
    // `NONBLOCK`, because a pipe under this name would hold the scan until
    // another process writes.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let metadata = file.metadata()?;
    if let Err(fault) = check_kind(&metadata) {
        return Ok((metadata, Err(fault)));
    }
    let text = read_text(&mut file, metadata.len())?;
    Ok((metadata, text))
}

/// The text of a file of about this many bytes. One byte more is asked for, so that
/// most files take one read; one that grew meanwhile takes more.
fn read_text(file: &mut File, bytes: u64) -> io::Result<Result<Arc<str>, FileFault>> {
    let mut text = vec![
        0;
        usize::try_from(bytes)
            .unwrap_or(usize::MAX)
            .saturating_add(1)
    ];
    let mut length = 0;
    loop {
        let room = text.get_mut(length..).unwrap_or_default();
        let asked = room.len();
        let read = match file.read(room) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        length += read;
        let is_whole = u64::try_from(length).unwrap_or(u64::MAX) >= bytes;
        if read == 0 || (read < asked && is_whole) {
            break;
        }
        if u64::try_from(length).unwrap_or(u64::MAX) > limit::TOOL_FILE_BYTES_MAX {
            return Ok(Err(FileFault::TooLong {
                bytes_max: limit::TOOL_FILE_BYTES_MAX,
            }));
        }
        if read == asked {
            text.resize(length.saturating_mul(2).max(4096), 0);
        }
    }
    text.truncate(length);
    let text = String::from_utf8(text).map_err(|_| FileFault::NotText);
    Ok(text.map(Arc::from))
}

fn check_kind(metadata: &Metadata) -> Result<(), FileFault> {
    let kind = metadata.file_type();
    if kind.is_symlink() {
        return Err(FileFault::Link);
    }
    if !kind.is_file() {
        return Err(FileFault::NotAFile);
    }
    if metadata.len() > limit::TOOL_FILE_BYTES_MAX {
        return Err(FileFault::TooLong {
            bytes_max: limit::TOOL_FILE_BYTES_MAX,
        });
    }
    Ok(())
}

pub(crate) fn check_stem(stem: &str) -> Result<(), StoreError> {
    let why = if stem.is_empty() {
        "it is empty"
    } else if stem.len() > limit::STEM_BYTES_MAX {
        "it is too long"
    } else if stem.starts_with('.') {
        "it starts with a dot"
    } else if stem.contains(['/', '\\']) {
        "it contains a separator"
    } else if stem.chars().any(|c| c.is_control() || text::is_hidden(c)) {
        "it contains characters that cannot be seen"
    } else {
        return Ok(());
    };
    Err(StoreError::BadStem {
        stem: text::elided(&text::one_line(stem), 80),
        why,
    })
}

/// Deletes unfinished files of dead processes. Young ones may belong to a live one.
fn remove_unfinished(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(UNFINISHED));
        let is_old = || {
            let metadata = entry.metadata();
            metadata.is_ok_and(|metadata| is_older(&metadata, UNFINISHED_AGE))
        };
        if is_ours && is_old() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether the last change is at least this long ago. A change in the future is not.
fn is_older(metadata: &Metadata, age: Duration) -> bool {
    let changed = u64::try_from(metadata.ctime()).unwrap_or(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.is_ok_and(|now| now.as_secs().saturating_sub(age.as_secs()) > changed)
}
