//! `ringfence callers`: lists callers, pauses and resumes them.

use anyhow::bail;
use engine::callers::{Callers, KnownCaller};
use model::caller::Caller;
use model::nearest::nearest;
use model::text::one_line;
use serde_json::json;

use crate::arguments::{CallersArguments, CallersCommand, Pause};
use crate::commands::approvals::shown_time;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::wiring;

pub(crate) fn run(arguments: &CallersArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_at(arguments.home())?;
    let callers = &engine.callers();
    match &arguments.command {
        CallersCommand::List(_) => run_list(callers, printer),
        CallersCommand::Show(name) => {
            let known = find(callers, &name.name)?;
            show(&known, printer)?;
            Ok(Exit::Done)
        }
        CallersCommand::Pause(pause) => run_pause(callers, pause, printer),
        CallersCommand::Resume(name) => run_resume(callers, &name.name, printer),
    }
}

fn run_list(callers: &Callers<'_>, printer: &mut Printer) -> anyhow::Result<Exit> {
    let known = callers.list()?;
    match printer.format() {
        Format::Json => printer.json(&serde_json::to_value(&known)?),
        Format::Human => known.iter().for_each(|one| show_line(one, printer)),
    }
    if known.is_empty() {
        printer.note("no caller was denied, is paused or has a trust level");
    }
    Ok(Exit::Done)
}

fn run_pause(callers: &Callers<'_>, pause: &Pause, printer: &mut Printer) -> anyhow::Result<Exit> {
    if pause.name.trim().is_empty() {
        bail!("name a caller");
    }
    let paused = callers.pause(&pause.name, &Caller::owner(), pause.note.as_deref())?;
    match paused {
        Some(known) => show(&known, printer)?,
        None => bail!("there are too many callers; no room for another"),
    }
    Ok(Exit::Done)
}

fn run_resume(callers: &Callers<'_>, name: &str, printer: &mut Printer) -> anyhow::Result<Exit> {
    let known = find(callers, name)?;
    let was_paused = callers.resume(&known.name, &Caller::owner())?;
    match printer.format() {
        Format::Json => printer.json(&json!({"name": known.name, "resumed": was_paused})),
        Format::Human if was_paused => printer.line(&format!("{}  resumed", known.name)),
        Format::Human => printer.line(&format!("{}  was not paused", known.name)),
    }
    Ok(if was_paused { Exit::Done } else { Exit::No })
}

fn find(callers: &Callers<'_>, name: &str) -> anyhow::Result<KnownCaller> {
    if let Some(known) = callers.find(name)? {
        return Ok(known);
    }
    let all = callers.list()?;
    let names = all.iter().map(|known| known.name.as_str());
    let near = nearest(name, names).map(|near| format!("; did you mean `{near}`?"));
    bail!(
        "there is no record of a caller `{}`{}",
        one_line(name),
        near.unwrap_or_default()
    );
}

fn show(known: &KnownCaller, printer: &mut Printer) -> anyhow::Result<()> {
    if printer.format() == Format::Json {
        printer.json(&serde_json::to_value(known)?);
        return Ok(());
    }
    show_line(known, printer);
    if let (Some(at_ms), Some(by)) = (known.paused_at_ms, &known.paused_by) {
        let why = known.paused_why.as_deref().unwrap_or("no reason given");
        let name = printer.styled(Style::Dim, "  paused");
        printer.line(&format!("{name}  {} by {by}: {why}", shown_time(at_ms)));
    }
    Ok(())
}

fn show_line(known: &KnownCaller, printer: &mut Printer) {
    let state = match known.paused {
        true => printer.styled(Style::Bad, "paused"),
        false => printer.styled(Style::Good, "active"),
    };
    let earned = known.earned.map(|level| format!("  earned {level}"));
    printer.line(&format!(
        "{}  {state}  denied {} in a row, {} in all{}",
        printer.styled(Style::Bold, &known.name),
        known.denied_in_a_row,
        known.denied_in_all,
        earned.unwrap_or_default(),
    ));
}
