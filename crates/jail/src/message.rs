//! What parent, supervisor and launcher tell each other: an order with three
//! descriptors going down, reports coming up. One JSON value on each line, bounded.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::file_rule::FileRule;
use crate::settings::{JailLimits, JailNetwork, JailOverlay, JailRung};
use crate::wall::Wall;

/// What the launcher is to start, and behind which walls. It may hold secrets and is never
/// printed.
#[derive(Serialize, Deserialize)]
pub(crate) struct JailOrder {
    pub(crate) command: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) folder: PathBuf,
    pub(crate) rules: Vec<FileRule>,
    /// What the program needs of its installation.
    pub(crate) installation: Vec<PathBuf>,
    /// Folders that are the child's: of its user, and counted against its bound.
    pub(crate) own: Vec<PathBuf>,
    /// Declared folders and files, which someone else owns.
    pub(crate) declared: Vec<FileRule>,
    pub(crate) overlays: Vec<JailOverlay>,
    /// The parent's folders, hidden wherever they would be seen.
    pub(crate) private: Vec<PathBuf>,
    pub(crate) network: JailNetwork,
    pub(crate) limits: JailLimits,
    pub(crate) require: JailRung,
    pub(crate) accept_missing: bool,
}

/// What the launcher and the supervisor say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum JailReport {
    /// The walls around the child, before it is executed.
    Walls {
        /// Which rung they belong to.
        rung: JailRung,
        /// Each of them.
        walls: Vec<Wall>,
    },
    /// The kernel does not let this process make namespaces, and why.
    NoNamespaces(String),
    /// The child does not start, and why.
    Refused(String),
    /// The child runs.
    Started {
        /// Its process, which is also its process group.
        pid: u32,
    },
    /// The child has ended. From the supervisor: and nothing it started is left.
    Exited(JailExit),
    /// What the child and all it started have used, after their end.
    Used(JailUsage),
}

/// What a child and everything it started have used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JailUsage {
    /// Processor time.
    pub cpu_ms: u64,
    /// The largest memory of one of its processes.
    pub memory_peak_bytes: u64,
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JailExit {
    /// By itself, with a code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// By its supervisor, because it broke a bound.
    Bound(String),
    /// Its supervisor did not say; why.
    Unknown(String),
}

impl fmt::Display for JailExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JailExit::Code(code) => write!(f, "ended with exit code {code}"),
            JailExit::Signal(signal) => write!(f, "was ended by signal {signal}"),
            JailExit::Bound(reason) => write!(f, "was killed: {reason}"),
            JailExit::Unknown(reason) => f.write_str(reason),
        }
    }
}

/// What a parent may ask a running supervisor to do, one byte each.
pub(crate) const TERMINATE: u8 = b't';
