//! Search: the tools a caller may call from a script, by what they do.

use std::collections::BTreeSet;

use model::search::ask::{Answer, Ask};
use model::text;
use serde_json::{Value, json};

use super::shelf::Searchable;
use super::{Work, done, refused};
use crate::record::Stop;
use crate::run::Ran;

/// Characters of a description in a list of hits; describe has all of it.
const DESCRIPTION_CHARS_MAX: usize = 300;

pub(super) fn run(work: &Work<'_>) -> Result<Ran, Stop> {
    let top_default = work.now.config.codecall.top_k;
    let ask = Ask::read(&work.arguments, top_default).map_err(refused)?;
    let shelf = work.engine.shelf();
    let searchable = shelf.searchable(work.engine, work.now, work.request);
    let answer = answer(&ask, &searchable);
    Ok(done(shown(&answer, work, &searchable)))
}

fn answer(ask: &Ask, searchable: &Searchable) -> Answer {
    let Searchable { index, view, .. } = searchable;
    if ask.exclude.is_empty() && ask.app_ids.is_empty() {
        return ask.answer(index, view, view);
    }
    let excluded: BTreeSet<_> = ask.exclude.iter().map(String::as_str).collect();
    let of_app = |name: &str| {
        let app = searchable.app(name).unwrap_or("");
        ask.app_ids.is_empty() || ask.app_ids.iter().any(|id| id.eq_ignore_ascii_case(app))
    };
    let narrowed = index.narrowed(view, |name| !excluded.contains(name) && of_app(name));
    ask.answer(index, view, &narrowed)
}

/// The beginning of a description, on one line.
fn start(description: &str) -> String {
    let shown = text::one_line(description.trim());
    match shown.char_indices().nth(DESCRIPTION_CHARS_MAX) {
        Some((end, _)) => format!("{}…", shown.get(..end).unwrap_or_default()),
        None => shown,
    }
}

fn shown(answer: &Answer, work: &Work<'_>, searchable: &Searchable) -> Value {
    let tools = answer.tools.iter().filter_map(|hit| {
        let document = &work.now.tool(&hit.name)?.sound.document;
        Some(json!({
            "name": hit.name,
            "appId": searchable.app(&hit.name),
            "description": start(&document.description),
            "relevanceScore": hit.score,
            "matchedQueries": hit.queries,
        }))
    });
    json!({
        "tools": tools.collect::<Vec<_>>(),
        "warnings": answer.warnings,
        "totalAvailableTools": answer.total,
    })
}
