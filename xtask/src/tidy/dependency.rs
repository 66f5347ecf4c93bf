//! Third-party code is listed once, with its user and reason, and its amount is
//! bounded.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::tidy::finding::TidyFinding;
use crate::tidy::manifest::Manifest;
use crate::tidy::tree::Tree;

/// Packages in the lockfile, ours included, and those that only other platforms or tests
/// need, or no build at all: about a third of them. CONTRIBUTING.md argues the number;
/// what is in the binary has a bound of its own, which `cargo xtask dist` checks.
pub(crate) const PACKAGE_COUNT_MAX: usize = 500;

const LOCKFILE: &str = "Cargo.lock";

/// Unexplained, unused or privately chosen dependencies, and too many of them.
pub(crate) fn findings(tree: &Tree) -> Vec<TidyFinding> {
    let root = match Manifest::root(tree) {
        Ok(root) => root,
        Err(finding) => return vec![finding],
    };
    let (mut found, used) = members(tree);
    for shared in root.shared() {
        let key = &shared.key;
        if !shared.is_path && root.comment_after(&shared).is_none() {
            let sentence = format!("`{key}` needs a comment at its end: who needs it and why");
            found.push(root.finding(&shared, sentence));
        }
        if !used.contains(key) {
            found.push(root.finding(&shared, format!("no crate uses `{key}`")));
        }
    }
    match package_count(tree) {
        Some(count) if count <= PACKAGE_COUNT_MAX => {}
        Some(count) => {
            let sentence = format!("{count} packages; at most {PACKAGE_COUNT_MAX}");
            found.push(TidyFinding::new(LOCKFILE, 1, sentence));
        }
        None => found.push(TidyFinding::new(
            LOCKFILE,
            1,
            "the lockfile is missing or broken",
        )),
    }
    found
}

/// How many packages the lockfile lists; nothing if it cannot be read.
pub(crate) fn package_count(tree: &Tree) -> Option<usize> {
    let lockfile: Table = tree.text(LOCKFILE)?.parse().ok()?;
    lockfile
        .get("package")
        .and_then(Value::as_array)
        .map(Vec::len)
}

/// Members that bypass the shared list, and the keys that are used.
fn members(tree: &Tree) -> (Vec<TidyFinding>, BTreeSet<String>) {
    let mut found = Vec::new();
    let mut used = BTreeSet::new();
    for path in Manifest::members(tree) {
        // A broken manifest is the finding of the layers.
        let Ok(manifest) = Manifest::read(tree, &path) else {
            continue;
        };
        for dependency in manifest.dependencies() {
            let is_itself = dependency.is_dev
                && manifest.str(&["package", "name"]) == Some(dependency.package());
            if !dependency.is_shared && !is_itself {
                let key = &dependency.key;
                let sentence =
                    format!("write `{key}.workspace = true` and keep the version in the root");
                found.push(manifest.finding(&dependency, sentence));
            }
            used.insert(dependency.key);
        }
    }
    (found, used)
}

#[cfg(test)]
mod tests;
