//! Help for people: the commands grouped by task, and examples at the end of every
//! page. Both come from tables that a test holds complete.

use std::ffi::OsString;

use clap::{Command, CommandFactory as _};

use super::CommandLine;
use super::example;

/// A heading of `ringfence --help`, and the commands below it.
pub(crate) struct Task {
    pub(crate) heading: &'static str,
    pub(crate) commands: &'static [&'static str],
}

/// Every command is here once, in the order in which help shows them. A new one goes
/// here and into [`example::EXAMPLES`].
pub(crate) const TASKS: &[Task] = &[
    Task {
        heading: "Author tools",
        commands: &[
            "new",
            "check",
            "test",
            "import",
            "export",
            "publish",
            "unpublish",
            "delete",
        ],
    },
    Task {
        heading: "Run tools",
        commands: &["demo", "run", "script"],
    },
    Task {
        heading: "Serve clients",
        commands: &["init", "connect", "expose", "serve", "stdio", "studio"],
    },
    Task {
        heading: "Bridge MCP servers",
        commands: &["scan", "wrap", "unwrap", "servers"],
    },
    Task {
        heading: "Govern calls",
        commands: &[
            "approvals",
            "policy",
            "explain",
            "secrets",
            "keys",
            "callers",
            "trust",
        ],
    },
    Task {
        heading: "Inspect",
        commands: &[
            "list",
            "show",
            "audit",
            "top",
            "config",
            "doctor",
            "store",
            "completions",
            "man",
        ],
    },
];

/// The parser, with grouped help and examples.
pub(crate) fn command() -> Command {
    let command = with_examples(CommandLine::command(), "");
    let template = template(&command);
    command.help_template(template)
}

/// `help COMMAND` as `COMMAND --help`, which is what other programs taught people to type. A
/// subcommand of clap's would double every command in the completions and the manual.
pub(crate) fn as_option(command: &Command, mut words: Vec<OsString>) -> Vec<OsString> {
    let mut group = command;
    for index in 1..words.len() {
        let Some(word) = words.get(index).and_then(|word| word.to_str()) else {
            break;
        };
        // Where no command can stand, `help` is the name of a tool or a file.
        if word == "help" && group.has_subcommands() {
            words.remove(index);
            words.push("--help".into());
            break;
        }
        let Some(below) = group.find_subcommand(word) else {
            break;
        };
        group = below;
    }
    words
}

/// What clap prints by itself, with our headings in the place of one list.
fn template(command: &Command) -> String {
    let groups = TASKS.iter().map(|task| {
        let lines = task.commands.iter().map(|name| {
            let found = command.find_subcommand(name);
            let about = found.and_then(Command::get_about);
            let about = about.map_or_else(String::new, ToString::to_string);
            format!("  {name:<12} {about}\n")
        });
        format!("{}:\n{}\n", task.heading, lines.collect::<String>())
    });
    let groups: String = groups.collect();
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    )
}

/// Adds examples to the help of a command and of every command below it.
fn with_examples(command: Command, path: &str) -> Command {
    let command = command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        with_examples(below, path.trim_start())
    });
    if command.is_hide_set() {
        return command;
    }
    let examples = example::block(path);
    let text = match command.get_after_help() {
        Some(before) => format!("{before}\n\n{examples}"),
        None => examples,
    };
    command.after_help(text)
}

#[cfg(test)]
mod tests;
