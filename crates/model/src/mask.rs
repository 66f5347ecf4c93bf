//! Secrets never leave: every text on its way out goes through a [`Masker`].
//!
//! Masking is by value, never by name, and knows nothing about the text around a
//! value. Each secret is also looked for as JSON writes it, as a URL writes it and
//! as base64 writes it, alone or inside a longer text such as `user:secret`.
//! One automaton walks the text once, so the time is linear in the text whatever
//! the number of secrets.

use std::collections::BTreeSet;

use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};
use serde_json::{Map, Value};

use crate::limits;

mod forms;

/// What stands where a secret stood.
pub const MASK: &str = "***";

/// Something that went through a masker. Invariant 5: what leaves the engine is
/// `Masked`, and nothing but a [`Masker`] can make one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masked<T>(T);

impl<T> Masked<T> {
    /// For the maskers of this crate only.
    pub(crate) fn of(masked: T) -> Masked<T> {
        Masked(masked)
    }

    /// What is left after masking.
    #[must_use]
    pub fn get(&self) -> &T {
        &self.0
    }

    /// What is left after masking.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.0
    }
}

/// The secrets of one call, ready to be looked for.
pub struct Masker {
    automaton: Option<NFA>,
    forms: Vec<forms::Form>,
}

/// Says how much it looks for, not what.
impl std::fmt::Debug for Masker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Masker({} forms)", self.forms.len())
    }
}

/// The secrets cannot be masked, so nothing may leave.
#[derive(Debug, thiserror::Error)]
#[error("the secrets of this call are too many or too long to be masked")]
pub struct MaskError(#[source] Option<aho_corasick::BuildError>);

impl Masker {
    /// Collects secrets. Values shorter than four characters stay out, lest every
    /// `a` and `on` be starred.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Result<Masker, MaskError> {
        let secrets: BTreeSet<&str> = secrets
            .into_iter()
            .filter(|secret| secret.chars().count() >= limits::SECRET_CHARS_MIN)
            .collect();
        let bytes: usize = secrets.iter().map(|secret| secret.len()).sum();
        if bytes > limits::SECRETS_OF_CALL_BYTES_MAX {
            return Err(MaskError(None));
        }
        let forms: BTreeSet<_> = secrets.into_iter().flat_map(forms::of).collect();
        let forms: Vec<_> = forms.into_iter().collect();
        if forms.is_empty() {
            return Ok(Masker {
                automaton: None,
                forms,
            });
        }
        let automaton = NFA::builder()
            .match_kind(MatchKind::Standard)
            .build(forms.iter().map(|form| form.text.as_bytes()))
            .map_err(|error| MaskError(Some(error)))?;
        Ok(Masker {
            automaton: Some(automaton),
            forms,
        })
    }

    /// Nothing to look for.
    #[must_use]
    pub fn none() -> Masker {
        Masker {
            automaton: None,
            forms: Vec::new(),
        }
    }

    /// Masks a text.
    #[must_use]
    pub fn text(&self, text: &str) -> Masked<String> {
        Masked(self.mask(text))
    }

    /// Masks a text that nobody else needs.
    #[must_use]
    pub fn own_text(&self, text: String) -> Masked<String> {
        Masked(if self.automaton.is_none() {
            text
        } else {
            self.mask(&text)
        })
    }

    /// Masks every string of a value, keys included. A number that shows a secret
    /// becomes the mask.
    #[must_use]
    pub fn value(&self, value: Value) -> Masked<Value> {
        Masked(if self.automaton.is_none() {
            value
        } else {
            self.mask_value(value)
        })
    }

    fn mask_value(&self, value: Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value,
            Value::Number(number) => {
                let text = number.to_string();
                let masked = self.mask(&text);
                if masked == text {
                    Value::Number(number)
                } else {
                    Value::String(masked)
                }
            }
            Value::String(text) => Value::String(self.mask(&text)),
            Value::Array(items) => items
                .into_iter()
                .map(|item| self.mask_value(item))
                .collect(),
            Value::Object(members) => {
                let masked = members
                    .into_iter()
                    .map(|(key, value)| (self.mask(&key), self.mask_value(value)));
                Value::Object(masked.collect::<Map<_, _>>())
            }
        }
    }

    fn mask(&self, text: &str) -> String {
        let mut masked = String::with_capacity(text.len());
        let mut kept = 0;
        for (start, end) in self.found(text) {
            masked.push_str(text.get(kept..start).unwrap_or(""));
            masked.push_str(MASK);
            kept = end;
        }
        masked.push_str(text.get(kept..).unwrap_or(""));
        masked
    }

    /// Where secrets stand: every place any of them matches, overlapping places
    /// joined. Where `abcd` and `cdef` are secrets, `abcdef` goes as a whole;
    /// replacing one after the other would leave half of the second.
    fn found(&self, text: &str) -> Vec<(usize, usize)> {
        let Some(automaton) = &self.automaton else {
            return Vec::new();
        };
        let Ok(mut state) = automaton.start_state(Anchored::No) else {
            return vec![(0, text.len())];
        };
        let mut found: Vec<(usize, usize)> = Vec::new();
        for (index, byte) in text.bytes().enumerate() {
            state = automaton.next_state(Anchored::No, state, byte);
            if !automaton.is_special(state) || !automaton.is_match(state) {
                continue;
            }
            // The first pattern of a state is the longest that ends here, and
            // covers the others.
            let pattern = automaton.match_pattern(state, 0);
            let Some(form) = self.forms.get(pattern.as_usize()) else {
                continue;
            };
            let (start, end) = form.reach(text, index + 1);
            let mut start = start;
            while let Some((earlier, _)) = found.pop_if(|(_, earlier_end)| *earlier_end > start) {
                start = start.min(earlier);
            }
            found.push((start, end));
        }
        found
    }
}

#[cfg(test)]
mod tests;
