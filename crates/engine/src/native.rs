//! The tools whose body is ours: those of code mode and of progressive listing. They
//! are documents like any other, so that lists, levels, rules, approvals and the audit
//! hold for them; only what runs is ours. Here is what they are; `bodies` and `script`
//! have what they do.

use std::borrow::Cow;

use model::config::{CodecallMode, Config};
use model::document::params::ArgumentFault;
use model::limits::{self, SCRIPT_CHARS_MAX};
use model::reason::Reason;
use model::record::outcome::CallError;
use model::text;
use serde_json::{Value, json};

use crate::refusal::CallRefusal;

mod schema;

/// How the names begin where colons are legal.
const ALIAS: &str = "codecall:";
/// How the names begin.
const PREFIX: &str = "codecall_";

/// Queries of one search.
const QUERIES_MAX: usize = find::limit::SEARCH_QUERIES_MAX;
/// Characters of a query, at least.
const QUERY_CHARS_MIN: usize = find::limit::SEARCH_QUERY_CHARS_MIN;
/// Characters of a query, at most.
const QUERY_CHARS_MAX: usize = find::limit::SEARCH_QUERY_CHARS_MAX;
/// Applications a search may be narrowed to.
const APP_IDS_MAX: usize = find::limit::SEARCH_APPS_MAX;
/// Tools a search may leave out.
const EXCLUDED_MAX: usize = find::limit::SEARCH_EXCLUDED_MAX;
/// Tools a query may ask for.
const TOP_K_MAX: u64 = limits::SEARCH_TOP_MAX;

/// A tool whose body is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Native {
    /// Finds tools.
    Search,
    /// Tells about tools.
    Describe,
    /// Runs a script.
    Execute,
    /// Calls one tool.
    Invoke,
    /// Lists tools in short.
    List,
    /// Loads the card of a tool.
    Load,
    /// Loads what a tool ships.
    LoadResource,
}

impl Native {
    /// All of them.
    pub const ALL: [Native; 7] = [
        Native::Search,
        Native::Describe,
        Native::Execute,
        Native::Invoke,
        Native::List,
        Native::Load,
        Native::LoadResource,
    ];

