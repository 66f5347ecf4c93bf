//! Every command takes `--json` and then writes one JSON value to standard output, and
//! nothing else. Commands that go on write one to a line.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::run::scratch;
use crate::{ringfence, root};

/// The commands that have no commands of their own, as the program tells them.
fn leaves(above: &[String]) -> Vec<Vec<String>> {
    let mut arguments: Vec<&str> = above.iter().map(String::as_str).collect();
    arguments.push("--help");
    let shown = ringfence(&arguments).shown();
    // The program's own help has a heading for each task, a group's has one for all.
    let commands = match (above, shown.split_once("\nCommands:\n")) {
        (_, Some((_, commands))) => commands.split("\n\n").next().unwrap(),
        ([], None) => {
            let (_, commands) = shown.split_once("\nUsage:").unwrap();
            commands.split("\nOptions:").next().unwrap()
        }
        (_, None) => {
            assert!(
                shown.contains("--json"),
                "{above:?} takes no --json:\n{shown}"
            );
            return vec![above.to_vec()];
        }
    };
    let names = commands
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next());
    let each = names.flat_map(|name| {
        let mut below = above.to_vec();
        below.push(name.to_owned());
        leaves(&below)
    });
    each.collect()
}

/// What is written to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writes {
    /// One value.
    Value,
    /// Nothing, for it cannot be done here.
    Nothing,
    /// A value to a line, or none if nothing comes.
    Lines,
    /// It is tried elsewhere: it does not end by itself.
    Elsewhere,
}

/// How each command is tried, in this order, in one home.
const TRIED: &[(&str, &str, Writes)] = &[
    ("init", "--yes", Writes::Value),
    ("demo", "", Writes::Value),
    ("check", "hello.json", Writes::Value),
    ("test", "hello.json", Writes::Value),
    ("run", "hello.json --args {\"who\":\"a\"}", Writes::Value),
    ("script check", "script.js", Writes::Value),
    ("script run", "script.js", Writes::Value),
    ("serve", "", Writes::Elsewhere),
    ("studio", "", Writes::Value),
    ("stdio", "", Writes::Lines),
    ("new", "fresh", Writes::Value),
    ("list", "", Writes::Value),
    ("import", "hello.json", Writes::Value),
    ("show", "hello", Writes::Value),
    ("export", "hello", Writes::Value),
    ("publish", "hello", Writes::Value),
    ("secrets list", "hello", Writes::Value),
    ("secrets grant", "hello ABSENT", Writes::Nothing),
    ("secrets revoke", "hello ABSENT", Writes::Value),
    ("unpublish", "hello", Writes::Value),
    ("delete", "hello", Writes::Value),
    ("expose", "", Writes::Value),
    ("approvals list", "", Writes::Value),
    ("approvals show", "00000000", Writes::Nothing),
    ("approvals approve", "00000000", Writes::Nothing),
    ("approvals deny", "00000000", Writes::Nothing),
    ("approvals revoke", "00000000", Writes::Nothing),
    ("approvals watch", "--count 0", Writes::Lines),
    ("audit list", "", Writes::Value),
    ("top", "--once", Writes::Value),
    ("audit show", "00000000", Writes::Nothing),
    ("audit verify", "", Writes::Value),
    ("audit acknowledge", "00000000 --note x", Writes::Nothing),
    ("audit export", "", Writes::Value),
    ("audit tail", "--count 0", Writes::Lines),
    ("audit prune", "--before 9d", Writes::Value),
    ("audit key", "", Writes::Value),
    ("audit checkpoint", "", Writes::Value),
    ("audit prove", "00000000", Writes::Nothing),
    ("audit witness", "--list", Writes::Value),
    (
        "explain",
        "--tool countWords --args {\"text\":\"a\"}",
        Writes::Value,
    ),
    ("policy show", "", Writes::Value),
    ("policy lint", "", Writes::Value),
    ("policy test", "policy.toml", Writes::Value),
    ("keys add", "bob", Writes::Value),
    ("keys list", "", Writes::Value),
    ("keys rotate", "bob", Writes::Value),
    ("keys revoke", "bob", Writes::Value),
    ("store status", "", Writes::Value),
    ("store migrate", "", Writes::Nothing),
    ("store copy", "--to postgres", Writes::Nothing),
    ("callers pause", "bob", Writes::Value),
    ("callers list", "", Writes::Value),
    ("callers show", "bob", Writes::Value),
    ("callers resume", "bob", Writes::Value),
    ("trust feedback", "bob 7", Writes::Value),
    ("trust show", "bob", Writes::Value),
    ("connect", "", Writes::Value),
    ("scan", "clients.json", Writes::Value),
    ("wrap", "clients.json --yes", Writes::Value),
    ("servers list", "", Writes::Value),
    ("servers show", "one", Writes::Value),
    ("servers add", "two http://127.0.0.1:1/mcp", Writes::Value),
    ("servers review", "one", Writes::Nothing),
    ("servers accept", "one --yes", Writes::Nothing),
    ("servers block", "one", Writes::Value),
    ("servers restart", "one", Writes::Value),
    ("servers login", "one", Writes::Nothing),
    ("servers logs", "one", Writes::Value),
    ("servers verify", "--write --lock new.lock", Writes::Value),
    ("servers remove", "one", Writes::Value),
    ("unwrap", "clients.json --yes", Writes::Value),
    ("config", "", Writes::Value),
    ("doctor", "", Writes::Value),
    ("completions", "bash", Writes::Value),
    ("man", "", Writes::Value),
];

