//! Prompts and resources of MCP servers as clients see them: as pinned, under our names.

use engine::Engine;
use engine::callable::CallableTool;
use engine::servers::item::{Definition, prompt_name, show_texts, shown_uri};
use model::caller::Caller;
use rmcp::model::{Prompt, Resource, ResourceTemplate};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The prompts, resources and templates of a caller.
pub(crate) fn lists(engine: &Engine, caller: &Caller) -> (Value, Value) {
    let offered = engine.server_items(caller);
    let prompts: Vec<_> = offered.iter().filter_map(prompt).collect();
    let resources: Vec<_> = offered.iter().filter_map(resource).collect();
    let templates: Vec<_> = offered.iter().filter_map(template).collect();
    (json!(prompts), json!([resources, templates]))
}

pub(crate) fn prompt(offered: &CallableTool) -> Option<Prompt> {
    let Definition::Prompt(prompt) = &offered.body.server()?.item else {
        return None;
    };
    shown(prompt.to_value(), offered, |fields, document| {
        fields.insert("name".to_owned(), prompt_name(document).into());
    })
}

pub(crate) fn resource(offered: &CallableTool) -> Option<Resource> {
    let tool = offered.body.server()?;
    let Definition::Resource(resource) = &tool.item else {
        return None;
    };
    shown(resource.to_value(), offered, |fields, _| {
        let uri = shown_uri(&tool.server.name, &resource.uri);
        fields.insert("uri".to_owned(), uri.into());
    })
}

pub(crate) fn template(offered: &CallableTool) -> Option<ResourceTemplate> {
    let tool = offered.body.server()?;
    let Definition::ResourceTemplate(template) = &tool.item else {
        return None;
    };
    shown(template.to_value(), offered, |fields, _| {
        let uri = shown_uri(&tool.server.name, &template.uri_template);
        fields.insert("uriTemplate".to_owned(), uri.into());
    })
}

/// An item as clients see it: as pinned, under our name, with the owner's description if
/// there is one.
fn shown<T: DeserializeOwned>(
    value: Value,
    offered: &CallableTool,
    rename: impl FnOnce(&mut Map<String, Value>, &str),
) -> Option<T> {
    let mut value = value;
    show_texts(&mut value);
    let Value::Object(mut fields) = value else {
        return None;
    };
    let document = &offered.usable.document;
    if !document.description.is_empty() {
        let lines = document.description.trim().lines();
        let lines: Vec<_> = lines.map(model::text::one_line).collect();
        fields.insert("description".to_owned(), lines.join("\n").into());
    }
    rename(&mut fields, &document.name);
    // An item that does not fit the protocol is left out. The rest of the list stands.
    serde_json::from_value(Value::Object(fields)).ok()
}
