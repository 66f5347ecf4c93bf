//! The spellings a secret can leave in.

use std::fmt::Write as _;

/// One spelling to look for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    /// The spelling.
    pub(super) text: String,
    /// How far around a match to mask.
    edge: Edge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    /// The spelling is the secret, no more and no less.
    Exact,
    /// The spelling is the inside of a base64 text; the letter before or after
    /// it still holds a few of the secret's bits.
    Base64 { before: bool, after: bool },
}

impl Form {
    /// The place to mask for a match that ends at `end`.
    pub(super) fn reach(&self, text: &str, end: usize) -> (usize, usize) {
        let start = end - self.text.len();
        match self.edge {
            Edge::Exact => (start, end),
            Edge::Base64 { before, after } => {
                let letter = |index: Option<usize>| {
                    index
                        .and_then(|index| text.as_bytes().get(index))
                        .is_some_and(|byte| is_base64(*byte))
                };
                let before = before && letter(start.checked_sub(1));
                let after = after && letter(Some(end));
                (start - usize::from(before), end + usize::from(after))
            }
        }
    }
}

/// Every spelling of a secret.
pub(super) fn of(secret: &str) -> Vec<Form> {
    let exact = |text: String| Form {
        text,
        edge: Edge::Exact,
    };
    let mut forms = vec![
        exact(secret.to_owned()),
        exact(json(secret, Json::Plain)),
        exact(json(secret, Json::Ascii)),
        exact(json(secret, Json::Slash)),
        exact(url(secret, Hex::Upper, Space::Percent)),
        exact(url(secret, Hex::Lower, Space::Percent)),
        exact(url(secret, Hex::Upper, Space::Plus)),
        exact(url(secret, Hex::Lower, Space::Plus)),
        exact(uri(secret)),
    ];
    for alphabet in [STANDARD, URL_SAFE] {
        forms
            .extend((0..3).filter_map(|offset| base64_inside(secret.as_bytes(), offset, alphabet)));
    }
    forms
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Json {
    /// As `JSON.stringify` and `serde_json` write it.
    Plain,
    /// As writers do that keep to ASCII.
    Ascii,
    /// As writers do that escape the slash.
    Slash,
}

fn json(secret: &str, how: Json) -> String {
    let mut text = String::with_capacity(secret.len());
    for character in secret.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '/' if how == Json::Slash => text.push_str("\\/"),
            other if u32::from(other) < 0x20 || how == Json::Ascii && !other.is_ascii() => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
            plain => text.push(plain),
        }
    }
    text
}

#[derive(Clone, Copy)]
enum Hex {
    Upper,
    Lower,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Percent,
    Plus,
}

/// A URL component: everything but letters, digits and `-_.` (and, where forms
/// write `+` for a space, `*`) is escaped. `encodeURIComponent` leaves a few
/// more; [`uri`] is that.
fn url(secret: &str, hex: Hex, space: Space) -> String {
    escape(secret, hex, |byte| match byte {
        b' ' if space == Space::Plus => Some('+'),
        b'*' if space == Space::Plus => Some('*'),
        b'~' if space == Space::Percent => Some('~'),
        _ => None,
    })
}

/// What `encodeURIComponent` writes.
fn uri(secret: &str) -> String {
    escape(secret, Hex::Upper, |byte| {
        b"!~*'()".contains(&byte).then_some(char::from(byte))
    })
}

fn escape(secret: &str, hex: Hex, keep: impl Fn(u8) -> Option<char>) -> String {
    let mut text = String::with_capacity(secret.len());
    for byte in secret.bytes() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        match (keep(byte).or(plain.then_some(char::from(byte))), hex) {
            (Some(kept), _) => text.push(kept),
            (None, Hex::Upper) => {
                let _ = write!(text, "%{byte:02X}");
            }
            (None, Hex::Lower) => {
                let _ = write!(text, "%{byte:02x}");
            }
        }
    }
    text
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// The letters of base64 that depend on the secret alone when it starts `offset`
/// bytes into a group of three: the same whatever stands before and after it.
fn base64_inside(secret: &[u8], offset: usize, alphabet: &[u8; 64]) -> Option<Form> {
    let bit = |index: usize| {
        let byte = secret.get((index / 8).checked_sub(offset)?)?;
        Some(byte >> (7 - index % 8) & 1)
    };
    let letter = |index: usize| {
        let value = (index * 6..index * 6 + 6)
            .try_fold(0u8, |value, index| Some(value << 1 | bit(index)?))?;
        alphabet.get(usize::from(value)).copied().map(char::from)
    };
    let letters = (secret.len() + offset) * 8 / 6 + 1;
    let text: String = (0..letters).filter_map(letter).collect();
    let edge = Edge::Base64 {
        before: offset > 0,
        after: !(secret.len() + offset).is_multiple_of(3),
    };
    (text.len() >= 4).then_some(Form { text, edge })
}
