//! Whether anything that people edit changed, at the price of one system call: inotify
//! collects events, and an empty queue means "no".
//!
//! Where inotify cannot help, names and stamps are compared: for everything if it is
//! not available, otherwise for settings, secrets, rules, and tools that are links. A
//! symbolic link may lead anywhere, and an edit through a second hard link causes no
//! event in our folders. In doubt the answer is "changed", because reading again costs
//! little.

use std::collections::BTreeMap;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::limit;
use crate::tools::Stamp;

/// Folders all of whose files are watched.
const FOLDERS: [&str; 2] = ["tools", "rules"];
/// Files of the home that are watched, beside the folders themselves.
const FILES: [&str; 2] = ["ringfence.toml", "secrets.env"];
/// Written whenever a test result, publication or grant changes.
const PUBLICATIONS: [&str; 1] = ["standing.version"];

#[derive(Debug)]
pub(super) struct Watch {
    home: PathBuf,
    /// Without it, stamps are compared.
    events: Option<Events>,
    stamps: Stamps,
    /// Files whose targets are compared at every look.
    ends: Stamps,
    /// Files beside the usual ones that are watched.
    named: Vec<PathBuf>,
}

#[derive(Debug)]
struct Events {
    queue: OwnedFd,
    home: i32,
    folders: Vec<i32>,
    publications: Option<i32>,
}

type Stamps = BTreeMap<PathBuf, Option<Stamp>>;

impl Watch {
    pub(super) fn new(home: &Path) -> Watch {
        let mut watch = Watch {
            home: home.to_owned(),
            events: Events::new(home).ok(),
            stamps: Stamps::new(),
            ends: ends(home, &[]),
            named: Vec::new(),
        };
        if watch.events.is_none() {
            watch.stamps = stamps(home);
        }
        watch
    }

    /// Whether changed publications are noticed.
    pub(super) fn covers_publications(&self) -> bool {
        let events = self.events.as_ref();
        events.is_some_and(|events| events.publications.is_some())
    }

    /// Watches these files from now on, instead of those named before.
    pub(super) fn name(&mut self, files: Vec<PathBuf>) {
        if self.named != files {
            self.named = files;
            self.ends = ends(&self.home, &self.named);
        }
    }

    /// Whether anything changed since the last look.
    pub(super) fn has_changed(&mut self) -> bool {
        self.look() != Changed::Nothing
    }

    /// What changed since the last look.
    pub(super) fn look(&mut self) -> Changed {
        let is_other_end = self.ends.iter().any(|(path, stamp)| end(path) != *stamp);
        let mut changed = self.names_changed();
        if is_other_end {
            changed = Changed::Files;
        }
        if changed == Changed::Files {
            // Links may lead elsewhere now, so all ends are looked up again.
            self.ends = ends(&self.home, &self.named);
        }
        changed
    }

    fn names_changed(&mut self) -> Changed {
        let Some(events) = &self.events else {
            let stamps = stamps(&self.home);
            let is_same = std::mem::replace(&mut self.stamps, stamps) == self.stamps;
            return match is_same {
                true => Changed::Nothing,
                false => Changed::Files,
            };
        };
        match events.drain() {
            Event::Quiet => Changed::Nothing,
            Event::Published => Changed::Publications,
            Event::Changed => Changed::Files,
            // A watch ends with its folder, so all are set up again.
            Event::Moved => {
                self.events = Events::new(&self.home).ok();
                self.stamps = match self.events {
                    Some(_) => Stamps::new(),
                    None => stamps(&self.home),
                };
                Changed::Files
            }
        }
    }
}

/// What changed; in doubt, files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    Nothing,
    /// A test result, publication or grant changed, and no file.
    Publications,
    Files,
}

/// In ascending order: the greatest of several counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Quiet,
    Published,
    Changed,
    /// A watched folder came, went or was replaced.
    Moved,
}

impl Events {
    fn new(home: &Path) -> rustix::io::Result<Events> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        // The database is in the home and is written all the time, so for files of
        // the home only closing and renaming are events.
        let names = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::ATTRIB
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        let home_watch = inotify::add_watch(&queue, home, names)?;
        let mut folders = Vec::new();
        for folder in FOLDERS {
            match inotify::add_watch(&queue, home.join(folder), names | WatchFlags::MODIFY) {
                Ok(watch) => folders.push(watch),
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => return Err(error),
            }
        }
        let [file] = PUBLICATIONS;
        let writes = WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        let publications = match inotify::add_watch(&queue, home.join(file), writes) {
            Ok(watch) => Some(watch),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error),
        };
        Ok(Events {
            queue,
            home: home_watch,
            folders,
            publications,
        })
    }

    /// Reads the waiting events, up to a bound; beyond it the answer is known anyway.
    fn drain(&self) -> Event {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.queue, &mut buffer);
        let mut news = Event::Quiet;
        for _ in 0..limit::EVENTS_MAX {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return news,
                Err(Errno::INTR) => continue,
                Err(_) => return Event::Moved,
            };
            let name = event.file_name().map(|name| name.to_bytes());
            news = news.max(self.judge(event.wd(), event.events(), name));
        }
        // More may wait; everything is read again in any case.
        news.max(Event::Changed)
    }

    fn judge(&self, watch: i32, events: ReadFlags, name: Option<&[u8]>) -> Event {
        let lost = ReadFlags::QUEUE_OVERFLOW
            | ReadFlags::IGNORED
            | ReadFlags::UNMOUNT
            | ReadFlags::DELETE_SELF
            | ReadFlags::MOVE_SELF;
        // Each of them means that events may be missing from here on.
        if events.intersects(lost) {
            return Event::Moved;
        }
        let is = |names: &[&str]| {
            name.is_some_and(|name| names.iter().any(|known| known.as_bytes() == name))
        };
        if watch == self.home {
            if is(&FOLDERS) {
                return Event::Moved;
            }
            // Its own watch reports writes; here it was created or deleted.
            if is(&PUBLICATIONS) && !events.intersects(ReadFlags::CLOSE_WRITE) {
                return Event::Moved;
            }
            return if is(&FILES) {
                Event::Changed
            } else {
                Event::Quiet
            };
        }
        if self.publications == Some(watch) {
            return Event::Published;
        }
        if !self.folders.contains(&watch) {
            return Event::Quiet;
        }
        match name {
            // Our own unfinished files, and those of editors.
            Some([b'.', ..]) => Event::Quiet,
            Some(_) | None => Event::Changed,
        }
    }
}

