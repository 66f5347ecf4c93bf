//! Consent for documents that are tried. Anyone may have written such a document, so it
//! gets only what its owner granted.

use model::govern::consent::{self, Need};
use model::policy::EffectivePolicy;
use model::policy::risk::Risk;
use model::reason::Reason;
use model::record::outcome::CallError;
use model::text;

use crate::gates::{FoundTool, HeldTool};
use crate::limit;
use crate::refusal::{CallRefusal, GatePass, GateResult};
use crate::request::{CallPurpose, CallRequest};

/// Whether its owner must have agreed to what a call reaches for: a document that was
/// not published, or one that is to earn its publication.
pub(crate) fn is_trial(request: &CallRequest, found: &FoundTool) -> bool {
    request.purpose == CallPurpose::LocalPass || !found.registered
}

/// What a document reaches for that its owner has not granted.
pub(crate) fn wanted(found: &FoundTool, policy: &EffectivePolicy, risk: &Risk) -> Vec<Need> {
    let needs = consent::needs(&found.usable.document, policy, risk);
    // Grants name single needs, not a document. After an edit only what is new must be
    // agreed to.
    found.granted.lacks(needs)
}

/// Whether the owner agreed to everything a document reaches for.
pub(crate) fn check_consent(held: &HeldTool) -> GateResult<()> {
    let wanted = wanted(&held.found, &held.policy, &held.risk);
    if wanted.is_empty() {
        return Ok(GatePass::new((), "the owner agreed to everything it needs"));
    }
    Err(CallRefusal::new(unconsented(&wanted)))
}

/// The refusal of a document whose owner has not agreed.
pub(crate) fn unconsented(wanted: &[Need]) -> CallError {
    let words: Vec<_> = wanted.iter().map(Need::words).collect();
    let words = text::elided(&words.join(", "), limit::NEEDS_CHARS_MAX);
    let message = format!(
        "it would {words}, and you have not agreed to that; answer yes at a terminal, or pass `--yes`"
    );
    CallError::new(Reason::ConsentRequired, message)
}
