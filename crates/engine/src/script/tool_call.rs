//! One tool called by a script. A call that is in the journal is answered from it; any
//! other is a call of the engine, with the script's own call as its parent.

use std::sync::Arc;
use std::time::Duration;

use model::govern::pattern::first;
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::Outcome;
use model::{document::digest, text};
use sandbox::job::{HostAnswer, Payload};
use serde::Deserialize;
use serde_json::{Value, json};

use super::calls::Halt;
use super::fault::{ToolFault, fault_json, no_data};
use super::host::ScriptHost;
use super::journal::{BegunCall, FinishedCall, JournalStep, ReplayMatch, StepAnswer};
use crate::limit;
use crate::native;
use crate::request::{Begins, CallRequest, ParentCall, ScriptStep, Waiting};
use crate::work::Work;
use store::clock::now_ms;

/// The call as the script wrote it.
#[derive(Debug, Deserialize)]
pub(super) struct ToolRequest {
    pub(super) name: String,
    /// Absent if they are not data: a function, a symbol.
    #[serde(default, deserialize_with = "keep_null")]
    args: Option<Value>,
}

/// `null` is an argument like any other; only a missing field is none.
fn keep_null<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(source).map(Some)
}

impl ToolRequest {
    pub(super) fn read(payload: &str) -> Option<ToolRequest> {
        serde_json::from_str(payload).ok()
    }
}

/// How one call of the engine ended, for the script.
enum CallEnd {
    Answered(StepAnswer, Option<ToolFault>),
    /// A person has not answered yet.
    Pending(String),
    /// It did not run, because the journal could not be written.
    NotJournaled(String),
}

