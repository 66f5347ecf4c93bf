//! Text of a document that a reviewer would not see: zero-width and direction
//! characters in code and in texts for models, and hidden line ends.

use super::Document;
use crate::document::finding::{Code, Finding};
use crate::document::json::Lines;
use crate::text;
use crate::unseen::{self, Unseen};

/// A finding for each text that holds such characters, at the first of them.
pub(super) fn findings(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::from_iter(comment_that_runs(&document.code));
    if findings.is_empty() {
        findings.extend(hidden("code", &document.code));
    }
    findings.extend(hidden("description", &document.description));
    for (index, param) in document.params.iter().enumerate() {
        let at = format!("params[{index}].description");
        findings.extend(hidden(&at, &param.description));
    }
    findings
}

/// Attack: an editor that does not break a line at U+2028, U+2029 or a carriage return
/// alone shows what follows as part of the comment before it, and the engine runs it.
fn comment_that_runs(code: &str) -> Option<Finding> {
    let is_in_comment = |at: &usize| {
        let line = code
            .get(..*at)
            .and_then(|before| before.rsplit('\n').next());
        line.is_some_and(|line| line.contains("//"))
    };
    let mut ends = unseen::all(code).filter(|(_, _, unseen)| *unseen == Unseen::LineEnd);
    let (at, character, _) = ends.find(|(at, _, _)| is_in_comment(at))?;
    let message = format!(
        "`code` holds U+{:04X} at {}, which ends a comment where few editors show it: what follows runs",
        u32::from(character),
        place(code, at)
    );
    let finding = Finding::error(Code::SpecInvariant, "code", message);
    Some(finding.fix("use a plain line break, or an escape inside a string"))
}

fn hidden(pointer: &str, text: &str) -> Option<Finding> {
    let mut found = unseen::all(text);
    let (at, character, _) = found.next()?;
    let count = text::count(1 + found.count(), "invisible character");
    let message = format!(
        "`{pointer}` contains {count}, first U+{:04X} at {}",
        u32::from(character),
        place(text, at)
    );
    let finding = Finding::warning(Code::SpecInvariant, pointer, message);
    Some(finding.fix("remove them, or write escapes where they are meant"))
}

fn place(text: &str, at: usize) -> String {
    let place = Lines::new(text).position(at);
    format!("line {}, column {}", place.line, place.column)
}
