//! The settings of git as text: one entry after the other, and which of them name what git
//! runs. Sections are told apart only where a name alone says too little: too much protected
//! is better than too little.

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// In lower case, without the part in quotes.
    pub(super) section: String,
    /// In lower case.
    pub(super) name: String,
    pub(super) value: String,
}

/// What a setting names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing that runs.
    Ordinary,
    /// The folder of hooks.
    HooksFolder,
    /// A command.
    Command,
    /// A file or a folder that git runs or obeys.
    Path,
    /// Another file of settings.
    Settings,
}

/// Names of settings whose values git, or a program it starts, executes.
const COMMANDS: [&str; 19] = [
    "askpass",
    "clean",
    "difffilter",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "gitproxy",
    "pager",
    "postimage",
    "process",
    "receivepack",
    "smtpserver",
    "smudge",
    "textconv",
    "tunnel",
    "update",
    "uploadpack",
    "virtualfilesystem",
];

/// How the address of a repository begins that a command of its own reaches.
pub(super) const EXTERNAL: &str = "ext::";

/// How names of settings end that name a command, those of other versions of git and of
/// programs beside it too: `core.alternateRefsCommand`, `sendemail.toCmd`, `svn.authorsProg`.
const COMMAND_ENDINGS: [&str; 6] = ["cmd", "command", "helper", "hook", "prog", "program"];

impl Setting {
    pub(super) fn kind(&self) -> Kind {
        match (self.section.as_str(), self.name.as_str()) {
            (_, "hookspath") => Kind::HooksFolder,
            ("include" | "includeif", "path") => Kind::Settings,
            (_, "attributesfile" | "allowedsignersfile" | "sslcert" | "sslkey") => Kind::Path,
            ("mergetool" | "difftool", "path") => Kind::Path,
            // Hooks in it come into every new repository.
            (_, "templatedir") => Kind::Path,
            ("pager" | "alias" | "man" | "browser" | "guitool" | "instaweb", _) => Kind::Command,
            ("lfs", "path" | "args") => Kind::Command,
            // The one kind of address that is a command.
            (_, "url" | "pushurl") if self.value.starts_with(EXTERNAL) => Kind::Command,
            (_, name) if names_command(name) => Kind::Command,
            (_, _) => Kind::Ordinary,
        }
    }
}

fn names_command(name: &str) -> bool {
    let mut endings = COMMAND_ENDINGS.iter();
    COMMANDS.contains(&name) || endings.any(|ending| name.ends_with(ending))
}

/// Every setting of a text. What is not one is passed over, as far as its line.
pub(super) fn read(text: &str) -> Vec<Setting> {
    let mut section = String::new();
    let mut found = Vec::new();
    // Git ignores a byte order mark; taken as a name it would hide the first setting.
    let mut rest = text.trim_start_matches('\u{feff}');
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return found;
        };
        match first {
            '[' => {
                let (head, after) = section_head(rest);
                section = head;
                rest = after;
            }
            '#' | ';' => rest = after_line(rest),
            _ => {
                let end = rest.find(['=', '\n', '#', ';']).unwrap_or(rest.len());
                let (name, after) = rest.split_at(end);
                let (value, after) = match after.strip_prefix('=') {
                    Some(after) => value(after),
                    None => (String::new(), after_line(after)),
                };
                found.push(Setting {
                    section: section.clone(),
                    name: name.trim().to_ascii_lowercase(),
                    value,
                });
                rest = after;
            }
        }
    }
}

/// `[section "sub"]`, and what follows it on the line.
fn section_head(text: &str) -> (String, &str) {
    let mut in_quotes = false;
    let mut is_escaped = false;
    for (at, sign) in text.char_indices().skip(1) {
        match sign {
            // A section that is not closed ends with its line, as in git.
            '\n' => return (String::new(), text.get(at..).unwrap_or_default()),
            _ if is_escaped => is_escaped = false,
            '\\' if in_quotes => is_escaped = true,
            '"' => in_quotes = !in_quotes,
            ']' if !in_quotes => {
                let inner = text.get(1..at).unwrap_or_default();
                let name = inner.split(['.', '"', ' ', '\t']).next();
                let name = name.unwrap_or_default().to_ascii_lowercase();
                return (name, text.get(at + 1..).unwrap_or_default());
            }
            _ => {}
        }
    }
    (String::new(), "")
}

/// A value to the end of its line, which a backslash continues; quotes and comments as git
/// takes them.
fn value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut in_quotes = false;
    let mut signs = text.char_indices();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '\n' => return (trimmed(&value), text.get(at..).unwrap_or_default()),
            '\r' if text
                .get(at + 1..)
                .is_some_and(|rest| rest.starts_with('\n')) => {}
            '#' | ';' if !in_quotes => {
                let after = after_line(text.get(at..).unwrap_or_default());
                return (trimmed(&value), after);
            }
            '"' => in_quotes = !in_quotes,
            '\\' => match signs.next() {
                Some((_, '\n')) | None => {}
                Some((_, '\r')) => {
                    let _ = signs.next();
                }
                Some((_, 't')) => value.push('\t'),
                Some((_, 'n')) => value.push('\n'),
                Some((_, 'b')) => {}
                Some((_, other)) => value.push(other),
            },
            other => value.push(other),
        }
    }
    (trimmed(&value), "")
}

fn trimmed(value: &str) -> String {
    value.trim().to_owned()
}

fn after_line(text: &str) -> &str {
    text.find('\n')
        .and_then(|end| text.get(end..))
        .unwrap_or_default()
}
