//! Invariant 1: `model`, `find`, `guard` and `upstream` do no IO and read no clock or environment.
//! Clippy knows the functions (`clippy.toml` in those crates); this rule knows
//! the modules, so that nothing is forgotten when std grows.

use crate::tidy::finding::TidyFinding;
use crate::tidy::manifest::Manifest;
use crate::tidy::mention::{Mention, mentions};
use crate::tidy::tree::Tree;

/// The crates that compute and do nothing else.
pub(crate) const PURE: &[&str] = &["model", "find", "guard", "upstream"];

/// Paths they may not use, and why.
const BANS: &[(&str, &str)] = &[
    ("std::fs", "reads and writes files"),
    (
        "std::net",
        "opens sockets; plain addresses are in `core::net`",
    ),
    ("std::env", "reads the environment"),
    ("std::process", "starts or ends processes"),
    ("std::thread", "starts threads"),
    ("std::os", "speaks to the system"),
    ("std::io::stdin", "reads from the terminal"),
    ("std::io::stdout", "prints"),
    ("std::io::stderr", "prints"),
    ("std::time::SystemTime", "reads a clock"),
    ("std::time::Instant", "reads a clock"),
    ("std::time::*", "brings the clocks with it"),
    ("std::*", "brings everything with it"),
    ("tokio", "is for waiting"),
    ("rand", "gives another answer each time"),
];

/// Crates they may not depend on, tests aside.
const PACKAGES: &[&str] = &[
    "tokio",
    "rand",
    "getrandom",
    "reqwest",
    "hyper",
    "rusqlite",
    "sqlx",
];

/// Uses of IO, clocks or the environment in pure crates.
pub(crate) fn findings(tree: &Tree) -> Vec<TidyFinding> {
    let mut found = Vec::new();
    for name in PURE {
        let source = format!("crates/{name}/src/");
        let modules = tree.texts().filter(|(path, _)| path.starts_with(&source));
        for (path, text) in modules.filter(|(path, _)| path.ends_with(".rs")) {
            for mention in mentions(text) {
                let reason = reason(&mention);
                found.extend(reason.map(|(what, why)| {
                    let sentence = format!("`{name}` may not use `{what}`: it {why}");
                    TidyFinding::new(path, mention.line, sentence)
                }));
            }
        }
        if let Ok(manifest) = Manifest::read(tree, &format!("crates/{name}/Cargo.toml")) {
            let dependencies = manifest.dependencies();
            let banned = dependencies.iter().filter(|dependency| {
                !dependency.is_dev && PACKAGES.contains(&dependency.package())
            });
            found.extend(banned.map(|dependency| {
                let sentence = format!("`{name}` may not depend on `{}`", dependency.key);
                manifest.finding(dependency, sentence)
            }));
        }
    }
    found
}

fn reason(mention: &Mention) -> Option<(&'static str, &'static str)> {
    if mention.alias.is_some() && mention.segments == ["std"] {
        return Some(("std as …", "hides what is used"));
    }
    if mention.segments == ["async"] {
        return Some(("async", "is for waiting"));
    }
    // A name alone may be a variable; a path is not.
    let is_path = mention.segments.len() > 1;
    let banned = BANS.iter().filter(|_| is_path).find(|(path, _)| {
        // After `use std::time`, the code says `time::Instant`.
        mention.is_within(path) || short(path).is_some_and(|path| mention.is_within(path))
    });
    banned.copied()
}

/// `time::Instant` for `std::time::Instant`; nothing for `std::fs`, whose short
/// form needs an import that is already a finding.
fn short(path: &str) -> Option<&str> {
    path.strip_prefix("std::")
        .filter(|path| path.contains("::") && !path.contains('*'))
}

#[cfg(test)]
mod tests;
