//! Properties of objects: which are declared, which must be there, which others may.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Comparer, DiffEffect, Mode, Pair, Rule, join};

/// Whether the new list of required properties is fine.
pub(super) fn is_required_fine(rule: Rule, pair: &Pair<'_>) -> bool {
    let (Some(olds), Some(news)) = (required(pair.old), required(pair.new)) else {
        return false;
    };
    match rule {
        // Fewer accept more, and more ask more of the model.
        Rule::Review => olds == news,
        Rule::Values => olds.is_subset(&news),
    }
}

fn required(fields: &Map<String, Value>) -> Option<BTreeSet<&str>> {
    match fields.get("required") {
        None => Some(BTreeSet::new()),
        Some(Value::Array(names)) => names.iter().map(Value::as_str).collect(),
        Some(_) => None,
    }
}

/// The schema of undeclared properties.
enum Others<'a> {
    Any,
    None,
    Schema(&'a Value),
}

fn others(fields: &Map<String, Value>) -> Others<'_> {
    match fields.get("additionalProperties") {
        None | Some(Value::Bool(true)) => Others::Any,
        Some(Value::Bool(false)) => Others::None,
        Some(Value::Object(empty)) if empty.is_empty() => Others::Any,
        Some(schema) => Others::Schema(schema),
    }
}

impl Comparer {
    pub(super) fn properties(&mut self, path: &str, pair: &Pair<'_>) {
        let empty = Map::new();
        let declared = |value: Option<&Value>| match value {
            None => Some(empty.clone()),
            Some(Value::Object(fields)) => Some(fields.clone()),
            Some(_) => None,
        };
        let (old, new) = pair.values("properties");
        let (Some(olds), Some(news)) = (declared(old), declared(new)) else {
            return self.note(path, DiffEffect::Wider, old, new);
        };
        let names: BTreeSet<&String> = olds.keys().chain(news.keys()).collect();
        for name in names {
            let path = join(path, name);
            match (olds.get(name), news.get(name)) {
                (Some(old), Some(new)) => self.schema(&path, old, new, Mode::Monotone),
                (Some(old), None) => {
                    let is_fine = self.may_lose(pair, old);
                    self.judge(&path, is_fine, Some(old), None);
                }
                (None, Some(new)) => {
                    let is_fine = self.may_gain(pair, new);
                    self.judge(&path, is_fine, None, Some(new));
                }
                (None, None) => {}
            }
        }
    }

    /// Whether a declared property may go: no other keyword gives it a new meaning.
    fn may_lose(&mut self, pair: &Pair<'_>, old: &Value) -> bool {
        if pair.has_any(&["patternProperties", "unevaluatedProperties"]) {
            return false;
        }
        match (others(pair.old), others(pair.new)) {
            (_, Others::None) => true,
            // A property that is declared nowhere is not sent.
            (Others::Any, Others::Any) => self.is_in_one_place,
            (_, Others::Any) => self.rule == Rule::Values && self.is_in_one_place,
            (_, Others::Schema(schema)) => self.covers(old, schema),
        }
    }

    /// Whether a property may be declared that was not. Never where it asks more of a
    /// model.
    fn may_gain(&mut self, pair: &Pair<'_>, new: &Value) -> bool {
        if self.rule == Rule::Review
            || pair.has_any(&["patternProperties", "unevaluatedProperties"])
        {
            return false;
        }
        match others(pair.old) {
            Others::Any => true,
            Others::None => false,
            Others::Schema(schema) => self.covers(schema, new),
        }
    }

    pub(super) fn additional(&mut self, path: &str, pair: &Pair<'_>) {
        let (old, new) = pair.values("additionalProperties");
        let is_pattern = pair.has_any(&["patternProperties", "unevaluatedProperties"]);
        match (others(pair.old), others(pair.new)) {
            (Others::Schema(old), Others::Schema(new)) => {
                self.schema(path, old, new, Mode::Monotone);
            }
            (Others::Any, _) | (_, Others::None) => self.judge(path, !is_pattern, old, new),
            (Others::None | Others::Schema(_), Others::Any) => {
                let is_fine = self.rule == Rule::Values && self.is_in_one_place && !is_pattern;
                self.judge(path, is_fine, old, new);
            }
            (Others::None, Others::Schema(_)) => self.note(path, DiffEffect::Wider, old, new),
        }
    }
}
