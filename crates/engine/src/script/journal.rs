//! What a script had done when it stopped for a person, and doing it again without
//! doing it: calls that are over are answered from the journal, in the order they
//! were answered then, and nothing new begins before the last of them is.
//!
//! A script that goes on adds a step before each tool runs and one before it hears
//! its result (`stored_journal`). So the run that goes on after a crash knows what
//! is over, and what may or may not have happened.

use model::caller::{Caller, CallerKind};
use model::config::ScriptPreset;
use model::document::digest;
use model::word::Word as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::services::RunStart;

/// The form of a journal. One of another form counts for nothing.
const FORM: u32 = 1;

/// What a script had done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Journal {
    form: u32,
    seed: u64,
    now_ms: i64,
    /// In the order they were answered.
    pub(crate) done: Vec<FinishedCall>,
}

/// A call that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FinishedCall {
    /// Which of the script's calls, counted from 0.
    pub(crate) place: u32,
    pub(crate) tool: String,
    /// The digest of the arguments.
    pub(crate) arguments: String,
    /// What the script's clock said then.
    pub(crate) at_ms: i64,
    pub(crate) answer: StepAnswer,
}

/// What a script does after it stopped once, in the order it does it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum JournalStep {
    /// Every gate said yes to a call, and its tool is about to run.
    #[serde(rename = "Began")]
    Begun(BegunCall),
    /// The call is over.
    #[serde(rename = "Done")]
    Finished(FinishedCall),
}

/// A call that has begun. Whether it ended is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BegunCall {
    pub(crate) place: u32,
    pub(crate) tool: String,
    /// The digest of the arguments.
    pub(crate) arguments: String,
}

impl JournalStep {
    pub(crate) fn write(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

/// What a script was told, as JSON text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StepAnswer {
    Value(String),
    Error(String),
}

impl Journal {
    /// Nothing is done yet.
    pub(crate) fn begin(start: RunStart) -> Journal {
        Journal {
            form: FORM,
            seed: start.seed,
            now_ms: start.now_ms,
            done: Vec::new(),
        }
    }

    /// A journal that was kept; nothing if it cannot be understood.
    pub(crate) fn read(text: &str) -> Option<Journal> {
        let journal: Journal = serde_json::from_str(text).ok()?;
        (journal.form == FORM).then_some(journal)
    }

