//! A tool that is not there, and one that may not be known: the same words to all but
//! its owner.

use model::caller::{CallerKind, Origin};
use model::reason::Reason;
use model::record::outcome::CallError;
use model::text;

use crate::limit::NAME_SHOWN_CHARS_MAX;
use crate::native;
use crate::refusal::CallRefusal;
use crate::request::CallRequest;
use crate::snapshot::Snapshot;

/// Refuses a tool that cannot be used. The owner is told why; to every other caller it
/// does not exist.
pub(super) fn hidden(request: &CallRequest, name: &str, error: CallError) -> CallRefusal {
    if request.caller.kind == CallerKind::Owner {
        return CallRefusal::new(error);
    }
    // The operator reads the true reason in the audit. The caller gets the words of a
    // tool that never was (invariant 10).
    let note = error.message.clone();
    CallRefusal::new(no_such_tool(name))
        .because(error.reason)
        .noted(note)
}

/// There is no such tool; its owner is told what is known about it.
pub(super) fn absent(now: &Snapshot, request: &CallRequest, name: &str) -> CallRefusal {
    // Computed for every caller, shown to the owner alone: the note in the audit needs
    // it.
    let why = now.why_not(name);
    let mut refusal = unknown(name, why.clone());
    if request.caller.kind == CallerKind::Owner {
        // A script is not sent to what it cannot call.
        let is_callable =
            |near: &&str| request.origin != Origin::Script || !native::is_self_reference(near);
        let nearest = now
            .nearest(name)
            .filter(is_callable)
            .map(|near| format!("; did you mean `{near}`?"));
        refusal.tell_more(&format!(": {why}{}", nearest.unwrap_or_default()));
    }
    refusal
}

pub(super) fn unknown(name: &str, note: impl Into<String>) -> CallRefusal {
    CallRefusal::new(no_such_tool(name)).noted(note.into())
}

fn no_such_tool(name: &str) -> CallError {
    let name = text::elided(name, NAME_SHOWN_CHARS_MAX);
    CallError::new(Reason::ToolUnknown, format!("there is no tool `{name}`"))
}
