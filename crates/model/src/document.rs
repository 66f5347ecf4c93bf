//! The tool document: one JSON object that says what the model sees, what runs,
//! and what safety posture its author declares.
//!
//! `parse` reads one document or an array of them and reports everything that
//! is wrong at once, each with its place. The types carry the JSON Schema: their
//! doc comments are its descriptions. Fields a later version or a vendor adds
//! stay in the tree a document was read from and are there again when it is saved.

use schemars::JsonSchema;
use serde::Serialize;

use crate::document::finding::{Code, Finding, any_error};
use crate::document::json::{JsonKind, Lines, Node};
use crate::document::safety::Safety;
use crate::limits;

/// A document's settings for code mode.
pub mod codecall;
/// The digest of a document.
pub mod digest;
/// The variables placeholders are filled from.
pub mod environment;
/// Examples of calls.
pub mod example;
/// Findings about a document, with places.
pub mod finding;
mod invariant;
/// JSON with places.
pub mod json;
/// The states of a tool.
pub mod lifecycle;
/// Params, the arguments of a call, and their schema.
pub mod params;
/// `${NAME}` in static variables.
pub mod placeholder;
mod read;
/// Texts a document ships beside its code.
pub mod resource;
/// The block `toolSafety` of a document.
pub mod safety;
pub(crate) mod schema;
mod unseen;

pub use invariant::is_word;
pub(crate) use read::{Reader, join, present};
pub use schema::schema_text;

/// One tool, as its author wrote it: a Safe Tool Specification 1.0 document.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "Safe Tool Specification 1.0")]
pub struct Document {
    /// A stable identity that survives renaming. Any string; derived from `name`
    /// when absent.
    #[schemars(length(max = limits::WORD_CHARS_MAX))]
    pub tool_id: Option<String>,
    /// What the model calls the tool.
    #[schemars(length(min = 1, max = limits::NAME_CHARS_MAX))]
    pub name: String,
    /// What the model reads to decide when to use the tool.
    #[schemars(with = "Option<String>", length(max = limits::DESCRIPTION_CHARS_MAX))]
    pub description: String,
    /// A label for grouping, such as `TEXT`, `WEB` or `FILE`.
    #[schemars(length(max = limits::WORD_CHARS_MAX))]
    pub category: Option<String>,
    /// At most two cohort labels.
    #[schemars(with = "Option<Vec<schema::Label>>", length(max = limits::TAGS_MAX))]
    pub tags: Vec<String>,
    /// The arguments, in the order the model sees them.
    #[schemars(with = "Option<Vec<Param>>", length(max = limits::PARAMS_MAX))]
    pub params: Vec<Param>,
    /// Values the code reads and the model never sees. Each entry is an object
    /// with one key; `${NAME}` is filled from the environment.
    #[schemars(with = "Option<Vec<schema::VariableSchema>>", length(max = limits::STATIC_VARIABLES_MAX))]
    pub static_variables: Vec<StaticVariable>,
    /// The body of an async JavaScript function.
    #[schemars(length(max = limits::CODE_CHARS_MAX))]
    pub code: String,
    /// The language of `code`.
    pub code_type: CodeType,
    /// How far the author asks to widen the operator's baseline.
    #[schemars(with = "Option<Overrides>")]
    pub sandbox_overrides: Overrides,
    /// The posture as some runtime last wrote it. Kept, never trusted.
    pub tool_safety: Option<Safety>,
    /// Whether a person must approve each call.
    pub human_in_the_loop: Option<HumanInTheLoop>,
    /// Whether the tool still has to earn its Local Pass.
    pub draft: Option<bool>,
    /// When it was first written, in milliseconds since 1970.
    #[schemars(range(max = limits::TIMESTAMP_MS_MAX))]
    pub create_timestamp: Option<u64>,
    /// When it was last written, in milliseconds since 1970.
    #[schemars(range(max = limits::TIMESTAMP_MS_MAX))]
    pub update_timestamp: Option<u64>,
    /// All of it as it was read, fields we do not know included.
    #[schemars(skip)]
    tree: Node,
}

/// One argument of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Param {
    /// What the model calls the argument, and the name the code reads.
    #[schemars(length(min = 1, max = limits::NAME_CHARS_MAX))]
    pub name: String,
    /// What the model reads about it.
    #[schemars(with = "Option<String>", length(max = limits::DESCRIPTION_CHARS_MAX))]
    pub description: String,
    /// Whether a call without it is refused.
    pub required: bool,
    /// What it must be.
    #[serde(rename = "type")]
    pub kind: ParamType,
    /// The value the Local Pass runs the tool with. Always a string.
    #[schemars(length(max = limits::VALUE_CHARS_MAX))]
    pub test_value: Option<String>,
}

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum ParamType {
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// A JSON object.
    Object,
    /// A JSON array.
    Array,
}

/// A value the code reads and the model never sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticVariable {
    /// The name the code reads.
    pub name: String,
    /// The value, placeholders unfilled.
    pub template: String,
}

