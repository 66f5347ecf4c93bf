//! What bundled tools say they give back is what they give: every golden result of a
//! tool that declares a schema fits it, and has no field the schema does not name.

use std::fs;

use model::document::codecall;
use serde_json::{Value, json};

use crate::catalog::{documents, root};

/// The schema, with nothing besides what it names.
fn exact(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(members) => {
            let is_object = members.contains_key("properties");
            for value in members.values_mut() {
                *value = exact(value.take());
            }
            if is_object {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = exact(item.take());
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    schema
}

/// The results written down for a tool.
fn results(stem: &str) -> Vec<Value> {
    let files = [".json", ".http.json"].map(|ending| format!("cases/catalog/{stem}{ending}"));
    let texts = files
        .iter()
        .filter_map(|path| fs::read_to_string(root().join(path)).ok());
    let rows = texts.flat_map(|text| serde_json::from_str::<Vec<Value>>(&text).unwrap());
    rows.filter_map(|row| row.get("result").cloned()).collect()
}

#[test]
fn golden_results_fit_the_schemas_of_their_tools() {
    let mut declared = 0;
    for tool in documents() {
        let Some(schema) = codecall::output_schema(&tool.usable.document) else {
            continue;
        };
        declared += 1;
        let validator = jsonschema::draft202012::new(&exact(schema)).unwrap();
        let results = results(&tool.stem);
        assert!(results.len() >= 2, "{}: too few results", tool.stem);
        for result in &results {
            let faults: Vec<_> = validator.iter_errors(result).collect();
            assert!(faults.is_empty(), "{}: {result}: {faults:?}", tool.stem);
        }
    }
    assert!(declared >= 20, "{declared} tools say what they give back");
}
