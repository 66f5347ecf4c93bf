//! What each table of a page is held to. A table is made from the code, or its names
//! and numbers are those of the code.

mod made;
mod program;

pub(crate) use made::made;

use std::collections::BTreeSet;
use std::fs;

use engine::native::Native;
use engine::toolbox::ToolboxTool;
use model::config::{CodecallMode, Config, ScriptPreset};
use model::document::finding::Code;
use model::document::lifecycle::LifecycleState;
use model::govern::approval::ApprovalScope;
use model::govern::autonomy::Autonomy;
use model::govern::rules::Effect;
use model::reason::Reason;
use model::record::audit::notice::Act;
use model::word::Word;
use serde_json::Value;

use super::source;
use super::table::{Table, code_words};
use crate::root;

/// Holds a table to the code by its name. A table that is made from the code comes back.
pub(crate) fn hold(name: &str, table: &Table) -> Result<Option<String>, String> {
    if let Some(made) = made(name) {
        return Ok(Some(made));
    }
    if let Some(group) = name.strip_prefix("commands") {
        return program::commands(table, group.trim()).map(|()| None);
    }
    match name {
        "notices" => named(table, &Act::ALL.map(Act::word)),
        "codecall-tools" => named(table, &native(true)),
        "toolbox-tools" => named(table, &ToolboxTool::ALL.map(ToolboxTool::name)),
        "progressive-tools" => named(table, &native(false)),
        "codecall-modes" => named(table, &words::<CodecallMode>()),
        "effects" => named(table, &words::<Effect>()),
        "autonomy" => named(table, &words::<Autonomy>()),
        "finding-codes" => named(table, &Code::ALL.map(Code::word)),
        "states" => named(table, &states().map(LifecycleState::word)),
        "script-codes" => {
            let text = source::of("engine");
            let codes = source::quoted(source::between(&text, "const CODES: ", "];"));
            named(table, &codes)
        }
        "script-ends" => script_ends(table),
        "script-presets" => script_presets(table),
        "search-arguments" => search_arguments(table),
        "conditions" => conditions(table),
        "fields" => named(table, &schema("/properties")?),
        "overrides" => named(table, &schema("/$defs/Overrides/properties")?)
            .and_then(|()| program::badges(table)),
        "serve-limits" => serve_limits(table),
        "connection-limits" => connection_limits(table),
        "request-limits" => request_limits(table),
        "tool-limits" => tool_limits(table),
        "variables" => variables(table),
        "crates" => crates(table),
        "promises" => promises(table),
        "numbers" => program::numbers(table),
        "tasks" => tasks(table),
        "files" => files(table),
        "audit-files" => program::audit_files(table),
        "hosts" => program::hosts(table),
        "script-names" => program::script_names(table),
        "script-refused" => program::script_refused(table),
        "doors" => program::doors(table),
        "inbox" => program::inbox(table),
        other => Err(format!("there is no table `{other}`")),
    }
    .map(|()| None)
}

/// The first column names these, all of them, and nothing else.
pub(crate) fn named<W: AsRef<str>>(table: &Table, known: &[W]) -> Result<(), String> {
    same(&table.words(0), known)
}

fn same<F: AsRef<str>, W: AsRef<str>>(found: &[F], known: &[W]) -> Result<(), String> {
    let found: BTreeSet<_> = found.iter().map(AsRef::as_ref).collect();
    let known: BTreeSet<_> = known.iter().map(AsRef::as_ref).collect();
    let missing: Vec<_> = known.difference(&found).collect();
    let surplus: Vec<_> = found.difference(&known).collect();
    match missing.is_empty() && surplus.is_empty() {
        true => Ok(()),
        false => Err(format!("missing {missing:?}, not in the code {surplus:?}")),
    }
}

/// Each row has, in one column, the text the code gives it.
fn column_is(table: &Table, column: usize, expected: &[String]) -> Result<(), String> {
    let found: Vec<_> = table
        .rows
        .iter()
        .map(|row| Table::cell(row, column).to_owned())
        .collect();
    match found == expected {
        true => Ok(()),
        false => Err(format!(
            "column {column} is {found:?}, in the code {expected:?}"
        )),
    }
}

