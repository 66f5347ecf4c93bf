//! Words that must not be committed: notes to oneself, tests switched off or
//! waiting for the clock, paths of one machine, hosts of one registry.
//!
//! The words are written in two halves here, or the rule would find itself.

use crate::tidy::finding::TidyFinding;
use crate::tidy::lexer::is_name;
use crate::tidy::mention::{attributes, mentions};
use crate::tidy::tree::Tree;

/// Notes to oneself. They belong in an issue.
const NOTES: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("HA", "CK"),
    concat!("X", "XX"),
];

/// Folders that exist on one machine only.
const PLACES: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/tm", "p/wt-"),
];

/// Where packages come from is for each machine to say.
const HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("python", "hosted"),
    concat!("npm", "js"),
    concat!("static.rust", "-lang"),
];

/// Names the registry because cargo wants it so.
const LOCKFILE: &str = "Cargo.lock";

const SOURCE: &[&str] = &[
    ".rs",
    ".toml",
    ".js",
    ".ts",
    ".tsx",
    ".c",
    ".h",
    ".css",
    ".html",
    ".py",
    ".sql",
    ".sh",
    "Makefile",
    ".ci/run",
    ".ci/commit-msg",
];

/// Every forbidden word, with its place.
pub(crate) fn findings(tree: &Tree) -> Vec<TidyFinding> {
    let mut found = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| !is_lockfile(path)) {
        for (index, line) in text.lines().enumerate() {
            let sentences = line_sentences(path, line).into_iter();
            found.extend(sentences.map(|sentence| TidyFinding::new(path, index + 1, sentence)));
        }
        if path.ends_with(".rs") {
            found.extend(switched_off(path, text));
            found.extend(sleeping(path, text));
        }
    }
    found
}

fn is_lockfile(path: &str) -> bool {
    path.rsplit('/').next() == Some(LOCKFILE)
}

fn line_sentences(path: &str, line: &str) -> Vec<String> {
    let mut found = Vec::new();
    if SOURCE.iter().any(|ending| path.ends_with(ending)) {
        for note in NOTES
            .iter()
            .filter(|note| line.split(|mark| !is_name(mark)).any(|word| word == **note))
        {
            found.push(format!("`{note}` in the source; open an issue instead"));
        }
    }
    for place in PLACES.iter().filter(|place| names_place(line, place)) {
        found.push(format!("`{place}` is a path of one machine"));
    }
    for host in HOSTS.iter().filter(|host| line.contains(**host)) {
        found.push(format!(
            "`{host}` is for each machine's own settings to name"
        ));
    }
    found
}

/// Whether the place is named from the root of a file system: in `docs/root/`
/// and `example.com/work/` it is not.
fn names_place(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(position, _)| {
        let before = line
            .get(..position)
            .and_then(|before| before.chars().next_back());
        before.is_none_or(|mark| !is_name(mark) && !matches!(mark, '.' | '-' | '~' | '}' | '*'))
    })
}

/// Tests and examples that exist but do not run.
fn switched_off(path: &str, text: &str) -> Vec<TidyFinding> {
    let mut found = Vec::new();
    for (names, line) in attributes(text) {
        let is_ignored = match names.first().map(String::as_str) {
            Some("ignore") => true,
            Some("cfg_attr") => names.iter().any(|name| name == "ignore"),
            Some(_) | None => false,
        };
        if is_ignored {
            found.push(TidyFinding::new(
                path,
                line,
                "an ignored test is no test; run it or remove it",
            ));
        }
    }
    for (index, line) in text.lines().enumerate() {
        let comment = line.trim_start();
        let example = comment
            .strip_prefix("///")
            .or_else(|| comment.strip_prefix("//!"));
        let fence = example.and_then(|example| example.trim_start().strip_prefix("```"));
        if fence.is_some_and(|words| words.split([',', ' ']).any(|word| word == "ignore")) {
            let sentence = "an ignored example may be wrong; use `text` if it is not code";
            found.push(TidyFinding::new(path, index + 1, sentence));
        }
    }
    found
}

/// The mark in a comment above an intended sleep, with the reason.
const NAP: &str = "// Sleeps: ";

/// Tests that wait for time to pass where they could wait for a condition. One
/// that plays something slow, or looks again and again, says so in place.
fn sleeping(path: &str, text: &str) -> Vec<TidyFinding> {
    let Some(start) = tests_start(path, text) else {
        return Vec::new();
    };
    let naps = mentions(text).into_iter().filter(|mention| {
        mention.line >= start
            && (mention.ends_with("thread::sleep") || mention.ends_with("time::sleep"))
    });
    let lines: Vec<_> = text.lines().collect();
    let explained = |line: usize| {
        let above = line.checked_sub(2).and_then(|index| lines.get(index));
        above.is_some_and(|above| above.contains(NAP))
    };
    let naps = naps.filter(|nap| !explained(nap.line));
    naps.map(|nap| {
        TidyFinding::new(
            path,
            nap.line,
            "a test does not sleep; wait for what it waits for",
        )
    })
    .collect()
}

/// The line from which a file is tests; nothing if it has none.
fn tests_start(path: &str, text: &str) -> Option<usize> {
    if path.ends_with("/tests.rs") || path.split('/').any(|folder| folder == "tests") {
        return Some(1);
    }
    let attribute = attributes(text)
        .into_iter()
        .find(|(names, _)| names == &["cfg", "test"]);
    attribute.map(|(_, line)| line)
}

#[cfg(test)]
mod tests;
