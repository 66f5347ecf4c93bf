//! What is called narrower accepts no value that was not accepted before: held against
//! a validator, for values with declared properties, which are what a model sends.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use upstream::definition;
use upstream::schema::{DiffEffect, accepts_all, diffs};

/// Keywords of a value that is no object, few enough to meet.
fn leaf() -> impl Strategy<Value = Value> {
    let keyword = prop_oneof![
        prop_oneof![
            Just("string"),
            Just("integer"),
            Just("number"),
            Just("null")
        ]
        .prop_map(|word| ("type", json!(word))),
        Just(("type", json!(["null", "string"]))),
        proptest::sample::subsequence(vec!["a", "b", "c"], 1..=3)
            .prop_map(|list| ("enum", json!(list))),
        Just(("const", json!("a"))),
        (0..3).prop_map(|n| ("minimum", json!(n))),
        (0..3).prop_map(|n| ("exclusiveMinimum", json!(n))),
        (1..4).prop_map(|n| ("maximum", json!(n))),
        (1..4).prop_map(|n| ("exclusiveMaximum", json!(n))),
        (0..3).prop_map(|n| ("minLength", json!(n))),
        (1..4).prop_map(|n| ("maxLength", json!(n))),
        (0..3).prop_map(|n| ("maxItems", json!(n))),
        (0..2).prop_map(|n| ("minItems", json!(n))),
        any::<bool>().prop_map(|flag| ("uniqueItems", json!(flag))),
        (1..3).prop_map(|n| ("multipleOf", json!(n))),
        Just(("pattern", json!("^a"))),
        Just(("description", json!("Words."))),
    ];
    let keywords = proptest::collection::vec(keyword, 0..3);
    keywords.prop_map(|keywords| {
        let fields = keywords
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value));
        Value::Object(fields.collect())
    })
}

fn schema() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 24, 3, |inner| {
        let properties = proptest::collection::btree_map("[pqr]", inner.clone(), 0..3);
        let others = prop_oneof![
            3 => Just(None),
            2 => any::<bool>().prop_map(|flag| Some(json!(flag))),
            1 => inner.clone().prop_map(Some),
        ];
        let required = proptest::sample::subsequence(vec!["p", "q", "r"], 0..=2);
        let object = (properties, others, required).prop_map(|(properties, others, required)| {
            let mut schema = json!({"type": "object", "properties": properties});
            if let Some(others) = others {
                schema["additionalProperties"] = others;
            }
            if !required.is_empty() {
                schema["required"] = json!(required);
            }
            schema
        });
        let branches = || proptest::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            4 => object,
            1 => inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            1 => branches().prop_map(|list| json!({"anyOf": list})),
            1 => branches().prop_map(|list| json!({"allOf": list})),
            1 => branches().prop_map(|list| json!({"oneOf": list})),
            1 => inner.clone().prop_map(|inner| json!({"not": inner})),
        ]
    })
}

/// An edit at a place that is counted through the schema.
#[derive(Clone, Debug)]
enum Edit {
    Remove,
    Put(Value),
    Grow(&'static str, Value),
}

fn edit() -> impl Strategy<Value = (usize, Edit)> {
    let edit = prop_oneof![
        Just(Edit::Remove),
        leaf().prop_map(Edit::Put),
        (0..4).prop_map(|n| Edit::Put(json!(n))),
        any::<bool>().prop_map(|flag| Edit::Put(json!(flag))),
        (0..4).prop_map(|n| Edit::Grow("minimum", json!(n))),
        (0..4).prop_map(|n| Edit::Grow("maxLength", json!(n))),
        Just(Edit::Grow("type", json!("string"))),
        Just(Edit::Grow("additionalProperties", json!(false))),
        Just(Edit::Grow("required", json!(["p"]))),
    ];
    (0..14_usize, edit)
}

/// Applies an edit to the n-th field of all objects, counted from the outside.
fn apply(value: &mut Value, left: &mut usize, edit: &Edit) -> bool {
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Array(items) => return items.iter_mut().any(|item| apply(item, left, edit)),
        _ => return false,
    };
    let keys: Vec<String> = fields.keys().cloned().collect();
    for key in keys {
        if *left == 0 {
            match edit {
                Edit::Remove => drop(fields.shift_remove(&key)),
                Edit::Put(value) => drop(fields.insert(key, value.clone())),
                Edit::Grow(key, value) => drop(fields.insert((*key).to_owned(), value.clone())),
            }
            return true;
        }
        *left -= 1;
        if fields
            .get_mut(&key)
            .is_some_and(|value| apply(value, left, edit))
        {
            return true;
        }
    }
    false
}

