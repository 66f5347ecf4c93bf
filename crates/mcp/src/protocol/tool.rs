//! A tool as clients see it: its schema, hints, badge and icons.
//!
//! Hints and schemas are the engine's; this only translates them to MCP.

use std::borrow::Cow;
use std::sync::Arc;

use engine::callable::CallableTool;
use engine::registry::ToolBody;
use model::document::Document;
use model::document::json::{JsonKind, Node};
use model::policy::risk::Risk;
use model::text;
use rmcp::model::{Icon, JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::limit;

/// The tool as an entry of the list.
pub(crate) fn listed(offered: &CallableTool) -> Tool {
    let document = &offered.usable.document;
    let description = description(document);
    let schema = schema(&offered.body, document);
    let mut tool = Tool::new_with_raw(document.name.clone(), description, schema)
        .with_annotations(annotations(offered))
        .with_meta(meta(offered));
    if let Some(Value::Object(schema)) = offered.body.output_schema() {
        tool.output_schema = Some(Arc::new(schema));
    }
    tool.title = title(document);
    tool.icons = icons(document);
    tool
}

/// The author's description, with invisible characters made visible.
fn description(document: &Document) -> Option<Cow<'static, str>> {
    let lines = document.description.trim().lines();
    let lines: Vec<_> = lines.map(text::one_line).collect();
    (!lines.is_empty()).then(|| Cow::Owned(lines.join("\n")))
}

/// The schema of a tool's arguments, as the engine checks them.
pub(crate) fn schema(body: &ToolBody, document: &Document) -> Arc<JsonObject> {
    match body.input_schema(document) {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::default(),
    }
}

fn annotations(offered: &CallableTool) -> ToolAnnotations {
    let hints = offered.hints();
    ToolAnnotations::from_raw(
        title(&offered.usable.document),
        Some(hints.read_only),
        Some(hints.destructive),
        hints.idempotent,
        Some(hints.open_world),
    )
}

fn meta(offered: &CallableTool) -> MetaObject {
    let judged = &offered.usable.facts;
    let mut meta = MetaObject::new();
    let mut set = |key: &str, value: Value| meta.0.insert(format!("ringfence/{key}"), value);
    set("risk", risk(&offered.risk));
    set("toolId", Value::from(judged.tool_id.as_str()));
    set("digest", Value::from(judged.digest.to_string()));
    if let Some(category) = &offered.usable.document.category {
        set("category", Value::from(category.as_str()));
    }
    meta
}

fn risk(risk: &Risk) -> Value {
    let reasons: Vec<_> = risk
        .signals
        .iter()
        .map(|signal| signal.words.as_str())
        .collect();
    json!({
        "level": risk.level.badge(),
        "label": risk.level.label(),
        "reasons": reasons,
    })
}

/// The document's own `title`, if it has one.
fn title(document: &Document) -> Option<String> {
    let title = text_of(document.tree().get("title")?)?.trim();
    let fits = !title.is_empty() && title.chars().count() <= limit::TITLE_CHARS_MAX;
    fits.then(|| text::one_line(title))
}

/// The document's own `icons`, those that clients may show: pictures in the
/// document itself, or behind TLS.
fn icons(document: &Document) -> Option<Vec<Icon>> {
    let JsonKind::Array(items) = &document.tree().get("icons")?.kind else {
        return None;
    };
    let icons: Vec<_> = items
        .iter()
        .filter_map(icon)
        .take(limit::ICONS_MAX)
        .collect();
    (!icons.is_empty()).then_some(icons)
}

fn icon(node: &Node) -> Option<Icon> {
    let src = text_of(node.get("src")?)?;
    let safe = src.starts_with("https://") || src.starts_with("data:image/");
    if !safe || src.len() > limit::ICON_CHARS_MAX || src.chars().any(text::is_hidden) {
        return None;
    }
    let mut icon = Icon::new(src);
    icon.mime_type = node.get("mimeType").and_then(text_of).map(str::to_owned);
    Some(icon)
}

fn text_of(node: &Node) -> Option<&str> {
    match &node.kind {
        JsonKind::String(text) => Some(text),
        _ => None,
    }
}
