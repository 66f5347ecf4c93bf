//! Assigns calls to workers: the workers, their places, and the queue.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use model::sync::lock;
use tokio::sync::oneshot;

use super::Sharing;
use super::link::Link;
use super::spawner::WorkerId;

/// The bounds a roster keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) sharing: Sharing,
    /// Calls in one worker at one time.
    pub(super) live_max: u32,
    /// Calls in one worker's life.
    pub(super) calls_max: u32,
    /// Calls that wait for a place.
    pub(super) queue_max: usize,
}

#[derive(Debug)]
pub(super) struct Roster {
    bounds: Bounds,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: Vec<Entry>,
    queue: VecDeque<Waiter>,
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    link: Arc<Link>,
    /// Places taken.
    live: u32,
    /// Places ever given.
    given: u32,
    /// The caller it belongs to, when callers are kept apart.
    owner: Option<Arc<str>>,
}

#[derive(Debug)]
struct Waiter {
    caller: Arc<str>,
    place: oneshot::Sender<WorkerSlot>,
}

/// The answer to a caller who wants to run something.
#[derive(Debug)]
pub(super) enum Admission {
    Now(WorkerSlot),
    Later(oneshot::Receiver<WorkerSlot>),
    Busy,
    Closed,
}

/// A place in a worker, given back when dropped.
#[derive(Debug)]
pub(super) struct WorkerSlot {
    pub(super) link: Arc<Link>,
    roster: Arc<Roster>,
    /// Whether dropping gives it back. A started call gives it back by ending.
    held: bool,
}

impl WorkerSlot {
    /// The call has started: hearing its end gives the place back.
    pub(super) fn hand_over(mut self) {
        // After `start` the worker has the job. Giving the place back now would let one
        // call too many into it.
        self.held = false;
    }
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        if self.held {
            self.roster.give_back(self.link.id, 1);
        }
    }
}

impl Roster {
    pub(super) fn new(bounds: Bounds) -> Roster {
        Roster {
            bounds,
            state: Mutex::default(),
        }
    }

    pub(super) fn admit(self: &Arc<Self>, caller: &str) -> Admission {
        let mut state = self.state();
        if state.closed {
            return Admission::Closed;
        }
        if let Some(link) = self.pick(&mut state, caller) {
            return Admission::Now(self.place(link));
        }
        if state.queue.len() >= self.bounds.queue_max {
            // Some may have given up.
            state.queue.retain(|waiter| !waiter.place.is_closed());
            if state.queue.len() >= self.bounds.queue_max {
                return Admission::Busy;
            }
        }
        let (place, later) = oneshot::channel();
        state.queue.push_back(Waiter {
            caller: caller.into(),
            place,
        });
        if self.bounds.sharing == Sharing::PerCaller {
            // Else a caller could wait for a worker while idle ones of other
            // callers fill the pool.
            make_way(&state);
        }
        Admission::Later(later)
    }

    /// A worker is ready.
    pub(super) fn join(self: &Arc<Self>, link: Arc<Link>) {
        self.state().entries.push(Entry {
            link,
            live: 0,
            given: 0,
            owner: None,
        });
        self.serve_queue();
    }

    /// Removes a worker with all its places.
    pub(super) fn leave(&self, id: WorkerId) {
        self.state().entries.retain(|entry| entry.link.id != id);
    }

    /// `count` calls of a worker are over.
    pub(super) fn give_back(self: &Arc<Self>, id: WorkerId, count: u32) {
        {
            let mut state = self.state();
            // A removed worker has no places any more.
            let Some(entry) = state.entries.iter_mut().find(|entry| entry.link.id == id) else {
                return;
            };
            entry.live = entry.live.saturating_sub(count);
            // The last place of a retiring worker is free: its task waits for this to end
            // the process.
            if entry.live == 0 && entry.link.is_retiring() {
                entry.link.nudge();
            }
            // Nothing waits, which is the usual case: the queue is not
            // walked for each call.
            if state.queue.is_empty() {
                return;
            }
        }
        self.serve_queue();
    }

