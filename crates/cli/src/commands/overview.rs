//! `ringfence` alone: an overview of tools, server and open questions, with commands to
//! try next. It changes nothing and creates no home.

use std::path::Path;

use anyhow::Context as _;
use engine::approve::Listing;
use model::text;
use store::serving;

use crate::arguments::HomeArguments;
use crate::output::exit::Exit;
use crate::output::printer::{Printer, Style};
use crate::settings;
use crate::wiring::{self, present};

pub(crate) fn run(printer: &mut Printer) -> anyhow::Result<Exit> {
    let home = settings::home(None).context("there is no home folder; set RINGFENCE_HOME")?;
    let version = env!("CARGO_PKG_VERSION");
    let title = printer.styled(Style::Bold, &format!("Ringfence {version}"));
    printer.line(&format!(
        "{title}: AI-agent tools in a sandbox, under your policy, with an audit log"
    ));
    printer.line("");
    let next = match present::is_home(&home) {
        true => show_home(&home, printer)?,
        false => {
            show(printer, "home", &format!("none yet at {}", home.display()));
            FIRST
        }
    };
    printer.line("");
    printer.line("Next:");
    for (command, words) in next {
        printer.line(&format!("  {command:<28}{words}"));
    }
    printer.line("");
    printer.line("`ringfence --help` lists every command.");
    Ok(Exit::Done)
}

/// What to do first.
const FIRST: &[(&str, &str)] = &[
    ("ringfence demo", "see it at work in one minute"),
    ("ringfence init", "set up: four questions"),
    ("ringfence serve", "serve the starter tools right away"),
];

/// What to do on a home that is set up.
const LATER: &[(&str, &str)] = &[
    ("ringfence list --exposed", "the tools clients can call"),
    ("ringfence connect", "configure a client"),
    ("ringfence new NAME", "write a tool"),
];

/// What to do while questions wait.
const WAITING: &[(&str, &str)] = &[
    ("ringfence approvals list", "see the questions"),
    ("ringfence approvals watch", "answer them as they come"),
    ("ringfence explain", "why a call asks"),
];

fn show_home(
    home: &Path,
    printer: &mut Printer,
) -> anyhow::Result<&'static [(&'static str, &'static str)]> {
    show(printer, "home", &home.display().to_string());
    let arguments = HomeArguments {
        home: Some(home.to_owned()),
        json: false,
    };
    let engine = wiring::engine_at(&arguments)?;
    let now = engine.registry().current();
    let running = serving::running(home)?.into_iter();
    let running: Vec<_> = running.map(|server| server.listen.to_string()).collect();
    let server = match running.is_empty() {
        false => format!("running at {}", running.join(" and at ")),
        true => {
            let listen = &now.config.serve.listen;
            format!("not running; `ringfence serve` starts it at {listen}")
        }
    };
    show(printer, "server", &server);
    let exposed = now
        .tools()
        .filter(|tool| now.exposed(&tool.usable.document, tool.source).is_yes())
        .count();
    let tools = format!("{exposed} exposed, {} in all", now.tools().count());
    show(printer, "tools", &tools);
    if !now.set_aside.is_empty() {
        let words = text::count(now.set_aside.len(), "file");
        let words = format!("{words} cannot be used: `ringfence list` says why");
        show(printer, "attention", &words);
    }
    let waiting = engine.approvals().list(Listing::Pending)?.len();
    show(printer, "waiting", &text::count(waiting, "question"));
    Ok(if waiting > 0 { WAITING } else { LATER })
}

fn show(printer: &mut Printer, word: &str, words: &str) {
    printer.line(&format!("{word:<10} {}", text::one_line(words)));
}