impl ScriptHost<'_> {
    /// Registers a call and returns its place. Otherwise what the script is told; it is
    /// told nothing if it must stop.
    pub(super) fn register_call(
        &self,
        payload: &str,
    ) -> Result<(u32, ToolRequest), Option<HostAnswer>> {
        let Some(mut call) = ToolRequest::read(payload) else {
            let message = "name the tool first: `callTool('name', { … })`";
            let error = fault_json(None, "VALIDATION", message, "");
            return Err(Some(HostAnswer::Error(error)));
        };
        // From here on a tool has one name: rules, the journal and the record see it.
        if let Some(target) = self.work.now.script_target(&call.name) {
            call.name = target.to_owned();
        }
        let input = call.args.as_ref().unwrap_or(&Value::Null);
        match self.calls.register(&call.name, input) {
            Some(place) => Ok((place, call)),
            None => Err(None),
        }
    }

    pub(super) async fn call_tool(
        &self,
        place: u32,
        ToolRequest { name, args }: ToolRequest,
    ) -> HostAnswer {
        let arguments = digest::of_value(args.as_ref().unwrap_or(&Value::Null));
        // Without a digest one call cannot be told from another in a replay.
        let Ok(arguments) = arguments else {
            return self.halt(Halt::Diverged { tool: name }).await;
        };
        match self.replay.find(place, &name, &arguments) {
            ReplayMatch::Done(index) => match self.replay.answer(index).await {
                Some(call) => return self.repeat_answer(place, call),
                None => return self.halt(Halt::Diverged { tool: name }).await,
            },
            ReplayMatch::Diverged => return self.halt(Halt::Diverged { tool: name }).await,
            ReplayMatch::New => {}
        }
        // Nothing new begins before the last call of the journal is answered: otherwise
        // a script that diverges later would have done new work by then.
        self.replay.wait_until_answered().await;
        let Ok(_turn) = self.tool_turns.acquire().await else {
            return never_answer().await;
        };
        // The script may have been stopped while this call waited for its turn.
        if !self.calls.try_begin() {
            return never_answer().await;
        }
        let end = {
            let _working = self.clock.work();
            self.call_engine(place, &name, args, &arguments).await
        };
        self.finish(place, name, arguments, end).await
    }

    /// Writes the result of a call to the journal, then gives it to the script. In
    /// the other order a crash in between would run the tool again.
    async fn finish(
        &self,
        place: u32,
        tool: String,
        arguments: String,
        end: CallEnd,
    ) -> HostAnswer {
        let _order = match self.stored {
            Some(_) => Some(self.step_order.lock().await),
            None => None,
        };
        let finished = match end {
            CallEnd::Pending(message) => Err(Halt::Pending { tool, message }),
            CallEnd::NotJournaled(why) => {
                let ran = false;
                Err(Halt::NotJournaled { tool, ran, why })
            }
            CallEnd::Answered(answer, fault) => {
                // The script's clock never goes back, even if the system's does.
                let at_ms = now_ms().max(self.calls.clock_ms());
                let call = FinishedCall {
                    place,
                    tool,
                    arguments,
                    at_ms,
                    answer,
                };
                self.store_finished(call).await.map(|call| (call, fault))
            }
        };
        let answer = finished.as_ref().ok().map(|(call, _)| answer_of(call));
        match (self.calls.finish(finished), answer) {
            (true, Some(answer)) => answer,
            _ => never_answer().await,
        }
    }

    /// Stores a finished call, if the script stopped for a person before.
    async fn store_finished(&self, call: FinishedCall) -> Result<FinishedCall, Halt> {
        let Some(stored) = self.stored else {
            return Ok(call);
        };
        match stored.add(&JournalStep::Finished(call.clone())).await {
            Ok(()) => Ok(call),
            Err(why) => Err(Halt::NotJournaled {
                tool: call.tool,
                ran: true,
                why: why.to_owned(),
            }),
        }
    }

    fn repeat_answer(&self, place: u32, call: &FinishedCall) -> HostAnswer {
        let fault = match &call.answer {
            StepAnswer::Error(text) => Some(ToolFault::from_json(text)),
            StepAnswer::Value(_) => None,
        };
        self.calls.note_answer(place, fault);
        answer_of(call)
    }

    async fn halt(&self, halt: Halt) -> HostAnswer {
        self.calls.halt(halt);
        never_answer().await
    }

    /// Makes the call, through every gate.
    async fn call_engine(
        &self,
        place: u32,
        name: &str,
        args: Option<Value>,
        arguments: &str,
    ) -> CallEnd {
        let args = match (self.refuse_tool(name), args) {
            (None, Some(args)) => args,
            (refused, _) => {
                let fault = refused.unwrap_or_else(|| no_data(name));
                self.note_refused(name, &fault);
                return answer_fault(place, name, fault);
            }
        };
        let begins = self.stored.map(|stored| {
            stored.begins(BegunCall {
                place,
                tool: name.to_owned(),
                arguments: arguments.to_owned(),
            })
        });
        let request = self.request(name, args, begins);
        let outcome = self.work.engine.call(request).await;
        let outcome = outcome.into_inner();
        self.calls.note(&outcome.notes);
        self.tell_progress(name);
        let Some(error) = &outcome.error else {
            return self.answer_value(place, name, &outcome);
        };
        match error.reason {
            Reason::ApprovalPending | Reason::ApprovalTimedOut => {
                CallEnd::Pending(error.message.clone())
            }
            Reason::ScriptJournal => CallEnd::NotJournaled(error.message.clone()),
            _ => answer_fault(place, name, ToolFault::of(&outcome.call_id, error)),
        }
    }

    fn tell_progress(&self, name: &str) {
        if let Some(progress) = &self.work.request.progress {
            let name = text::elided(&text::one_line(name), limit::NAME_SHOWN_CHARS_MAX);
            let calls = text::count(self.calls.count(), "call");
            progress.tell(&format!("{calls}; `{name}` ended"));
        }
    }

    fn answer_value(&self, place: u32, name: &str, outcome: &Outcome) -> CallEnd {
        let value = outcome.value.as_ref().unwrap_or(&Value::Null).to_string();
        if outcome.status == Status::Done
            && value.len() + limit::SCRIPT_ENVELOPE_BYTES_MAX <= self.payload_bytes_max
        {
            return CallEnd::Answered(StepAnswer::Value(value), None);
        }
        let fault = ToolFault {
            code: "EXECUTION",
            message: "the result is too large for a script".to_owned(),
            details: None,
        };
        answer_fault(place, name, fault)
    }

    /// Why a script may not call a tool, whatever its caller may. Its own tools come
    /// first: no list can allow them.
    pub(super) fn refuse_tool(&self, name: &str) -> Option<ToolFault> {
        let refuse = |code, message: String| {
            Some(ToolFault {
                code,
                message,
                details: None,
            })
        };
        let shown = text::elided(name, limit::NAME_SHOWN_CHARS_MAX);
        if native::is_self_reference(name) {
            let why = native::self_reference(name);
            let message = format!("a script cannot call `{shown}`: {why}");
            return refuse("SELF_REFERENCE", message);
        }
        if is_blocked(name) {
            return refuse("ACCESS_DENIED", format!("scripts cannot call `{shown}`"));
        }
        match self.allowed {
            Some(allowed) if first(allowed, name).is_none() => {
                let message = format!("`{shown}` is not among the tools this script may call");
                refuse("ACCESS_DENIED", message)
            }
            Some(_) | None => None,
        }
    }

    pub(super) fn request(
        &self,
        name: &str,
        arguments: Value,
        begins: Option<Begins>,
    ) -> CallRequest {
        let Work {
            request, call_id, ..
        } = self.work;
        let clock = Arc::clone(&self.clock);
        let deadline = request.deadline;
        CallRequest {
            purpose: request.purpose,
            parent: Some(ParentCall {
                id: (*call_id).to_owned(),
                script: Some(ScriptStep {
                    script: Arc::clone(&self.script),
                    waiting: Waiting::new(move |begins| clock.asks(begins)),
                    begins,
                }),
            }),
            trace: request.trace_below(call_id),
            deadline: deadline.map(|deadline| self.time_left(deadline)),
            ..request.child(name, arguments)
        }
    }

    fn time_left(&self, deadline: Duration) -> Duration {
        deadline.saturating_sub(self.work.started.elapsed())
    }

    /// Notes a call that has no row of its own in the audit.
    fn note_refused(&self, name: &str, fault: &ToolFault) {
        let tool = text::elided(name, limit::NAME_SHOWN_CHARS_MAX);
        let event = json!({"kind": "refused", "operation": "callTool", "tool": tool, "refusal": fault.code});
        self.powers().note(event);
    }
}

