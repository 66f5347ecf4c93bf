//! Characters that a person does not see and a model reads.

use model::unseen::{self, Unseen};

use super::{FindingCode, Findings};

/// White space in a row from which on it hides the text after it.
const SPACES_MAX: usize = 100;
/// Line ends in a row from which on they hide the text after them.
const LINES_MAX: usize = 20;

/// Everything hidden in a text.
pub(super) fn check(findings: &mut Findings, field: &str, text: &str) {
    for (at, character, unseen) in unseen::all(text) {
        let end = at + character.len_utf8();
        let (code, message) = match (unseen, character) {
            (Unseen::Direction, _) => (
                FindingCode::Direction,
                "a control character changes the direction of the text",
            ),
            (_, '\u{e0000}'..='\u{e007f}') => (FindingCode::Tags, "tags spell a hidden text"),
            (_, control) if control.is_control() => {
                (FindingCode::Escape, "a control character is in the text")
            }
            (Unseen::Invisible, _) => (FindingCode::Invisible, "a character is invisible"),
            (Unseen::LineEnd, _) => (
                FindingCode::Escape,
                "a line ends where few programs show it",
            ),
        };
        findings.add(code, field, text, at..end, message);
    }
    if let Some((at, character)) = text
        .char_indices()
        .find(|(_, character)| is_private(*character))
    {
        let span = at..at + character.len_utf8();
        let message = "a character for private use has no meaning to a reader";
        findings.add(FindingCode::PrivateUse, field, text, span, message);
    }
    check_padding(findings, field, text);
}

fn is_private(character: char) -> bool {
    matches!(character, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

/// Attack: a hundred spaces or a page of empty lines, and the order to the model is
/// where no window shows it.
fn check_padding(findings: &mut Findings, field: &str, text: &str) {
    let (mut start, mut spaces, mut lines) = (0, 0, 0);
    for (at, character) in text.char_indices() {
        if !character.is_whitespace() {
            // Only in front of more text: space at the end hides nothing.
            if spaces >= SPACES_MAX || lines >= LINES_MAX {
                let message = "much empty space pushes text out of sight";
                findings.add(FindingCode::Padding, field, text, start..at, message);
                return;
            }
            (spaces, lines) = (0, 0);
            continue;
        }
        if spaces == 0 {
            start = at;
        }
        spaces += 1;
        if character == '\n' {
            lines += 1;
        }
    }
}
