//! Rows on their way out, within the bounds of a call.

use serde_json::Value;

use crate::sql::{SqlAnswer, SqlBounds};

/// Takes rows until one would be too much.
#[derive(Debug)]
pub(crate) struct RowSink {
    answer: SqlAnswer,
    bytes_left: usize,
    rows_max: usize,
}

impl RowSink {
    pub(crate) fn new(columns: Vec<String>, bounds: SqlBounds) -> RowSink {
        let names: usize = columns.iter().map(|name| name.len() + 4).sum();
        RowSink {
            answer: SqlAnswer {
                columns,
                ..SqlAnswer::default()
            },
            bytes_left: bounds.bytes_max.saturating_sub(names),
            rows_max: bounds.rows_max,
        }
    }

    /// Whether another row is wanted. A row that does not fit is left out whole: half a
    /// row would be read as one.
    pub(crate) fn push(&mut self, row: Vec<Value>) -> bool {
        let bytes = 2 + row.iter().map(|value| json_bytes(value) + 1).sum::<usize>();
        if self.answer.rows.len() >= self.rows_max || bytes > self.bytes_left {
            self.answer.truncated = true;
            return false;
        }
        self.bytes_left -= bytes;
        self.answer.rows.push(row);
        true
    }

    pub(crate) fn finish(self, changed: Option<u64>) -> SqlAnswer {
        SqlAnswer {
            changed,
            ..self.answer
        }
    }
}

/// The bytes of a value as JSON. Escapes count six bytes, so this is at least what it takes.
fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(_) => 5,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => {
            let escaped = text
                .bytes()
                .filter(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\'));
            2 + text.len() + 5 * escaped.count()
        }
        Value::Array(items) => 2 + items.iter().map(|item| json_bytes(item) + 1).sum::<usize>(),
        Value::Object(members) => {
            let pairs = members.iter();
            2 + pairs
                .map(|(name, value)| name.len() + 4 + json_bytes(value))
                .sum::<usize>()
        }
    }
}

/// The largest whole number that every reader of JSON keeps exact.
const EXACT_MAX: u64 = 9_007_199_254_740_991;

/// A whole number; as a text where readers would round it.
pub(crate) fn integer(number: i64) -> Value {
    match number.unsigned_abs() <= EXACT_MAX {
        true => number.into(),
        false => number.to_string().into(),
    }
}

/// A number with a point; as a text where JSON has none.
pub(crate) fn real(number: f64) -> Value {
    match serde_json::Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() => "NaN".into(),
        None if number > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

/// Bytes, as hexadecimal digits behind `\x`.
pub(crate) fn bytes(bytes: &[u8]) -> Value {
    let mut text = String::with_capacity(2 + bytes.len() * 2);
    text.push_str("\\x");
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(rows_max: usize, bytes_max: usize) -> SqlBounds {
        SqlBounds {
            rows_max,
            bytes_max,
            time_ms: 1,
        }
    }

    #[test]
    fn a_row_that_does_not_fit_is_left_out_whole() {
        let mut sink = RowSink::new(vec!["a".to_owned()], bounds(10, 40));
        assert!(sink.push(vec!["0123456789".into()]));
        assert!(!sink.push(vec!["01234567890123456789".into()]));
        let answer = sink.finish(None);
        assert_eq!((answer.rows.len(), answer.truncated), (1, true));
    }

    #[test]
    fn the_last_row_that_is_allowed_is_no_cut() {
        let mut sink = RowSink::new(Vec::new(), bounds(1, 100));
        assert!(sink.push(vec![Value::Null]));
        assert!(!sink.finish(None).truncated);
    }

    #[test]
    fn what_is_counted_is_at_least_what_it_takes() {
        for value in [
            serde_json::json!("plain"),
            serde_json::json!("\u{1}\"\\\n\u{7f}é"),
            serde_json::json!([1, -2.5, null, true, {"a\u{2}": "b"}]),
        ] {
            let taken = value.to_string().len();
            // Names of members are ours, so their escapes are not counted.
            let counted = json_bytes(&value) + 5;
            assert!(counted >= taken, "{value}: {counted} < {taken}");
        }
    }

    #[test]
    fn numbers_that_readers_would_round_are_texts() {
        assert_eq!(integer(9_007_199_254_740_991), 9_007_199_254_740_991_i64);
        assert_eq!(integer(9_007_199_254_740_992), "9007199254740992");
        assert_eq!(integer(i64::MIN), "-9223372036854775808");
        assert_eq!(real(f64::INFINITY), "Infinity");
        assert_eq!(real(1.5), 1.5);
        assert_eq!(bytes(&[0, 0xff]), "\\x00ff");
    }
}
