//! Definitions as hostile peers send them.

use serde_json::{Value, json};

use super::*;

fn tool(changes: Value) -> Value {
    let mut tool = json!({"name": "read_file", "description": "Reads a file.", "inputSchema": {"type": "object"}});
    for (key, value) in changes.as_object().unwrap() {
        tool[key] = value.clone();
    }
    tool
}

#[track_caller]
fn same(a: Value, b: Value) {
    let (a, b) = (read(&tool(a)).unwrap(), read(&tool(b)).unwrap());
    assert_eq!(a, b);
    let text = |tool: ToolDefinition| canonical::to_bytes(&tool.to_value()).unwrap();
    assert_eq!(text(a), text(b));
}

#[track_caller]
fn refused(changes: Value, code: DefinitionFaultCode, message: &str) {
    let fault = read(&tool(changes)).unwrap_err();
    assert_eq!((fault.code, fault.message.as_str()), (code, message));
}

#[test]
fn absent_empty_and_null_are_the_same() {
    same(json!({}), json!({"annotations": {}}));
    same(
        json!({}),
        json!({"annotations": null, "title": null, "outputSchema": null}),
    );
    same(json!({}), json!({"title": ""}));
    same(json!({}), json!({"annotations": {"unknownHint": true}}));
}

#[test]
fn unknown_fields_are_dropped() {
    same(
        json!({}),
        json!({"_meta": {"a": 1}, "icons": [{"src": "x"}], "execution": {}}),
    );
    let read = read(&tool(json!({"_meta": {"a": 1}}))).unwrap();
    assert_eq!(read.to_value().get("_meta"), None);
}

#[test]
fn the_order_of_fields_and_sets_does_not_count() {
    let one = json!({"type": "object", "required": ["a", "b"], "properties": {
        "a": {"type": ["string", "null"], "enum": ["x", "y", null]}, "b": {"type": "number", "minimum": 1}}});
    let other = json!({"properties": {
        "b": {"minimum": 1.0, "type": "number"}, "a": {"enum": [null, "y", "x"], "type": ["null", "string"]}},
        "required": ["b", "a", "b"], "type": "object"});
    same(json!({"inputSchema": one}), json!({"inputSchema": other}));
}

/// A property called `required` is a schema, and what stands in `default` is data.
#[test]
fn data_keeps_its_order() {
    let schema = |list: Value| {
        json!({"inputSchema": {"type": "object", "properties": {
            "required": {"type": "array", "default": list}}}})
    };
    let read = |list: Value| read(&tool(schema(list))).unwrap();
    assert_ne!(read(json!(["b", "a"])), read(json!(["a", "b"])));
    let nested = json!({"required": ["b", "a"]});
    assert_eq!(
        read(nested.clone()).input_schema["properties"]["required"]["default"],
        nested
    );
}

#[test]
fn a_schema_without_a_type_is_one_of_an_object() {
    same(
        json!({"inputSchema": {}}),
        json!({"inputSchema": {"type": "object"}}),
    );
}

#[test]
fn invalid_definitions_get_one_sentence() {
    use DefinitionFaultCode::{Missing, TooDeep, TooLarge, TooLong, Type};
    refused(json!({"name": ""}), Missing, "a tool has no `name`");
    refused(
        json!({"name": 5}),
        Type,
        "a tool has a `name` that is not a text",
    );
    let long = "x".repeat(129);
    let fault = read(&tool(json!({"name": long}))).unwrap_err();
    assert_eq!(fault.code, TooLong);
    assert!(read(&tool(json!({"name": "ä".repeat(128)}))).is_ok());
    refused(
        json!({"description": ["a"]}),
        Type,
        "a tool named `read_file` has a `description` that is not a text",
    );
    refused(
        json!({"description": "x".repeat(65_537)}),
        TooLong,
        "a tool named `read_file` has a `description` of more than 65536 bytes",
    );
    refused(
        json!({"inputSchema": null}),
        Missing,
        "a tool named `read_file` has no `inputSchema`",
    );
    refused(
        json!({"inputSchema": {"type": "string"}}),
        Type,
        "a tool named `read_file` has an `inputSchema` whose `type` is not `object`",
    );
    refused(
        json!({"annotations": {"readOnlyHint": "yes"}}),
        Type,
        "a tool named `read_file` has an annotation `readOnlyHint` of the wrong type or size",
    );
    let deep = (0..32).fold(json!({}), |inner, _| json!({"not": inner}));
    refused(
        json!({"inputSchema": deep}),
        TooDeep,
        "a tool named `read_file` has an `inputSchema` nested deeper than 32",
    );
    let wide: Vec<u32> = (0..20_000).collect();
    refused(
        json!({"inputSchema": {"enum": wide}}),
        TooLarge,
        "a tool named `read_file` has an `inputSchema` of more than 20000 values",
    );
    let heavy = json!({"inputSchema": {"description": "x".repeat(300_000)}});
    assert_eq!(read(&tool(heavy)).unwrap_err().code, TooLong);
    assert_eq!(
        read(&json!("x")).unwrap_err().message,
        "a tool must be a JSON object"
    );
}

/// Integers beyond 2^53 have no exact spelling; what is forwarded is what is pinned.
#[test]
fn the_forwarded_text_is_the_pinned_text() {
    let schema =
        json!({"inputSchema": {"properties": {"n": {"maximum": 9_007_199_254_740_993_u64}}}});
    let read = read(&tool(schema)).unwrap();
    let text = canonical::to_bytes(&read.to_value()).unwrap();
    let again: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(again, read.to_value());
    assert_eq!(super::read(&again).unwrap(), read);
}

#[test]
fn prompts_and_templates_are_read() {
    let prompt = json!({"name": "review", "arguments": [
        {"name": "b", "required": true}, {"name": "a", "description": "x"}], "_meta": {}});
    let read = Definition::read(ItemKind::Prompt, &prompt).unwrap();
    assert_eq!(
        read.to_value(),
        json!({"name": "review", "arguments": [
            {"name": "a", "description": "x"}, {"name": "b", "required": true}]})
    );
    let twice = json!({"name": "review", "arguments": [{"name": "a"}, {"name": "a"}]});
    let fault = Definition::read(ItemKind::Prompt, &twice).unwrap_err();
    assert_eq!(
        fault.message,
        "a prompt named `review` has two arguments `a`"
    );
    let template = json!({"uriTemplate": "file:///{path}", "name": "files"});
    let read = Definition::read(ItemKind::ResourceTemplate, &template).unwrap();
    assert_eq!(read.key().name, "file:///{path}");
    assert_eq!(read.to_value(), template);
}

#[test]
fn a_server_is_bounded_and_comes_back() {
    let command = ServerOrigin::Command {
        program: "npx".to_owned(),
        arguments: vec!["-y".to_owned(), "pkg@1.2.3".to_owned()],
        digest: None,
    };
    let server = ServerDefinition::new("demo", "1", Some("Be kind."), command).unwrap();
    assert_eq!(
        ServerDefinition::from_value(&server.to_value()),
        Some(server)
    );
    let url = || ServerOrigin::Url("https://example.com/mcp".to_owned());
    let long = "x".repeat(limit::TEXT_BYTES_MAX + 1);
    let fault = ServerDefinition::new("demo", "1", Some(&long), url()).unwrap_err();
    assert_eq!(
        fault.message,
        "a server has an `instructions` of more than 65536 bytes"
    );
    let silent = ServerDefinition::new("demo", "1", Some(""), url()).unwrap();
    assert_eq!(silent.instructions, None);
}
