//! Questions of servers on their way to the person at the client.
//!
//! A server asks in the middle of its own connection, so its question is handed over to
//! the task of the call. A legacy client is asked from there, while its call is open.
//!
//! A modern client cannot be asked while its call is open: the call ends with the question,
//! and the client comes again with the answer. Meanwhile the server waits. So the call
//! runs in a task of its own, and is kept here from one request of the client to the next.
//! A client that does not come back in time loses it: the call is cancelled, for there is
//! no one left to give its result to.

use std::collections::HashMap;
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::Engine;
use engine::call::{CallRequest, ElicitAnswer, ElicitQuestion, Elicitor};
use model::record::outcome::Outcome;
use model::sync::lock;
use rmcp::model::ElicitRequestParams;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::call_count::CallSlot;
use crate::limit;
use crate::protocol::elicit::{Deferred, Elicit};
use crate::protocol::progress::{self, ProgressFeed};
use crate::protocol::view::RequestView;

/// What a question of ours, whether a call may be made, is called.
pub(crate) const APPROVAL_KEY: &str = "approval";

/// The calls that wait, by the names of their questions.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParkedCalls(Arc<Mutex<HashMap<String, ParkedCall>>>);

/// A call that waits for an answer.
#[derive(Debug)]
pub(crate) struct ParkedCall {
    pub(crate) call: RunningCall,
    pub(crate) question: ServerQuestion,
}

/// A question of a server, for the person at the client.
pub(crate) struct ServerQuestion {
    /// Its name. It cannot be guessed, and says nothing.
    pub(crate) id: String,
    /// What the client calls it.
    pub(crate) key: String,
    pub(crate) form: ElicitRequestParams,
    /// How long an answer counts.
    pub(crate) wait: Duration,
    answer: oneshot::Sender<ElicitAnswer>,
}

impl fmt::Debug for ServerQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerQuestion")
    }
}

impl ServerQuestion {
    /// Hands the answer to the server.
    pub(crate) fn answer(self, answer: ElicitAnswer) {
        // If the call is over, the answer is dropped.
        let _ = self.answer.send(answer);
    }
}

impl ParkedCalls {
    /// Keeps a call until its client comes again. One too many is given up.
    pub(crate) fn park(&self, parked: ParkedCall) -> bool {
        let mut all = lock(&self.0);
        // Each of them keeps a connection to a server busy.
        let has_room = all.len() < limit::PARKED_CALLS_MAX;
        if has_room {
            all.insert(parked.question.id.clone(), parked);
        }
        has_room
    }

    /// Takes the call that waits for this question. Each is taken once.
    pub(crate) fn take(&self, question: &str) -> Option<ParkedCall> {
        lock(&self.0).remove(question)
    }

    /// Gives up every call that waits.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *lock(&self.0));
        drop(all);
    }
}

/// Hands the questions of servers over to the task of the call.
#[derive(Debug)]
struct ParkedElicitor {
    parked: ParkedCalls,
    questions: mpsc::Sender<ServerQuestion>,
    wait: Duration,
}

/// The elicitor for the engine, and the receiver of its questions, one at a time.
pub(crate) fn elicitor(
    parked: &ParkedCalls,
    wait: Duration,
) -> (Arc<dyn Elicitor>, mpsc::Receiver<ServerQuestion>) {
    // A second question waits until the first is answered.
    let (sender, questions) = mpsc::channel(1);
    let elicitor = ParkedElicitor {
        parked: parked.clone(),
        questions: sender,
        wait,
    };
    (Arc::new(elicitor), questions)
}

/// Waits for a call, and forwards questions of servers to the client meanwhile. For the
/// task of the client's request: a question finds its stream by that task.
pub(crate) async fn while_asking<T>(
    call: impl Future<Output = T>,
    mut questions: mpsc::Receiver<ServerQuestion>,
    elicit: &Elicit,
) -> T {
    let mut call = pin!(call);
    loop {
        let question = tokio::select! {
            // Biased: a call that has ended asks nothing more.
            biased;
            ended = &mut call => return ended,
            Some(question) = questions.recv() => question,
        };
        let asking = elicit.ask_for_server(question.form.clone());
        let answer = tokio::select! {
            biased;
            ended = &mut call => return ended,
            answer = asking => answer,
        };
        question.answer(answer);
    }
}

