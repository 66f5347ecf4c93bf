//! Normalises a schema: the order of sets does not matter. Only places that hold sets
//! are touched; a value under `const`, `default`, `enum` or `examples` is data,
//! whatever its keys are called.

use serde_json::{Map, Value};

/// Keywords whose value is one schema.
pub(crate) const ONE: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
pub(crate) const LISTS: &[&str] = &["allOf", "anyOf", "items", "oneOf", "prefixItems"];
/// Keywords whose value is schemas by name.
pub(crate) const MAPS: &[&str] = &[
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];
/// Keywords whose value is a set.
const SETS: &[&str] = &["enum", "required", "type"];
/// Keywords whose value is sets by name.
const SETS_BY_NAME: &[&str] = &["dependencies", "dependentRequired"];

/// The schema with its sets in order. The caller has bounded its depth.
pub(super) fn normal(value: &Value) -> Value {
    let Value::Object(fields) = value else {
        return value.clone();
    };
    let fields = fields
        .iter()
        .map(|(key, value)| (key.clone(), keyword(key, value)));
    Value::Object(fields.collect())
}

fn keyword(key: &str, value: &Value) -> Value {
    let is = |list: &[&str]| list.contains(&key);
    match value {
        Value::Array(items) if is(SETS) => Value::Array(set(items)),
        Value::Array(items) if is(LISTS) => items.iter().map(normal).collect(),
        Value::Object(fields) if is(MAPS) || is(SETS_BY_NAME) => {
            let by_name = |(name, value): (&String, &Value)| (name.clone(), named(key, value));
            Value::Object(fields.iter().map(by_name).collect::<Map<_, _>>())
        }
        Value::Object(_) if is(ONE) => normal(value),
        other => other.clone(),
    }
}

fn named(key: &str, value: &Value) -> Value {
    match value {
        Value::Array(items) if SETS_BY_NAME.contains(&key) => Value::Array(set(items)),
        other => normal(other),
    }
}

fn set(items: &[Value]) -> Vec<Value> {
    let mut spelled: Vec<(Vec<u8>, Value)> = items
        .iter()
        .map(|item| {
            let mut text = Vec::new();
            // A value without a canonical form is refused when the whole is written.
            let _ = model::canonical::write(item, &mut text);
            (text, item.clone())
        })
        .collect();
    spelled.sort_by(|a, b| a.0.cmp(&b.0));
    // A repeated member changes nothing, so it is no difference to review.
    spelled.dedup_by(|a, b| a.0 == b.0);
    spelled.into_iter().map(|(_, item)| item).collect()
}
