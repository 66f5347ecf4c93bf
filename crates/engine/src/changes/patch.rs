//! A set of changes as a person reads it before a yes: every file by name first, then what is
//! left out, then the patch. The names are complete or there is no question; of the patch every
//! file has a fair share, so that a large file pushes no other one out of sight.

use std::fmt::Write as _;
use std::path::Path;

use host::files::changes::{self, ChangeKind, CollectedChanges, FileChange, FileContent};
use model::text;
use model::text::diff::{self, DiffBudget};

use crate::limit;

/// Changes in words.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangesText {
    /// All of it in one short line.
    pub(crate) summary: String,
    /// Every change on a line of its own.
    pub(crate) files: Vec<String>,
    /// What is not copied, and why.
    pub(crate) left_out: Vec<String>,
    /// The patch.
    pub(crate) patch: Vec<String>,
}

/// The names alone are longer than a person is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyToName {
    /// How many changes there are.
    pub(crate) count: usize,
}

/// Describes changes of the folder `lower`, which lie in `upper`. Blocks on the disk.
pub(crate) fn describe(
    collected: &CollectedChanges,
    lower: &Path,
    upper: &Path,
) -> Result<ChangesText, TooManyToName> {
    let changes = &collected.changes;
    let too_many = TooManyToName {
        count: changes.len(),
    };
    // Before anything is read: a caller could otherwise make a question of any cost.
    let names: usize = changes.iter().map(|change| change.path.len()).sum();
    if names > limit::CHANGES_LIST_BYTES_MAX {
        return Err(too_many);
    }
    let mut left = limit::CHANGES_READ_BYTES_MAX;
    let read: Vec<_> = changes
        .iter()
        .map(|change| ReadChange::new(change, lower, upper, &mut left))
        .collect();
    let files: Vec<String> = read.iter().map(ReadChange::line).collect();
    let bytes: usize = files.iter().map(String::len).sum();
    if bytes > limit::CHANGES_LIST_BYTES_MAX {
        return Err(too_many);
    }
    Ok(ChangesText {
        summary: summary(changes),
        files,
        left_out: left_out(collected),
        patch: patch(&read),
    })
}

/// `3 files: a, b, c`.
fn summary(changes: &[FileChange]) -> String {
    let is_folder = |kind| matches!(kind, ChangeKind::FolderCreated | ChangeKind::FolderDeleted);
    let files = changes.iter().filter(|change| !is_folder(change.kind));
    let names: Vec<&str> = files.map(|change| change.path.as_str()).collect();
    let folders = changes.len() - names.len();
    let mut words = text::count(names.len(), "file");
    if folders > 0 {
        let _ = write!(words, ", {}", text::count(folders, "folder"));
    }
    let shown = names.iter().take(limit::CHANGES_SUMMARY_FILES_MAX);
    let shown: Vec<String> = shown
        .map(|name| text::elided(name, limit::CHANGES_SUMMARY_NAME_CHARS_MAX))
        .collect();
    if !shown.is_empty() {
        let _ = write!(words, ": {}", shown.join(", "));
    }
    if names.len() > shown.len() {
        let _ = write!(words, " and {} more", names.len() - shown.len());
    }
    words
}

/// What is not copied. A bound suffices: nothing comes of what is not named here.
fn left_out(collected: &CollectedChanges) -> Vec<String> {
    let mut lines = Vec::new();
    let mut bytes = 0;
    let total = collected.left_out.len();
    for (path, why) in &collected.left_out {
        let line = format!("left out, {why}: {}", text::one_line(path));
        bytes += line.len();
        if bytes > limit::CHANGES_LEFT_OUT_BYTES_MAX {
            let more = text::count(total - lines.len(), "more path");
            lines.push(format!("[… {more} left out …]"));
            break;
        }
        lines.push(line);
    }
    lines
}

/// A change with both of its sides.
struct ReadChange<'a> {
    change: &'a FileChange,
    /// Nothing where there is no file, or where too much was read already.
    sides: Option<(FileContent, FileContent)>,
}

