//! The schema of a tool's result, as its author declares it: JSON Schema 2020-12, for
//! models to read. Results are not validated against it. It must be small,
//! self-contained, without invisible characters, and valid.

use crate::document::json::{JsonKind, Node};
use crate::limits;
use crate::nearest::nearest;
use crate::text::{elided, is_hidden};

/// The type of a keyword's value.
#[derive(Clone, Copy, Debug)]
enum Holds {
    Anything,
    Text,
    Flag,
    Number,
    /// More than nothing.
    Step,
    Count,
    Type,
    List,
    Names,
    NamesByName,
    Schema,
    Schemas,
    SchemasByName,
    Reference,
}

const KEYWORDS: [(&str, Holds); 55] = [
    ("$anchor", Holds::Text),
    ("$comment", Holds::Text),
    ("$defs", Holds::SchemasByName),
    ("$id", Holds::Text),
    ("$ref", Holds::Reference),
    ("$schema", Holds::Text),
    ("additionalProperties", Holds::Schema),
    ("allOf", Holds::Schemas),
    ("anyOf", Holds::Schemas),
    ("const", Holds::Anything),
    ("contains", Holds::Schema),
    ("contentEncoding", Holds::Text),
    ("contentMediaType", Holds::Text),
    ("contentSchema", Holds::Schema),
    ("default", Holds::Anything),
    ("definitions", Holds::SchemasByName),
    ("dependentRequired", Holds::NamesByName),
    ("dependentSchemas", Holds::SchemasByName),
    ("deprecated", Holds::Flag),
    ("description", Holds::Text),
    ("else", Holds::Schema),
    ("enum", Holds::List),
    ("examples", Holds::List),
    ("exclusiveMaximum", Holds::Number),
    ("exclusiveMinimum", Holds::Number),
    ("format", Holds::Text),
    ("if", Holds::Schema),
    ("items", Holds::Schema),
    ("maxContains", Holds::Count),
    ("maxItems", Holds::Count),
    ("maxLength", Holds::Count),
    ("maxProperties", Holds::Count),
    ("maximum", Holds::Number),
    ("minContains", Holds::Count),
    ("minItems", Holds::Count),
    ("minLength", Holds::Count),
    ("minProperties", Holds::Count),
    ("minimum", Holds::Number),
    ("multipleOf", Holds::Step),
    ("not", Holds::Schema),
    ("oneOf", Holds::Schemas),
    ("pattern", Holds::Text),
    ("patternProperties", Holds::SchemasByName),
    ("prefixItems", Holds::Schemas),
    ("properties", Holds::SchemasByName),
    ("propertyNames", Holds::Schema),
    ("readOnly", Holds::Flag),
    ("required", Holds::Names),
    ("then", Holds::Schema),
    ("title", Holds::Text),
    ("type", Holds::Type),
    ("unevaluatedItems", Holds::Schema),
    ("unevaluatedProperties", Holds::Schema),
    ("uniqueItems", Holds::Flag),
    ("writeOnly", Holds::Flag),
];

const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// The first fault of a schema, in one sentence.
pub(super) fn fault(root: &Node) -> Option<String> {
    check(root).err()
}

fn check(root: &Node) -> Result<(), String> {
    if root.members().is_none() {
        return Err(format!(
            "`outputSchema` must be a JSON Schema object, not {}",
            root.noun()
        ));
    }
    let most = limits::OUTPUT_SCHEMA_DEPTH_MAX;
    // Before everything else that walks the schema: those checks recurse as deep as it
    // is.
    if depth(root, most) > most {
        return Err(format!("`outputSchema` is nested more than {most} deep"));
    }
    let length = root.to_value().to_string().len();
    let most = limits::OUTPUT_SCHEMA_BYTES_MAX;
    if length > most {
        return Err(format!(
            "`outputSchema` has {length} bytes; at most {most} fit"
        ));
    }
    if has_hidden(root) {
        let message = "`outputSchema` contains invisible characters";
        return Err(message.to_owned());
    }
    schema(root, root, "outputSchema")
}

/// Checks one schema, which is part of another.
fn schema(node: &Node, root: &Node, place: &str) -> Result<(), String> {
    let members = match (&node.kind, node.members()) {
        (JsonKind::Bool(_), _) => return Ok(()),
        (_, Some(members)) => members,
        (_, None) => return Err(wrong(place, "a schema: an object, true or false", node)),
    };
    for member in members {
        let (key, value) = (member.key.as_str(), &member.value);
        let place = format!("{place}.{}", elided(key, 60));
        let mut known = KEYWORDS.iter();
        match known.find(|(word, _)| *word == key) {
            Some((_, holds)) => keyword(*holds, value, root, &place)?,
            // Extensions of vendors.
            None if key.starts_with("x-") => {}
            None => {
                let words = KEYWORDS.map(|(word, _)| word);
                let near = nearest(key, words).map(|near| format!("; did you mean `{near}`?"));
                return Err(format!(
                    "`{place}` is not a keyword of JSON Schema{}",
                    near.unwrap_or_default()
                ));
            }
        }
    }
    Ok(())
}

