//! From a tree to a [`Document`], with every error reported, not only the first.
//!
//! Closed shapes refuse keys they do not know; the document itself and
//! `humanInTheLoop` keep them, and only a near miss of a known key is a warning.

use super::{
    ApprovalMode, CodeType, Document, HumanInTheLoop, NetworkMode, Overrides, Param, ParamType,
    StaticVariable,
};
use crate::document::finding::{Code, Finding};
use crate::document::json::{JsonFault, JsonKind, Lines, Member, Node};
use crate::document::safety::{self, Safety};
use crate::limits;
use crate::nearest::nearest;
use crate::text::elided;
use crate::word::{Word, words};

crate::words! { ParamType {
    String = "STRING",
    Integer = "INTEGER",
    Number = "NUMBER",
    Boolean = "BOOLEAN",
    Object = "OBJECT",
    Array = "ARRAY",
} }

crate::words! { CodeType {
    Javascript = "Javascript",
} }

crate::words! { NetworkMode {
    Blocked = "blocked",
    Allowlist = "allowlist",
    Strict = "strict",
    Open = "open",
} }

crate::words! { ApprovalMode {
    Disabled = "DISABLED",
    Required = "REQUIRED",
    AutoApprove = "AUTO_APPROVE",
} }

const DOCUMENT_KEYS: &[&str] = &[
    "toolId",
    "name",
    "description",
    "category",
    "tags",
    "params",
    "staticVariables",
    "code",
    "codeType",
    "sandboxOverrides",
    "toolSafety",
    "humanInTheLoop",
    "draft",
    "createTimestamp",
    "updateTimestamp",
];
const PARAM_KEYS: &[&str] = &["name", "description", "required", "type", "testValue"];
const OVERRIDES_KEYS: &[&str] = &[
    "addAllowClasses",
    "removeAllowClasses",
    "addDenyClasses",
    "removeDenyClasses",
    "networkMode",
    "hostsAllow",
    "fileRead",
    "fileWrite",
    "fsBasePath",
    "destructive",
];
const APPROVAL_KEYS: &[&str] = &["mode", "promptTemplate"];

/// A parser's fault as a finding. A pointer into an array of documents loses its first
/// index, because a finding is about one document.
pub(super) fn from_fault(fault: JsonFault, lines: &Lines<'_>) -> Finding {
    let finding = Finding::error(Code::SpecParse, fault.pointer, fault.message);
    Finding {
        fix: fault.fix,
        ..finding
    }
    .place(fault.span, lines)
}

/// Takes the repeated keys of the document at this index.
pub(super) fn take_repeated(repeated: &mut Vec<Finding>, index: usize) -> Vec<Finding> {
    let prefix = format!("[{index}]");
    let (own, rest): (Vec<_>, Vec<_>) = std::mem::take(repeated)
        .into_iter()
        .partition(|f| f.pointer.starts_with(&prefix));
    *repeated = rest;
    let relative = |mut finding: Finding| {
        let pointer = finding.pointer.strip_prefix(&prefix).unwrap_or_default();
        finding.pointer = pointer.trim_start_matches('.').to_owned();
        finding
    };
    own.into_iter().map(relative).collect()
}

/// Reads a document. `None` only together with at least one error.
pub(super) fn document(tree: Node, lines: &Lines<'_>) -> (Option<Document>, Vec<Finding>) {
    let mut reader = Reader {
        lines,
        findings: Vec::new(),
    };
    let document = reader.document(&tree);
    // The tree moves in last: the reader borrows it until then.
    let document = document.map(|document| Document { tree, ..document });
    (document, reader.findings)
}

/// Collects findings while reading. Every method returns the readable part.
pub(crate) struct Reader<'a> {
    lines: &'a Lines<'a>,
    findings: Vec<Finding>,
}

