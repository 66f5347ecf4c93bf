//! Answers that are made and not sent yet: how many bytes of them there may be, of each
//! caller and of all together.
//!
//! Attack: one key, hundreds of connections, each asks for a large result and reads
//! nothing. A call is work in flight until its answer was taken, and the bytes that wait
//! are counted. Beyond the bound a call is refused before it runs; an answer that was
//! made meanwhile and does not fit any more is withheld.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use model::sync::lock;
use serde_json::Value;
use tokio::runtime::Handle;

use crate::call_count::CallSlot;
use crate::limit;

/// The bytes that wait. Clones share the count.
#[derive(Clone, Debug)]
pub(crate) struct Unsent {
    waiting: Arc<Mutex<Waiting>>,
    bounds: UnsentBounds,
}

/// How many bytes may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnsentBounds {
    pub(crate) per_caller: usize,
    pub(crate) together: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    of: HashMap<String, usize>,
    together: usize,
    /// Bytes sent since freed memory last went back to the system.
    freed: usize,
    gives_back: bool,
}

impl Default for Unsent {
    fn default() -> Unsent {
        Unsent::new(UnsentBounds {
            per_caller: limit::UNSENT_PER_CALLER_BYTES_MAX,
            together: limit::UNSENT_BYTES_MAX,
        })
    }
}

impl Unsent {
    pub(crate) fn new(bounds: UnsentBounds) -> Unsent {
        Unsent {
            waiting: Arc::default(),
            bounds,
        }
    }

    /// Whether the answer to one more request of a caller would fit, unless it is huge.
    pub(crate) fn has_room(&self, caller: &str) -> bool {
        let waiting = self.lock();
        let own = waiting.of.get(caller).copied().unwrap_or(0);
        // Half of the bounds: what is made meanwhile must still fit.
        own <= self.bounds.per_caller / 2 && waiting.together <= self.bounds.together / 2
    }

    /// A share for an answer of about so many bytes; nothing if that is too much. A bound
    /// that nothing counts against yet admits one answer, however large.
    pub(crate) fn share(&self, caller: &str, bytes: usize) -> Option<UnsentShare> {
        let mut share = self.empty(caller);
        let mut waiting = self.lock();
        let own = waiting.of.get(caller).copied().unwrap_or(0);
        let fits = own == 0 || own.saturating_add(bytes) <= self.bounds.per_caller;
        let fits_all =
            waiting.together == 0 || waiting.together.saturating_add(bytes) <= self.bounds.together;
        if !fits || !fits_all {
            return None;
        }
        waiting.set(&mut share, bytes);
        drop(waiting);
        Some(share)
    }

    /// An empty share, for an answer whose size is not known yet.
    pub(crate) fn empty(&self, caller: &str) -> UnsentShare {
        UnsentShare {
            unsent: self.clone(),
            caller: caller.to_owned(),
            bytes: 0,
        }
    }

    /// How many bytes wait.
    pub(crate) fn together(&self) -> usize {
        self.lock().together
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.waiting)
    }

    /// Gives freed memory back to the system, once much was sent, and not too often.
    fn give_back(&self) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let unsent = self.clone();
        runtime.spawn(async move {
            // Giving memory back walks the whole heap, so several answers share one
            // walk.
            tokio::time::sleep(Duration::from_millis(limit::GIVE_BACK_EVERY_MS)).await;
            {
                let mut waiting = unsent.lock();
                waiting.freed = 0;
                waiting.gives_back = false;
            }
            let _ = tokio::task::spawn_blocking(engine::memory::give_back).await;
        });
    }
}

impl Waiting {
    fn set(&mut self, share: &mut UnsentShare, bytes: usize) {
        self.together = self.together.saturating_sub(share.bytes);
        // Put back only if something waits: the map holds no caller without unsent answers.
        let own = self.of.remove(&share.caller).unwrap_or(0);
        let own = own.saturating_sub(share.bytes).saturating_add(bytes);
        if own > 0 {
            self.of.insert(share.caller.clone(), own);
        }
        self.together = self.together.saturating_add(bytes);
        if bytes < share.bytes {
            self.freed = self.freed.saturating_add(share.bytes - bytes);
        }
        share.bytes = bytes;
    }

    fn is_much_freed(&self) -> bool {
        let is_last = self.together == 0;
        self.freed >= limit::GIVE_BACK_BYTES
            || (is_last && self.freed >= limit::GIVE_BACK_LAST_BYTES)
    }
}

/// Bytes of a caller that wait. Dropped, they wait no more.
#[derive(Debug)]
pub(crate) struct UnsentShare {
    unsent: Unsent,
    caller: String,
    bytes: usize,
}