/// The language of a tool's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum CodeType {
    /// JavaScript, ECMAScript 2024.
    Javascript,
}

/// How far an author asks to widen the operator's baseline. Absent and null
/// mean: leave it as the operator set it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Overrides {
    /// Classes added to the allowed ones. Badged; there are no classes to reach here.
    #[schemars(with = "Option<Vec<schema::Label>>", length(max = limits::LIST_ITEMS_MAX))]
    pub add_allow_classes: Vec<String>,
    /// Classes taken from the allowed ones.
    #[schemars(with = "Option<Vec<schema::Label>>", length(max = limits::LIST_ITEMS_MAX))]
    pub remove_allow_classes: Vec<String>,
    /// Classes added to the denied ones.
    #[schemars(with = "Option<Vec<schema::Label>>", length(max = limits::LIST_ITEMS_MAX))]
    pub add_deny_classes: Vec<String>,
    /// Classes taken from the denied ones: an escalation.
    #[schemars(with = "Option<Vec<schema::Label>>", length(max = limits::LIST_ITEMS_MAX))]
    pub remove_deny_classes: Vec<String>,
    /// What `fetch` may reach.
    pub network_mode: Option<NetworkMode>,
    /// The hosts of mode `allowlist`; `*.example.com` includes `example.com`.
    #[schemars(with = "Option<Vec<schema::Label>>", length(max = limits::LIST_ITEMS_MAX))]
    pub hosts_allow: Vec<String>,
    /// Whether `safety.fs` may read.
    pub file_read: Option<bool>,
    /// Whether `safety.fs` may write.
    pub file_write: Option<bool>,
    /// The one folder `safety.fs` sees.
    #[schemars(length(max = limits::WORD_CHARS_MAX))]
    pub fs_base_path: Option<String>,
    /// Whether a call destroys what cannot be had back.
    pub destructive: Option<bool>,
}

/// What `fetch` may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetworkMode {
    /// Nothing: `fetch` does not exist.
    Blocked,
    /// The listed hosts.
    Allowlist,
    /// Any public host, with every address checked.
    Strict,
    /// Any host, private networks included.
    Open,
}

/// Whether a person must approve each call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HumanInTheLoop {
    /// When to ask; `DISABLED` when absent.
    pub mode: Option<ApprovalMode>,
    /// The question. `{toolName}`, `{args}` and `{args.path}` are filled in.
    #[schemars(length(max = limits::PROMPT_CHARS_MAX))]
    pub prompt_template: Option<String>,
}

/// When to ask a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ApprovalMode {
    /// Never.
    Disabled,
    /// Before every call; without an answer the call does not run.
    Required,
    /// As the operator's rules say, by default from L3 up.
    AutoApprove,
}

impl Document {
    /// When to ask a person before a call of this tool.
    #[must_use]
    pub fn approval(&self) -> ApprovalMode {
        self.human_in_the_loop
            .as_ref()
            .and_then(|block| block.mode)
            .unwrap_or(ApprovalMode::Disabled)
    }

    /// The document as JSON text: every field it was read with, in its order,
    /// with what has been set since.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.tree.to_text()
    }

    /// The tree the document was read from.
    #[must_use]
    pub fn tree(&self) -> &Node {
        &self.tree
    }

    /// Raises or clears the draft flag, in the text too.
    pub fn set_draft(&mut self, draft: bool) {
        // In both: the tree is what is saved, the field is what is read.
        self.draft = Some(draft);
        self.tree.set("draft", JsonKind::Bool(draft));
    }

    /// Replaces the stored safety record, in the text too.
    pub fn set_tool_safety(&mut self, safety: Safety) {
        let text = serde_json::to_string(&safety).unwrap_or_default();
        if let Ok((node, _)) = json::parse(&text) {
            self.tree.set("toolSafety", node.kind);
            self.tool_safety = Some(safety);
        }
    }

    /// Gives the document another name, in the text too. The new name is validated when
    /// the text is read again.
    pub fn set_name(&mut self, name: impl Into<String>) {
        let name = name.into();
        self.tree.set("name", JsonKind::String(name.clone()));
        self.name = name;
    }

    /// Gives the document an identity, in the text too.
    pub fn set_tool_id(&mut self, tool_id: impl Into<String>) {
        let tool_id = tool_id.into();
        self.tree.set("toolId", JsonKind::String(tool_id.clone()));
        self.tool_id = Some(tool_id);
    }

    /// Sets when it was last written, in the text too; the first time also when
    /// it was first written.
    pub fn set_update_timestamp(&mut self, now_ms: u64) {
        let now_ms = now_ms.min(limits::TIMESTAMP_MS_MAX);
        if self.create_timestamp.is_none() {
            self.create_timestamp = Some(now_ms);
            self.tree
                .set("createTimestamp", JsonKind::Number(now_ms.to_string()));
        }
        self.update_timestamp = Some(now_ms);
        self.tree
            .set("updateTimestamp", JsonKind::Number(now_ms.to_string()));
    }
}

