//! Params and arguments: the input schema, the check of a call's arguments, and the
//! test values of the Local Pass.

use serde_json::{Map, Value, json};

use crate::document::finding::{Code, Finding};
use crate::document::{Param, ParamType};
use crate::limits;
use crate::nearest::nearest;
use crate::reason::Reason;
use crate::text::elided;
use crate::word::Word;

/// Arguments that were checked against the params or the schema of one tool. Only
/// [`check`], [`check_schema`] and [`test_arguments`] make them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments {
    values: Map<String, Value>,
}

impl Arguments {
    /// The values by name, in the order the call gave them.
    #[must_use]
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// The values themselves.
    #[must_use]
    pub fn into_values(self) -> Map<String, Value> {
        self.values
    }
}

/// Why an argument does not fit. The message goes to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentFault {
    /// The stable code.
    pub reason: Reason,
    /// The argument's name, as the call gave it or as the tool wants it.
    pub name: String,
    /// One sentence with the fix in it, without its full stop.
    pub message: String,
}

/// The MCP input schema: order kept, types in lower case, `required` always there.
#[must_use]
pub fn input_schema(params: &[Param]) -> Value {
    let mut properties = Map::new();
    for param in params {
        let mut property = Map::new();
        property.insert("type".to_owned(), param.kind.word().to_lowercase().into());
        if !param.description.trim().is_empty() {
            property.insert("description".to_owned(), param.description.clone().into());
        }
        properties.insert(param.name.clone(), property.into());
    }
    let required: Vec<_> = params
        .iter()
        .filter(|param| param.required)
        .map(|param| param.name.as_str())
        .collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The input schema as clients and scripts are shown it: no other argument is accepted,
/// and an array declares that it may hold anything, because some clients refuse one
/// that does not.
#[must_use]
pub fn shown_schema(params: &[Param]) -> Value {
    let mut schema = input_schema(params);
    let arrays = params.iter().filter(|param| param.kind == ParamType::Array);
    for param in arrays {
        let properties = schema.get_mut("properties");
        let property = properties.and_then(|properties| properties.get_mut(&param.name));
        if let Some(Value::Object(property)) = property {
            property.insert("items".to_owned(), json!({}));
        }
    }
    if let Some(members) = schema.as_object_mut() {
        members.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    schema
}

/// Checks the arguments of a tool whose arguments a JSON Schema describes. They must be
/// an object within our bounds, and pass `fits`.
pub fn check_schema(
    raw_arguments: &Value,
    fits: impl FnOnce(&Value) -> Result<(), Vec<ArgumentFault>>,
) -> Result<Arguments, Vec<ArgumentFault>> {
    let values = match raw_arguments {
        Value::Null => Map::new(),
        Value::Object(given) => given.clone(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(vec![not_an_object(raw_arguments)]);
        }
    };
    // Before the schema, which walks the value as deep as it is.
    bounded(raw_arguments)?;
    let given = Value::Object(values);
    fits(&given)?;
    match given {
        Value::Object(values) => Ok(Arguments { values }),
        _ => Ok(Arguments::default()),
    }
}

fn not_an_object(raw_arguments: &Value) -> ArgumentFault {
    let message = format!(
        "the arguments must be an object, not {}",
        noun(raw_arguments)
    );
    fault(Reason::ArgumentsNotAnObject, "", message)
}

/// Checks a call's arguments. Null and, where optional, blank text count as
/// absent. All faults are reported together.
pub fn check(params: &[Param], raw_arguments: &Value) -> Result<Arguments, Vec<ArgumentFault>> {
    let given = match raw_arguments {
        Value::Null => &Map::new(),
        Value::Object(given) => given,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(vec![not_an_object(raw_arguments)]);
        }
    };
    bounded(raw_arguments)?;
    let mut faults: Vec<_> = unknown_names(params, given);
    let mut values = Map::new();
    for param in params {
        let value = given.get(&param.name).filter(|value| !value.is_null());
        match value {
            // Many models send "" for an optional argument that they leave out.
            Some(value) if !param.required && is_blank(value) => {}
            Some(value) => match fit(param, value) {
                Ok(value) => {
                    values.insert(param.name.clone(), value);
                }
                Err(fault) => faults.push(fault),
            },
            None if param.required => {
                let name = elided(&param.name, 60);
                let kind = param.kind.word().to_lowercase();
                let message = format!(
                    "the argument `{name}` is required; give {} {kind}",
                    article(&kind)
                );
                faults.push(fault(Reason::ArgumentMissing, &param.name, message));
            }
            None => {}
        }
    }
    if faults.is_empty() {
        Ok(Arguments { values })
    } else {
        Err(faults)
    }
}

/// The arguments of the Local Pass: every `testValue`, read as its param's type.
/// Faults point at `params[i].testValue`.
pub fn test_arguments(params: &[Param]) -> Result<Arguments, Vec<Finding>> {
    let mut values = Map::new();
    let mut findings = Vec::new();
    for (index, param) in params.iter().enumerate() {
        match param
            .test_value
            .as_deref()
            .map(|text| test_value(param.kind, text))
        {
            None | Some(Ok(None)) if param.required => {
                let message = format!(
                    "the required param `{}` has no `testValue`",
                    elided(&param.name, 60)
                );
                findings.push(
                    Finding::error(
                        Code::SpecInvariant,
                        format!("params[{index}].testValue"),
                        message,
                    )
                    .fix("add a realistic value: the Local Pass runs the tool with it"),
                );
            }
            None | Some(Ok(None)) => {}
            Some(Ok(Some(value))) => {
                values.insert(param.name.clone(), value);
            }
            Some(Err(message)) => findings.push(Finding::error(
                Code::SpecInvariant,
                format!("params[{index}].testValue"),
                message,
            )),
        }
    }
    if findings.is_empty() {
        Ok(Arguments { values })
    } else {
        Err(findings)
    }
}

/// The test value of one argument, if it has a readable one.
#[must_use]
pub fn test_argument(param: &Param) -> Option<Value> {
    test_value(param.kind, param.test_value.as_deref()?).ok()?
}

/// Reads a `testValue`. `None` means the argument stays absent.
fn test_value(kind: ParamType, text: &str) -> Result<Option<Value>, String> {
    let blank = text.trim().is_empty();
    let wrong = || {
        let kind = kind.word();
        format!(
            "`testValue` is `{}`, which cannot be read as {kind}",
            elided(text, 40)
        )
    };
    Ok(match kind {
        ParamType::String => Some(Value::from(text)),
        ParamType::Array if blank => Some(json!([])),
        ParamType::Object if blank => Some(json!({})),
        ParamType::Integer | ParamType::Number | ParamType::Boolean if blank => None,
        ParamType::Integer => {
            let number = text
                .trim()
                .parse::<i64>()
                .ok()
                .filter(|number| exact(*number));
            Some(number.ok_or_else(wrong)?.into())
        }
        ParamType::Number => {
            let number = text
                .trim()
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite());
            // So that `3` stays `3` and does not become `3.0`.
            let plain = text.trim().parse::<i64>().map(Value::from);
            Some(plain.unwrap_or(number.ok_or_else(wrong)?.into()))
        }
        ParamType::Boolean => Some(text.trim().eq_ignore_ascii_case("true").into()),
        ParamType::Array | ParamType::Object => Some(from_text(kind, text).ok_or_else(wrong)?),
    })
}

