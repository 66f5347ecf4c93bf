//! RFC 8785 canonical JSON: one spelling for one meaning, so that digests and
//! the audit chain do not depend on who wrote the text.

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
    serde_json_canonicalizer::to_vec(value).map_err(CanonicalError)
}

/// Appends the canonical bytes of a value. The same bytes as [`to_bytes`], several
/// times faster: keys are sorted where they stand and whole numbers are written as they
/// are. Fractions and numbers that no double keeps exact take the slow way.
pub fn write(value: &Value, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => match number.as_i64() {
            Some(number) => write_integer(number, out)?,
            None => out.extend_from_slice(&to_bytes(value)?),
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
    if number.unsigned_abs() <= EXACT_MAX {
        return serde_json::to_writer(out, &number).map_err(CanonicalError);
    }
    out.extend_from_slice(&to_bytes(&Value::from(number))?);
    Ok(())
}

/// Up to here, either sign, every whole number is a double.
const EXACT_MAX: u64 = 1 << 53;

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
}
