//! Texts that a document ships beside its code, in a field of ours, for a caller that
//! wants to know more about a tool before calling it.
//!
//! The field is no part of the specification. It is read, never run, and grants nothing;
//! it counts for the digest, since a model reads it like a description.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::document::Document;
use crate::document::finding::{Code, Finding};
use crate::document::json::{JsonKind, Node};
use crate::limits;
use crate::nearest::nearest;
use crate::text::{self, elided};

/// The field of a document.
pub const FIELD: &str = "x-ringfence-resources";

/// The keys of each resource.
const KEYS: [&str; 3] = ["name", "mimeType", "text"];

/// A text a document ships.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// Its name, once in a document.
    pub name: String,
    /// Its media type, such as `text/markdown`.
    pub mime_type: String,
    /// The text, with invisible characters made visible.
    pub text: String,
}

/// The resources of a document. A document with an invalid field ships none; it is not
/// used anyway.
#[must_use]
pub fn of(document: &Document) -> Vec<Resource> {
    if !findings(document).is_empty() {
        return Vec::new();
    }
    let node = document.tree().get(FIELD);
    node.map(items)
        .unwrap_or_default()
        .iter()
        .filter_map(read)
        .collect()
}

fn read(node: &Node) -> Option<Resource> {
    let text = node.get("text")?.text()?;
    let lines = text.lines().map(text::one_line);
    Some(Resource {
        name: node.get("name")?.text()?.to_owned(),
        mime_type: node.get("mimeType")?.text()?.to_owned(),
        text: lines.collect::<Vec<_>>().join("\n"),
    })
}

/// The findings about the field.
pub(crate) fn findings(document: &Document) -> Vec<Finding> {
    let Some(node) = document.tree().get(FIELD) else {
        return Vec::new();
    };
    let wrong = |message: String| Finding::error(Code::SpecParse, FIELD, message);
    if !matches!(node.kind, JsonKind::Array(_) | JsonKind::Null) {
        let message = format!("`{FIELD}` must be an array, not {}", node.noun());
        return vec![wrong(message)];
    }
    let (items, most) = (items(node), limits::RESOURCES_MAX);
    if items.len() > most {
        let message = format!("`{FIELD}` holds {}; at most {most} fit", items.len());
        return vec![wrong(message)];
    }
    let mut findings = Vec::new();
    let mut names = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let place = format!("{FIELD}[{index}]");
        let faults = faults(item).into_iter().map(|(key, message)| {
            let pointer = if key.is_empty() {
                place.clone()
            } else {
                format!("{place}.{key}")
            };
            Finding::error(Code::SpecParse, pointer, message)
        });
        findings.extend(faults);
        let name = item.get("name").and_then(Node::text);
        if let Some(name) = name.filter(|name| !names.insert(*name)) {
            let message = format!("two resources have the name `{}`", elided(name, 60));
            let pointer = format!("{place}.name");
            findings.push(Finding::error(Code::SpecInvariant, pointer, message));
        }
    }
    findings
}

/// The faults of one resource: key and message.
fn faults(item: &Node) -> Vec<(&'static str, String)> {
    let Some(members) = item.members() else {
        let message = format!("a resource must be an object, not {}", item.noun());
        return vec![("", message)];
    };
    let mut faults = Vec::new();
    let keys = members.iter().map(|member| member.key.as_str());
    for unknown in keys.filter(|key| !KEYS.contains(key)) {
        let near = nearest(unknown, KEYS).map(|near| format!("; did you mean `{near}`?"));
        let (shown, near) = (elided(unknown, 60), near.unwrap_or_default());
        faults.push(("", format!("a resource has no `{shown}`{near}")));
    }
    for key in KEYS {
        let message = match item.get(key).map(|value| (value.text(), value)) {
            None => Some(format!("a resource needs `{key}`")),
            Some((None, value)) => Some(format!("`{key}` must be a string, not {}", value.noun())),
            Some((Some(text), _)) => unfit(key, text),
        };
        faults.extend(message.map(|message| (key, message)));
    }
    faults
}

