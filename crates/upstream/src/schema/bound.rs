//! Bounds of single values: types, lists of values, numbers and lengths.

use serde_json::{Map, Value};

use super::{Pair, TYPES};

/// Whether every new type is one of the old. A whole number is a number.
pub(super) fn has_fewer_types(old: Option<&Value>, new: Option<&Value>) -> bool {
    let (Some(olds), Some(news)) = (types(old), types(new)) else {
        return false;
    };
    let covers = |new: &&str| olds.contains(new) || (*new == "integer" && olds.contains(&"number"));
    news.iter().all(covers)
}

fn types(value: Option<&Value>) -> Option<Vec<&str>> {
    match value {
        None => Some(TYPES.to_vec()),
        Some(Value::String(one)) => Some(vec![one.as_str()]),
        Some(Value::Array(many)) => many.iter().map(Value::as_str).collect(),
        Some(_) => None,
    }
}

/// Whether the new list of values has only values of the old.
pub(super) fn has_fewer_values(pair: &Pair<'_>) -> bool {
    match (values(pair.old), values(pair.new)) {
        (Ok(None), Ok(_)) => true,
        (Ok(Some(olds)), Ok(Some(news))) => news.iter().all(|new| olds.contains(new)),
        (Ok(Some(_)), Ok(None)) | (Err(NoList), _) | (_, Err(NoList)) => false,
    }
}

/// An `enum` that is no list.
struct NoList;

/// The values that `enum` and `const` allow together; `None` if there is neither.
fn values(fields: &Map<String, Value>) -> Result<Option<Vec<&Value>>, NoList> {
    let only = fields.get("const");
    match fields.get("enum") {
        None => Ok(only.map(|only| vec![only])),
        Some(Value::Array(list)) => {
            let fits = |value: &&Value| only.is_none_or(|only| only == *value);
            Ok(Some(list.iter().filter(fits).collect()))
        }
        Some(_) => Err(NoList),
    }
}

/// Whether the new lower bounds ask for all that the old ones ask.
pub(super) fn is_not_lower(pair: &Pair<'_>) -> bool {
    is_implied(pair, "minimum", "exclusiveMinimum", |new, old| new >= old)
}

/// Whether the new upper bounds ask for all that the old ones ask.
pub(super) fn is_not_higher(pair: &Pair<'_>) -> bool {
    is_implied(pair, "maximum", "exclusiveMaximum", |new, old| new <= old)
}

fn is_implied(
    pair: &Pair<'_>,
    inclusive: &str,
    exclusive: &str,
    reaches: impl Fn(f64, f64) -> bool,
) -> bool {
    let bounds = |fields: &Map<String, Value>| -> Option<Vec<(f64, bool)>> {
        let keys = [(inclusive, false), (exclusive, true)].into_iter();
        keys.filter_map(|(key, is_open)| Some((fields.get(key)?, is_open)))
            .map(|(value, is_open)| Some((value.as_f64()?, is_open)))
            .collect()
    };
    // An older form of `exclusiveMinimum` is true or false; it is no number.
    let (Some(olds), Some(news)) = (bounds(pair.old), bounds(pair.new)) else {
        return false;
    };
    let asks = |new: &(f64, bool), old: &(f64, bool)| {
        // A closed bound implies an open one only from beyond it.
        reaches(new.0, old.0) && (new.1 || !old.1 || !reaches(old.0, new.0))
    };
    olds.iter().all(|old| news.iter().any(|new| asks(new, old)))
}

/// Whether a new least length asks for as much.
pub(super) fn is_not_less(old: Option<&Value>, new: Option<&Value>) -> bool {
    match (old.map(Value::as_u64), new.map(Value::as_u64)) {
        (None, Some(Some(_))) | (Some(Some(0)), None) => true,
        (Some(Some(old)), Some(Some(new))) => new >= old,
        (_, None | Some(None)) | (Some(None), _) => false,
    }
}

/// Whether a new greatest length allows no more.
pub(super) fn is_not_more(old: Option<&Value>, new: Option<&Value>) -> bool {
    match (old.map(Value::as_u64), new.map(Value::as_u64)) {
        (None, Some(Some(_))) => true,
        (Some(Some(old)), Some(Some(new))) => new <= old,
        (_, None | Some(None)) | (Some(None), _) => false,
    }
}
