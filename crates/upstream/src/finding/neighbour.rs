//! Other tools: those of other servers and our own, whose names and words a definition
//! must not use.

use std::collections::{BTreeMap, BTreeSet};

use super::{FindingCode, Findings};
use crate::definition::Definition;
use crate::name::{BridgedName, ServerName, skeleton};

/// Shorter descriptions are equal by chance.
const CLONE_CHARS_MIN: usize = 40;
/// Shorter names are words of the language.
const NAME_CHARS_MIN: usize = 5;

/// A tool of another server.
#[derive(Clone, Copy, Debug)]
pub struct KnownTool<'a> {
    /// Its server.
    pub server: &'a ServerName,
    /// The name its server gives it.
    pub name: &'a str,
    /// What it does.
    pub description: Option<&'a str>,
}

/// The names and texts that a definition is compared with. Made once for each server.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    /// Names of the server's own tools.
    siblings: BTreeSet<String>,
    /// The names of other servers' tools, in every form, and their servers.
    foreign: BTreeMap<String, String>,
    /// The names of our own tools.
    own: BTreeSet<String>,
    /// Descriptions of other servers' tools, and whose they are.
    descriptions: BTreeMap<String, String>,
    /// The skeletons of other servers' and our own tools' names, with the names.
    looks: BTreeMap<String, String>,
}

impl Neighbours {
    /// The neighbours of a server: its own tools by name, the tools of the other
    /// servers, the names of the other servers, and the names of our own tools.
    #[must_use]
    pub fn new<'a>(
        siblings: impl IntoIterator<Item = &'a str>,
        others: impl IntoIterator<Item = KnownTool<'a>>,
        servers: impl IntoIterator<Item = &'a ServerName>,
        own: impl IntoIterator<Item = &'a str>,
    ) -> Neighbours {
        let mut neighbours = Neighbours {
            siblings: siblings.into_iter().map(str::to_owned).collect(),
            ..Neighbours::default()
        };
        for tool in others {
            neighbours.add(tool);
        }
        for server in servers {
            neighbours
                .looks
                .insert(skeleton(server.as_str()), server.to_string());
        }
        for name in own {
            neighbours.looks.insert(skeleton(name), name.to_owned());
            // A name such as `read` is a word of the language and would
            // be found everywhere.
            if is_telling(name) {
                neighbours.own.insert(name.to_owned());
            }
        }
        neighbours
    }

    fn add(&mut self, tool: KnownTool<'_>) {
        let (server, name) = (tool.server, tool.name);
        let owner = format!("`{server}`");
        let bridged = BridgedName::new(server, name);
        let code = server.code_name();
        let forms = [
            bridged.as_str().to_owned(),
            format!("{server}.{name}"),
            format!("{code}.{name}"),
            format!("{server}:{name}"),
            format!("{server}/{name}"),
        ];
        for form in forms {
            self.foreign.insert(form, owner.clone());
        }
        // A server may speak of its own tool, even if another server has one of that name.
        if is_telling(name) && !self.siblings.contains(name) {
            self.foreign.insert(name.to_owned(), owner.clone());
        }
        if let Some(description) = tool.description {
            self.descriptions.insert(plain(description), owner);
        }
    }

    /// The server or own tool that a name of a server can be taken for.
    #[must_use]
    pub fn look_alike(&self, name: &str) -> Option<&str> {
        let known = self.looks.get(&skeleton(name))?;
        // The very same name is a duplicate, which is refused elsewhere.
        (known != name).then_some(known.as_str())
    }
}

/// Whether a name cannot be an ordinary word of a sentence: `read_file`, `readFile`,
/// `get-library-docs`.
fn is_telling(name: &str) -> bool {
    let mut pairs = name.chars().zip(name.chars().skip(1));
    let is_camel = pairs.any(|(a, b)| a.is_ascii_lowercase() && b.is_ascii_uppercase());
    let hyphens = name.matches('-').count();
    name.chars().count() >= NAME_CHARS_MIN
        && (name.contains('_') || name.contains('.') || is_camel || hyphens >= 2)
}

/// Small letters, one space between words.
fn plain(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}

/// Names of other tools in a text.
pub(super) fn check_text(
    findings: &mut Findings,
    neighbours: &Neighbours,
    field: &str,
    text: &str,
) {
    for (start, word) in name_words(text) {
        let span = start..start + word.len();
        if let Some(owner) = neighbours.foreign.get(word) {
            let message = format!("the text names a tool of the server {owner}");
            findings.add(FindingCode::ForeignTool, field, text, span, message);
        } else if neighbours.own.contains(word) && !neighbours.siblings.contains(word) {
            let message = "the text names a tool of Ringfence's own";
            findings.add(FindingCode::OwnTool, field, text, span, message);
        }
    }
}

/// Words that could be names, with their places.
fn name_words(text: &str) -> Vec<(usize, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    let mut words = Vec::new();
    let mut start = 0;
    let ends = text
        .char_indices()
        .filter(|(_, c)| !is_part(*c))
        .map(|(at, c)| (at, c.len_utf8()));
    for (end, width) in ends.chain([(text.len(), 0)]) {
        let raw = text.get(start..end).unwrap_or("");
        let head = raw.trim_start_matches(['.', ':', '/', '-']);
        let word = head.trim_end_matches(['.', ':', '/', '-']);
        if word.len() >= NAME_CHARS_MIN {
            words.push((start + raw.len() - head.len(), word));
        }
        start = end + width;
    }
    words
}

/// Whether the words of the definition are those of another server's tool.
pub(super) fn check_clone(
    findings: &mut Findings,
    neighbours: &Neighbours,
    definition: &Definition,
) {
    let Some(description) = definition.description() else {
        return;
    };
    let is_long = description.chars().count() >= CLONE_CHARS_MIN;
    if let Some(owner) = neighbours
        .descriptions
        .get(&plain(description))
        .filter(|_| is_long)
    {
        let message = format!("the description is copied from a tool of the server {owner}");
        findings.add(
            FindingCode::Clone,
            "description",
            description,
            0..0,
            message,
        );
    }
}