    /// Whether no place is taken in a worker.
    pub(super) fn is_idle(&self, id: WorkerId) -> bool {
        self.state()
            .entries
            .iter()
            .all(|entry| entry.link.id != id || entry.live == 0)
    }

    /// No call is admitted any more, and none waits.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        // Dropping the senders tells the waiting that the pool is closed.
        state.queue.clear();
    }

    /// Ready workers, places taken, callers waiting, calls under way.
    pub(super) fn counts(&self) -> (usize, u32, usize, usize) {
        let state = self.state();
        let ready = state
            .entries
            .iter()
            .filter(|entry| !entry.link.is_retiring())
            .count();
        let live = state.entries.iter().map(|entry| entry.live).sum();
        let waiting = state
            .queue
            .iter()
            .filter(|waiter| !waiter.place.is_closed())
            .count();
        let calls = state
            .entries
            .iter()
            .map(|entry| entry.link.calls_count())
            .sum();
        (ready, live, waiting, calls)
    }

    pub(super) fn pids(&self) -> Vec<u32> {
        self.state()
            .entries
            .iter()
            .map(|entry| entry.link.pid)
            .collect()
    }

    /// Gives free places to waiting calls, first come first served.
    fn serve_queue(self: &Arc<Self>) {
        let mut given = Vec::new();
        {
            let mut state = self.state();
            // A waiter may have to be passed over (no worker of its own is free), so the
            // queue is rebuilt rather than stopped at the first.
            let mut still = VecDeque::new();
            while let Some(waiter) = state.queue.pop_front() {
                if waiter.place.is_closed() {
                    continue;
                }
                match self.pick(&mut state, &waiter.caller) {
                    Some(link) => given.push((waiter.place, link)),
                    None => still.push_back(waiter),
                }
            }
            state.queue = still;
            if self.bounds.sharing == Sharing::PerCaller {
                make_way(&state);
            }
        }
        for (waiter, link) in given {
            // Outside the lock: a place that is not taken is given back, which locks.
            let _ = waiter.send(self.place(link));
        }
    }

    /// The least loaded worker that `caller` may use, with a place taken in it.
    fn pick(&self, state: &mut State, caller: &str) -> Option<Arc<Link>> {
        let Bounds {
            sharing,
            live_max,
            calls_max,
            ..
        } = self.bounds;
        let entry = state
            .entries
            .iter_mut()
            .filter(|entry| {
                entry.live < live_max && !entry.link.is_retiring() && entry.link.doomed().is_none()
            })
            .filter(|entry| match (sharing, &entry.owner) {
                (Sharing::Shared | Sharing::PerCall, _) | (Sharing::PerCaller, None) => true,
                (Sharing::PerCaller, Some(owner)) => **owner == *caller,
            })
            // One's own worker before a fresh one.
            // Then the least loaded, so that calls spread over the
            // processes and their cores.
            .min_by_key(|entry| (entry.owner.is_none(), entry.live))?;
        entry.live += 1;
        entry.given = entry.given.saturating_add(1);
        if sharing == Sharing::PerCaller && entry.owner.is_none() {
            entry.owner = Some(caller.into());
        }
        if entry.given >= calls_max {
            // Its successor starts now, while the last calls run.
            entry.link.retire();
        }
        Some(Arc::clone(&entry.link))
    }

    fn place(self: &Arc<Self>, link: Arc<Link>) -> WorkerSlot {
        WorkerSlot {
            link,
            roster: Arc::clone(self),
            held: true,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Retires idle workers of other callers, one for each waiter: their successors
/// belong to no call yet.
fn make_way(state: &State) {
    let idle = state
        .entries
        .iter()
        .filter(|entry| entry.live == 0 && entry.owner.is_some() && !entry.link.is_retiring());
    let coming = state
        .entries
        .iter()
        .filter(|entry| entry.link.is_retiring())
        .count();
    // Less those on their way already, or each new waiter would retire one more worker.
    for entry in idle.take(state.queue.len().saturating_sub(coming)) {
        entry.link.retire();
    }
}
