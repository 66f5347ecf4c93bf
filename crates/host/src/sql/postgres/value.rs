//! Values to and from Postgres. What is given goes as text, which the server reads as the
//! type it expects. What comes back is in the server's own binary form; a type that is not
//! known here is shown as its bytes, and a statement can cast it to text.

use std::error::Error;
use std::net::{Ipv4Addr, Ipv6Addr};

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};
use serde_json::Value;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{Format, FromSql, IsNull, Kind, ToSql, Type};

use crate::sql::rows::{bytes, integer, real};

type Fault = Box<dyn Error + Sync + Send>;

/// A value for a parameter.
#[derive(Debug)]
pub(super) struct Given<'a>(pub(super) &'a Value);

impl ToSql for Given<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Fault> {
        let text = match self.0 {
            Value::Null => return Ok(IsNull::Yes),
            Value::Bool(is_true) => is_true.to_string(),
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            Value::Array(_) | Value::Object(_) => {
                return Err("only single values can be bound".into());
            }
        };
        if text.contains('\0') {
            return Err("a text holds a NUL character, which Postgres does not take".into());
        }
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    tokio_postgres::types::to_sql_checked!();
}

/// A value of a row.
#[derive(Debug)]
pub(super) struct Raw(pub(super) Value);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Raw, Fault> {
        // Bytes that do not fit their type are shown as what they are.
        Ok(Raw(decode(kind, raw, 0).unwrap_or_else(|| bytes(raw))))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Types within types; a server could name any.
const DEPTH_MAX: usize = 8;

fn decode(kind: &Type, raw: &[u8], depth: usize) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    match kind.kind() {
        Kind::Domain(inner) => return decode(inner, raw, depth + 1),
        Kind::Enum(_) => return text(raw),
        Kind::Array(inner) => return array(inner, raw, depth + 1),
        _ => {}
    }
    match *kind {
        Type::BOOL => Some((number::<1>(raw)? != [0]).into()),
        Type::INT2 => Some(i16::from_be_bytes(number(raw)?).into()),
        Type::INT4 => Some(i32::from_be_bytes(number(raw)?).into()),
        Type::INT8 => Some(integer(i64::from_be_bytes(number(raw)?))),
        Type::OID | Type::XID | Type::CID => Some(u32::from_be_bytes(number(raw)?).into()),
        Type::FLOAT4 => Some(real(f64::from(f32::from_be_bytes(number(raw)?)))),
        Type::FLOAT8 => Some(real(f64::from_be_bytes(number(raw)?))),
        Type::NUMERIC => numeric(raw).map(Value::from),
        Type::TEXT
        | Type::VARCHAR
        | Type::BPCHAR
        | Type::NAME
        | Type::UNKNOWN
        | Type::XML
        | Type::CHAR => text(raw),
        Type::JSON => serde_json::from_slice(raw).ok(),
        Type::JSONB => serde_json::from_slice(raw.strip_prefix(&[1])?).ok(),
        Type::UUID => Some(uuid(number(raw)?).into()),
        Type::DATE => day(i32::from_be_bytes(number(raw)?)),
        Type::TIME => Some(clock(i64::from_be_bytes(number(raw)?))?.into()),
        Type::TIMESTAMP => moment(i64::from_be_bytes(number(raw)?), ""),
        Type::TIMESTAMPTZ => moment(i64::from_be_bytes(number(raw)?), "Z"),
        Type::INTERVAL => interval(raw),
        Type::INET | Type::CIDR => inet(raw),
        Type::VOID => Some(Value::Null),
        _ => None,
    }
}

fn number<const SIZE: usize>(raw: &[u8]) -> Option<[u8; SIZE]> {
    raw.try_into().ok()
}

fn text(raw: &[u8]) -> Option<Value> {
    std::str::from_utf8(raw).ok().map(Value::from)
}

/// Splits a number off the front.
fn take<const SIZE: usize>(raw: &mut &[u8]) -> Option<[u8; SIZE]> {
    let (head, rest) = raw.split_first_chunk::<SIZE>()?;
    *raw = rest;
    Some(*head)
}

