//! Who writes. A call that is alone writes its own record: handing it to another
//! thread and back costs as much as writing it. Calls that come together line up,
//! and one thread takes everything that waits into one transaction. What can take
//! long, waiting for another process included, is that thread's alone.

use std::sync::Mutex;

use crate::error::StoreError;
use crate::queue::Request;
use crate::shift::{Shared, Shift};

/// Where requests are brought.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) shared: Shared,
    /// Held only while something is written.
    pub(crate) shift: Mutex<Shift>,
}

impl Desk {
    /// Has a request written, now or when its turn comes.
    pub(crate) fn submit(&self, request: Request) -> Result<(), StoreError> {
        match self.write_at_once(request) {
            None => Ok(()),
            Some(request) => self.shared.queue.push(request),
        }
    }

    /// Writes a request if that is done in no time; else gives it back.
    fn write_at_once(&self, request: Request) -> Option<Request> {
        if !self.shared.queue.is_free() {
            return Some(request);
        }
        let Ok(mut shift) = self.shift.try_lock() else {
            return Some(request);
        };
        if !shift.is_light(&request) {
            return Some(request);
        }
        let was_indexed = shift.is_indexed();
        if let Some(request) = shift.write_at_once(&self.shared, request) {
            return Some(request);
        }
        // The writer sleeps as long as there is nothing to do for it.
        let has_news = was_indexed || shift.has_chores();
        drop(shift);
        if has_news {
            self.shared.queue.nudge();
        }
        None
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
                return shift.leave(&self.shared);
            }
        }
    }
}

/// Tells everybody when the thread ends, even by a panic.
struct Guard<'a>(&'a Shared);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.queue.abandon();
    }
}
