//! The lints enforce most project rules; this rule enforces the lints. A crate takes
//! the workspace's list, and a crate with a `clippy.toml` of its own, which hides the
//! one at the root, repeats its content.

use toml::{Table, Value};

use crate::tidy::ban::PURE;
use crate::tidy::finding::TidyFinding;
use crate::tidy::manifest::{Manifest, ROOT};
use crate::tidy::tree::Tree;

const CLIPPY: &str = "clippy.toml";

/// What a pure crate's `clippy.toml` adds.
const ADDED: &[&str] = &["disallowed-methods", "disallowed-types"];

/// The only crate that may have a list of its own, and the lint it may change.
const SANDBOX: (&str, &str) = ("crates/sandbox/Cargo.toml", "unsafe_code");

/// Crates without the workspace's lints.
pub(crate) fn findings(tree: &Tree) -> Vec<TidyFinding> {
    let root = match table(tree, ROOT) {
        Ok(root) => root,
        Err(finding) => return vec![finding],
    };
    let lints = root
        .get("workspace")
        .and_then(|workspace| workspace.get("lints"));
    let members = Manifest::members(tree);
    let mut found: Vec<TidyFinding> = members
        .iter()
        .filter_map(|path| member(tree, path, lints))
        .collect();
    found.extend(settings(tree));
    found
}

fn member(tree: &Tree, path: &str, lints: Option<&Value>) -> Option<TidyFinding> {
    let manifest = match table(tree, path) {
        Ok(manifest) => manifest,
        Err(finding) => return Some(finding),
    };
    let own = manifest.get("lints");
    let is_shared = own.and_then(|own| own.get("workspace")) == Some(&Value::Boolean(true));
    let (sandbox, lint) = SANDBOX;
    if is_shared || (path == sandbox && own.is_some() && without(own, lint) == without(lints, lint))
    {
        return None;
    }
    let sentence = match path == sandbox {
        true => format!("the lints must be the root's but for `{lint}`"),
        false => "`[lints] workspace = true` is missing".to_owned(),
    };
    Some(TidyFinding::new(
        path,
        line_of(tree, path, "[lints"),
        sentence,
    ))
}

/// A list of lints, `rust` and `clippy`, with one of rustc's left out.
fn without(lints: Option<&Value>, lint: &str) -> Option<Value> {
    let mut lints = lints.cloned()?;
    lints
        .get_mut("rust")
        .and_then(Value::as_table_mut)
        .map(|rust| rust.remove(lint));
    Some(lints)
}

/// Findings about the `clippy.toml` of crates.
fn settings(tree: &Tree) -> Vec<TidyFinding> {
    let root = match table(tree, CLIPPY) {
        Ok(root) => root,
        Err(finding) => return vec![finding],
    };
    let mut found = Vec::new();
    for name in tree.crates() {
        let path = format!("crates/{name}/{CLIPPY}");
        let is_pure = PURE.contains(&name);
        if !is_pure && !tree.contains(&path) {
            continue;
        }
        let own = match table(tree, &path) {
            Ok(own) => own,
            Err(finding) => {
                found.push(finding);
                continue;
            }
        };
        for (key, value) in &root {
            if own.get(key) != Some(value) {
                let sentence = format!("`{key}` differs from the root's {CLIPPY}");
                found.push(TidyFinding::new(&path, line_of(tree, &path, key), sentence));
            }
        }
        for key in ADDED.iter().filter(|_| is_pure) {
            let list = own.get(*key).and_then(Value::as_array);
            if list.is_none_or(Vec::is_empty) {
                let sentence = format!("`{key}` is missing: `{name}` does no IO");
                found.push(TidyFinding::new(&path, 1, sentence));
            }
        }
    }
    found
}

fn table(tree: &Tree, path: &str) -> Result<Table, TidyFinding> {
    let Some(text) = tree.text(path) else {
        return Err(TidyFinding::new(path, 1, "the file is missing"));
    };
    text.parse()
        .map_err(|_| TidyFinding::new(path, 1, "the file is not valid TOML"))
}

/// The first line that starts with `start`; the first of all if there is none.
fn line_of(tree: &Tree, path: &str, start: &str) -> usize {
    let mut lines = tree.text(path).unwrap_or_default().lines();
    lines
        .position(|line| line.starts_with(start))
        .map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests;
