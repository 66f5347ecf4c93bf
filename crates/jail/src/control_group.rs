//! A control group for a child, where this process may make one: the kernel then bounds
//! the memory and the processes of all of it together, and tells when it refused a process.
//!
//! Version two where the system delegates a part of the tree, version one as root.
//! Without either, bounds hold for each process, and the supervisor counts them.

use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::limit;
use crate::settings::JailLimits;

/// Moves a whole process. The kernel first waits until no process of the machine is being
/// started, which takes it about ten milliseconds.
const PROCESSES: &str = "cgroup.procs";

/// Version one only: moves one thread, at once.
const THREADS: &str = "tasks";

/// Where control groups are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// The group of one child. Removed when dropped, which must be after its processes ended.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    folders: Vec<PathBuf>,
    /// The file of each folder that a process writes to when it comes in.
    way_in: &'static str,
    /// The file that counts processes killed for want of memory.
    events: Option<PathBuf>,
    /// Processes and threads that the group holds at most.
    processes_max: u64,
}

impl ControlGroup {
    /// Makes a group with the bounds of `limits`; why not, if it cannot.
    pub(crate) fn make(limits: &JailLimits) -> Result<ControlGroup, String> {
        let own = fs::read_to_string("/proc/self/cgroup")
            .map_err(|error| format!("could not read the own control group: {error}"))?;
        ControlGroup::make_in(Path::new(ROOT), &own, limits)
    }

    fn make_in(root: &Path, own: &str, limits: &JailLimits) -> Result<ControlGroup, String> {
        let name = format!("ringfence-{}", std::process::id());
        match unified(root, own, &name, limits) {
            Ok(group) => Ok(group),
            Err(why) => separate(root, own, &name, limits).map_err(|also| match also {
                Some(also) => also,
                None => why,
            }),
        }
    }

    /// Opens the way in, for a process that could not open it itself any more.
    pub(crate) fn open(&self) -> io::Result<OpenGroup> {
        let mut files = Vec::new();
        for folder in &self.folders {
            let file = fs::File::options()
                .write(true)
                .open(folder.join(self.way_in));
            files.push(file?);
        }
        let folder = match (self.way_in, self.folders.as_slice()) {
            (PROCESSES, [folder]) => Some(fs::File::open(folder)?),
            (_, _) => None,
        };
        Ok(OpenGroup { files, folder })
    }

    /// Whether the kernel killed a process because the group had no memory left.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let events = self.events.as_ref().map(fs::read_to_string);
        let Some(Ok(events)) = events else {
            return false;
        };
        has_happened(&events, "oom_kill")
    }

    /// Where the kernel tells that the group is full. The folder is the last of either version.
    pub(crate) fn watch_processes(&self) -> io::Result<FullGroup> {
        let folder = self.folders.last().ok_or(io::ErrorKind::NotFound)?;
        let full = FullGroup {
            events: fs::File::open(folder.join("pids.events"))?,
            folder: folder.clone(),
            processes_max: self.processes_max,
        };
        // The kernel tells what happens after a first look.
        full.has_refused()?;
        Ok(full)
    }
}

/// Whether a group refused a process because it was full. Its descriptor has something urgent to
/// say when there is one more.
#[derive(Debug)]
pub(crate) struct FullGroup {
    events: fs::File,
    folder: PathBuf,
    processes_max: u64,
}

impl FullGroup {
    /// Whether it has. An error if the group is gone.
    pub(crate) fn has_refused(&self) -> io::Result<bool> {
        let mut text = [0; 256];
        let count = self.events.read_at(&mut text, 0)?;
        let events = String::from_utf8_lossy(text.get(..count).unwrap_or_default());
        if !has_happened(&events, "max") {
            return Ok(false);
        }
        // A group above this one may have been full: that is not the child's breach. Older
        // kernels do not keep the peak.
        let most = number(&self.folder.join("pids.peak"));
        let most = most.or_else(|_| number(&self.folder.join("pids.current")))?;
        Ok(most >= self.processes_max)
    }
}

impl AsFd for FullGroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

/// Whether a file of events counts more than none of `name`.
fn has_happened(events: &str, name: &str) -> bool {
    events.lines().any(|line| {
        let mut words = line.split_ascii_whitespace();
        words.next() == Some(name) && words.next().is_some_and(|count| count != "0")
    })
}

fn number(file: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(file)?;
    text.trim().parse().map_err(io::Error::other)
}

/// A group that can be joined.
#[derive(Debug)]
pub(crate) struct OpenGroup {
    files: Vec<fs::File>,
    folder: Option<fs::File>,
}