impl Reader<'_> {
    fn document(&mut self, tree: &Node) -> Option<Document> {
        let members = self.members(tree, "", "a tool document is an object")?;
        self.near_misses(members, "", DOCUMENT_KEYS);
        let document = Document {
            tool_id: self.string(tree, "", "toolId", limits::WORD_CHARS_MAX),
            name: self.name(tree, ""),
            description: self
                .string(tree, "", "description", limits::DESCRIPTION_CHARS_MAX)
                .unwrap_or_default(),
            category: self.string(tree, "", "category", limits::WORD_CHARS_MAX),
            tags: self.strings(tree, "", "tags", limits::TAGS_MAX),
            params: self.list(tree, "params", limits::PARAMS_MAX, Reader::param),
            static_variables: self.list(
                tree,
                "staticVariables",
                limits::STATIC_VARIABLES_MAX,
                Reader::static_variable,
            ),
            code: self.code(tree),
            code_type: self
                .required_word(tree, "", "codeType")
                .unwrap_or(CodeType::Javascript),
            sandbox_overrides: self.overrides(tree),
            tool_safety: self.safety(tree),
            human_in_the_loop: self.approval(tree),
            draft: self.boolean(tree, "", "draft"),
            create_timestamp: self.timestamp(tree, "createTimestamp"),
            update_timestamp: self.timestamp(tree, "updateTimestamp"),
            tree: Node::new(JsonKind::Null),
        };
        Some(document)
    }

    fn code(&mut self, tree: &Node) -> String {
        if present(tree, "code").is_none() {
            self.missing(tree, "", "code", "the JavaScript to run");
        }
        self.string(tree, "", "code", limits::CODE_CHARS_MAX)
            .unwrap_or_default()
    }

    fn name(&mut self, node: &Node, at: &str) -> String {
        if present(node, "name").is_none() {
            self.missing(node, at, "name", "what it is called");
            return String::new();
        }
        let name = self.string(node, at, "name", limits::NAME_CHARS_MAX);
        if let Some("") = name.as_deref() {
            self.error(node, &join(at, "name"), "`name` is empty".to_owned(), None);
        }
        name.unwrap_or_default()
    }

    fn param(&mut self, node: &Node, at: &str) -> Option<Param> {
        self.require_known_keys(node, at, PARAM_KEYS)?;
        let required = present(node, "required");
        if required.is_none() {
            self.missing(node, at, "required", "true or false");
        }
        Some(Param {
            name: self.name(node, at),
            description: self
                .string(node, at, "description", limits::DESCRIPTION_CHARS_MAX)
                .unwrap_or_default(),
            required: self.boolean(node, at, "required").unwrap_or(false),
            kind: self
                .required_word(node, at, "type")
                .unwrap_or(ParamType::String),
            test_value: self.test_value(node, at),
        })
    }

    fn test_value(&mut self, node: &Node, at: &str) -> Option<String> {
        let value = present(node, "testValue")?;
        if let JsonKind::Number(_) | JsonKind::Bool(_) | JsonKind::Array(_) | JsonKind::Object(_) =
            &value.kind
        {
            let written = value.to_value().to_string();
            let quoted = serde_json::Value::String(written).to_string();
            let message = format!("`testValue` must be a string, this is {}", value.noun());
            let fix = format!("write `{}`", elided(&quoted, 60));
            self.error(node, &join(at, "testValue"), message, Some(fix));
            return None;
        }
        self.string(node, at, "testValue", limits::VALUE_CHARS_MAX)
    }

    fn static_variable(&mut self, node: &Node, at: &str) -> Option<StaticVariable> {
        let members = self.members(node, at, "each static variable is an object with one key")?;
        let [member] = members else {
            let message = format!(
                "a static variable has exactly one key, this has {}",
                members.len()
            );
            let fix = "write one object for each: [{\"a\": \"…\"}, {\"b\": \"…\"}]";
            self.error(node, at, message, Some(fix.to_owned()));
            return None;
        };
        let length = member.key.chars().count();
        if length == 0 || length > limits::NAME_CHARS_MAX {
            let message = format!("the name of a static variable has {length} characters");
            self.error(node, at, message, None);
        }
        let template = self.text(
            &member.value,
            &join(at, &member.key),
            limits::VALUE_CHARS_MAX,
        )?;
        Some(StaticVariable {
            name: member.key.clone(),
            template,
        })
    }

    fn overrides(&mut self, tree: &Node) -> Overrides {
        let at = "sandboxOverrides";
        let Some(node) = present(tree, at) else {
            return Overrides::default();
        };
        if self.require_known_keys(node, at, OVERRIDES_KEYS).is_none() {
            return Overrides::default();
        }
        let mut list = |key| self.strings(node, at, key, limits::LIST_ITEMS_MAX);
        Overrides {
            add_allow_classes: list("addAllowClasses"),
            remove_allow_classes: list("removeAllowClasses"),
            add_deny_classes: list("addDenyClasses"),
            remove_deny_classes: list("removeDenyClasses"),
            hosts_allow: list("hostsAllow"),
            network_mode: self.word(node, at, "networkMode"),
            file_read: self.boolean(node, at, "fileRead"),
            file_write: self.boolean(node, at, "fileWrite"),
            fs_base_path: self.string(node, at, "fsBasePath", limits::WORD_CHARS_MAX),
            destructive: self.boolean(node, at, "destructive"),
        }
    }

    fn safety(&mut self, tree: &Node) -> Option<Safety> {
        let node = present(tree, "toolSafety")?;
        safety::read(self, node, "toolSafety")
    }

    fn approval(&mut self, tree: &Node) -> Option<HumanInTheLoop> {
        let at = "humanInTheLoop";
        let node = present(tree, at)?;
        let members = self.members(node, at, "`humanInTheLoop` is an object")?;
        self.near_misses(members, at, APPROVAL_KEYS);
        Some(HumanInTheLoop {
            mode: self.word(node, at, "mode"),
            prompt_template: self.string(node, at, "promptTemplate", limits::PROMPT_CHARS_MAX),
        })
    }

    fn timestamp(&mut self, tree: &Node, key: &str) -> Option<u64> {
        let node = present(tree, key)?;
        let whole = match &node.kind {
            JsonKind::Number(digits) => whole_number(digits),
            _ => None,
        };
        if whole.is_none() {
            let message = format!("`{key}` must be a whole number of milliseconds, 0 or more");
            self.error(tree, key, message, None);
        }
        whole
    }
}