/// The answer of a call that failed.
fn answer_fault(place: u32, name: &str, fault: ToolFault) -> CallEnd {
    let error = fault_json(Some(place), fault.code, &fault.message, name);
    CallEnd::Answered(StepAnswer::Error(error), Some(fault))
}

/// What a script is told that must stop: its run is dropped instead.
pub(super) async fn never_answer() -> HostAnswer {
    std::future::pending().await
}

/// Prefixes no script may call, whatever its lists say.
fn is_blocked(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    ["system:", "internal:", "__"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

fn answer_of(call: &FinishedCall) -> HostAnswer {
    match &call.answer {
        StepAnswer::Value(value) => HostAnswer::Value(Payload {
            // The value is JSON text already, so it is not parsed again.
            json: format!("{{\"at\":{},\"value\":{value}}}", call.at_ms),
            bytes: Vec::new(),
        }),
        StepAnswer::Error(error) => HostAnswer::Error(error.clone()),
    }
}

/// The end of a call during which Ringfence stopped. It is not made again: it may have
/// done its work.
pub(super) fn interrupted(call: BegunCall, at_ms: i64) -> FinishedCall {
    let message = "Ringfence stopped while this tool ran; it is not known whether it finished, and it \
                   was not called again";
    let error = fault_json(Some(call.place), "EXECUTION", message, &call.tool);
    FinishedCall {
        place: call.place,
        tool: call.tool,
        arguments: call.arguments,
        at_ms,
        answer: StepAnswer::Error(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_names_are_never_called() {
        for name in ["system:halt", " System:x", "internal:y", "__z", "INTERNAL:"] {
            assert!(is_blocked(name), "{name}");
        }
        for name in ["systems", "my__tool", "internally"] {
            assert!(!is_blocked(name), "{name}");
        }
    }
}