impl OpenGroup {
    /// The folder of a group of version two: a process can begin in it.
    pub(crate) fn folder(&self) -> Option<BorrowedFd<'_>> {
        self.folder.as_ref().map(AsFd::as_fd)
    }

    /// The descriptors that `join` needs.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        self.files.iter().map(AsRawFd::as_raw_fd).collect()
    }

    /// Moves this process, which has one thread, into the group.
    pub(crate) fn join(&self) -> io::Result<()> {
        for mut file in &self.files {
            file.write_all(b"0")?;
        }
        Ok(())
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for folder in &self.folders {
            // The kernel may still be busy with the last process; an empty folder is all
            // that stays then.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Version two: beside the group of this process, in a part of the tree that is its own.
fn unified(
    root: &Path,
    own: &str,
    name: &str,
    limits: &JailLimits,
) -> Result<ControlGroup, String> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let path = path.ok_or("there are no control groups of version 2")?;
    if path.split('/').any(|part| part == "..") {
        return Err("this process is in a control group that it does not see".to_owned());
    }
    let here = root.join(path);
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    if !["memory", "pids"]
        .iter()
        .all(|one| has_word(&controllers, one))
    {
        return Err(
            "control groups of version 2 have no memory and pids controllers here".to_owned(),
        );
    }
    // A group with processes in it cannot divide what it has, so the new one stands beside.
    let Some(parent) = here
        .parent()
        .filter(|parent| parent.starts_with(root) && *parent != root)
    else {
        return Err("this process is in the root of the control groups".to_owned());
    };
    let delegated = "the system delegates no control group to this process";
    let divided = parent.join("cgroup.subtree_control");
    let held = fs::read_to_string(&divided).unwrap_or_default();
    if !["memory", "pids"].iter().all(|one| has_word(&held, one)) {
        fs::write(&divided, "+memory +pids").map_err(|error| format!("{delegated}: {error}"))?;
    }
    let folder = parent.join(name);
    let group = ControlGroup {
        events: Some(folder.join("memory.events")),
        processes_max: processes(limits),
        way_in: PROCESSES,
        folders: vec![folder.clone()],
    };
    make(&folder).map_err(|error| format!("{delegated}: {error}"))?;
    set(&folder, "memory.max", limits.memory_bytes)?;
    // Not everywhere; without it the bound is of memory alone.
    let _ = fs::write(folder.join("memory.swap.max"), "0");
    set(&folder, "pids.max", processes(limits))?;
    Ok(group)
}

/// Version one: below the groups of this process, one for each controller. `Err(None)` if
/// there is no version one.
fn separate(
    root: &Path,
    own: &str,
    name: &str,
    limits: &JailLimits,
) -> Result<ControlGroup, Option<String>> {
    let mut group = ControlGroup {
        folders: Vec::new(),
        way_in: THREADS,
        events: None,
        processes_max: processes(limits),
    };
    for (controller, file, bound) in [
        ("memory", "memory.limit_in_bytes", limits.memory_bytes),
        ("pids", "pids.max", processes(limits)),
    ] {
        // Lines of `/proc/self/cgroup`: a number, the controllers, the path.
        let path = own.lines().find_map(|line| {
            let (names, path) = line.split_once(':')?.1.split_once(':')?;
            let has = names.split(',').any(|name| name == controller);
            has.then(|| path.trim_start_matches('/'))
        });
        let path = path.ok_or(None)?;
        let folder = root.join(controller).join(path).join(name);
        make(&folder)
            .map_err(|error| Some(format!("this process may not make control groups: {error}")))?;
        group.folders.push(folder.clone());
        set(&folder, file, bound).map_err(Some)?;
        if controller == "memory" {
            // Not everywhere; without it the bound is of memory alone.
            let _ = fs::write(
                folder.join("memory.memsw.limit_in_bytes"),
                bound.to_string(),
            );
            group.events = Some(folder.join("memory.oom_control"));
        }
    }
    Ok(group)
}

fn processes(limits: &JailLimits) -> u64 {
    limits.processes.saturating_add(limit::PROCESSES_OURS)
}

fn make(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        // Of a supervisor with this number that was killed.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_dir(folder)?;
            fs::create_dir(folder)
        }
        made => made,
    }
}

fn set(folder: &Path, file: &str, bound: u64) -> Result<(), String> {
    fs::write(folder.join(file), bound.to_string())
        .map_err(|error| format!("could not set `{file}`: {error}"))
}

fn has_word(text: &str, word: &str) -> bool {
    text.split_ascii_whitespace().any(|one| one == word)
}

#[cfg(test)]
mod tests;
