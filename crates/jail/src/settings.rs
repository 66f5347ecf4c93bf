//! What a child may use. Nothing that is not listed here is given.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::limit;

/// What a child may use.
#[derive(Clone)]
pub struct JailSettings {
    /// The program by its absolute path, then its arguments. No shell reads it.
    pub command: Vec<String>,
    /// Declared variables. `PATH`, `LANG`, `LC_*` and `TZ` are added from the
    /// parent's; `HOME` and `TMPDIR` are the child's own folders.
    pub environment: BTreeMap<String, String>,
    /// The child's own writable folder. It is made if it is missing, for its owner only.
    pub home: PathBuf,
    /// Where the child starts; its own folder if nothing is said.
    pub folder: Option<PathBuf>,
    /// Folders and files the child may read and execute.
    pub read: Vec<PathBuf>,
    /// Folders and files the child may also change.
    pub write: Vec<PathBuf>,
    /// Private folders of the parent's own that the child may change. They may lie in
    /// `private`. As root, the child's user owns them, or sees them as its own.
    pub workspaces: Vec<PathBuf>,
    /// Folders the child sees as writable and does not change.
    pub overlays: Vec<JailOverlay>,
    /// Folders of the parent: keys, the audit. No declared path may cover one or lie in one.
    pub private: Vec<PathBuf>,
    /// The user's home. A declared path may lie in it, but not be it or cover it. Without it
    /// a declared path may cover it.
    pub user_home: Option<PathBuf>,
    /// What the child may reach.
    pub network: JailNetwork,
    /// What the child may use up.
    pub limits: JailLimits,
    /// The lowest rung that will do.
    pub require: JailRung,
    /// Whether to start although a wall is missing. The walls that are there still hold.
    pub accept_missing: bool,
}

/// A folder whose changes are kept beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JailOverlay {
    /// The folder. On the lower rung it can only be read.
    pub folder: PathBuf,
    /// Where the changes go: an empty folder.
    pub upper: PathBuf,
    /// An empty folder for the kernel's own use, beside `upper` in the same folder.
    pub work: PathBuf,
}

impl JailSettings {
    /// A child with `command` and a folder of its own, and nothing else.
    pub fn new(command: Vec<String>, home: PathBuf) -> JailSettings {
        JailSettings {
            command,
            environment: BTreeMap::new(),
            home,
            folder: None,
            read: Vec::new(),
            write: Vec::new(),
            workspaces: Vec::new(),
            overlays: Vec::new(),
            private: Vec::new(),
            user_home: None,
            network: JailNetwork::None,
            limits: JailLimits::standard(),
            require: JailRung::Landlock,
            accept_missing: false,
        }
    }
}

/// Without the values of variables and the arguments of the command: they may be secrets.
impl fmt::Debug for JailSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JailSettings")
            .field("program", &self.command.first())
            .field("environment", &self.environment.keys())
            .field("home", &self.home)
            .field("folder", &self.folder)
            .field("read", &self.read)
            .field("write", &self.write)
            .field("workspaces", &self.workspaces)
            .field("overlays", &self.overlays)
            .field("network", &self.network)
            .field("limits", &self.limits)
            .field("require", &self.require)
            .field("accept_missing", &self.accept_missing)
            .finish_non_exhaustive()
    }
}

/// What a child may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JailNetwork {
    /// No socket at all.
    None,
    /// Only what the parent accepts and answers: every connection is one to its proxy.
    Proxy,
    /// Every address the machine can reach, loopback included.
    Open,
}

/// Where a child finds the parent's proxy, on its own loopback.
pub const PROXY_PORT: u16 = 3128;

/// How much of the fence the kernel lets an ordinary process build. Ordered: the higher
/// holds all that the lower does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum JailRung {
    /// Landlock and a filter of system calls, as inside a default container.
    Landlock,
    /// Also users, mounts, processes and a network of the child's own.
    Namespaces,
}

impl JailRung {
    /// The stable name, for settings and reports.
    pub fn name(self) -> &'static str {
        match self {
            JailRung::Landlock => "landlock",
            JailRung::Namespaces => "namespaces",
        }
    }
}

/// What a child may use up. Bounds of memory, files and processor time hold for each of its
/// processes; `processes` holds for all of them together, threads included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JailLimits {
    /// Seconds of processor time of one process in its whole life; `None` for a server that stays.
    pub cpu_seconds: Option<u64>,
    /// Bytes of private writable memory of one process; where the parent may make control
    /// groups, also of all processes together.
    pub memory_bytes: u64,
    /// Processes and threads. Above it the whole child is killed.
    pub processes: u64,
    /// Open files of one process.
    pub open_files: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes below `/tmp`, which is in memory. On the lower rung there is none.
    pub temporary_bytes: u64,
    /// Bytes that the child's own folder, its workspaces and what its overlays keep may grow
    /// by. Above it the whole child is killed.
    pub disk_bytes: u64,
}

impl JailLimits {
    /// The bounds when nothing else is declared.
    pub fn standard() -> JailLimits {
        JailLimits {
            cpu_seconds: None,
            memory_bytes: limit::MEMORY_BYTES_DEFAULT,
            processes: limit::PROCESSES_DEFAULT,
            open_files: limit::OPEN_FILES_DEFAULT,
            file_bytes: limit::FILE_BYTES_DEFAULT,
            temporary_bytes: limit::TEMPORARY_BYTES_DEFAULT,
            disk_bytes: limit::DISK_BYTES_DEFAULT,
        }
    }
}
