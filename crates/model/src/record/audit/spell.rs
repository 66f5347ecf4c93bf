//! Openings and closings as canonical JSON, without a tree in between: two of
//! these are spelled for every call, and the general way costs more than the rest
//! of the record.
//!
//! Fields are written in canonical order. Each function takes its type apart by name,
//! so that a new field does not compile until it is spelled, and a property holds the
//! result against the general way.

use crate::canonical::{self, CanonicalError, Object};
use crate::record::audit::anchor::Anchor;
use crate::record::audit::notice::Notice;
use crate::record::audit::{
    Closing, Failure, GateRecord, Opening, Shadow, SharedFacts, Timing, ToolFacts,
};

/// The canonical text of an opening.
pub fn opening(opening: &Opening) -> Result<String, CanonicalError> {
    let Opening {
        call_id,
        parent_id,
        at_ms,
        origin,
        caller,
        tool,
        arguments_digest,
    } = opening;
    let mut object = Object::new(512);
    object.text("argumentsDigest", arguments_digest)?;
    object.integer("atMs", *at_ms)?;
    object.text("callId", call_id)?;
    object.text("caller", caller)?;
    object.text("origin", origin.word())?;
    object.maybe_text("parentId", parent_id.as_deref())?;
    object.text("tool", tool)?;
    Ok(object.end())
}

/// The canonical text of a closing.
pub fn closing(closing: &Closing) -> Result<String, CanonicalError> {
    let Closing {
        at_ms,
        status,
        error,
        tool,
        gates,
        arguments,
        result_digest,
        events,
        events_dropped,
        shadow,
        timing,
    } = closing;
    let facts = tool.as_ref().map(SharedFacts::text).transpose()?;
    // Room for all of it at once: growing costs more than the rest.
    let mut object = Object::new(1536 + facts.map_or(0, str::len));
    if let Some(arguments) = arguments {
        object.value("arguments", arguments)?;
    }
    object.integer("atMs", *at_ms)?;
    if let Some(Failure { code, message }) = error {
        object.object("error", |object| {
            object.text("code", code)?;
            object.text("message", message)
        })?;
    }
    object.list("events", events, canonical::write)?;
    if *events_dropped > 0 {
        object.count("eventsDropped", *events_dropped)?;
    }
    object.list("gates", gates, gate)?;
    object.maybe_text("resultDigest", result_digest.as_deref())?;
    if let Some(shadow) = shadow {
        let Shadow {
            candidate,
            live,
            verdict,
            reason,
            rule,
        } = shadow;
        object.object("shadow", |object| {
            object.text("candidate", candidate)?;
            object.text("live", live)?;
            object.text("reason", reason)?;
            object.maybe_text("rule", rule.as_deref())?;
            object.text("verdict", verdict)
        })?;
    }
    object.text("status", status.word())?;
    if let Some(timing) = timing {
        let Timing {
            total_us,
            run_us,
            cpu_us,
        } = timing;
        object.object("timing", |object| {
            object.count("cpuUs", *cpu_us)?;
            object.count("runUs", *run_us)?;
            object.count("totalUs", *total_us)
        })?;
    }
    if let Some(facts) = facts {
        object.write_raw("tool", facts);
    }
    Ok(object.end())
}

fn gate(gate: &GateRecord, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
    let GateRecord {
        gate,
        verdict,
        reason,
        note,
        rule,
        us,
    } = gate;
    let mut object = Object::within(out);
    object.text("gate", gate)?;
    object.maybe_text("note", note.as_deref())?;
    object.maybe_text("reason", reason.as_deref())?;
    object.maybe_text("rule", rule.as_deref())?;
    if let Some(us) = us {
        object.count("us", *us)?;
    }
    object.text("verdict", verdict)?;
    *out = object.end_bytes();
    Ok(())
}

/// The canonical text of a notice. There are few of them, so the general way will
/// do.
pub fn notice(notice: &Notice) -> Result<String, CanonicalError> {
    let value = serde_json::to_value(notice).unwrap_or_default();
    let bytes = canonical::to_bytes(&value)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The canonical text of an anchor.
pub fn anchor(anchor: &Anchor) -> Result<String, CanonicalError> {
    let value = serde_json::to_value(anchor).unwrap_or_default();
    let bytes = canonical::to_bytes(&value)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The canonical text of the facts about a tool.
pub(crate) fn facts(facts: &ToolFacts) -> Result<String, CanonicalError> {
    let ToolFacts {
        tool_id,
        name,
        category,
        digest,
        risk,
        risk_reasons,
        tool_safety,
    } = facts;
    let mut object = Object::new(1024);
    object.maybe_text("category", category.as_deref())?;
    object.text("digest", digest)?;
    object.text("name", name)?;
    object.text("risk", risk)?;
    object.list("riskReasons", risk_reasons, |reason, out| {
        canonical::write_text(reason, out)
    })?;
    object.text("toolId", tool_id)?;
    object.value("toolSafety", tool_safety)?;
    Ok(object.end())
}

#[cfg(test)]
mod tests;
