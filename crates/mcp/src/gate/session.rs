//! Whose session is whose.
//!
//! Attack: somebody who got hold of another's session id. The id alone opens
//! nothing: each request's principal is compared with the one that began the
//! session, and another's session looks like one that never was.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::gate::PrincipalId;

/// The sessions there are.
#[derive(Clone, Debug)]
pub struct Sessions {
    total_max: u64,
    per_caller_max: u64,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    owners: HashMap<String, Owner>,
    /// Sessions of each caller, those about to begin included.
    counts: HashMap<String, u64>,
    /// Of everybody.
    total: u64,
}

#[derive(Debug)]
struct Owner {
    principal: PrincipalId,
    caller: String,
}

/// Room for a session that is about to begin. Dropped, it is given back.
#[derive(Debug)]
pub struct Room {
    caller: String,
    table: Arc<Mutex<Table>>,
    is_used: bool,
}

impl Sessions {
    /// None yet; so many may be.
    #[must_use]
    pub fn new(total_max: u64, per_caller_max: u64) -> Sessions {
        Sessions {
            total_max,
            per_caller_max,
            table: Arc::default(),
        }
    }

    /// Room for one more session of this caller, if there is.
    #[must_use]
    pub fn room(&self, caller: &str) -> Option<Room> {
        let mut table = lock(&self.table);
        let count = table.counts.get(caller).copied().unwrap_or(0);
        if table.total >= self.total_max || count >= self.per_caller_max {
            return None;
        }
        table.total += 1;
        table.counts.insert(caller.to_owned(), count + 1);
        Some(Room {
            caller: caller.to_owned(),
            table: Arc::clone(&self.table),
            is_used: false,
        })
    }

    /// Whether this session is this principal's.
    #[must_use]
    pub fn is_owned(&self, id: &str, principal: &PrincipalId) -> bool {
        let table = lock(&self.table);
        let owner = table.owners.get(id);
        owner.is_some_and(|owner| owner.principal == *principal)
    }

    /// Forgets a session that is over.
    pub fn forget(&self, id: &str) {
        let mut table = lock(&self.table);
        if let Some(owner) = table.owners.remove(id) {
            table.give_back(&owner.caller);
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.table).owners.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Room {
    /// The session began: from now on it is this principal's.
    pub fn begun(mut self, id: &str, principal: &PrincipalId) {
        self.is_used = {
            let mut table = lock(&self.table);
            // Ids are random; one that is there twice stays with whom it was.
            let is_new = !table.owners.contains_key(id);
            if is_new {
                let owner = Owner {
                    principal: principal.clone(),
                    caller: self.caller.clone(),
                };
                table.owners.insert(id.to_owned(), owner);
            }
            is_new
        };
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if !self.is_used {
            lock(&self.table).give_back(&self.caller);
        }
    }
}

impl Table {
    fn give_back(&mut self, caller: &str) {
        self.total = self.total.saturating_sub(1);
        let left = self.counts.get_mut(caller).map(|count| {
            *count = count.saturating_sub(1);
            *count
        });
        if left == Some(0) {
            self.counts.remove(caller);
        }
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(word: &str) -> PrincipalId {
        PrincipalId::key(word)
    }

    #[test]
    fn a_session_is_its_owners_until_it_is_forgotten() {
        let sessions = Sessions::new(3, 2);
        let (one, two) = (principal("one"), principal("two"));
        sessions.room("a").expect("room").begun("s1", &one);
        assert!(sessions.is_owned("s1", &one));
        assert!(!sessions.is_owned("s1", &two));
        assert!(!sessions.is_owned("s2", &one));
        // Somebody else cannot take it over.
        sessions.room("b").expect("room").begun("s1", &two);
        assert!(sessions.is_owned("s1", &one));
        sessions.forget("s1");
        assert!(!sessions.is_owned("s1", &one));
        assert!(sessions.is_empty());
        assert!(lock(&sessions.table).counts.is_empty());
        assert_eq!(lock(&sessions.table).total, 0);
    }

    #[test]
    fn rooms_are_counted_while_a_session_begins() {
        let sessions = Sessions::new(3, 2);
        let first = sessions.room("a").expect("room");
        let second = sessions.room("a").expect("room");
        assert!(sessions.room("a").is_none());
        let other = sessions.room("b").expect("room");
        assert!(sessions.room("c").is_none());
        drop(first);
        let third = sessions.room("c").expect("room");
        second.begun("s1", &principal("one"));
        drop((other, third));
        assert_eq!(sessions.len(), 1);
        assert!(sessions.room("b").is_some());
    }
}