/// Groups of four decimal digits, a weight for the first, a sign, and how many digits are
/// shown behind the point.
fn numeric(mut raw: &[u8]) -> Option<String> {
    let count = usize::from(u16::from_be_bytes(take(&mut raw)?));
    let weight = i16::from_be_bytes(take(&mut raw)?);
    let sign = u16::from_be_bytes(take(&mut raw)?);
    let scale = usize::from(u16::from_be_bytes(take(&mut raw)?));
    match sign {
        0xc000 => return Some("NaN".to_owned()),
        0xd000 => return Some("Infinity".to_owned()),
        0xf000 => return Some("-Infinity".to_owned()),
        _ => {}
    }
    let mut groups = Vec::with_capacity(count.min(raw.len()));
    for _ in 0..count {
        groups.push(u16::from_be_bytes(take(&mut raw)?));
    }
    // Zeros at either end are not sent: a group beyond those that came is 0.
    let group = |position: i32| -> u16 {
        let index = i32::from(weight) - position;
        let found = usize::try_from(index)
            .ok()
            .and_then(|index| groups.get(index));
        found.copied().unwrap_or(0)
    };
    let mut out = String::new();
    if sign == 0x4000 {
        out.push('-');
    }
    let highest = i32::from(weight).max(0);
    for position in (0..=highest).rev() {
        match position == highest {
            true => out.push_str(&group(position).to_string()),
            false => out.push_str(&format!("{:04}", group(position))),
        }
    }
    if scale > 0 {
        let mut digits = String::new();
        let mut position = -1;
        while digits.len() < scale {
            digits.push_str(&format!("{:04}", group(position)));
            position -= 1;
        }
        digits.truncate(scale);
        out.push('.');
        out.push_str(&digits);
    }
    Some(out)
}

fn uuid(raw: [u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(raw));
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            out.push('-');
        }
        out.push(digit);
    }
    out
}

/// Postgres counts from the year 2000.
fn epoch() -> DateTime {
    date(2000, 1, 1).at(0, 0, 0, 0)
}

fn day(days: i32) -> Option<Value> {
    match days {
        i32::MAX => return Some("infinity".into()),
        i32::MIN => return Some("-infinity".into()),
        _ => {}
    }
    let span = SignedDuration::from_hours(i64::from(days) * 24);
    let at = epoch().checked_add(span).ok()?;
    Some(at.date().to_string().into())
}

fn moment(micros: i64, zone: &str) -> Option<Value> {
    match micros {
        i64::MAX => return Some("infinity".into()),
        i64::MIN => return Some("-infinity".into()),
        _ => {}
    }
    let at = epoch()
        .checked_add(SignedDuration::from_micros(micros))
        .ok()?;
    Some(format!("{at}{zone}").into())
}

/// A time of day, or of an interval, which may be longer than a day.
fn clock(micros: i64) -> Option<String> {
    let sign = if micros < 0 { "-" } else { "" };
    let micros = micros.unsigned_abs();
    let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut out = format!("{sign}{hours:02}:{minutes:02}:{seconds:02}");
    if rest > 0 {
        out.push_str(format!(".{rest:06}").trim_end_matches('0'));
    }
    Some(out)
}

fn interval(mut raw: &[u8]) -> Option<Value> {
    let micros = i64::from_be_bytes(take(&mut raw)?);
    let days = i32::from_be_bytes(take(&mut raw)?);
    let months = i32::from_be_bytes(take(&mut raw)?);
    let mut parts = Vec::new();
    for (count, unit) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
        let plural = if count == 1 { "" } else { "s" };
        if count != 0 {
            parts.push(format!("{count} {unit}{plural}"));
        }
    }
    if micros != 0 || parts.is_empty() {
        parts.push(clock(micros)?);
    }
    Some(parts.join(" ").into())
}

