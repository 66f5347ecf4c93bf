//! `ringfence store`: where decisions are kept, and moving them between a home and a Postgres
//! that several nodes share.

use std::path::Path;

use anyhow::{anyhow, bail};
use serde_json::json;
use store::shared::{self, CopyTarget, SharedStatus};
use store::{OWN_TABLES, SchemaStatus};

use crate::arguments::{StoreArguments, StoreCommand, StoreCopy};
use crate::output::console;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::output::sheet;
use crate::wiring;

/// What is not in the shared store, for people who run several nodes.
const LOCAL: &[&str] = &["secrets", "workspaces", "the audit"];

/// Runs the command.
pub(crate) fn run(arguments: &StoreArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let home = wiring::absolute_home(arguments.home())?;
    match &arguments.command {
        StoreCommand::Status(_) => run_status(&home, printer),
        StoreCommand::Migrate(_) => run_migrate(&home, printer),
        StoreCommand::Copy(copy) => run_copy(&home, copy, printer),
    }
}

fn run_status(home: &Path, printer: &mut Printer) -> anyhow::Result<Exit> {
    let Some(status) = shared::status(home)? else {
        match printer.format() {
            Format::Json => {
                printer.json(&json!({"kind": "home", "home": home.display().to_string()}))
            }
            Format::Human => {
                printer.line("Decisions are kept in the home; no other node shares them.");
            }
        }
        return Ok(Exit::Done);
    };
    match printer.format() {
        Format::Json => printer.json(&json!({
            "kind": "postgres",
            "address": status.address,
            "schema": schema_json(&status.schema),
            "processes": status.processes,
            "filesRevision": status.files_revision,
            "answerUs": status.answer_us,
            "clockBehindMs": status.behind_ms,
            "perNode": LOCAL,
            "perNodeSettings": OWN_TABLES,
        })),
        Format::Human => show(&status, printer),
    }
    Ok(match status.schema.is_usable() {
        true => Exit::Done,
        false => Exit::No,
    })
}

fn schema_json(schema: &SchemaStatus) -> serde_json::Value {
    json!({
        "found": schema.found,
        "known": schema.known,
        "usableFrom": schema.usable_from,
        "isUsable": schema.is_usable(),
        "isNewer": schema.is_newer(),
    })
}

fn show(status: &SharedStatus, printer: &mut Printer) {
    printer.line(&format!("address    {}", status.address));
    let schema = &status.schema;
    let words = match (schema.found, schema.is_usable()) {
        (0, _) => "none yet; the first process makes it".to_owned(),
        (found, true) => format!("{found}, usable; this version knows {}", schema.known),
        (found, false) if schema.is_newer() => {
            let words = format!(
                "{found}, too new for this version, which knows {}; use the newer ringfence",
                schema.known
            );
            printer.styled(Style::Bad, &words)
        }
        (found, false) => {
            let words = format!(
                "{found}; run `ringfence store migrate` for {}",
                schema.known
            );
            printer.styled(Style::Caution, &words)
        }
    };
    printer.line(&format!("schema     {words}"));
    printer.line(&format!("processes  {}", status.processes));
    printer.line(&format!(
        "files      revision {} of settings, rules and tools",
        status.files_revision
    ));
    printer.line(&format!("answers    in {} µs", status.answer_us));
    if status.behind_ms != 0 {
        let words = format!(
            "{} ms behind the database; its clock counts",
            status.behind_ms
        );
        printer.line(&format!(
            "clock      {}",
            printer.styled(Style::Caution, &words)
        ));
    }
    let own = OWN_TABLES.join("], [");
    printer.line(&format!(
        "per node   {}, and of the settings [{own}]",
        LOCAL.join(", ")
    ));
}

fn none_named() -> anyhow::Error {
    anyhow!("the settings name no shared store; set `url` under `[store]` in ringfence.toml")
}

fn run_migrate(home: &Path, printer: &mut Printer) -> anyhow::Result<Exit> {
    let Some(before) = shared::migrate(home)? else {
        return Err(none_named());
    };
    let is_changed = before.found < before.known;
    match printer.format() {
        Format::Json => printer.json(&json!({
            "before": before.found,
            "now": before.found.max(before.known),
            "changed": is_changed,
        })),
        Format::Human if is_changed => {
            printer.line(&format!("schema {} is now {}", before.found, before.known));
        }
        Format::Human => printer.line(&format!("schema {} is up to date", before.found)),
    }
    Ok(Exit::Done)
}

/// Whether the person agrees that the decisions of the home are replaced.
fn agreed(home: &Path) -> anyhow::Result<bool> {
    let about = sheet::name(&home.display().to_string());
    let head = format!("replace all decisions in {about} by those of the shared store?");
    let parts = [("stay", "the audit log and its keys, files and secrets")];
    let here = console::is_here().then(|| console::agreed(&head, &parts, &about));
    match here.flatten() {
        Some(agreed) => Ok(agreed),
        None => bail!("there is no terminal to ask at; use `--yes`"),
    }
}

fn run_copy(home: &Path, copy: &StoreCopy, printer: &mut Printer) -> anyhow::Result<Exit> {
    let Some(to) = copy.target() else {
        bail!("a shared store is never replaced; copy into an empty database");
    };
    if to == CopyTarget::HomeReplaced && !copy.yes && !agreed(home)? {
        return Ok(Exit::No);
    }
    let Some(copied) = shared::copy(home, to)? else {
        return Err(none_named());
    };
    if copied.is_empty() {
        bail!("nothing was copied");
    }
    let all: u64 = copied.iter().map(|table| table.rows).sum();
    match printer.format() {
        Format::Json => {
            let tables = copied
                .iter()
                .map(|table| (table.name.to_owned(), json!(table.rows)));
            let tables: serde_json::Map<_, _> = tables.collect();
            printer.json(&json!({"rows": all, "tables": tables}));
        }
        Format::Human => {
            for table in copied.iter().filter(|table| table.rows > 0) {
                printer.line(&format!("{:16} {}", table.name, table.rows));
            }
            let rest = match to {
                CopyTarget::Shared => "the home keeps its own copy",
                CopyTarget::Home | CopyTarget::HomeReplaced => {
                    "remove `url` under `[store]` to use the home"
                }
            };
            printer.note(&format!("{all} rows were copied; {rest}"));
        }
    }
    Ok(Exit::Done)
}
