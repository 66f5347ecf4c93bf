//! `ringfence secrets`: which variables a tool may have. Never their values.

use std::collections::BTreeMap;

use engine::registry::Tool;
use model::document::safety::Source;
use model::text::elided;
use serde_json::{Value, json};

use crate::arguments::{SecretsArguments, SecretsCommand, SecretsGrant, SecretsList};
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::wiring;

pub(crate) fn run(arguments: &SecretsArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    match &arguments.command {
        SecretsCommand::List(list) => run_list(list, printer),
        SecretsCommand::Grant(grant) => change(grant, Change::Grant, printer),
        SecretsCommand::Revoke(grant) => change(grant, Change::Revoke, printer),
    }
}

fn run_list(list: &SecretsList, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine(&list.common)?;
    let now = engine.registry().current();
    let tools: Vec<Tool> = match &list.tool {
        Some(name) => vec![engine.tool(name)?],
        None => now.tools().cloned().collect(),
    };
    let environment = engine.environment()?;
    let mut entries = Vec::new();
    for tool in tools {
        let document = &tool.usable.document;
        for variable in tool.granted.variables(document, &environment) {
            let bundled = tool.source == Source::Builtin;
            if printer.format() == Format::Json {
                entries.push(json!({
                    "tool": document.name, "name": variable.name, "set": variable.set,
                    "granted": variable.granted, "bundled": bundled,
                }));
                continue;
            }
            let name = printer.styled(Style::Bold, &elided(&document.name, 60));
            let source = if bundled { "  bundled" } else { "" };
            printer.line(&format!("{name}  {}{source}", variable.words()));
        }
    }
    if printer.format() == Format::Json {
        printer.json(&Value::Array(entries));
    }
    Ok(Exit::Done)
}

#[derive(Clone, Copy)]
enum Change {
    Grant,
    Revoke,
}

fn change(grant: &SecretsGrant, change: Change, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine(&grant.common)?;
    let tool = &grant.tool;
    let mut changed = BTreeMap::new();
    for name in &grant.names {
        let (is_new, word) = match change {
            Change::Grant => match engine.grant_variable(tool, name)? {
                true => (true, "granted"),
                false => (false, "was granted already"),
            },
            Change::Revoke => match engine.revoke_variable(tool, name)? {
                true => (true, "revoked"),
                false => (false, "was not granted"),
            },
        };
        changed.insert(name.clone(), is_new);
        if printer.format() == Format::Human {
            printer.line(&format!("{tool}  {name}  {word}"));
        }
    }
    if printer.format() == Format::Json {
        printer.json(&json!({"tool": tool, "changed": changed}));
    }
    Ok(Exit::Done)
}
