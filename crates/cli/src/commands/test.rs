//! `ringfence test`: the Local Pass of one tool, several, or all.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use engine::Engine;
use engine::publish::{Passed, Trial};
use model::caller::Origin;
use model::document::NetworkMode;
use model::document::lifecycle;
use model::document::safety::Source;
use model::policy::assessment::UsableDocument;
use model::reason::Reason;
use model::text;
use serde_json::{Value, json};

use crate::arguments::Test;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::output::progress::Bar;
use crate::wiring::consent;
use crate::wiring::{self, Subject};

/// A tool to test, or one to skip.
enum Candidate {
    Ready(Box<Ready>),
    /// Why it is skipped when all tools are tested.
    Skipped(String, String),
}

struct Ready {
    usable: Arc<UsableDocument>,
    trial: Trial,
    source: &'static str,
}

/// The counts of a run.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    /// Could not be tested.
    untried: usize,
    /// Skipped, as the command says.
    skipped: usize,
}

pub(crate) fn run(arguments: &Test, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine(&arguments.common)?;
    let candidates = if arguments.tools.is_empty() {
        every(&engine, arguments)?
    } else {
        chosen(&engine, arguments)?
    };
    let runtime = wiring::runtime()?;
    let total = candidates.len();
    let mut entries = Vec::with_capacity(total);
    let mut tally = Tally::default();
    let interrupted = runtime.block_on(async { wiring::interruptible() })?;
    let bar = Bar::begin("test", printer.format());
    for (index, candidate) in candidates.into_iter().enumerate() {
        let ready = match candidate {
            Candidate::Ready(ready) => ready,
            Candidate::Skipped(name, why) => {
                tally.skipped += 1;
                match printer.format() {
                    Format::Json => entries.push(skipped_entry(&name, &why)),
                    Format::Human => show_skipped(&name, &why, printer),
                }
                continue;
            }
        };
        let Ready {
            usable,
            trial,
            source,
        } = *ready;
        let place = trial.place.as_deref();
        // Asked before the test runs, so that one question covers everything it needs.
        consent::settle(&engine, &usable, place, arguments.trial.yes)?;
        bar.set(&usable.document.name, index, total);
        let passed = runtime.block_on(async {
            tokio::select! {
                biased;
                () = interrupted.cancelled() => None,
                passed = engine.local_pass_with(&usable, Origin::Cli, &trial) => Some(passed),
            }
        });
        let Some(passed) = passed.transpose()? else {
            return Ok(Exit::Interrupted);
        };
        tally.count(&passed);
        match printer.format() {
            Format::Json => entries.push(entry(&passed, source)),
            Format::Human => show(&passed, source, printer),
        }
        printer.emit();
    }
    if printer.format() == Format::Json {
        printer.json(&Value::Array(entries));
    } else if total > 1 {
        printer.line(&tally.words());
    }
    Ok(tally.exit())
}

impl Tally {
    fn count(&mut self, passed: &Passed) {
        match (passed.ok, passed.tried) {
            (true, _) => self.passed += 1,
            (false, true) => self.failed += 1,
            (false, false) => self.untried += 1,
        }
    }

    fn words(&self) -> String {
        let Tally {
            passed,
            failed,
            untried,
            skipped,
        } = self;
        let untried = untried + skipped;
        format!("{passed} passed, {failed} failed, {untried} not tried")
    }

    fn exit(&self) -> Exit {
        match (self.failed, self.untried) {
            (0, 0) => Exit::Done,
            (0, _) => Exit::CouldNot,
            (_, _) => Exit::No,
        }
    }
}

/// Why a server's tool is not tested here.
const SERVER_TOOL: &str = "a tool of an MCP server: it is reviewed, not tested";

/// Every tool except those that lack a variable, bundled ones that need access, and
/// with `--offline` those that need the network.
fn every(engine: &Engine, arguments: &Test) -> anyhow::Result<Vec<Candidate>> {
    let environment = engine.environment()?;
    let now = engine.registry().current();
    let mut candidates = Vec::new();
    for tool in now.tools() {
        let document = &tool.usable.document;
        let network = tool.usable.facts.policy.network != NetworkMode::Blocked;
        let variables = lifecycle::requirements(document).next().is_some();
        let reaches_out = tool.source == Source::Builtin && (network || variables);
        let missing = lifecycle::missing(document, &environment);
        let why = if tool.source == Source::Server {
            Some(SERVER_TOOL.to_owned())
        } else if !missing.is_empty() {
            Some(format!("not set: {}", missing.join(", ")))
        } else if arguments.offline && network {
            Some("needs the network".to_owned())
        } else if reaches_out && !arguments.trial.yes {
            Some("bundled, and needs access: name it, or use `--yes`".to_owned())
        } else {
            None
        };
        candidates.push(match why {
            Some(why) => Candidate::Skipped(document.name.clone(), why),
            None => ready(Arc::clone(&tool.usable), None, tool.source, arguments)?,
        });
    }
    Ok(candidates)
}

