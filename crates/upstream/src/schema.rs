//! Compares two JSON Schemas: the changes, and whether the newer accepts no more.
//!
//! The answer errs on one side only: a change that is not proved narrower is wider. A
//! keyword that is not listed, a reference, a step too many: all of them are wider.
//!
//! A schema is read as a model reads it: properties that it does not declare are not
//! sent. So a schema that loses a property is narrower though, left open, it accepts
//! any property; one that gains a property, or must now have one, is wider, because
//! more is asked of the model.

use std::collections::BTreeSet;

use model::words;
use serde_json::{Map, Value};

use crate::definition::keyword::{LISTS, MAPS, ONE};
use crate::limit;

mod bound;
mod object;

words! {
    /// The effect of a difference. Later is worse.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum DiffEffect {
        /// Less is accepted.
        Narrower = "narrower",
        /// Words for people and models.
        Wording = "wording",
        /// More may be accepted, or nothing is known.
        Wider = "wider",
        /// It may be another server.
        Identity = "identity",
    }
}

/// One difference between two definitions.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDiff {
    /// Where, such as `inputSchema.properties.path.type`.
    pub path: String,
    /// What it means.
    pub effect: DiffEffect,
    /// The value before.
    pub old: Option<Value>,
    /// The value now.
    pub new: Option<Value>,
}

/// The purpose of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// A newer schema against the accepted one: what it asks of a model counts.
    Review,
    /// Only which values are accepted counts.
    Values,
}

/// How parts of a schema are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A part that accepts less makes the whole accept less.
    Monotone,
    /// Below `not`, `oneOf`, `if` and references it does not; only words may differ.
    Exact,
}

/// The changes from the accepted schema to the current one.
#[must_use]
pub fn diffs(path: &str, accepted: &Value, seen: &Value) -> Vec<FieldDiff> {
    let mut comparer = Comparer::new(Rule::Review, accepted, seen);
    let mode = mode_of(accepted, seen);
    comparer.schema(path, accepted, seen, mode);
    let known = strings(accepted);
    for diff in &mut comparer.diffs {
        // Attack: a bound may be new words. A pattern or a list of values that was not
        // there narrows the schema, and the model reads it.
        let says_more = diff
            .new
            .as_ref()
            .is_some_and(|new| has_other_words(new, &known));
        if diff.effect == DiffEffect::Narrower && says_more {
            diff.effect = DiffEffect::Wording;
        }
    }
    comparer.diffs
}

/// The changes of a result's schema, where only words may change.
#[must_use]
pub fn exact_diffs(path: &str, accepted: &Value, seen: &Value) -> Vec<FieldDiff> {
    let mut comparer = Comparer::new(Rule::Review, accepted, seen);
    comparer.schema(path, accepted, seen, Mode::Exact);
    comparer.diffs
}

/// Whether every value that `narrow` accepts is accepted by `wide`, as far as this can
/// be shown, for values with declared properties only.
#[must_use]
pub fn accepts_all(wide: &Value, narrow: &Value) -> bool {
    let mut comparer = Comparer::new(Rule::Values, wide, narrow);
    comparer.schema("", wide, narrow, mode_of(wide, narrow));
    // `None`, no difference at all, is less than every effect.
    comparer.worst < Some(DiffEffect::Wider)
}

/// A reference leads to any part of the document from any place, so nothing in a
/// document with references is monotone.
fn mode_of(old: &Value, new: &Value) -> Mode {
    const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];
    match has_key(old, REFERENCES) || has_key(new, REFERENCES) {
        true => Mode::Exact,
        false => Mode::Monotone,
    }
}

