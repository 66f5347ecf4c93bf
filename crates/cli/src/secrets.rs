//! `ringfence secrets`: which variables a tool may have. Never their values.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use engine::registry::Tool;
use model::document::safety::Source;
use model::text::elided;
use serde_json::{Value, json};

use crate::arguments::{Common, Home};
use crate::exit::Exit;
use crate::printer::{Format, Printer, Style};
use crate::wiring;

/// A tool has the value of a variable only if it was granted to it. Bundled tools
/// have those their documents name.
#[derive(Debug, Args)]
pub(crate) struct SecretsArguments {
    #[command(subcommand)]
    pub(crate) command: SecretsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretsCommand {
    /// List the variables tools use: whether each is set and granted
    List(SecretsList),
    /// Let a tool have variables it uses
    Grant(SecretsGrant),
    /// Take variables back from a tool
    Revoke(SecretsGrant),
}

#[derive(Debug, Args)]
pub(crate) struct SecretsList {
    /// Only of this tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct SecretsGrant {
    /// The tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// The variables
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

impl SecretsArguments {
    pub(crate) fn home(&self) -> &Home {
        match &self.command {
            SecretsCommand::List(list) => &list.common.home,
            SecretsCommand::Grant(grant) | SecretsCommand::Revoke(grant) => &grant.common.home,
        }
    }
}

/// Runs the command.
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
        let document = &tool.sound.document;
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
                true => (true, "taken back"),
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
