//! Whose session is whose.
//!
//! Attack: somebody who got hold of another's session id. The id alone opens
//! nothing: each request's principal is compared with the one that began the
//! session, and another's session looks like one that never was.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::gate::PrincipalId;

/// The sessions there are. How many there may be is for the transport to say, which
/// keeps them and ends them.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    owners: Arc<Mutex<HashMap<String, PrincipalId>>>,
}

/// A request that may begin a session, and whose that would be. It goes with the
/// request to whatever keeps sessions.
#[derive(Clone, Debug)]
pub struct Beginning {
    sessions: Sessions,
    principal: PrincipalId,
}

impl Sessions {
    /// For a request that may begin a session.
    #[must_use]
    pub fn beginning(&self, principal: &PrincipalId) -> Beginning {
        Beginning {
            sessions: self.clone(),
            principal: principal.clone(),
        }
    }

    /// Whether this session is this principal's.
    #[must_use]
    pub fn is_owned(&self, id: &str, principal: &PrincipalId) -> bool {
        lock(&self.owners).get(id) == Some(principal)
    }

    /// Forgets a session that is over.
    pub fn forget(&self, id: &str) {
        lock(&self.owners).remove(id);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.owners).len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Beginning {
    /// The session began: from now on it is this principal's. Ids are random; one that
    /// is there twice stays with whom it was.
    pub fn begun(&self, id: &str) {
        lock(&self.sessions.owners)
            .entry(id.to_owned())
            .or_insert_with(|| self.principal.clone());
    }

    /// It is over.
    pub fn over(&self, id: &str) {
        self.sessions.forget(id);
    }
}

fn lock(
    owners: &Mutex<HashMap<String, PrincipalId>>,
) -> MutexGuard<'_, HashMap<String, PrincipalId>> {
    owners.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_its_owners_until_it_is_forgotten() {
        let sessions = Sessions::default();
        let (one, two) = (PrincipalId::key("one"), PrincipalId::key("two"));
        let beginning = sessions.beginning(&one);
        beginning.begun("s1");
        assert!(sessions.is_owned("s1", &one));
        assert!(!sessions.is_owned("s1", &two));
        assert!(!sessions.is_owned("s2", &one));
        // Somebody else cannot take it over.
        sessions.beginning(&two).begun("s1");
        assert!(sessions.is_owned("s1", &one));
        beginning.over("s1");
        assert!(!sessions.is_owned("s1", &one));
        assert!(sessions.is_empty());
    }
}
