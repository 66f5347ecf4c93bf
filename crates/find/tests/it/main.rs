//! Search as people ask, over the tools we ship.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read their own folders and stop when they cannot go on"
)]

mod search;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn entries(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}
