//! `cargo xtask subject FILE`: whether the first line of a commit message is
//! `area: effect` in at most 72 columns. Git runs it through `.ci/commit-msg`
//! where a contributor asked for that.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::printer;
use crate::run::TaskAnswer;

/// Columns of a subject; longer ones are cut off where commits are listed.
const COLUMNS_MAX: usize = 72;

/// Prefixes of subjects that are rewritten before they land.
const PASSING: &[&str] = &["Merge ", "Revert ", "fixup! ", "squash! ", "amend! "];

/// Prints the faults of the subject of the message in `file`.
pub(crate) fn check(file: &Path) -> Result<TaskAnswer> {
    let message =
        fs::read_to_string(file).with_context(|| format!("could not read `{}`", file.display()))?;
    let found = faults(&message);
    for sentence in &found {
        printer::line(sentence);
    }
    Ok(match found.is_empty() {
        true => TaskAnswer::Yes,
        false => TaskAnswer::No,
    })
}

/// The faults of a message's first line, one sentence each.
fn faults(message: &str) -> Vec<String> {
    let subject = message.lines().next().unwrap_or_default().trim_end();
    if PASSING.iter().any(|start| subject.starts_with(start)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let columns = subject.chars().count();
    if columns > COLUMNS_MAX {
        found.push(format!(
            "the subject has {columns} columns; shorten it to {COLUMNS_MAX}"
        ));
    }
    let (area, effect) = subject.split_once(": ").unwrap_or_default();
    if !area.split(", ").all(is_area) || effect.trim().is_empty() {
        found.push(
            "the subject must read `area: effect`, as in `store: sync the folder`".to_owned(),
        );
    }
    if subject.ends_with('.') {
        found.push("the subject must not end with a full stop".to_owned());
    }
    if message
        .lines()
        .nth(1)
        .is_some_and(|line| !line.trim().is_empty())
    {
        found.push("an empty line must follow the subject".to_owned());
    }
    found
}

/// One word for a part of the project: `store`, `cases`, `ci`.
fn is_area(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_lowercase())
        && word
            .chars()
            .all(|mark| mark.is_ascii_lowercase() || mark.is_ascii_digit() || mark == '-')
}

#[cfg(test)]
mod tests;
