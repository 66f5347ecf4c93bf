//! The spellings a secret is looked for in. Escapes are not among them: those are
//! decoded ([`super::view`]), and what comes out is looked for.

use super::{is_maskable, view};

/// Characters a part of a secret has at least to be a secret of its own.
const PART_CHARS_MIN: usize = 8;

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

/// Words before a key that are no part of it, in a header's value.
const SCHEMES: [&str; 6] = ["bearer", "basic", "token", "apikey", "key", "bot"];

/// Every spelling of a secret, of its lines and of the parts that are secrets alone.
pub(super) fn of(secret: &str) -> Vec<Form> {
    let mut forms = of_value(secret);
    // A file ends with a line break, and what is read from it too.
    let bare = secret.trim();
    if bare != secret && is_maskable(bare) {
        forms.extend(of_value(bare));
    }
    // A key in a file of variables often has its line breaks written as `\n`.
    let plain = unescaped(secret);
    let lines = secret.lines().chain(plain.iter().flat_map(|it| it.lines()));
    let parts = [credentials(bare), password(bare), unpadded(bare)];
    let parts = parts.into_iter().flatten();
    for part in lines.map(str::trim).chain(parts) {
        // `-----BEGIN PRIVATE KEY-----` is no secret.
        let is_long = part.chars().count() >= PART_CHARS_MIN;
        if part != secret && is_long && !part.starts_with("-----") {
            forms.extend(of_value(part));
        }
    }
    forms.extend(
        password(bare)
            .and_then(unescaped)
            .into_iter()
            .flat_map(|decoded| match decoded.chars().count() >= PART_CHARS_MIN {
                true => of_value(&decoded),
                false => Vec::new(),
            }),
    );
    forms
}

/// What follows `Bearer` and the like.
fn credentials(secret: &str) -> Option<&str> {
    let (scheme, rest) = secret.split_once(' ')?;
    let is_scheme = SCHEMES.iter().any(|it| scheme.eq_ignore_ascii_case(it));
    is_scheme.then(|| rest.trim_start())
}