/// The stamps of the targets of settings, secrets, rules, tools that are links, and
/// named files. A second hard link to one of the first three can be made at any time
/// without an event; there are too many tools to check each.
fn ends(home: &Path, named: &[PathBuf]) -> Stamps {
    let is_link = |path: &PathBuf| {
        let about = fs::symlink_metadata(path);
        about.is_ok_and(|it| it.file_type().is_symlink() || (it.is_file() && it.nlink() > 1))
    };
    let inside = |folder: &str| {
        let entries = fs::read_dir(home.join(folder)).into_iter().flatten();
        let entries = entries.flatten().take(limit::TOOL_FILES_MAX);
        entries.map(|entry| entry.path())
    };
    let files = FILES.iter().map(|file| home.join(file));
    let linked_tools = inside("tools").filter(is_link);
    let watched = files.chain(inside("rules")).chain(linked_tools);
    let all = watched.chain(named.iter().cloned());
    let settled = |path: PathBuf| {
        // An edit under the file's own name is an event.
        let may_be_missed = is_link(&path) || named.contains(&path);
        let stamp = end(&path).map(|stamp| match may_be_missed && is_fresh(&stamp) {
            // Equals no stamp there is.
            true => Stamp {
                bytes: u64::MAX,
                ..stamp
            },
            false => stamp,
        });
        (path, stamp)
    };
    all.map(settled).collect()
}

/// Whether a file changed so recently that another change may leave it with the same
/// stamp: file system clocks tick only every few milliseconds.
fn is_fresh(stamp: &Stamp) -> bool {
    let (seconds, nanoseconds) = stamp.changed;
    let changed = Duration::new(
        u64::try_from(seconds).unwrap_or(0),
        u32::try_from(nanoseconds).unwrap_or(0),
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.is_ok_and(|now| now.saturating_sub(changed) < Duration::from_millis(limit::STAMP_TICK_MS))
}

fn end(path: &Path) -> Option<Stamp> {
    fs::metadata(path).ok().as_ref().map(Stamp::of)
}

/// Names and stamps of everything that is watched.
fn stamps(home: &Path) -> Stamps {
    let mut found = Stamps::new();
    let mut add = |path: PathBuf| {
        let stamp = fs::symlink_metadata(&path).map(|metadata| Stamp::of(&metadata));
        found.insert(path, stamp.ok());
    };
    for file in FILES {
        add(home.join(file));
    }
    for folder in FOLDERS {
        add(home.join(folder));
        let entries = fs::read_dir(home.join(folder)).into_iter().flatten();
        for entry in entries.flatten().take(limit::TOOL_FILES_MAX) {
            if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                add(entry.path());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Without inotify, the same edits are noticed.
    #[test]
    fn stamps_notice_what_events_notice() {
        let name = format!("store-stamps-{}", std::process::id());
        let home: PathBuf = std::env::temp_dir().join(name);
        fs::create_dir_all(home.join("tools")).expect("a folder");
        let mut watch = Watch {
            home: home.clone(),
            events: None,
            stamps: stamps(&home),
            ends: Stamps::new(),
            named: Vec::new(),
        };
        assert!(!watch.has_changed());
        let acts: [(&str, &str); 4] = [
            ("tools/a.json", "1"),
            ("tools/a.json", "12"),
            ("ringfence.toml", "x"),
            ("secrets.env", "y"),
        ];
        for (file, text) in acts {
            fs::write(home.join(file), text).expect("written");
            assert!(watch.has_changed(), "{file}");
            assert!(!watch.has_changed(), "{file}");
        }
        fs::create_dir(home.join("rules")).expect("a folder");
        assert!(watch.has_changed());
        fs::remove_file(home.join("tools/a.json")).expect("removed");
        assert!(watch.has_changed());
        fs::write(home.join("notes.txt"), "z").expect("written");
        assert!(!watch.has_changed());
        fs::remove_dir_all(&home).expect("removed");
    }

    /// Two edits within one tick of the clock, with a look in between.
    #[test]
    fn recent_changes_are_checked_again() {
        let name = format!("store-ends-{}", std::process::id());
        let home: PathBuf = std::env::temp_dir().join(name);
        fs::create_dir_all(&home).expect("a folder");
        let mut watch = Watch::new(&home);
        let file = home.join("next.toml");
        fs::write(&file, "a").expect("written");
        watch.name(vec![file.clone()]);
        assert!(watch.has_changed());
        while watch.has_changed() {
            std::hint::spin_loop();
        }
        fs::write(&file, "b").expect("written");
        assert!(watch.has_changed());
        fs::write(&file, "c").expect("written");
        assert!(watch.has_changed());
        while watch.has_changed() {
            std::hint::spin_loop();
        }
        fs::remove_file(&file).expect("removed");
        assert!(watch.has_changed());
        fs::remove_dir_all(&home).expect("removed");
    }
}
