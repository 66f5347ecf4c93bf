//! `cases/rules`: an operator's file, tools and calls, and what is decided.
//!
//! A case is a folder: `ringfence.toml`, and either `calls.toml` (with
//! `tools.json` beside it or the one all cases share) or nothing, when the file is
//! one that must be refused. `expect.txt` has a line for each call or fault;
//! `UPDATE_CASES=1` writes it, for review.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use model::caller::{Caller, Origin};
use model::config::Config;
use model::document::params;
use model::document::{self, Document};
use model::govern::access::{AccessLevel, CallerRights};
use model::govern::rules::{Decision, Effect, RuleInput};
use model::policy::risk::rate;
use model::policy::{Baseline, EffectivePolicy, resolve};
use model::record::outcome::Retry;
use model::word::Word as _;
use serde::Deserialize;

use crate::{entries, root};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Calls {
    call: Vec<Call>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    about: String,
    caller: Option<String>,
    tool: String,
    #[serde(default = "no_arguments")]
    args: String,
    #[serde(default)]
    at_ms: i64,
}

fn no_arguments() -> String {
    "{}".to_owned()
}

pub(crate) fn documents(text: &str) -> Vec<Document> {
    let items = document::parse(text).items;
    let read = |item: document::ParsedDocument| item.document.ok_or(item.findings);
    items.into_iter().map(|item| read(item).unwrap()).collect()
}

/// The steps of a call that are pure, in their order.
fn decide(config: &Config, tools: &[Document], call: &Call) -> String {
    let caller = match &call.caller {
        None => Caller::owner(),
        Some(name) => Caller::named(name.clone()),
    };
    let tool = tools.iter().find(|tool| tool.name == call.tool).unwrap();
    let access = match config.access.check(&caller, tool) {
        Ok(note) => note,
        Err(denied) => return format!("unknown ({})", denied.note),
    };
    let raw = serde_json::from_str(&call.args).unwrap();
    let arguments = match params::check(&tool.params, &raw) {
        Ok(arguments) => arguments,
        Err(faults) => return format!("invalid: {}", faults.first().unwrap().message),
    };
    let baseline = config.effective_baseline().unwrap();
    let rights = config.access.rights(&caller, tool.category.as_deref());
    let policy = rights.narrow(resolve(&baseline, &tool.sandbox_overrides).unwrap());
    let risk = rate(&baseline, &tool.sandbox_overrides, &policy);
    let decision = config.rules.decide(&RuleInput {
        caller: &caller,
        rights: &rights,
        origin: Origin::Mcp,
        document: tool,
        arguments: &arguments,
        policy: &policy,
        risk: &risk,
        body: model::govern::rules::BodyFacts::sandboxed(),
        at_ms: call.at_ms,
    });
    format!("{} ({access})", said(&decision))
}

fn said(decision: &Decision) -> String {
    let mut line = decision.effect.word().to_owned();
    if let Some(rule) = &decision.rule {
        let _ = write!(line, " by {rule}");
    }
    let _ = write!(line, ": {}", decision.reason);
    if let (Some(code), Some(remedy)) = (decision.code, &decision.remedy) {
        let retry = match decision.retry {
            Retry::Never => "do not retry",
            Retry::Changed => "retry changed",
        };
        let _ = write!(line, " [{}; {retry}: {remedy}]", code.code());
    }
    line
}

fn outcome(folder: &Path) -> String {
    let text = fs::read_to_string(folder.join("ringfence.toml")).unwrap();
    let config = match Config::parse(&text) {
        Ok(config) => config,
        Err(faults) => {
            let line = |fault: &model::config::ConfigFault| {
                let fix = fault.fix.as_ref().map(|fix| format!("; {fix}"));
                let fix = fix.unwrap_or_default();
                format!("{}:{} {}{fix}\n", fault.line, fault.column, fault.message)
            };
            return faults.iter().map(line).collect();
        }
    };
    let own = folder.join("tools.json");
    let shared = root().join("cases/rules/tools.json");
    let tools = documents(&fs::read_to_string(if own.exists() { own } else { shared }).unwrap());
    let calls = fs::read_to_string(folder.join("calls.toml")).unwrap();
    let calls: Calls = toml::from_str(&calls).unwrap();
    let line = |call: &Call| format!("{}\n    {}\n", call.about, decide(&config, &tools, call));
    calls.call.iter().map(line).collect()
}

