//! What differs between two JSON values, place by place, in words a person can read.

use model::{limits, text};
use serde_json::Value;

/// One place that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonChange {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What was there, as JSON with hidden characters shown; nothing if it is new.
    pub before: Option<String>,
    /// What is there; nothing if it is gone.
    pub after: Option<String>,
}

impl JsonChange {
    /// `/path: "a" → "b"`.
    #[must_use]
    pub fn words(&self) -> String {
        let place = text::one_line(&self.pointer);
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => format!("{place}: {before} → {after}"),
            (None, Some(after)) => format!("{place}: {after} was added"),
            (Some(before), None) => format!("{place}: {before} was removed"),
            (None, None) => place,
        }
    }
}

/// Every place that differs, in the order of the first value, at most
/// [`limits::ARGUMENT_CHANGES_MAX`].
#[must_use]
pub fn between(before: &Value, after: &Value) -> Vec<JsonChange> {
    let mut found = Vec::new();
    compare("", Some(before), Some(after), &mut found);
    found
}

fn compare(
    pointer: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<JsonChange>,
) {
    if before == after || found.len() >= limits::ARGUMENT_CHANGES_MAX {
        return;
    }
    match (before, after) {
        (Some(Value::Object(one)), Some(Value::Object(two))) => {
            let new = two.keys().filter(|name| !one.contains_key(*name));
            for name in one.keys().chain(new) {
                let place = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                compare(&place, one.get(name), two.get(name), found);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(two))) => {
            for index in 0..one.len().max(two.len()) {
                compare(
                    &format!("{pointer}/{index}"),
                    one.get(index),
                    two.get(index),
                    found,
                );
            }
        }
        (before, after) => found.push(JsonChange {
            pointer: pointer.to_owned(),
            before: before.map(shown),
            after: after.map(shown),
        }),
    }
}

fn shown(value: &Value) -> String {
    text::json_line(&value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_place_is_named_once() {
        let was = json!({"a": 1, "b": {"c": [1, 2]}, "d": "x", "e/f": null});
        let is = json!({"a": 1, "b": {"c": [1, 3, 4]}, "e/f": 0, "g": "\u{202e}"});
        let words: Vec<_> = between(&was, &is).iter().map(JsonChange::words).collect();
        assert_eq!(
            words,
            [
                "/b/c/1: 2 → 3",
                "/b/c/2: 4 was added",
                "/d: \"x\" was removed",
                "/e~1f: null → 0",
                "/g: \"\\u202e\" was added",
            ]
        );
        assert_eq!(between(&was, &was), []);
    }

    #[test]
    fn there_are_only_so_many() {
        let was = Value::from(vec![0; 10_000]);
        let is = Value::from(vec![1; 10_000]);
        assert_eq!(between(&was, &is).len(), limits::ARGUMENT_CHANGES_MAX);
    }
}
