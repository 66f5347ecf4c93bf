//! `new`, `import`, `export`, `publish`, `unpublish`, `delete`.

use std::fs;

use anyhow::Context as _;
use engine::life::Imported;
use model::caller::Origin;
use model::text::{elided, json_line, one_line, shell_argument};
use serde_json::{Value, json};

use crate::arguments::{Export, ImportArguments, Many, New, Publish};
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::output::progress::Bar;
use crate::source::{self, SourceText};
use crate::wiring;
use crate::wiring::consent;

pub(crate) fn new(arguments: &New, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_at(&arguments.home)?;
    let path = engine.create(&arguments.name)?;
    let name = &arguments.name;
    match printer.format() {
        Format::Json => printer.json(&json!({"name": name, "file": path})),
        Format::Human => {
            printer.line(&path.display().to_string());
            let name = shell_argument(name);
            printer.note(&format!(
                "edit it, then: ringfence test {name} && ringfence publish {name}"
            ));
        }
    }
    Ok(Exit::Done)
}

pub(crate) fn import(arguments: &ImportArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_at(&arguments.home)?;
    let how = engine::life::ImportOptions {
        replace: arguments.replace,
        prefix: arguments.prefix.clone(),
        renames: arguments.rename.iter().cloned().collect(),
    };
    let mut exit = Exit::Done;
    let mut entries = Vec::new();
    let (mut taken, mut total) = (0, 0);
    let mut unused: Vec<_> = how.renames.keys().cloned().collect();
    let bar = Bar::begin("import", printer.format());
    for (index, path) in arguments.files.iter().enumerate() {
        let words = format!("import {}", path.display());
        bar.set(&words, index, arguments.files.len());
        let text = match source::documents(path) {
            Ok(SourceText::Text(text)) => text,
            Ok(SourceText::Unusable(why)) => {
                let shown = path.display();
                printer.note(&format!("error: `{shown}` cannot be imported: {why}"));
                exit = Exit::CouldNot;
                continue;
            }
            Err(error) => {
                printer.error(&error);
                exit = Exit::CouldNot;
                continue;
            }
        };
        for imported in engine.import_as(&text, &how)? {
            total += 1;
            taken += usize::from(imported.ok);
            unused.retain(|name| Some(name) != imported.was.as_ref());
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
    } else if total > 1 {
        printer.line(&format!("{taken} imported, {} not", total - taken));
    }
    for name in unused {
        printer.note(&format!(
            "warning: `--rename {name}=…`: no document has that name"
        ));
    }
    Ok(exit)
}

fn import_entry(imported: &Imported) -> Value {
    json!({
        "name": imported.name,
        "was": imported.was,
        "ok": imported.ok,
        "error": imported.why,
        "variables": imported.variables,
        "findings": imported.findings,
    })
}

fn show_imported(imported: &Imported, printer: &mut Printer) {
    let name = imported.name.as_deref().unwrap_or("(no name)");
    let name = printer.styled(Style::Bold, &elided(name, 60));
    let was = imported
        .was
        .as_deref()
        .map(|was| format!("  (was {})", elided(was, 60)));
    let was = was.unwrap_or_default();
    match &imported.why {
        None => printer.line(&format!("{name}  draft{was}")),
        Some(why) => {
            let word = printer.styled(Style::Bad, "not imported");
            printer.line(&format!("{name}  {word}: {}{was}", one_line(why)));
        }
    }
    for variable in &imported.variables {
        printer.line(&format!("  variable {}", variable.words()));
    }
    for finding in &imported.findings {
        let word = finding.severity.word();
        printer.line(&format!("  {word}: {}", one_line(&finding.message)));
    }
}

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

pub(crate) fn publish(arguments: &Publish, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_for_one_call(&arguments.common)?;
    let runtime = wiring::runtime()?;
    let trial = consent::trial(&arguments.trial, None)?;
    let yes = arguments.trial.yes;
    each(&arguments.names, printer, |name, printer| {
        let tool = engine.own_tool(name)?;
        consent::settle(&engine, &tool.usable, None, yes)?;
        let passed = runtime.block_on(engine.publish_with(name, Origin::Cli, &trial))?;
        let exit = if passed.ok { Exit::Done } else { Exit::No };
        let entry = json!({
            "name": name, "published": passed.ok, "tried": passed.tried, "error": passed.error,
        });
        let line = match &passed.error {
            None => {
                let word = printer.styled(Style::Good, "published");
                format!("{name}  {word}")
            }
            Some(error) => {
                let word = printer.styled(Style::Bad, "stays a draft");
                let message = one_line(&error.message);
                format!("{name}  {word}: {}: {message}", error.code)
            }
        };
        Ok((exit, entry, line))
    })
}

pub(crate) fn unpublish(arguments: &Many, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine(&arguments.common)?;
    each(&arguments.names, printer, |name, _| {
        let was = engine.unpublish(name)?;
        let word = if was { "draft again" } else { "was a draft" };
        let entry = json!({"name": name, "wasPublished": was});
        Ok((Exit::Done, entry, format!("{name}  {word}")))
    })
}

pub(crate) fn delete(arguments: &Many, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine(&arguments.common)?;
    each(&arguments.names, printer, |name, _| {
        let path = engine.delete(name)?;
        let entry = json!({"name": name, "trash": path});
        let line = format!("{name}  moved to {}", path.display());
        Ok((Exit::Done, entry, line))
    })
}

/// Does something with each name. A failure is printed and does not stop the rest.
fn each(
    names: &[String],
    printer: &mut Printer,
    mut act: impl FnMut(&str, &mut Printer) -> anyhow::Result<(Exit, Value, String)>,
) -> anyhow::Result<Exit> {
    let mut exit = Exit::Done;
    let mut entries = Vec::new();
    for name in names {
        match act(name, printer) {
            Ok((one, entry, line)) => {
                exit = exit.max(one);
                match printer.format() {
                    Format::Json => entries.push(entry),
                    Format::Human => printer.line(&line),
                }
            }
            Err(error) => {
                exit = exit.max(Exit::CouldNot);
                printer.error(&error);
            }
        }
    }
    if printer.format() == Format::Json {
        printer.json(&Value::Array(entries));
    }
    Ok(exit)
}
