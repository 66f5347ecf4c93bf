//! The powers as tool code meets them: real JavaScript in the real sandbox, behind
//! both walls, with a network that ends at a lab on loopback.
//!
//! Each folder of `cases/powers`, `cases/attack/powers` and `cases/port` is one
//! call; `world.rs` says what may stand in its `case.toml`. `expect.txt` is what
//! must come out: the result, what the lab was asked, who was called on the wire
//! and what the record of the call says. To accept a change on purpose, run with
//! `UPDATE_CASES=1` and read the difference.
//!
//! A case of `cases/powers` returns an object whose keys are rows of
//! `cases/powers/rows.txt`, the contract of the powers row by row: a row without
//! a case fails, and so does a case without a row.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop"
)]

#[path = "../../../host/tests/lab/authority.rs"]
mod authority;
mod call;
#[expect(dead_code, reason = "host's own tests use the rest")]
#[path = "../../../host/tests/lab/server.rs"]
mod lab;
mod page;
#[expect(dead_code, reason = "host's own tests use the rest")]
#[path = "../../../host/tests/lab/wire.rs"]
mod wire;
mod world;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sandbox::pool::{Pool, PoolSettings, Sharing, WorkerProgram};

use crate::call::{Called, called};

/// The workspace's folder.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

/// The binary itself is the worker, as it is for a user.
async fn pool() -> Pool {
    let program = WorkerProgram::Other(env!("CARGO_BIN_EXE_ringfence").into(), Vec::new());
    let mut settings = PoolSettings::new(program, Sharing::Shared);
    settings.workers = 1;
    Pool::start(settings).await.unwrap()
}

fn folders(kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("cases").join(kind)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = paths.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Runs every case of a kind and compares; what each came to.
async fn run(kind: &str, at_least: usize) -> Vec<(PathBuf, Called)> {
    let only = std::env::var("ONLY_CASE").unwrap_or_default();
    let mut folders = folders(kind);
    assert!(
        folders.len() >= at_least || !only.is_empty(),
        "only {} cases",
        folders.len()
    );
    folders.retain(|folder| folder.to_string_lossy().contains(&only));
    let pool = pool().await;
    let mut wrong = Vec::new();
    let mut all = Vec::new();
    for folder in folders {
        let called = called(&pool, &folder).await;
        let path = folder.join("expect.txt");
        if std::env::var_os("UPDATE_CASES").is_some() {
            fs::write(&path, &called.shown).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        if expected != called.shown {
            let actual = &called.shown;
            let folder = folder.display();
            wrong.push(format!(
                "{folder}\n--- expected\n{expected}--- actual\n{actual}"
            ));
        }
        all.push((folder, called));
    }
    let (count, wrong) = (wrong.len(), wrong.join("\n\n"));
    assert!(count == 0, "{count} cases differ\n\n{wrong}");
    all
}

/// `id  what it says`, one row to a line; `#` and blank lines are for readers.
fn rows() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("cases/powers/rows.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<_> = lines.filter(|line| !line.starts_with('#')).collect();
    let ids: BTreeSet<_> = lines
        .iter()
        .map(|line| {
            let (id, what) = line.split_once("  ").expect("an id, two spaces, a text");
            assert!(!what.trim().is_empty(), "{id} says nothing");
            id.to_owned()
        })
        .collect();
    assert_eq!(ids.len(), lines.len(), "a row stands twice");
    ids
}

#[tokio::test]
async fn each_row_of_the_contract_has_a_case() {
    let rows = rows();
    let mut shown = BTreeSet::new();
    for (folder, called) in run("powers", 40).await {
        assert!(!called.rows.is_empty(), "{} has no row", folder.display());
        for row in called.rows {
            assert!(
                rows.contains(&row),
                "{}: no such row: {row}",
                folder.display()
            );
            assert!(shown.insert(row.clone()), "two cases for {row}");
        }
    }
    if std::env::var_os("ONLY_CASE").is_none() {
        let without: Vec<_> = rows.difference(&shown).collect();
        assert!(without.is_empty(), "no case for {without:#?}");
    }
}

#[tokio::test]
async fn attacks_end_in_a_refusal_with_a_reason() {
    for (folder, called) in run("attack/powers", 16).await {
        let said = fs::read_to_string(folder.join("case.toml")).unwrap();
        let folder = folder.display();
        assert!(
            said.starts_with("# Defends: "),
            "{folder} does not say what it defends"
        );
        assert!(
            called.tried > 0 && called.refused == called.tried,
            "{folder}: {} of {} attempts were refused",
            called.refused,
            called.tried
        );
    }
}

/// `cases/attack/powers/classes.txt` names each class and the cases that show it.
#[test]
fn each_attack_stands_in_one_class() {
    let text = fs::read_to_string(root().join("cases/attack/powers/classes.txt")).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let lines: Vec<_> = lines.map(|line| line.split_once("  ").unwrap()).collect();
    assert_eq!(lines.len(), 16);
    let named = lines.iter().flat_map(|(_, cases)| cases.split_whitespace());
    let named: Vec<_> = named.filter(|name| *name != "-").collect();
    let folders = folders("attack/powers");
    let names = folders.iter().map(|folder| folder.file_name().unwrap());
    let there: BTreeSet<_> = names.map(|name| name.to_str().unwrap()).collect();
    assert_eq!(
        named.len(),
        there.len(),
        "a case stands in two classes or none"
    );
    assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), there);
}

#[tokio::test]
async fn documents_written_for_the_reference_run_unchanged() {
    for (folder, _) in run("port", 10).await {
        assert!(folder.join("tool.json").is_file(), "{}", folder.display());
    }
}
