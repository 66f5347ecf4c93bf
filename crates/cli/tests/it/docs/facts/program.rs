//! Tables that are held against the program itself: its help, its verdicts, its home,
//! a running server.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::super::live::{Server, doors as doors_of};
use super::super::source;
use super::super::table::{Table, code_words};
use crate::run::scratch;
use crate::{ringfence, root};

fn shown(arguments: &[&str], input: &str) -> String {
    let home = scratch("docs-facts").display().to_string();
    let run = ringfence(arguments).variable("RINGFENCE_HOME", &home);
    run.input(input.as_bytes()).shown()
}

/// The numbers of the first column are those of the code, and what keeps them true exists.
pub(crate) fn numbers(table: &Table) -> Result<(), String> {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    let filter = read("crates/sandbox/src/walls/seccomp.rs");
    let calls = regex::Regex::new(r"libc::SYS_(\w+)").unwrap();
    let calls = calls.captures_iter(&filter).map(|call| call[1].to_owned());
    // The one that installs the filter is made before it holds.
    let calls: BTreeSet<_> = calls.filter(|call| call != "seccomp").collect();
    let crash = read("crates/engine/tests/it/crash.rs");
    let steps = source::quoted(source::between(&crash, "const STEPS: ", "];"));
    let audit = read("docs/guide/audit.md");
    let program = source::between(&audit, "```python\n", "```");
    let expected = [calls.len(), steps.len(), program.lines().count()];
    let expected = expected.map(|number| format!("**{number}**"));
    let found: Vec<_> = table.rows.iter().map(|row| Table::cell(row, 0)).collect();
    if found != expected {
        return Err(format!(
            "the numbers are {found:?}, in the code {expected:?}"
        ));
    }
    let gone = table.words(2);
    let gone = gone.into_iter().find(|name| !root().join(name).exists());
    gone.map_or(Ok(()), |name| Err(format!("there is no `{name}`")))
}

/// Every command of the first column exists and has the flags its row names; with a
/// group every command of that group is there.
pub(crate) fn commands(table: &Table, group: &str) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for row in &table.rows {
        for typed in code_words(Table::cell(row, 0)) {
            let words = typed.split_whitespace().skip(1);
            let words: Vec<_> = words
                .take_while(|word| word.chars().all(|letter| letter.is_ascii_lowercase()))
                .collect();
            let help = shown(&[words.as_slice(), &["--help"]].concat(), "");
            if words.is_empty() || !help.starts_with("exit 0") {
                return Err(format!("there is no command `{typed}`"));
            }
            let flags = row.iter().flat_map(|cell| code_words(cell));
            let flags = flags.flat_map(|code| {
                let words = code.split_whitespace().map(str::to_owned);
                words.collect::<Vec<_>>()
            });
            let flags = flags.map(|word| word.trim_matches(['[', ']']).to_owned());
            for flag in flags.filter(|word| word.starts_with("--")) {
                if !help.contains(&flag) {
                    return Err(format!("`{typed}` has no `{flag}`"));
                }
            }
            seen.insert(words.join(" "));
        }
    }
    if group.is_empty() {
        return Ok(());
    }
    let help = shown(&[group, "--help"], "");
    let listed = source::between(&help, "Commands:\n", "\n\n");
    let names = listed
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let gone = names
        .map(|name| format!("{group} {name}"))
        .find(|name| !seen.contains(name));
    gone.map_or(Ok(()), |name| Err(format!("`ringfence {name}` is missing")))
}

/// Every setting, by its name.
pub(crate) fn settings() -> BTreeSet<String> {
    let shown = shown(&["config", "--json"], "");
    let json = shown
        .split_once("--- stdout\n")
        .map_or("", |(_, json)| json);
    let value: Value = serde_json::from_str(json).expect(&shown);
    let settings = value.as_array().expect("a list").iter();
    let keys = settings.filter_map(|setting| setting["key"].as_str());
    keys.map(str::to_owned).collect()
}

