//! Secrets never leave: every text on its way out goes through a `Masker`.
//!
//! Masking is by value, never by name, and knows nothing about the text around a value.
//! A text is searched as it is and in decoded forms: escapes of URLs, of JSON and
//! JavaScript and of HTML, base64, base32, lists of bytes, and one inside the other
//! (`view`). What cannot be decoded without knowing where it starts is looked for as it
//! would be spelt (`forms`): base64 inside a longer text, hex. One automaton walks each
//! reading once, so the time is linear in the text whatever the number of secrets.
//!
//! Nothing is cut before it is masked: half a secret is no secret to the masker.
//! What must be short is `Masked` first; what is not masked yet is
//! `Unmasked` and cannot be read, let alone cut.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};
use serde_json::{Map, Value};

use crate::{limits, text};

use view::{Places, View};

mod forms;
mod view;

/// The replacement for a secret.
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

    /// The masked value.
    #[must_use]
    pub fn get(&self) -> &T {
        &self.0
    }

    /// The masked value.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl Masked<String> {
    /// The text on one line, its middle left out where it is longer.
    #[must_use]
    pub fn elided(&self, chars_max: usize) -> Masked<String> {
        Masked(text::elided(&self.0, chars_max))
    }
}

impl Masked<Value> {
    /// The value with every text in it on one line and elided.
    #[must_use]
    pub fn elided(self, chars_max: usize) -> Masked<Value> {
        Masked(elided(self.0, chars_max))
    }
}

fn elided(value: Value, chars_max: usize) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
        Value::String(text) => Value::String(text::elided(&text, chars_max)),
        Value::Array(items) => {
            let items = items.into_iter();
            items.map(|item| elided(item, chars_max)).collect()
        }
        Value::Object(members) => {
            let members = members.into_iter();
            let members = members.map(|(key, value)| (key, elided(value, chars_max)));
            Value::Object(members.collect())
        }
    }
}

/// Text that may hold a secret. It can only be read through a masker, so that no code
/// cuts it before.
#[derive(Clone, PartialEq, Eq)]
pub struct Unmasked(String);

impl Unmasked {
    /// Text from wherever, whole.
    pub fn new(text: impl Into<String>) -> Unmasked {
        Unmasked(text.into())
    }

    /// What may be read of it.
    #[must_use]
    pub fn masked(&self, masker: &Masker) -> Masked<String> {
        masker.text(&self.0)
    }
}

/// Says how much there is, not what.
impl fmt::Debug for Unmasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unmasked({} bytes)", self.0.len())
    }
}

/// The secrets of one call, ready to be looked for.
pub struct Masker {
    automaton: Option<NFA>,
    /// In the order of their texts.
    forms: Vec<forms::Form>,
    wanted: view::Wanted,
}

/// Says how much it looks for, not what.
impl fmt::Debug for Masker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masker({} forms)", self.forms.len())
    }
}

