//! The risk of a bridged tool, from its server's enclosure, and the actions of a call.
//!
//! We do not see a server's code, so no tool of one is below L3. Its own claims can
//! only raise the risk; walls, versions and findings add the rest, each in words.

use model::govern::action::Action;
use model::policy::risk::{Level, Risk, Signal};
use model::text::{count, elided};

use crate::definition::{ToolAnnotations, ToolDefinition};
use crate::finding::{FindingCode, FindingWeight, UpstreamFinding};

/// The network access of a child process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildNetwork<'a> {
    /// Nothing.
    None,
    /// These hosts.
    Hosts(&'a [String]),
    /// Everything.
    Open,
}

/// The file access of a child process, beside the system's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildFiles {
    /// Its own folder.
    Own,
    /// Declared folders, for reading.
    Read,
    /// Declared folders, for writing.
    Write,
}

/// The enclosure of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enclosure<'a> {
    /// A child process behind our walls.
    Jailed {
        /// Its network access.
        network: ChildNetwork<'a>,
        /// Its file access.
        files: ChildFiles,
    },
    /// A child process without walls.
    Unjailed,
    /// A server on the network that knows who calls.
    Authenticated {
        /// Its host.
        host: &'a str,
    },
    /// A server on the network that serves any caller.
    Anonymous {
        /// Its host.
        host: &'a str,
    },
}

/// Everything that the risk of a tool is derived from.
#[derive(Clone, Copy, Debug)]
pub struct ToolRiskInput<'a> {
    /// The enclosure of its server.
    pub enclosure: Enclosure<'a>,
    /// Whether its server's version is exact; a server on the network has none.
    pub has_exact_version: bool,
    /// The tool.
    pub tool: &'a ToolDefinition,
    /// What was found about it and its server.
    pub findings: &'a [UpstreamFinding],
}

/// Rates a bridged tool: the worst signal, at least L3.
#[must_use]
pub fn rate(input: &ToolRiskInput<'_>) -> Risk {
    let mut signals = vec![signal(
        Level::L3,
        "server: a foreign program does the work, and its code is not visible",
    )];
    signals.extend(enclosure(input.enclosure));
    signals.extend(version(input));
    signals.extend(claims(&input.tool.annotations));
    signals.extend(findings(input.findings));
    signals.sort_by_key(|signal| std::cmp::Reverse(signal.level));
    // Without a signal nothing is known, and the highest level applies.
    let level = signals.first().map_or(Level::L5, |signal| signal.level);
    Risk { level, signals }
}

fn signal(level: Level, words: impl Into<String>) -> Signal {
    Signal {
        level,
        words: words.into(),
    }
}

fn enclosure(enclosure: Enclosure<'_>) -> Vec<Signal> {
    match enclosure {
        Enclosure::Jailed { network, files } => network_signal(network)
            .into_iter()
            .chain(files_signal(files))
            .collect(),
        Enclosure::Unjailed => vec![signal(
            Level::L5,
            "jail: none, the server can do everything its user can",
        )],
        Enclosure::Authenticated { host } => vec![signal(
            Level::L3,
            format!(
                "network: arguments go to `{}`, which knows who calls",
                elided(host, 80)
            ),
        )],
        Enclosure::Anonymous { host } => vec![signal(
            Level::L4,
            format!(
                "network: arguments go to `{}`, without authentication",
                elided(host, 80)
            ),
        )],
    }
}

fn network_signal(network: ChildNetwork<'_>) -> Option<Signal> {
    match network {
        ChildNetwork::None | ChildNetwork::Hosts([]) => None,
        ChildNetwork::Hosts(hosts) if hosts.iter().any(|host| host == "*") => Some(signal(
            Level::L4,
            "network: the host list holds `*`, so any public host",
        )),
        ChildNetwork::Hosts(hosts) => Some(signal(
            Level::L3,
            format!(
                "network: {} listed ({})",
                count(hosts.len(), "host"),
                elided(&hosts.join(", "), 120)
            ),
        )),
        ChildNetwork::Open => Some(signal(Level::L4, "network: the server can reach any host")),
    }
}

fn files_signal(files: ChildFiles) -> Option<Signal> {
    match files {
        ChildFiles::Own => None,
        ChildFiles::Read => Some(signal(Level::L3, "files: reads in declared folders")),
        ChildFiles::Write => Some(signal(Level::L4, "files: writes in declared folders")),
    }
}

fn version(input: &ToolRiskInput<'_>) -> Option<Signal> {
    let is_child = match input.enclosure {
        Enclosure::Jailed { .. } | Enclosure::Unjailed => true,
        Enclosure::Authenticated { .. } | Enclosure::Anonymous { .. } => false,
    };
    let words = "version: not exact, so what runs can change by itself";
    (is_child && !input.has_exact_version).then(|| signal(Level::L4, words))
}

