//! Calls of a script that ended well and that nothing waited for: those under way when
//! it ended, which are stopped, and those that failed where the script does not look.
//!
//! Attack: none; the commonest slip of a model is to forget `await`.

use guard::CallSite;
use model::text;

use super::host::Made;

/// Warnings about one script; more say nothing new.
const WARNINGS_MAX: usize = 10;
/// Characters of a tool's name or of what it said.
const SHOWN_CHARS_MAX: usize = 200;

/// What its sender should know.
pub(crate) fn warnings(unfinished: &[Made], sites: &[CallSite]) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut left_out = 0;
    for made in unfinished {
        let Some(warning) = warning(made, sites) else {
            continue;
        };
        if warnings.len() < WARNINGS_MAX {
            warnings.push(warning);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        let more = text::count(left_out, "more call");
        warnings.push(format!("{more} without `await` failed or were stopped"));
    }
    warnings
}

fn warning(made: &Made, sites: &[CallSite]) -> Option<String> {
    let tool = text::elided(&made.tool, SHOWN_CHARS_MAX);
    let site = site(made, sites);
    if made.was_stopped() {
        let place = site.map_or_else(String::new, place);
        return Some(format!(
            "the call of `{tool}`{place} was not over when the script ended, and was stopped; write `await`"
        ));
    }
    // One that is caught is no news. Which of several calls of a tool it was is not
    // known, so what is said holds for all of them.
    let site = site.filter(|site| site.is_dropped)?;
    let fault = made.fault.as_ref()?;
    let (code, said) = (fault.code, text::elided(&fault.message, SHOWN_CHARS_MAX));
    Some(format!(
        "a call of `{tool}` failed ({code}: {said}), and nothing waits for the one{}; write `await`",
        place(site)
    ))
}

/// Where the script makes such a call: where nothing waits for it, if there is such a
/// place, and otherwise the only place there is.
fn site<'s>(made: &Made, sites: &'s [CallSite]) -> Option<&'s CallSite> {
    let is_it = |site: &&CallSite| site.tool.as_ref().is_none_or(|tool| *tool == made.tool);
    let mut found = sites.iter().filter(is_it);
    let dropped = sites.iter().filter(is_it).find(|site| site.is_dropped);
    dropped.or_else(|| found.next().filter(|_| found.next().is_none()))
}

fn place(site: &CallSite) -> String {
    format!(" at line {}, column {}", site.line, site.column)
}
