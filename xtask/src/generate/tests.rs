//! Freshness, against a scratch folder.

use std::path::PathBuf;
use std::{env, fs, process};

use super::{GENERATED, Generated};

const ENTRY: Generated = Generated {
    path: "page.md",
    text: || "new\n".to_owned(),
};

/// A folder of this test's own, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("xtask-{name}-{}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _left_behind = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_missing_file_is_stale_not_an_error() {
    let scratch = Scratch::new("missing");
    assert!(!ENTRY.is_fresh(&scratch.0).unwrap());
}

#[test]
fn a_changed_text_is_stale() {
    let scratch = Scratch::new("changed");
    fs::write(scratch.0.join(ENTRY.path), "old\n").unwrap();
    assert!(!ENTRY.is_fresh(&scratch.0).unwrap());
}

#[test]
fn the_same_text_is_fresh() {
    let scratch = Scratch::new("same");
    fs::write(scratch.0.join(ENTRY.path), "new\n").unwrap();
    assert!(ENTRY.is_fresh(&scratch.0).unwrap());
}

#[test]
fn the_texts_are_the_same_each_time_and_end_in_one_newline() {
    for entry in GENERATED {
        let text = (entry.text)();
        assert_eq!(text, (entry.text)(), "{}", entry.path);
        assert!(
            text.ends_with('\n') && !text.ends_with("\n\n"),
            "{}",
            entry.path
        );
    }
}
