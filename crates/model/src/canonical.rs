//! RFC 8785 canonical JSON: one spelling for one meaning, so that digests and
//! the audit chain do not depend on who wrote the text.

use serde::Serialize;
use serde_json::Value;

/// The value has no canonical form.
#[derive(Debug, thiserror::Error)]
#[error("the value has no canonical JSON form")]
pub struct CanonicalError(#[source] serde_json::Error);

/// The canonical bytes of a value.
pub fn to_bytes(value: &Value) -> Result<Vec<u8>, CanonicalError> {
    serde_json_canonicalizer::to_vec(value).map_err(CanonicalError)
}

/// The canonical text of anything that can be written as JSON, without building
/// a tree of it first.
pub fn to_text<T: Serialize>(value: &T) -> Result<String, CanonicalError> {
    serde_json_canonicalizer::to_string(value).map_err(CanonicalError)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(value: &Value, expected: &str) {
        let bytes = to_bytes(value).expect("canonical");
        assert_eq!(String::from_utf8(bytes).expect("text"), expected);
    }

    #[test]
    fn order_and_spelling_do_not_matter() {
        check(&json!({"b": 1, "a": 2}), r#"{"a":2,"b":1}"#);
        check(
            &json!({"n": 1.0, "m": 1e21, "z": -0.0}),
            r#"{"m":1e+21,"n":1,"z":0}"#,
        );
        check(&json!("€\u{f}\n\"\\"), "\"€\\u000f\\n\\\"\\\\\"");
    }

    /// Keys sort by UTF-16 code units, not by bytes: the pair of RFC 8785 3.2.3.
    #[test]
    fn keys_sort_as_utf16() {
        check(
            &json!({"\u{fb33}": 1, "\u{1f600}": 2}),
            "{\"\u{1f600}\":2,\"\u{fb33}\":1}",
        );
    }
}
