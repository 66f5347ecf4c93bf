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
    /// Folders of the parent: keys, the audit. No declared path may cover one or lie in one.
    pub private: Vec<PathBuf>,
    /// The user's home. A declared path may lie in it, but not be it or cover it. Without it
    /// a declared path may cover it.
    pub user_home: Option<PathBuf>,
    /// What the child may reach.
    pub network: JailNetwork,
    /// What the child may use up.
    pub limits: JailLimits,
    /// Whether to start although a wall is missing. The walls that are there still hold.
    pub accept_missing: bool,
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
            private: Vec::new(),
            user_home: None,
            network: JailNetwork::None,
            limits: JailLimits::standard(),
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
            .field("network", &self.network)
            .field("limits", &self.limits)
            .field("accept_missing", &self.accept_missing)
            .finish_non_exhaustive()
    }
}

/// What a child may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JailNetwork {
    /// No socket at all.
    None,
    /// Every address the machine can reach, loopback included.
    Open,
}

/// What a child may use up. Bounds of memory, files and processor time hold for each of its
/// processes; `processes` holds for all of them together, threads included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JailLimits {
    /// Seconds of processor time of one process in its whole life; `None` for a server that stays.
    pub cpu_seconds: Option<u64>,
    /// Bytes of private writable memory of one process.
    pub memory_bytes: u64,
    /// Processes and threads. Above it the whole child is killed.
    pub processes: u64,
    /// Open files of one process.
    pub open_files: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
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
        }
    }
}
