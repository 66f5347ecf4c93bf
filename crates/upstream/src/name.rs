//! Names of servers and of the tools we offer for them: `<server>__<tool>`.
//!
//! A name never changes because another server arrives, fits every client
//! (`[A-Za-z0-9_-]`, at most 64 characters), and belongs to one tool only. A name that
//! does not fit keeps its head and gets a piece of its digest.

use std::collections::BTreeMap;
use std::fmt;

use model::text::elided;
use sha2::{Digest as _, Sha256};

use crate::limit;

mod skeleton;

pub use skeleton::{is_mixed_script, skeleton};

/// The separator between server and tool. No server name has an underscore, so the
/// first one ends the server.
pub const SEPARATOR: &str = "__";
/// Characters of the digest at the end of a name that does not fit.
const DIGEST_CHARS: usize = 8;
/// The digits of RFC 4648. Capitals, because tools end in eight small letters after
/// an underscore all the time: `list_projects`.
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Server names that mean something already: in scripts, in commands or to readers.
const RESERVED: &[&str] = &[
    "arguments",
    "async",
    "codecall",
    "console",
    "crypto",
    "eval",
    "fetch",
    "from",
    "get",
    "global",
    "host",
    "implements",
    "interface",
    "local",
    "mcp",
    "of",
    "owner",
    "package",
    "private",
    "process",
    "protected",
    "public",
    "ringfence",
    "safety",
    "secrets",
    "self",
    "server",
    "servers",
    "set",
    "stdio",
    "system",
    "tool",
    "tools",
    "window",
];

/// The name the owner gives a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(String);

/// A word that is not a server name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ServerNameFault {
    /// The fault, and the format of a name.
    pub message: String,
    /// A name that would do.
    pub suggestion: Option<String>,
}

impl ServerName {
    /// Reads a name: a small letter, then up to 23 small letters, digits and hyphens.
    pub fn parse(raw_name: &str) -> Result<ServerName, ServerNameFault> {
        let shown = elided(raw_name, 60);
        let refuse = |message: String| ServerNameFault {
            message,
            suggestion: suggestion(raw_name),
        };
        if !is_server_name(raw_name) {
            let most = limit::SERVER_NAME_CHARS_MAX;
            return Err(refuse(format!(
                "`{shown}` is not a server name; use up to {most} small letters, digits and hyphens, a letter first"
            )));
        }
        // A server named like a word of scripts or commands could be taken for it.
        if is_reserved(raw_name) {
            return Err(refuse(format!(
                "`{shown}` is reserved; choose another name for the server"
            )));
        }
        Ok(ServerName(raw_name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as scripts write it: hyphens are underscores.
    #[must_use]
    pub fn code_name(&self) -> String {
        self.0.replace('-', "_")
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_server_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(fits)
        && name.len() <= limit::SERVER_NAME_CHARS_MAX
}

fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || model::document::is_word(name)
}

/// The nearest name that would do, for an import from settings of other programs.
fn suggestion(raw_name: &str) -> Option<String> {
    let mut name = String::new();
    for character in raw_name.chars() {
        match character.to_ascii_lowercase() {
            plain if plain.is_ascii_lowercase() => name.push(plain),
            digit if digit.is_ascii_digit() && !name.is_empty() => name.push(digit),
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
        if name.len() == limit::SERVER_NAME_CHARS_MAX {
            break;
        }
    }
    let name = name.trim_end_matches('-');
    let name = match is_reserved(name) {
        true => format!("my-{name}"),
        false => name.to_owned(),
    };
    is_server_name(&name).then_some(name)
}

/// The name under which a tool of a server is offered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BridgedName {
    full: String,
    server_len: usize,
}

impl BridgedName {
    /// The name of a tool. The same tool has the same name everywhere and always.
    #[must_use]
    pub fn new(server: &ServerName, raw_tool: &str) -> BridgedName {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let mapped = raw_tool.chars().map(|c| if fits(c) { c } else { '_' });
        let room = limit::BRIDGED_NAME_CHARS_MAX - server.0.len() - SEPARATOR.len();
        // A plain name is kept. Every other name gets a digest of the server's own
        // name, so that two tools never share one.
        let is_plain = raw_tool.chars().all(fits)
            && raw_tool.len() <= room
            && !raw_tool.is_empty()
            // Otherwise a server could spell out the shortened name of
            // another of its tools.
            && !ends_like_digest(raw_tool);
        let tool: String = match is_plain {
            true => raw_tool.to_owned(),
            false => {
                let head = mapped.take(room - DIGEST_CHARS - 1);
                let digest = short_digest(raw_tool);
                head.chain(['_']).chain(digest.chars()).collect()
            }
        };
        BridgedName {
            full: format!("{server}{SEPARATOR}{tool}"),
            server_len: server.0.len(),
        }
    }

    /// The whole name, `server__tool`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.full
    }

    /// The part after the server.
    #[must_use]
    pub fn tool_part(&self) -> &str {
        self.full
            .get(self.server_len + SEPARATOR.len()..)
            .unwrap_or("")
    }
}

impl fmt::Display for BridgedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full)
    }
}

