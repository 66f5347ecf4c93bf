//! Asks the person at the terminal whether a document may be tried with what it
//! reaches for. What they said yes to is not asked again.

use std::io::{self, BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use engine::Engine;
use engine::consent::{Consent, Wanted};
use engine::publish::Trial;
use model::assessment::Sound;
use model::consent::Need;
use model::text::{count, elided};
use rustix::termios::QueueSelector;

use crate::approvals;
use crate::arguments::TrialWords;
use crate::printer::Printer;

/// Settles whether a document may be tried, as far as a person or `--yes` can. Without
/// either nothing is granted, and the call that follows is refused and says so.
pub(crate) fn settle(
    engine: &Engine,
    sound: &Arc<Sound>,
    place: Option<&Path>,
    yes: bool,
    printer: &mut Printer,
) -> anyhow::Result<()> {
    let wanted = engine.wants(sound, place);
    if wanted.needs.is_empty() {
        return Ok(());
    }
    let how = if yes {
        Consent::Flag
    } else if approvals::is_terminal() && agrees(sound, place, &wanted, printer) {
        Consent::Terminal
    } else {
        return Ok(());
    };
    engine.consent(sound, place, &wanted.needs, how)?;
    Ok(())
}

/// What a document of a file or a name is tried with.
pub(crate) fn trial(words: &TrialWords, place: Option<PathBuf>) -> anyhow::Result<Trial> {
    let files = words.files.as_ref().map(std::path::absolute).transpose()?;
    if let Some(files) = files.as_ref().filter(|files| !files.is_dir()) {
        bail!("`--files`: there is no folder `{}`", files.display());
    }
    Ok(Trial { place, files })
}

/// The place of a document's file, by which consent is kept. Standard input is no
/// place: there, consent is for exactly this document.
pub(crate) fn place(path: &Path, sound: &Sound) -> io::Result<PathBuf> {
    if path == Path::new("-") {
        return Ok(PathBuf::from(format!("- {}", sound.judged.digest)));
    }
    path.canonicalize()
}

fn agrees(sound: &Sound, place: Option<&Path>, wanted: &Wanted, printer: &mut Printer) -> bool {
    let name = elided(&sound.document.name, 60);
    let of = place.map(|path| format!(" of {}", elided(&path.display().to_string(), 200)));
    printer.note(&format!(
        "`{name}`{} reaches for what you have not agreed to yet. It would:",
        of.unwrap_or_default()
    ));
    for need in &wanted.needs {
        printer.note(&format!("  - {}", need.words()));
    }
    if wanted.needs.contains(&Need::Write) {
        printer.note("  (a test writes to a copy that is thrown away, never to the real folder)");
    }
    let level = wanted.risk.level;
    // What was typed before the question was shown was meant for something else.
    if rustix::termios::tcflush(io::stdin(), QueueSelector::IFlush).is_err() {
        return false;
    }
    let _ = write!(
        io::stderr(),
        "[risk {} {}] `{name}`: agree to {}, for good? [y = yes; anything else = no] ",
        level.badge(),
        level.label(),
        count(wanted.needs.len(), "thing")
    );
    let mut line = String::new();
    let agrees = match io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => false,
        Ok(_) => matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"),
    };
    let said = if agrees {
        "you agreed"
    } else {
        "you did not agree"
    };
    printer.note(&format!("{said} to what `{name}` reaches for"));
    agrees
}
