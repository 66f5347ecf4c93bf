//! Whether anything changed that a person can change, at the price of one system
//! call: the kernel notes events, and a quiet queue answers "no".
//!
//! Where the kernel cannot, names and stamps are compared: everywhere without its
//! help, else for settings, secrets, rules, and tools that are links. A symbolic link may
//! lead anywhere, and an edit through a second hard link is no event of our folders. In
//! doubt the answer is "changed", for looking again costs little.

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

/// Folders all of whose files count.
const FOLDERS: [&str; 2] = ["tools", "rules"];
/// Files of the home that count, beside the folders themselves.
const FILES: [&str; 2] = ["ringfence.toml", "secrets.env"];
/// Written whenever something is published or taken back.
const PUBLICATIONS: [&str; 1] = ["standing.version"];

#[derive(Debug)]
pub(super) struct Watch {
    home: PathBuf,
    /// Without it, stamps are compared.
    events: Option<Events>,
    stamps: Stamps,
    /// Files that are looked at themselves; what stands at their end.
    ends: Stamps,
    /// Files beside the usual ones that count.
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

    /// Whether publications are among what is noticed.
    pub(super) fn covers_publications(&self) -> bool {
        let events = self.events.as_ref();
        events.is_some_and(|events| events.publications.is_some())
    }

    /// More files that count from now on, instead of those named before.
    pub(super) fn name(&mut self, files: Vec<PathBuf>) {
        if self.named != files {
            self.named = files;
            self.ends = ends(&self.home, &self.named);
        }
    }

    /// Whether anything changed since this was last asked.
    pub(super) fn changed(&mut self) -> bool {
        self.look() != Changed::Nothing
    }

    /// What changed since this was last asked.
    pub(super) fn look(&mut self) -> Changed {
        let is_other_end = self.ends.iter().any(|(path, stamp)| end(path) != *stamp);
        let mut changed = self.names_changed();
        if is_other_end {
            changed = Changed::Files;
        }
        if changed == Changed::Files {
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
            News::Quiet => Changed::Nothing,
            News::Published => Changed::Publications,
            News::Changed => Changed::Files,
            // A watch may have ended with its folder, so all begin anew.
            News::Moved => {
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

/// What changed; where it cannot be told, files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    Nothing,
    /// Something was tested, published or taken back, and no file is another.
    Publications,
    Files,
}

/// In order: the greatest of many stands for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum News {
    Quiet,
    Published,
    Changed,
    /// A watched folder came, went or was replaced.
    Moved,
}

impl Events {
    fn new(home: &Path) -> rustix::io::Result<Events> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        // The database lives in the home and is written all the time, so changes
        // there are noted when a file is closed or gets its name.
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

    /// Reads what waits, up to a bound; beyond it the answer stands anyway.
    fn drain(&self) -> News {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.queue, &mut buffer);
        let mut news = News::Quiet;
        for _ in 0..limit::EVENTS_MAX {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return news,
                Err(Errno::INTR) => continue,
                Err(_) => return News::Moved,
            };
            let name = event.file_name().map(|name| name.to_bytes());
            news = news.max(self.judge(event.wd(), event.events(), name));
        }
        // More may wait; whatever it is, everything is looked at.
        news.max(News::Changed)
    }

    fn judge(&self, watch: i32, events: ReadFlags, name: Option<&[u8]>) -> News {
        let lost = ReadFlags::QUEUE_OVERFLOW
            | ReadFlags::IGNORED
            | ReadFlags::UNMOUNT
            | ReadFlags::DELETE_SELF
            | ReadFlags::MOVE_SELF;
        if events.intersects(lost) {
            return News::Moved;
        }
        let is = |names: &[&str]| {
            name.is_some_and(|name| names.iter().any(|known| known.as_bytes() == name))
        };
        if watch == self.home {
            if is(&FOLDERS) {
                return News::Moved;
            }
            // Its own watch tells of writes; here it came or went.
            if is(&PUBLICATIONS) && !events.intersects(ReadFlags::CLOSE_WRITE) {
                return News::Moved;
            }
            return if is(&FILES) {
                News::Changed
            } else {
                News::Quiet
            };
        }
        if self.publications == Some(watch) {
            return News::Published;
        }
        if !self.folders.contains(&watch) {
            return News::Quiet;
        }
        match name {
            // Our own unfinished files, and those of editors.
            Some([b'.', ..]) => News::Quiet,
            Some(_) | None => News::Changed,
        }
    }
}

/// What stands at the end of settings, secrets and rules, of every tool that is a link,
/// and of the files named. A second hard link to one of the first may be made at any
/// time, without an event; of tools there are too many to look at each.
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
        // Of an edit under the file's own name, the kernel tells.
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

/// Whether a file was changed so lately that another change may leave it with the
/// same stamp: clocks of file systems tick a few times in a hundredth of a second.
fn is_fresh(stamp: &Stamp) -> bool {
    let (seconds, nanoseconds) = stamp.changed;
    let changed = Duration::new(
        u64::try_from(seconds).unwrap_or(0),
        u32::try_from(nanoseconds).unwrap_or(0),
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.is_ok_and(|now| now.saturating_sub(changed) < limit::STAMP_TICK)
}

fn end(path: &Path) -> Option<Stamp> {
    fs::metadata(path).ok().as_ref().map(Stamp::of)
}

/// Names and stamps of everything that counts.
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

    /// The way without the kernel's help, held to the same acts.
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
        assert!(!watch.changed());
        let acts: [(&str, &str); 4] = [
            ("tools/a.json", "1"),
            ("tools/a.json", "12"),
            ("ringfence.toml", "x"),
            ("secrets.env", "y"),
        ];
        for (file, text) in acts {
            fs::write(home.join(file), text).expect("written");
            assert!(watch.changed(), "{file}");
            assert!(!watch.changed(), "{file}");
        }
        fs::create_dir(home.join("rules")).expect("a folder");
        assert!(watch.changed());
        fs::remove_file(home.join("tools/a.json")).expect("removed");
        assert!(watch.changed());
        fs::write(home.join("notes.txt"), "z").expect("written");
        assert!(!watch.changed());
        fs::remove_dir_all(&home).expect("removed");
    }

    /// Two edits within one tick of the clock, with a look in between.
    #[test]
    fn what_changed_just_now_is_looked_at_again() {
        let name = format!("store-ends-{}", std::process::id());
        let home: PathBuf = std::env::temp_dir().join(name);
        fs::create_dir_all(&home).expect("a folder");
        let mut watch = Watch::new(&home);
        let file = home.join("next.toml");
        fs::write(&file, "a").expect("written");
        watch.name(vec![file.clone()]);
        assert!(watch.changed());
        while watch.changed() {
            std::hint::spin_loop();
        }
        fs::write(&file, "b").expect("written");
        assert!(watch.changed());
        fs::write(&file, "c").expect("written");
        assert!(watch.changed());
        while watch.changed() {
            std::hint::spin_loop();
        }
        fs::remove_file(&file).expect("removed");
        assert!(watch.changed());
        fs::remove_dir_all(&home).expect("removed");
    }
}
