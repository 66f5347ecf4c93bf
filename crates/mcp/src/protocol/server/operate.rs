//! Operations of clients, from request to end: with a question, refused, or done. Calls
//! of tools, prompts and resources all take this path.

use std::sync::Arc;
use std::time::Duration;

use engine::approve::{AnswerFault, ApprovalAnswer, Channel};
use engine::call::{CallRequest, Refused};
use engine::{Engine, Gate};
use model::caller::{Caller, Origin};
use model::govern::approval::ApprovalState;
use model::reason::Reason;
use model::record::outcome::{CallError, Outcome};
use rmcp::ErrorData;
use rmcp::model::{InputRequiredResult, InputResponses};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::McpServer;
use crate::call_count::CallSlot;
use crate::era::Era;
use crate::protocol::door::Inner;
use crate::protocol::elicit::{AskVia, Deferred, Elicit, can_ask};
use crate::protocol::parked::{ParkedCall, ParkedStep, RunningCall};
use crate::protocol::request_state::{ClientAnswer, ReturnedState, StateBinding};
use crate::protocol::view::RequestView;
use crate::protocol::{parked, progress, reply, request_state};

/// An operation that a client requests.
#[derive(Debug)]
pub(super) struct Operation {
    /// The tool, or the tool of a prompt or a resource.
    pub(super) name: String,
    pub(super) arguments: Value,
    /// The sealed state from an earlier reply.
    pub(super) state: Option<String>,
    pub(super) responses: Option<InputResponses>,
}

/// How it ended.
#[derive(Debug)]
pub(super) enum Operated {
    /// With a question: the client comes again with the answer.
    Asks(InputRequiredResult),
    /// With an outcome, whose place is held until it was sent.
    Ended(Box<Outcome>, CallSlot),
}

impl McpServer {
    /// How the person at this client can be asked.
    fn ask_via(&self, view: RequestView<'_>, era: Era, wait: Duration) -> AskVia {
        if !can_ask(view.capabilities().as_ref()) {
            return AskVia::None;
        }
        match (era, view.peer()) {
            (Era::Legacy, None) => AskVia::None,
            (Era::Legacy, Some(peer)) => AskVia::Now(Arc::new(Elicit {
                peer: peer.clone(),
                version: view.version(),
                wait,
            })),
            (Era::Modern, _) => AskVia::Later(Arc::new(Deferred::default())),
        }
    }

    /// One call through the engine, with progress and everything that can stop it.
    pub(super) async fn call_engine(
        &self,
        mut request: CallRequest,
        view: RequestView<'_>,
    ) -> Outcome {
        let engine = &self.inner().engine;
        let cancel = view.cancel().child_token();
        request.cancel = cancel.clone();
        let told = view.progress().map(|(peer, token)| {
            let (progress, feed) = progress::listener();
            request.progress = Some(progress);
            (peer, token, feed)
        });
        let calling = engine.call(request);
        let call = async {
            tokio::select! {
                outcome = calling => outcome.into_inner(),
                never = forward(&self.inner().stop, &cancel) => match never {},
            }
        };
        match told {
            Some((peer, token, feed)) => progress::while_running(call, &feed, peer, token).await,
            None => call.await,
        }
    }