fn inet(raw: &[u8]) -> Option<Value> {
    // Family, bits of the mask, whether it is a `cidr`, length of the address.
    let [_, bits, is_network, _, address @ ..] = raw else {
        return None;
    };
    let (shown, whole) = match address.len() {
        4 => (Ipv4Addr::from(number::<4>(address)?).to_string(), 32),
        16 => (Ipv6Addr::from(number::<16>(address)?).to_string(), 128),
        _ => return None,
    };
    Some(match (*bits == whole, *is_network) {
        (true, 0) => shown.into(),
        _ => format!("{shown}/{bits}").into(),
    })
}

fn array(inner: &Type, mut raw: &[u8], depth: usize) -> Option<Value> {
    let dimensions = i32::from_be_bytes(take(&mut raw)?);
    // Whether there are nulls, and the type of the items. Neither is needed: each item says
    // whether it is null, and the column told the type.
    take::<8>(&mut raw)?;
    if !(0..=6).contains(&dimensions) {
        return None;
    }
    let mut lengths = Vec::new();
    for _ in 0..dimensions {
        lengths.push(usize::try_from(i32::from_be_bytes(take(&mut raw)?)).ok()?);
        // The lower bound of the dimension.
        take::<4>(&mut raw)?;
    }
    if lengths.is_empty() {
        return Some(Value::Array(Vec::new()));
    }
    let items = level(inner, &lengths, &mut raw, depth)?;
    raw.is_empty().then_some(items)
}

fn level(inner: &Type, lengths: &[usize], raw: &mut &[u8], depth: usize) -> Option<Value> {
    let Some((length, below)) = lengths.split_first() else {
        let length = i32::from_be_bytes(take(raw)?);
        if length == -1 {
            return Some(Value::Null);
        }
        let (item, rest) = raw.split_at_checked(usize::try_from(length).ok()?)?;
        *raw = rest;
        return Some(decode(inner, item, depth).unwrap_or_else(|| bytes(item)));
    };
    // Each item takes at least its length, so a lie about the count ends with the bytes.
    let items: Option<Vec<_>> = (0..*length)
        .map(|_| level(inner, below, raw, depth))
        .collect();
    items.map(Value::Array)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_postgres_writes_them() {
        // 12345.678: groups 1, 2345, 6780; weight 1; scale 3.
        let raw = [0, 3, 0, 1, 0, 0, 0, 3, 0, 1, 0x09, 0x29, 0x1a, 0x7c];
        assert_eq!(numeric(&raw).as_deref(), Some("12345.678"));
        // -0.05: group 500; weight -1; scale 2.
        let raw = [0, 1, 0xff, 0xff, 0x40, 0, 0, 2, 0x01, 0xf4];
        assert_eq!(numeric(&raw).as_deref(), Some("-0.05"));
        assert_eq!(
            numeric(&[0, 0, 0, 0, 0xc0, 0, 0, 0]).as_deref(),
            Some("NaN")
        );
        assert_eq!(numeric(&[0xff, 0xff, 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn dates_and_times_have_one_form() {
        assert_eq!(day(0), Some("2000-01-01".into()));
        assert_eq!(day(-1), Some("1999-12-31".into()));
        assert_eq!(day(i32::MAX), Some("infinity".into()));
        assert_eq!(day(i32::MAX - 1), None);
        assert_eq!(
            moment(1_500_000, "Z"),
            Some("2000-01-01T00:00:01.5Z".into())
        );
        assert_eq!(clock(-3_600_000_001).as_deref(), Some("-01:00:00.000001"));
    }

    #[test]
    fn an_array_that_lies_about_its_length_is_bytes() {
        let mut raw = vec![0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23];
        raw.extend([0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1]);
        raw.extend([0, 0, 0, 4, 0, 0, 0, 7]);
        assert_eq!(decode(&Type::INT4_ARRAY, &raw, 0), None);
        raw[12..16].copy_from_slice(&[0, 0, 0, 1]);
        assert_eq!(
            decode(&Type::INT4_ARRAY, &raw, 0),
            Some(serde_json::json!([7]))
        );
    }
}