/// The secrets cannot be masked, so nothing may leave.
#[derive(Debug, thiserror::Error)]
#[error("the secrets of this call are too many or too long to be masked")]
pub struct MaskError(#[source] Option<aho_corasick::BuildError>);

/// Whether a value is long enough to be masked.
#[must_use]
pub fn is_maskable(secret: &str) -> bool {
    secret.chars().count() >= limits::SECRET_CHARS_MIN
}

impl Masker {
    /// Collects secrets, and the lines of those that have several. Values that are
    /// not [`is_maskable`] stay out: otherwise every `a` and `on` would be masked.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Result<Masker, MaskError> {
        let secrets: BTreeSet<&str> = secrets
            .into_iter()
            .filter(|secret| is_maskable(secret))
            .collect();
        let bytes: usize = secrets.iter().map(|secret| secret.len()).sum();
        if bytes > limits::SECRETS_OF_CALL_BYTES_MAX {
            return Err(MaskError(None));
        }
        let escaped = secrets.iter().filter_map(|it| forms::escaped_bytes(it));
        let escaped_min = escaped.min();
        let forms: BTreeSet<_> = secrets.into_iter().flat_map(forms::of).collect();
        let forms: Vec<_> = forms.into_iter().collect();
        if forms.is_empty() {
            return Ok(Masker::none());
        }
        // Standard, because every place counts. The other kinds report one of several
        // matches that overlap.
        let automaton = NFA::builder()
            .match_kind(MatchKind::Standard)
            .build(forms.iter().map(|form| &form.text))
            .map_err(|error| MaskError(Some(error)))?;
        Ok(Masker {
            automaton: Some(automaton),
            wanted: view::Wanted::of(forms.iter().map(|form| form.text.as_slice()), escaped_min),
            forms,
        })
    }

    /// Nothing to look for.
    #[must_use]
    pub fn none() -> Masker {
        Masker {
            automaton: None,
            forms: Vec::new(),
            wanted: view::Wanted::of(std::iter::empty(), None),
        }
    }

    /// Masks a text.
    #[must_use]
    pub fn text(&self, text: &str) -> Masked<String> {
        Masked(self.mask(text))
    }

    /// Masks a text that it owns, without a copy where nothing is found.
    #[must_use]
    pub fn own_text(&self, text: String) -> Masked<String> {
        Masked(if self.automaton.is_none() {
            text
        } else {
            self.mask(&text)
        })
    }

    /// Masks a text whose end was cut off before it came here, as the sandbox does
    /// with very long errors. What stands at its end and may be the beginning of a
    /// secret is masked too.
    #[must_use]
    pub fn cut_text(&self, text: &str) -> Masked<String> {
        let places = self.found(text.as_bytes(), true);
        Masked(replaced(text, &places))
    }

    /// How many bytes beside a cut are needed to know a secret that the cut goes through. Zero
    /// if there are no secrets.
    #[must_use]
    pub fn reach(&self) -> usize {
        self.wanted.near
    }

    /// The part of an output that lies in a range, masked. What stands beside the range tells
    /// a secret that goes over its edge; [`Masker::reach`] bytes of it are enough.
    #[must_use]
    pub fn part(&self, bytes: &[u8], range: Range<usize>) -> Masked<String> {
        // What is given may itself be cut, so the beginning of a secret at its end counts.
        let places = self.found(bytes, true).into_iter();
        let places = places.filter(|(start, end)| *start < range.end && *end > range.start);
        let mut masked = String::new();
        let mut kept = range.start;
        let keep = |masked: &mut String, from: usize, to: usize| {
            let plain = bytes.get(from..to).unwrap_or_default();
            masked.push_str(&String::from_utf8_lossy(plain));
        };
        for (start, end) in places {
            keep(&mut masked, kept, start);
            masked.push_str(MASK);
            kept = end;
        }
        keep(&mut masked, kept, range.end);
        Masked(masked)
    }

    /// Masks every string of a value, keys included. A number that shows a secret
    /// becomes the mask, and so does an array of bytes.
    #[must_use]
    pub fn value(&self, value: Value) -> Masked<Value> {
        Masked(if self.automaton.is_none() {
            value
        } else {
            self.mask_value(value)
        })
    }

    /// Whether some bytes show a secret.
    #[must_use]
    pub fn shows(&self, bytes: &[u8]) -> bool {
        !self.found(bytes, false).is_empty()
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
            Value::Array(items) if self.shows_bytes(items.iter()) => MASK.into(),
            // An array of bytes that went through JSON is an object.
            Value::Object(members)
                if members.contains_key("0") && self.shows_bytes(in_order(&members)) =>
            {
                MASK.into()
            }
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

    /// Whether numbers are bytes and show a secret.
    fn shows_bytes<'a>(&self, items: impl Iterator<Item = &'a Value>) -> bool {
        let byte = |item: &Value| item.as_u64().and_then(|number| u8::try_from(number).ok());
        // What is no byte is left out: the rest may still show a secret.
        let mut bytes = items.map(byte).peekable();
        let is_list = bytes.peek().is_some_and(Option::is_some);
        is_list && self.shows(&bytes.flatten().collect::<Vec<_>>())
    }

    fn mask(&self, text: &str) -> String {
        replaced(text, &self.found(text.as_bytes(), false))
    }

    /// Where secrets stand, however they are spelt: in order, overlapping places
    /// joined. Where `abcd` and `cdef` are secrets, `abcdef` goes as a whole;
    /// replacing one after the other would leave half of the second.
    fn found(&self, text: &[u8], is_cut: bool) -> Vec<(usize, usize)> {
        let Some(automaton) = &self.automaton else {
            return Vec::new();
        };
        let mut found = self.scanned(automaton, text);
        let views = view::of(text, &self.wanted, Places::Dropped);
        let readings = views.iter().map(View::bytes);
        let mut places: Vec<(usize, (usize, usize))> = readings
            .enumerate()
            .flat_map(|(index, bytes)| {
                let places = self.scanned(automaton, bytes).into_iter();
                let begun = self.begun(bytes).filter(|_| is_cut);
                let begun = begun.map(|start| (start, bytes.len()));
                places.chain(begun).map(move |place| (index, place))
            })
            .collect();
        if is_cut {
            found.extend(self.begun(text).map(|start| (start, text.len())));
        }
        if !places.is_empty() {
            // The same readings, with the way back.
            let views = view::of(text, &self.wanted, Places::Kept);
            let places = places.drain(..);
            found.extend(places.map(|(index, place)| view::in_text(&views, index, place)));
        }
        joined(found)
    }

    /// The places of one reading, in order.
    fn scanned(&self, automaton: &NFA, text: &[u8]) -> Vec<(usize, usize)> {
        let Ok(mut state) = automaton.start_state(Anchored::No) else {
            // Fails closed: what cannot be searched is masked whole.
            return vec![(0, text.len())];
        };
        let mut found: Vec<(usize, usize)> = Vec::new();
        for (index, byte) in text.iter().enumerate() {
            state = automaton.next_state(Anchored::No, state, *byte);
            // Matches are among the special states, and most states are not special.
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

    /// The place of a secret's beginning at the end of a reading. An escape may have
    /// been cut in the middle.
    fn begun(&self, text: &[u8]) -> Option<usize> {
        let whole = text.len();
        let ends = (0..=view::ESCAPE_BYTES_MAX.min(whole)).filter(|short| {
            let mark = text.get(whole - *short);
            *short == 0 || mark.is_some_and(|byte| view::is_mark(*byte))
        });
        let starts = ends.filter_map(|short| self.begins(text.get(..whole - short)?));
        starts.min()
    }

    /// The same at the very end; up to three characters are let go, as a whole secret
    /// of that length would be.
    fn begins(&self, text: &[u8]) -> Option<usize> {
        let longest = text.len().min(self.wanted.bytes_max.saturating_sub(1));
        let starts = (limits::SECRET_CHARS_MIN..=longest).rev();
        let mut starts = starts.map(|length| text.len() - length);
        starts.find(|start| {
            let tail = text.get(*start..).unwrap_or_default();
            let at = self
                .forms
                .partition_point(|form| form.text.as_slice() < tail);
            let next = self.forms.get(at);
            next.is_some_and(|form| form.text.starts_with(tail))
        })
    }
}

/// The members of an object whose keys are numbers, in the order of these.
fn in_order(members: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    (0..members.len()).map_while(|index| members.get(&index.to_string()))
}

/// Places in order, those that overlap made into one.
fn joined(mut places: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    places.sort_unstable();
    let mut joined: Vec<(usize, usize)> = Vec::with_capacity(places.len());
    for (start, end) in places {
        match joined.last_mut() {
            Some((_, last_end)) if start < *last_end => *last_end = end.max(*last_end),
            Some(_) | None => joined.push((start, end)),
        }
    }
    joined
}

fn replaced(text: &str, places: &[(usize, usize)]) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut kept = 0;
    for (start, end) in places {
        let (mut start, mut end) = ((*start).max(kept), (*end).min(text.len()));
        // Bytes of a form that is not UTF-8 may begin or end inside a character.
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        while !text.is_char_boundary(end) {
            end += 1;
        }
        masked.push_str(text.get(kept..start).unwrap_or(""));
        masked.push_str(MASK);
        kept = end.max(kept);
    }
    masked.push_str(text.get(kept..).unwrap_or(""));
    masked
}

#[cfg(test)]
mod tests;