#[test]
fn every_command_writes_one_json_value() {
    let folder = scratch("json-everywhere");
    fs::copy(
        root().join("examples/hello.json"),
        folder.join("hello.json"),
    )
    .unwrap();
    fs::write(folder.join("script.js"), "return 1;").unwrap();
    fs::write(folder.join("policy.toml"), "").unwrap();
    let clients = "{\"mcpServers\": {\"one\": {\"command\": \"/absent\"}}}";
    fs::write(folder.join("clients.json"), clients).unwrap();
    let mut known: BTreeMap<_, _> = TRIED.iter().map(|row| (row.0, row.2)).collect();
    for leaf in leaves(&[]) {
        let name = leaf.join(" ");
        assert!(
            known.remove(name.as_str()).is_some(),
            "`{name}` is not tried"
        );
    }
    assert!(known.is_empty(), "there are no such commands: {known:?}");
    for (name, arguments, writes) in TRIED {
        if *writes == Writes::Elsewhere {
            continue;
        }
        let mut line: Vec<_> = name.split(' ').collect();
        line.extend(arguments.split(' ').filter(|word| !word.is_empty()));
        line.push("--json");
        let output = ringfence(&line)
            .within(&folder)
            .variable("RINGFENCE_HOME", "ring")
            .output();
        let written = String::from_utf8(output.stdout).unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        let told = format!("{name}: {written}\n{error}");
        match writes {
            Writes::Value => {
                serde_json::from_str::<Value>(&written).expect(&told);
            }
            Writes::Nothing => {
                assert!(written.is_empty() && !error.is_empty(), "{told}");
                assert_eq!(output.status.code(), Some(2), "{told}");
            }
            Writes::Lines => {
                for line in written.lines() {
                    serde_json::from_str::<Value>(line).expect(&told);
                }
            }
            Writes::Elsewhere => {}
        }
    }
}

/// What records are exported is the same either way.
#[test]
fn an_export_is_lines_or_one_array() {
    let folder = scratch("json-export");
    fs::copy(
        root().join("examples/hello.json"),
        folder.join("hello.json"),
    )
    .unwrap();
    let typed = |arguments: &[&str]| {
        let run = ringfence(arguments).within(&folder);
        let output = run.variable("RINGFENCE_HOME", "ring").output();
        String::from_utf8(output.stdout).unwrap()
    };
    typed(&["run", "hello.json", "--args", "{\"who\":\"a\"}"]);
    let lines = typed(&["audit", "export"]);
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let array: Vec<Value> = serde_json::from_str(&typed(&["audit", "export", "--json"])).unwrap();
    assert!(lines.len() >= 2);
    assert_eq!(array, lines);
    let none = typed(&[
        "audit", "export", "--json", "--tool", "gone", "--kind", "call",
    ]);
    assert_eq!(
        serde_json::from_str::<Value>(&none).unwrap(),
        serde_json::json!([])
    );
}