impl Elicitor for ParkedElicitor {
    fn ask(
        &self,
        question: ElicitQuestion,
    ) -> Pin<Box<dyn Future<Output = ElicitAnswer> + Send + '_>> {
        Box::pin(async move {
            let key = shown_key(question.key);
            let form = serde_json::from_value::<ElicitRequestParams>(question.form);
            let (Ok(form), Some(id)) = (form, question_name()) else {
                return ElicitAnswer::Decline;
            };
            let (answer, answered) = oneshot::channel();
            let question = ServerQuestion {
                id: id.clone(),
                key,
                form,
                wait: self.wait,
                answer,
            };
            if self.questions.send(question).await.is_err() {
                return ElicitAnswer::Cancel;
            }
            match timeout(self.wait, answered).await {
                Ok(Ok(answer)) => answer,
                // The client did not come back: its call is given up with its question.
                Ok(Err(_)) | Err(_) => {
                    drop(self.parked.take(&id));
                    ElicitAnswer::Cancel
                }
            }
        })
    }
}

/// The name of a question that has none of its own, or one that is not passed on.
const KEY_DEFAULT: &str = "question";
/// Characters of a name that is passed on.
const KEY_CHARS_MAX: usize = 64;

/// What the client calls a question: what the server does. Attack: a server that names its
/// question as ours are named.
fn shown_key(key: Option<String>) -> String {
    let is_plain = |key: &String| {
        let mut bytes = key.bytes();
        let fits = (1..=KEY_CHARS_MAX).contains(&key.len());
        fits && bytes.all(|byte| byte.is_ascii_graphic()) && key != APPROVAL_KEY
    };
    key.filter(is_plain)
        .unwrap_or_else(|| KEY_DEFAULT.to_owned())
}

fn question_name() -> Option<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// A call of the engine in a task of its own. Dropped before its end, it is cancelled.
#[derive(Debug)]
pub(crate) struct RunningCall {
    task: JoinHandle<(Outcome, CallSlot)>,
    questions: mpsc::Receiver<ServerQuestion>,
    feed: ProgressFeed,
    cancel: CancellationToken,
    _given_up: DropGuard,
    /// The question about the call itself, should one come up.
    pub(crate) approval: Arc<Deferred>,
}

/// The next event of a running call.
#[derive(Debug)]
pub(crate) enum ParkedStep {
    /// A server asks.
    Asks(Box<ServerQuestion>),
    /// It is over.
    Ended(Box<Outcome>, CallSlot),
    /// Its task panicked or was aborted.
    Lost,
}

impl RunningCall {
    /// Starts a call whose client can be asked by ending its request.
    pub(crate) fn start(
        engine: &Arc<Engine>,
        parked: &ParkedCalls,
        mut request: CallRequest,
        (slot, approval): (CallSlot, Arc<Deferred>),
        wait: Duration,
        stop: &CancellationToken,
    ) -> RunningCall {
        // Not the token of the request: the call outlives it while its client fetches an
        // answer.
        let cancel = stop.child_token();
        request.cancel = cancel.clone();
        let (progress, feed) = progress::listener();
        request.progress = Some(progress);
        let (elicitor, questions) = elicitor(parked, wait);
        request.elicitor = Some(elicitor);
        let engine = Arc::clone(engine);
        let task = tokio::spawn(async move {
            let outcome = Box::pin(engine.call(request)).await;
            (outcome.into_inner(), slot)
        });
        RunningCall {
            task,
            questions,
            feed,
            _given_up: cancel.clone().drop_guard(),
            cancel,
            approval,
        }
    }

    /// Waits for the next event, and sends progress to the client meanwhile.
    pub(crate) async fn follow(&mut self, view: RequestView<'_>) -> ParkedStep {
        let RunningCall {
            task,
            questions,
            feed,
            cancel,
            ..
        } = self;
        let step = async {
            loop {
                tokio::select! {
                    biased;
                    // Questions first: a call that waits for an answer has not ended.
                    Some(question) = questions.recv() => return ParkedStep::Asks(Box::new(question)),
                    ended = &mut *task => return match ended {
                        Ok((outcome, slot)) => ParkedStep::Ended(Box::new(outcome), slot),
                        Err(_) => ParkedStep::Lost,
                    },
                    // Only once: a cancelled token is ready at every poll, and the loop
                    // would spin.
                    () = view.cancel().cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
                }
            }
        };
        match view.progress() {
            Some((peer, token)) => progress::while_running(step, feed, peer, token).await,
            None => step.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_keeps_its_name_unless_it_could_pass_for_ours() {
        let shown = |key: &str| shown_key(Some(key.to_owned()));
        assert_eq!(shown("user_name"), "user_name");
        assert_eq!(shown(&"x".repeat(64)), "x".repeat(64));
        for odd in ["approval", "", "two words", "a\u{202e}b", &"x".repeat(65)] {
            assert_eq!(shown(odd), "question", "{odd:?}");
        }
        assert_eq!(shown_key(None), "question");
    }
}
