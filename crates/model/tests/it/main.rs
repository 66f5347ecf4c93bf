//! Cases as data that need no command: masking, rules, trust, and the fuzz
//! targets' seeds.
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests read their own folders and stop when they cannot go on"
)]

mod govern;
mod limits;
mod sql;
mod tool_policy;
mod trust;
mod worlds;

use std::fs;
use std::path::{Path, PathBuf};

use model::record::mask::Masker;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn entries(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// `cases/mask/<name>/`: `secrets.txt`, one a line, `input.txt`, `expect.txt`.
#[test]
fn mask_cases() {
    let folders = entries("cases/mask");
    assert!(folders.len() >= 10, "only {} cases", folders.len());
    for folder in folders {
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        let secrets = read("secrets.txt");
        let masker = Masker::new(secrets.lines()).unwrap();
        let masked = masker.text(&read("input.txt")).into_inner();
        assert_eq!(masked, read("expect.txt"), "{}", folder.display());
    }
}

#[test]
fn the_seeds_of_the_document_fuzzer() {
    let seeds = entries("fuzz/seeds/document");
    assert!(seeds.len() >= 40, "only {} seeds", seeds.len());
    for seed in seeds {
        model::document::fuzz(&fs::read(seed).unwrap());
    }
}
