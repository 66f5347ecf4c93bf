//! Who writes. A call that is alone writes its own record: handing it to another
//! thread and back costs as much as writing it. Calls that come together line up;
//! the first of them lets the others come, then writes for all with one write. What
//! can take long, waiting for another process or the disk included, is for a thread
//! of its own.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard};
use std::task::Poll;

use crate::error::StoreError;
use crate::queue::{Place, Request};
use crate::shift::{Shared, Shift};

/// Where requests are brought.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) shared: Shared,
    /// Held only while something is written.
    pub(crate) shift: Mutex<Shift>,
}

impl Desk {
    /// What writes, once nothing is being written. An error if somebody died writing.
    pub(crate) fn shift(&self) -> Result<MutexGuard<'_, Shift>, StoreError> {
        self.shift.lock().map_err(|_| StoreError::Closed)
    }

    /// Has a request of a call written, now or when its turn comes.
    pub(crate) async fn submit(&self, request: Request) -> Result<(), StoreError> {
        let Some(request) = self.write_alone(request) else {
            return Ok(());
        };
        match self.shared.queue.push(request)? {
            Place::Behind => Ok(()),
            Place::First => {
                // Given up in the middle, the thread takes over.
                let duty = Duty(&self.shared);
                let_others_come().await;
                std::mem::forget(duty);
                self.write_together();
                Ok(())
            }
        }
    }

    /// Has the thread write a request.
    pub(crate) fn submit_to_thread(&self, request: Request) -> Result<(), StoreError> {
        self.shared.queue.push(request)?;
        self.shared.queue.hand_over();
        Ok(())
    }

    /// Writes a request if that is done in no time and nobody else is under way;
    /// else gives it back.
    fn write_alone(&self, request: Request) -> Option<Request> {
        if !self.shared.queue.is_free() {
            return Some(request);
        }
        let Ok(mut shift) = self.shift.try_lock() else {
            return Some(request);
        };
        if !shift.is_light() || !shift.is_quiet(&request) {
            return Some(request);
        }
        let mut batch = vec![request];
        self.write(&mut shift, &mut batch);
        batch.pop()
    }

    /// Writes what waits, or has the thread do it.
    fn write_together(&self) {
        let queue = &self.shared.queue;
        let Ok(mut shift) = self.shift.try_lock() else {
            return queue.hand_over();
        };
        if !shift.is_light() {
            return queue.hand_over();
        }
        let mut batch = queue.take_at_once();
        self.write(&mut shift, &mut batch);
        drop(shift);
        if !batch.is_empty() {
            queue.give_back(batch);
        }
    }

    fn write(&self, shift: &mut Shift, batch: &mut Vec<Request>) {
        let was_indexed = shift.is_indexed();
        shift.write_at_once(&self.shared, batch);
        // The thread sleeps as long as there is nothing to do for it.
        if (was_indexed && !shift.is_indexed()) || shift.has_chores() {
            self.shared.queue.nudge();
        }
    }

    /// The writer's thread. Whatever ends it closes the queue.
    pub(crate) fn run(&self) {
        let _guard = Guard(&self.shared);
        let mut batch = Vec::new();
        loop {
            // Somebody who died with the pen in hand left nobody knows what.
            let Ok(idle_max) = self.shift.lock().map(|shift| shift.idle_max()) else {
                return;
            };
            let taken = self.shared.queue.take(&mut batch, idle_max);
            let Ok(mut shift) = self.shift.lock() else {
                return;
            };
            shift.write(&self.shared, &mut batch);
            shift.do_chores(&self.shared, taken.is_idle);
            if !taken.is_open {
                return shift.leave();
            }
        }
    }
}

/// Lets everybody run who can, once: whoever is about to write lines up meanwhile.
async fn let_others_come() {
    let mut is_over = false;
    poll_fn(|context| {
        if is_over {
            return Poll::Ready(());
        }
        is_over = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Somebody is to write what waits.
struct Duty<'a>(&'a Shared);

impl Drop for Duty<'_> {
    fn drop(&mut self) {
        self.0.queue.hand_over();
    }
}

/// Tells everybody when the thread ends, even by a panic.
struct Guard<'a>(&'a Shared);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.queue.abandon();
    }
}
