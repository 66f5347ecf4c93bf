//! What a script asks of its host. Every tool it calls is a call of the engine, with
//! the script's own call as its parent; what stands in front of that is here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::govern::pattern::{NamePattern, first};
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::Outcome;
use model::{document::codecall, document::digest, document::params, limits, text};
use sandbox::job::{ConsoleLine, HostAnswer, HostRequest, Payload};
use sandbox::pool::HostCalls;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

use super::clock::ScriptClock;
use super::fault::{ToolFault, fault_json, no_data};
use super::held::JournalOnDisk;
use super::journal::{
    BegunCall, FinishedCall, Journal, JournalStep, Replay, ReplayMatch, StepAnswer,
};
use crate::native;
use crate::powers::Powers;
use crate::request::{CallRequest, Waiting};
use crate::services::now_ms;
use crate::work::Work;

/// Bytes an answer has besides the tool's result.
const ENVELOPE_BYTES_MAX: usize = 64;
/// Characters of a notice a client is told.
const NOTICE_CHARS_MAX: usize = 500;
/// Characters of a tool's name in a record.
const NAME_CHARS_MAX: usize = 200;

/// The host of one script.
#[derive(Debug)]
pub(crate) struct ScriptHost<'a> {
    work: &'a Work<'a>,
    allowed: Option<&'a [NamePattern]>,
    tool_calls_max: u32,
    payload_bytes_max: usize,
    clock: Arc<ScriptClock>,
    replay: Replay,
    /// Where its journal is on the disk, once it stopped for a person.
    held: Option<&'a JournalOnDisk<'a>>,
    /// Steps are written one at a time: the disk has them in the order the script
    /// hears of them.
    writing: tokio::sync::Mutex<()>,
    at_once: Semaphore,
    state: Mutex<State>,
    halted: Notify,
}

#[derive(Debug)]
struct State {
    /// Calls the script made so far.
    made: Vec<Made>,
    /// Calls its end overtook; they were not made.
    unasked: Vec<Made>,
    journal: Journal,
    /// Tools that run.
    under_way: usize,
    halt: Option<Halt>,
    /// What it had said when its run was dropped.
    said: Vec<ConsoleLine>,
}

/// A call the script made.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) tool: String,
    pub(crate) input: Value,
    /// What went wrong, if it did.
    pub(crate) fault: Option<ToolFault>,
    /// Its answer came.
    is_over: bool,
}

impl Made {
    fn of(tool: &str, input: Value) -> Made {
        Made {
            tool: tool.to_owned(),
            input,
            fault: None,
            is_over: false,
        }
    }

    /// Whether it was under way when the script ended.
    pub(crate) fn was_stopped(&self) -> bool {
        !self.is_over
    }
}

/// Why a script does not go on.
#[derive(Clone, Debug)]
pub(crate) enum Halt {
    /// A person has not answered yet.
    Pending { tool: String, message: String },
    /// It took another way than before.
    Diverged { tool: String },
    /// It called too many tools.
    TooManyCalls,
    /// What it does could not be written down, before or after its tool ran.
    Unkept {
        tool: String,
        ran: bool,
        why: String,
    },
}

/// What a tool came to.
enum Came {
    StepAnswer(StepAnswer, Option<ToolFault>),
    Pending(String),
    /// It did not run, because that could not be written down.
    Unkept(String),
}

#[derive(Debug, Deserialize)]
struct Asked {
    name: String,
    /// Absent if they are no data: a function, a symbol.
    #[serde(default, deserialize_with = "given")]
    args: Option<Value>,
}

/// What is given is given, `null` too.
fn given<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(source).map(Some)
}