impl UnsentShare {
    /// It is this many now, whether that is too many or not: they are there.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes == self.bytes {
            return;
        }
        let unsent = self.unsent.clone();
        let mut waiting = unsent.lock();
        waiting.set(self, bytes);
        if waiting.is_much_freed() && !waiting.gives_back {
            waiting.gives_back = true;
            drop(waiting);
            unsent.give_back();
        }
    }
}

impl Drop for UnsentShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// The resources an answer holds until it was sent: the slot of its call, and its
/// bytes. The transport makes one for each request; the server fills it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplyHold {
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    slot: Option<CallSlot>,
    share: Option<UnsentShare>,
    /// Those of the single answers in it, where it is the answer to a batch.
    parts: Vec<ReplyHold>,
}

impl ReplyHold {
    /// Holds both until the answer was sent or the client disconnected.
    pub(crate) fn put(&self, slot: CallSlot, share: Option<UnsentShare>) {
        let mut held = self.lock();
        held.slot = Some(slot);
        held.share = share;
    }

    /// Also holds the resources of one message of a batch.
    pub(crate) fn add(&self, part: ReplyHold) {
        self.lock().parts.push(part);
    }

    /// Lets go of everything: the answer was taken.
    pub(crate) fn release(&self) {
        // Taken out under the lock and dropped without it: a share takes another lock.
        let held = std::mem::take(&mut *self.lock());
        drop(held);
    }

    /// Counts so many bytes of it from now on.
    pub(crate) fn set_bytes(&self, unsent: &Unsent, caller: &str, bytes: usize) {
        let mut held = self.lock();
        match &mut held.share {
            Some(share) => share.set(bytes),
            None if bytes == 0 => {}
            None => {
                let mut share = unsent.empty(caller);
                share.set(bytes);
                held.share = Some(share);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        lock(&self.held)
    }
}

/// About how many bytes a value takes as JSON. The exact size is counted when it is
/// written.
pub(crate) fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 12,
        Value::String(text) => text.len().saturating_add(3),
        Value::Array(items) => items
            .iter()
            .fold(2, |sum: usize, item| sum.saturating_add(weight(item))),
        Value::Object(members) => members.iter().fold(2, |sum: usize, (name, value)| {
            sum.saturating_add(name.len() + 4)
                .saturating_add(weight(value))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: UnsentBounds = UnsentBounds {
        per_caller: 100,
        together: 150,
    };

    #[test]
    fn bytes_that_wait_are_bounded_for_each_and_together() {
        let unsent = Unsent::new(BOUNDS);
        assert!(unsent.has_room("ann"));
        let first = unsent.share("ann", 60).expect("room");
        // More than half: no further call, but what ran meanwhile may still fit.
        assert!(!unsent.has_room("ann"));
        assert!(unsent.has_room("bob"));
        assert!(unsent.share("ann", 41).is_none());
        let second = unsent.share("ann", 40).expect("room");
        assert!(unsent.share("bob", 51).is_none());
        assert!(!unsent.has_room("bob"), "more than half of all");
        drop(first);
        assert!(unsent.has_room("ann") && unsent.has_room("bob"));
        drop(second);
        assert_eq!(unsent.together(), 0);
        assert!(unsent.lock().of.is_empty());
    }

    #[test]
    fn one_answer_is_given_however_large() {
        let unsent = Unsent::new(BOUNDS);
        let huge = unsent.share("ann", 1_000).expect("the only one");
        assert!(unsent.share("ann", 1).is_none());
        assert!(unsent.share("bob", 1).is_none());
        drop(huge);
        assert!(unsent.share("bob", 1).is_some());
    }

    #[test]
    fn memory_is_returned_after_many_bytes_and_after_the_last_answer() {
        let mut waiting = Waiting {
            freed: limit::GIVE_BACK_LAST_BYTES,
            together: 1,
            ..Waiting::default()
        };
        assert!(!waiting.is_much_freed());
        waiting.together = 0;
        assert!(waiting.is_much_freed());
        waiting.freed -= 1;
        assert!(!waiting.is_much_freed());
        waiting.together = 1;
        waiting.freed = limit::GIVE_BACK_BYTES;
        assert!(waiting.is_much_freed());
    }

    #[test]
    fn bytes_beyond_the_bound_are_counted() {
        let unsent = Unsent::new(BOUNDS);
        let hold = ReplyHold::default();
        hold.set_bytes(&unsent, "ann", 400);
        assert_eq!(unsent.together(), 400);
        hold.set_bytes(&unsent, "ann", 30);
        assert_eq!(unsent.together(), 30);
        drop(hold);
        assert_eq!(unsent.together(), 0);
    }
}