    pub(crate) fn write(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    /// Adds what was done since the journal was kept. Returns the calls that had begun and
    /// of which it is not known whether they ended; nothing if a step cannot be understood.
    pub(crate) fn extend(&mut self, steps: &[String]) -> Option<Vec<BegunCall>> {
        let mut begun: Vec<BegunCall> = Vec::new();
        for step in steps {
            // One step that cannot be read spoils the journal: it may be of a call that
            // ran, and that must not run twice.
            match serde_json::from_str(step).ok()? {
                JournalStep::Begun(call) => begun.push(call),
                JournalStep::Finished(done) => {
                    begun.retain(|call| call.place != done.place);
                    self.done.push(done);
                }
            }
        }
        Some(begun)
    }

    /// What the script's clock says: it never goes back.
    pub(crate) fn clock_ms(&self) -> i64 {
        self.done.last().map_or(self.now_ms, |done| done.at_ms)
    }

    /// What the script started from.
    pub(crate) fn run_start(&self) -> RunStart {
        RunStart {
            now_ms: self.now_ms,
            seed: self.seed,
        }
    }
}

/// What a journal belongs to: this caller's call with these arguments under this
/// preset. Nothing if there is no digest of that, and then nothing is kept.
pub(crate) fn key(
    caller: &Caller,
    arguments: &Map<String, Value>,
    preset: ScriptPreset,
) -> Option<String> {
    let kind = match caller.kind {
        CallerKind::Owner => "owner",
        CallerKind::Named => "named",
    };
    let bound = json!({
        "caller": caller.name, "kind": kind, "preset": preset.word(), "arguments": arguments,
    });
    digest::of_value(&bound).ok()
}

/// A journal that is gone through again.
#[derive(Debug)]
pub(crate) struct Replay {
    done: Vec<FinishedCall>,
    /// How many of them were answered again.
    answered: watch::Sender<usize>,
}

/// What a call is to a replay.
#[derive(Debug)]
pub(crate) enum ReplayMatch {
    /// It is over; its answer, when its turn comes.
    Done(usize),
    /// It was not over.
    New,
    /// At its place was another call.
    Diverged,
}

impl Replay {
    pub(crate) fn of(journal: &Journal) -> Replay {
        Replay {
            done: journal.done.clone(),
            answered: watch::Sender::new(0),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.done.len()
    }

    pub(crate) fn find(&self, place: u32, tool: &str, arguments: &str) -> ReplayMatch {
        let mut done = self.done.iter();
        let Some(index) = done.position(|done| done.place == place) else {
            return ReplayMatch::New;
        };
        match self.done.get(index) {
            Some(done) if done.tool == tool && done.arguments == arguments => {
                ReplayMatch::Done(index)
            }
            Some(_) | None => ReplayMatch::Diverged,
        }
    }

    /// The answer of a call that is over, when all before it were given.
    pub(crate) async fn answer(&self, index: usize) -> Option<&FinishedCall> {
        // In the order of the first run: a script that races its calls would take another
        // path otherwise.
        self.wait_for(index).await;
        self.answered.send_modify(|answered| *answered += 1);
        self.done.get(index)
    }

    /// Returns when every answer was given.
    pub(crate) async fn wait_until_answered(&self) {
        self.wait_for(self.done.len()).await;
    }

    async fn wait_for(&self, count: usize) {
        if *self.answered.borrow() >= count {
            return;
        }
        // It fails only without a sender, and this struct holds the sender.
        let _ = self
            .answered
            .subscribe()
            .wait_for(|answered| *answered >= count)
            .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(place: u32, tool: &str) -> FinishedCall {
        FinishedCall {
            place,
            tool: tool.to_owned(),
            arguments: "x".to_owned(),
            at_ms: 5,
            answer: StepAnswer::Value("1".to_owned()),
        }
    }

    fn journal() -> Journal {
        let mut journal = Journal::begin(RunStart {
            now_ms: 7,
            seed: u64::MAX,
        });
        journal.done = vec![done(1, "b"), done(0, "a")];
        journal
    }

    #[test]
    fn a_journal_survives_being_kept() {
        let text = journal().write().expect("text");
        assert_eq!(Journal::read(&text), Some(journal()));
        assert_eq!(
            Journal::read(&text.replace("\"form\":1", "\"form\":2")),
            None
        );
        assert_eq!(Journal::read("{}"), None);
    }

    #[test]
    fn begun_calls_without_an_end_are_returned() {
        let began = |place: u32| BegunCall {
            place,
            tool: "a".to_owned(),
            arguments: "x".to_owned(),
        };
        let steps = [
            JournalStep::Begun(began(2)),
            JournalStep::Begun(began(3)),
            JournalStep::Finished(done(3, "a")),
            JournalStep::Finished(done(4, "a")),
        ];
        let steps: Vec<_> = steps.iter().filter_map(JournalStep::write).collect();
        let mut journal = journal();
        assert_eq!(journal.extend(&steps), Some(vec![began(2)]));
        let places: Vec<_> = journal.done.iter().map(|done| done.place).collect();
        assert_eq!(places, [1, 0, 3, 4]);
        assert_eq!(journal.extend(&["{}".to_owned()]), None);
    }

    #[test]
    fn a_journal_is_of_one_caller_one_call_one_preset() {
        let arguments = Map::from_iter([("script".to_owned(), json!("x"))]);
        let other = Map::from_iter([("script".to_owned(), json!("y"))]);
        let ann = Caller::named("ann");
        let owner = Caller {
            kind: CallerKind::Owner,
            ..ann.clone()
        };
        let secure = ScriptPreset::Secure;
        let keys = [
            key(&ann, &arguments, secure),
            key(&owner, &arguments, secure),
            key(&Caller::named("bob"), &arguments, secure),
            key(&ann, &other, secure),
            key(&ann, &arguments, ScriptPreset::Balanced),
        ];
        let different: std::collections::BTreeSet<_> = keys.iter().flatten().collect();
        assert_eq!(different.len(), keys.len());
    }

    #[tokio::test]
    async fn replayed_answers_keep_their_order() {
        let replay = Replay::of(&journal());
        assert!(matches!(replay.find(0, "a", "x"), ReplayMatch::Done(1)));
        assert!(matches!(replay.find(0, "a", "y"), ReplayMatch::Diverged));
        assert!(matches!(replay.find(1, "a", "x"), ReplayMatch::Diverged));
        assert!(matches!(replay.find(2, "a", "x"), ReplayMatch::New));
        let order = std::sync::Mutex::new(Vec::new());
        let one = async {
            replay.answer(1).await;
            order.lock().expect("whole").push("a");
        };
        let two = async {
            replay.answer(0).await;
            order.lock().expect("whole").push("b");
        };
        let three = async {
            replay.wait_until_answered().await;
            order.lock().expect("whole").push("new");
        };
        tokio::join!(three, one, two);
        assert_eq!(*order.lock().expect("whole"), ["b", "a", "new"]);
    }
}
