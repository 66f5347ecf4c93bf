//! Asks the person at the terminal whether a document may be tested with the access it
//! needs. An earlier grant is not asked for again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use engine::Engine;
use engine::checkup::stream_place;
use engine::consent::{Consent, WantedGrants};
use engine::publish::Trial;
use model::govern::consent::Need;
use model::policy::assessment::UsableDocument;
use model::text::count;

use crate::arguments::TrialWords;
use crate::output::console;
use crate::output::sheet;

/// Gets consent for testing a document, from a person or `--yes`. Without either nothing
/// is granted, and the call that follows is refused with that reason.
pub(crate) fn settle(
    engine: &Engine,
    usable: &Arc<UsableDocument>,
    place: Option<&Path>,
    yes: bool,
) -> anyhow::Result<()> {
    let wanted = engine.wants(usable, place);
    if wanted.needs.is_empty() {
        return Ok(());
    }
    let how = if yes {
        Consent::Flag
    } else if console::is_here() && agrees(usable, place, &wanted) {
        Consent::Terminal
    } else {
        // The call that follows is refused, and its reason names the access. A second
        // refusal here would only hide it.
        return Ok(());
    };
    engine.consent(usable, place, &wanted.needs, how)?;
    Ok(())
}

/// The trial of a document, from a file or a name.
pub(crate) fn trial(words: &TrialWords, place: Option<PathBuf>) -> anyhow::Result<Trial> {
    let files = words.files.as_ref().map(std::path::absolute).transpose()?;
    if let Some(files) = files.as_ref().filter(|files| !files.is_dir()) {
        bail!("`--files`: there is no folder `{}`", files.display());
    }
    Ok(Trial { place, files })
}

/// The place of a document's file, by which consent is kept. Standard input is no
/// place: there, consent is for exactly this document.
pub(crate) fn place(path: &Path, usable: &UsableDocument) -> io::Result<PathBuf> {
    if path == Path::new("-") {
        return Ok(stream_place(&usable.facts.digest.to_string()));
    }
    // Links resolved, so that consent belongs to the file and not to one of its names.
    path.canonicalize()
}

fn agrees(usable: &UsableDocument, place: Option<&Path>, wanted: &WantedGrants) -> bool {
    let name = sheet::name(&usable.document.name);
    let level = wanted.risk.level;
    let head = format!(
        "[risk {} {}] {name} needs access that you have not granted yet",
        level.badge(),
        level.label()
    );
    let file = place.map(|path| path.display().to_string());
    let words: Vec<_> = wanted.needs.iter().map(Need::words).collect();
    let mut parts: Vec<(&str, &str)> = file.iter().map(|file| ("file", file.as_str())).collect();
    parts.extend(words.iter().map(|words| ("it would", words.as_str())));
    if wanted.needs.contains(&Need::Write) {
        parts.push((
            "a test",
            "writes to a copy that is thrown away, never to the real folder",
        ));
    }
    let about = format!(
        "{} for {name}, for good, with risk {}",
        count(wanted.needs.len(), "thing"),
        level.badge()
    );
    console::agreed(&head, &parts, &about).unwrap_or(false)
}