/// The shapes every block is read with.
impl Reader<'_> {
    /// The members of an object; anything else is an error.
    pub(crate) fn members<'n>(
        &mut self,
        node: &'n Node,
        at: &str,
        what: &str,
    ) -> Option<&'n [Member]> {
        let members = node.members();
        if members.is_none() {
            self.error_here(node, at, format!("{what}, this is {}", node.noun()), None);
        }
        members
    }

    /// An object that may hold only these keys.
    pub(crate) fn require_known_keys(
        &mut self,
        node: &Node,
        at: &str,
        known: &[&str],
    ) -> Option<()> {
        let what = format!("`{at}` must be an object");
        for member in self.members(node, at, &what)? {
            if !known.contains(&member.key.as_str()) {
                let shown = elided(&member.key, 60);
                let message = format!("`{shown}` is not a key of `{at}`");
                let fix = match nearest(&member.key, known.iter().copied()) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => format!("remove it; the keys are {}", known.join(", ")),
                };
                let finding =
                    Finding::error(Code::SpecParse, join(at, &member.key), message).fix(fix);
                self.findings
                    .push(finding.place(member.key_span, self.lines));
            }
        }
        Some(())
    }

    /// Unknown keys are kept, but one that is nearly a known key is reported.
    fn near_misses(&mut self, members: &[Member], at: &str, known: &[&str]) {
        let unknown = members
            .iter()
            .filter(|member| !known.contains(&member.key.as_str()));
        for member in unknown {
            if let Some(name) = nearest(&member.key, known.iter().copied()) {
                let shown = elided(&member.key, 60);
                let message = format!("`{shown}` is kept but has no effect here");
                let finding = Finding::warning(Code::SpecParse, join(at, &member.key), message)
                    .fix(format!("did you mean `{name}`?"));
                self.findings
                    .push(finding.place(member.key_span, self.lines));
            }
        }
    }

    pub(crate) fn string(
        &mut self,
        node: &Node,
        at: &str,
        key: &str,
        chars_max: usize,
    ) -> Option<String> {
        let value = present(node, key)?;
        self.text(value, &join(at, key), chars_max)
    }

    fn text(&mut self, value: &Node, at: &str, chars_max: usize) -> Option<String> {
        match &value.kind {
            JsonKind::String(text) => {
                let length = text.chars().count();
                if length > chars_max {
                    let message = format!("`{at}` has {length} characters, more than {chars_max}");
                    self.error_here(value, at, message, None);
                }
                Some(text.clone())
            }
            _ => {
                let message = format!("`{at}` must be a string, this is {}", value.noun());
                self.error_here(value, at, message, None);
                None
            }
        }
    }

    pub(crate) fn strings(
        &mut self,
        node: &Node,
        at: &str,
        key: &str,
        items_max: usize,
    ) -> Vec<String> {
        self.items(node, at, key, items_max, |reader, item, at| {
            reader.text(item, at, limits::WORD_CHARS_MAX)
        })
    }

    fn list<T>(
        &mut self,
        node: &Node,
        key: &str,
        items_max: usize,
        read: fn(&mut Self, &Node, &str) -> Option<T>,
    ) -> Vec<T> {
        self.items(node, "", key, items_max, read)
    }

    fn items<T>(
        &mut self,
        node: &Node,
        at: &str,
        key: &str,
        items_max: usize,
        read: fn(&mut Self, &Node, &str) -> Option<T>,
    ) -> Vec<T> {
        let Some(value) = present(node, key) else {
            return Vec::new();
        };
        let at = join(at, key);
        let JsonKind::Array(items) = &value.kind else {
            let message = format!("`{at}` must be an array, this is {}", value.noun());
            self.error_here(value, &at, message, None);
            return Vec::new();
        };
        if items.len() > items_max {
            let message = format!("`{at}` has {} entries, more than {items_max}", items.len());
            self.error_here(value, &at, message, None);
        }
        let mut read_one = |(index, item)| read(self, item, &format!("{at}[{index}]"));
        items
            .iter()
            // No further: the rest would only add findings.
            .take(items_max)
            .enumerate()
            .filter_map(&mut read_one)
            .collect()
    }

    pub(crate) fn boolean(&mut self, node: &Node, at: &str, key: &str) -> Option<bool> {
        let value = present(node, key)?;
        if let JsonKind::Bool(value) = value.kind {
            return Some(value);
        }
        let at = join(at, key);
        let fix = match &value.kind {
            JsonKind::String(text) if text.eq_ignore_ascii_case("true") => Some("write `true`"),
            JsonKind::String(text) if text.eq_ignore_ascii_case("false") => Some("write `false`"),
            _ => None,
        };
        let message = format!("`{at}` must be true or false, this is {}", value.noun());
        self.error_here(value, &at, message, fix.map(str::to_owned));
        None
    }

    pub(crate) fn word<T: Word>(&mut self, node: &Node, at: &str, key: &str) -> Option<T> {
        let value = present(node, key)?;
        let at = join(at, key);
        let JsonKind::String(text) = &value.kind else {
            let message = format!("`{at}` must be {}, this is {}", words::<T>(), value.noun());
            self.error_here(value, &at, message, None);
            return None;
        };
        let found = T::ALL
            .iter()
            .copied()
            .find(|variant| variant.word() == text);
        if found.is_none() {
            let message = format!(
                "`{at}` is `{}`; it must be {}",
                elided(text, 40),
                words::<T>()
            );
            let near = nearest(text, T::ALL.iter().map(|variant| variant.word()));
            self.error_here(
                value,
                &at,
                message,
                near.map(|word| format!("write `{word}`")),
            );
        }
        found
    }

    fn required_word<T: Word>(&mut self, node: &Node, at: &str, key: &str) -> Option<T> {
        if present(node, key).is_none() {
            self.missing(node, at, key, &words::<T>());
        }
        self.word(node, at, key)
    }

    fn missing(&mut self, node: &Node, at: &str, key: &str, what: &str) {
        let whose = if at.is_empty() {
            "the document".to_owned()
        } else {
            format!("`{at}`")
        };
        let message = format!("{whose} has no `{key}`");
        self.error(
            node,
            &join(at, key),
            message,
            Some(format!("add `\"{key}\"`: {what}")),
        );
    }

    /// An error whose place is the pointer's, or `node` itself where that is absent.
    pub(crate) fn error(&mut self, node: &Node, at: &str, message: String, fix: Option<String>) {
        let key = at.rsplit('.').next().unwrap_or(at);
        let place = node.get(key).unwrap_or(node);
        self.error_here(place, at, message, fix);
    }

    fn error_here(&mut self, node: &Node, at: &str, message: String, fix: Option<String>) {
        let finding = Finding::error(Code::SpecParse, at, message);
        self.findings
            .push(Finding { fix, ..finding }.place(node.span, self.lines));
    }
}

/// A member's value; null and absent are one.
pub(crate) fn present<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    node.get(key).filter(|value| value.kind != JsonKind::Null)
}

pub(crate) fn join(at: &str, key: &str) -> String {
    if at.is_empty() {
        key.to_owned()
    } else {
        format!("{at}.{key}")
    }
}

/// A number that is whole, however it is written: `1000`, `1e3`, `1000.0`.
fn whole_number(digits: &str) -> Option<u64> {
    if let Ok(number) = digits.parse::<u64>() {
        return Some(number).filter(|number| *number <= limits::TIMESTAMP_MS_MAX);
    }
    let number: f64 = digits.parse().ok()?;
    let fits = (0.0..=9_007_199_254_740_991.0).contains(&number) && number.fract() == 0.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked above"
    )]
    fits.then_some(number as u64)
}