    /// One attempt, from request to end. The engine records every refusal.
    pub(super) async fn operate(
        &self,
        operation: Operation,
        view: RequestView<'_>,
    ) -> Result<Operated, ErrorData> {
        let inner = self.inner();
        let era = view.era();
        let caller = self.caller(view.parts())?;
        let name = operation.name.as_str();
        let binding = StateBinding {
            caller: &caller,
            tool: name,
            arguments: &operation.arguments,
        };
        // Before a slot is taken: a call that waited still has its own.
        if let Some(parked) = resume(inner, &operation, &binding) {
            let ResumedCall { parked, answer } = parked;
            return match answer {
                None => self.park(parked, &binding, era),
                Some(answer) => {
                    parked.question.answer(answer);
                    self.follow(parked.call, None, &binding, view).await
                }
            };
        }
        let now = inner.engine.registry().current();
        let most = now.config.serve.calls_per_caller_max;
        let slot = inner.calls.enter(&caller.name, most);
        let wait = Duration::from_secs(now.config.approvals.wait_seconds);
        let mut ask_via = self.ask_via(view, era, wait);
        let arguments = operation.arguments.clone();
        let mut call = CallRequest::new(caller.clone(), Origin::Mcp, name, arguments);
        call.deadline = Some(Duration::from_secs(now.config.serve.call_seconds_max));
        call.session = self.session(view.parts(), era);
        call.trace = view.trace();
        let may_elicit = now.may_elicit(name);
        call.snapshot = Some(now);
        // Before the state is opened: a call there is no room for must not use up an
        // answer.
        call.refused = refuse_busy(inner, &slot, &caller);
        if let (None, Some(state)) = (&call.refused, &operation.state) {
            let responses = operation.responses.as_ref();
            match take_returned(inner, state, responses, &binding).await {
                // The client answers without showing its questions to a person. The
                // engine has recorded the answer and does not accept it. This only
                // picks another way to ask: the inbox instead of this client.
                Ok(Some(ApprovalAnswer::NotRendered)) => ask_via = AskVia::Unshown,
                Ok(_) => {}
                Err(reason) => call.refused = Some(refuse_state(reason)),
            }
        }
        call.approver = ask_via.approver();
        match &ask_via {
            AskVia::Later(approval) if may_elicit => {
                let kept = (slot, Arc::clone(approval));
                let (engine, parked) = (&inner.engine, &inner.parked);
                let running = RunningCall::start(engine, parked, call, kept, wait, &inner.stop);
                // With a state, they are answers to what that state asked.
                let early = operation.responses.as_ref();
                let early = early.filter(|_| operation.state.is_none()).cloned();
                self.follow(running, early, &binding, view).await
            }
            AskVia::Now(elicit) if may_elicit => {
                let (elicitor, questions) = parked::elicitor(&inner.parked, wait);
                call.elicitor = Some(elicitor);
                let calling = Box::pin(self.call_engine(call, view));
                let outcome = parked::while_asking(calling, questions, elicit).await;
                conclude(inner, outcome, slot, ask_via.question(), &binding, era)
            }
            AskVia::Now(_) | AskVia::Later(_) | AskVia::Unshown | AskVia::None => {
                let outcome = self.call_engine(call, view).await;
                conclude(inner, outcome, slot, ask_via.question(), &binding, era)
            }
        }
    }

    /// Follows a call in a task of its own until it ends or a server asks what the client
    /// has not answered yet. `early` are answers that came with the call itself, by the
    /// names of their questions; each counts once.
    async fn follow(
        &self,
        mut call: RunningCall,
        mut early: Option<InputResponses>,
        binding: &StateBinding<'_>,
        view: RequestView<'_>,
    ) -> Result<Operated, ErrorData> {
        let era = view.era();
        loop {
            match call.follow(view).await {
                ParkedStep::Asks(question) => {
                    let question = *question;
                    let known = early.as_mut().and_then(|early| early.remove(&question.key));
                    match known {
                        Some(answer) => question.answer(request_state::server_answer(&answer)),
                        None => return self.park(ParkedCall { call, question }, binding, era),
                    }
                }
                ParkedStep::Ended(outcome, slot) => {
                    let question = call.approval.take();
                    return conclude(self.inner(), *outcome, slot, question, binding, era);
                }
                ParkedStep::Lost => {
                    return Err(ErrorData::internal_error("the call was lost", None));
                }
            }
        }
    }

    /// Ends a request with the question its call waits with.
    fn park(
        &self,
        parked: ParkedCall,
        binding: &StateBinding<'_>,
        era: Era,
    ) -> Result<Operated, ErrorData> {
        let inner = self.inner();
        let asked = inner.seal.ask_for_server(&parked.question, binding);
        let unasked = || {
            let message =
                "the server asks a question that cannot be kept just now; try again later";
            ErrorData::internal_error(message, None)
        };
        // A call that is not kept is dropped, which cancels it.
        let asked = asked.ok_or_else(unasked)?;
        match inner.parked.park(parked) {
            true => Ok(Operated::Asks(asked.with_meta(reply::stamp(era)))),
            false => Err(unasked()),
        }
    }
}

/// The end of a call: its question, if a person must agree first, or its outcome.
fn conclude(
    inner: &Inner,
    mut outcome: Outcome,
    slot: CallSlot,
    question: Option<engine::approve::Question>,
    binding: &StateBinding<'_>,
    era: Era,
) -> Result<Operated, ErrorData> {
    if let Some(error) = state_error(&outcome) {
        return Err(error);
    }
    // A script that could not be kept, or ran out of time, has ended: an answer
    // would start it from the beginning.
    let error = outcome.error.as_ref();
    let is_pending = error.is_some_and(|error| error.reason == Reason::ApprovalPending);
    if let Some(question) = question.filter(|_| is_pending) {
        match inner.seal.ask(&question, binding) {
            Some(required) => return Ok(Operated::Asks(required.with_meta(reply::stamp(era)))),
            None => outcome.error = Some(unsealed()),
        }
    }
    Ok(Operated::Ended(Box::new(outcome), slot))
}

/// A call that waited, and the answer its client brings; none if it brings none, and is
/// asked again.
#[derive(Debug)]
struct ResumedCall {
    parked: ParkedCall,
    answer: Option<engine::call::ElicitAnswer>,
}