fn words<W: Word>() -> Vec<&'static str> {
    W::ALL.iter().map(|word| word.word()).collect()
}

fn native(is_code_mode: bool) -> Vec<&'static str> {
    let names = Native::ALL.map(Native::name).into_iter();
    let own = names.filter(|name| name.starts_with("codecall_") == is_code_mode);
    own.collect()
}

fn states() -> [LifecycleState; 4] {
    // A new state does not compile until it is on the page.
    let all = [
        LifecycleState::Draft,
        LifecycleState::MissingRequirements,
        LifecycleState::Active,
        LifecycleState::TestFailed,
    ];
    for state in all {
        match state {
            LifecycleState::Draft
            | LifecycleState::MissingRequirements
            | LifecycleState::Active
            | LifecycleState::TestFailed => {}
        }
    }
    all
}

/// How a script ends, and the reason the audit has for it.
fn script_ends(table: &Table) -> Result<(), String> {
    let codes: Vec<_> = Reason::ALL.iter().map(|reason| reason.code()).collect();
    for row in &table.rows {
        let status = code_words(Table::cell(row, 0)).concat();
        let audit = Table::cell(row, 2);
        let code = format!("script.{status}");
        let is_told = status == "ok" || (codes.contains(&code.as_str()) && audit.contains(&code));
        if !is_told {
            return Err(format!("`{status}` is not `{code}` in the audit"));
        }
    }
    // Reasons of scripts that do not say how the script itself ended.
    let others = ["script.diverged", "script.journal"];
    let ends = codes
        .iter()
        .filter(|code| !others.contains(code))
        .filter_map(|code| code.strip_prefix("script."));
    let ends: Vec<_> = ends.chain(["ok"]).collect();
    named(table, &ends)
}

fn script_presets(table: &Table) -> Result<(), String> {
    let heads: Vec<_> = table
        .head
        .iter()
        .flat_map(|cell| code_words(cell))
        .collect();
    same(&heads, &words::<ScriptPreset>())?;
    let text = source::of("guard");
    let agent = source::between(&text, "pub fn agent_script(", "regex_count_max");
    let chars = source::between(agent, "regex_chars_max: ", ",");
    let is_said = table.rows.iter().flatten().any(|cell| cell.contains(chars));
    match is_said {
        true => Ok(()),
        false => Err(format!("regular expressions have {chars} characters")),
    }
}

fn search_arguments(table: &Table) -> Result<(), String> {
    let path = root().join("crates/engine/src");
    let found = find(&path, "search.json").ok_or("no search.json")?;
    let document: Value = serde_json::from_str(&fs::read_to_string(found).unwrap()).unwrap();
    let params = document.get("params").and_then(Value::as_array);
    let params = params.ok_or("no params")?;
    let names: Vec<_> = params
        .iter()
        .filter_map(|it| it.get("name").and_then(Value::as_str))
        .collect();
    named(table, &names)
}

fn find(folder: &std::path::Path, name: &str) -> Option<std::path::PathBuf> {
    let mut entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries.find_map(|path| match path.is_dir() {
        true => find(&path, name),
        false => path.ends_with(name).then_some(path),
    })
}

/// Everything the language of conditions knows by name is in the table, and the
/// functions there are known.
fn conditions(table: &Table) -> Result<(), String> {
    let text = source::of("model");
    let shown = table.rows.iter().flatten();
    let shown: String = shown
        .flat_map(|cell| code_words(cell))
        .collect::<Vec<_>>()
        .join(" ");
    for list in ["FUNCTIONS", "METHODS", "QUANTIFIERS", "ROOTS"] {
        let open = format!("const {list}: &[");
        for name in source::quoted(source::between(&text, &open, "];")) {
            if !shown.contains(&name) {
                return Err(format!("`{name}` is missing"));
            }
        }
    }
    Ok(())
}

