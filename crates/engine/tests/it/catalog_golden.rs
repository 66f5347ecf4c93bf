//! Every tool of the catalog, run: with its own test values and with every row of
//! its golden file, offline ones in an empty world, the others against the lab.
//!
//! A row is `{"args", "files", "exchanges", "result" | "error" | "matches",
//! "filesAfter"}`. Without `args` it runs the tool's test values. `matches` holds a
//! pattern for each field, for what is random.

use std::fs;
use std::path::{Path, PathBuf};

use model::{Environment, document::params};
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::catalog::{Bundled, documents, is_updating, root};
use crate::catalog_call::{CatalogRunner, Outcome, Surroundings};
use crate::catalog_lab::Lab;

/// A folder of its own for one call.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let folder = format!("catalog-{}-{name}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    fn fill(&self, files: &Value) {
        for (name, text) in files.as_object().into_iter().flatten() {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.as_str().unwrap()).unwrap();
        }
    }

    /// What differs from the files a row wants to see; null wants none.
    fn differences(&self, files: &Value) -> Vec<String> {
        let files = files.as_object().into_iter().flatten();
        let wrong = files.filter_map(|(name, wanted)| {
            let found = fs::read_to_string(self.0.join(name)).ok();
            let differs = found.as_deref() != wanted.as_str();
            differs.then(|| format!("`{name}` holds {found:?}, not {wanted}"))
        });
        wrong.collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Every key any tool needs, set to a value that must never be seen again.
pub(crate) fn environment(all: &[Bundled]) -> Environment {
    let mut environment = Environment::empty();
    for key in all.iter().flat_map(Bundled::keys) {
        let value = format!("sample-{}", key.to_lowercase());
        environment.set(key, value);
    }
    environment
}

fn rows(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(root().join(path)).unwrap_or_else(|_| panic!("no `{path}`"));
    let rows: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    rows.as_array().expect("an array of rows").clone()
}

pub(crate) fn test_arguments(tool: &Bundled) -> Value {
    let arguments = params::test_arguments(&tool.usable.document.params).unwrap();
    Value::Object(arguments.into_values())
}

/// Runs one row; what is wrong with it. An update writes the outcome into it.
async fn run(runner: &CatalogRunner, tool: &Bundled, row: &mut Value) -> Vec<String> {
    let scratch = Scratch::new(&tool.stem);
    scratch.fill(&row["files"]);
    let lab = match row["exchanges"].as_array() {
        Some(exchanges) => Some(Lab::start(exchanges).await),
        None => None,
    };
    let around = Surroundings {
        workspace: &scratch.0,
        lab: lab.as_ref(),
    };
    let arguments = row.get("args").cloned();
    let arguments = arguments.unwrap_or_else(|| test_arguments(tool));
    let outcome = runner.call(&tool.usable, &arguments, &around).await;
    let mut wrong = match is_updating() {
        true => update(row, &outcome),
        false => compare(row, &outcome),
    };
    wrong.extend(scratch.differences(&row["filesAfter"]));
    wrong.extend(lab.iter().flat_map(Lab::complaints));
    let shown = format!("{outcome:?}");
    if tool
        .keys()
        .iter()
        .any(|key| shown.contains(&format!("sample-{}", key.to_lowercase())))
    {
        wrong.push("shows a key".to_owned());
    }
    wrong
}

fn compare(row: &Value, outcome: &Outcome) -> Vec<String> {
    let as_wanted = match (
        outcome,
        row.get("result"),
        row.get("matches"),
        &row["error"],
    ) {
        (Outcome::Done(value), Some(wanted), None, Value::Null) => value == wanted,
        (Outcome::Done(value), None, Some(patterns), Value::Null) => fits(patterns, value),
        (Outcome::Failed { code, message }, None, None, Value::Object(error)) => {
            let part = error["messageContains"].as_str().unwrap();
            error["code"].as_str() == Some(code) && !part.is_empty() && message.contains(part)
        }
        _ => false,
    };
    Vec::from_iter((!as_wanted).then(|| format!("came to {outcome:?}")))
}

fn update(row: &mut Value, outcome: &Outcome) -> Vec<String> {
    if row.get("matches").is_some() || compare(row, outcome).is_empty() {
        return compare(row, outcome);
    }
    let members = row.as_object_mut().unwrap();
    members.shift_remove("result");
    members.shift_remove("error");
    let (key, value) = match outcome {
        Outcome::Done(value) => ("result", value.clone()),
        Outcome::Failed { code, message } => {
            ("error", json!({ "code": code, "messageContains": message }))
        }
    };
    members.insert(key.to_owned(), value);
    Vec::new()
}

/// Whether every field fits its pattern. There may be no field without one.
fn fits(patterns: &Value, value: &Value) -> bool {
    match (patterns, value) {
        (Value::Object(patterns), Value::Object(fields)) => {
            let fitting = |(name, pattern)| fields.get(name).is_some_and(|own| fits(pattern, own));
            patterns.len() == fields.len() && patterns.iter().all(fitting)
        }
        (Value::Array(patterns), Value::Array(items)) => {
            patterns.len() == items.len()
                && patterns
                    .iter()
                    .zip(items)
                    .all(|(pattern, item)| fits(pattern, item))
        }
        (Value::String(pattern), Value::String(text)) => {
            Regex::new(pattern).unwrap().is_match(text)
        }
        (Value::String(pattern), value) => {
            Regex::new(pattern).unwrap().is_match(&value.to_string())
        }
        (pattern, value) => pattern == value,
    }
}

/// Rows as text in which nothing is invisible.
fn written(rows: &[Value]) -> String {
    let text = serde_json::to_string_pretty(rows).unwrap() + "\n";
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter == '\n' || !model::text::is_hidden(letter) {
            shown.push(letter);
            continue;
        }
        let units = letter.encode_utf16(&mut [0; 2]).to_vec();
        units
            .iter()
            .for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
    }
    shown
}

