//! Search: the tools a caller may call from a script, by what they do.

use std::borrow::Cow;

use find::search::ask::{SearchAnswer, SearchRequest};
use model::text;
use serde_json::{Value, json};

use crate::limit;
use crate::native::refuse_arguments;
use crate::refusal::CallRefusal;
use crate::run::RunResult;
use crate::search_index::Searchable;
use crate::work::Work;

pub(crate) fn run(work: &Work<'_>) -> Result<RunResult, CallRefusal> {
    let top_default = work.now.config.codecall.top_k;
    let ask = SearchRequest::read(&work.arguments, top_default).map_err(refuse_arguments)?;
    let index = work.engine.search_index();
    let variables = work.engine.variable_source();
    let value = index.search(work.now, work.request, variables, |searchable| {
        shown(&answer(&ask, searchable), work, searchable)
    });
    Ok(RunResult::done(value))
}

fn answer(ask: &SearchRequest, searchable: &Searchable<'_>) -> SearchAnswer {
    let (index, all) = (searchable.index, &*searchable.view);
    let mut narrowed = Cow::Borrowed(all);
    if !ask.app_ids.is_empty() {
        let is_wanted = |app: &str| ask.app_ids.iter().any(|id| id.eq_ignore_ascii_case(app));
        narrowed = Cow::Owned(index.within(all, is_wanted));
    }
    if !ask.exclude.is_empty() {
        let excluded = ask.exclude.iter().map(String::as_str);
        narrowed = Cow::Owned(index.without(&narrowed, excluded));
    }
    ask.answer(index, all, &narrowed)
}

/// The beginning of a description, on one line.
fn start(description: &str) -> String {
    let shown = text::one_line(description.trim());
    match shown.char_indices().nth(limit::FOUND_DESCRIPTION_CHARS_MAX) {
        Some((end, _)) => format!("{}…", shown.get(..end).unwrap_or_default()),
        None => shown,
    }
}

fn shown(answer: &SearchAnswer, work: &Work<'_>, searchable: &Searchable<'_>) -> Value {
    let tools = answer.tools.iter().filter_map(|hit| {
        let document = &work.now.tool(&hit.name)?.usable.document;
        Some(json!({
            "name": hit.name,
            "appId": searchable.index.app(&hit.name),
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
