//! The arguments of one call: a JSON array as the script wrote them, `null` for
//! what it left out.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::files::refusal::PathRefusal;

/// The arguments of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileArguments<'a> {
    values: &'a [Value],
}

/// The last argument of some functions: an object, or nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'a> {
    values: Option<&'a Map<String, Value>>,
}

impl<'a> FileArguments<'a> {
    /// An array; nothing at all is an empty one.
    pub(crate) fn new(raw_arguments: &'a Value) -> Result<FileArguments<'a>, PathRefusal> {
        match raw_arguments {
            Value::Array(values) => Ok(FileArguments { values }),
            Value::Null => Ok(FileArguments { values: &[] }),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                Err(wrong("the arguments are not a list"))
            }
        }
    }

    /// A path, not yet looked at; empty when it was left out.
    pub(crate) fn raw_path(self, index: usize) -> Result<&'a str, PathRefusal> {
        self.raw_path_or(index, "")
    }

    /// A path, not yet looked at.
    pub(crate) fn raw_path_or(
        self,
        index: usize,
        default: &'a str,
    ) -> Result<&'a str, PathRefusal> {
        match self.get(index) {
            Value::Null => Ok(default),
            Value::String(path) => Ok(path),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => Err(
                PathRefusal::invalid("invalid-path", "the path is not a text"),
            ),
        }
    }

    /// A text. Numbers and booleans are taken as JavaScript prints them.
    pub(crate) fn text(self, index: usize) -> Result<Option<Cow<'a, str>>, PathRefusal> {
        text(self.get(index))
    }

    /// A whole number.
    pub(crate) fn whole(self, index: usize) -> Result<Option<i64>, PathRefusal> {
        whole(self.get(index))
    }

    /// Whether JavaScript would call it true.
    pub(crate) fn flag(self, index: usize) -> bool {
        is_truthy(self.get(index))
    }

    /// An object of options.
    pub(crate) fn options(self, index: usize) -> Result<Options<'a>, PathRefusal> {
        match self.get(index) {
            Value::Null => Ok(Options { values: None }),
            Value::Object(values) => Ok(Options {
                values: Some(values),
            }),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(wrong("the options are not an object"))
            }
        }
    }

    fn get(self, index: usize) -> &'a Value {
        self.values.get(index).unwrap_or(&Value::Null)
    }
}

impl<'a> Options<'a> {
    /// Whether there are none.
    pub(crate) fn is_absent(self) -> bool {
        self.values.is_none()
    }

    /// Whether JavaScript would call it true.
    pub(crate) fn flag(self, name: &str) -> bool {
        is_truthy(self.get(name))
    }

    /// A text.
    pub(crate) fn text(self, name: &str) -> Result<Option<Cow<'a, str>>, PathRefusal> {
        text(self.get(name))
    }

    /// A bound: at most `count_max`, and that if it is absent, zero or less.
    pub(crate) fn bound(self, name: &str, count_max: usize) -> Result<usize, PathRefusal> {
        let wanted = whole(self.get(name))?.unwrap_or(0);
        let wanted = usize::try_from(wanted).unwrap_or(0);
        Ok(match wanted {
            0 => count_max,
            wanted => wanted.min(count_max),
        })
    }

    /// Whatever it is; `null` when absent.
    pub(crate) fn get(self, name: &str) -> &'a Value {
        let value = self.values.and_then(|values| values.get(name));
        value.unwrap_or(&Value::Null)
    }
}

/// A whole number; fractions are cut off, what is too large stays as large as
/// can be.
pub(crate) fn whole(value: &Value) -> Result<Option<i64>, PathRefusal> {
    match value {
        Value::Null => Ok(None),
        Value::Number(number) => Ok(number.as_i64().or_else(|| number.as_f64().map(saturated))),
        Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            Err(wrong("a number is expected"))
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "`as` cuts off the fraction and saturates, which is what is wanted"
)]
fn saturated(number: f64) -> i64 {
    number as i64
}

fn text(value: &Value) -> Result<Option<Cow<'_, str>>, PathRefusal> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(Cow::Borrowed(text))),
        Value::Bool(value) => Ok(Some(Cow::Owned(value.to_string()))),
        Value::Number(number) => Ok(Some(Cow::Owned(number.to_string()))),
        Value::Array(_) | Value::Object(_) => Err(wrong("a text is expected")),
    }
}

fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64().is_some_and(|number| number != 0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

fn wrong(what: &str) -> PathRefusal {
    PathRefusal::invalid("invalid-arguments", what)
}
