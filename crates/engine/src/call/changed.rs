//! A call that a person approved with other arguments. It is another call: its arguments
//! are checked, its risk is rated and the rules decide about it, and it runs only if it is
//! exactly what the person agreed to. Its caller is told what was changed.

use model::limits;
use model::reason::Reason;
use model::record::outcome::CallError;
use model::text;
use serde_json::Value;
use store::approvals::ChangedArguments;

use crate::engine::Engine;
use crate::gates::{self, CheckedCall};
use crate::json_change;
use crate::record::CallRecord;
use crate::refusal::{CallRefusal, Gate, GatePass, Notes as _};
use crate::request::CallRequest;
use crate::snapshot::Snapshot;

use super::question;

/// The call with the arguments that were agreed to.
pub(super) fn request(
    request: &CallRequest,
    changed: &ChangedArguments,
) -> Result<CallRequest, CallRefusal> {
    // The text comes from the store. One that does not parse is not what the person saw.
    let arguments: Value =
        serde_json::from_str(&changed.arguments).map_err(|fault| stale(&fault))?;
    Ok(CallRequest {
        arguments,
        ..request.clone()
    })
}

/// Walks the gates again, with the newest snapshot (`now`), and holds what comes out against what
/// the person saw.
pub(super) fn judge_again(
    engine: &Engine,
    now: &Snapshot,
    request: &CallRequest,
    before: &CheckedCall,
    changed: &ChangedArguments,
    record: &mut CallRecord,
) -> Result<CheckedCall, CallRefusal> {
    let variables = engine.variable_source();
    // No gate is skipped: other arguments may mean another risk or another rule.
    let checked = gates::judge(now, request, variables, engine.now_ms(), record)?;
    let asking = question::asking(engine, now, request, record, &checked, None);
    // Compares digests, not fields: whatever changed since the answer, in the call or in
    // the settings, gives another binding.
    if asking.question.binding != changed.binding {
        let refusal = stale(&"what would run is not what was agreed to");
        return record.gate(Gate::Approval, Err(refusal));
    }
    let note = "the changed call is what was agreed to";
    record.gate(Gate::Approval, Ok(GatePass::new((), note)))?;
    let was = Value::Object(before.decided.arguments.values().clone());
    let is = Value::Object(checked.decided.arguments.values().clone());
    record.tell_caller(told(&was, &is));
    Ok(checked)
}

/// What the caller is told.
fn told(was: &Value, is: &Value) -> String {
    let changes = json_change::between(was, is);
    let words: Vec<_> = changes.iter().map(json_change::JsonChange::words).collect();
    // The note repeats arguments of the caller's own size, so it is cut like those of a
    // question.
    let words = text::elided(&words.join("; "), limits::APPROVAL_ARGUMENTS_CHARS_MAX);
    format!(
        "a person changed the arguments before they approved the call, and it ran with theirs: {words}"
    )
}

fn stale(why: &dyn std::fmt::Display) -> CallRefusal {
    let message = "the tool or its policy changed since a person approved this call with changed arguments; it did not run, repeat it to ask again";
    CallRefusal::new(CallError::passing(Reason::ApprovalStale, message)).noted(why.to_string())
}
