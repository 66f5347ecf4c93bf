//! One call between the task that hears the worker and the task that waits.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use crate::job::{GuestLine, HostRequest, RunReport};
use model::sync::lock;

use super::FinishedRun;
use super::checker::{CallChecker, Verdict};
use super::error::{RunError, Violation};

/// An event of a call.
#[derive(Debug)]
pub(super) enum Event {
    Asked(HostRequest),
    Ended(Result<FinishedRun, RunError>),
}

#[derive(Debug)]
pub(super) struct Call {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    checker: CallChecker,
    /// Bounded by the job's outstanding host calls, which the checker counts.
    asked: VecDeque<HostRequest>,
    ended: Option<Result<FinishedRun, RunError>>,
    waker: Option<Waker>,
    /// No task waits any more: later messages are checked and dropped.
    abandoned: bool,
}

/// What the last message means for the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aftermath {
    Sound,
    Broken,
}

impl Call {
    pub(super) fn new(checker: CallChecker) -> Call {
        Call {
            state: Mutex::new(State {
                checker,
                asked: VecDeque::new(),
                ended: None,
                waker: None,
                abandoned: false,
            }),
        }
    }

    pub(super) fn console(&self, line: GuestLine) -> Result<(), Violation> {
        self.state().checker.console(line)
    }

    pub(super) fn queue_request(&self, request: HostRequest) -> Result<(), Violation> {
        let mut state = self.state();
        // An abandoned call is checked too: it must not become a way to
        // send without bounds.
        state.checker.host(&request)?;
        if state.abandoned {
            return Ok(());
        }
        state.asked.push_back(request);
        wake(state);
        Ok(())
    }

    pub(super) fn finish(&self, report: RunReport) -> Result<Aftermath, Violation> {
        let mut state = self.state();
        match state.checker.check_end(report)? {
            Verdict::Ended(run) => {
                state.ended = Some(Ok(run));
                wake(state);
                Ok(Aftermath::Sound)
            }
            Verdict::Broken(detail) => {
                state.ended = Some(Err(RunError::Broken(detail)));
                wake(state);
                Ok(Aftermath::Broken)
            }
        }
    }

    /// Ends the call without a report, unless it has ended.
    pub(super) fn fail(&self, error: RunError) {
        let mut state = self.state();
        // The first end stands. A loss of the worker right after its report must not turn a
        // finished run into an error.
        if state.ended.is_none() {
            state.ended = Some(Err(error));
        }
        wake(state);
    }

    pub(super) fn count_answer(&self) {
        self.state().checker.count_answer();
    }

    pub(super) fn cancel(&self) {
        self.state().checker.cancel();
    }

    /// Marks that no task waits any more. Returns the console lines so far.
    pub(super) fn abandon(&self) -> Vec<GuestLine> {
        let mut state = self.state();
        state.abandoned = true;
        state.asked.clear();
        // From here on `cancelled` is an honest end, even before the worker has read the
        // request to cancel.
        state.checker.cancel();
        match &state.ended {
            // It ended at this very moment, and took its lines along.
            Some(Ok(run)) => run.console.clone(),
            Some(Err(_)) | None => state.checker.said().to_vec(),
        }
    }

    /// The end goes before requests that came ahead of it: their answers are not
    /// needed.
    pub(super) fn poll_event(&self, context: &mut Context<'_>) -> Poll<Event> {
        let mut state = self.state();
        if let Some(ended) = state.ended.take() {
            return Poll::Ready(Event::Ended(ended));
        }
        if let Some(request) = state.asked.pop_front() {
            return Poll::Ready(Event::Asked(request));
        }
        match &mut state.waker {
            // One task waits for a call, so the latest waker is the only one that counts.
            Some(waker) => waker.clone_from(context.waker()),
            empty => *empty = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Requests the end overtook.
    pub(super) fn unasked(&self) -> Vec<HostRequest> {
        self.state().asked.drain(..).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Wakes outside the lock: the woken may run at once on another thread.
fn wake(mut state: MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}