/// The call that waits for the answer a client brings. `None` if the state is no answer
/// to a server, is too late or was used: it is then refused like any invalid state.
fn resume(inner: &Inner, operation: &Operation, binding: &StateBinding<'_>) -> Option<ResumedCall> {
    let state = operation.state.as_ref()?;
    let responses = operation.responses.as_ref();
    let (question, answer) = inner.seal.open_for_server(state, responses, binding)?;
    let parked = inner.parked.take(&question)?;
    Some(ResumedCall { parked, answer })
}

/// Opens the state that came with a call and hands the answer in it to the engine.
/// `Ok(None)` if there is no answer, and the same question is asked again; the reason
/// if the state or the answer is refused.
async fn take_returned(
    inner: &Inner,
    state: &str,
    responses: Option<&InputResponses>,
    binding: &StateBinding<'_>,
) -> Result<Option<ApprovalAnswer>, Reason> {
    match inner.seal.open(state, responses, binding) {
        ReturnedState::Refused => Err(Reason::ApprovalState),
        ReturnedState::Unanswered => Ok(None),
        ReturnedState::Answered(answered) => {
            let taken = give(&inner.engine, binding.caller, &answered).await;
            taken.map_err(|fault| reason_of(&fault))?;
            Ok(Some(answered.answer))
        }
    }
}

/// Gives a person's answer to the engine, which judges it. The same call, made again,
/// finds it there.
async fn give(
    engine: &Arc<Engine>,
    caller: &Caller,
    answered: &ClientAnswer,
) -> Result<(), AnswerFault> {
    let (engine, caller) = (Arc::clone(engine), caller.clone());
    let (question, answer) = (answered.question.clone(), answered.answer);
    let taking = move || engine.answer(&question, &caller, Channel::InputRequired, answer);
    let taken = tokio::task::spawn_blocking(taking).await;
    match taken.unwrap_or(Err(AnswerFault::Unknown)) {
        // It was approved in the inbox meanwhile; the call finds that answer.
        Err(AnswerFault::Answered(ApprovalState::Approved)) => Ok(()),
        other => other,
    }
}

/// The error for an answer that was not accepted. The operator's log has the details if
/// the store cannot write; the client may send the same answer again.
fn reason_of(fault: &AnswerFault) -> Reason {
    match fault {
        AnswerFault::Store(_) => Reason::ApprovalUnavailable,
        AnswerFault::Unknown
        | AnswerFault::NotYours
        | AnswerFault::Several(_)
        | AnswerFault::Answered(_)
        | AnswerFault::Expired
        | AnswerFault::TooWide { .. }
        | AnswerFault::Refused(_)
        | AnswerFault::Masked
        | AnswerFault::NotApproved(_)
        | AnswerFault::TrustChanged
        | AnswerFault::NotByClient
        | AnswerFault::NotByCommand
        | AnswerFault::Separate => Reason::ApprovalState,
    }
}

/// An invalid state is an error of the protocol: the call was not made, so it has no
/// result.
fn state_error(outcome: &Outcome) -> Option<ErrorData> {
    let error = outcome.error.as_ref();
    let error = error.filter(|error| error.reason == Reason::ApprovalState)?;
    let data = json!({"code": error.reason.code(), "callId": outcome.call_id});
    Some(ErrorData::invalid_params(error.message.clone(), Some(data)))
}

/// Refuses a call that the door has no room for: too many calls of its caller are under
/// way, or too many answers are not read. Only the door can count these: both last
/// until the client has read the reply, after the engine's call has ended. The engine
/// refuses and records the attempt, at the gate of the limits.
pub(super) fn refuse_busy(inner: &Inner, slot: &CallSlot, caller: &Caller) -> Option<Refused> {
    let message = if slot.is_one_too_many() {
        "too many of your calls are in flight; wait for one to end"
    } else if !inner.unsent.has_room(&caller.name) {
        "you have not read the answers to earlier calls; read them, then make this call again"
    } else {
        return None;
    };
    Some(Refused {
        gate: Gate::Limits,
        error: CallError::passing(Reason::CallBusy, message),
    })
}

/// Refuses a call whose state is invalid, or whose answer cannot be stored.
fn refuse_state(reason: Reason) -> Refused {
    let error = match reason {
        Reason::ApprovalUnavailable => unsealed(),
        _ => CallError::new(
            Reason::ApprovalState,
            "the answer does not belong to this call, is too old, was used before or is not this \
             client's to give; the call did not run, make it again to be asked again",
        ),
    };
    Refused {
        gate: Gate::Approval,
        error,
    }
}

fn unsealed() -> CallError {
    CallError::passing(
        Reason::ApprovalUnavailable,
        "a person must approve this call, and the answer cannot be kept just now; it did not run",
    )
}

/// Cancels a call when the server must end.
async fn forward(stop: &CancellationToken, cancel: &CancellationToken) -> std::convert::Infallible {
    stop.cancelled().await;
    cancel.cancel();
    std::future::pending().await
}
