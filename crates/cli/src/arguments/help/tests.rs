//! The tables are complete, every example parses, every page is there.

use std::collections::BTreeSet;
use std::process::Command as Process;

use clap::Parser as _;
use engine::catalog::Catalog;

use super::*;
use crate::arguments::manual;

/// Columns of the narrowest terminal help is made for.
const COLUMNS: usize = 80;

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
}

/// Every command and every command of a group, by its words.
fn paths(command: &Command, above: &str) -> Vec<String> {
    let each = visible(command).flat_map(|below| {
        let path = format!("{above} {}", below.get_name());
        let path = path.trim_start().to_owned();
        let mut all = paths(below, &path);
        all.push(path);
        all
    });
    each.collect()
}

#[test]
fn every_command_stands_below_one_heading() {
    let command = CommandLine::command();
    let mut known: Vec<_> = visible(&command).map(Command::get_name).collect();
    let mut listed: Vec<_> = TASKS.iter().flat_map(|task| task.commands).collect();
    known.sort_unstable();
    listed.sort_unstable();
    assert!(
        known.iter().eq(listed.iter().copied()),
        "{known:?} {listed:?}"
    );
}

#[test]
fn every_command_has_examples_and_no_other_has() {
    let known: BTreeSet<_> = paths(&CommandLine::command(), "").into_iter().collect();
    for path in &known {
        assert!((1..=3).contains(&example::of(path).len()), "{path}");
    }
    for (path, _) in example::EXAMPLES {
        assert!(path.is_empty() || known.contains(*path), "{path}");
    }
}

/// The words a shell makes of a line.
fn words_of(line: &str) -> Vec<String> {
    let script =
        format!("ringfence() {{ printf '%s\\0' ringfence \"$@\" >&2; }}; man() {{ :; }}; {line}");
    let scratch = std::env::temp_dir();
    let output = Process::new("sh")
        .args([
            "-c",
            &script
                .replace(" >> ", " > ")
                .replace(" > ", " >/dev/null #"),
        ])
        .current_dir(scratch)
        .env_clear()
        .output()
        .expect("a shell");
    let text = String::from_utf8(output.stderr).expect("text");
    let words = text.split_terminator('\0').map(str::to_owned);
    words.collect()
}

#[test]
fn every_example_is_a_command_line_of_the_command_it_stands_under() {
    for (path, examples) in example::EXAMPLES {
        for (line, _) in *examples {
            let words = words_of(line);
            let begin: Vec<_> = std::iter::once("ringfence")
                .chain(path.split_whitespace())
                .collect();
            assert!(
                words.iter().map(String::as_str).take(begin.len()).eq(begin),
                "{line}: {words:?}"
            );
            match CommandLine::try_parse_from(&words) {
                Ok(_) => {}
                Err(error) => assert!(!error.use_stderr(), "{line}: {error}"),
            }
        }
    }
}

#[test]
fn help_may_be_asked_for_as_a_command() {
    let read = |line: &str| {
        let words = line.split(' ').map(OsString::from).collect();
        let words = as_option(&command(), words).into_iter();
        let words: Vec<_> = words
            .map(|word| word.into_string().expect("text"))
            .collect();
        words.join(" ")
    };
    for (line, expected) in [
        ("ringfence help", "ringfence --help"),
        ("ringfence help run", "ringfence run --help"),
        ("ringfence help audit list", "ringfence audit list --help"),
        ("ringfence audit help", "ringfence audit --help"),
        ("ringfence audit help list", "ringfence audit list --help"),
        // Names of tools and values of options.
        ("ringfence run help", "ringfence run help"),
        ("ringfence show help", "ringfence show help"),
        (
            "ringfence audit list --tool help",
            "ringfence audit list --tool help",
        ),
        ("ringfence --version help", "ringfence --version help"),
        ("ringfence", "ringfence"),
    ] {
        assert_eq!(read(line), expected);
    }
    let words = as_option(
        &command(),
        vec!["ringfence".into(), "help".into(), "keys".into()],
    );
    let error = command().try_get_matches_from(words).expect_err("help");
    assert!(!error.use_stderr(), "{error}");
}

/// Tools that a reader of the examples is taken to have written.
const OWN_TOOLS: &[&str] = &["countVowels", "myTool"];

/// Every name of a tool in an example is that of a bundled one, so that the line can be
/// tried as it is.
#[test]
fn the_tools_of_the_examples_are_there() {
    let catalog = Catalog::bundled().expect("the bundled tools");
    let bundled = catalog.names();
    let is_name = |word: &&str| {
        let mut letters = word.chars();
        letters
            .next()
            .is_some_and(|first| first.is_ascii_lowercase())
            && letters.clone().any(|letter| letter.is_ascii_uppercase())
            && letters.all(|letter| letter.is_ascii_alphanumeric())
    };
    let mut seen = 0;
    for (_, examples) in example::EXAMPLES {
        for (line, _) in *examples {
            for name in line.split(' ').filter(is_name) {
                let is_there = OWN_TOOLS.contains(&name) || bundled.contains(name);
                assert!(is_there, "{line}: there is no tool `{name}`");
                seen += 1;
            }
        }
    }
    assert!(seen >= 10, "only {seen} names");
}

#[test]
fn help_is_grouped_ends_with_examples_and_fits() {
    let text = |path: &str| {
        let words = std::iter::once("ringfence").chain(path.split_whitespace());
        let words = words.chain(std::iter::once("--help"));
        let error = command().try_get_matches_from(words).expect_err("help");
        error.render().to_string()
    };
    let mut all = paths(&CommandLine::command(), "");
    all.push(String::new());
    for path in all {
        let text = text(&path);
        let examples = text.split_once("\nExamples:\n").expect(&text).1;
        assert!(
            examples
                .trim_end()
                .lines()
                .all(|line| line.starts_with("  ringfence ")),
            "{text}"
        );
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(COLUMNS), "{text}");
    }
    let text = text("");
    for task in TASKS {
        assert!(text.contains(&format!("\n{}:\n", task.heading)), "{text}");
    }
}

#[test]
fn every_command_has_a_page_with_every_section() {
    let pages = manual::pages().expect("pages");
    let mut known: Vec<_> = paths(&CommandLine::command(), "")
        .iter()
        .map(|path| format!("ringfence-{}.1", path.replace(' ', "-")))
        .collect();
    known.push("ringfence.1".to_owned());
    known.sort_unstable();
    let mut names: Vec<_> = pages.iter().map(|(name, _)| name.clone()).collect();
    names.sort_unstable();
    assert_eq!(names, known);
    for (name, text) in &pages {
        for section in [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "EXAMPLES",
            "ENVIRONMENT",
            "FILES",
            "\"EXIT STATUS\"",
        ] {
            assert_eq!(
                text.matches(&format!("\n.SH {section}\n")).count(),
                1,
                "{name} {section}\n{text}"
            );
        }
    }
}