#[test]
fn rule_cases() {
    let folders: Vec<_> = entries("cases/rules")
        .into_iter()
        .filter(|path| path.is_dir())
        .collect();
    assert!(folders.len() >= 20, "only {} cases", folders.len());
    let mut wrong = Vec::new();
    for folder in folders {
        let seen = outcome(&folder);
        assert!(!seen.is_empty(), "{} says nothing", folder.display());
        let expect = folder.join("expect.txt");
        if std::env::var_os("UPDATE_CASES").is_some() {
            fs::write(&expect, &seen).unwrap();
        }
        if fs::read_to_string(&expect).ok().as_deref() != Some(&seen) {
            wrong.push(format!("{}:\n{seen}", folder.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Matrix {
    row: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    can: String,
    tool: String,
    #[serde(default = "no_arguments")]
    args: String,
    has: String,
    may: String,
}

fn may(rights: &CallerRights, tool: &Document, args: &str) -> &'static str {
    let baseline = Baseline::closed();
    let wanted = resolve(&baseline, &tool.sandbox_overrides).unwrap();
    let policy: EffectivePolicy = rights.narrow(wanted.clone());
    let arguments = params::check(&tool.params, &serde_json::from_str(args).unwrap()).unwrap();
    let decision = model::govern::rules::Rules::standard().decide(&RuleInput {
        caller: &Caller::named("ann"),
        rights,
        origin: Origin::Mcp,
        document: tool,
        arguments: &arguments,
        policy: &policy,
        risk: &rate(&baseline, &tool.sandbox_overrides, &policy),
        body: model::govern::rules::BodyFacts::sandboxed(),
        at_ms: 0,
    });
    match decision.effect {
        Effect::Allow if policy == wanted => "yes",
        Effect::Allow => "less",
        Effect::Ask => "ask",
        Effect::Deny => "no",
    }
}

/// `cases/rules/levels.toml`: every capability at every level.
#[test]
fn each_level_does_what_its_table_says() {
    let text = fs::read_to_string(root().join("cases/rules/levels.toml")).unwrap();
    let matrix: Matrix = toml::from_str(&text).unwrap();
    assert!(matrix.row.len() >= 20);
    for row in &matrix.row {
        let tool = documents(&row.tool).pop().unwrap();
        let (mut has, mut can) = (Vec::new(), Vec::new());
        for level in AccessLevel::ALL {
            let file = format!("[callers.ann]\nlevel = \"{}\"\n", level.word());
            let access = Config::parse(&file).unwrap().access;
            let caller = Caller::named("Ann");
            let rights = access.rights(&caller, tool.category.as_deref());
            let policy = resolve(&Baseline::closed(), &tool.sandbox_overrides).unwrap();
            let is_empty = rights.emptied(&tool, &policy).is_some();
            let seen = access.check(&caller, &tool).is_ok() && !is_empty;
            has.push(if seen { "yes" } else { "no" });
            can.push(match is_empty {
                true => "no",
                false => may(&rights, &tool, &row.args),
            });
        }
        let seen = (has.join(" "), can.join(" "));
        assert_eq!(seen, (row.has.clone(), row.may.clone()), "{}", row.can);
    }
}

#[test]
fn the_seeds_of_the_condition_fuzzer() {
    let seeds = entries("fuzz/seeds/condition");
    assert!(seeds.len() >= 20, "only {} seeds", seeds.len());
    for seed in seeds {
        model::govern::rules::condition::fuzz(&fs::read(seed).unwrap());
    }
}