/// Why a text does not fit its key.
fn unfit(key: &str, text: &str) -> Option<String> {
    match key {
        "name" => {
            let most = limits::NAME_CHARS_MAX;
            let fits = !text.trim().is_empty()
                && text.chars().count() <= most
                && !text.chars().any(text::is_hidden);
            let message = format!("`name` must be 1 to {most} characters that can be seen");
            (!fits).then_some(message)
        }
        "mimeType" => {
            let kind = text.strip_prefix("text/").or(match text {
                "application/json" => Some("json"),
                _ => None,
            });
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-+.".contains(&byte);
            let fits = kind
                .is_some_and(|kind| (1..=60).contains(&kind.len()) && kind.bytes().all(is_plain));
            let message =
                "`mimeType` must be `application/json` or a kind of text, such as `text/markdown`";
            (!fits).then(|| message.to_owned())
        }
        _ => {
            let (bytes, most) = (text.len(), limits::RESOURCE_BYTES_MAX);
            let message = format!("`text` has {bytes} bytes; at most {most} fit");
            (bytes > most).then_some(message)
        }
    }
}

fn items(node: &Node) -> &[Node] {
    match &node.kind {
        JsonKind::Array(items) => items,
        JsonKind::Null
        | JsonKind::Bool(_)
        | JsonKind::Number(_)
        | JsonKind::String(_)
        | JsonKind::Object(_) => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;

    fn item(field: &str) -> document::ParsedDocument {
        let text = format!(
            r#"{{"name":"a","code":"return 1","codeType":"Javascript","{FIELD}":{field}}}"#
        );
        document::parse(&text).items.pop().expect("one")
    }

    #[test]
    fn resources_are_read() {
        let field = r##"[{"name":"guide","mimeType":"text/markdown","text":"# A\nb\u202e"},
            {"name":"sample","mimeType":"application/json","text":"{}"}]"##;
        let document = item(field).document.expect("a document");
        let shipped = of(&document);
        assert_eq!(shipped.len(), 2);
        assert_eq!(shipped[0].text, "# A\nb\\u{202e}");
        assert_eq!(shipped[1].mime_type, "application/json");
        let none = item("null").document.expect("a document");
        assert!(of(&none).is_empty());
    }

    #[test]
    fn faults_are_reported_with_their_place() {
        let long = "x".repeat(limits::RESOURCE_BYTES_MAX + 1);
        let long = format!(r#"[{{"name":"a","mimeType":"text/plain","text":"{long}"}}]"#);
        let one = r#"{"name":"a","mimeType":"text/plain","text":""}"#;
        let twice = format!("[{one},{one}]");
        let many = format!("[{}]", [one; 17].join(","));
        let rows: [(&str, &str, &str); 10] = [
            ("{}", "", "must be an array, not an object"),
            ("[1]", "[0]", "must be an object, not a number"),
            (
                r#"[{"name":"a","mimetype":"text/plain","text":""}]"#,
                "[0]",
                "did you mean `mimeType`?",
            ),
            (
                r#"[{"name":"a","text":""}]"#,
                "[0].mimeType",
                "needs `mimeType`",
            ),
            (
                r#"[{"name":" ","mimeType":"text/plain","text":""}]"#,
                "[0].name",
                "1 to 256",
            ),
            (
                r#"[{"name":"a","mimeType":"image/png","text":""}]"#,
                "[0].mimeType",
                "a kind of text",
            ),
            (
                r#"[{"name":"a","mimeType":"text/plain","text":1}]"#,
                "[0].text",
                "must be a string, not a number",
            ),
            (&long, "[0].text", "at most 49152 fit"),
            (&twice, "[1].name", "two resources have the name `a`"),
            (&many, "", "holds 17; at most 16 fit"),
        ];
        for (field, place, words) in rows {
            let item = item(field);
            let pointer = format!("{FIELD}{place}");
            let found = item
                .findings
                .iter()
                .find(|finding| finding.pointer == pointer);
            let message = found.map(|finding| finding.message.as_str());
            assert!(
                message.is_some_and(|message| message.contains(words)),
                "{place} {words}: {:?}",
                item.findings
            );
        }
    }
}
