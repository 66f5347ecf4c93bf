//! Requests that wait for the writer. The number of waiting openings is bounded;
//! ends are always taken, because each belongs to an opening that was accepted.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use model::record::audit::{Closing, Failure, Status, spell};
use model::sync::lock;
use tokio::sync::oneshot;

use crate::audit::entry::Link;
use crate::audit::retention::{Removed, Retention};
use crate::audit::write::chain::{NewAnchor, NewEnd, NewEntry, NewNotice};
use crate::clock::now_ms;
use crate::error::StoreError;

/// Something to write, and where to answer.
pub(crate) enum WriteRequest {
    Open(NewEntry, oneshot::Sender<Result<OpenRow, StoreError>>),
    Close(NewEnd, Option<oneshot::Sender<Result<Link, StoreError>>>),
    Notice(NewNotice, mpsc::Sender<Result<Link, StoreError>>),
    Anchor(NewAnchor, mpsc::Sender<Result<Link, StoreError>>),
    Retain(Retention, mpsc::Sender<Result<Removed, StoreError>>),
}

/// The queue in front of the writer.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    waiting_max: usize,
}

#[derive(Default)]
struct State {
    requests: Vec<WriteRequest>,
    /// Whether a call is about to write what waits.
    is_led: bool,
    is_parked: bool,
    is_nudged: bool,
    is_closed: bool,
}

impl State {
    /// Whether the thread should wake up. What waits behind a leading call is written
    /// by that call.
    fn has_work(&self) -> bool {
        (!self.requests.is_empty() && !self.is_led) || self.is_closed || self.is_nudged
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("waiting", &self.requests.len())
            .field("is_closed", &self.is_closed)
            .finish_non_exhaustive()
    }
}

/// Where in the queue a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePosition {
    First,
    Behind,
}

/// What taking from the queue found.
pub(crate) struct QueueTake {
    /// Whether more may come.
    pub(crate) is_open: bool,
    /// Whether the wait timed out before a request came.
    pub(crate) is_idle: bool,
}

impl Queue {
    pub(crate) fn new(waiting_max: usize) -> Queue {
        Queue {
            state: Mutex::default(),
            wake: Condvar::new(),
            waiting_max,
        }
    }

    /// Adds a request, unless too many wait already. The first to add must write what
    /// waits, or hand it over to the thread.
    pub(crate) fn push(&self, request: WriteRequest) -> Result<QueuePosition, StoreError> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(StoreError::Closed);
        }
        let is_bounded = match request {
            WriteRequest::Open(..)
            | WriteRequest::Notice(..)
            | WriteRequest::Anchor(..)
            | WriteRequest::Retain(..) => true,
            // An end belongs to an opening that was accepted; refusing it would
            // leave the call open.
            WriteRequest::Close(..) => false,
        };
        if is_bounded && state.requests.len() >= self.waiting_max {
            return Err(StoreError::QueueFull {
                queue_max: self.waiting_max,
            });
        }
        // While a leader yields, those who come join its group; one of them writes for all.
        let is_first = state.requests.is_empty() && !state.is_led;
        state.requests.push(request);
        state.is_led |= is_first;
        Ok(match is_first {
            true => QueuePosition::First,
            false => QueuePosition::Behind,
        })
    }

    /// Takes everything that waits, for the request that was first.
    pub(crate) fn take_at_once(&self) -> Vec<WriteRequest> {
        let mut state = self.lock();
        state.is_led = false;
        std::mem::take(&mut state.requests)
    }

    /// Puts back what could not be written at once, for the thread to write.
    pub(crate) fn give_back(&self, mut requests: Vec<WriteRequest>) {
        {
            let mut state = self.lock();
            requests.append(&mut state.requests);
            state.requests = requests;
        }
        self.hand_over();
    }

    /// Leaves what waits to the thread.
    pub(crate) fn hand_over(&self) {
        self.lock().is_led = false;
        self.nudge();
    }

    /// Whether no request waits and the queue is open.
    pub(crate) fn is_free(&self) -> bool {
        let state = self.lock();
        state.requests.is_empty() && !state.is_closed
    }

    /// How many requests wait.
    pub(crate) fn waiting(&self) -> u64 {
        u64::try_from(self.lock().requests.len()).unwrap_or(u64::MAX)
    }

    /// Wakes the thread although no request was added.
    pub(crate) fn nudge(&self) {
        let mut state = self.lock();
        state.is_nudged = true;
        let is_parked = state.is_parked;
        drop(state);
        if is_parked {
            self.wake.notify_one();
        }
    }

    /// Takes everything that waits into `batch`. Waits for a request if there is none,
    /// for at most `idle_max` if given. A closed queue is empty afterwards.
    pub(crate) fn take(
        &self,
        batch: &mut Vec<WriteRequest>,
        idle_max: Option<Duration>,
    ) -> QueueTake {
        let mut state = self.lock();
        let mut is_idle = false;
        while !state.has_work() && !is_idle {
            state.is_parked = true;
            state = match idle_max {
                None => {
                    let waited = self.wake.wait(state);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
                Some(idle_max) => {
                    let waited = self.wake.wait_timeout(state, idle_max);
                    let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    is_idle = timeout.timed_out();
                    state
                }
            };
        }
        state.is_parked = false;
        state.is_nudged = false;
        // A closed queue is emptied even behind a leader: no later take comes.
        if !state.is_led || state.is_closed {
            std::mem::swap(&mut state.requests, batch);
        }
        QueueTake {
            is_open: !state.is_closed,
            is_idle,
        }
    }

    /// Refuses further requests. What waits is still written.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
    }

    /// Drops what waits when the writer has ended. A task that waits for an answer gets
    /// [`StoreError::Closed`], because its channel closes.
    pub(crate) fn abandon(&self) {
        let requests = {
            let mut state = self.lock();
            state.is_closed = true;
            std::mem::take(&mut state.requests)
        };
        drop(requests);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// A call whose opening is written and whose end is not. Dropped without an end, it
/// is closed as cancelled.
#[derive(Debug)]
pub struct OpenRow {
    queue: Arc<Queue>,
    call_id: String,
    opened: u64,
    /// The commit that wrote it.
    pub(crate) commit: u64,
    is_ended: bool,
}

impl OpenRow {
    pub(crate) fn new(queue: Arc<Queue>, call_id: String, opened: u64, commit: u64) -> OpenRow {
        OpenRow {
            queue,
            call_id,
            opened,
            commit,
            is_ended: false,
        }
    }

    /// The call.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The sequence of its open record.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.opened
    }

    /// The end to write. After this, dropping the row does nothing.
    pub(crate) fn end(&mut self, status: Status, differs: bool, part: String) -> NewEnd {
        self.is_ended = true;
        NewEnd {
            opened: self.opened,
            call_id: self.call_id.clone(),
            status,
            differs,
            part,
        }
    }
}

impl Drop for OpenRow {
    fn drop(&mut self) {
        if self.is_ended {
            return;
        }
        let error = Failure {
            code: "call.cancelled".to_owned(),
            message: "the client disconnected".to_owned(),
        };
        let closing = Closing::bare(now_ms(), Status::Cancelled, Some(error));
        // If it cannot be queued it stays open, and the next process closes it as
        // crashed.
        if let Ok(part) = spell::closing(&closing) {
            let end = self.end(Status::Cancelled, false, part);
            if self.queue.push(WriteRequest::Close(end, None)).is_ok() {
                self.queue.hand_over();
            }
        }
    }
}
