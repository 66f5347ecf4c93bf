//! The manual: one page for the program and one for every command, in the format of
//! `man`.

use std::io;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::CommandLine;
use super::example;
use super::help::TASKS;
use crate::settings;

/// What every command says by its exit code.
const EXITS: &[(&str, &str)] = &[
    ("0", "Done; the answer is yes."),
    (
        "1",
        "Done; the answer is no: denied, findings, a failed test.",
    ),
    ("2", "Could not be done: usage, settings, files."),
    ("130", "Interrupted with Ctrl-C."),
];

/// The page of a command, by its words; the program's own page without any. Nothing if
/// there is no such command.
pub(crate) fn page(words: &[String]) -> io::Result<Option<String>> {
    let command = built();
    let below = words.iter().try_fold(&command, |command, word| {
        command
            .find_subcommand(word)
            .filter(|below| !below.is_hide_set())
    });
    below
        .map(|command| text(command, &words.join(" ")))
        .transpose()
}

/// Every page and the name of its file.
pub(crate) fn pages() -> io::Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    collect(&built(), "", &mut pages)?;
    Ok(pages)
}

fn collect(command: &Command, path: &str, pages: &mut Vec<(String, String)>) -> io::Result<()> {
    pages.push((format!("{}.1", name(path)), text(command, path)?));
    for below in visible(command) {
        let path = format!("{path} {}", below.get_name());
        collect(below, path.trim_start(), pages)?;
    }
    Ok(())
}

/// The commands as they are declared: help texts get their examples elsewhere, and the
/// pages have a section for them.
fn built() -> Command {
    let mut command = CommandLine::command();
    command.build();
    command
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    let below = command.get_subcommands();
    // `build` adds a `help` to every group.
    below.filter(|below| !below.is_hide_set() && below.get_name() != "help")
}

/// `ringfence-audit-list`.
fn name(path: &str) -> String {
    let name = format!("ringfence {path}");
    name.trim_end().replace(' ', "-")
}

fn text(command: &Command, path: &str) -> io::Result<String> {
    let mut text = Vec::new();
    let page = Man::new(command.clone())
        .title(name(path))
        .manual("Ringfence");
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    sections(command, path).to_writer(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The sections that clap knows nothing of.
fn sections(command: &Command, path: &str) -> Roff {
    let mut roff = Roff::new();
    add_commands(&mut roff, command, path);
    let after = command.get_after_help().map(ToString::to_string);
    let after = after.unwrap_or_default();
    let (exits, notes): (Vec<_>, Vec<_>) = after
        .lines()
        .filter(|line| !line.is_empty())
        .partition(|line| line.starts_with("Exit:"));
    if !notes.is_empty() {
        roff.control("SH", ["NOTES"]);
        for note in notes {
            roff.control("PP", []).text([roman(note)]);
        }
    }
    roff.control("SH", ["EXAMPLES"]);
    for (line, words) in example::of(path) {
        if !words.is_empty() {
            roff.control("PP", []).text([roman(words)]);
        }
        roff.control("PP", []).control("nf", []);
        roff.text([bold(line)]).control("fi", []);
    }
    roff.control("SH", ["EXIT STATUS"]);
    for exit in exits {
        roff.text([roman(exit)]);
    }
    add_table(&mut roff, EXITS);
    roff.control("SH", ["ENVIRONMENT"]);
    add_table(&mut roff, settings::VARIABLES);
    roff.control("SH", ["FILES"]);
    roff.text([roman(
        "In the home folder: --home, RINGFENCE_HOME, or ~/.local/share/ringfence.",
    )]);
    add_table(&mut roff, settings::FILES);
    if !path.is_empty() {
        let above = path.rsplit_once(' ').map_or("", |(above, _)| above);
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold(name(above)), roman("(1)")]);
    }
    roff
}

fn add_commands(roff: &mut Roff, command: &Command, path: &str) {
    if visible(command).next().is_none() {
        return;
    }
    roff.control("SH", ["COMMANDS"]);
    let mut add = |command: &Command| {
        let about = command.get_about().map(ToString::to_string);
        let path = format!("{path} {}", command.get_name());
        roff.control("TP", []);
        roff.text([bold(name(path.trim_start())), roman("(1)")]);
        roff.text([roman(about.unwrap_or_default())]);
    };
    if !path.is_empty() {
        visible(command).for_each(add);
        return;
    }
    for task in TASKS {
        let found = task.commands.iter();
        let found = found.filter_map(|name| command.find_subcommand(name));
        found.for_each(&mut add);
    }
}

fn add_table(roff: &mut Roff, rows: &[(&str, &str)]) {
    for (word, words) in rows {
        roff.control("TP", []);
        roff.text([bold(*word)]).text([roman(*words)]);
    }
}
