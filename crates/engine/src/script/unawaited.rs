//! What a script left behind when it ended: calls that were still under way, and promises
//! that were rejected and that nothing handled.
//!
//! The most frequent mistake of models is to forget `await`. The guard warns where it sees one in
//! the text; here the sandbox has seen how it ended.

use guard::CallSite;
use model::text;
use sandbox::job::{Rejections, Thrown};
use serde_json::Value;

use super::calls::ScriptCall;
use super::host::ScriptHost;

use crate::limit;

/// Calls that were under way when the script ended.
pub(crate) fn stopped(unanswered: &[ScriptCall], sites: &[CallSite]) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut left_out = 0;
    for made in unanswered {
        if warnings.len() == limit::SCRIPT_UNAWAITED_MAX {
            left_out += 1;
            continue;
        }
        let tool = text::elided(&made.tool, limit::NAME_SHOWN_CHARS_MAX);
        let place = site(made, sites).map_or_else(String::new, |site| at(site.line, site.column));
        warnings.push(format!(
            "the call of `{tool}`{place} was not over when the script ended, and was stopped; write `await`"
        ));
    }
    if left_out > 0 {
        let more = text::count(left_out, "more call");
        warnings.push(format!("{more} without `await` were stopped"));
    }
    warnings
}

/// Where the script makes such a call: where nothing waits for it, if there is such a
/// place, and otherwise the only place there is.
fn site<'s>(made: &ScriptCall, sites: &'s [CallSite]) -> Option<&'s CallSite> {
    let is_it = |site: &&CallSite| site.tool.as_ref().is_none_or(|tool| *tool == made.tool);
    let mut found = sites.iter().filter(is_it);
    let dropped = sites.iter().filter(is_it).find(|site| site.is_dropped);
    dropped.or_else(|| found.next().filter(|_| found.next().is_none()))
}

/// Promises that nothing handled: a call's, or the script's own. `place` finds the
/// author's own line and column.
pub(crate) fn rejected(
    rejections: &Rejections,
    host: &ScriptHost<'_>,
    place: impl Fn(&Thrown) -> Option<(u32, u32)>,
) -> Vec<String> {
    let mut warnings: Vec<(String, usize)> = Vec::new();
    for thrown in &rejections.told {
        let place = place(thrown).map_or_else(String::new, |(line, column)| at(line, column));
        let warning = match failed_call(thrown, host) {
            Some(made) => failed(&made, &place),
            None => thrown_away(thrown, &place),
        };
        // One line of a loop, and one failure of several promises, is one warning.
        match warnings.iter_mut().find(|(known, _)| *known == warning) {
            Some((_, times)) => *times += 1,
            None => warnings.push((warning, 1)),
        }
    }
    let mut warnings: Vec<String> = warnings.into_iter().map(counted).collect();
    let told = u32::try_from(rejections.told.len()).unwrap_or(u32::MAX);
    let more = usize::try_from(rejections.count.saturating_sub(told)).unwrap_or(usize::MAX);
    if more > 0 {
        let more = text::count(more, "more promise");
        warnings.push(format!("{more} without a handler failed"));
    }
    warnings
}

/// The call whose failure this is, if it is one.
pub(crate) fn failed_call(thrown: &Thrown, host: &ScriptHost<'_>) -> Option<ScriptCall> {
    let helper: Value = serde_json::from_str(thrown.helper.as_deref()?).ok()?;
    let call = helper.get("call")?.as_u64()?;
    host.calls().get(usize::try_from(call).ok()?)
}

fn counted((warning, times): (String, usize)) -> String {
    match times {
        1 => warning,
        times => format!("{warning} ({times} times)"),
    }
}

fn failed(made: &ScriptCall, place: &str) -> String {
    let tool = text::elided(&made.tool, limit::NAME_SHOWN_CHARS_MAX);
    let said = made.fault.as_ref().map_or_else(String::new, |fault| {
        let said = text::elided(&fault.message, limit::NAME_SHOWN_CHARS_MAX);
        format!(" ({}: {said})", fault.code)
    });
    format!("the call of `{tool}`{place} failed{said}, and nothing handles that; write `await`")
}

fn thrown_away(thrown: &Thrown, place: &str) -> String {
    let name = text::elided(&thrown.name, limit::NAME_SHOWN_CHARS_MAX);
    let said = match thrown.message.as_str() {
        "" => name,
        message => format!(
            "{name}: {}",
            text::elided(message, limit::NAME_SHOWN_CHARS_MAX)
        ),
    };
    format!(
        "a promise was rejected{place} ({said}), and nothing handles that; write `await`, or `.catch(…)`"
    )
}

fn at<N: std::fmt::Display>(line: N, column: N) -> String {
    format!(" at line {line}, column {column}")
}
