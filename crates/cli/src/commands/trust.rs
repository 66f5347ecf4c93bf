//! `ringfence trust`: explains the trust level of a caller, and records feedback on its
//! work.

use anyhow::bail;
use engine::trust::{TrackReport, TrustAdmin};
use model::caller::Caller;
use model::text::one_line;
use serde_json::json;

use crate::arguments::{FeedbackArguments, TrustArguments, TrustCommand};
use crate::commands::approvals::shown_time;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::wiring;

pub(crate) fn run(arguments: &TrustArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_at(arguments.home())?;
    match &arguments.command {
        TrustCommand::Show(show) => run_show(engine.trust(), &show.caller, printer),
        TrustCommand::Feedback(given) => run_feedback(engine.trust(), given, printer),
    }
}

fn run_show(trust: TrustAdmin<'_>, caller: &str, printer: &mut Printer) -> anyhow::Result<Exit> {
    let Some(report) = trust.show(caller)? else {
        bail!(
            "no caller `{}` was seen since trust was turned on",
            one_line(caller)
        );
    };
    if printer.format() == Format::Json {
        printer.json(&serde_json::to_value(&report)?);
        return Ok(Exit::Done);
    }
    let name = printer.styled(Style::Bold, &report.caller);
    printer.line(&format!("{name}  {}", report.strategy));
    for track in &report.tracks {
        show_track(track, printer);
    }
    match (report.strategy, report.covered) {
        ("disabled", _) => printer.note("trust is off: the operator's levels hold"),
        (_, false) => printer.note("trust does not cover this caller: the operator's level holds"),
        (_, true) => {}
    }
    Ok(Exit::Done)
}

fn show_track(track: &TrackReport, printer: &mut Printer) {
    let about = track.category.as_deref().unwrap_or("all tools");
    let level = printer.styled(Style::Bold, track.level);
    let since = shown_time(track.since_ms);
    printer.line(&format!("  {}  {level}  since {since}", one_line(about)));
    for line in &track.lines {
        printer.line(&format!("    {}", one_line(line)));
    }
}

fn run_feedback(
    trust: TrustAdmin<'_>,
    given: &FeedbackArguments,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    let name = given.caller.trim();
    if name.is_empty() {
        bail!("name a caller");
    }
    let category = given.category.as_deref();
    let owner = Caller::owner();
    if !trust.feedback(name, &owner, given.score, category, given.note.as_deref())? {
        bail!("there are too many callers; no room for another");
    }
    match printer.format() {
        Format::Json => printer.json(&json!({
            "caller": name, "score": given.score, "category": category.map(str::to_uppercase),
        })),
        Format::Human => printer.line(&format!("{}  {} of 10", one_line(name), given.score)),
    }
    Ok(Exit::Done)
}
