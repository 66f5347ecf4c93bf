//! How many calls of one caller are under way. A place is held as long as the
//! [`Busy`] lives, so that none is lost whatever ends a call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The calls under way, by caller. Callers without any take no room.
#[derive(Clone, Debug)]
pub struct Desk {
    places_max: u64,
    taken: Arc<Mutex<HashMap<String, u64>>>,
}

/// One call's place. Dropped, it is free again.
#[derive(Debug)]
pub struct Busy {
    caller: String,
    taken: Arc<Mutex<HashMap<String, u64>>>,
}

impl Desk {
    /// So many places for each caller.
    #[must_use]
    pub fn new(places_max: u64) -> Desk {
        Desk {
            places_max,
            taken: Arc::default(),
        }
    }

    /// A place, if the caller has one left.
    #[must_use]
    pub fn place(&self, caller: &str) -> Option<Busy> {
        let mut taken = lock(&self.taken);
        match taken.get_mut(caller) {
            Some(count) if *count >= self.places_max => return None,
            Some(count) => *count += 1,
            None if self.places_max == 0 => return None,
            None => {
                taken.insert(caller.to_owned(), 1);
            }
        }
        Some(Busy {
            caller: caller.to_owned(),
            taken: Arc::clone(&self.taken),
        })
    }

    /// How many calls of anybody are under way.
    #[must_use]
    pub fn count(&self) -> u64 {
        lock(&self.taken).values().sum()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        let left = taken.get_mut(&self.caller).map(|count| {
            *count = count.saturating_sub(1);
            *count
        });
        if left == Some(0) {
            taken.remove(&self.caller);
        }
    }
}

fn lock(taken: &Mutex<HashMap<String, u64>>) -> MutexGuard<'_, HashMap<String, u64>> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_for_each_caller_and_come_back() {
        let desk = Desk::new(2);
        let first = desk.place("a").expect("a place");
        let second = desk.place("a").expect("a place");
        assert!(desk.place("a").is_none());
        assert!(desk.place("b").is_some());
        assert_eq!(desk.count(), 2);
        drop(first);
        let third = desk.place("a").expect("a place");
        assert!(desk.place("a").is_none());
        drop((second, third));
        assert_eq!(desk.count(), 0);
        assert!(lock(&desk.taken).is_empty());
        assert!(Desk::new(0).place("a").is_none());
    }
}
