//! The spellings a secret is looked for in. Escapes are not among them: those are
//! decoded ([`super::view`]), and what comes out is looked for.

use super::{is_maskable, view};

/// Characters a line of a secret has at least to be a secret of its own.
const LINE_CHARS_MIN: usize = 8;

/// Characters a secret has at least to be looked for in another case too.
const CASED_CHARS_MIN: usize = 8;

/// One spelling to look for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    /// The spelling; not always UTF-8, for decoded text is not either.
    pub(super) text: Vec<u8>,
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
    fn exact(text: impl Into<Vec<u8>>) -> Form {
        Form {
            text: text.into(),
            edge: Edge::Exact,
        }
    }

    /// The place to mask for a match that ends at `end`.
    pub(super) fn reach(&self, text: &[u8], end: usize) -> (usize, usize) {
        let start = end - self.text.len();
        match self.edge {
            Edge::Exact => (start, end),
            Edge::Base64 { before, after } => {
                let letter = |index: Option<usize>| {
                    let byte = index.and_then(|index| text.get(index));
                    byte.is_some_and(|byte| is_base64(*byte))
                };
                let before = before && letter(start.checked_sub(1));
                let after = after && letter(Some(end));
                (start - usize::from(before), end + usize::from(after))
            }
        }
    }
}

/// Every spelling of a secret and of its lines.
pub(super) fn of(secret: &str) -> Vec<Form> {
    let mut forms = of_value(secret);
    // A key in a file of variables often has its line breaks written as `\n`.
    let plain = view::unescaped(secret);
    let lines = secret.lines().chain(plain.iter().flat_map(|it| it.lines()));
    for line in lines.map(str::trim) {
        // `-----BEGIN PRIVATE KEY-----` is nobody's secret.
        let is_long = line.chars().count() >= LINE_CHARS_MIN;
        if line != secret && is_long && !line.starts_with("-----") {
            forms.extend(of_value(line));
        }
    }
    forms
}

fn of_value(secret: &str) -> Vec<Form> {
    let bytes = secret.as_bytes();
    let mut forms = vec![
        Form::exact(secret),
        // Forms write `+` for a space.
        Form::exact(secret.replace(' ', "+")),
    ];
    // A backslash at its end may be taken for the start of an escape with what follows.
    let head = secret.trim_end_matches('\\');
    if head != secret && is_maskable(head) {
        forms.push(Form::exact(head));
    }
    if secret.chars().count() >= CASED_CHARS_MIN {
        // Names of hosts and headers are made lower case, methods upper.
        forms.push(Form::exact(secret.to_lowercase()));
        forms.push(Form::exact(secret.to_uppercase()));
    }
    // A secret that itself holds escapes reads differently once they are decoded.
    let mut plain = secret.to_owned();
    while let Some(next) = view::unescaped(&plain).filter(|next| is_maskable(next)) {
        forms.push(Form::exact(next.as_str()));
        if next.len() >= plain.len() {
            break;
        }
        plain = next;
    }
    forms.extend(of_bytes(bytes));
    if !secret.is_ascii() {
        // Its bytes taken for characters, as `unescape(encodeURIComponent(s))` does.
        let taken: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        forms.push(Form::exact(taken));
        // One byte for each character, as `btoa` and headers have it.
        let latin1: Option<Vec<u8>> = secret
            .chars()
            .map(|character| u8::try_from(u32::from(character)).ok())
            .collect();
        if let Some(latin1) = latin1 {
            forms.extend(of_bytes(&latin1));
            forms.push(Form::exact(latin1));
        }
    }
    forms
}

/// Bytes as base64, alone or inside, and as hex.
fn of_bytes(bytes: &[u8]) -> Vec<Form> {
    let hex = |digits: &[u8; 16]| {
        let digit = |nibble: u8| digits.get(usize::from(nibble)).copied().unwrap_or_default();
        let pairs = bytes.iter();
        let hex: Vec<u8> = pairs
            .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
            .collect();
        Form::exact(hex)
    };
    let mut forms = vec![hex(b"0123456789abcdef"), hex(b"0123456789ABCDEF")];
    for alphabet in [STANDARD, URL_SAFE] {
        forms.extend((0..3).filter_map(|offset| base64_inside(bytes, offset, alphabet)));
    }
    forms
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(super) fn is_base64(byte: u8) -> bool {
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
        alphabet.get(usize::from(value)).copied()
    };
    let letters = (secret.len() + offset) * 8 / 6 + 1;
    let text: Vec<u8> = (0..letters).filter_map(letter).collect();
    let edge = Edge::Base64 {
        before: offset > 0,
        after: !(secret.len() + offset).is_multiple_of(3),
    };
    (text.len() >= 4).then_some(Form { text, edge })
}