/// Only claims towards danger, and only those made: without a claim MCP assumes the
/// worst, which would put every tool at the top.
fn claims(annotations: &ToolAnnotations) -> Option<Signal> {
    let words = "destructive: its server says that it destroys";
    (annotations.destructive == Some(true)).then(|| signal(Level::L5, words))
}

fn findings(findings: &[UpstreamFinding]) -> Vec<Signal> {
    let mut signals = Vec::new();
    for finding in findings {
        let is_alone = match finding.code {
            FindingCode::Override
            | FindingCode::Secrecy
            | FindingCode::EncodedText
            | FindingCode::HeaderArgument
            | FindingCode::Shell
            | FindingCode::HostMount
            | FindingCode::PlainHttp => Some(Level::L4),
            FindingCode::Privileged => Some(Level::L5),
            code if code.weight() == FindingWeight::Hold => Some(Level::L4),
            _ => None,
        };
        let words = || {
            format!(
                "finding: {} in `{}`",
                finding.message,
                elided(&finding.field, 80)
            )
        };
        signals.extend(is_alone.map(|level| signal(level, words())));
    }
    let weak = [
        FindingCode::Directive,
        FindingCode::Precedence,
        FindingCode::Credentials,
        FindingCode::Transfer,
    ];
    let families = weak
        .iter()
        .filter(|code| findings.iter().any(|found| found.code == **code));
    // One such phrase is in many harmless texts; several families together are not.
    if families.count() >= 2 {
        signals.push(signal(
            Level::L4,
            "finding: the text instructs the model beyond its tool",
        ));
    }
    signals
}

/// Verbs in names of tools, and the action of such a tool. They only add: a harmless
/// name removes no action.
const VERBS: &[(&[&str], &str)] = &[
    (
        &[
            "delete", "remove", "destroy", "purge", "wipe", "erase", "unlink", "rm", "clear",
        ],
        "code:delete",
    ),
    (
        &["drop", "truncate", "insert", "upsert", "mutate", "migrate"],
        "db:mutate",
    ),
    (&["query", "sql"], "db:query"),
    (
        &[
            "write", "create", "update", "edit", "put", "patch", "save", "rename", "move", "set",
            "append", "modify", "replace", "add", "apply", "install", "exec", "execute", "run",
            "eval", "shell", "bash", "command", "upload", "copy", "merge",
        ],
        "code:write",
    ),
    (
        &[
            "send", "email", "mail", "message", "notify", "publish", "tweet", "post", "reply",
            "comment", "invite", "share",
        ],
        "comms:external",
    ),
    (&["commit"], "vcs:commit"),
    (&["push"], "vcs:push"),
    (
        &["deploy", "release", "rollout", "rollback"],
        "deploy:production",
    ),
    (
        &[
            "pay", "charge", "refund", "purchase", "buy", "transfer", "invoice", "order",
        ],
        "budget:spend",
    ),
    (&["navigate", "browse", "goto"], "browser:navigate"),
    (&["click"], "desktop:click"),
];

/// The actions of a bridged tool: from its server's access, its name and its claims.
/// Sorted, never empty.
#[must_use]
pub fn actions(enclosure: Enclosure<'_>, tool: &ToolDefinition) -> Vec<Action> {
    let mut words = vec!["code:read"];
    match enclosure {
        Enclosure::Jailed { network, files } => {
            if !matches!(network, ChildNetwork::None | ChildNetwork::Hosts([])) {
                words.push("external_data:request");
            }
            if files == ChildFiles::Write {
                words.push("code:write");
            }
        }
        Enclosure::Unjailed => words.extend(["code:write", "external_data:request"]),
        Enclosure::Authenticated { .. } | Enclosure::Anonymous { .. } => {
            words.push("external_data:request");
        }
    }
    if tool.annotations.destructive == Some(true) {
        words.extend(["code:delete", "db:mutate"]);
    }
    let parts = name_parts(&tool.name);
    for (verbs, word) in VERBS {
        if parts.iter().any(|part| verbs.contains(&part.as_str())) {
            words.push(word);
        }
    }
    let mut actions: Vec<Action> = words.into_iter().filter_map(Action::built_in).collect();
    actions.sort();
    actions.dedup();
    actions
}

/// The derived actions and those the owner sets. The owner can only add.
#[must_use]
pub fn with_owner(derived: Vec<Action>, set: impl IntoIterator<Item = Action>) -> Vec<Action> {
    let mut actions = derived;
    actions.extend(set);
    actions.sort();
    actions.dedup();
    actions
}

/// The words of a name: `deleteFile`, `delete_file` and `delete-file` are two words.
fn name_parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_small = false;
    for character in name.chars() {
        let is_break = !character.is_alphanumeric() || (was_small && character.is_uppercase());
        if is_break {
            parts.push(String::new());
        }
        was_small = character.is_lowercase() || character.is_ascii_digit();
        if let Some(part) = parts.last_mut().filter(|_| character.is_alphanumeric()) {
            part.extend(character.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests;
