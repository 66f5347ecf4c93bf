//! The sessions of legacy clients: whose each is, how many there may be, and which
//! one gives way when there is no room. The one table of them; rmcp keeps what is in
//! a session (`http::session`) and nothing about whose it is.
//!
//! Attack: a client that got hold of another's session id. The id alone opens
//! nothing: each request's principal is compared with the one that began the
//! session, and another's session looks like one that never was.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use model::sync::lock;

use crate::auth::principal::{Principal, PrincipalId};

/// The sessions of one server. Clones share them.
#[derive(Clone, Debug)]
pub struct Sessions {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    known: Mutex<Known>,
    bounds: SessionBounds,
    on_end: OnceLock<OnEnd>,
}

/// How many sessions there may be, and how long a call keeps one busy.
#[derive(Clone, Copy, Debug)]
pub struct SessionBounds {
    /// At one time.
    pub together: usize,
    /// Of one caller at one time.
    pub per_caller: usize,
    /// Time one may be idle before it ends.
    pub idle: Duration,
    /// Time a call may take.
    pub call: Duration,
}

/// The limit is reached, and every session has a request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

struct OnEnd(Box<dyn Fn(&str) + Send + Sync>);

impl fmt::Debug for OnEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnEnd")
    }
}

impl Sessions {
    /// No session yet.
    #[must_use]
    pub fn new(bounds: SessionBounds) -> Sessions {
        Sessions {
            inner: Arc::new(Inner {
                known: Mutex::default(),
                bounds,
                on_end: OnceLock::new(),
            }),
        }
    }

    /// Their bounds.
    #[must_use]
    pub fn bounds(&self) -> SessionBounds {
        self.inner.bounds
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().all.len()
    }

    /// Their ids.
    #[must_use]
    pub fn ids(&self) -> Vec<Arc<str>> {
        self.lock().all.keys().cloned().collect()
    }

    /// Whether a session exists and belongs to this principal.
    #[must_use]
    pub fn is_owned(&self, id: &str, principal: &PrincipalId) -> bool {
        let known = self.lock();
        let found = known.all.get(id);
        found.is_some_and(|session| session.principal == *principal)
    }

    /// Sets the callback for each session that ends, however it ends. Only the first
    /// one set is used.
    pub fn on_end(&self, tell: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.inner.on_end.set(OnEnd(Box::new(tell)));
    }

    /// Begins a session of a principal, and returns the sessions that had to end for
    /// it. Ids are random; an id in use stays with its owner.
    pub fn begin(&self, id: &Arc<str>, principal: &Principal) -> Result<Vec<Arc<str>>, NoRoom> {
        // Unlocked at the end of this statement: the callback may ask about sessions.
        let begun = self.lock().begin(id, principal, &self.inner.bounds);
        for ended in begun.iter().flatten() {
            self.tell_end(ended);
        }
        begun
    }

    /// Ends a session, if it is there.
    pub fn end(&self, id: &str) {
        // Not under the lock: the callback may ask about sessions.
        let ended = self.lock().all.remove(id);
        if ended.is_some() {
            self.tell_end(id);
        }
    }

    /// How long until a session of a caller that found no room is sure to be idle: a
    /// call ends by then, whatever it does.
    #[must_use]
    pub fn wait(&self, caller: &str) -> Duration {
        self.lock().wait(caller, &self.inner.bounds)
    }

    /// Notes that a session is used now.
    pub(crate) fn touch(&self, id: &str) {
        if let Some(session) = self.lock().all.get_mut(id) {
            session.last = Instant::now();
        }
    }

    /// Keeps a session in use until this is dropped.
    pub(crate) fn start(&self, id: &Arc<str>, what: InUse) -> SessionUse {
        if let Some(session) = self.lock().all.get_mut(id) {
            *session.uses(what) += 1;
            session.last = Instant::now();
        }
        SessionUse {
            sessions: self.clone(),
            id: Arc::clone(id),
            what,
        }
    }

