//! Examples of calls of a tool, as complete scripts: its author's own, then one made
//! from its params.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::document::codecall::Metadata;
use crate::document::params;
use crate::document::{Document, Param, ParamType};
use crate::limits;
use crate::text;

/// Characters up to which arguments are on one line.
const LINE_CHARS_MAX: usize = 80;
/// Characters of one string in a generated example.
const STRING_CHARS_MAX: usize = 500;

/// An example.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Example {
    /// A line about it.
    pub description: String,
    /// A script.
    pub code: String,
}

/// The examples of a tool, the best first.
#[must_use]
pub fn of(document: &Document) -> Vec<Example> {
    let metadata = Metadata::of(document);
    let name = document.name.as_str();
    let own = metadata.examples.iter().filter_map(|example| {
        let fits = params::check(&document.params, &example.input).is_ok();
        let code = fits.then(|| call(name, &example.input)).flatten()?;
        let description = text::elided(&example.description, 200);
        Some(Example { description, code })
    });
    let mut examples: Vec<_> = own.collect();
    let made = made(document);
    let is_new = |made: &Example| examples.iter().all(|own| own.code != made.code);
    let made = made.filter(is_new);
    examples.extend(made);
    examples.truncate(limits::DESCRIBE_EXAMPLES_MAX);
    examples
}

/// The call its own test makes, which is known to work: a tool may need one of two
/// optional arguments, and nothing but its test says so. If a test value is too long, a
/// sample replaces it, and the example says so.
fn made(document: &Document) -> Option<Example> {
    let params = document.params.iter();
    let shown = params.filter(|param| param.required || tested(param).is_some());
    let is_proven = shown.clone().all(|param| tested(param).is_some());
    let description = if is_proven {
        "As its own test calls it"
    } else {
        "With values to be replaced by your own"
    };
    Some(Example {
        description: description.to_owned(),
        code: call(&document.name, &arguments(shown)?.into())?,
    })
}

/// The script that makes one call; none if it would be too long to be one.
fn call(name: &str, arguments: &Value) -> Option<String> {
    let mut shown = serde_json::to_string(arguments).ok()?;
    if shown.chars().count() > LINE_CHARS_MAX {
        shown = serde_json::to_string_pretty(arguments).ok()?;
    }
    let name = serde_json::to_string(name).ok()?;
    let code = format!("return await callTool({name}, {shown});");
    let code = visible(&code);
    (code.chars().count() <= limits::EXAMPLE_CHARS_MAX).then_some(code)
}

/// Invisible characters as escapes, which JavaScript reads as the same text.
fn visible(code: &str) -> String {
    let mut shown = String::with_capacity(code.len());
    for letter in code.chars() {
        if letter == '\n' || !text::is_hidden(letter) {
            shown.push(letter);
            continue;
        }
        let mut halves = [0; 2];
        for half in letter.encode_utf16(&mut halves) {
            shown.push_str(&format!("\\u{half:04x}"));
        }
    }
    shown
}

fn arguments<'a>(params: impl Iterator<Item = &'a Param>) -> Option<Map<String, Value>> {
    let mut arguments = Map::new();
    for param in params {
        // In a script, such a name would not be an identifier.
        if matches!(
            param.name.as_str(),
            "__proto__" | "constructor" | "prototype"
        ) {
            return None;
        }
        arguments.insert(param.name.clone(), sample(param));
    }
    Some(arguments)
}

/// A value for an argument: its test value, or one that fits type and name.
fn sample(param: &Param) -> Value {
    tested(param).unwrap_or_else(|| guess(param))
}

fn tested(param: &Param) -> Option<Value> {
    let value = params::test_argument(param)?;
    let short = |text: &str| text.chars().count() <= STRING_CHARS_MAX;
    let fits = match &value {
        Value::String(text) => short(text),
        other => short(&other.to_string()),
    };
    fits.then_some(value)
}

fn guess(param: &Param) -> Value {
    let name = param.name.to_lowercase();
    let about = |word: &str| name.contains(word);
    match param.kind {
        ParamType::Boolean => Value::Bool(true),
        ParamType::Object => json!({}),
        ParamType::Array => json!([]),
        ParamType::Integer | ParamType::Number if about("offset") => json!(0),
        ParamType::Integer | ParamType::Number if about("limit") || about("count") => json!(10),
        ParamType::Integer | ParamType::Number => json!(1),
        ParamType::String if about("email") => json!("user@example.com"),
        ParamType::String if about("url") || about("link") => json!("https://example.com/"),
        ParamType::String if about("date") => json!("2024-01-31"),
        ParamType::String if about("path") || about("file") => json!("example.txt"),
        ParamType::String if name == "id" || name.ends_with("id") => json!("example-id"),
        ParamType::String if about("name") => json!("example"),
        ParamType::String => json!("text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;

    /// `LONG` in a document is a test value that is too long to be shown.
    fn codes(text: &str) -> Vec<String> {
        let text = &text.replace("LONG", &"y".repeat(STRING_CHARS_MAX + 1));
        let document = document::parse(text).items.pop().expect("one").document;
        let examples = of(&document.expect("a document"));
        examples.into_iter().map(|example| example.code).collect()
    }

    #[test]
    fn test_values_come_before_made_up_ones() {
        let found = codes(
            r#"{"name":"mail","code":"","codeType":"Javascript","params":[
            {"name":"email","type":"STRING","required":true,"testValue":"LONG"},
            {"name":"subject","type":"STRING","required":true,"testValue":"Grüße"},
            {"name":"copies","type":"INTEGER","required":false,"testValue":"3"},
            {"name":"note","type":"STRING","required":false}]}"#,
        );
        let expected = r#"return await callTool("mail", {"email":"user@example.com","subject":"Grüße","copies":3});"#;
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_tool_without_arguments_has_one_example() {
        let found = codes(r#"{"name":"now","code":"","codeType":"Javascript"}"#);
        assert_eq!(found, [r#"return await callTool("now", {});"#]);
    }

    #[test]
    fn the_authors_own_come_first_if_they_fit() {
        let found = codes(
            r#"{"name":"add","code":"","codeType":"Javascript",
            "params":[{"name":"a","type":"INTEGER","required":true,"testValue":"1"}],
            "x-ringfence-codecall":{"examples":[
                {"description":"five","input":{"a":5}},
                {"description":"does not fit","input":{"b":5}}]}}"#,
        );
        assert_eq!(
            found,
            [
                r#"return await callTool("add", {"a":5});"#,
                r#"return await callTool("add", {"a":1});"#
            ]
        );
    }

    #[test]
    fn invisible_characters_are_escaped() {
        let found = codes(
            r#"{"name":"x","code":"","codeType":"Javascript",
            "params":[{"name":"a","type":"STRING","required":true,"testValue":"l\u202er\u200b"}]}"#,
        );
        assert_eq!(
            found,
            [r#"return await callTool("x", {"a":"l\u202er\u200b"});"#]
        );
    }
}