/// The password of an address, as in `postgres://user:password@host/`.
fn password(secret: &str) -> Option<&str> {
    let (_, rest) = secret.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

/// Base64 without its padding: the same key to a decoder.
fn unpadded(secret: &str) -> Option<&str> {
    let letters = secret.trim_end_matches('=');
    let is_padded = letters.len() != secret.len();
    (is_padded && letters.bytes().all(is_base64)).then_some(letters)
}

fn of_value(secret: &str) -> Vec<Form> {
    let bytes = secret.as_bytes();
    let mut forms = vec![
        Form::exact(secret),
        // Forms write `+` for a space, and read every `+` as one.
        Form::exact(secret.replace(' ', "+")),
        Form::exact(secret.replace('+', " ")),
        // UTF-16, which other systems write text in before they encode it.
        Form::exact(
            secret
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<_>>(),
        ),
        Form::exact(
            secret
                .encode_utf16()
                .flat_map(u16::to_be_bytes)
                .collect::<Vec<_>>(),
        ),
    ];
    // A mark at its end may be taken for the start of an escape with what follows.
    let head = secret.trim_end_matches(['\\', '%', '&']);
    if head != secret && is_maskable(head) {
        forms.push(Form::exact(head));
        forms.extend(of_decoded(head.as_bytes()));
    }
    if secret.chars().count() >= CASED_CHARS_MIN {
        // Names of hosts and headers are made lower case, methods upper.
        forms.push(Form::exact(secret.to_lowercase()));
        forms.push(Form::exact(secret.to_uppercase()));
    }
    forms.extend(of_decoded(bytes));
    forms.extend(of_bytes(bytes));
    forms.extend(of_key(bytes));
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

/// A secret that itself holds escapes reads differently once they are decoded, and once
/// more with every encoding around it, until none is left.
fn of_decoded(secret: &[u8]) -> Vec<Form> {
    let mut forms = Vec::new();
    let mut plain = secret.to_vec();
    while let Some(next) = view::unescaped(&plain).filter(|next| is_maskable_bytes(next)) {
        let spelt = |from: u8, to: u8| {
            let letter = |byte: &u8| if *byte == from { to } else { *byte };
            Form::exact(next.iter().map(letter).collect::<Vec<_>>())
        };
        forms.extend([spelt(b' ', b'+'), spelt(b'+', b' ')]);
        forms.push(Form::exact(next.as_slice()));
        // Each step must be shorter, or this would not end.
        if next.len() >= plain.len() {
            break;
        }
        plain = next;
    }
    forms
}

fn is_maskable_bytes(bytes: &[u8]) -> bool {
    is_maskable(&String::from_utf8_lossy(bytes))
}

/// A text with its escapes decoded once, if it has any and is a text afterwards.
fn unescaped(text: &str) -> Option<String> {
    String::from_utf8(view::unescaped(text.as_bytes())?).ok()
}

/// The bytes of a secret, if some writer of text has an escape for one of them.
pub(super) fn escaped_bytes(secret: &str) -> Option<usize> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (!secret.bytes().all(is_plain)).then_some(secret.len())
}

/// Letters from which a key is taken for the spelling of some bytes.
const KEY_LETTERS_MIN: usize = 16;

/// A key that itself looks like base64 or hex is also looked for as the bytes it stands
/// for, and in the other alphabet.
fn of_key(secret: &[u8]) -> Vec<Form> {
    let mut forms = Vec::new();
    let padding = secret
        .iter()
        .rev()
        .take_while(|byte| **byte == b'=')
        .count();
    let letters = secret.get(..secret.len() - padding).unwrap_or_default();
    if letters.len() < KEY_LETTERS_MIN || !letters.iter().all(|byte| is_base64(*byte)) {
        return forms;
    }
    let spelt = |from: &[u8; 2], to: &[u8; 2]| {
        let letter = |byte: &u8| match from.iter().position(|it| it == byte) {
            Some(index) => to.get(index).copied().unwrap_or(*byte),
            None => *byte,
        };
        Form::exact(letters.iter().map(letter).collect::<Vec<_>>())
    };
    forms.push(spelt(b"+/", b"-_"));
    forms.push(spelt(b"-_", b"+/"));
    let bytes = view::unbased(letters);
    forms.extend([hex(&bytes, LOWER), hex(&bytes, UPPER), Form::exact(bytes)]);
    let digits: Option<Vec<u8>> = letters.iter().map(|byte| view::hex(*byte)).collect();
    if let Some(digits) = digits.filter(|digits| padding == 0 && digits.len().is_multiple_of(2)) {
        let byte = |pair: &[u8]| pair.iter().fold(0, |byte, digit| byte << 4 | digit);
        let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
        forms.extend(of_base64(&bytes));
        forms.push(Form::exact(bytes));
    }
    forms
}

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

fn hex(bytes: &[u8], digits: &[u8; 16]) -> Form {
    let digit = |nibble: u8| digits.get(usize::from(nibble)).copied().unwrap_or_default();
    let pair = |byte: &u8| [digit(byte >> 4), digit(byte & 15)];
    Form::exact(bytes.iter().flat_map(pair).collect::<Vec<_>>())
}

/// Bytes as base64, alone or inside, and as hex.
fn of_bytes(bytes: &[u8]) -> Vec<Form> {
    let mut forms = of_base64(bytes);
    forms.extend([hex(bytes, LOWER), hex(bytes, UPPER)]);
    forms
}

fn of_base64(bytes: &[u8]) -> Vec<Form> {
    let inside = |alphabet| (0..3).filter_map(move |offset| base64_inside(bytes, offset, alphabet));
    inside(STANDARD).chain(inside(URL_SAFE)).collect()
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
    // Fewer letters stand in almost every text.
    (text.len() >= 4).then_some(Form { text, edge })
}
