//! The shape of a schema: depth, size, references, names of properties.

use serde_json::Value;

use super::{FindingCode, Findings};
use crate::limit;
use crate::name::is_mixed_script;

/// Checks the shape of one schema.
pub(super) fn check(findings: &mut Findings, field: &str, schema: &Value) {
    let depth = depth(schema);
    if depth > limit::SCHEMA_DEPTH_HELD {
        let message = format!("the schema is nested {depth} deep");
        findings.add(FindingCode::DeepSchema, field, "", 0..0, message);
    }
    let bytes = schema.to_string().len();
    if bytes > limit::SCHEMA_BYTES_HELD {
        let message = format!("the schema has {bytes} bytes");
        findings.add(FindingCode::LargeSchema, field, "", 0..0, message);
    }
}

/// Keys of a schema's objects: references and names of properties.
pub(super) fn check_key(findings: &mut Findings, path: &str, key: &str, value: &Value) {
    match (key, value) {
        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target))
            if !target.starts_with('#') =>
        {
            let message = "a reference leads out of the document";
            findings.add(
                FindingCode::ForeignReference,
                path,
                target,
                0..target.len(),
                message,
            );
        }
        ("x-mcp-header", Value::String(header)) => {
            let message = "the argument travels as a header";
            findings.add(
                FindingCode::HeaderArgument,
                path,
                header,
                0..header.len(),
                message,
            );
        }
        _ => {}
    }
    check_name(findings, path, key);
}

/// A name of a tool or a property.
pub(super) fn check_name(findings: &mut Findings, path: &str, name: &str) {
    if is_mixed_script(name) {
        let message = "the name mixes letters that look alike";
        findings.add(FindingCode::MixedScript, path, name, 0..name.len(), message);
    }
    // In a text they are fine; a name with one is two lines in a list.
    let is_break =
        |(_, character): &(usize, char)| character.is_ascii_whitespace() && *character != ' ';
    if let Some((at, _)) = name.char_indices().find(is_break) {
        let message = "the name has a line end or a tab";
        findings.add(FindingCode::Escape, path, name, at..at + 1, message);
    }
    super::hidden::check(findings, path, name);
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
