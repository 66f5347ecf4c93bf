//! What rules that are only tried say about a call that is made.

use model::govern::rules::{Decision, Effect};
use model::policy::host_bound::HostBounds;
use model::reason::Reason;
use model::record::audit;
use model::record::outcome::Retry;
use model::text;
use model::word::Word as _;

use crate::gates;
use crate::limit::REASON_CHARS_MAX;
use crate::refusal::CallRefusal;
use crate::request::CallRequest;
use crate::snapshot::Snapshot;

/// What the candidate beside the live rules says about a call, if there is one and
/// it says something else. It has no part in what happens.
pub(crate) fn shadow(now: &Snapshot, request: &CallRequest, at_ms: i64) -> Option<audit::Shadow> {
    let shadow = now.shadow.as_deref()?;
    // Both verdicts are computed here, at one moment and without counters, so that a
    // difference comes from the rules alone.
    let live = verdict(now, request, at_ms);
    let tried = verdict(&shadow.snapshot, request, at_ms);
    (live.effect != tried.effect).then(|| audit::Shadow {
        candidate: text::elided(&shadow.file, REASON_CHARS_MAX),
        live: live.effect.word().to_owned(),
        verdict: tried.effect.word().to_owned(),
        // Cut when it is masked.
        reason: tried.reason,
        rule: tried.rule,
    })
}

/// What settings and rules alone say about a call.
fn verdict(now: &Snapshot, request: &CallRequest, at_ms: i64) -> Decision {
    // A refusal of an earlier gate counts as a denial: a candidate that hides a tool
    // differs from rules that allow it.
    gates::rule(now, request, at_ms).unwrap_or_else(|refusal| denied(&refusal))
}

/// A gate's refusal as a decision.
pub(crate) fn denied(refusal: &CallRefusal) -> Decision {
    Decision {
        effect: Effect::Deny,
        reason: refusal.why().to_owned(),
        rule: None,
        code: Some(refusal.reason()),
        remedy: None,
        retry: Retry::Never,
        bounds: HostBounds::default(),
    }
}

/// Whether a gate's refusal is for settings and rules to change.
pub(crate) fn is_ruled(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::AccessDenied | Reason::LevelDenied | Reason::ToolNotExposed
    )
}