fn keyword(holds: Holds, value: &Node, root: &Node, place: &str) -> Result<(), String> {
    let fits = |fits: bool, wanted: &str| match fits {
        true => Ok(()),
        false => Err(wrong(place, wanted, value)),
    };
    match holds {
        Holds::Anything => Ok(()),
        Holds::Text => fits(value.text().is_some(), "a string"),
        Holds::Flag => fits(matches!(value.kind, JsonKind::Bool(_)), "true or false"),
        Holds::Number => fits(number(value).is_some(), "a number"),
        Holds::Step => fits(
            number(value).is_some_and(|step| step > 0.0),
            "a number above 0",
        ),
        Holds::Count => fits(is_count(value), "a whole number, 0 or more"),
        Holds::Type => fits(
            is_type(value),
            "the name of a JSON type, or an array of such names, each once",
        ),
        Holds::List => fits(items(value).is_some(), "an array"),
        Holds::Names => fits(are_names(value), "an array of strings, each once"),
        Holds::NamesByName => fits(
            value
                .members()
                .is_some_and(|members| members.iter().all(|member| are_names(&member.value))),
            "an object of arrays of strings",
        ),
        Holds::Schema => schema(value, root, place),
        Holds::Schemas => {
            let schemas = items(value).filter(|items| !items.is_empty());
            let Some(schemas) = schemas else {
                return fits(false, "an array of schemas, at least one");
            };
            for (index, item) in schemas.iter().enumerate() {
                schema(item, root, &format!("{place}[{index}]"))?;
            }
            Ok(())
        }
        Holds::SchemasByName => {
            let Some(members) = value.members() else {
                return fits(false, "an object of schemas");
            };
            for member in members {
                let place = format!("{place}.{}", elided(&member.key, 60));
                schema(&member.value, root, &place)?;
            }
            Ok(())
        }
        Holds::Reference => fits(
            value.text().is_some_and(|text| leads_somewhere(text, root)),
            "a place in the same schema, such as `#/$defs/name`",
        ),
    }
}

fn wrong(place: &str, wanted: &str, found: &Node) -> String {
    let found = match &found.kind {
        JsonKind::Array(_) | JsonKind::Object(_) => found.noun().to_owned(),
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => {
            format!("`{}`", elided(&found.to_value().to_string(), 60))
        }
    };
    format!("`{place}` must be {wanted}, not {found}")
}

fn items(node: &Node) -> Option<&[Node]> {
    match &node.kind {
        JsonKind::Array(items) => Some(items),
        _ => None,
    }
}

fn number(node: &Node) -> Option<f64> {
    match &node.kind {
        JsonKind::Number(digits) => digits.parse().ok(),
        _ => None,
    }
}

fn is_count(node: &Node) -> bool {
    number(node).is_some_and(|count| count >= 0.0 && count.fract() == 0.0)
}

fn is_type(node: &Node) -> bool {
    let is_known = |node: &Node| node.text().is_some_and(|word| TYPES.contains(&word));
    match items(node) {
        Some(items) => !items.is_empty() && items.iter().all(is_known) && are_names(node),
        None => is_known(node),
    }
}

fn are_names(node: &Node) -> bool {
    let Some(items) = items(node) else {
        return false;
    };
    let names: Option<std::collections::BTreeSet<_>> = items.iter().map(Node::text).collect();
    names.is_some_and(|names| names.len() == items.len())
}

/// Nothing outside is ever fetched, so a reference stays within.
fn leads_somewhere(reference: &str, root: &Node) -> bool {
    let Some(pointer) = reference.strip_prefix('#') else {
        return false;
    };
    if pointer.is_empty() {
        return true;
    }
    let Some(steps) = pointer.strip_prefix('/') else {
        return false;
    };
    let mut node = root;
    for step in steps.split('/') {
        let step = step.replace("~1", "/").replace("~0", "~");
        let next = match &node.kind {
            JsonKind::Array(_) => step.parse().ok().and_then(|index| node.at(index)),
            _ => node.get(&step),
        };
        match next {
            Some(next) => node = next,
            None => return false,
        }
    }
    matches!(node.kind, JsonKind::Bool(_) | JsonKind::Object(_))
}

/// How deep it is, or one more than asked.
fn depth(node: &Node, most: usize) -> usize {
    let deepest = |children: &mut dyn Iterator<Item = &Node>| match most.checked_sub(1) {
        None => 0,
        Some(most) => children.map(|child| depth(child, most)).max().unwrap_or(0),
    };
    match &node.kind {
        JsonKind::Array(items) => 1 + deepest(&mut items.iter()),
        JsonKind::Object(members) => 1 + deepest(&mut members.iter().map(|member| &member.value)),
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => 0,
    }
}