impl<'a> ScriptHost<'a> {
    pub(crate) fn new(
        work: &'a Work<'a>,
        allowed: Option<&'a [NamePattern]>,
        (tool_calls_max, payload_bytes_max): (u32, u32),
        clock: &Arc<ScriptClock>,
        (journal, held): (Journal, Option<&'a JournalOnDisk<'a>>),
    ) -> ScriptHost<'a> {
        ScriptHost {
            work,
            allowed,
            tool_calls_max,
            payload_bytes_max: usize::try_from(payload_bytes_max).unwrap_or(usize::MAX),
            clock: Arc::clone(clock),
            replay: Replay::of(&journal),
            held,
            writing: tokio::sync::Mutex::default(),
            at_once: Semaphore::new(limits::SCRIPT_TOOLS_AT_ONCE_MAX),
            state: Mutex::new(State {
                made: Vec::new(),
                unasked: Vec::new(),
                journal,
                under_way: 0,
                halt: None,
                said: Vec::new(),
            }),
            halted: Notify::new(),
        }
    }

    /// Returns when the script must not go on and every tool that had begun is over.
    pub(crate) async fn stopped(&self) -> Halt {
        loop {
            let news = self.halted.notified();
            {
                let state = self.state();
                if let (Some(halt), 0) = (&state.halt, state.under_way) {
                    return halt.clone();
                }
            }
            news.await;
        }
    }

    /// A call the script made, by its place.
    pub(crate) fn made(&self, place: usize) -> Option<Made> {
        self.state().made.get(place).cloned()
    }

    /// Calls that failed, or were under way when the script ended, in their order.
    pub(crate) fn unfinished(&self) -> Vec<Made> {
        let state = self.state();
        let made = state.made.iter().chain(&state.unasked);
        let is_so = |made: &&Made| made.was_stopped() || made.fault.is_some();
        made.filter(is_so).cloned().collect()
    }

    /// What a script had said that did not come to its end.
    pub(crate) fn said(&self) -> Vec<ConsoleLine> {
        std::mem::take(&mut self.state().said)
    }

    /// What the script has done.
    pub(crate) fn journal(&self) -> Journal {
        self.state().journal.clone()
    }

    /// How many calls were made, and how many of them were answered from a journal.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.state().made.len(), self.replay.count())
    }

    /// A call of a tool. It is counted before anything is awaited, so that one that is
    /// still to begin when the script ends is known too.
    fn asked(&self, payload: &str) -> Result<(u32, Asked), Option<HostAnswer>> {
        let Ok(asked) = serde_json::from_str::<Asked>(payload) else {
            let message = "a call names its tool first: `callTool('name', { … })`";
            let error = fault_json(None, "VALIDATION", message, "");
            return Err(Some(HostAnswer::Error(error)));
        };
        let input = asked.args.as_ref().unwrap_or(&Value::Null);
        match self.begin(&asked.name, input) {
            Some(place) => Ok((place, asked)),
            None => Err(None),
        }
    }

    async fn tool(&self, place: u32, Asked { name, args }: Asked) -> HostAnswer {
        let arguments = digest::of_value(args.as_ref().unwrap_or(&Value::Null));
        let arguments = arguments.unwrap_or_default();
        match self.replay.find(place, &name, &arguments) {
            ReplayMatch::Done(index) => match self.replay.answer(index).await {
                Some(done) => return self.again(place, done),
                None => return self.halt(Halt::Diverged { tool: name }).await,
            },
            ReplayMatch::Diverged => return self.halt(Halt::Diverged { tool: name }).await,
            ReplayMatch::New => {}
        }
        self.replay.finished().await;
        let Ok(_turn) = self.at_once.acquire().await else {
            return never().await;
        };
        if !self.enter() {
            return never().await;
        }
        let came = {
            let _working = self.clock.work();
            self.call(place, &name, args, &arguments).await
        };
        self.leave(place, name, arguments, came).await
    }

    /// Counts a call; nothing if the script must not make any more.
    fn begin(&self, tool: &str, input: &Value) -> Option<u32> {
        let mut state = self.state();
        if state.halt.is_some() {
            return None;
        }
        let place = u32::try_from(state.made.len()).unwrap_or(u32::MAX);
        if place >= self.tool_calls_max {
            state.halt = Some(Halt::TooManyCalls);
            drop(state);
            self.halted.notify_one();
            return None;
        }
        state.made.push(Made::of(tool, input.clone()));
        Some(place)
    }

    /// Whether a tool may begin now.
    fn enter(&self) -> bool {
        let mut state = self.state();
        if state.halt.is_some() {
            return false;
        }
        state.under_way += 1;
        true
    }

    /// A tool is over: what came of it goes into the journal before the script hears
    /// of it. A script that must stop hears nothing more.
    async fn leave(&self, place: u32, tool: String, arguments: String, came: Came) -> HostAnswer {
        let _order = match self.held {
            Some(_) => Some(self.writing.lock().await),
            None => None,
        };
        let over = match came {
            Came::Pending(message) => Err(Halt::Pending { tool, message }),
            Came::Unkept(why) => {
                let ran = false;
                Err(Halt::Unkept { tool, ran, why })
            }
            Came::StepAnswer(answer, fault) => {
                let at_ms = now_ms().max(self.state().journal.clock_ms());
                let done = FinishedCall {
                    place,
                    tool,
                    arguments,
                    at_ms,
                    answer,
                };
                self.written(done).await.map(|done| (done, fault))
            }
        };
        let answer = {
            let mut state = self.state();
            state.under_way = state.under_way.saturating_sub(1);
            match over {
                // Whatever else stops it: what is kept then would lack this.
                Err(halt @ Halt::Unkept { .. }) => {
                    state.halt = Some(halt);
                    None
                }
                Err(halt) => {
                    state.halt.get_or_insert(halt);
                    None
                }
                Ok((done, fault)) => {
                    let told = told(&done);
                    state.journal.done.push(done);
                    note(&mut state, place, fault);
                    state.halt.is_none().then_some(told)
                }
            }
        };
        match answer {
            Some(answer) => answer,
            None => {
                self.halted.notify_one();
                never().await
            }
        }
    }

    /// A call that is over, on the disk if the script stopped before.
    async fn written(&self, done: FinishedCall) -> Result<FinishedCall, Halt> {
        let Some(held) = self.held else {
            return Ok(done);
        };
        match held.add(&JournalStep::Finished(done.clone())).await {
            Ok(()) => Ok(done),
            Err(why) => Err(Halt::Unkept {
                tool: done.tool,
                ran: true,
                why: why.to_owned(),
            }),
        }
    }

    /// The answer of a call that is over, once more.
    fn again(&self, place: u32, done: &FinishedCall) -> HostAnswer {
        let fault = match &done.answer {
            StepAnswer::Error(text) => Some(ToolFault::from_json(text)),
            StepAnswer::Value(_) => None,
        };
        note(&mut self.state(), place, fault);
        told(done)
    }

    async fn halt(&self, halt: Halt) -> HostAnswer {
        self.state().halt.get_or_insert(halt);
        self.halted.notify_one();
        never().await
    }

    /// One tool, through every gate.
    async fn call(&self, place: u32, name: &str, args: Option<Value>, arguments: &str) -> Came {
        let args = match (self.refused(name), args) {
            (None, Some(args)) => args,
            (refused, _) => {
                let fault = refused.unwrap_or_else(|| no_data(name));
                self.record(name, &fault);
                let error = fault_json(Some(place), fault.code, &fault.message, name);
                return Came::StepAnswer(StepAnswer::Error(error), Some(fault));
            }
        };
        let mut request = self.request(name, args);
        request.begins = self.held.map(|held| {
            held.begins(BegunCall {
                place,
                tool: name.to_owned(),
                arguments: arguments.to_owned(),
            })
        });
        let outcome = self.work.engine.call(request).await;
        let outcome = outcome.into_inner();
        if let Some(progress) = &self.work.request.progress {
            let (calls, _) = self.counts();
            let name = text::elided(&text::one_line(name), NAME_CHARS_MAX);
            progress.tell(&format!("{}; `{name}` ended", text::count(calls, "call")));
        }
        let Some(error) = &outcome.error else {
            return self.value(place, name, &outcome);
        };
        if matches!(
            error.reason,
            Reason::ApprovalPending | Reason::ApprovalTimedOut
        ) {
            return Came::Pending(error.message.clone());
        }
        if error.reason == Reason::ScriptJournal {
            return Came::Unkept(error.message.clone());
        }
        let fault = ToolFault::of(&outcome.call_id, error);
        let answer = StepAnswer::Error(fault_json(Some(place), fault.code, &fault.message, name));
        Came::StepAnswer(answer, Some(fault))
    }

    fn value(&self, place: u32, name: &str, outcome: &Outcome) -> Came {
        let value = outcome.value.as_ref().unwrap_or(&Value::Null).to_string();
        if outcome.status == Status::Done
            && value.len() + ENVELOPE_BYTES_MAX <= self.payload_bytes_max
        {
            return Came::StepAnswer(StepAnswer::Value(value), None);
        }
        let fault = ToolFault {
            code: "EXECUTION",
            message: "the result is longer than a script can take".to_owned(),
            details: None,
        };
        let answer = StepAnswer::Error(fault_json(Some(place), fault.code, &fault.message, name));
        Came::StepAnswer(answer, Some(fault))
    }

    /// What a script may not call, whoever runs it. Itself comes first: no list can
    /// allow it.
    fn refused(&self, name: &str) -> Option<ToolFault> {
        let refuse = |code, message: String| {
            Some(ToolFault {
                code,
                message,
                details: None,
            })
        };
        let shown = text::elided(name, NAME_CHARS_MAX);
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

    fn request(&self, name: &str, arguments: Value) -> CallRequest {
        let Work {
            request, call_id, ..
        } = self.work;
        let clock = Arc::clone(&self.clock);
        let deadline = request.deadline;
        CallRequest {
            purpose: request.purpose,
            parent_id: Some((*call_id).to_owned()),
            deadline: deadline.map(|deadline| self.left_of(deadline)),
            waiting: Some(Waiting::new(move |begins| clock.asks(begins))),
            ..request.child(name, arguments)
        }
    }

    fn left_of(&self, deadline: Duration) -> Duration {
        deadline.saturating_sub(self.work.started.elapsed())
    }

    /// What is known about a tool the caller may call.
    fn about(&self, payload: &str) -> Option<Value> {
        let name: String = serde_json::from_str(payload).ok()?;
        if self.refused(&name).is_some() {
            return None;
        }
        let request = self.request(&name, Value::Null);
        let offered = self.work.reach(&request).ok()?;
        let document = &offered.sound.document;
        Some(json!({
            "name": document.name,
            "description": document.description,
            "inputSchema": params::input_schema(&document.params),
            "outputSchema": codecall::output_schema(document),
            "category": document.category,
            "risk": offered.risk.level.badge(),
        }))
    }

    /// Tells whoever waits for the script.
    fn notice(&self, payload: &str) {
        let words: String = serde_json::from_str(payload).unwrap_or_default();
        if let Some(progress) = &self.work.request.progress {
            let words = text::elided(&words, NOTICE_CHARS_MAX);
            progress.tell(&text::one_line(&words));
        }
    }

    /// A call that no row of its own tells about.
    fn record(&self, name: &str, fault: &ToolFault) {
        let tool = text::elided(name, NAME_CHARS_MAX);
        let event = json!({"kind": "refused", "operation": "callTool", "tool": tool, "refusal": fault.code});
        self.powers().note(event);
    }

    fn powers(&self) -> &Powers {
        &self.work.powers
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note(state: &mut State, place: u32, fault: Option<ToolFault>) {
    let place = usize::try_from(place).unwrap_or(usize::MAX);
    if let Some(made) = state.made.get_mut(place) {
        made.fault = fault;
        made.is_over = true;
    }
}

/// What of the powers that only compute the language of scripts leads to: the formats of
/// dates and numbers and the order of texts (`toLocaleString`, `localeCompare`).
fn is_offered(operation: &str) -> bool {
    operation.starts_with("intl.")
}

/// The script stops here; its run is dropped.
async fn never() -> HostAnswer {
    std::future::pending().await
}

/// Patterns no script may call, whatever its lists say.
fn is_blocked(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    ["system:", "internal:", "__"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

fn told(done: &FinishedCall) -> HostAnswer {
    match &done.answer {
        StepAnswer::Value(value) => HostAnswer::Value(Payload {
            json: format!("{{\"at\":{},\"value\":{value}}}", done.at_ms),
            bytes: Vec::new(),
        }),
        StepAnswer::Error(error) => HostAnswer::Error(error.clone()),
    }
}

/// What a script is told of a call of which nobody knows whether it ended. It is not
/// made again: it may have done its work.
pub(crate) fn interrupted(call: BegunCall, at_ms: i64) -> FinishedCall {
    let message = "Ringfence stopped while this tool ran; whether it did its work is not known, and it \
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

impl HostCalls for ScriptHost<'_> {
    fn call<'b>(
        &'b self,
        request: HostRequest,
    ) -> std::pin::Pin<Box<dyn Future<Output = HostAnswer> + Send + 'b>> {
        match request.operation.as_str() {
            "script.call" => match self.asked(&request.payload.json) {
                Ok((place, asked)) => Box::pin(self.tool(place, asked)),
                Err(Some(answer)) => Box::pin(std::future::ready(answer)),
                Err(None) => Box::pin(never()),
            },
            "script.tool" => {
                let json = self.about(&request.payload.json);
                Box::pin(std::future::ready(value_of(json.unwrap_or_default())))
            }
            "script.notify" => {
                self.notice(&request.payload.json);
                Box::pin(std::future::ready(value_of(Value::Null)))
            }
            operation if is_offered(operation) => self.powers().call(request),
            // Attack: whatever else is asked for, the face of scripts has no name for it,
            // so it was not asked for by the guest we built.
            operation => {
                let refused = self.powers().refuse(operation);
                Box::pin(std::future::ready(refused))
            }
        }
    }

    fn left(&self, console: Vec<ConsoleLine>) {
        self.state().said = console;
    }

    fn unasked(&self, requests: Vec<HostRequest>) {
        let calls = requests
            .iter()
            .filter(|request| request.operation == "script.call");
        let asked = calls.filter_map(|call| serde_json::from_str::<Asked>(&call.payload.json).ok());
        self.state().unasked = asked
            .map(|asked| Made::of(&asked.name, Value::Null))
            .collect();
    }
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
        for operation in ::host::data::OPERATIONS {
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
            let level = guard::Level::named(level).expect("a level");
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