/// JSON text of the right kind, repeated keys and deep nesting refused.
fn from_text(kind: ParamType, text: &str) -> Option<Value> {
    let (node, repeated) = crate::document::json::parse(text).ok()?;
    let value = node.to_value();
    let fits = match kind {
        ParamType::Array => value.is_array(),
        ParamType::Object => value.is_object(),
        ParamType::Integer | ParamType::Number => value.is_number(),
        ParamType::Boolean => value.is_boolean(),
        ParamType::String => false,
    };
    // Of two members with one name some readers take the first and some the last.
    (fits && repeated.is_empty() && depth_fits(&value, limits::ARGUMENTS_DEPTH_MAX))
        .then_some(value)
}

fn fit(param: &Param, value: &Value) -> Result<Value, ArgumentFault> {
    let fitting = match (param.kind, value) {
        (ParamType::String, Value::String(_))
        | (ParamType::Boolean, Value::Bool(_))
        | (ParamType::Array, Value::Array(_))
        | (ParamType::Object, Value::Object(_))
        | (ParamType::Number, Value::Number(_)) => Some(value.clone()),
        (ParamType::Integer, Value::Number(number)) => whole(number).map(Value::from),
        // Some clients cannot send nested JSON, and some models put numbers in quotes:
        // JSON text of the right kind is accepted and replaced by its value.
        (
            ParamType::Array | ParamType::Object | ParamType::Number | ParamType::Boolean,
            Value::String(text),
        ) => from_text(param.kind, text),
        (ParamType::Integer, Value::String(text)) => {
            let number = from_text(param.kind, text);
            let number = number.as_ref().and_then(Value::as_number);
            number.and_then(whole).map(Value::from)
        }
        _ => None,
    };
    fitting.ok_or_else(|| {
        let name = elided(&param.name, 60);
        let kind = param.kind.word().to_lowercase();
        let message = match (param.kind, value) {
            (ParamType::Integer, Value::Number(number)) if number.is_f64() => {
                format!("the argument `{name}` must be a whole number, not {number}")
            }
            (ParamType::Integer, Value::Number(_)) => {
                format!(
                    "the argument `{name}` is beyond ±{}, where whole numbers stop being exact",
                    limits::INTEGER_ARGUMENT_MAX
                )
            }
            (ParamType::Array | ParamType::Object, Value::String(_)) => {
                format!("the argument `{name}` is text that is not a JSON {kind}")
            }
            _ => format!(
                "the argument `{name}` must be {} {kind}, not {}",
                article(&kind),
                noun(value)
            ),
        };
        fault(Reason::ArgumentType, &param.name, message)
    })
}