fn checked(overrides: &Value) -> String {
    let document = json!({"name": "shown", "code": "return 1", "codeType": "Javascript",
        "sandboxOverrides": overrides});
    shown(&["check", "-"], &document.to_string())
}

/// The risk of each override is the one its row says.
pub(crate) fn badges(table: &Table) -> Result<(), String> {
    let rows = [
        ("`blocked`", json!({"networkMode": "blocked"}), "L0"),
        (
            "`allowlist`",
            json!({"networkMode": "allowlist", "hostsAllow": ["a.example.com"]}),
            "L3",
        ),
        (
            "`allowlist`",
            json!({"networkMode": "allowlist", "hostsAllow": ["*"]}),
            "L4",
        ),
        (
            "`allowlist`",
            json!({"networkMode": "allowlist", "hostsAllow": ["10.0.0.5"]}),
            "L4",
        ),
        ("`strict`", json!({"networkMode": "strict"}), "L3"),
        ("`open`", json!({"networkMode": "open"}), "L4"),
        ("`fileRead`", json!({"fileRead": true}), "L3"),
        ("`fileWrite`", json!({"fileWrite": true}), "L4"),
        ("`destructive`", json!({"destructive": true}), "L5"),
    ];
    for (row, overrides, badge) in rows {
        let found = checked(&overrides);
        if !found.contains(&format!("shown  {badge} ")) {
            return Err(format!("{overrides} is not {badge}:\n{found}"));
        }
        let mut rows = table.rows.iter();
        let own = rows.find(|cells| cells.iter().take(2).any(|cell| cell.contains(row)));
        let own = own.ok_or(format!("no row has {row}"))?;
        if !Table::cell(own, 2).contains(badge) {
            return Err(format!("the row of {row} does not say {badge}"));
        }
    }
    Ok(())
}

/// How hosts are written: as each row says, or refused with what it says.
pub(crate) fn hosts(table: &Table) -> Result<(), String> {
    for row in &table.rows {
        let is = code_words(Table::cell(row, 1));
        for written in code_words(Table::cell(row, 0)) {
            let overrides = json!({"networkMode": "allowlist", "hostsAllow": [&written]});
            let found = checked(&overrides);
            if !is.iter().any(|is| found.contains(is)) {
                return Err(format!("`{written}`:\n{found}"));
            }
            let is_refused = Table::cell(row, 1).starts_with("refused");
            if is_refused == found.starts_with("exit 0") {
                return Err(format!("`{written}`:\n{found}"));
            }
        }
    }
    Ok(())
}

/// What lies in the folder of the audit is in the table, and what is in the table the
/// store can write.
pub(crate) fn audit_files(table: &Table) -> Result<(), String> {
    let home = scratch("docs-audit-files");
    let place = home.display().to_string();
    let run = [
        "run",
        "countWords",
        "--args",
        r#"{"text": "a"}"#,
        "--home",
        &place,
    ];
    let done = ringfence(&run).shown();
    if !done.starts_with("exit 0") {
        return Err(done);
    }
    let named = table.words(0);
    let entries = fs::read_dir(home.join("audit")).unwrap();
    let names = entries.map(|entry| PathBuf::from(entry.unwrap().file_name()));
    for name in names {
        let name = name.display().to_string();
        // Files that the database keeps beside its own.
        let name = name.trim_end_matches("-wal").trim_end_matches("-shm");
        if !named.iter().any(|own| own == name) {
            return Err(format!("`{name}` is missing"));
        }
    }
    let store = source::of("store");
    let strange = named.iter().find(|name| {
        let end = name.trim_start_matches(['0', '…']);
        !store.contains(end)
    });
    strange.map_or(Ok(()), |name| Err(format!("nothing writes `{name}`")))
}

fn judged(script: &str, preset: &str) -> bool {
    shown(&["script", "check", "-", "--preset", preset], script).starts_with("exit 0")
}