fn schema(pointer: &str) -> Result<Vec<String>, String> {
    let path = root().join("schema/safe-tool-spec.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let members = schema.pointer(pointer).and_then(Value::as_object);
    Ok(members
        .ok_or("no such part of the schema")?
        .keys()
        .cloned()
        .collect())
}

fn serve_limits(table: &Table) -> Result<(), String> {
    let serve = Config::parse("").expect("no settings").serve;
    let values = [
        ("connections_max", count(serve.connections_max)),
        ("sessions_max", count(serve.sessions_max)),
        (
            "sessions_per_caller_max",
            count(serve.sessions_per_caller_max),
        ),
        ("body_bytes_max", bytes(serve.body_bytes_max)),
        ("calls_per_caller_max", count(serve.calls_per_caller_max)),
        ("calls_per_minute", count(serve.calls_per_minute)),
        ("listeners_max", count(serve.listeners_max)),
        ("call_seconds_max", count(serve.call_seconds_max)),
    ];
    named(table, &values.clone().map(|(name, _)| name))?;
    column_is(table, 1, &values.map(|(_, value)| value))
}

/// The bounds of the server that are no settings, row by row.
fn connection_limits(table: &Table) -> Result<(), String> {
    let mcp = |name: &str| source::number("mcp", name);
    let seconds = |name: &str| format!("{} seconds", mcp(name));
    let bytes_of = |name: &str| bytes(mcp(name));
    let expected = [
        format!("{} headers", mcp("HEADERS_MAX")),
        bytes_of("HEAD_BYTES_MAX"),
        seconds("HEAD_SECONDS_MAX"),
        seconds("BODY_SECONDS_MAX"),
        seconds("WRITE_SECONDS_MAX"),
        format!("{} minutes", mcp("SESSION_IDLE_SECONDS_MAX") / 60),
        bytes_of("UNSENT_PER_CALLER_BYTES_MAX"),
        bytes_of("UNSENT_BYTES_MAX"),
        bytes_of("RESUME_ANSWERS_BYTES_MAX"),
    ];
    column_is(table, 1, &expected)?;
    let piece = bytes_of("WRITE_PIECE_BYTES");
    match table
        .rows
        .iter()
        .flatten()
        .any(|cell| cell.contains(&piece))
    {
        true => Ok(()),
        false => Err(format!("a piece that is read has {piece}")),
    }
}

fn request_limits(table: &Table) -> Result<(), String> {
    let text = table
        .rows
        .iter()
        .flatten()
        .cloned()
        .collect::<Vec<_>>()
        .join(" ");
    let mcp = |name: &str| source::number("mcp", name).to_string();
    for number in [
        "ADDRESS_CALLERS",
        "ADDRESS_REQUESTS_MIN",
        "ADDRESS_FAILURES_MAX",
    ] {
        if !text
            .split_whitespace()
            .any(|word| word.trim_end_matches(',') == mcp(number))
        {
            return Err(format!("{number} is {}", mcp(number)));
        }
    }
    let settings = program::settings();
    let strange = table
        .words(0)
        .into_iter()
        .find(|word| !settings.contains(word));
    strange.map_or(Ok(()), |word| Err(format!("`{word}` is no setting")))
}

fn tool_limits(table: &Table) -> Result<(), String> {
    let limits = sandbox::job::JobLimits::standard();
    let statements = source::number("model", "STATEMENTS_DEFAULT");
    let work = limits.work_max / statements;
    let expected = [
        format!("{work} for each of {} statements", count(statements)),
        format!("{} s", limits.cpu_ms_max / 1000),
        format!("{} s", limits.wall_ms_max / 1000),
        bytes(limits.memory_bytes_max.into()),
        format!(
            "{}, {} deep",
            bytes(limits.result_bytes_max.into()),
            limits.result_depth_max
        ),
        format!(
            "{} lines, {}",
            count(limits.console_lines_max.into()),
            bytes(limits.console_bytes_max.into())
        ),
        format!(
            "{}, {} at a time, {} each way",
            count(limits.host_calls_max.into()),
            limits.host_outstanding_max,
            bytes(limits.payload_bytes_max.into())
        ),
    ];
    column_is(table, 1, &expected)
}

fn variables(table: &Table) -> Result<(), String> {
    let text = source::of("cli");
    let named_so = regex::Regex::new(r#"const \w+: &str = "([A-Z][A-Z_]+)";"#).unwrap();
    let known: Vec<_> = named_so
        .captures_iter(&text)
        .map(|it| it[1].to_owned())
        .collect();
    named(table, &known)
}

fn crates(table: &Table) -> Result<(), String> {
    let entries = fs::read_dir(root().join("crates")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    named(table, &names.collect::<Vec<_>>())
}

/// Tasks of the project itself: `cargo xtask NAME`.
fn tasks(table: &Table) -> Result<(), String> {
    let text = fs::read_to_string(root().join("xtask/src/main.rs")).unwrap();
    let tasks = source::between(&text, "enum Task {", "\n}\n");
    for word in table.words(0) {
        let task = word.strip_prefix("cargo xtask ").unwrap_or(&word);
        let task = task.split_whitespace().next().unwrap_or("");
        let mut letters = task.chars();
        let variant: String = letters
            .next()
            .map(|first| first.to_ascii_uppercase())
            .into_iter()
            .chain(letters)
            .collect();
        let is_known = tasks.lines().any(|line| {
            let line = line.trim();
            line.trim_end_matches([',', '{', ' ']) == variant
                || line.contains(&format!("name = \"{task}\""))
        });
        if !is_known {
            return Err(format!("there is no task `{task}`"));
        }
    }
    Ok(())
}

/// The tests that promises name exist, and the gates they name are those of
/// `cargo xtask bench --gate`, for CI where they say so.
fn promises(table: &Table) -> Result<(), String> {
    let text = fs::read_to_string(root().join("xtask/src/bench/gate.rs")).unwrap();
    let defined =
        regex::Regex::new(r#"(?s)name: "([a-z0-9_.]+)",.*?set: PromiseSet::(\w+),"#).unwrap();
    let gates: Vec<_> = defined
        .captures_iter(&text)
        .map(|found| (found[1].to_owned(), &found[2] == "Ci"))
        .collect();
    let mut named = Vec::new();
    for row in &table.rows {
        let keeper = Table::cell(row, 2);
        for word in code_words(keeper) {
            if word.contains('/') {
                if !root().join(&word).exists() {
                    return Err(format!("there is no `{word}`"));
                }
                continue;
            }
            let is_ci = keeper.starts_with("CI gate");
            if !gates.contains(&(word.clone(), is_ci)) {
                return Err(format!("`{word}` is no such gate"));
            }
            named.push(word);
        }
    }
    // The table of what is measured has them all.
    let gone = gates.iter().find(|(name, _)| !named.contains(name));
    match gone {
        Some((name, _)) if !named.is_empty() => Err(format!("`{name}` is missing")),
        Some(_) | None => Ok(()),
    }
}

/// Files of the page's folder.
fn files(table: &Table) -> Result<(), String> {
    let gone = table
        .words(0)
        .into_iter()
        .find(|name| !root().join("peers").join(name).is_file());
    gone.map_or(Ok(()), |name| Err(format!("there is no file `{name}`")))
}

/// `1,024`
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// `64 MiB`
pub(crate) fn bytes(number: u64) -> String {
    match number {
        number if number.is_multiple_of(1 << 30) => format!("{} GiB", number >> 30),
        number if number.is_multiple_of(1 << 20) => format!("{} MiB", number >> 20),
        number if number.is_multiple_of(1 << 10) => format!("{} KiB", number >> 10),
        number => format!("{} bytes", count(number)),
    }
}

/// `an hour`
pub(crate) fn length(scope: ApprovalScope) -> String {
    let hours = scope.lasts_seconds(0) / 3600;
    match (hours / 24, hours) {
        (0, 0) => "`approvals.expire_seconds`".to_owned(),
        (0, 1) => "1 hour".to_owned(),
        (0, hours) => format!("{hours} hours"),
        (1, _) => "1 day".to_owned(),
        (days, _) => format!("{days} days"),
    }
}