/// Values for a schema: any leaf, lists, and objects with its declared properties.
fn samples(schema: &Value, depth: usize) -> Vec<Value> {
    let mut values = vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(1.5),
        json!(2),
        json!(3),
        json!(5),
        json!(""),
        json!("a"),
        json!("b"),
        json!("c"),
        json!("abcd"),
        json!([]),
        json!([1]),
        json!(["a", "a"]),
        json!([null, 2, "b"]),
        json!({}),
    ];
    let mut declared = Map::new();
    collect(schema, &mut declared);
    if depth == 0 || declared.is_empty() {
        return values;
    }
    let choices: Vec<(String, Vec<Value>)> = declared
        .iter()
        .map(|(name, schema)| (name.clone(), samples(schema, depth - 1)))
        .collect();
    // Every property alone with every value, and all of them together, shifted.
    for (name, options) in &choices {
        values.extend(options.iter().map(|option| json!({name.as_str(): option})));
    }
    for shift in 0..24 {
        let pick = |(index, (name, options)): (usize, &(String, Vec<Value>))| {
            (
                name.clone(),
                options[(shift * (index + 1) + index) % options.len()].clone(),
            )
        };
        values.push(Value::Object(
            choices.iter().enumerate().map(pick).collect(),
        ));
    }
    values
}

/// The properties a schema declares, in any of its branches.
fn collect(schema: &Value, declared: &mut Map<String, Value>) {
    let Value::Object(fields) = schema else {
        return;
    };
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                declared.extend(
                    properties
                        .iter()
                        .map(|(name, value)| (name.clone(), value.clone())),
                );
            }
            ("anyOf" | "allOf", Value::Array(branches)) => {
                branches.iter().for_each(|branch| collect(branch, declared));
            }
            _ => {}
        }
    }
}

fn as_read(properties: &Value) -> Option<Value> {
    let schema = json!({"type": "object", "properties": {"p": properties}});
    let tool = json!({"name": "t", "inputSchema": schema});
    definition::read(&tool).ok().map(|tool| tool.input_schema)
}

/// The values that `narrow` accepts and `wide` does not.
fn escaped(wide: &Value, narrow: &Value) -> Option<Value> {
    let wide = jsonschema::validator_for(wide).ok()?;
    let accepts = jsonschema::validator_for(narrow).ok()?;
    let mut values = samples(narrow, 3).into_iter();
    values.find(|value| accepts.is_valid(value) && !wide.is_valid(value))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn narrower_accepts_no_more(old in schema(), edits in proptest::collection::vec(edit(), 1..4)) {
        let mut new = old.clone();
        for (place, edit) in edits {
            let mut left = place;
            apply(&mut new, &mut left, &edit);
        }
        let (Some(old), Some(new)) = (as_read(&old), as_read(&new)) else {
            return Ok(());
        };
        let worst = diffs("", &old, &new).iter().map(|diff| diff.effect).max();
        if worst < Some(DiffEffect::Wider) {
            prop_assert_eq!(escaped(&old, &new), None, "{} -> {}", old, new);
        }
        if accepts_all(&old, &new) {
            prop_assert_eq!(escaped(&old, &new), None, "values: {} -> {}", old, new);
        }
        if accepts_all(&new, &old) {
            prop_assert_eq!(escaped(&new, &old), None, "values: {} <- {}", old, new);
        }
    }

    #[test]
    fn nothing_differs_from_itself(schema in schema()) {
        let Some(schema) = as_read(&schema) else {
            return Ok(());
        };
        prop_assert!(diffs("", &schema, &schema).is_empty());
        prop_assert!(accepts_all(&schema, &schema));
    }

    /// Reading what was read changes nothing, and no order counts.
    #[test]
    fn the_spelling_is_settled(schema in schema()) {
        let Some(read) = as_read(&schema) else {
            return Ok(());
        };
        prop_assert_eq!(as_read(&read["properties"]["p"]), Some(read.clone()));
        prop_assert_eq!(as_read(&backwards(&schema)), Some(read));
    }
}

/// The same with every object's fields and every set in the opposite order.
fn backwards(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().rev().map(|(key, value)| {
                let mut value = backwards(value);
                let is_set = ["enum", "required", "type"].contains(&key.as_str());
                if let (true, Value::Array(items)) = (is_set, &mut value) {
                    items.reverse();
                }
                (key.clone(), value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.iter().map(backwards).collect(),
        other => other.clone(),
    }
}
