//! Openings and closings as canonical JSON, without a tree in between: two of
//! these are spelled for every call, and the general way costs more than the rest
//! of the record.
//!
//! Fields stand in the order canonical JSON wants. Each function takes its type
//! apart by name, so that a new field does not compile until it is spelled, and a
//! property holds the result against the general way.

use serde_json::Value;

use crate::audit::{Closing, Failure, GateRecord, Opening, Timing, ToolFacts};
use crate::canonical::{self, CanonicalError};

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
        timing,
    } = closing;
    let mut object = Object::new(2048);
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
    if let Some(tool) = tool {
        object.object("tool", |object| facts(tool, object))?;
    }
    Ok(object.end())
}

fn gate(gate: &GateRecord, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
    let GateRecord {
        gate,
        verdict,
        reason,
        note,
    } = gate;
    let mut object = Object::within(out);
    object.text("gate", gate)?;
    object.maybe_text("note", note.as_deref())?;
    object.maybe_text("reason", reason.as_deref())?;
    object.text("verdict", verdict)?;
    *out = object.end_bytes();
    Ok(())
}

fn facts(facts: &ToolFacts, object: &mut Object) -> Result<(), CanonicalError> {
    let ToolFacts {
        tool_id,
        name,
        category,
        digest,
        risk,
        risk_reasons,
        tool_safety,
    } = facts;
    object.maybe_text("category", category.as_deref())?;
    object.text("digest", digest)?;
    object.text("name", name)?;
    object.text("risk", risk)?;
    object.list("riskReasons", risk_reasons, |reason, out| {
        canonical::write_text(reason, out)
    })?;
    object.text("toolId", tool_id)?;
    object.value("toolSafety", tool_safety)
}

/// An object being written.
struct Object {
    out: Vec<u8>,
    is_empty: bool,
}

impl Object {
    fn new(bytes: usize) -> Object {
        let mut out = Vec::with_capacity(bytes);
        out.push(b'{');
        Object {
            out,
            is_empty: true,
        }
    }

    /// Goes on in another's bytes, which come back from [`Object::end_bytes`].
    fn within(out: &mut Vec<u8>) -> Object {
        let mut out = std::mem::take(out);
        out.push(b'{');
        Object {
            out,
            is_empty: true,
        }
    }

    /// Keys are ours and need no escaping.
    fn key(&mut self, key: &str) {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn text(&mut self, key: &str, text: &str) -> Result<(), CanonicalError> {
        self.key(key);
        canonical::write_text(text, &mut self.out)
    }

    fn maybe_text(&mut self, key: &str, text: Option<&str>) -> Result<(), CanonicalError> {
        text.map_or(Ok(()), |text| self.text(key, text))
    }

    fn integer(&mut self, key: &str, number: i64) -> Result<(), CanonicalError> {
        self.key(key);
        canonical::write_integer(number, &mut self.out)
    }

    fn count(&mut self, key: &str, number: u64) -> Result<(), CanonicalError> {
        self.value(key, &Value::from(number))
    }

    fn value(&mut self, key: &str, value: &Value) -> Result<(), CanonicalError> {
        self.key(key);
        canonical::write(value, &mut self.out)
    }

    fn object(
        &mut self,
        key: &str,
        fill: impl FnOnce(&mut Object) -> Result<(), CanonicalError>,
    ) -> Result<(), CanonicalError> {
        self.key(key);
        let mut object = Object::within(&mut self.out);
        let filled = fill(&mut object);
        self.out = object.end_bytes();
        filled
    }

    fn list<T>(
        &mut self,
        key: &str,
        items: &[T],
        item: impl Fn(&T, &mut Vec<u8>) -> Result<(), CanonicalError>,
    ) -> Result<(), CanonicalError> {
        self.key(key);
        self.out.push(b'[');
        for (index, one) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            item(one, &mut self.out)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn end_bytes(mut self) -> Vec<u8> {
        self.out.push(b'}');
        self.out
    }

    /// Only text was written, so nothing is lost here.
    fn end(self) -> String {
        String::from_utf8(self.end_bytes())
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

#[cfg(test)]
mod tests;
