//! A document's settings for code mode, in a field of ours: whether scripts may call
//! it, whether it is listed, its application, its examples, and the schema of its
//! result.
//!
//! The field is no part of the specification. Its switches do not count for the
//! digest: they can only narrow what the operator's mode gives, or opt in where the
//! mode asks for it. Examples and the schema do, because models read them.

mod schema;

use serde_json::Value;

use crate::document::Document;
use crate::document::finding::{Code, Finding};
use crate::document::json::{JsonKind, Node};
use crate::limits;
use crate::nearest::nearest;
use crate::text::elided;

/// The field of a document.
pub const FIELD: &str = "x-ringfence-codecall";

/// Its keys.
const KEYS: [&str; 5] = [
    "enabledInCodeCall",
    "visibleInListTools",
    "appId",
    "examples",
    "outputSchema",
];

/// A document's settings for code mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// Whether scripts may call it, if it says so.
    pub enabled: Option<bool>,
    /// Whether clients see it in their list, if it says so.
    pub visible: Option<bool>,
    /// The application it is part of.
    pub app_id: Option<String>,
    /// Its author's examples.
    pub examples: Vec<OwnExample>,
}

/// An example of the author's.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnExample {
    /// What it shows.
    pub description: String,
    /// The arguments.
    pub input: Value,
}

impl Metadata {
    /// Reads it. An invalid value counts as no.
    #[must_use]
    pub fn of(document: &Document) -> Metadata {
        let Some(node) = document.tree().get(FIELD) else {
            return Metadata::default();
        };
        if node.members().is_none() {
            return Metadata {
                enabled: Some(false),
                visible: Some(false),
                ..Metadata::default()
            };
        }
        let flag = |key: &str| match &node.get(key)?.kind {
            JsonKind::Bool(flag) => Some(*flag),
            JsonKind::Null => None,
            JsonKind::Number(_)
            | JsonKind::String(_)
            | JsonKind::Array(_)
            | JsonKind::Object(_) => Some(false),
        };
        let app_id = node.get("appId").and_then(Node::text);
        let app_id = app_id.map(str::trim).filter(|app| !app.is_empty());
        let examples = match node.get("examples").map(|node| &node.kind) {
            Some(JsonKind::Array(items)) => items.as_slice(),
            _ => &[],
        };
        Metadata {
            enabled: flag("enabledInCodeCall"),
            visible: flag("visibleInListTools"),
            app_id: app_id.map(|app| elided(app, limits::NAME_CHARS_MAX)),
            examples: examples
                .iter()
                .take(limits::DESCRIBE_EXAMPLES_MAX)
                .filter_map(example)
                .collect(),
        }
    }
}

/// The JSON Schema of a tool's result, if its document has one. Results are not
/// validated against it. An invalid schema is ignored; such a document is not used
/// anyway.
#[must_use]
pub fn output_schema(document: &Document) -> Option<Value> {
    let node = document.tree().get(FIELD)?.get("outputSchema")?;
    let is_sound = node.members().is_some() && schema::fault(node).is_none();
    is_sound.then(|| node.to_value())
}

/// The application of a tool: from its document, from the part of its name before the
/// first dot or colon, or its source.
#[must_use]
pub fn app_id(document: &Document, metadata: &Metadata, bundled: bool) -> String {
    if let Some(app_id) = &metadata.app_id {
        return app_id.clone();
    }
    let prefix = document.name.split_once(['.', ':']);
    match prefix.filter(|(prefix, rest)| !prefix.is_empty() && !rest.is_empty()) {
        Some((prefix, _)) => prefix.to_owned(),
        None if bundled => "ringfence".to_owned(),
        None => "local".to_owned(),
    }
}

