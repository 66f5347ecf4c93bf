//! The words of a question. Arguments are data: one line of JSON, secrets masked
//! before anything is cut, everything a reader cannot see or could take for
//! something else written as its number, the middle left out with a count.
//!
//! Attack: an argument that rewrites the question it is part of, by escape
//! sequences, by reading backwards, by invisible characters, by letters that look
//! like others, by length, by runs of spaces that push the rest out of sight, or by
//! looking like a place to be filled in.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::document::Document;
use crate::limits;
use crate::record::mask::{Masked, Masker};
use crate::text;

/// The question in the document's words, or in ours. Replaced text is not expanded
/// again.
#[must_use]
pub fn prompt(
    document: &Document,
    arguments: &Map<String, Value>,
    masker: &Masker,
) -> Masked<String> {
    let masked = masked(arguments, masker);
    let template = document
        .human_in_the_loop
        .as_ref()
        .and_then(|block| block.prompt_template.as_deref())
        .filter(|template| !template.trim().is_empty())
        .unwrap_or("Run `{toolName}` with {args}?");
    let mut prompt = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        prompt.push_str(&shown(before));
        let filled = after
            .split_once('}')
            .and_then(|(field, tail)| Some((fill(field, document, &masked)?, tail)));
        match filled {
            Some((filled, tail)) => {
                let chars_max = limits::APPROVAL_ARGUMENTS_CHARS_MAX;
                prompt.push_str(&text::elided(&shown(&filled), chars_max));
                rest = tail;
            }
            None => {
                prompt.push('{');
                rest = after;
            }
        }
    }
    prompt.push_str(&shown(rest));
    let prompt = text::folded(&prompt);
    masker.text(&text::elided(&prompt, limits::APPROVAL_PROMPT_CHARS_MAX))
}

/// `toolName`, `args`, or a path into the arguments; anything else stays unchanged.
fn fill(field: &str, document: &Document, arguments: &Value) -> Option<String> {
    if field == "toolName" {
        return Some(document.name.clone());
    }
    if field == "args" {
        return Some(arguments.to_string());
    }
    // Nothing but arguments can be filled in. Variables are secrets.
    let path = field.strip_prefix("args.")?;
    if path.contains('{') {
        return None;
    }
    // A path that leads nowhere is shown as `nothing`, so that the person sees what is
    // missing.
    let mut value = Some(arguments);
    for step in path.split('.') {
        value = value.and_then(|value| match value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            other => other.get(step),
        });
    }
    Some(value.map_or_else(|| "nothing".to_owned(), Value::to_string))
}

/// The arguments as one line of JSON of at most `chars_max` characters.
#[must_use]
pub fn arguments(
    arguments: &Map<String, Value>,
    masker: &Masker,
    chars_max: usize,
) -> Masked<String> {
    let line = shown(&masked(arguments, masker).to_string());
    masker.text(&text::elided(&line, chars_max))
}

/// The arguments that a line of [`arguments`] shows; `None` if its middle was left out.
/// Characters shown as numbers are restored.
#[must_use]
pub fn read_arguments(line: &str) -> Option<Value> {
    let mut json = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at_checked(at)?;
        json.push_str(before);
        // JSON doubles a backslash of the text, so a single one is ours.
        match from.strip_prefix("\\u{") {
            Some(number) => {
                let (number, after) = number.split_once('}')?;
                let (digits, times) = match number.split_once(" ×") {
                    Some((digits, times)) => (digits, times.parse::<usize>().ok()?),
                    None => (number, 1),
                };
                let character = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
                // Attack: a line with a huge count would fill the memory.
                if times > line.len().max(limits::ARGUMENTS_BYTES_MAX) {
                    return None;
                }
                let mut text = String::new();
                text.extend(std::iter::repeat_n(character, times));
                // As JSON spells it, without the quotes around.
                let spelt = Value::from(text).to_string();
                json.push_str(spelt.get(1..spelt.len().checked_sub(1)?)?);
                rest = after;
            }
            None => {
                let (escape, after) = from.split_at_checked(2)?;
                json.push_str(escape);
                rest = after;
            }
        }
    }
    json.push_str(rest);
    serde_json::from_str(&json).ok()
}

/// The changes of files that a question is about: what it names beside its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownChanges {
    /// The other arguments, as one line of JSON.
    pub arguments: String,
    /// Every file on a line of its own.
    pub files: Vec<String>,
    /// What is left out, and why.
    pub left_out: Vec<String>,
    /// The patch, line by line, with its indentation.
    pub diff: Vec<String>,
}

/// The members of the arguments of a question about changes, in this order.
const FILES: &str = "files";
const LEFT_OUT: &str = "leftOut";
const DIFF: &str = "diff";

/// The one tool that is asked about with changes.
pub const COPIES_CHANGES: &str = "applyChanges";

impl ShownChanges {
    /// What a line of [`arguments`] of a tool shows of changes; `None` if it is about none.
    /// Every line is safe to show, and nothing of the arguments is lost.
    #[must_use]
    pub fn read(tool: &str, line: &str) -> Option<ShownChanges> {
        // Attack: another tool whose arguments have these names would be shown as our own words.
        if tool != COPIES_CHANGES {
            return None;
        }
        let Some(Value::Object(mut members)) = read_arguments(line) else {
            return None;
        };
        let mut take = |name: &str| {
            let Some(Value::Array(items)) = members.shift_remove(name) else {
                return None;
            };
            let lines = items.iter().map(|item| item.as_str().map(shown_patch_line));
            lines.collect::<Option<Vec<_>>>()
        };
        let (files, left_out, diff) = (take(FILES)?, take(LEFT_OUT)?, take(DIFF)?);
        Some(ShownChanges {
            arguments: shown(&Value::Object(members).to_string()),
            files,
            left_out,
            diff,
        })
    }