/// A whole number that JavaScript keeps exact, `3.0` included.
fn whole(number: &serde_json::Number) -> Option<i64> {
    let value = number.as_i64().or_else(|| {
        let value = number
            .as_f64()
            .filter(|value| value.fract() == 0.0 && value.abs() <= 9e15)?;
        #[expect(clippy::cast_possible_truncation, reason = "whole and within ±9e15")]
        Some(value as i64)
    })?;
    exact(value).then_some(value)
}

fn exact(number: i64) -> bool {
    number.unsigned_abs() <= limits::INTEGER_ARGUMENT_MAX.unsigned_abs()
}

fn unknown_names(params: &[Param], given: &Map<String, Value>) -> Vec<ArgumentFault> {
    let known = || params.iter().map(|param| param.name.as_str());
    let unknown = given
        .keys()
        .filter(|name| known().all(|known| known != *name));
    unknown
        // A call may hold thousands of names that are not known.
        .take(limits::PARAMS_MAX)
        .map(|name| {
            let shown = elided(name, 60);
            let message = match nearest(name, known()) {
                Some(near) => format!("there is no argument `{shown}`; did you mean `{near}`?"),
                None if params.is_empty() => {
                    format!("there is no argument `{shown}`; the tool takes none")
                }
                None => format!(
                    "there is no argument `{shown}`; the tool takes {}",
                    elided(&known().collect::<Vec<_>>().join(", "), 200)
                ),
            };
            fault(Reason::ArgumentUnknown, name, message)
        })
        .collect()
}

fn bounded(arguments: &Value) -> Result<(), Vec<ArgumentFault>> {
    if !depth_fits(arguments, limits::ARGUMENTS_DEPTH_MAX) {
        let message = format!(
            "the arguments are nested more than {} deep",
            limits::ARGUMENTS_DEPTH_MAX
        );
        return Err(vec![fault(Reason::ArgumentsTooDeep, "", message)]);
    }
    if size(arguments) > limits::ARGUMENTS_BYTES_MAX {
        let message = format!(
            "the arguments are longer than {} KiB",
            limits::ARGUMENTS_BYTES_MAX >> 10
        );
        return Err(vec![fault(Reason::ArgumentsTooLarge, "", message)]);
    }
    Ok(())
}

/// Whether a value nests at most `depth` arrays and objects. Recursion is bounded
/// by `depth` itself.
fn depth_fits(value: &Value, depth: usize) -> bool {
    let fits_below = |inner: &Value| depth > 0 && depth_fits(inner, depth - 1);
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(fits_below),
        Value::Object(members) => depth > 0 && members.values().all(fits_below),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// The length of a value as JSON, near enough, without writing it. Call only
/// once the depth is known to fit.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => {
            members
                .iter()
                .map(|(key, value)| key.len() + size(value) + 4)
                .sum::<usize>()
                + 2
        }
    }
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty())
}

fn fault(reason: Reason, name: &str, message: String) -> ArgumentFault {
    ArgumentFault {
        reason,
        name: name.to_owned(),
        message,
    }
}

fn noun(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    }
}

#[cfg(test)]
mod tests;