fn chosen(engine: &Engine, arguments: &Test) -> anyhow::Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    let mut push = |usable: Arc<UsableDocument>, place, source| -> anyhow::Result<()> {
        let network = usable.facts.policy.network != NetworkMode::Blocked;
        let name = usable.document.name.clone();
        candidates.push(if source == Source::Server {
            Candidate::Skipped(name, SERVER_TOOL.to_owned())
        } else if arguments.offline && network {
            Candidate::Skipped(name, "needs the network".to_owned())
        } else {
            ready(usable, place, source, arguments)?
        });
        Ok(())
    };
    for word in &arguments.tools {
        match Subject::of(engine, word) {
            Subject::Name(name) => {
                let tool = engine.tool(&name)?;
                push(tool.usable, None, tool.source)?;
            }
            Subject::File(path) => {
                for (document, usable) in wiring::documents(engine, &path)? {
                    let Some(usable) = usable else {
                        bail!("`{}`: {}", path.display(), wiring::unusable(&document));
                    };
                    let place = consent::place(&path, &usable)?;
                    push(usable, Some(place), Source::User)?;
                }
            }
        }
    }
    Ok(candidates)
}

fn ready(
    usable: Arc<UsableDocument>,
    place: Option<PathBuf>,
    source: Source,
    arguments: &Test,
) -> anyhow::Result<Candidate> {
    let source = match (source, &place) {
        (Source::Builtin, _) => "bundled",
        (Source::Server, _) => "server",
        (Source::User, None) => "own",
        (Source::User, Some(_)) => "file",
    };
    Ok(Candidate::Ready(Box::new(Ready {
        usable,
        trial: consent::trial(&arguments.trial, place)?,
        source,
    })))
}

fn entry(passed: &Passed, source: &str) -> Value {
    let outcome = passed
        .outcome
        .as_ref()
        .map(|outcome| outcome.get().to_json());
    let field = |name: &str| {
        let found = outcome.as_ref().and_then(|outcome| outcome.get(name));
        found.cloned().unwrap_or_default()
    };
    json!({
        "name": passed.name,
        "source": source,
        "ok": passed.ok,
        "tried": passed.tried,
        "result": field("result"),
        "error": passed.error,
        "console": if outcome.is_some() { field("console") } else { json!([]) },
        "elapsedMs": field("elapsedMs"),
    })
}

fn skipped_entry(name: &str, why: &str) -> Value {
    json!({
        "name": name,
        "ok": false,
        "tried": false,
        "result": null,
        "error": {"code": Reason::LocalPassNotTried.code(), "message": why},
        "console": [],
        "elapsedMs": 0,
    })
}

fn show(passed: &Passed, source: &str, printer: &mut Printer) {
    let name = text::elided(&passed.name, 60);
    let elapsed = passed.outcome.as_ref().map(|outcome| {
        let elapsed = outcome.get().elapsed_ms();
        printer.styled(Style::Dim, &format!("  {elapsed:.1} ms"))
    });
    let elapsed = elapsed.unwrap_or_default();
    // A bundled tool may have the name of a document that was meant.
    let source = if source == "bundled" { "  bundled" } else { "" };
    let (style, word) = match (passed.ok, passed.tried) {
        (true, _) => (Style::Good, "pass"),
        (false, true) => (Style::Bad, "FAIL"),
        (false, false) => (Style::Caution, "not tried"),
    };
    let word = printer.styled(style, word);
    printer.line(&format!("{word}  {name}{elapsed}{source}"));
    if let Some(error) = &passed.error {
        let message = text::one_line(&error.message);
        printer.line(&format!("      {}: {message}", error.code));
    }
}

fn show_skipped(name: &str, why: &str, printer: &mut Printer) {
    let word = printer.styled(Style::Dim, "not tried");
    printer.line(&format!("{word}  {}  ({why})", text::elided(name, 60)));
}