    /// Adds changes to the arguments that a person sees, so that [`ShownChanges::read`] finds
    /// them again.
    pub fn add(
        arguments: &mut Map<String, Value>,
        files: Vec<String>,
        left_out: Vec<String>,
        diff: Vec<String>,
    ) {
        for (name, lines) in [(FILES, files), (LEFT_OUT, left_out), (DIFF, diff)] {
            arguments.insert(name.to_owned(), lines.into());
        }
    }

    /// Its parts in the order in which they are read, each with its name; those that are
    /// empty are left out.
    #[must_use]
    pub fn parts(&self) -> Vec<(&'static str, &[String])> {
        let parts = [
            ("files", self.files.as_slice()),
            ("left out", self.left_out.as_slice()),
            ("diff", self.diff.as_slice()),
        ];
        let parts = parts.into_iter();
        parts.filter(|(_, lines)| !lines.is_empty()).collect()
    }
}

/// Before which a tab counts as indentation of four columns.
const TAB_COLUMNS: usize = 4;
/// Columns of indentation that are shown as they are.
const INDENT_COLUMNS_MAX: usize = 60;

/// A line of a patch as [`shown`] shows it, but with its indentation: spaces stay, a tab is an
/// arrow that ends at the next stop.
#[must_use]
pub fn shown_patch_line(line: &str) -> String {
    let mark = line.chars().next().filter(|mark| "+- ".contains(*mark));
    let rest = mark
        .and_then(|mark| line.strip_prefix(mark))
        .unwrap_or(line);
    let plain = rest.trim_start_matches([' ', '\t']);
    let indent = rest.strip_suffix(plain).unwrap_or_default();
    let mut text = String::from_iter(mark);
    let mut column = 0;
    for character in indent.chars() {
        let width = match character {
            '\t' => TAB_COLUMNS - column % TAB_COLUMNS,
            _ => 1,
        };
        column += width;
        // Attack: indentation that pushes the rest of the line out of sight.
        if column > INDENT_COLUMNS_MAX {
            push_number(&mut text, character);
            continue;
        }
        text.extend((character == '\t').then_some(TAB));
        let spaces = width - usize::from(character == '\t');
        text.extend(std::iter::repeat_n(' ', spaces));
    }
    // A tab is not a space: a change of one into the other is a change.
    let mut parts = plain.split('\t');
    text.extend(parts.next().map(shown_part));
    for part in parts {
        text.push(TAB);
        text.push_str(&shown_part(part));
    }
    text
}

/// A tab in a line of a patch.
const TAB: char = '⇥';

fn shown_part(text: &str) -> String {
    // The arrow itself, so that it is not taken for a tab.
    shown(text).replace(TAB, "\\u{21e5}")
}

/// Masked first, value by value: a cut or an escape in the middle of a secret
/// would hide it from the masker and leave its halves.
fn masked(arguments: &Map<String, Value>, masker: &Masker) -> Value {
    masker.value(Value::Object(arguments.clone())).into_inner()
}

/// The text on one line, with every character a reader cannot see, or could take
/// for another, as its number: what [`text::one_line`] shows, spaces that are not
/// the space, long runs of spaces, and letters of other alphabets inside a word of
/// Latin ones.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut word = String::new();
    for character in text::one_line(text).chars() {
        if character.is_alphanumeric() {
            // The word is kept until its end: whether a letter deceives depends on its
            // neighbours.
            word.push(character);
            continue;
        }
        push_word(&mut shown, &word);
        word.clear();
        if (character.is_whitespace() && character != ' ') || is_blank(character) {
            push_number(&mut shown, character);
        } else {
            shown.push(character);
        }
    }
    push_word(&mut shown, &word);
    text::folded(&shown)
}

/// A word of one alphabet is shown as it is; in one that has ASCII letters, those
/// that could be taken for such are shown as numbers.
fn push_word(shown: &mut String, word: &str) {
    let is_mixed = word
        .chars()
        .any(|character| character.is_ascii_alphabetic());
    for character in word.chars() {
        if is_mixed && looks_latin(character) {
            push_number(shown, character);
        } else {
            shown.push(character);
        }
    }
}

fn push_number(shown: &mut String, character: char) {
    let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
}

/// Blank without being a space.
fn is_blank(character: char) -> bool {
    matches!(character, '\u{2800}' | '\u{1d159}')
}

/// Letters of the alphabets whose letters pass for Latin ones: IPA and modifier
/// letters, Greek, Cyrillic, Armenian, Cherokee, Lisu, letter-like symbols, full
/// width forms, and the alphabets of mathematics.
fn looks_latin(character: char) -> bool {
    matches!(character,
        '\u{0250}'..='\u{02ff}' | '\u{0370}'..='\u{058f}' | '\u{13a0}'..='\u{13ff}'
        | '\u{1c80}'..='\u{1c8f}' | '\u{1d00}'..='\u{1dbf}' | '\u{1f00}'..='\u{1fff}'
        | '\u{2100}'..='\u{218f}' | '\u{24b6}'..='\u{24e9}' | '\u{2c60}'..='\u{2cff}'
        | '\u{2de0}'..='\u{2dff}' | '\u{a4d0}'..='\u{a4ff}' | '\u{a640}'..='\u{a69f}'
        | '\u{a720}'..='\u{a7ff}' | '\u{ab30}'..='\u{abbf}' | '\u{ff00}'..='\u{ffef}'
        | '\u{10280}'..='\u{1044f}' | '\u{1d400}'..='\u{1d7ff}')
}
