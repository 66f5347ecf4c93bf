//! `new`, `import`, `export`, `publish`, `unpublish`, `delete`.

use std::fs;

use anyhow::Context as _;
use engine::life::Imported;
use model::caller::Origin;
use model::text::{elided, json_line, one_line};
use serde_json::{Value, json};

use crate::arguments::{Export, Import, Many, New};
use crate::exit::Exit;
use crate::printer::{Format, Printer, Style};
use crate::source::{self, Source};
use crate::wiring;

/// Runs `new`.
pub(crate) fn new(arguments: &New, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_at(&arguments.home)?;
    let path = engine.create(&arguments.name)?;
    let name = &arguments.name;
    match printer.format() {
        Format::Json => printer.json(&json!({"name": name, "file": path})),
        Format::Human => {
            printer.line(&path.display().to_string());
            printer.note(&format!(
                "edit it, then: ringfence test {name} && ringfence publish {name}"
            ));
        }
    }
    Ok(Exit::Done)
}

/// Runs `import`.
pub(crate) fn import(arguments: &Import, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_at(&arguments.home)?;
    let mut exit = Exit::Done;
    let mut entries = Vec::new();
    for path in &arguments.files {
        let text = match source::documents(path)? {
            Source::Text(text) => text,
            Source::Unusable(why) => {
                let shown = path.display();
                printer.note(&format!("error: `{shown}` cannot be taken in: {why}"));
                exit = Exit::CouldNot;
                continue;
            }
        };
        for imported in engine.import(&text, arguments.replace)? {
            if !imported.ok {
                exit = exit.max(Exit::No);
            }
            match printer.format() {
                Format::Json => entries.push(import_entry(&imported)),
                Format::Human => show_imported(&imported, printer),
            }
        }
    }
    if printer.format() == Format::Json {
        printer.json(&Value::Array(entries));
    }
    Ok(exit)
}

fn import_entry(imported: &Imported) -> Value {
    json!({
        "name": imported.name,
        "ok": imported.ok,
        "error": imported.why,
        "findings": imported.findings,
    })
}

fn show_imported(imported: &Imported, printer: &mut Printer) {
    let name = imported.name.as_deref().unwrap_or("(no name)");
    let name = printer.styled(Style::Bold, &elided(name, 60));
    match &imported.why {
        None => printer.line(&format!("{name}  draft")),
        Some(why) => {
            let word = printer.styled(Style::Bad, "not taken in");
            printer.line(&format!("{name}  {word}: {}", one_line(why)));
        }
    }
    for finding in &imported.findings {
        let word = finding.severity.word();
        printer.line(&format!("  {word}: {}", one_line(&finding.message)));
    }
}

/// Runs `export`.
pub(crate) fn export(arguments: &Export, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_at(&arguments.home)?;
    let text = engine.export(&arguments.names)?;
    match &arguments.output {
        Some(path) => {
            fs::write(path, json_line(&text))
                .with_context(|| format!("could not write `{}`", path.display()))?;
        }
        None => printer.json_text(&text),
    }
    Ok(Exit::Done)
}

/// Runs `publish`.
pub(crate) fn publish(arguments: &Many, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_for_one_call(&arguments.common)?;
    let runtime = wiring::runtime()?;
    let mut exit = Exit::Done;
    let mut entries = Vec::new();
    for name in &arguments.names {
        let passed = runtime.block_on(engine.publish(name, Origin::Cli))?;
        if !passed.ok {
            exit = Exit::No;
        }
        if printer.format() == Format::Json {
            entries.push(json!({"name": name, "published": passed.ok, "error": passed.error}));
            continue;
        }
        match &passed.error {
            None => {
                let word = printer.styled(Style::Good, "published");
                printer.line(&format!("{name}  {word}"));
            }
            Some(error) => {
                let word = printer.styled(Style::Bad, "stays a draft");
                let message = one_line(&error.message);
                printer.line(&format!("{name}  {word}: {}: {message}", error.code));
            }
        }
    }
    if printer.format() == Format::Json {
        printer.json(&Value::Array(entries));
    }
    Ok(exit)
}

/// Runs `unpublish`.
pub(crate) fn unpublish(arguments: &Many, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine(&arguments.common)?;
    let mut entries = Vec::new();
    for name in &arguments.names {
        let was = engine.unpublish(name)?;
        let word = if was { "draft again" } else { "was a draft" };
        match printer.format() {
            Format::Json => entries.push(json!({"name": name, "wasPublished": was})),
            Format::Human => printer.line(&format!("{name}  {word}")),
        }
    }
    if printer.format() == Format::Json {
        printer.json(&Value::Array(entries));
    }
    Ok(Exit::Done)
}

/// Runs `delete`.
pub(crate) fn delete(arguments: &Many, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine(&arguments.common)?;
    let mut entries = Vec::new();
    for name in &arguments.names {
        let path = engine.delete(name)?;
        match printer.format() {
            Format::Json => entries.push(json!({"name": name, "trash": path})),
            Format::Human => printer.line(&format!("{name}  moved to {}", path.display())),
        }
    }
    if printer.format() == Format::Json {
        printer.json(&Value::Array(entries));
    }
    Ok(Exit::Done)
}
