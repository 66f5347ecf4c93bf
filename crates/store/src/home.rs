//! The home folder, which all processes of one installation share.

/// A counter in a file that every process can read cheaply.
pub(crate) mod counter;
/// The database file, its schema and its connections.
pub(crate) mod database;
/// Private folders, and files that survive a power cut.
pub(crate) mod files;
/// The last audit record, remembered in the database.
pub(crate) mod mark;
/// Refuses a home that other users can write to.
pub(crate) mod permission;
/// Which processes of the home are alive.
pub(crate) mod process;
/// Where the servers of the home listen.
pub mod serving;
/// `ringfence.toml` and the rule files.
pub mod settings;

use std::path::{Path, PathBuf};

/// The folder of the audit's log and index.
pub(crate) fn audit_folder(home: &Path) -> PathBuf {
    home.join("audit")
}

/// The folder of the lock files, one for each live process.
fn lock_folder(home: &Path) -> PathBuf {
    home.join("locks")
}

/// The database.
pub(crate) fn database_file(home: &Path) -> PathBuf {
    home.join("ringfence.db")
}
