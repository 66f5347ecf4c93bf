//! `ringfence complete`: completions of the word before the cursor, one per line. A shell
//! runs it at a key press, so it starts nothing, writes nothing, prints no errors, and
//! is fast.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use engine::catalog::Catalog;
use engine::registry::read_config;
use model::govern::key::NAMES_RESERVED;
use serde::Deserialize;

use crate::arguments::CompleteArguments;
use crate::arguments::complete::{self, CompletedName};
use crate::output::exit::Exit;
use crate::output::printer::Printer;
use crate::{settings, source};

/// How long a key press may take.
const WAIT_MAX: Duration = Duration::from_millis(400);
/// Offers of one answer.
const OFFERS_MAX: usize = 1_000;
/// Tool files that are looked at.
const FILES_MAX: usize = 2_000;
/// A longer name is not offered.
const NAME_CHARS_MAX: usize = 100;

pub(crate) fn run(arguments: &CompleteArguments, printer: &mut Printer) -> Exit {
    let sought = complete::sought(&arguments.words);
    let mut offers = sought.offers;
    if let Some(kind) = sought.names
        && let Some(home) = settings::home(sought.home.as_deref())
    {
        let names = names_in_time(kind, &home);
        let fitting = names
            .into_iter()
            .filter(|name| name.starts_with(&sought.begin));
        offers.extend(fitting.map(|name| (name, String::new())));
    }
    for (word, about) in offers.iter().take(OFFERS_MAX) {
        let line = format!("{}{word}\t{about}", sought.before);
        printer.lines(line.trim_end());
    }
    Exit::Done
}

/// The names of a home, or none if it takes too long: a folder may be on a slow disk.
fn names_in_time(kind: CompletedName, home: &Path) -> BTreeSet<String> {
    let until = Instant::now() + WAIT_MAX;
    let (sender, receiver) = mpsc::channel();
    let home = home.to_owned();
    thread::spawn(move || {
        let names = match kind {
            CompletedName::Tool => tools(&home, until),
            CompletedName::Caller => callers(&home),
            CompletedName::Rule => rules(&home),
            CompletedName::Server => servers(&home),
        };
        let _ = sender.send(names);
    });
    // If the disk is too slow, the thread is left behind and ends with the process.
    let mut names = receiver.recv_timeout(WAIT_MAX).unwrap_or_default();
    names.retain(|name| is_plain(name));
    names
}

/// Attack: a shell puts an offer into the line as it is, and a name may hold `$(…)`, a
/// space or an escape sequence. Such a name is not offered.
fn is_plain(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "_-.@".contains(letter);
    name.len() <= NAME_CHARS_MAX && !name.starts_with('-') && name.chars().all(fits)
}

/// Bundled tools, and the files of the home as far as there is time.
fn tools(home: &Path, until: Instant) -> BTreeSet<String> {
    let bundled = Catalog::bundled();
    let names = bundled.iter().flat_map(Catalog::names);
    let mut names: BTreeSet<_> = names.map(str::to_owned).collect();
    let files = fs::read_dir(home.join("tools")).into_iter().flatten();
    for entry in files.flatten().take(FILES_MAX) {
        if Instant::now() >= until {
            break;
        }
        let path = entry.path();
        let is_document = entry.file_type().is_ok_and(|kind| kind.is_file())
            && path.extension().is_some_and(|end| end == "json");
        if is_document {
            names.extend(name_in(&path));
        }
    }
    names
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

fn name_in(path: &Path) -> Option<String> {
    let text = source::small_text(path).ok()?;
    let named: Named = serde_json::from_str(&text).ok()?;
    Some(named.name)
}

fn callers(home: &Path) -> BTreeSet<String> {
    let mut names: BTreeSet<_> = NAMES_RESERVED.map(str::to_owned).into();
    if let Ok((config, _)) = read_config(home) {
        names.extend(config.access.callers.into_keys());
        names.extend(config.access.terms.into_keys());
        names.extend(config.approvals.answers.into_keys());
    }
    names.extend(store::names::callers(home, OFFERS_MAX).unwrap_or_default());
    names
}

fn rules(home: &Path) -> BTreeSet<String> {
    let config = read_config(home).map(|(config, _)| config);
    let rules = config.map(|config| config.rules.list).unwrap_or_default();
    rules.into_iter().map(|rule| rule.id).collect()
}

fn servers(home: &Path) -> BTreeSet<String> {
    let config = read_config(home).map(|(config, _)| config);
    let servers = config.map(|config| config.servers).unwrap_or_default();
    servers.into_iter().map(|server| server.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_shell_would_read_otherwise_is_not_offered() {
        for name in [
            "$(id)", "a b", "a;b", "`id`", "a\u{1b}b", "-rf", "a:b", "a'b", "é",
        ] {
            assert!(!is_plain(name), "{name}");
        }
        for name in ["countWords", "claude-code", "ada@example.com", "v1.2_x"] {
            assert!(is_plain(name), "{name}");
        }
    }
}