/// A file that was read.
#[derive(Clone, Debug)]
pub struct File {
    /// Whether it held one document or an array of them.
    pub shape: FileShape,
    /// One for each document, in order.
    pub items: Vec<ParsedDocument>,
}

/// The content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileShape {
    /// One document.
    One,
    /// An array of documents.
    Many,
    /// Nothing that could be read; the one item says why.
    Unreadable,
}

/// One document of a file, or why it cannot be used.
#[derive(Clone, Debug)]
pub struct ParsedDocument {
    /// Its name, if it has one, even if the rest cannot be used.
    pub name: Option<String>,
    /// The document; absent if any finding is an error.
    pub document: Option<Document>,
    /// Everything that was seen, in the order of the file.
    pub findings: Vec<Finding>,
}

/// Reads one document or an array of them.
#[must_use]
pub fn parse(text: &str) -> File {
    let lines = Lines::new(text);
    if text.len() > limits::FILE_BYTES_MAX {
        let message = format!(
            "the file is {} MiB long, more than {} MiB",
            text.len() >> 20,
            limits::FILE_BYTES_MAX >> 20
        );
        return unreadable(Finding::error(Code::SpecParse, "", message));
    }
    let (root, repeated) = match json::parse(text) {
        Ok(parsed) => parsed,
        Err(fault) => return unreadable(read::from_fault(fault, &lines)),
    };
    let mut repeated: Vec<_> = repeated
        .into_iter()
        .map(|fault| read::from_fault(fault, &lines))
        .collect();
    match root.kind {
        JsonKind::Array(items) if items.len() > limits::FILE_DOCUMENTS_MAX => {
            let message = format!(
                "the file holds {} documents, more than {}",
                items.len(),
                limits::FILE_DOCUMENTS_MAX
            );
            unreadable(Finding::error(Code::SpecParse, "", message))
        }
        JsonKind::Array(items) => {
            let read = |(index, node)| {
                let own = read::take_repeated(&mut repeated, index);
                item(node, own, &lines)
            };
            File {
                shape: FileShape::Many,
                items: items.into_iter().enumerate().map(read).collect(),
            }
        }
        JsonKind::Null
        | JsonKind::Bool(_)
        | JsonKind::Number(_)
        | JsonKind::String(_)
        | JsonKind::Object(_) => File {
            shape: FileShape::One,
            items: vec![item(root, repeated, &lines)],
        },
    }
}

fn unreadable(finding: Finding) -> File {
    let item = ParsedDocument {
        name: None,
        document: None,
        findings: vec![finding],
    };
    File {
        shape: FileShape::Unreadable,
        items: vec![item],
    }
}

fn item(tree: Node, mut findings: Vec<Finding>, lines: &Lines<'_>) -> ParsedDocument {
    let name = match tree.get("name").map(|node| &node.kind) {
        Some(JsonKind::String(name)) if !name.is_empty() => Some(name.clone()),
        _ => None,
    };
    let (document, mut seen) = read::document(tree, lines);
    findings.append(&mut seen);
    if let Some(document) = &document {
        let tree = document.tree();
        let placed = |finding: Finding| {
            let span = tree.locate(&finding.pointer);
            finding.place(span, lines)
        };
        // An unreadable field counts as empty here, so findings that follow from that
        // are dropped.
        let news = |finding: &Finding| {
            findings
                .iter()
                .all(|known| known.pointer != finding.pointer)
        };
        let more: Vec<_> = invariant::check(document)
            .into_iter()
            .filter(news)
            .map(placed)
            .collect();
        findings.extend(more);
    }
    findings.sort_by_key(|finding| (finding.span.start, finding.severity));
    bound(&mut findings);
    // `bound` keeps errors before warnings, so an error is still seen here.
    let document = document.filter(|_| !any_error(&findings));
    ParsedDocument {
        name,
        document,
        findings,
    }
}

/// Keeps the first findings, errors before warnings, and counts the rest.
fn bound(findings: &mut Vec<Finding>) {
    let more = findings.len().saturating_sub(limits::DOCUMENT_FINDINGS_MAX);
    if more > 0 {
        findings.sort_by_key(|finding| finding.severity);
        findings.truncate(limits::DOCUMENT_FINDINGS_MAX);
        findings.sort_by_key(|finding| finding.span.start);
        findings.push(Finding::error(
            Code::SpecParse,
            "",
            format!("{more} more findings are not shown"),
        ));
    }
}

/// The fuzz target and its seeds call this: whatever the bytes, parsing ends, and
/// what was taken can be saved and taken again, meaning the same.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for item in parse(text).items {
        assert_eq!(
            item.document.is_none(),
            any_error(&item.findings),
            "{text:?}"
        );
        let Some(document) = item.document else {
            continue;
        };
        let again = parse(&document.to_text())
            .items
            .pop()
            .and_then(|item| item.document);
        assert_eq!(again.as_ref(), Some(&document), "{text:?}");
        assert_eq!(
            digest::of_document(&document).ok(),
            again.and_then(|again| digest::of_document(&again).ok())
        );
    }
}

#[cfg(test)]
mod tests;