/// Whether a row says that something must go wrong.
fn is_refusal(row: &Value) -> bool {
    row["error"].is_object()
}

/// Text beyond ASCII in a row's arguments, or a row that says it is an edge.
fn is_edge(row: &Value) -> bool {
    row["edge"].is_string() || !row["args"].to_string().is_ascii()
}

async fn run_all(is_wanted: fn(&Bundled) -> bool, suffix: &str, enough: fn(&[Value]) -> bool) {
    let all = documents();
    let runner = CatalogRunner::start(environment(&all));
    let mut wrong = Vec::new();
    let only = std::env::var("CATALOG_ONLY").ok();
    let wanted = all.iter().filter(|tool| is_wanted(tool));
    let chosen = wanted.filter(|tool| only.as_ref().is_none_or(|only| *only == tool.stem));
    for tool in chosen {
        let path = format!("cases/catalog/{}{suffix}", tool.stem);
        let mut rows = rows(&path);
        for (index, row) in rows.iter_mut().enumerate() {
            let found = run(&runner, tool, row).await;
            wrong.extend(found.iter().map(|text| format!("{path}[{index}] {text}")));
        }
        if !enough(&rows) {
            wrong.push(format!("{path}: too few rows, none refused, or no edge"));
        }
        if is_updating() {
            fs::write(root().join(&path), written(&rows)).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn offline_tools_answer_as_written_down() {
    let enough =
        |rows: &[Value]| rows.len() >= 3 && rows.iter().any(is_refusal) && rows.iter().any(is_edge);
    run_all(Bundled::is_offline, ".json", enough).await;
}

#[tokio::test]
async fn network_tools_answer_as_written_down() {
    let enough = |rows: &[Value]| {
        let asks = |row: &&Value| {
            row["exchanges"]
                .as_array()
                .is_some_and(|all| !all.is_empty())
        };
        let asking: Vec<_> = rows.iter().filter(asks).collect();
        let own = asking
            .iter()
            .any(|row| row.get("args").is_none() && !is_refusal(row));
        own && asking.iter().any(|row| is_refusal(row))
    };
    run_all(|tool| !tool.is_offline(), ".http.json", enough).await;
}

/// The Local Pass: the tool's own test values, in an empty workspace, end well.
#[tokio::test]
async fn offline_tools_pass_their_own_test() {
    let all = documents();
    let runner = CatalogRunner::start(environment(&all));
    for tool in all.iter().filter(|tool| tool.is_offline()) {
        let scratch = Scratch::new(&format!("own-{}", tool.stem));
        let around = Surroundings {
            workspace: &scratch.0,
            lab: None,
        };
        let outcome = runner
            .call(&tool.usable, &test_arguments(tool), &around)
            .await;
        match outcome {
            Outcome::Done(Value::Object(fields)) => assert_ne!(fields, Map::new(), "{}", tool.stem),
            Outcome::Done(value) => panic!("{} gives {value}, no object", tool.stem),
            Outcome::Failed { message, .. } => panic!("{}: {message}", tool.stem),
        }
    }
}

/// No golden file is left behind by a tool that went away.
#[test]
fn every_golden_file_has_its_tool() {
    let all = documents();
    for file in fs::read_dir(root().join("cases/catalog")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let stem = name.split('.').next().unwrap();
        assert!(
            all.iter().any(|tool| tool.stem == stem),
            "`{name}` has no tool"
        );
    }
}