impl<'a> ReadChange<'a> {
    fn new(change: &'a FileChange, lower: &Path, upper: &Path, left: &mut u64) -> ReadChange<'a> {
        let bytes_max = limit::CHANGES_TEXT_BYTES_MAX;
        let cost = change.bytes.min(bytes_max) + change.base_bytes.min(bytes_max);
        let is_file = change.digest.is_some() || change.base.is_some();
        let rest = left.checked_sub(cost);
        let sides = rest.filter(|_| is_file).map(|rest| {
            *left = rest;
            let read = |digest: &Option<String>, folder: &Path| match digest {
                Some(_) => changes::read_content(folder, &change.path, bytes_max),
                None => FileContent::Missing,
            };
            (read(&change.base, lower), read(&change.digest, upper))
        });
        ReadChange { change, sides }
    }

    /// The two texts; on a side that is not there, nothing. Else why they are not shown.
    fn texts(&self) -> Result<(Option<&str>, Option<&str>), &'static str> {
        let Some((before, after)) = &self.sides else {
            return Err("content not shown, too much changed at once");
        };
        let text = |content: &'_ FileContent, digest: &Option<String>| match content {
            FileContent::Text(_) => Ok(()),
            FileContent::Missing if digest.is_none() => Ok(()),
            FileContent::Missing => Err("content not shown, it cannot be read"),
            FileContent::Binary => Err("BINARY, content not shown"),
            FileContent::TooLong => Err("content not shown, the file is too long"),
        };
        text(after, &self.change.digest)?;
        text(before, &self.change.base)?;
        Ok((as_text(before), as_text(after)))
    }

    fn is_folder(&self) -> bool {
        match self.change.kind {
            ChangeKind::FolderCreated | ChangeKind::FolderDeleted => true,
            ChangeKind::Created | ChangeKind::Modified | ChangeKind::Deleted => false,
        }
    }

    /// The change by its name. The path comes last: nothing of ours follows a name that a
    /// program chose.
    fn line(&self) -> String {
        let change = self.change;
        let path = text::one_line(&change.path);
        let word = change.kind.word();
        if self.is_folder() {
            return format!("{word}: {path}");
        }
        let bytes = sides(
            change.base.as_ref().map(|_| change.base_bytes.to_string()),
            change.digest.as_ref().map(|_| change.bytes.to_string()),
        );
        let mode = sides(
            change.base_mode().map(str::to_owned),
            change.mode().map(str::to_owned),
        );
        let hidden = match self.texts() {
            Ok(_) => String::new(),
            Err(why) => format!(", {why}, sha256 {}", self.digests()),
        };
        format!("{word}, {bytes} bytes, mode {mode}{hidden}: {path}")
    }

    fn digests(&self) -> String {
        sides(self.change.base.clone(), self.change.digest.clone())
    }

    /// Its part of the patch, as git writes it.
    fn patch(&self, budget: &mut DiffBudget) -> Vec<String> {
        let change = self.change;
        let path = text::one_line(&change.path);
        if self.is_folder() {
            return vec![format!("{}: {path}", change.kind.word())];
        }
        let mut lines = vec![format!("diff --git a/{path} b/{path}")];
        match (change.base_mode(), change.mode()) {
            (None, Some(new)) => lines.push(format!("new file mode {new}")),
            (Some(old), None) => lines.push(format!("deleted file mode {old}")),
            (Some(old), Some(new)) if old != new => {
                lines.extend([format!("old mode {old}"), format!("new mode {new}")]);
            }
            (_, _) => {}
        }
        match self.texts() {
            Ok((before, after)) => {
                let patch = diff::unified(&change.path, before, after, budget);
                let chars_max = limit::CHANGES_LINE_CHARS_MAX;
                // By line feeds alone: a carriage return at the end of a line is part of
                // what changed.
                let cut = patch.strip_suffix('\n').unwrap_or(&patch).split('\n');
                lines.extend(cut.map(|line| match line.chars().nth(chars_max) {
                    Some(_) => text::elided(line, chars_max),
                    None => text::patch_line(line),
                }));
            }
            Err(why) => lines.push(format!("[{why}: sha256 {}]", self.digests())),
        }
        lines
    }
}