    /// The name in lists and calls.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Native::Search => "codecall_search",
            Native::Describe => "codecall_describe",
            Native::Execute => "codecall_execute",
            Native::Invoke => "codecall_invoke",
            Native::List => "list_tools",
            Native::Load => "load_tool",
            Native::LoadResource => "load_tool_resource",
        }
    }

    /// The one of a name, also where it is written with a colon.
    #[must_use]
    pub fn named(name: &str) -> Option<Native> {
        let mut all = Native::ALL.into_iter();
        let Some(word) = name.strip_prefix(ALIAS) else {
            return all.find(|native| native.name() == name);
        };
        all.find(|native| native.name().strip_prefix(PREFIX) == Some(word))
    }

    /// What it is part of, and the setting that switches that on.
    pub(crate) fn feature(self) -> Feature {
        match self {
            Native::Search | Native::Describe | Native::Execute | Native::Invoke => {
                Feature::CodeMode
            }
            Native::List | Native::Load | Native::LoadResource => Feature::Progressive,
        }
    }

    /// Whether it changes nothing and reaches nothing, whatever it is given.
    #[must_use]
    pub(crate) fn only_reads(self) -> bool {
        match self {
            Native::Search
            | Native::Describe
            | Native::List
            | Native::Load
            | Native::LoadResource => true,
            Native::Execute | Native::Invoke => false,
        }
    }

    /// Its arguments, in more detail than params can say.
    #[must_use]
    pub fn input_schema(self) -> Value {
        let text = |about: &str| json!({"type": "string", "description": about});
        let names = |about: &str| json!({"type": "array", "items": {"type": "string"}, "description": about});
        let (properties, required) = match self {
            Native::Search => {
                let query = json!({"type": "string", "minLength": QUERY_CHARS_MIN, "maxLength": QUERY_CHARS_MAX});
                let queries = json!({
                    "type": "array", "items": query, "minItems": 1, "maxItems": QUERIES_MAX,
                    "description": "What you look for, one short phrase for each thing you need",
                });
                let mut apps = names("Only tools of these applications");
                set(&mut apps, "maxItems", APP_IDS_MAX.into());
                let mut excluded = names("Tools you know already and do not want listed");
                set(&mut excluded, "maxItems", EXCLUDED_MAX.into());
                let properties = json!({
                    "queries": queries,
                    "appIds": apps,
                    "excludeToolNames": excluded,
                    "topK": {"type": "integer", "minimum": 1, "maximum": TOP_K_MAX, "default": 10,
                        "description": "How many tools for each query"},
                    "minRelevanceScore": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.1,
                        "description": "The least relevance of a tool"},
                });
                (properties, vec!["queries"])
            }
            Native::Describe => {
                let mut tools = names("The names of the tools, each once");
                set(&mut tools, "minItems", 1.into());
                set(&mut tools, "maxItems", limits::DESCRIBE_NAMES_MAX.into());
                set(&mut tools, "uniqueItems", true.into());
                (json!({"toolNames": tools}), vec!["toolNames"])
            }
            Native::Execute => {
                let mut script = text("The script: JavaScript, the body of an async function");
                set(&mut script, "minLength", 1.into());
                set(&mut script, "maxLength", SCRIPT_CHARS_MAX.into());
                let properties = json!({
                    "script": script,
                    "allowedTools": names("The only tools the script may call"),
                    "context": {"type": "object", "description": "Data the script reads as codecallContext"},
                });
                (properties, vec!["script"])
            }
            Native::Invoke => {
                let properties = json!({
                    "tool": text("The name of the tool"),
                    "input": {"type": "object", "description": "Its arguments"},
                });
                (properties, vec!["tool"])
            }
            Native::List => {
                let properties = json!({
                    "category": text("Only tools of this category"),
                    "cursor": text("Where to go on: nextCursor of the page before"),
                });
                (properties, Vec::new())
            }
            Native::Load => (json!({"name": text("The name of the tool")}), vec!["name"]),
            Native::LoadResource => {
                let properties = json!({
                    "name": text("The name of the tool"),
                    "resource": text("The name of the resource"),
                });
                (properties, vec!["name", "resource"])
            }
        };
        json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": false,
        })
    }

    /// Other names its arguments are known by, each with the one used here: models
    /// know them from elsewhere.
    fn aliases(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Native::Load => &[("tool_name", "name")],
            Native::LoadResource => &[("tool_name", "name"), ("resource_id", "resource")],
            Native::Search | Native::Describe | Native::Execute | Native::Invoke | Native::List => {
                &[]
            }
        }
    }

    /// What comes back, where it always has the same shape.
    #[must_use]
    pub fn output_schema(self) -> Option<Value> {
        schema::output(self)
    }

    /// The document of the tool.
    pub(crate) fn document(self) -> &'static str {
        match self {
            Native::Search => include_str!("native/search.json"),
            Native::Describe => include_str!("native/describe.json"),
            Native::Execute => include_str!("native/execute.json"),
            Native::Invoke => include_str!("native/invoke.json"),
            Native::List => include_str!("native/list_tools.json"),
            Native::Load => include_str!("native/load_tool.json"),
            Native::LoadResource => include_str!("native/load_tool_resource.json"),
        }
    }

    /// The arguments of a call under the names used here.
    pub(crate) fn spell(self, arguments: &Value) -> Result<Cow<'_, Value>, CallRefusal> {
        let aliases = self.aliases();
        let is_given = |name: &str| arguments.get(name).is_some();
        if !aliases.iter().any(|(alias, _)| is_given(alias)) {
            return Ok(Cow::Borrowed(arguments));
        }
        let twice = aliases
            .iter()
            .find(|(alias, name)| is_given(alias) && is_given(name));
        if let Some((alias, name)) = twice {
            return Err(refuse_arguments(vec![ArgumentFault {
                reason: Reason::ArgumentUnknown,
                name: (*alias).to_owned(),
                message: format!("`{alias}` is another name for `{name}`; give only one"),
            }]));
        }
        let mut spelled = arguments.clone();
        if let Some(members) = spelled.as_object_mut() {
            for (alias, name) in aliases {
                if let Some(value) = members.remove(*alias) {
                    members.insert((*name).to_owned(), value);
                }
            }
        }
        Ok(Cow::Owned(spelled))
    }
}