    fn tell_end(&self, id: &str) {
        if let Some(OnEnd(tell)) = self.inner.on_end.get() {
            tell(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        lock(&self.inner.known)
    }
}

/// What keeps a session in use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InUse {
    /// A request under way. A question to its client is part of one.
    Request,
    /// A stream that waits for messages: the client is still there.
    Stream,
}

/// A session in use.
#[derive(Debug)]
pub(crate) struct SessionUse {
    sessions: Sessions,
    id: Arc<str>,
    what: InUse,
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        // The session may have ended since.
        if let Some(session) = self.sessions.lock().all.get_mut(&self.id) {
            let uses = session.uses(self.what);
            *uses = uses.saturating_sub(1);
            session.last = Instant::now();
        }
    }
}

#[derive(Debug, Default)]
struct Known {
    all: HashMap<Arc<str>, Session>,
}

#[derive(Debug)]
struct Session {
    /// Whose it is. A replaced key is the same principal.
    principal: PrincipalId,
    /// The caller whose share of the sessions it uses.
    caller: String,
    last: Instant,
    requests: usize,
    streams: usize,
}

impl Session {
    fn uses(&mut self, what: InUse) -> &mut usize {
        match what {
            InUse::Request => &mut self.requests,
            InUse::Stream => &mut self.streams,
        }
    }
}

/// Whether there is room for another session.
#[derive(Debug, PartialEq)]
enum Room {
    Free,
    /// There is room once this one has ended.
    After(Arc<str>),
    None,
}

impl Known {
    /// Under one lock: two that begin at the same time do not share the last place.
    fn begin(
        &mut self,
        id: &Arc<str>,
        principal: &Principal,
        bounds: &SessionBounds,
    ) -> Result<Vec<Arc<str>>, NoRoom> {
        let caller = &principal.caller.name;
        let mut ended = Vec::new();
        loop {
            match self.room(caller, bounds) {
                Room::Free => break,
                Room::After(id) => {
                    self.all.remove(&id);
                    ended.push(id);
                }
                Room::None => return Err(NoRoom),
            }
        }
        self.all.entry(Arc::clone(id)).or_insert_with(|| Session {
            principal: principal.id.clone(),
            caller: caller.clone(),
            last: Instant::now(),
            requests: 0,
            streams: 0,
        });
        Ok(ended)
    }

    /// A new session is worth more than an unused one: many clients never end theirs.
    /// The caller's own give way first, then others'; those without a stream before the
    /// others, the longest idle first. One with a request under way never does.
    fn room(&self, caller: &str, bounds: &SessionBounds) -> Room {
        let is_own = |session: &Session| session.caller == caller;
        let own = self.all.values().filter(|session| is_own(session)).count();
        if own < bounds.per_caller && self.all.len() < bounds.together {
            return Room::Free;
        }
        let idle = |only_own: bool| {
            let idle = self.all.iter().filter(|(_, session)| session.requests == 0);
            let idle = idle.filter(|(_, session)| !only_own || is_own(session));
            let longest = idle.min_by_key(|(_, session)| (session.streams > 0, session.last));
            longest.map(|(id, _)| Arc::clone(id))
        };
        let gives_way = match idle(true) {
            // A caller that has its share ends nobody else's session.
            None if own < bounds.per_caller => idle(false),
            found => found,
        };
        gives_way.map_or(Room::None, Room::After)
    }

    fn wait(&self, caller: &str, bounds: &SessionBounds) -> Duration {
        let own = self
            .all
            .values()
            .filter(|session| session.caller == caller)
            .count();
        let is_own_share = own >= bounds.per_caller;
        let counted = self.all.values();
        let counted = counted.filter(|session| !is_own_share || session.caller == caller);
        let left = counted.map(|session| bounds.call.saturating_sub(session.last.elapsed()));
        left.min().unwrap_or(bounds.call)
    }
}

#[cfg(test)]
mod tests;
