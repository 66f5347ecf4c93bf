//! Prompts and resources of MCP servers. Each is called like a tool, so that one path
//! holds for all: `SERVER__prompt.NAME`, `SERVER__resource.PART`, `SERVER__template.PART`.
//! Those names have a point, which no tool of a server has. Clients see prompts as
//! `SERVER__NAME`, and resources as `ringfence://SERVER/` with the server's own URI.

use std::collections::BTreeMap;

use bridge::CallKind;
use model::text;
use model::word::Word as _;
use serde_json::{Map, Value, json};
pub use upstream::definition::Definition;
use upstream::definition::{ItemKey, ItemKind, PromptDefinition, ToolAnnotations, ToolDefinition};
use upstream::name::{NameTable, SEPARATOR, ServerName};
use upstream::pin::ServedServer;

/// How the URIs of clients begin.
const SCHEME: &str = "ringfence://";

/// What is called, and what an item of that kind is named by; nothing for a tool.
pub(crate) fn kind(kind: ItemKind) -> (CallKind, Option<&'static str>) {
    match kind {
        ItemKind::Tool => (CallKind::Tool, None),
        ItemKind::Prompt => (CallKind::Prompt, Some("prompt")),
        ItemKind::Resource => (CallKind::Resource, Some("resource")),
        ItemKind::ResourceTemplate => (CallKind::Resource, Some("template")),
    }
}

/// The names of everything that is no tool. Items whose names clash have none.
pub(crate) fn names(server: &ServerName, served: &ServedServer) -> BTreeMap<ItemKey, String> {
    let mut names = BTreeMap::new();
    for item_kind in ItemKind::ALL {
        let (_, Some(word)) = kind(*item_kind) else {
            continue;
        };
        let items = served.items.iter().map(|item| &item.key);
        let items = items.filter(|key| key.kind == *item_kind);
        let table = NameTable::new(server, items.map(|key| key.name.as_str()));
        for (name, bridged) in table.names {
            let part = bridged.tool_part();
            let full = format!("{server}{SEPARATOR}{word}.{part}");
            let key = ItemKey {
                kind: *item_kind,
                name,
            };
            names.insert(key, full);
        }
    }
    names
}

/// An item as a tool: what it is called with, as a schema that the gate of the arguments
/// holds every call against.
pub(crate) fn as_tool(definition: &Definition) -> ToolDefinition {
    let (name, title, schema) = match definition {
        Definition::Tool(tool) => return tool.clone(),
        Definition::Prompt(prompt) => (&prompt.name, &prompt.title, prompt_schema(prompt)),
        Definition::Resource(resource) => {
            let uri = json!({"type": "string", "const": resource.uri});
            (&resource.uri, &resource.title, uri_schema(uri))
        }
        Definition::ResourceTemplate(template) => {
            let pattern = template_pattern(&template.uri_template);
            let uri = json!({"type": "string", "pattern": pattern});
            (&template.uri_template, &template.title, uri_schema(uri))
        }
    };
    ToolDefinition {
        name: name.clone(),
        title: title.clone(),
        description: definition.description().map(str::to_owned),
        input_schema: schema,
        output_schema: None,
        annotations: ToolAnnotations::default(),
    }
}

/// Makes invisible characters in the texts of a schema visible. They were accepted with it, and
/// a client shows them to a person. Names and values stay what they are.
pub fn show_texts(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(show_texts),
        Value::Object(members) => {
            for (key, member) in members {
                match (key.as_str(), member) {
                    ("title" | "description", Value::String(words)) => {
                        if words.chars().any(|it| text::is_hidden(it) && it != '\n') {
                            let lines: Vec<_> = words.lines().map(text::one_line).collect();
                            *words = lines.join("\n");
                        }
                    }
                    // Here the keys are names, whatever they are called.
                    (
                        "properties" | "patternProperties" | "$defs" | "definitions",
                        Value::Object(named),
                    ) => named.values_mut().for_each(show_texts),
                    ("default" | "const" | "enum" | "examples", _) => {}
                    (_, member) => show_texts(member),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn prompt_schema(prompt: &PromptDefinition) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, argument) in &prompt.arguments {
        properties.insert(name.clone(), json!({"type": "string"}));
        if argument.is_required {
            required.push(name);
        }
    }
    json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    })
}

fn uri_schema(uri: Value) -> Value {
    json!({
        "type": "object", "properties": {"uri": uri}, "required": ["uri"],
        "additionalProperties": false,
    })
}

/// The URIs a template (RFC 6570) leads to, as a pattern. A plain variable is one segment;
/// the other kinds may hold more. What is no template leads nowhere.
fn template_pattern(template: &str) -> String {
    let mut pattern = "^".to_owned();
    let mut rest = template;
    while let Some((literal, more)) = rest.split_once('{') {
        pattern.push_str(&regex_escape(literal));
        let Some((expression, after)) = more.split_once('}') else {
            // Fits nothing at all.
            return "^[^\\s\\S]$".to_owned();
        };
        pattern.push_str(match expression.chars().next() {
            Some('+' | '#') => ".+",
            Some('/' | '.' | ';' | '?' | '&') => ".*",
            _ => "[^/?#]+",
        });
        rest = after;
    }
    pattern.push_str(&regex_escape(rest));
    pattern.push('$');
    pattern
}

fn regex_escape(literal: &str) -> String {
    let mut escaped = String::new();
    for character in literal.chars() {
        if "\\.+*?()|[]{}^$".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// The name of a prompt as clients see it.
#[must_use]
pub fn prompt_name(tool_name: &str) -> String {
    tool_name.replacen("__prompt.", SEPARATOR, 1)
}

/// What a client means by the name of a prompt. No server has an underscore in its name.
#[must_use]
pub fn prompt_target(shown_name: &str) -> String {
    shown_name.replacen(SEPARATOR, "__prompt.", 1)
}

/// The URI of a resource, or of a template, as clients see it.
#[must_use]
pub fn shown_uri(server: &str, uri: &str) -> String {
    format!("{SCHEME}{server}/{uri}")
}

/// The server and its own URI that a client means.
#[must_use]
pub fn own_uri(shown_uri: &str) -> Option<(&str, &str)> {
    shown_uri.strip_prefix(SCHEME)?.split_once('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_matches_what_it_leads_to_and_no_more() {
        for (template, uri, fits) in [
            ("test://template/{id}/data", "test://template/7/data", true),
            (
                "test://template/{id}/data",
                "test://template/7/8/data",
                false,
            ),
            ("test://template/{id}/data", "test://template//data", false),
            (
                "test://template/{id}/data",
                "xtest://template/7/data",
                false,
            ),
            ("file:///{+path}", "file:///a/b", true),
            ("a.b://{x}", "aXb://1", false),
            ("broken://{x", "broken://1", false),
            ("broken://{x", "broken://{x", false),
        ] {
            let pattern = regex::Regex::new(&template_pattern(template)).expect("a pattern");
            assert_eq!(pattern.is_match(uri), fits, "{template} {uri}");
        }
    }

    #[test]
    fn names_and_uris_lead_back() {
        assert_eq!(prompt_target("files__a__b"), "files__prompt.a__b");
        assert_eq!(
            prompt_name("files__prompt.a__prompt.b"),
            "files__a__prompt.b"
        );
        let shown = shown_uri("files", "file:///a?b#c");
        assert_eq!(own_uri(&shown), Some(("files", "file:///a?b#c")));
        assert_eq!(own_uri("file:///a"), None);
    }
}
