//! `${NAME}` in the values of static variables.
//!
//! A name is one or more of `A-Z` and `_`, then any of `A-Z`, `0-9` and `_`. Anything
//! else between the braces is literal text and stays unchanged.

use crate::document::environment::Environment;
use crate::limits;

/// A piece of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Text that means itself.
    Literal(&'a str),
    /// The name inside `${…}`.
    Name(&'a str),
}

/// How a value uses placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// No placeholder.
    Plain,
    /// Exactly one placeholder and nothing else.
    Anchored,
    /// Placeholders amid text, or several of them.
    Embedded,
}

/// A value with its placeholders filled in, and the secrets that went in.
#[derive(Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The text the tool sees.
    pub text: String,
    /// Each value that came from the environment.
    pub secrets: Vec<String>,
}

/// Lengths only: this is the one place where secrets and text meet.
impl std::fmt::Debug for Resolved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Resolved({} bytes, {} secrets)",
            self.text.len(),
            self.secrets.len()
        )
    }
}

/// Splits a value into its parts, in order.
#[must_use]
pub fn parts(value: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = value;
    let mut literal_end = 0;
    while let Some((before, after)) = rest
        .get(literal_end..)
        .and_then(|tail| tail.split_once("${"))
    {
        let open = literal_end + before.len();
        match after.split_once('}').filter(|(name, _)| is_name(name)) {
            Some((name, tail)) => {
                push_literal(&mut parts, rest.get(..open));
                parts.push(Part::Name(name));
                rest = tail;
                literal_end = 0;
            }
            // `${` without a name is literal; the search continues behind it.
            None => literal_end = open + 2,
        }
    }
    push_literal(&mut parts, Some(rest));
    parts
}

fn push_literal<'a>(parts: &mut Vec<Part<'a>>, text: Option<&'a str>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        parts.push(Part::Literal(text));
    }
}

/// Whether this is a name that can be between `${` and `}`.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| matches!(first, b'A'..=b'Z' | b'_'))
        && bytes.all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
}

/// The names a value needs, in order, repeats included.
pub fn names(value: &str) -> impl Iterator<Item = &str> {
    parts(value).into_iter().filter_map(|part| match part {
        Part::Name(name) => Some(name),
        Part::Literal(_) => None,
    })
}

/// How a value uses placeholders.
#[must_use]
pub fn form(value: &str) -> Form {
    match parts(value).as_slice() {
        [Part::Name(_)] => Form::Anchored,
        parts if parts.iter().any(|part| matches!(part, Part::Name(_))) => Form::Embedded,
        _ => Form::Plain,
    }
}

/// `${…}` that look meant as placeholders but are not: `${api_key}`.
#[must_use]
pub fn lookalikes(value: &str) -> Vec<&str> {
    value
        .split("${")
        .skip(1)
        .filter_map(|after| after.split_once('}').map(|(inside, _)| inside))
        .filter(|inside| {
            !is_name(inside) && is_name(&inside.to_ascii_uppercase().replace('-', "_"))
        })
        .collect()
}

/// Fills every placeholder in. Names that are unset, empty or blank come back as the
/// error: a half-filled value is never used.
pub fn resolve(value: &str, environment: &Environment) -> Result<Resolved, Vec<String>> {
    let mut resolved = Resolved {
        text: String::with_capacity(value.len()),
        secrets: Vec::new(),
    };
    let mut missing = Vec::new();
    for part in parts(value) {
        match part {
            Part::Literal(text) => resolved.text.push_str(text),
            Part::Name(name) => match environment.get(name) {
                Some(secret) if secret.len() <= limits::SECRET_BYTES_MAX => {
                    resolved.text.push_str(secret);
                    resolved.secrets.push(secret.to_owned());
                }
                Some(_) | None => missing.push(name.to_owned()),
            },
        }
    }
    if missing.is_empty() {
        Ok(resolved)
    } else {
        Err(missing)
    }
}

#[cfg(test)]
mod tests;