fn has_key(value: &Value, keys: &[&str]) -> bool {
    match value {
        Value::Object(fields) => fields
            .iter()
            .any(|(key, value)| keys.contains(&key.as_str()) || has_key(value, keys)),
        Value::Array(items) => items.iter().any(|item| has_key(item, keys)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether branches speak about properties: then one object is described in several
/// places, and what one of them does not declare another may.
fn is_split(value: &Value) -> bool {
    const BRANCHES: &[&str] = &[
        "allOf",
        "anyOf",
        "dependencies",
        "dependentSchemas",
        "else",
        "if",
        "not",
        "oneOf",
        "then",
    ];
    const OBJECTS: &[&str] = &["additionalProperties", "patternProperties", "properties"];
    match value {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            (BRANCHES.contains(&key.as_str()) && has_key(value, OBJECTS)) || is_split(value)
        }),
        Value::Array(items) => items.iter().any(is_split),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Every string of a value, keys included.
fn strings(value: &Value) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) => {
                found.insert(text.as_str());
            }
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => {
                found.extend(fields.keys().map(String::as_str));
                left.extend(fields.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}

fn has_other_words(value: &Value, known: &BTreeSet<&str>) -> bool {
    let is_plain = |word: &&str| known.contains(word) || TYPES.contains(word);
    !strings(value)
        .iter()
        .all(|word| is_plain(word) || KEYWORDS.contains(word))
}

/// The types of JSON Schema.
const TYPES: &[&str] = &[
    "array", "boolean", "integer", "null", "number", "object", "string",
];
/// Keywords without an effect of their own.
const KEYWORDS: &[&str] = &[
    "additionalProperties",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "type",
    "uniqueItems",
];

/// Keywords that are words for people and models.
const WORDING: &[&str] = &["$comment", "deprecated", "description", "examples", "title"];
/// Lower bounds of lengths and counts; absent is nothing.
const LEAST: &[&str] = &["minItems", "minLength", "minProperties"];
/// Upper bounds of lengths and counts; absent is no bound.
const MOST: &[&str] = &["maxItems", "maxLength", "maxProperties"];
/// Keywords that may be added and not changed or removed.
const FIXED: &[&str] = &["format", "multipleOf", "pattern"];
/// Keywords that the versions of JSON Schema read differently.
const DIALECT: &[&str] = &[
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "additionalItems",
    "contains",
    "dependencies",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "id",
    "prefixItems",
    "unevaluatedItems",
    "unevaluatedProperties",
];

#[derive(Debug)]
struct Comparer {
    rule: Rule,
    diffs: Vec<FieldDiff>,
    worst: Option<DiffEffect>,
    steps: usize,
    /// Whether each object is described in one place, so that a property which is not
    /// declared there is declared nowhere.
    is_in_one_place: bool,
}

impl Comparer {
    fn new(rule: Rule, old: &Value, new: &Value) -> Comparer {
        Comparer {
            rule,
            diffs: Vec::new(),
            worst: None,
            steps: 0,
            is_in_one_place: !is_split(old) && !is_split(new),
        }
    }

    /// Compares two schemas; `old` is the one that is accepted, or the wider one.
    fn schema(&mut self, path: &str, old: &Value, new: &Value, mode: Mode) {
        self.steps += 1;
        if old == new {
            return;
        }
        let (old_fields, new_fields) = match (fields_of(old), fields_of(new)) {
            // Attack: branches make the comparison exponential. Beyond the bound the
            // answer is "wider", which holds the tool.
            _ if self.steps > limit::SCHEMA_STEPS_MAX => {
                return self.note(path, DiffEffect::Wider, Some(old), Some(new));
            }
            (Some(old), Some(new)) => (old, new),
            (_, None) if *new == Value::Bool(false) && mode == Mode::Monotone => {
                return self.note(path, DiffEffect::Narrower, Some(old), Some(new));
            }
            (None, _) | (_, None) => {
                return self.note(path, DiffEffect::Wider, Some(old), Some(new));
            }
        };
        let keys: BTreeSet<&String> = old_fields.keys().chain(new_fields.keys()).collect();
        for key in keys {
            let pair = Pair {
                old: &old_fields,
                new: &new_fields,
            };
            if old_fields.get(key) != new_fields.get(key) {
                let path = join(path, key);
                match mode {
                    Mode::Monotone => self.keyword(&path, key, &pair),
                    Mode::Exact => self.exact_keyword(&path, key, &pair),
                }
            }
        }
    }

    fn keyword(&mut self, path: &str, key: &str, pair: &Pair<'_>) {
        let (old, new) = pair.values(key);
        match key {
            "type" => self.judge(path, bound::has_fewer_types(old, new), old, new),
            "enum" | "const" => self.judge(path, bound::has_fewer_values(pair), old, new),
            "minimum" | "exclusiveMinimum" => {
                self.judge(path, bound::is_not_lower(pair), old, new);
            }
            "maximum" | "exclusiveMaximum" => {
                self.judge(path, bound::is_not_higher(pair), old, new);
            }
            "uniqueItems" => {
                self.judge(
                    path,
                    new == Some(&Value::Bool(true)) || old.is_none(),
                    old,
                    new,
                );
            }
            "properties" => self.properties(path, pair),
            "required" => self.judge(path, object::is_required_fine(self.rule, pair), old, new),
            "additionalProperties" => self.additional(path, pair),
            "items" if !pair.has_any(&["prefixItems", "additionalItems"]) => {
                self.single(path, old, new);
            }
            "propertyNames" => self.single(path, old, new),
            "anyOf" => self.any_of(path, old, new),
            "allOf" => self.all_of(path, old, new),
            _ if LEAST.contains(&key) => self.judge(path, bound::is_not_less(old, new), old, new),
            _ if MOST.contains(&key) => self.judge(path, bound::is_not_more(old, new), old, new),
            _ if FIXED.contains(&key) => self.judge(path, old.is_none(), old, new),
            _ => self.exact_keyword(path, key, pair),
        }
    }

    /// A keyword below which only words may differ.
    fn exact_keyword(&mut self, path: &str, key: &str, pair: &Pair<'_>) {
        let (old, new) = pair.values(key);
        if WORDING.contains(&key) {
            return self.note(path, DiffEffect::Wording, old, new);
        }
        if key == "$schema" && is_dialect_change(pair) {
            return self.note(path, DiffEffect::Wording, old, new);
        }
        match (old, new) {
            (Some(Value::Object(olds)), Some(Value::Object(news))) if MAPS.contains(&key) => {
                let names: BTreeSet<&String> = olds.keys().chain(news.keys()).collect();
                for name in names {
                    let path = join(path, name);
                    match (olds.get(name), news.get(name)) {
                        (Some(old), Some(new)) => self.schema(&path, old, new, Mode::Exact),
                        (old, new) => self.note(&path, DiffEffect::Wider, old, new),
                    }
                }
            }
            (Some(Value::Array(olds)), Some(Value::Array(news)))
                if LISTS.contains(&key) && olds.len() == news.len() =>
            {
                for (index, (old, new)) in olds.iter().zip(news).enumerate() {
                    self.schema(&format!("{path}[{index}]"), old, new, Mode::Exact);
                }
            }
            (Some(old @ Value::Object(_)), Some(new @ Value::Object(_))) if ONE.contains(&key) => {
                self.schema(path, old, new, Mode::Exact);
            }
            (old, new) => self.note(path, DiffEffect::Wider, old, new),
        }
    }

    /// A keyword with one schema, which is no bound when absent.
    fn single(&mut self, path: &str, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (Some(old), Some(new)) => self.schema(path, old, new, Mode::Monotone),
            (old, new) => self.judge(path, old.is_none(), old, new),
        }
    }

    /// Every branch of the new list must be covered by one of the old.
    fn any_of(&mut self, path: &str, old: Option<&Value>, new: Option<&Value>) {
        let (Some(Value::Array(olds)), Some(Value::Array(news))) = (old, new) else {
            return self.judge(path, old.is_none(), old, new);
        };
        let covered =
            |comparer: &mut Comparer, new: &Value| olds.iter().any(|old| comparer.covers(old, new));
        let is_narrower = news.iter().all(|new| covered(self, new));
        match olds.len() == news.len() && !is_narrower {
            true => self.branches(path, olds, news),
            false => self.judge(path, is_narrower, old, new),
        }
    }

    /// Every branch of the old list must still be asked for by one of the new.
    fn all_of(&mut self, path: &str, old: Option<&Value>, new: Option<&Value>) {
        let (Some(Value::Array(olds)), Some(Value::Array(news))) = (old, new) else {
            return self.judge(path, old.is_none(), old, new);
        };
        let asked =
            |comparer: &mut Comparer, old: &Value| news.iter().any(|new| comparer.covers(old, new));
        let is_narrower = olds.iter().all(|old| asked(self, old));
        match olds.len() == news.len() && !is_narrower {
            true => self.branches(path, olds, news),
            false => self.judge(path, is_narrower, old, new),
        }
    }

    /// The differences of two lists branch by branch, for showing. The lists as a
    /// whole were judged to be wider already.
    fn branches(&mut self, path: &str, olds: &[Value], news: &[Value]) {
        for (index, (old, new)) in olds.iter().zip(news).enumerate() {
            self.schema(&format!("{path}[{index}]"), old, new, Mode::Exact);
        }
    }

    /// Whether a branch accepts no more than another.
    fn covers(&mut self, old: &Value, new: &Value) -> bool {
        let mut inner = Comparer {
            rule: self.rule,
            diffs: Vec::new(),
            worst: None,
            steps: self.steps,
            is_in_one_place: self.is_in_one_place,
        };
        inner.schema("", old, new, Mode::Monotone);
        self.steps = inner.steps;
        inner.worst < Some(DiffEffect::Wider)
    }

    fn judge(&mut self, path: &str, is_narrower: bool, old: Option<&Value>, new: Option<&Value>) {
        let effect = match is_narrower {
            true => DiffEffect::Narrower,
            false => DiffEffect::Wider,
        };
        self.note(path, effect, old, new);
    }

    fn note(&mut self, path: &str, effect: DiffEffect, old: Option<&Value>, new: Option<&Value>) {
        self.worst = self.worst.max(Some(effect));
        let diff = FieldDiff {
            path: path.to_owned(),
            effect,
            old: old.cloned(),
            new: new.cloned(),
        };
        if self.diffs.len() < limit::FIELD_DIFFS_MAX {
            self.diffs.push(diff);
        } else if self.diffs.iter().all(|known| known.effect < effect) {
            // The list is full, and still its worst entry is the worst there is.
            self.diffs.pop();
            self.diffs.push(diff);
        }
    }
}

/// The keywords of two schemas.
#[derive(Clone, Copy, Debug)]
struct Pair<'a> {
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
}

impl<'a> Pair<'a> {
    fn values(&self, key: &str) -> (Option<&'a Value>, Option<&'a Value>) {
        (self.old.get(key), self.new.get(key))
    }

    fn has_any(&self, keys: &[&str]) -> bool {
        keys.iter()
            .any(|key| self.old.contains_key(*key) || self.new.contains_key(*key))
    }
}

/// The keywords of a schema. `true` has none; `false` is no set of keywords.
fn fields_of(schema: &Value) -> Option<Map<String, Value>> {
    match schema {
        Value::Object(fields) => Some(fields.clone()),
        Value::Bool(true) => Some(Map::new()),
        Value::Bool(false)
        | Value::Null
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_) => None,
    }
}

