//! The calls of one script while it runs: which it made, how many tools run, what the
//! journal holds, and why the script must stop, once it must.
//!
//! Everything is behind one lock that is never held across an `await`, so what one
//! method sees and changes is one step.

use std::sync::{Mutex, MutexGuard};

use sandbox::job::GuestLine;
use serde_json::Value;
use tokio::sync::Notify;

use super::fault::ToolFault;
use super::journal::{FinishedCall, Journal};
use model::sync::lock;

/// The calls of one script.
#[derive(Debug)]
pub(crate) struct ScriptCalls {
    calls_max: u32,
    state: Mutex<State>,
    /// Told when a halt is set or a tool of a halted script ends.
    halted: Notify,
}

#[derive(Debug)]
struct State {
    /// In the order the script made them; a call's place is its index here.
    made: Vec<ScriptCall>,
    /// Calls that were still on their way to the host when the script ended.
    never_begun: Vec<ScriptCall>,
    journal: Journal,
    /// How many tools run now.
    running: usize,
    halt: Option<Halt>,
    /// The console of a script whose run was dropped.
    console: Vec<GuestLine>,
    /// What the sender must know about its calls: a person changed their arguments.
    notes: Vec<String>,
}

/// A call the script made.
#[derive(Clone, Debug)]
pub(crate) struct ScriptCall {
    pub(crate) tool: String,
    pub(crate) input: Value,
    /// What went wrong, if it did.
    pub(crate) fault: Option<ToolFault>,
    is_answered: bool,
}

impl ScriptCall {
    pub(crate) fn new(tool: &str, input: Value) -> ScriptCall {
        ScriptCall {
            tool: tool.to_owned(),
            input,
            fault: None,
            is_answered: false,
        }
    }
}

/// Why a script must not go on.
#[derive(Clone, Debug)]
pub(crate) enum Halt {
    /// A person has not answered yet.
    Pending { tool: String, message: String },
    /// It made another call than before it stopped.
    Diverged { tool: String },
    /// It called too many tools.
    TooManyCalls,
    /// The journal could not be written, before or after the tool ran.
    NotJournaled {
        tool: String,
        ran: bool,
        why: String,
    },
}

impl ScriptCalls {
    pub(crate) fn new(journal: Journal, calls_max: u32) -> ScriptCalls {
        ScriptCalls {
            calls_max,
            state: Mutex::new(State {
                made: Vec::new(),
                never_begun: Vec::new(),
                journal,
                running: 0,
                halt: None,
                console: Vec::new(),
                notes: Vec::new(),
            }),
            halted: Notify::new(),
        }
    }

    /// Registers a call and returns its place. Nothing if the script must not make any
    /// more; one call too many is what makes it stop.
    pub(crate) fn register(&self, tool: &str, input: &Value) -> Option<u32> {
        let mut state = self.state();
        if state.halt.is_some() {
            return None;
        }
        let place = u32::try_from(state.made.len()).unwrap_or(u32::MAX);
        if place >= self.calls_max {
            state.halt = Some(Halt::TooManyCalls);
            // Unlocked first: the task that is woken takes the lock at once.
            drop(state);
            self.halted.notify_one();
            return None;
        }
        state.made.push(ScriptCall::new(tool, input.clone()));
        Some(place)
    }

    /// Counts a tool as running, unless the script must stop.
    pub(crate) fn try_begin(&self) -> bool {
        let mut state = self.state();
        if state.halt.is_some() {
            return false;
        }
        state.running += 1;
        true
    }

    /// Counts a tool that ran as ended, and keeps its result. Says whether the
    /// script may hear of it: one that must stop hears nothing more.
    pub(crate) fn finish(&self, finished: Result<(FinishedCall, Option<ToolFault>), Halt>) -> bool {
        let mut state = self.state();
        state.running = state.running.saturating_sub(1);
        match finished {
            // It goes before any other halt: a journal kept for another reason would
            // lack this call.
            Err(halt @ Halt::NotJournaled { .. }) => state.halt = Some(halt),
            Err(halt) => {
                state.halt.get_or_insert(halt);
            }
            Ok((call, fault)) => {
                state.note_answer(call.place, fault);
                state.journal.done.push(call);
            }
        }
        let goes_on = state.halt.is_none();
        drop(state);
        if !goes_on {
            self.halted.notify_one();
        }
        goes_on
    }

    /// Notes the answer of a call that is repeated from the journal.
    pub(crate) fn note_answer(&self, place: u32, fault: Option<ToolFault>) {
        self.state().note_answer(place, fault);
    }