fn as_text(content: &FileContent) -> Option<&str> {
    match content {
        FileContent::Text(text) => Some(text),
        FileContent::Missing | FileContent::Binary | FileContent::TooLong => None,
    }
}

/// `old -> new`, or the one that is there.
fn sides(old: Option<String>, new: Option<String>) -> String {
    match (old, new) {
        (Some(old), Some(new)) if old != new => format!("{old} -> {new}"),
        (_, Some(new)) => new,
        (old, None) => old.unwrap_or_default(),
    }
}

/// The patches of all changes, each within its share.
fn patch(read: &[ReadChange<'_>]) -> Vec<String> {
    // Attack: many files whose comparison costs much, and of which little is shown.
    let mut budget = DiffBudget::default();
    let parts = read.iter().map(|change| change.patch(&mut budget));
    let parts: Vec<Vec<String>> = parts.collect();
    let costs: Vec<usize> = parts
        .iter()
        .map(|part| part.iter().map(|line| cost(line)).sum())
        .collect();
    let share = fair_share(&costs, limit::CHANGES_PATCH_BYTES_MAX);
    let mut lines = Vec::new();
    for (part, read) in parts.into_iter().zip(read) {
        let path = text::one_line(&read.change.path);
        lines.extend(cut(part, share, &path));
    }
    lines
}

/// What a line takes of the bound, so that short lines are bounded in number as well.
fn cost(line: &str) -> usize {
    let least = limit::CHANGES_PATCH_BYTES_MAX.div_ceil(limit::CHANGES_LINES_MAX);
    line.len().max(least)
}

/// The most that one part may take, so that all together keep to `total`: what small ones do
/// not need is left to the others.
fn fair_share(costs: &[usize], total: usize) -> usize {
    let mut sorted = costs.to_vec();
    sorted.sort_unstable();
    let mut left = total;
    let mut count = sorted.len();
    for cost in sorted {
        let share = left / count.max(1);
        if cost > share {
            return share;
        }
        left -= cost;
        count -= 1;
    }
    total
}

/// Leaves out the middle of a part that takes more than its share, and says so there.
fn cut(part: Vec<String>, share: usize, path: &str) -> Vec<String> {
    let whole: usize = part.iter().map(|line| cost(line)).sum();
    if whole <= share {
        return part;
    }
    let fitting = |lines: &mut dyn Iterator<Item = &String>, most: usize| {
        let mut taken = 0;
        lines
            .take_while(|line| {
                taken += cost(line);
                taken <= most
            })
            .count()
    };
    // The end as well: that is where the dangerous part hides.
    let tail = fitting(&mut part.iter().rev(), share / 3);
    let head = fitting(&mut part.iter(), share - share / 3);
    let missing = part.len().saturating_sub(head + tail);
    let missing = text::count(missing, "line");
    let words = format!("[… {missing} of the patch of this file not shown: {path} …]");
    let end = part.len().saturating_sub(tail);
    let mut lines = part;
    let rest = lines.split_off(end);
    lines.truncate(head);
    lines.push(words);
    lines.extend(rest);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize, width: usize) -> Vec<String> {
        (0..count).map(|_| "x".repeat(width)).collect()
    }

    #[test]
    fn a_large_part_leaves_small_ones_their_room() {
        assert_eq!(fair_share(&[10, 10, 1_000_000], 300), 280);
        assert_eq!(fair_share(&[500, 500, 500], 300), 100);
        assert_eq!(fair_share(&[10, 20], 300), 300);
        assert_eq!(fair_share(&[], 300), 300);
    }

    #[test]
    fn a_cut_part_says_how_many_lines_are_missing() {
        let part = lines(100, 100);
        assert_eq!(cut(part.clone(), 10_000, "a").len(), 100);
        let shown = cut(part.clone(), 3_000, "a");
        let words = "[… 70 lines of the patch of this file not shown: a …]";
        assert!(shown.contains(&words.to_owned()), "{shown:?}");
        assert_eq!(shown.len(), 31);
        // Without room for a single line the file is still named.
        assert_eq!(cut(part, 10, "a").len(), 1);
    }
}
