//! `ringfence trust`: what a caller earned, line by line, and what people say about
//! its work.

use anyhow::bail;
use clap::{Args, Subcommand};
use engine::trust::{TrackReport, Trust};
use model::caller::Caller;
use model::text::one_line;
use serde_json::json;

use crate::approvals::shown_time;
use crate::arguments::Home;
use crate::exit::Exit;
use crate::printer::{Format, Printer, Style};
use crate::wiring;

/// Trust only takes from the level the operator gave; the settings turn it on.
#[derive(Debug, Args)]
#[command(after_help = "Exit: 0 done, 2 could not be tried.")]
pub(crate) struct TrustArguments {
    #[command(subcommand)]
    pub(crate) command: TrustCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// Reckon what a caller earned, and explain it
    Show(ShowTrust),
    /// Say how well a caller works, from 0 to 10
    Feedback(FeedbackArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ShowTrust {
    /// The caller
    #[arg(value_name = "CALLER")]
    pub(crate) caller: String,
    #[command(flatten)]
    pub(crate) home: Home,
}

#[derive(Debug, Args)]
pub(crate) struct FeedbackArguments {
    /// The caller
    #[arg(value_name = "CALLER")]
    pub(crate) caller: String,
    /// From 0, useless, to 10, could not be better
    #[arg(value_name = "SCORE", value_parser = clap::value_parser!(u8).range(0..=10))]
    pub(crate) score: u8,
    /// About the tools of one category only
    #[arg(long, value_name = "CATEGORY")]
    pub(crate) category: Option<String>,
    /// Why, for whoever looks next
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) home: Home,
}

impl TrustArguments {
    pub(crate) fn home(&self) -> &Home {
        match &self.command {
            TrustCommand::Show(show) => &show.home,
            TrustCommand::Feedback(feedback) => &feedback.home,
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &TrustArguments, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine_at(arguments.home())?;
    match &arguments.command {
        TrustCommand::Show(show) => run_show(engine.trust(), &show.caller, printer),
        TrustCommand::Feedback(given) => run_feedback(engine.trust(), given, printer),
    }
}

fn run_show(trust: Trust<'_>, caller: &str, printer: &mut Printer) -> anyhow::Result<Exit> {
    let Some(report) = trust.show(caller)? else {
        bail!(
            "no caller `{}` was seen since trust is on",
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
    trust: Trust<'_>,
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
        bail!("there are too many callers to remember another");
    }
    match printer.format() {
        Format::Json => printer.json(&json!({
            "caller": name, "score": given.score, "category": category.map(str::to_uppercase),
        })),
        Format::Human => printer.line(&format!("{}  {} of 10", one_line(name), given.score)),
    }
    Ok(Exit::Done)
}
