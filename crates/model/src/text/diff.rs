//! The difference between two texts as a patch that people read: unified, with three lines
//! around each change.

use std::fmt::Write as _;

/// Lines around a change.
const CONTEXT: usize = 3;
/// Cells of the table that finds common lines; larger texts are shown as replaced.
const CELLS_MAX: usize = 4_000_000;
/// Cells of the tables of many patches.
const CELLS_OF_ALL_MAX: usize = 16 * CELLS_MAX;

/// What is left to compare several texts with, one after the other. Those for which nothing
/// is left are shown as replaced.
#[derive(Clone, Copy, Debug)]
pub struct DiffBudget(usize);

impl Default for DiffBudget {
    fn default() -> DiffBudget {
        DiffBudget(CELLS_OF_ALL_MAX)
    }
}

/// One line of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiffLine<'a> {
    Same(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

/// The patch from one text to another; nothing on a side that is not there.
#[must_use]
pub fn unified(
    path: &str,
    before: Option<&str>,
    after: Option<&str>,
    budget: &mut DiffBudget,
) -> String {
    let side = |prefix: &str, text: Option<&str>| match text {
        Some(_) => format!("{prefix}/{path}"),
        None => "/dev/null".to_owned(),
    };
    let mut patch = format!("--- {}\n+++ {}\n", side("a", before), side("b", after));
    // With their ends: a change of nothing but line ends is a change, and a person who
    // approves a patch must see it.
    let old: Vec<&str> = before.unwrap_or_default().split_inclusive('\n').collect();
    let new: Vec<&str> = after.unwrap_or_default().split_inclusive('\n').collect();
    let lines = compare(&old, &new, budget);
    for (first, last) in hunks(&lines) {
        write_hunk(&mut patch, &lines, first, last);
    }
    patch
}

/// All lines of both, in order.
fn compare<'a>(old: &[&'a str], new: &[&'a str], budget: &mut DiffBudget) -> Vec<DiffLine<'a>> {
    // Common ends first: they keep the table of the middle small.
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (old.get(head..), new.get(head..));
    let (old_rest, new_rest) = (old_rest.unwrap_or_default(), new_rest.unwrap_or_default());
    let ends = old_rest.iter().rev().zip(new_rest.iter().rev());
    let tail = ends.take_while(|(a, b)| a == b).count();
    let (old_middle, old_tail) = old_rest.split_at(old_rest.len() - tail);
    let (new_middle, _) = new_rest.split_at(new_rest.len() - tail);
    let mut lines: Vec<_> = old
        .iter()
        .take(head)
        .map(|line| DiffLine::Same(line))
        .collect();
    lines.extend(middle(old_middle, new_middle, budget));
    lines.extend(old_tail.iter().map(|line| DiffLine::Same(line)));
    lines
}

/// By the longest common subsequence, where the table is small enough.
fn middle<'a>(old: &[&'a str], new: &[&'a str], budget: &mut DiffBudget) -> Vec<DiffLine<'a>> {
    let width = new.len() + 1;
    let replaced = || {
        let removed = old.iter().map(|line| DiffLine::Removed(line));
        let added = new.iter().map(|line| DiffLine::Added(line));
        removed.chain(added).collect()
    };
    let cells = (old.len() + 1).saturating_mul(width);
    if old.is_empty() || new.is_empty() || cells > CELLS_MAX.min(budget.0) {
        return replaced();
    }
    budget.0 -= cells;
    // table[i][j]: common lines of old[i..] and new[j..].
    let mut table = vec![0_u32; cells];
    let at = |table: &[u32], i: usize, j: usize| table.get(i * width + j).copied().unwrap_or(0);
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            let value = match a == b {
                true => at(&table, i + 1, j + 1) + 1,
                false => at(&table, i + 1, j).max(at(&table, i, j + 1)),
            };
            if let Some(cell) = table.get_mut(i * width + j) {
                *cell = value;
            }
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::with_capacity(old.len() + new.len());
    loop {
        match (old.get(i), new.get(j)) {
            (Some(a), Some(b)) if a == b => {
                lines.push(DiffLine::Same(a));
                (i, j) = (i + 1, j + 1);
            }
            (Some(a), Some(_)) if at(&table, i + 1, j) >= at(&table, i, j + 1) => {
                lines.push(DiffLine::Removed(a));
                i += 1;
            }
            (_, Some(b)) => {
                lines.push(DiffLine::Added(b));
                j += 1;
            }
            (Some(a), None) => {
                lines.push(DiffLine::Removed(a));
                i += 1;
            }
            (None, None) => return lines,
        }
    }
}

/// The parts that are shown, each as its first line and the one after its last.
fn hunks(lines: &[DiffLine<'_>]) -> Vec<(usize, usize)> {
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if matches!(line, DiffLine::Same(_)) {
            continue;
        }
        let first = index.saturating_sub(CONTEXT);
        let last = (index + CONTEXT + 1).min(lines.len());
        match hunks.last_mut() {
            Some((_, end)) if *end >= first => *end = last,
            _ => hunks.push((first, last)),
        }
    }
    hunks
}

fn write_hunk(patch: &mut String, lines: &[DiffLine<'_>], first: usize, last: usize) {
    let old_lines = |lines: &[DiffLine<'_>]| {
        let kept = lines
            .iter()
            .filter(|line| !matches!(line, DiffLine::Added(_)));
        kept.count()
    };
    let new_lines = |lines: &[DiffLine<'_>]| {
        let kept = lines
            .iter()
            .filter(|line| !matches!(line, DiffLine::Removed(_)));
        kept.count()
    };
    let before = lines.get(..first).unwrap_or_default();
    let shown = lines.get(first..last).unwrap_or_default();
    let start = |before: usize, count: usize| if count == 0 { before } else { before + 1 };
    let (old_count, new_count) = (old_lines(shown), new_lines(shown));
    let _ = writeln!(
        patch,
        "@@ -{},{old_count} +{},{new_count} @@",
        start(old_lines(before), old_count),
        start(new_lines(before), new_count),
    );
    for line in shown {
        let (mark, text) = match line {
            DiffLine::Same(text) => (' ', text),
            DiffLine::Removed(text) => ('-', text),
            DiffLine::Added(text) => ('+', text),
        };
        let _ = match text.strip_suffix('\n') {
            Some(text) => writeln!(patch, "{mark}{text}"),
            // As git and patch write it.
            None => writeln!(patch, "{mark}{text}\n\\ No newline at end of file"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch_of(path: &str, before: Option<&str>, after: Option<&str>) -> String {
        unified(path, before, after, &mut DiffBudget::default())
    }

    #[test]
    fn what_no_budget_is_left_for_is_shown_as_replaced() {
        let (old, new) = ("a\nsame\nb\n", "c\nsame\nd\n");
        let mut budget = DiffBudget(16);
        let compared = unified("f", Some(old), Some(new), &mut budget);
        assert!(compared.contains("\n same\n"), "{compared}");
        let replaced = unified("f", Some(old), Some(new), &mut budget);
        assert!(replaced.contains("\n-same\n"), "{replaced}");
        assert!(replaced.contains("\n+same\n"), "{replaced}");
    }

    #[test]
    fn a_change_is_shown_with_three_lines_around_it() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n";
        assert_eq!(
            patch_of("f", Some(before), Some(after)),
            "--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        );
    }

    /// Attack: a patch that seems empty, because only what a person does not see changed.
    #[test]
    fn line_ends_are_a_change() {
        assert_eq!(
            patch_of("f", Some("a\nb\n"), Some("a\r\nb\n")),
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+a\r\n b\n"
        );
        assert_eq!(
            patch_of("f", Some("a\n"), Some("a")),
            "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-a\n+a\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn new_and_gone_files_have_one_side() {
        let made = patch_of("f", None, Some("a\nb\n"));
        assert_eq!(made, "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n");
        let gone = patch_of("f", Some("a\n"), None);
        assert_eq!(gone, "--- a/f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n");
    }

    #[test]
    fn changes_far_apart_are_parts_of_their_own() {
        let old: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        let mut new = old.clone();
        new[5] = "x".to_owned();
        new[30] = "y".to_owned();
        new.insert(31, "z".to_owned());
        let patch = patch_of("f", Some(&old.join("\n")), Some(&new.join("\n")));
        assert_eq!(patch.matches("@@ -").count(), 2);
        assert!(
            patch.contains("-5\n+x\n") && patch.contains("-30\n+y\n+z\n"),
            "{patch}"
        );
    }

    /// The patch made into the new text again.
    fn applied(old: &str, patch: &str) -> String {
        let old: Vec<_> = old.lines().collect();
        let mut new: Vec<&str> = Vec::new();
        let mut next = 0;
        for line in patch.lines().skip(2) {
            if let Some(head) = line.strip_prefix("@@ -") {
                let (start, rest) = head.split_once(',').unwrap();
                let start: usize = start.parse().unwrap();
                let count: usize = rest.split_once(' ').unwrap().0.parse().unwrap();
                let first = if count == 0 { start } else { start - 1 };
                new.extend(&old[next..first]);
                next = first;
            } else if let Some(text) = line.strip_prefix('+') {
                new.push(text);
            } else if line.starts_with('-') {
                next += 1;
            } else if !line.starts_with('\\') {
                new.push(old[next]);
                next += 1;
            }
        }
        new.extend(&old[next..]);
        new.join("\n")
    }

    #[test]
    fn a_patch_leads_from_one_text_to_the_other() {
        let mut seed = 7_u64;
        let mut number = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % most
        };
        for _ in 0..300 {
            let mut text =
                |n: u64| -> Vec<String> { (0..n).map(|_| number(4).to_string()).collect() };
            let (old, new) = (text(12).join("\n"), text(14).join("\n"));
            assert_eq!(applied(&old, &patch_of("f", Some(&old), Some(&new))), new);
        }
    }
}
