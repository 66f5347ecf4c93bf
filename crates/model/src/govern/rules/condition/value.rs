//! Values of conditions, and how they compare.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::io;

use serde::Serialize;
use serde_json::{Map, Value as Json};

/// A value. Arguments are looked at where they are, not copied.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    /// Wide enough for every integer of JSON; arithmetic stays within 64 bits.
    Int(i128),
    /// Finite, always.
    Double(f64),
    Text(Cow<'a, str>),
    List(&'a [Json]),
    Words(&'a [String]),
    Made(Vec<Value<'a>>),
    Object(&'a Map<String, Json>),
}

impl<'a> Value<'a> {
    pub(super) fn from_json(json: &'a Json) -> Value<'a> {
        match json {
            Json::Null => Value::Null,
            Json::Bool(is) => Value::Bool(*is),
            Json::String(text) => Value::Text(Cow::Borrowed(text)),
            Json::Array(items) => Value::List(items),
            Json::Object(members) => Value::Object(members),
            Json::Number(number) => {
                let whole = number.as_i64().map(i128::from);
                // Above the range of `i64` a number is still whole.
                let whole = whole.or_else(|| number.as_u64().map(i128::from));
                match (whole, number.as_f64()) {
                    (Some(whole), _) => Value::Int(whole),
                    (None, Some(double)) if double.is_finite() => Value::Double(double),
                    (None, _) => Value::Null,
                }
            }
        }
    }

    /// For people.
    pub(super) fn noun(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Int(_) | Value::Double(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) | Value::Words(_) | Value::Made(_) => "a list",
            Value::Object(_) => "an object",
        }
    }

    /// The members of a list, or the names of an object's fields.
    pub(super) fn len(&self) -> Option<usize> {
        match self {
            Value::List(items) => Some(items.len()),
            Value::Words(items) => Some(items.len()),
            Value::Made(items) => Some(items.len()),
            Value::Object(members) => Some(members.len()),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::Text(_) => {
                None
            }
        }
    }

    /// One after the other, as [`Value::len`] counts.
    pub(super) fn members(&self) -> Box<dyn Iterator<Item = Value<'a>> + '_> {
        match self {
            Value::List(items) => Box::new(items.iter().map(Value::from_json)),
            Value::Words(items) => {
                Box::new(items.iter().map(|word| Value::Text(Cow::Borrowed(word))))
            }
            Value::Made(items) => Box::new(items.iter().cloned()),
            Value::Object(members) => {
                Box::new(members.keys().map(|key| Value::Text(Cow::Borrowed(key))))
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::Text(_) => {
                Box::new(std::iter::empty())
            }
        }
    }

    /// One member of a list, by its place, in one step.
    pub(super) fn member(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Value::List(items) => items.get(index).map(Value::from_json),
            Value::Words(items) => items
                .get(index)
                .map(|word| Value::Text(Cow::Borrowed(word))),
            Value::Made(items) => items.get(index).cloned(),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Double(_)
            | Value::Text(_)
            | Value::Object(_) => None,
        }
    }

    /// The bytes of its JSON without spaces.
    pub(super) fn json_bytes(&self) -> usize {
        let between = |count: usize| count.saturating_sub(1);
        let text = |text: &str| bytes_of(&text);
        match self {
            Value::Null => 4,
            Value::Bool(is) => bytes_of(is),
            Value::Int(number) => bytes_of(number),
            Value::Double(number) => bytes_of(number),
            Value::Text(written) => text(written),
            Value::List(items) => bytes_of(items),
            Value::Words(items) => bytes_of(items),
            Value::Made(items) => {
                let inner: usize = items.iter().map(Value::json_bytes).sum();
                inner + between(items.len()) + 2
            }
            Value::Object(members) => bytes_of(members),
        }
    }

    /// The bytes that copying it takes.
    pub(super) fn weight(&self) -> usize {
        match self {
            Value::Text(Cow::Owned(text)) => text.len(),
            Value::Made(items) => items.iter().map(|item| 16 + item.weight()).sum(),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Double(_)
            | Value::Text(Cow::Borrowed(_))
            | Value::List(_)
            | Value::Words(_)
            | Value::Object(_) => 0,
        }
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self, Value::List(_) | Value::Words(_) | Value::Made(_))
    }
}

/// The order of two numbers or two texts; nothing for any other pair.
pub(super) fn order(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
        (Value::Int(left), Value::Double(right)) => Some(whole_against(*left, *right)),
        (Value::Double(left), Value::Int(right)) => Some(whole_against(*right, *left).reverse()),
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

/// Exact, where turning one into the other would round: 2⁵³ + 1 is more than 2⁵³.
fn whole_against(whole: i128, double: f64) -> Ordering {
    // Beyond every integer of JSON, and well within `i128`, so that the cast below is
    // exact.
    if double >= 1e30 {
        return Ordering::Less;
    }
    if double <= -1e30 {
        return Ordering::Greater;
    }
    #[expect(clippy::cast_possible_truncation, reason = "within ±1e30, and whole")]
    let floor = double.floor() as i128;
    whole.cmp(&floor).then(if double.fract() == 0.0 {
        Ordering::Equal
    } else {
        Ordering::Less
    })
}

/// The bytes something takes as JSON, without keeping them.
fn bytes_of(value: &(impl Serialize + ?Sized)) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        // Longer than anything, so that a bound on the length applies.
        Err(_) => usize::MAX,
    }
}