/// Whether only the version of JSON Schema changed, and neither schema has anything
/// that the versions read differently.
fn is_dialect_change(pair: &Pair<'_>) -> bool {
    let is_known = |version: Option<&Value>| {
        let version = version.map_or(Some(""), Value::as_str);
        version.is_some_and(|version| {
            let version = version.trim_end_matches('#');
            let bare = version
                .trim_start_matches("https://")
                .trim_start_matches("http://");
            let official = [
                "",
                "json-schema.org/draft-04/schema",
                "json-schema.org/draft-06/schema",
                "json-schema.org/draft-07/schema",
                "json-schema.org/draft/2019-09/schema",
                "json-schema.org/draft/2020-12/schema",
            ];
            official.contains(&bare)
        })
    };
    let is_neutral = |fields: &Map<String, Value>| {
        fields
            .iter()
            .all(|(key, value)| !DIALECT.contains(&key.as_str()) && !has_key(value, DIALECT))
            && !has_list_items(fields)
    };
    let (old, new) = pair.values("$schema");
    is_known(old) && is_known(new) && is_neutral(pair.old) && is_neutral(pair.new)
}

/// Whether `items` is a list anywhere, which later versions do not read.
fn has_list_items(fields: &Map<String, Value>) -> bool {
    fields.iter().any(|(key, value)| {
        (key == "items" && value.is_array())
            || match value {
                Value::Object(fields) => has_list_items(fields),
                Value::Array(items) => items
                    .iter()
                    .filter_map(Value::as_object)
                    .any(has_list_items),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            }
    })
}

/// A path and one more step.
pub(crate) fn join(path: &str, key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
    let is_plain = !key.is_empty() && key.chars().all(plain);
    match (path.is_empty(), is_plain) {
        (true, true) => key.to_owned(),
        (false, true) => format!("{path}.{key}"),
        (_, false) => format!("{path}[{}]", Value::from(key)),
    }
}

#[cfg(test)]
mod tests;
