//! The host of one script: what a script can ask of it, operation by operation. What
//! a call of a tool does is in `tool_call`; which calls there are is in `calls`.

use std::pin::Pin;
use std::sync::Arc;

use model::govern::pattern::NamePattern;
use model::{document::codecall, document::params, limits, text};
use sandbox::job::{GuestLine, HostAnswer, HostRequest, Payload};
use sandbox::pool::HostCalls;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::calls::{ScriptCall, ScriptCalls};
use super::clock::ScriptClock;
use super::journal::{Journal, Replay};
use super::stored_journal::StoredJournal;
use super::tool_call::{ToolRequest, never_answer};
use crate::limit;
use crate::powers::Powers;
use crate::waiting_script::RunningScript;
use crate::work::Work;

/// The host of one script.
#[derive(Debug)]
pub(crate) struct ScriptHost<'a> {
    pub(super) work: &'a Work<'a>,
    /// The tools the sender of the script lets it call; without a list, all.
    pub(super) allowed: Option<&'a [NamePattern]>,
    pub(super) payload_bytes_max: usize,
    pub(super) clock: Arc<ScriptClock>,
    pub(super) calls: ScriptCalls,
    pub(super) replay: Replay,
    /// Where its journal is stored, once it stopped for a person.
    pub(super) stored: Option<&'a StoredJournal<'a>>,
    /// Steps are stored one at a time: the store has them in the order the script
    /// hears of them.
    pub(super) step_order: tokio::sync::Mutex<()>,
    /// Turns of tools that run together.
    pub(super) tool_turns: Semaphore,
    /// Its text, for a person who is asked about one of its calls.
    pub(super) script: Arc<RunningScript>,
}

impl<'a> ScriptHost<'a> {
    pub(crate) fn new(
        work: &'a Work<'a>,
        allowed: Option<&'a [NamePattern]>,
        (tool_calls_max, payload_bytes_max): (u32, u32),
        clock: &Arc<ScriptClock>,
        (journal, stored): (Journal, Option<&'a StoredJournal<'a>>),
        script: &Arc<RunningScript>,
    ) -> ScriptHost<'a> {
        ScriptHost {
            work,
            allowed,
            payload_bytes_max: usize::try_from(payload_bytes_max).unwrap_or(usize::MAX),
            clock: Arc::clone(clock),
            replay: Replay::of(&journal),
            calls: ScriptCalls::new(journal, tool_calls_max),
            stored,
            step_order: tokio::sync::Mutex::default(),
            tool_turns: Semaphore::new(limits::SCRIPT_TOOLS_AT_ONCE_MAX),
            script: Arc::clone(script),
        }
    }

    pub(crate) fn calls(&self) -> &ScriptCalls {
        &self.calls
    }

    /// How many calls were made, and how many of them were answered from a journal.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.calls.count(), self.replay.count())
    }

    /// What is known about a tool the caller may call.
    fn describe_tool(&self, payload: &str) -> Option<Value> {
        let name: String = serde_json::from_str(payload).ok()?;
        // What the script may not call is not described to it either.
        if self.refuse_tool(&name).is_some() {
            return None;
        }
        let request = self.request(&name, Value::Null, None);
        let offered = self.work.reach(&request).ok()?;
        let document = &offered.usable.document;
        Some(json!({
            "name": document.name,
            "description": document.description,
            "inputSchema": params::input_schema(&document.params),
            "outputSchema": codecall::output_schema(document),
            "category": document.category,
            "risk": offered.risk.level.badge(),
        }))
    }

    /// Tells the client that waits for the script.
    fn notify(&self, payload: &str) {
        let words: String = serde_json::from_str(payload).unwrap_or_default();
        if let Some(progress) = &self.work.request.progress {
            let words = text::elided(&words, limit::SCRIPT_NOTICE_CHARS_MAX);
            progress.tell(&text::one_line(&words));
        }
    }

    pub(super) fn powers(&self) -> &Powers {
        &self.work.powers
    }
}

impl HostCalls for ScriptHost<'_> {
    fn call<'b>(
        &'b self,
        request: HostRequest,
    ) -> Pin<Box<dyn Future<Output = HostAnswer> + Send + 'b>> {
        match request.operation.as_str() {
            // A call is registered before anything is awaited, so that one that is
            // still to begin when the script ends is known too.
            "script.call" => match self.register_call(&request.payload.json) {
                Ok((place, call)) => Box::pin(self.call_tool(place, call)),
                Err(Some(answer)) => Box::pin(std::future::ready(answer)),
                // The script must stop: an answer would let it go on for a moment.
                Err(None) => Box::pin(never_answer()),
            },
            "script.tool" => {
                let json = self.describe_tool(&request.payload.json);
                Box::pin(std::future::ready(value_of(json.unwrap_or_default())))
            }
            "script.notify" => {
                self.notify(&request.payload.json);
                Box::pin(std::future::ready(value_of(Value::Null)))
            }
            operation if is_offered(operation) => self.powers().call(request),
            // Attack: the guest we built has no name for anything else, so another
            // operation comes from a guest that was taken over.
            operation => {
                let refused = self.powers().refuse(operation);
                Box::pin(std::future::ready(refused))
            }
        }
    }

    fn left(&self, console: Vec<GuestLine>) {
        self.calls.keep_console(console);
    }

    fn unasked(&self, requests: Vec<HostRequest>) {
        let calls = requests
            .iter()
            .filter(|request| request.operation == "script.call");
        let calls = calls.filter_map(|call| ToolRequest::read(&call.payload.json));
        let calls = calls.map(|call| ScriptCall::new(&call.name, Value::Null));
        self.calls.keep_never_begun(calls.collect());
    }
}

/// Which of the powers that only compute a script reaches: the formats of dates and
/// numbers and the order of texts (`toLocaleString`, `localeCompare`).
fn is_offered(operation: &str) -> bool {
    operation.starts_with("intl.")
}

fn value_of(value: Value) -> HostAnswer {
    HostAnswer::Value(Payload {
        json: value.to_string(),
        bytes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The face of scripts has no name for the rest.
    #[test]
    fn a_script_is_offered_formats_and_no_other_power() {
        for operation in ::host::builtin::OPERATIONS {
            let is_format = operation.starts_with("intl.");
            assert_eq!(is_offered(operation), is_format, "{operation}");
        }
        for operation in ["fetch", "fs.readText", "probe", "", "script.calls"] {
            assert!(!is_offered(operation), "{operation}");
        }
    }

    /// What the sandbox leaves a script is what some preset of the guard lets it name.
    #[test]
    fn a_script_keeps_the_globals_of_its_language() {
        let prelude = include_str!("../../../../guest/prelude/script.js");
        let (_, list) = prelude.split_once("host.keep([").expect("the list");
        let (list, _) = list.split_once("]);").expect("its end");
        let mut kept: Vec<_> = list
            .split(',')
            .map(|name| name.trim().trim_matches('"'))
            .filter(|name| !name.is_empty())
            .collect();
        let mut named = Vec::new();
        for level in ["locked_down", "secure", "balanced", "experimental"] {
            let level = guard::PresetLevel::named(level).expect("a level");
            if let guard::Globals::Only(names) = guard::Preset::agent_script(level).globals {
                named.extend(names);
            }
        }
        named.retain(|name| !guard::runtime::RUNTIME_FUNCTIONS.contains(name));
        for names in [&mut kept, &mut named] {
            names.sort_unstable();
            names.dedup();
        }
        assert_eq!(kept, named);
    }
}
