//! `cases/{document,policy,risk}/<name>/`: a folder is a test.
//!
//! `tool.json` is checked as a user would check it, inside the folder, with
//! `ringfence.toml` as the operator's file where there is one and `variables.env`
//! as the environment. `expect.txt` is what must come out. To accept a change on
//! purpose, run with `UPDATE_CASES=1` and read the difference.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::{ringfence, root};

/// Cases at the same time.
const WORKERS: usize = 4;

fn folders(kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("cases").join(kind)).unwrap();
    let mut folders: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

fn actual(folder: &Path) -> String {
    let mut arguments = vec!["check", "--home", ".", "tool.json"];
    if folder.join("variables.env").exists() {
        arguments.extend(["--env-file", "variables.env"]);
    }
    ringfence(&arguments).within(folder).shown()
}

fn run(kind: &str, at_least: usize) {
    compare(kind, at_least, actual);
}

/// Runs every case of a kind and compares what comes out with its `expect.txt`.
pub(crate) fn compare(kind: &str, at_least: usize, actual: fn(&Path) -> String) {
    let folders = folders(kind);
    assert!(
        folders.len() >= at_least,
        "only {} cases in {kind}",
        folders.len()
    );
    let check = |folder: &PathBuf| {
        let expected_path = folder.join("expect.txt");
        let actual = actual(folder);
        if std::env::var_os("UPDATE_CASES").is_some() {
            fs::write(&expected_path, &actual).unwrap();
        }
        let expected = fs::read_to_string(&expected_path).unwrap_or_default();
        let difference = || {
            format!(
                "{}\n--- expected\n{expected}--- actual\n{actual}",
                folder.display()
            )
        };
        (actual != expected).then(difference)
    };
    let next = AtomicUsize::new(0);
    let work = || {
        let places = std::iter::from_fn(|| folders.get(next.fetch_add(1, Ordering::Relaxed)));
        places.filter_map(check).collect::<Vec<_>>()
    };
    // More than there are processors: a case waits for programs and for the disk.
    let mut wrong: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        let wrong = workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap());
        wrong.collect()
    });
    wrong.sort();
    assert!(
        wrong.is_empty(),
        "{} cases differ\n\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
}

#[test]
fn documents() {
    run("document", 40);
}

#[test]
fn policies() {
    run("policy", 10);
}

#[test]
fn risks() {
    run("risk", 20);
}
