//! What a scalar means in YAML 1.1: `yes` is true, `010` is eight, `1:30` is
//! ninety. Dates stay text, since JSON has none.

use serde_json::{Number, Value};

use crate::parser::yaml::YamlNode;

/// What a plain scalar without a tag means.
pub(super) fn resolve(text: &str) -> YamlNode {
    if is_null(text) {
        return YamlNode::Plain(Value::Null);
    }
    if let Some(value) = boolean(text) {
        return YamlNode::Plain(Value::Bool(value));
    }
    let starts_like_number =
        text.starts_with(|mark: char| mark.is_ascii_digit() || "+-.".contains(mark));
    if !starts_like_number {
        return YamlNode::Plain(Value::from(text));
    }
    integer(text)
        .or_else(|| float(text))
        .unwrap_or_else(|| YamlNode::Plain(Value::from(text)))
}

/// What a scalar with a basic tag means; nothing if it cannot mean that.
pub(super) fn tagged(name: &str, text: &str) -> Option<YamlNode> {
    match name {
        "null" => Some(YamlNode::Plain(Value::Null)),
        "bool" => boolean(text).map(|value| YamlNode::Plain(Value::Bool(value))),
        "int" => integer(text),
        "float" => float(text).or_else(|| integer(text)),
        // Bytes stay in the base64 they came in.
        "str" | "timestamp" | "binary" => Some(YamlNode::Plain(Value::from(text))),
        _ => None,
    }
}

/// The key a scalar makes: the text of what it means, as `String(value)` would.
pub(super) fn key(text: &str, is_plain: bool, name: Option<&str>) -> String {
    if !is_plain || name.is_some() {
        return text.to_owned();
    }
    match resolve(text) {
        YamlNode::Plain(value) => key_of(&value),
        YamlNode::Odd(word) => word.to_owned(),
        YamlNode::List(_) | YamlNode::Map(_) => text.to_owned(),
    }
}

pub(super) fn key_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn integer(text: &str) -> Option<YamlNode> {
    let (is_negative, digits) = sign(text);
    let is_digit = |mark: char| mark.is_ascii_alphanumeric() || matches!(mark, '_' | ':');
    if digits.is_empty() || digits.starts_with('_') || !digits.chars().all(is_digit) {
        return None;
    }
    if digits.contains(':') {
        return sexagesimal(digits).map(|value| signed(is_negative, value));
    }
    let clean = digits.replace('_', "");
    let (radix, body) = match clean.as_bytes() {
        [b'0', b'x', ..] => (16, clean.get(2..)?),
        [b'0', b'b', ..] => (2, clean.get(2..)?),
        [b'0', _, ..] => (8, clean.get(1..)?),
        _ => (10, clean.as_str()),
    };
    if !body.chars().all(|mark| mark.is_digit(radix)) || body.is_empty() {
        return None;
    }
    match u128::from_str_radix(body, radix) {
        Ok(value) => Some(signed(is_negative, value)),
        // Beyond any integer, so as near as a double comes.
        Err(_) if radix == 10 => body
            .parse()
            .ok()
            .and_then(|value: f64| number(if is_negative { -value } else { value })),
        Err(_) => None,
    }
}

/// Base sixty, as in `1:30:00`; each part but the first below sixty.
fn sexagesimal(digits: &str) -> Option<u128> {
    let mut value: u128 = 0;
    for (index, part) in digits.split(':').enumerate() {
        let part: u128 = part.replace('_', "").parse().ok()?;
        if index > 0 && part > 59 {
            return None;
        }
        value = value.checked_mul(60)?.checked_add(part)?;
    }
    Some(value)
}

fn signed(is_negative: bool, value: u128) -> YamlNode {
    let number = match (is_negative, u64::try_from(value)) {
        (false, Ok(value)) => Some(Number::from(value)),
        // `i64::MIN` has no positive counterpart, so the sign is applied
        // before the conversion.
        (true, Ok(value)) => i64::try_from(-i128::from(value)).ok().map(Number::from),
        (_, Err(_)) => None,
    };
    number.map_or_else(
        || {
            let text = format!("{}{value}", if is_negative { "-" } else { "" });
            let value: f64 = text.parse().unwrap_or(f64::NAN);
            YamlNode::Plain(Value::from(value))
        },
        |number| YamlNode::Plain(Value::Number(number)),
    )
}

fn float(text: &str) -> Option<YamlNode> {
    let (is_negative, digits) = sign(text);
    match digits {
        ".inf" | ".Inf" | ".INF" => {
            return Some(YamlNode::Odd(if is_negative {
                "-Infinity"
            } else {
                "Infinity"
            }));
        }
        ".nan" | ".NaN" | ".NAN" => return Some(YamlNode::Odd("NaN")),
        _ => {}
    }
    let is_float = digits.contains('.') || digits.contains(['e', 'E']);
    let is_mark = |mark: char| mark.is_ascii_digit() || "._eE+-".contains(mark);
    let has_digit = digits.contains(|mark: char| mark.is_ascii_digit());
    if !is_float || !has_digit || digits.starts_with('_') || !digits.chars().all(is_mark) {
        return None;
    }
    let value: f64 = digits.replace('_', "").parse().ok()?;
    number(if is_negative { -value } else { value })
}

fn number(value: f64) -> Option<YamlNode> {
    match Number::from_f64(value) {
        Some(number) => Some(YamlNode::Plain(Value::Number(number))),
        None if value > 0.0 => Some(YamlNode::Odd("Infinity")),
        None => Some(YamlNode::Odd("-Infinity")),
    }
}
