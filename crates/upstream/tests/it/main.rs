//! Cases as data: every field of a definition flipped once, harmless descriptions,
//! poisoned ones; and schemas held against the values they accept.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests read their own folders and stop when they cannot go on"
)]

mod description;
mod flip;
mod hostile;
mod schema;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

/// One JSON value from each line of a file that is not empty, with the line's number.
fn lines(path: &Path) -> Vec<(usize, Value)> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| match serde_json::from_str(line) {
            Ok(value) => (index + 1, value),
            Err(error) => panic!("{}:{}: {error}", path.display(), index + 1),
        })
        .collect()
}
