//! One file or folder that a child is given, and what it may do with it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One file or folder a child is given, by its path without links.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct FileRule {
    pub(crate) path: PathBuf,
    pub(crate) right: FileRight,
}

/// What a child may do with a file or folder. Ordered: a later one includes the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum FileRight {
    /// Read.
    Read,
    /// Read and execute.
    Execute,
    /// Read and write, but nothing can be made or removed: a device.
    Device,
    /// Read, execute, write, make, remove.
    Write,
}
