//! Options as ECMA-402 reads them: a word of a list, a whole number within
//! bounds, or nothing.

use serde_json::{Map, Value};

use crate::intl::range;
use crate::message::PowerFault;

/// The options of a call, and whose they are.
pub(super) struct Options<'ask> {
    map: Option<&'ask Map<String, Value>>,
    helper: &'ask str,
}

impl<'ask> Options<'ask> {
    pub(super) fn new(raw: Option<&'ask Value>, helper: &'ask str) -> Options<'ask> {
        Options {
            map: raw.and_then(Value::as_object),
            helper,
        }
    }

    pub(super) fn raw(&self, name: &str) -> Option<&'ask Value> {
        self.map?.get(name).filter(|value| !value.is_null())
    }

    /// One of the words; an empty list means any.
    pub(super) fn word(&self, name: &str, words: &[&str]) -> Result<Option<String>, PowerFault> {
        let text = match self.raw(name) {
            None => return Ok(None),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        match words.is_empty() || words.contains(&text.as_str()) {
            true => Ok(Some(text)),
            false => Err(range(
                self.helper,
                format!(
                    "Value {text} out of range for {} options property {name}",
                    self.helper
                ),
            )),
        }
    }

    pub(super) fn count(
        &self,
        name: &str,
        least: usize,
        most: usize,
    ) -> Result<Option<usize>, PowerFault> {
        let Some(raw) = self.raw(name) else {
            return Ok(None);
        };
        let number = match raw {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        // Bounds are small, so walking them is the exact way from a double.
        number
            .map(f64::floor)
            .and_then(|number| {
                (least..=most).find(|count| {
                    u32::try_from(*count).is_ok_and(|count| f64::from(count) == number)
                })
            })
            .map(Some)
            .ok_or_else(|| range(self.helper, format!("{name} value is out of range.")))
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        self.raw(name).map(|value| match value {
            Value::Bool(flag) => *flag,
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::String(text) => !text.is_empty(),
            Value::Null => false,
            Value::Array(_) | Value::Object(_) => true,
        })
    }
}
