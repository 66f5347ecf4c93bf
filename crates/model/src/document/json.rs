//! Strict JSON (RFC 8259) that keeps the place of every value.
//!
//! Differs from `serde_json` in three ways we need: every value knows its place in the
//! text, numbers keep the digits they were written with, and a key given twice is
//! noticed. It accepts the same texts; a property test holds the two against each
//! other.

use std::fmt::Write as _;

use crate::limits;

mod parser;
pub use parser::{JsonFault, parse};

/// The place of a value, in bytes from the start of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its place.
    pub span: Span,
    /// What it is.
    pub kind: JsonKind,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, in the digits it was written with.
    Number(String),
    /// A string, unescaped.
    String(String),
    /// An array.
    Array(Vec<Node>),
    /// An object, in the order it was written.
    Object(Vec<Member>),
}

/// One key and its value.
#[derive(Clone, Debug)]
pub struct Member {
    /// The key.
    pub key: String,
    /// The key's place.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

/// Two values are the same if they mean the same; places do not count.
impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.kind == other.kind
    }
}

impl PartialEq for Member {
    fn eq(&self, other: &Member) -> bool {
        self.key == other.key && self.value == other.value
    }
}

impl Node {
    /// A value without a place.
    #[must_use]
    pub fn new(kind: JsonKind) -> Node {
        Node {
            span: Span::default(),
            kind,
        }
    }

    /// The members, if it is an object.
    #[must_use]
    pub fn members(&self) -> Option<&[Member]> {
        match &self.kind {
            JsonKind::Object(members) => Some(members),
            JsonKind::Null
            | JsonKind::Bool(_)
            | JsonKind::Number(_)
            | JsonKind::String(_)
            | JsonKind::Array(_) => None,
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            JsonKind::String(text) => Some(text),
            JsonKind::Null
            | JsonKind::Bool(_)
            | JsonKind::Number(_)
            | JsonKind::Array(_)
            | JsonKind::Object(_) => None,
        }
    }

    /// The value of a key, if it is an object that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.members()?
            .iter()
            .find(|member| member.key == key)
            .map(|member| &member.value)
    }

    /// The element at an index, if it is an array that long.
    #[must_use]
    pub fn at(&self, index: usize) -> Option<&Node> {
        match &self.kind {
            JsonKind::Array(items) => items.get(index),
            JsonKind::Null
            | JsonKind::Bool(_)
            | JsonKind::Number(_)
            | JsonKind::String(_)
            | JsonKind::Object(_) => None,
        }
    }

    /// Sets a member of an object, in its old place or else at the end.
    pub fn set(&mut self, key: &str, kind: JsonKind) {
        if let JsonKind::Object(members) = &mut self.kind {
            match members.iter_mut().find(|member| member.key == key) {
                Some(member) => member.value = Node::new(kind),
                None => members.push(Member {
                    key: key.to_owned(),
                    key_span: Span::default(),
                    value: Node::new(kind),
                }),
            }
        }
    }

    /// The place of a pointer such as `params[2].testValue`, or of its nearest
    /// ancestor that exists.
    #[must_use]
    pub fn locate(&self, pointer: &str) -> Span {
        let mut node = self;
        for segment in pointer
            .split(['.', '['])
            .filter(|segment| !segment.is_empty())
        {
            let next = match segment.strip_suffix(']') {
                Some(index) => index.parse().ok().and_then(|index| node.at(index)),
                None => node.get(segment),
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node.span
    }

    /// What kind of value it is, in words.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        match &self.kind {
            JsonKind::Null => "null",
            JsonKind::Bool(_) => "a boolean",
            JsonKind::Number(_) => "a number",
            JsonKind::String(_) => "a string",
            JsonKind::Array(_) => "an array",
            JsonKind::Object(_) => "an object",
        }
    }

    /// The same value for `serde`. Numbers outside its range become the nearest it has,
    /// so use this to inspect, never to save.
    #[must_use]
    pub fn to_value(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.kind {
            JsonKind::Null => Value::Null,
            JsonKind::Bool(value) => Value::Bool(*value),
            JsonKind::Number(text) => text.parse().map_or(Value::Null, Value::Number),
            JsonKind::String(text) => Value::String(text.clone()),
            JsonKind::Array(items) => items.iter().map(Node::to_value).collect(),
            JsonKind::Object(members) => members
                .iter()
                .map(|member| (member.key.clone(), member.value.to_value()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }

    /// JSON text, two spaces a level, field order and digits kept, ending with a
    /// newline. Parsing it again gives an equal node.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, 0);
        text.push('\n');
        text
    }

    fn write(&self, text: &mut String, depth: usize) {
        match &self.kind {
            JsonKind::Null => text.push_str("null"),
            JsonKind::Bool(true) => text.push_str("true"),
            JsonKind::Bool(false) => text.push_str("false"),
            JsonKind::Number(digits) => text.push_str(digits),
            JsonKind::String(value) => write_string(text, value),
            JsonKind::Array(items) if items.is_empty() => text.push_str("[]"),
            JsonKind::Object(members) if members.is_empty() => text.push_str("{}"),
            JsonKind::Array(items) => {
                text.push('[');
                for (index, item) in items.iter().enumerate() {
                    start_line(text, index, depth + 1);
                    item.write(text, depth + 1);
                }
                end_line(text, depth);
                text.push(']');
            }
            JsonKind::Object(members) => {
                text.push('{');
                for (index, member) in members.iter().enumerate() {
                    start_line(text, index, depth + 1);
                    write_string(text, &member.key);
                    text.push_str(": ");
                    member.value.write(text, depth + 1);
                }
                end_line(text, depth);
                text.push('}');
            }
        }
    }
}

fn start_line(text: &mut String, index: usize, depth: usize) {
    if index > 0 {
        text.push(',');
    }
    end_line(text, depth);
}

fn end_line(text: &mut String, depth: usize) {
    text.push('\n');
    for _ in 0..depth.min(limits::DOCUMENT_DEPTH_MAX) {
        text.push_str("  ");
    }
}

fn write_string(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            control if u32::from(control) < 0x20 => {
                let _ = write!(text, "\\u{:04x}", u32::from(control));
            }
            plain => text.push(plain),
        }
    }
    text.push('"');
}

/// A place as a person counts it, both from 1; columns are characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// Finds lines and columns in a text.
#[derive(Debug)]
pub struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Reads where the lines start.
    #[must_use]
    pub fn new(text: &'a str) -> Lines<'a> {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0)
            .chain(breaks.map(|(index, _)| index + 1))
            .collect();
        Lines { text, starts }
    }

    /// The line and column of a byte.
    #[must_use]
    pub fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let column = self
            .text
            .get(start..offset)
            .map_or(0, |before| before.chars().count());
        Position {
            line,
            column: column + 1,
        }
    }

    /// A line's text, counted from 1, without its end.
    #[must_use]
    pub fn line(&self, line: usize) -> &'a str {
        let start = line
            .checked_sub(1)
            .and_then(|index| self.starts.get(index))
            .copied();
        let rest = start.and_then(|start| self.text.get(start..)).unwrap_or("");
        rest.split('\n').next().unwrap_or("").trim_end_matches('\r')
    }
}

#[cfg(test)]
mod tests;
