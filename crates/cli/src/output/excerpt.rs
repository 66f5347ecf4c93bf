//! The line a finding is about, with a caret under the place.

use model::document::finding::Finding;
use model::document::json::Lines;
use unicode_width::UnicodeWidthChar as _;

/// Columns of source shown at most.
const WIDTH_MAX: usize = 96;
/// Columns kept before the place when a line is cut.
const LEAD: usize = 32;

/// A source line and the caret line under it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) source: String,
    pub(crate) caret: String,
}

/// Cuts the finding's line out of its file. Nothing if it has no place.
pub(crate) fn of(finding: &Finding, lines: &Lines<'_>) -> Option<Excerpt> {
    let line = lines.line(finding.position.line.max(1));
    if finding.position.line == 0 || line.trim().is_empty() {
        return None;
    }
    let first = finding.position.column.saturating_sub(1);
    let marked = lines.position(finding.span.end);
    let last = if marked.line == finding.position.line {
        marked.column - 1
    } else {
        usize::MAX
    };
    let skipped = if line.chars().count() > WIDTH_MAX {
        first.saturating_sub(LEAD)
    } else {
        0
    };
    let mut source = String::from(if skipped > 0 { "…" } else { "" });
    let mut caret = String::from(if skipped > 0 { " " } else { "" });
    let mut width = source.chars().count();
    for (index, character) in line.chars().enumerate().skip(skipped) {
        if width >= WIDTH_MAX {
            source.push('…');
            break;
        }
        let shown = shown(character);
        let columns = shown.width().unwrap_or(1);
        source.push(shown);
        width += columns;
        let mark = if (first..last.max(first + 1)).contains(&index) {
            "^"
        } else {
            " "
        };
        caret.push_str(&mark.repeat(columns));
    }
    let caret = caret.trim_end().to_owned();
    let caret = if caret.is_empty() {
        format!("{}^", " ".repeat(width))
    } else {
        caret
    };
    Some(Excerpt { source, caret })
}

/// One column for characters without a width, so that the caret stays in place.
fn shown(character: char) -> char {
    match character {
        '\t' => ' ',
        hidden if model::text::is_hidden(hidden) => '·',
        plain => plain,
    }
}
