//! Counts calls in flight, in all and by caller. A call counts until its answer was
//! sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use model::sync::lock;
use tokio::sync::watch;

/// How many calls are under way, together and of each caller. Clones share the count.
#[derive(Clone, Debug)]
pub(crate) struct CallCount {
    of: Arc<Mutex<HashMap<String, u64>>>,
    together: Arc<watch::Sender<usize>>,
}

impl Default for CallCount {
    fn default() -> CallCount {
        CallCount {
            of: Arc::default(),
            together: Arc::new(watch::Sender::new(0)),
        }
    }
}

/// A call under way, until its answer was sent.
#[derive(Debug)]
pub(crate) struct CallSlot {
    calls: CallCount,
    /// The caller whose slot it takes; `None` if it was one too many.
    caller: Option<String>,
}

impl CallSlot {
    /// Whether its caller had reached its limit. Such a call is refused, and counts as
    /// in flight until the refusal is recorded.
    pub(crate) fn is_one_too_many(&self) -> bool {
        self.caller.is_none()
    }
}

impl CallCount {
    /// Counts a call of a caller.
    pub(crate) fn enter(&self, caller: &str, most: u64) -> CallSlot {
        let mut of = lock(&self.of);
        let count = of.get(caller).copied().unwrap_or(0);
        let has_room = count < most;
        if has_room {
            of.insert(caller.to_owned(), count + 1);
        }
        drop(of);
        self.together.send_modify(|together| *together += 1);
        CallSlot {
            calls: self.clone(),
            caller: has_room.then(|| caller.to_owned()),
        }
    }

    /// How many are under way.
    pub(crate) fn under_way(&self) -> usize {
        *self.together.borrow()
    }

    /// Waits until none is under way.
    pub(crate) async fn quiet(&self) {
        let mut together = self.together.subscribe();
        let _ = together.wait_for(|together| *together == 0).await;
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        if let Some(caller) = &self.caller {
            let mut of = lock(&self.calls.of);
            match of.get_mut(caller) {
                Some(count) if *count > 1 => *count -= 1,
                // A count of none is not kept.
                _ => drop(of.remove(caller)),
            }
        }
        self.calls
            .together
            .send_modify(|together| *together = together.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_its_own_count() {
        let calls = CallCount::default();
        let first = calls.enter("ann", 2);
        let second = calls.enter("ann", 2);
        assert!(!first.is_one_too_many() && !second.is_one_too_many());
        let third = calls.enter("ann", 2);
        assert!(third.is_one_too_many());
        assert!(!calls.enter("bob", 2).is_one_too_many());
        assert_eq!(calls.under_way(), 3);
        // One too many takes no place, and gives none back.
        drop(third);
        assert!(calls.enter("ann", 2).is_one_too_many());
        drop(first);
        assert!(!calls.enter("ann", 2).is_one_too_many());
        drop(second);
        assert_eq!(calls.under_way(), 0);
        assert!(calls.of.lock().expect("the counts").is_empty());
    }
}
