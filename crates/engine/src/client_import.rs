//! The servers of an MCP client's settings: read as the client spells them, and what importing
//! them would do. `wrap`, `scan` and the Studio use the same functions. Nothing is written
//! here.

mod entry;
mod plan;

use model::document::json;
use serde_json::{Map, Value};

pub use entry::ClientEntry;
pub(crate) use plan::parsed;
pub use plan::{ImportContext, ImportPlan, ImportedServer};

/// Where clients keep their servers in a file that names no client.
pub const SECTIONS: [&str; 2] = ["mcpServers", "servers"];

/// The settings of a client as a value. What is not plain JSON, such as a file with comments,
/// is refused rather than guessed at.
///
/// # Errors
/// One sentence: it is not JSON, or says a thing twice.
pub fn read_value(text: &str) -> Result<Value, String> {
    let (root, repeated) = json::parse(text).map_err(|fault| {
        let head = text.get(..fault.span.start);
        let line = head.map_or(0, |head| head.matches('\n').count()) + 1;
        format!("line {line} is not plain JSON: {}", fault.message)
    })?;
    if let Some(fault) = repeated.first() {
        return Err(fault.message.clone());
    }
    let text = text.get(root.span.start..root.span.end);
    serde_json::from_str(text.unwrap_or_default()).map_err(|fault| fault.to_string())
}

/// The section of a client's settings that has servers, if one has.
#[must_use]
pub fn section_of(members: &Map<String, Value>) -> Option<&'static str> {
    let is_there = |name: &&str| members.get(*name).is_some_and(Value::is_object);
    SECTIONS.into_iter().find(is_there)
}

/// The servers in the settings of a client that is not named: a whole file, or only its
/// section.
///
/// # Errors
/// One sentence: it is not JSON, or has no servers.
pub fn read_entries(text: &str) -> Result<Vec<ClientEntry>, String> {
    let Value::Object(members) = read_value(text)? else {
        return Err("it is not a JSON object".to_owned());
    };
    let section = section_of(&members);
    let none = || "it has no `mcpServers` and no `servers`".to_owned();
    let servers = members.get(section.ok_or_else(none)?).ok_or_else(none)?;
    let servers = servers.as_object().ok_or_else(none)?.iter();
    Ok(servers
        .map(|(name, entry)| ClientEntry::read(name, entry))
        .collect())
}

/// A name that a placeholder can have.
#[must_use]
pub fn placeholder_name(raw_name: &str) -> String {
    let fits = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit();
    let upper = raw_name.to_ascii_uppercase();
    let name: String = upper
        .chars()
        .map(|letter| if fits(letter) { letter } else { '_' })
        .collect();
    match name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() {
        true => format!("_{name}"),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_found_in_the_files_of_every_client() {
        let names = |text: &str| {
            let read = read_entries(text);
            read.map(|all| all.into_iter().map(|one| one.name).collect::<Vec<_>>())
        };
        let one = r#"{"command": "a"}"#;
        assert_eq!(
            names(&format!(r#"{{"mcpServers": {{"x": {one}}}}}"#)),
            Ok(vec!["x".to_owned()])
        );
        assert_eq!(
            names(&format!(r#"{{"theme": 1, "servers": {{"y": {one}}}}}"#)),
            Ok(vec!["y".to_owned()])
        );
        for odd in [
            "",
            "[]",
            "{}",
            "{\"mcpServers\": []}",
            "// no\n{}",
            "{\"a\":1,\"a\":2}",
        ] {
            assert!(names(odd).is_err(), "{odd}");
        }
    }
}
