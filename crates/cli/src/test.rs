//! `ringfence test`: the Local Pass of one tool, several, or all.

use std::sync::Arc;

use anyhow::bail;
use engine::Engine;
use engine::publish::Passed;
use model::assessment::Sound;
use model::caller::Origin;
use model::document::NetworkMode;
use model::lifecycle;
use model::text;
use serde_json::{Value, json};

use crate::arguments::Test;
use crate::exit::Exit;
use crate::printer::{self, Format, Printer, Style};
use crate::wiring::{self, Subject};

/// What is to be tested.
enum Candidate {
    Ready(Arc<Sound>),
    /// Why it is left out.
    Skipped(String, String),
}

/// Runs the command.
pub(crate) fn run(arguments: &Test, printer: &mut Printer) -> anyhow::Result<Exit> {
    let engine = wiring::engine(&arguments.common)?;
    let candidates = if arguments.tools.is_empty() {
        every(&engine, arguments.offline)?
    } else {
        chosen(&engine, arguments)?
    };
    let runtime = wiring::runtime()?;
    let total = candidates.len();
    let mut entries = Vec::with_capacity(total);
    let (mut failed, mut skipped) = (0, 0);
    let interrupted = runtime.block_on(async { wiring::interruptible() })?;
    for (index, candidate) in candidates.into_iter().enumerate() {
        let sound = match candidate {
            Candidate::Ready(sound) => sound,
            Candidate::Skipped(name, why) => {
                skipped += 1;
                show_skipped(&name, &why, printer);
                continue;
            }
        };
        progress(index, total, &sound.document.name);
        let passed = runtime.block_on(async {
            tokio::select! {
                biased;
                () = interrupted.cancelled() => None,
                passed = engine.local_pass(&sound, Origin::Cli) => Some(passed),
            }
        });
        printer::clear_progress();
        let Some(passed) = passed.transpose()? else {
            return Ok(Exit::Interrupted);
        };
        failed += usize::from(!passed.ok);
        match printer.format() {
            Format::Json => entries.push(entry(&passed)),
            Format::Human => show(&passed, printer),
        }
        printer.emit();
    }
    if printer.format() == Format::Json {
        printer.json(&Value::Array(entries));
    } else if total > 1 {
        let passed = total - failed - skipped;
        printer.line(&format!(
            "{passed} passed, {failed} failed, {skipped} left out"
        ));
    }
    Ok(if failed == 0 { Exit::Done } else { Exit::No })
}

/// Every tool, but for those that lack a variable and, if asked, those that need
/// the network.
fn every(engine: &Engine, offline: bool) -> anyhow::Result<Vec<Candidate>> {
    let environment = engine.environment()?;
    let now = engine.registry().current();
    let mut candidates = Vec::new();
    for tool in now.tools() {
        let name = tool.sound.document.name.clone();
        let missing = lifecycle::missing(&tool.sound.document, &environment);
        candidates.push(if !missing.is_empty() {
            Candidate::Skipped(name, format!("not set: {}", missing.join(", ")))
        } else if offline && tool.sound.judged.policy.network != NetworkMode::Blocked {
            Candidate::Skipped(name, "needs the network".to_owned())
        } else {
            Candidate::Ready(Arc::clone(&tool.sound))
        });
    }
    Ok(candidates)
}

fn chosen(engine: &Engine, arguments: &Test) -> anyhow::Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    for word in &arguments.tools {
        match Subject::of(engine, word) {
            Subject::Name(name) => candidates.push(Candidate::Ready(engine.tool(&name)?.sound)),
            Subject::File(path) => {
                for (document, sound) in wiring::documents(engine, &path)? {
                    match sound {
                        Some(sound) => candidates.push(Candidate::Ready(sound)),
                        None => bail!("`{}`: {}", path.display(), wiring::unusable(&document)),
                    }
                }
            }
        }
    }
    Ok(candidates)
}

fn entry(passed: &Passed) -> Value {
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
        "ok": passed.ok,
        "result": field("result"),
        "error": passed.error,
        "console": if outcome.is_some() { field("console") } else { json!([]) },
        "elapsedMs": field("elapsedMs"),
    })
}

fn show(passed: &Passed, printer: &mut Printer) {
    let name = text::elided(&passed.name, 60);
    let elapsed = passed.outcome.as_ref().map(|outcome| {
        let elapsed = outcome.get().elapsed_ms();
        printer.styled(Style::Dim, &format!("  {elapsed:.1} ms"))
    });
    let elapsed = elapsed.unwrap_or_default();
    match &passed.error {
        None => {
            let word = printer.styled(Style::Good, "pass");
            printer.line(&format!("{word}  {name}{elapsed}"));
        }
        Some(error) => {
            let word = printer.styled(Style::Bad, "FAIL");
            let message = text::one_line(&error.message);
            printer.line(&format!("{word}  {name}{elapsed}"));
            printer.line(&format!("      {}: {message}", error.code));
        }
    }
}

fn show_skipped(name: &str, why: &str, printer: &mut Printer) {
    if printer.format() == Format::Human {
        let word = printer.styled(Style::Dim, "skip");
        printer.line(&format!("{word}  {}  ({why})", text::elided(name, 60)));
    }
}

/// Where a person waits, they see for what.
fn progress(index: usize, total: usize, name: &str) {
    if total > 1 {
        let name = text::elided(name, 40);
        printer::progress(&format!("[{}/{total}] {name}", index + 1));
    }
}
