//! The schemas of a server's or a native tool, ready to check with. They are compiled when a call
//! first needs them: a list of a thousand tools checks nothing.

use std::sync::OnceLock;

use jsonschema::{PatternOptions, Validator};
use model::document::params::ArgumentFault;
use model::reason::Reason;
use model::text;
use serde_json::Value;
use upstream::definition::ToolDefinition;

/// Faults of one check that are told.
const FAULTS_MAX: usize = 5;
/// A compiled pattern of a schema, in bytes.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

/// The schemas of one tool.
#[derive(Debug)]
pub(crate) struct ServerSchemas {
    input: Schema,
    output: Option<Schema>,
}

#[derive(Debug)]
struct Schema {
    text: Value,
    compiled: OnceLock<Result<Validator, String>>,
}

impl ServerSchemas {
    pub(crate) fn new(definition: &ToolDefinition) -> ServerSchemas {
        let output = definition.output_schema.as_ref();
        ServerSchemas::of(&definition.input_schema, output)
    }

    /// Of the schemas themselves.
    pub(crate) fn of(input: &Value, output: Option<&Value>) -> ServerSchemas {
        let schema = |text: &Value| Schema {
            text: text.clone(),
            compiled: OnceLock::new(),
        };
        ServerSchemas {
            input: schema(input),
            output: output.map(schema),
        }
    }

    /// Whether the arguments fit.
    pub(crate) fn check_arguments(&self, arguments: &Value) -> Result<(), Vec<ArgumentFault>> {
        let fault = |name: String, message: String| ArgumentFault {
            reason: Reason::ArgumentSchema,
            name,
            message,
        };
        match self.input.check(arguments) {
            Ok(faults) if faults.is_empty() => Ok(()),
            Ok(faults) => {
                let told = faults.into_iter().map(|(place, why)| {
                    let message = match place.is_empty() {
                        true => format!("the arguments do not fit: {why}"),
                        false => format!("`{place}` does not fit: {why}"),
                    };
                    fault(place, message)
                });
                Err(told.collect())
            }
            // Fails closed: what cannot be checked is not sent.
            Err(why) => {
                let message = format!("the schema of the tool cannot be used: {why}");
                Err(vec![fault(String::new(), message)])
            }
        }
    }

    /// What is wrong with a structured result, if anything is.
    pub(crate) fn check_result(&self, structured: Option<&Value>) -> Option<String> {
        let schema = self.output.as_ref()?;
        let Some(structured) = structured else {
            return Some("the tool has an output schema and gave no structured result".to_owned());
        };
        match schema.check(structured) {
            Ok(faults) => faults.first().map(|(place, why)| {
                let place = if place.is_empty() { "it" } else { place };
                format!("the structured result does not fit: {place}: {why}")
            }),
            Err(why) => Some(format!("the output schema cannot be used: {why}")),
        }
    }
}

impl Schema {
    /// Where a value does not fit and why, at most a few places.
    fn check(&self, value: &Value) -> Result<Vec<(String, String)>, String> {
        let compiled = self.compiled.get_or_init(|| {
            // Patterns in linear time; references to other documents are not followed.
            jsonschema::options()
                .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES_MAX))
                .build(&self.text)
                .map_err(|error| text::elided(&error.to_string(), 200))
        });
        let validator = compiled.as_ref().map_err(Clone::clone)?;
        // A value may break a schema in thousands of places.
        let errors = validator.iter_errors(value).take(FAULTS_MAX);
        let told = errors.map(|error| {
            let place = error.instance_path().to_string();
            let place = place.trim_start_matches('/').replace('/', ".");
            let why = text::elided(&text::one_line(&error.to_string()), 200);
            (text::elided(&place, 100), why)
        });
        Ok(told.collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schemas(input: Value) -> ServerSchemas {
        let raw = json!({"name": "t", "inputSchema": input, "outputSchema": {
            "type": "object", "required": ["n"],
        }});
        ServerSchemas::new(&ToolDefinition::read(&raw).expect("a definition"))
    }

    #[test]
    fn arguments_are_checked_with_their_place() {
        let schemas = schemas(json!({
            "type": "object", "required": ["to"], "additionalProperties": false,
            "properties": {"to": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}}},
        }));
        assert_eq!(schemas.check_arguments(&json!({"to": ["a"]})), Ok(()));
        let faults = schemas.check_arguments(&json!({"to": ["a", 1], "x": 2}));
        let faults = faults.expect_err("does not fit");
        assert!(
            faults.iter().any(|fault| fault.name == "to.1"),
            "{faults:?}"
        );
        assert!(
            faults
                .iter()
                .all(|fault| fault.reason == Reason::ArgumentSchema)
        );
    }

    #[test]
    fn a_schema_that_cannot_be_used_lets_nothing_through() {
        let foreign = schemas(json!({
            "type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/x.json"}},
        }));
        assert!(foreign.check_arguments(&json!({"a": 1})).is_err());
    }

    #[test]
    fn a_result_that_does_not_fit_is_named() {
        let schemas = schemas(json!({"type": "object"}));
        assert_eq!(schemas.check_result(Some(&json!({"n": 1}))), None);
        assert!(schemas.check_result(Some(&json!({}))).is_some());
        assert!(schemas.check_result(None).is_some());
    }
}