/// Whether a name of a server's own looks as if we had shortened it. Such a name gets
/// a digest too, or a server could take the name of another of its tools.
fn ends_like_digest(tool: &str) -> bool {
    let Some((_, tail)) = tool.rsplit_once('_') else {
        return false;
    };
    tail.len() == DIGEST_CHARS && tail.bytes().all(|byte| BASE32.contains(&byte))
}

fn short_digest(text: &str) -> String {
    let digest = Sha256::digest(text);
    let bits = digest
        .iter()
        .take(5)
        .fold(0_u64, |bits, byte| (bits << 8) | u64::from(*byte));
    let digit = |index: usize| {
        let five = (bits >> (35 - 5 * index)) & 31;
        let digit = usize::try_from(five).ok().and_then(|five| BASE32.get(five));
        digit.map_or('A', |digit| char::from(*digit))
    };
    (0..DIGEST_CHARS).map(digit).collect()
}

/// The names of one server's tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameTable {
    /// The name of each tool, by its server's name for it.
    pub names: BTreeMap<String, BridgedName>,
    /// The form for scripts, `server.tool`, of each tool that has one.
    pub code_names: BTreeMap<String, String>,
    /// Tools whose names clash, by their servers' names for them. None of them has a
    /// name: a piece of a digest can be made to clash on purpose.
    pub clashes: Vec<String>,
}

impl NameTable {
    /// Names the tools of a server. Their order does not matter.
    #[must_use]
    pub fn new<'a>(server: &ServerName, raw_tools: impl IntoIterator<Item = &'a str>) -> NameTable {
        let mut by_name: BTreeMap<BridgedName, Vec<&str>> = BTreeMap::new();
        for raw_tool in raw_tools {
            let tools = by_name
                .entry(BridgedName::new(server, raw_tool))
                .or_default();
            if !tools.contains(&raw_tool) {
                tools.push(raw_tool);
            }
        }
        let mut table = NameTable::default();
        for (name, tools) in by_name {
            match tools.as_slice() {
                [tool] => {
                    table.names.insert((*tool).to_owned(), name);
                }
                // None of them is offered: which one a caller meant could not be told.
                tools => table
                    .clashes
                    .extend(tools.iter().map(|tool| (*tool).to_owned())),
            }
        }
        table.clashes.sort();
        table.code_names = code_names(server, &table.names);
        table
    }
}

/// A tool whose name is an identifier keeps it; one with hyphens takes the name with
/// underscores if no other tool has a claim to it.
fn code_names(
    server: &ServerName,
    names: &BTreeMap<String, BridgedName>,
) -> BTreeMap<String, String> {
    let mut claims: BTreeMap<String, usize> = BTreeMap::new();
    for name in names.values() {
        *claims
            .entry(name.tool_part().replace('-', "_"))
            .or_default() += 1;
    }
    let space = server.code_name();
    let mut code_names = BTreeMap::new();
    for (tool, name) in names {
        let part = name.tool_part();
        let method = part.replace('-', "_");
        let is_own = part == method || claims.get(&method) == Some(&1);
        let is_identifier = !method.starts_with(|c: char| c.is_ascii_digit());
        if is_own && is_identifier {
            code_names.insert(tool.clone(), format!("{space}.{method}"));
        }
    }
    code_names
}

#[cfg(test)]
mod tests;