    /// Stops the script, unless something else has.
    pub(crate) fn halt(&self, halt: Halt) {
        self.state().halt.get_or_insert(halt);
        self.halted.notify_one();
    }

    /// Returns when the script must not go on and every tool that had begun has ended.
    pub(crate) async fn wait_for_halt(&self) -> Halt {
        loop {
            // Made before the look, so that a halt set in between is not missed.
            let halted = self.halted.notified();
            {
                let state = self.state();
                if let (Some(halt), 0) = (&state.halt, state.running) {
                    return halt.clone();
                }
            }
            halted.await;
        }
    }

    /// The call at a place.
    pub(crate) fn get(&self, place: usize) -> Option<ScriptCall> {
        self.state().made.get(place).cloned()
    }

    pub(crate) fn count(&self) -> usize {
        self.state().made.len()
    }

    /// Calls without an answer, in their order.
    pub(crate) fn unanswered(&self) -> Vec<ScriptCall> {
        let state = self.state();
        let calls = state.made.iter().chain(&state.never_begun);
        calls.filter(|call| !call.is_answered).cloned().collect()
    }

    /// Keeps the calls that the end of the script overtook.
    pub(crate) fn keep_never_begun(&self, calls: Vec<ScriptCall>) {
        self.state().never_begun = calls;
    }

    /// Keeps the console of a run that is dropped.
    pub(crate) fn keep_console(&self, console: Vec<GuestLine>) {
        self.state().console = console;
    }

    pub(crate) fn take_console(&self) -> Vec<GuestLine> {
        std::mem::take(&mut self.state().console)
    }

    /// Keeps what the sender must know about a call.
    pub(crate) fn note(&self, notes: &[String]) {
        self.state().notes.extend_from_slice(notes);
    }

    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.state().notes)
    }

    pub(crate) fn journal(&self) -> Journal {
        self.state().journal.clone()
    }

    /// What the script's clock says.
    pub(crate) fn clock_ms(&self) -> i64 {
        self.state().journal.clock_ms()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    fn note_answer(&mut self, place: u32, fault: Option<ToolFault>) {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        if let Some(call) = self.made.get_mut(place) {
            call.fault = fault;
            call.is_answered = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::journal::StepAnswer;
    use crate::services::RunStart;

    fn calls(calls_max: u32) -> ScriptCalls {
        let start = RunStart { now_ms: 0, seed: 1 };
        ScriptCalls::new(Journal::begin(start), calls_max)
    }

    fn finished(place: u32) -> Result<(FinishedCall, Option<ToolFault>), Halt> {
        let call = FinishedCall {
            place,
            tool: "a".to_owned(),
            arguments: String::new(),
            at_ms: 0,
            answer: StepAnswer::Value("1".to_owned()),
        };
        Ok((call, None))
    }

    fn pending() -> Halt {
        Halt::Pending {
            tool: "a".to_owned(),
            message: String::new(),
        }
    }

    #[tokio::test]
    async fn one_call_too_many_halts_the_script() {
        let calls = calls(1);
        assert_eq!(calls.register("a", &Value::Null), Some(0));
        assert_eq!(calls.register("a", &Value::Null), None);
        assert!(matches!(calls.wait_for_halt().await, Halt::TooManyCalls));
        assert_eq!(calls.count(), 1);
    }

    #[tokio::test]
    async fn a_halt_waits_for_tools_that_run() {
        let calls = calls(2);
        calls.register("a", &Value::Null);
        calls.register("a", &Value::Null);
        assert!(calls.try_begin() && calls.try_begin());
        assert!(!calls.finish(Err(pending())));
        assert!(!calls.try_begin(), "nothing begins after a halt");
        let soon = std::time::Duration::from_millis(20);
        let waited = tokio::time::timeout(soon, calls.wait_for_halt()).await;
        assert!(waited.is_err(), "a tool still runs");
        assert!(!calls.finish(finished(1)), "the script hears nothing more");
        assert!(matches!(calls.wait_for_halt().await, Halt::Pending { .. }));
        assert_eq!(calls.journal().done.len(), 1);
    }

    #[tokio::test]
    async fn a_journal_that_cannot_be_written_goes_before_other_halts() {
        let calls = calls(2);
        assert!(calls.try_begin() && calls.try_begin());
        calls.finish(Err(pending()));
        calls.finish(Err(Halt::NotJournaled {
            tool: "a".to_owned(),
            ran: true,
            why: String::new(),
        }));
        calls.halt(pending());
        let halt = calls.wait_for_halt().await;
        assert!(matches!(halt, Halt::NotJournaled { .. }), "{halt:?}");
    }
}