/// Whether a key or a text has invisible characters; line ends are allowed.
fn has_hidden(node: &Node) -> bool {
    let hides = |text: &str| text.chars().any(|c| is_hidden(c) && c != '\n' && c != '\t');
    match &node.kind {
        JsonKind::String(text) => hides(text),
        JsonKind::Array(items) => items.iter().any(has_hidden),
        JsonKind::Object(members) => members
            .iter()
            .any(|member| hides(&member.key) || has_hidden(&member.value)),
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::json;

    fn told(text: &str) -> Option<String> {
        fault(&json::parse(text).expect("JSON").0)
    }

    /// The verdict of another implementation of the same draft.
    fn is_schema(text: &str) -> bool {
        let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
        jsonschema::draft202012::meta::is_valid(&value)
    }

    #[test]
    fn valid_schemas_pass() {
        let rows = [
            "{}",
            r#"{"type":"object","properties":{"a":{"type":["string","null"]},"b":true},"required":["a"]}"#,
            r##"{"type":"array","items":{"$ref":"#/$defs/row"},"minItems":0,"$defs":{"row":{"type":"integer"}}}"##,
            r#"{"anyOf":[{"const":1},{"enum":["a",2,null]}],"description":"one\nor two","x-note":7}"#,
            r##"{"properties":{"next":{"$ref":"#"}},"additionalProperties":false,"multipleOf":0.5}"##,
            r#"{"patternProperties":{"^a":{"maxLength":1e2}},"dependentRequired":{"a":["b"]}}"#,
            r#"{"prefixItems":[{"type":"string"},false],"if":{},"then":{},"format":"date-time"}"#,
            r##"{"$defs":{"a/b":{"anyOf":[{}]}},"$ref":"#/$defs/a~1b/anyOf/0"}"##,
        ];
        for row in rows {
            assert_eq!(told(row), None, "{row}");
            assert!(is_schema(row), "{row}");
        }
    }

    #[test]
    fn invalid_schemas_get_one_sentence() {
        let rows = [
            (
                "[]",
                "`outputSchema` must be a JSON Schema object, not an array",
            ),
            (
                r#"{"type":"text"}"#,
                "`outputSchema.type` must be the name of a JSON type, or an array of such names, each once, not `\"text\"`",
            ),
            (r#"{"type":[]}"#, "the name of a JSON type"),
            (r#"{"type":["null","null"]}"#, "each once"),
            (
                r#"{"properties":{"a":"string"}}"#,
                "`outputSchema.properties.a` must be a schema",
            ),
            (r#"{"properties":[]}"#, "an object of schemas, not an array"),
            (r#"{"items":[{}]}"#, "`outputSchema.items` must be a schema"),
            (r#"{"required":"a"}"#, "an array of strings, each once"),
            (
                r#"{"required":["a","a"]}"#,
                "an array of strings, each once",
            ),
            (r#"{"anyOf":[]}"#, "at least one"),
            (
                r#"{"anyOf":[{"minimum":"1"}]}"#,
                "`outputSchema.anyOf[0].minimum` must be a number",
            ),
            (r#"{"minItems":-1}"#, "0 or more"),
            (r#"{"minItems":1.5}"#, "0 or more"),
            (r#"{"multipleOf":0}"#, "above 0"),
            (r#"{"uniqueItems":1}"#, "true or false"),
            (r#"{"enum":"a"}"#, "an array"),
            (r#"{"dependentRequired":{"a":1}}"#, "an object of arrays"),
            (r#"{"title":1}"#, "a string"),
        ];
        for (row, words) in rows {
            let told = told(row).unwrap_or_else(|| panic!("{row}"));
            assert!(told.contains(words), "{row}: {told}");
            assert!(!told.contains('\n') && !told.ends_with('.'), "{told}");
            assert!(!is_schema(row), "{row}");
        }
    }

    /// A valid schema that is refused here all the same.
    #[test]
    fn references_outside_or_to_nothing_are_refused() {
        let deep = format!(
            "{}{}",
            r#"{"not":"#.repeat(40),
            "{}".to_owned() + &"}".repeat(40)
        );
        let long = format!(r#"{{"description":"{}"}}"#, "x".repeat(9_000));
        let rows = [
            (
                r#"{"$ref":"https://example.com/a.json"}"#,
                "a place in the same schema",
            ),
            (r##"{"$ref":"#/$defs/none"}"##, "a place in the same schema"),
            (
                r##"{"$ref":"#/title","title":"a"}"##,
                "a place in the same schema",
            ),
            (r#"{"propertys":{}}"#, "did you mean `properties`?"),
            ("{\"description\":\"a\\u202eb\"}", "invisible characters"),
            ("{\"properties\":{\"a\\u200b\":{}}}", "invisible characters"),
            (&deep, "deep"),
            (&long, "bytes; at most"),
        ];
        for (row, words) in rows {
            let told = told(row).unwrap_or_else(|| panic!("{row}"));
            assert!(told.contains(words), "{row}: {told}");
        }
    }
}