/// Names a script has: under `secure`, and under `locked_down` unless their row says no.
pub(crate) fn script_names(table: &Table) -> Result<(), String> {
    for row in &table.rows {
        let names = code_words(Table::cell(row, 0));
        let names: Vec<_> = names
            .iter()
            .map(|name| match name.split('(').next().unwrap_or(name) {
                // Functions of the runtime are called and no values.
                "callTool" => "callTool('countWords', {})",
                "getTool" => "getTool('countWords')",
                "parallel" => "parallel([1], (item) => item)",
                "mcpLog" => "mcpLog('info', 'text')",
                "mcpNotify" => "mcpNotify('event', {})",
                name => name,
            })
            .collect();
        let script = format!("return [{}].length;", names.join(", "));
        let is_missing = Table::cell(row, 1).contains("not under `locked_down`");
        if !names.is_empty() && !judged(&script, "secure") {
            return Err(format!("`secure` has not all of {names:?}"));
        }
        if !names.is_empty() && judged(&script, "locked_down") == is_missing {
            return Err(format!("`locked_down` and {names:?}"));
        }
    }
    Ok(())
}

/// What a script may not say is refused, and what it may say instead is not.
pub(crate) fn script_refused(table: &Table) -> Result<(), String> {
    for word in table.words(0) {
        let script = match word.as_str() {
            "while" => "while (true) {}".to_owned(),
            "do" => "do {} while (true)".to_owned(),
            "for … in" => "for (const key in {}) {}".to_owned(),
            "for (;;)" => "for (;;) {}".to_owned(),
            "function" => "function f() {}".to_owned(),
            "import" => "import('x')".to_owned(),
            "JSON.parse" => "JSON.parse('1', (key, value) => value)".to_owned(),
            "JSON.stringify" => "JSON.stringify(1, (key, value) => value)".to_owned(),
            key if key.starts_with('.') => format!("return ({{}}){key}"),
            "__proto__" => "return ({}).__proto__".to_owned(),
            prefix if prefix.ends_with('_') => format!("const {prefix}x = 1"),
            name => format!("return {name}"),
        };
        if judged(&script, "experimental") {
            return Err(format!("`{script}` is not refused"));
        }
    }
    Ok(())
}

/// Which credential opens which address, at a running server.
pub(crate) fn doors(table: &Table) -> Result<(), String> {
    let live = doors_of();
    for row in &table.rows {
        let whose = Table::cell(row, 0);
        let said = [1, 2].map(|index| Table::cell(row, index) == "yes");
        let own = live.iter().find(|(name, _)| *name == whose);
        match own {
            Some((_, opens)) if *opens != said => {
                return Err(format!("{whose} opens {opens:?}"));
            }
            Some(_) => {}
            // The tests of the server have an issuer; here is none.
            None if whose == "an issuer's token" && said == [true, false] => {}
            None => return Err(format!("who is {whose}?")),
        }
    }
    match live.len() + 1 == table.rows.len() {
        true => Ok(()),
        false => Err("a row is missing".to_owned()),
    }
}

/// Every request of the inbox leads to it: a question that is not there is missed in
/// the inbox's own words.
pub(crate) fn inbox(table: &Table) -> Result<(), String> {
    let home = scratch("docs-inbox");
    let place = home.display().to_string();
    let add = ["keys", "add", "me", "--role", "operator", "--home", &place];
    let key = String::from_utf8(ringfence(&add).output().stdout).unwrap();
    let key = key.split_whitespace().find(|word| word.starts_with("rf_"));
    let key = key.ok_or("no key")?;
    let server = Server::start(&home, &[]);
    for request in table.words(0) {
        let Some((method, path)) = request.split_once(' ') else {
            continue;
        };
        let path = path.replace("ID", "0123456789abcdef");
        let body = if method == "POST" {
            r#"{"answer": "deny"}"#
        } else {
            ""
        };
        let reply = server.send(&format!("{method} {path} HTTP/1.1"), Some(key), body);
        let is_missed = reply.status == 404 && reply.body.pointer("/error/message").is_some();
        if reply.status != 200 && !is_missed {
            return Err(format!("`{request}`: {} {}", reply.status, reply.body));
        }
    }
    server.end()
}
