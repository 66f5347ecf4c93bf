//! Describe: all there is to know about tools before calling them.

use std::collections::BTreeSet;

use find::search::ask;
use model::document::codecall;
use model::document::example;
use model::document::params::ArgumentFault;
use model::limits;
use model::reason::Reason;
use model::text;
use serde_json::{Map, Value, json};

use crate::callable::CallableTool;
use crate::limit;
use crate::native::refuse_arguments;
use crate::refusal::CallRefusal;
use crate::run::RunResult;
use crate::search_index;
use crate::work::Work;

pub(crate) fn run(work: &Work<'_>) -> Result<RunResult, CallRefusal> {
    let names = names(&work.arguments).map_err(refuse_arguments)?;
    let mut tools = Vec::new();
    let mut not_found = Vec::new();
    for name in &names {
        let asked = work.request.child(name, Value::Null);
        // What this caller's scripts cannot call is not there, whatever the reason.
        match work.reach(&asked) {
            Ok(offered) => tools.push(described(&offered)),
            Err(_) => not_found.push(text::elided(name, limit::NAME_SHOWN_CHARS_MAX)),
        }
    }
    let mut value = json!({"tools": tools});
    if let (Some(members), false) = (value.as_object_mut(), not_found.is_empty()) {
        members.insert("notFound".to_owned(), not_found.into());
    }
    Ok(RunResult::done(value))
}

fn names(arguments: &Map<String, Value>) -> Result<Vec<String>, Vec<ArgumentFault>> {
    let mut faults = Vec::new();
    let names = ask::strings(arguments, "toolNames", &mut faults);
    let most = limits::DESCRIBE_NAMES_MAX;
    let mut seen = BTreeSet::new();
    let twice = names.iter().find(|name| !seen.insert(name.as_str()));
    let message = match twice {
        _ if !faults.is_empty() => return Err(faults),
        _ if names.is_empty() || names.len() > most => {
            format!("`toolNames` holds {}; give 1 to {most}", names.len())
        }
        Some(name) => format!("`{}` appears twice", text::elided(name, 60)),
        None => return Ok(names),
    };
    Err(vec![ArgumentFault {
        reason: Reason::ArgumentType,
        name: "toolNames".to_owned(),
        message,
    }])
}

/// A tool in full.
fn described(offered: &CallableTool) -> Value {
    let document = &offered.usable.document;
    let hints = offered.hints();
    let lines = document.description.trim().lines().map(text::one_line);
    let reasons = offered.risk.signals.iter().map(|signal| &signal.words);
    json!({
        "name": document.name,
        "appId": search_index::app(document, offered.source),
        "description": lines.collect::<Vec<_>>().join("\n"),
        "inputSchema": offered.body.input_schema(document),
        // Null if its author does not say.
        "outputSchema": offered
            .body
            .output_schema()
            .or_else(|| codecall::output_schema(document)),
        "annotations": {
            "readOnlyHint": hints.read_only,
            "destructiveHint": hints.destructive,
            "idempotentHint": hints.idempotent.unwrap_or(false),
            "openWorldHint": hints.open_world,
        },
        "risk": {
            "level": offered.risk.level.badge(),
            "reasons": reasons.collect::<Vec<_>>(),
        },
        "usageExamples": example::of(document),
    })
}