/// The findings about the field.
pub(crate) fn findings(document: &Document) -> Vec<Finding> {
    let Some(node) = document.tree().get(FIELD) else {
        return Vec::new();
    };
    let wrong = |key: &str, message: String| {
        let pointer = match key {
            "" => FIELD.to_owned(),
            key => format!("{FIELD}.{key}"),
        };
        Finding::error(Code::SpecParse, pointer, message)
    };
    let Some(members) = node.members() else {
        let message = format!("`{FIELD}` must be an object, not {}", node.noun());
        return vec![wrong("", message)];
    };
    let mut findings = Vec::new();
    for member in members {
        let (key, value) = (member.key.as_str(), &member.value);
        let fits = match (key, &value.kind) {
            (_, JsonKind::Null)
            | ("enabledInCodeCall" | "visibleInListTools", JsonKind::Bool(_))
            | ("appId", JsonKind::String(_)) => true,
            ("examples", JsonKind::Array(items)) => {
                items.iter().all(|item| example(item).is_some())
            }
            ("outputSchema", _) => {
                let fault = schema::fault(value);
                findings.extend(fault.map(|fault| wrong(key, fault)));
                continue;
            }
            _ => false,
        };
        if fits {
            continue;
        }
        let wanted = match key {
            "enabledInCodeCall" | "visibleInListTools" => "true or false",
            "appId" => "a string",
            "examples" => "an array of objects with `description` and `input`",
            unknown => {
                let near = nearest(unknown, KEYS).map(|near| format!("; did you mean `{near}`?"));
                let shown = elided(unknown, 60);
                let near = near.unwrap_or_default();
                findings.push(wrong("", format!("`{FIELD}` has no `{shown}`{near}")));
                continue;
            }
        };
        findings.push(wrong(key, format!("`{key}` must be {wanted}")));
    }
    findings
}

fn example(node: &Node) -> Option<OwnExample> {
    let input = node.get("input")?;
    input.members()?;
    Some(OwnExample {
        description: node.get("description")?.text()?.to_owned(),
        input: input.to_value(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;

    fn item(field: &str) -> document::ParsedDocument {
        let text =
            format!(r#"{{"name":"crm.users","code":"return 1","codeType":"Javascript"{field}}}"#);
        document::parse(&text).items.pop().expect("one")
    }

    fn metadata(field: &str) -> Metadata {
        Metadata::of(&item(field).document.expect("a document"))
    }

    #[test]
    fn without_the_field_nothing_is_set() {
        assert_eq!(metadata(""), Metadata::default());
        assert_eq!(
            metadata(r#","x-ringfence-codecall":{}"#),
            Metadata::default()
        );
    }

    #[test]
    fn the_field_is_read() {
        let found = metadata(
            r#","x-ringfence-codecall":{"enabledInCodeCall":false,"visibleInListTools":true,
            "appId":"sales","examples":[{"description":"a","input":{"b":1}}]}"#,
        );
        assert_eq!((found.enabled, found.visible), (Some(false), Some(true)));
        assert_eq!(found.app_id.as_deref(), Some("sales"));
        assert_eq!(found.examples.len(), 1);
    }

    #[test]
    fn the_output_schema_is_read_unchanged() {
        let with = |schema: &str| {
            let field = format!(r#","x-ringfence-codecall":{{"outputSchema":{schema}}}"#);
            output_schema(&item(&field).document.expect("a document"))
        };
        let schema = r#"{"type":"object","properties":{"b":{},"a":{}}}"#;
        assert_eq!(with(schema).expect("a schema").to_string(), schema);
        assert_eq!(with("null"), None);
        assert_eq!(output_schema(&item("").document.expect("a document")), None);
    }

    #[test]
    fn invalid_values_are_reported_by_name() {
        let rows = [
            (
                r#"{"enabledInCodecall":true}"#,
                "did you mean `enabledInCodeCall`?",
            ),
            (r#"{"enabledInCodeCall":"no"}"#, "must be true or false"),
            (r#"{"appId":7}"#, "`appId` must be a string"),
            (r#"{"examples":[{"input":[]}]}"#, "an array of objects"),
            (
                r#"{"outputSchema":{"type":"text"}}"#,
                "`outputSchema.type` must be",
            ),
            (r#"{"outputSchema":"x"}"#, "must be a JSON Schema object"),
            ("[]", "must be an object"),
        ];
        for (field, words) in rows {
            let item = item(&format!(r#","x-ringfence-codecall":{field}"#));
            assert!(item.document.is_none(), "{field}");
            let messages: Vec<_> = item.findings.iter().map(|f| f.message.as_str()).collect();
            assert!(messages.join("; ").contains(words), "{field}: {messages:?}");
        }
    }

    #[test]
    fn an_app_is_named_by_document_prefix_or_origin() {
        let document = item("").document.expect("a document");
        assert_eq!(app_id(&document, &Metadata::default(), false), "crm");
        let named = metadata(r#","x-ringfence-codecall":{"appId":"sales"}"#);
        assert_eq!(app_id(&document, &named, false), "sales");
    }
}
