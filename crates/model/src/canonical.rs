//! RFC 8785 canonical JSON: one spelling for one meaning, so that digests and
//! the audit chain do not depend on who wrote the text.
//!
//! Whole numbers that no double holds are the exception: RFC 8785 rounds them, and two
//! calls with different numbers would have one digest. They are written digit by digit.

mod object;

use std::cmp::Ordering;

use serde_json::Value;

pub(crate) use object::Object;

/// The value has no canonical form.
#[derive(Debug, thiserror::Error)]
#[error("the value has no canonical JSON form")]
pub struct CanonicalError(#[source] serde_json::Error);

/// The canonical bytes of a value.
pub fn to_bytes(value: &Value) -> Result<Vec<u8>, CanonicalError> {
    let mut out = Vec::new();
    write(value, &mut out)?;
    Ok(out)
}

/// Appends the canonical bytes of a value. Keys are sorted where they stand and whole
/// numbers are written as they are; fractions are written as RFC 8785 spells them.
pub fn write(value: &Value, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => write_integer(number, out)?,
            (None, Some(_)) => serde_json::to_writer(out, value).map_err(CanonicalError)?,
            (None, None) => {
                let spelled = serde_json_canonicalizer::to_vec(value).map_err(CanonicalError)?;
                out.extend_from_slice(&spelled);
            }
        },
        Value::String(text) => write_text(text, out)?,
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out)?;
            }
            out.push(b']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by(|(a, _), (b, _)| by_utf16(a, b));
            out.push(b'{');
            for (index, (key, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_text(key, out)?;
                out.push(b':');
                write(value, out)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

/// Appends a string. Most need no escaping.
pub fn write_text(text: &str, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
    let is_plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    if !text.bytes().all(is_plain) {
        // serde_json escapes as RFC 8785 wants it.
        return serde_json::to_writer(out, text).map_err(CanonicalError);
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
    Ok(())
}

/// Appends a whole number.
pub fn write_integer(number: i64, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
    serde_json::to_writer(out, &number).map_err(CanonicalError)
}

/// RFC 8785 sorts by UTF-16 code units. For ASCII that is the order of bytes.
fn by_utf16(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        return a.cmp(b);
    }
    a.encode_utf16().cmp(b.encode_utf16())
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

    /// RFC 8785 would round these to one number, and an approval for one would cover the
    /// other.
    #[test]
    fn numbers_that_no_double_holds_stay_apart() {
        check(&json!(9_007_199_254_740_992_i64), "9007199254740992");
        check(&json!(9_007_199_254_740_993_i64), "9007199254740993");
        check(&json!(-9_007_199_254_740_993_i64), "-9007199254740993");
        check(
            &json!([u64::MAX, u64::MAX - 1]),
            "[18446744073709551615,18446744073709551614]",
        );
        // A fraction is a double already, and spelled as one.
        check(&json!(9_007_199_254_740_992.0), "9007199254740992");
    }
}
