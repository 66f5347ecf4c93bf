//! Tools named `space.method`, and tools of MCP servers, which a script may also call as
//! `space.method(args)`.
//! Only spaces a script mentions are looked at, and only tools its caller may call
//! are in them: what is not there is an unknown name, whatever the reason.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use guard::Preset;
use guard::preset::Globals;
use model::caller::Origin;
use model::{document, limits};

use crate::gates;
use crate::request::{CallRequest, CallTarget};
use crate::services::VariableSource;
use crate::snapshot::Snapshot;

/// Names that would be confusing as spaces, in addition to the keywords of JavaScript.
const WORDS: &[&str] = &[
    "arguments",
    "as",
    "async",
    "eval",
    "from",
    "get",
    "global",
    "globalThis",
    "implements",
    "interface",
    "of",
    "package",
    "private",
    "protected",
    "public",
    "self",
    "set",
    "system",
    "window",
];

/// The methods of each space, by its name.
pub(crate) type Spaces = BTreeMap<String, Vec<String>>;

/// The spaces a script mentions and its caller has.
pub(crate) fn of(
    now: &Snapshot,
    request: &CallRequest,
    variables: &VariableSource,
    script: &str,
    preset: &Preset,
) -> Spaces {
    let mut spaces = Spaces::new();
    for (script_name, name) in now.script_names() {
        let Some((space, method)) = script_name.split_once('.') else {
            continue;
        };
        let is_usable = is_identifier(space)
            && is_identifier(method)
            && script.contains(space)
            && !is_taken(space, preset);
        if !is_usable || !is_reachable(now, request, variables, name) {
            continue;
        }
        let is_room = spaces.len() < limits::SCRIPT_SPACES_MAX || spaces.contains_key(space);
        if is_room {
            let methods = spaces.entry(space.to_owned()).or_default();
            if !methods.iter().any(|known| known == method) {
                methods.push(method.to_owned());
            }
        }
    }
    spaces
}

/// Definitions of the spaces, on one line.
pub(crate) fn prelude(spaces: &Spaces) -> String {
    let mut line = String::new();
    for (space, methods) in spaces {
        // Identifiers only: nothing here can end a string.
        let methods = methods.join(" ");
        let safe = guard::runtime::SAFE;
        let _ = write!(
            line,
            "const {safe}{space}=__ag_space(\"{space}\",\"{methods}\");"
        );
    }
    line
}

fn is_reachable(
    now: &Snapshot,
    request: &CallRequest,
    variables: &VariableSource,
    name: &str,
) -> bool {
    let request = CallRequest {
        target: CallTarget::Name(name.to_owned()),
        origin: Origin::Script,
        ..request.clone()
    };
    gates::reach(now, &request, variables).is_ok()
}

fn is_identifier(word: &str) -> bool {
    let starts = |first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '$');
    let goes_on = |next: char| next.is_ascii_alphanumeric() || matches!(next, '_' | '$');
    word.starts_with(starts) && word.chars().all(goes_on)
}

/// Whether a name means something already.
fn is_taken(name: &str, preset: &Preset) -> bool {
    let known: &[&str] = match &preset.globals {
        Globals::Any => &[],
        Globals::Only(known) => known,
    };
    let mut prefixes = guard::runtime::RESERVED_PREFIXES.iter();
    known.contains(&name)
        || preset.refused.contains(&name)
        || guard::runtime::RUNTIME_FUNCTIONS.contains(&name)
        || WORDS.contains(&name)
        || document::is_word(name)
        || prefixes.any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mean_something_stay_what_they_are() {
        let preset = Preset::agent_script(guard::PresetLevel::Strict);
        for name in ["Math", "callTool", "console", "fetch", "await", "__safe_x"] {
            assert!(is_taken(name, &preset), "{name}");
        }
        assert!(!is_taken("users", &preset));
        for word in ["", "1a", "a-b", "a.b", "ä", "a\"b", "a b"] {
            assert!(!is_identifier(word), "{word}");
        }
        assert!(is_identifier("_a$1"));
    }

    #[test]
    fn spaces_are_defined_on_one_line() {
        let methods = vec!["get".to_owned(), "list".to_owned()];
        let spaces = Spaces::from([("users".to_owned(), methods)]);
        let expected = "const __safe_users=__ag_space(\"users\",\"get list\");";
        assert_eq!(prelude(&spaces), expected);
    }
}