/// What a built-in tool is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    CodeMode,
    Progressive,
}

impl Feature {
    /// Whether the operator has it on.
    pub(crate) fn is_on(self, config: &Config) -> bool {
        match self {
            Feature::CodeMode => config.codecall.mode != CodecallMode::Off,
            Feature::Progressive => config.progressive.enabled,
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Feature::CodeMode => "code mode",
            Feature::Progressive => "progressive listing",
        }
    }

    /// The setting that switches it on.
    pub(crate) fn setting(self) -> &'static str {
        match self {
            Feature::CodeMode => "codecall.mode",
            Feature::Progressive => "progressive.enabled",
        }
    }
}

/// Whether a name means a built-in tool, however it is written.
pub(crate) fn is_self_reference(name: &str) -> bool {
    let name = folded(name);
    name.starts_with(PREFIX) || name.starts_with(ALIAS) || Native::named(&name).is_some()
}

/// Why a script cannot call one of our tools, and what it has instead.
pub(crate) fn self_reference(name: &str) -> &'static str {
    match Native::named(&folded(name)).map(Native::feature) {
        Some(Feature::Progressive) => "it is for clients; a script uses `getTool('name')`",
        Some(Feature::CodeMode) | None => {
            "code mode cannot call itself; call the tool by its own name"
        }
    }
}

/// A name as a reader takes it: in lower case, without blanks around it and without
/// what cannot be seen, full-width letters and marks as plain ones.
fn folded(name: &str) -> String {
    let plain = |character: char| match character {
        '\u{ff01}'..='\u{ff5e}' => {
            char::from_u32(u32::from(character) - 0xfee0).unwrap_or(character)
        }
        other => other,
    };
    let seen = name
        .chars()
        .filter(|character| !text::is_hidden(*character));
    let folded: String = seen.map(plain).collect();
    folded.trim().to_lowercase()
}

fn set(schema: &mut Value, key: &str, value: Value) {
    if let Some(members) = schema.as_object_mut() {
        members.insert(key.to_owned(), value);
    }
}

/// The refusal of arguments that a tool does not take.
pub(crate) fn refuse_arguments(faults: Vec<ArgumentFault>) -> CallRefusal {
    let reason = faults.first().map(|fault| fault.reason);
    let messages: Vec<_> = faults.into_iter().map(|fault| fault.message).collect();
    let reason = reason.unwrap_or(Reason::ArgumentType);
    CallRefusal::new(CallError::new(reason, messages.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookalike_names_of_code_mode_tools_are_recognised() {
        for name in [
            "codecall_x",
            " codecall:execute",
            "CodeCall_Invoke\t",
            " List_Tools",
            "codecall：execute",
            "ｃｏｄｅｃａｌｌ_search",
            "code\u{200b}call_search",
        ] {
            assert!(is_self_reference(name), "{name}");
        }
        assert!(!is_self_reference("codecaller"));
    }

    #[test]
    fn both_spellings_are_known() {
        assert_eq!(Native::named("codecall:invoke"), Some(Native::Invoke));
        assert_eq!(Native::named("codecall_search"), Some(Native::Search));
        for name in [
            "codecall",
            "codecall_",
            "codecall_Search",
            "codecall:",
            "search",
            "",
        ] {
            assert_eq!(Native::named(name), None, "{name}");
        }
    }
}
