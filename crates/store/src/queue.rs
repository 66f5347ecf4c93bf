//! What waits for the writer. Beginnings are bounded; ends are always taken, for
//! each belongs to a beginning that was let in.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use model::record::audit::{Closing, Failure, Status, spell};
use tokio::sync::oneshot;

use crate::audit::{Link, Removed, Retention};
use crate::error::StoreError;
use crate::ledger::{NewEnd, NewEntry, NewNotice, now_ms};

/// Something to write, and who wants to know.
pub(crate) enum Request {
    Open(NewEntry, oneshot::Sender<Result<OpenRow, StoreError>>),
    Close(NewEnd, Option<oneshot::Sender<Result<Link, StoreError>>>),
    Notice(NewNotice, mpsc::Sender<Result<Link, StoreError>>),
    Retain(Retention, mpsc::Sender<Result<Removed, StoreError>>),
}

/// The line in front of the writer.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    waiting_max: usize,
}

#[derive(Default)]
struct State {
    requests: Vec<Request>,
    /// Whether one of the callers is about to write what waits.
    is_led: bool,
    is_parked: bool,
    is_nudged: bool,
    is_closed: bool,
}

impl State {
    /// Whether the thread should look up. What waits behind a caller is written by
    /// that caller.
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

/// Where in the line a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    First,
    Behind,
}

/// How a look at the queue went.
pub(crate) struct Taken {
    /// Whether more may come.
    pub(crate) is_open: bool,
    /// Whether the wait was over before anything came.
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

    /// Lines up, unless too many wait already. Who is first sees to it that what
    /// waits is written, or hands that over to the thread.
    pub(crate) fn push(&self, request: Request) -> Result<Place, StoreError> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(StoreError::Closed);
        }
        let is_bounded = match request {
            Request::Open(..) | Request::Notice(..) | Request::Retain(..) => true,
            Request::Close(..) => false,
        };
        if is_bounded && state.requests.len() >= self.waiting_max {
            return Err(StoreError::QueueFull {
                queue_max: self.waiting_max,
            });
        }
        let is_first = state.requests.is_empty() && !state.is_led;
        state.requests.push(request);
        state.is_led |= is_first;
        Ok(match is_first {
            true => Place::First,
            false => Place::Behind,
        })
    }

    /// Takes everything that waits, for who was first.
    pub(crate) fn take_at_once(&self) -> Vec<Request> {
        let mut state = self.lock();
        state.is_led = false;
        std::mem::take(&mut state.requests)
    }

    /// Puts back what could not be written at once; the thread writes it.
    pub(crate) fn give_back(&self, mut requests: Vec<Request>) {
        {
            let mut state = self.lock();
            requests.append(&mut state.requests);
            state.requests = requests;
        }
        self.hand_over();
    }

    /// Nobody but the thread writes what waits.
    pub(crate) fn hand_over(&self) {
        self.lock().is_led = false;
        self.nudge();
    }

    /// Whether nobody waits and the queue is open.
    pub(crate) fn is_free(&self) -> bool {
        let state = self.lock();
        state.requests.is_empty() && !state.is_closed
    }

    /// Lets the writer look up although nothing was added.
    pub(crate) fn nudge(&self) {
        let mut state = self.lock();
        state.is_nudged = true;
        let is_parked = state.is_parked;
        drop(state);
        if is_parked {
            self.wake.notify_one();
        }
    }

    /// Takes everything that waits into `batch`, waiting for something if need
    /// be, but no longer than `idle_max` if there is one. A closed queue is empty
    /// afterwards.
    pub(crate) fn take(&self, batch: &mut Vec<Request>, idle_max: Option<Duration>) -> Taken {
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
        if !state.is_led || state.is_closed {
            std::mem::swap(&mut state.requests, batch);
        }
        Taken {
            is_open: !state.is_closed,
            is_idle,
        }
    }

    /// Nobody lines up any more. What waits is still written.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
    }

    /// The writer has ended; whoever waits is told by losing its answer.
    pub(crate) fn abandon(&self) {
        let requests = {
            let mut state = self.lock();
            state.is_closed = true;
            std::mem::take(&mut state.requests)
        };
        drop(requests);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt that is written down and has not ended. Dropped without an end, it
/// ends as cancelled.
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

    /// The attempt.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The place of its open record.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.opened
    }

    /// The end to write. From here on dropping the row does nothing.
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
            message: "whoever asked went away".to_owned(),
        };
        let closing = Closing::bare(now_ms(), Status::Cancelled, Some(error));
        // Left open if it cannot be queued: the next process closes it as crashed.
        if let Ok(part) = spell::closing(&closing) {
            let end = self.end(Status::Cancelled, false, part);
            if self.queue.push(Request::Close(end, None)).is_ok() {
                self.queue.hand_over();
            }
        }
    }
}
