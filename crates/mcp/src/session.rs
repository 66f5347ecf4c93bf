//! The sessions of legacy clients: how many there may be, and whose they are.
//!
//! rmcp keeps the sessions themselves and closes those that are idle. It does not
//! know who asks, so the caller of the request at hand travels with its task.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt as _, stream};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::server_side_http::ServerSseMessage;
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::SessionId;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};

use crate::unread::Unread;
use crate::{gate, limit};

/// What the answer says when there is no room for another session.
pub(crate) const FULL: &str = "no room for another session";

tokio::task_local! {
    /// Whose request this task answers.
    pub(crate) static OWNER: Owner;
}

/// Whose a session is, and the gate that must hear of it: an idle one ends without a
/// request the gate could see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owner {
    pub(crate) caller: String,
    pub(crate) gate: Option<gate::Beginning>,
}

/// The sessions of one server.
#[derive(Debug)]
pub struct Sessions {
    kept: LocalSessionManager,
    table: Table,
    unread: Unread,
    over: OnceLock<Over>,
    most: Most,
}

/// How many sessions there may be, and how long a call keeps one busy.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// At one time.
    pub together: usize,
    /// Of one caller at one time.
    pub per_caller: usize,
    /// Time one may be idle before it ends.
    pub idle: Duration,
    /// Time a call may take.
    pub call: Duration,
}

/// Is told of sessions that are over.
struct Over(Box<dyn Fn(&str) + Send + Sync>);

impl fmt::Debug for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Over")
    }
}

/// A session could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SessionFault {
    /// There are too many, and something is under way in each.
    #[error("{FULL}")]
    Full,
    /// What rmcp says.
    #[error(transparent)]
    Kept(#[from] LocalSessionManagerError),
}

impl Sessions {
    /// Sessions with these bounds.
    #[must_use]
    pub fn new(most: Most) -> Sessions {
        let mut kept = LocalSessionManager::default();
        let config = &mut kept.session_config;
        config.channel_capacity = limit::STREAM_MESSAGES_MAX;
        config.keep_alive = Some(most.idle);
        config.init_timeout = Some(Duration::from_secs(limit::SESSION_START_SECONDS_MAX));
        config.completed_cache_ttl = Duration::from_secs(limit::RESUME_SECONDS_MAX);
        Sessions {
            kept,
            table: Table::default(),
            unread: Unread::default(),
            over: OnceLock::new(),
            most,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.table.lock().all.len()
    }

    /// Whether a session is there.
    #[must_use]
    pub fn is_there(&self, id: &str) -> bool {
        self.table.lock().all.contains_key(id)
    }

    /// Whether a session is there and belongs to a caller. Another's looks like one
    /// that never was.
    #[must_use]
    pub fn is_of(&self, id: &str, caller: &str) -> bool {
        let table = self.table.lock();
        let found = table.all.get(id);
        found.is_some_and(|one| one.owner.caller == caller)
    }

    /// Who is told of each session that is over, however it ended. The first one
    /// named stays.
    pub fn when_over(&self, tell: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.over.set(Over(Box::new(tell)));
    }

    /// Ends every session.
    pub async fn close_all(&self) {
        let ids: Vec<_> = self.table.lock().all.keys().cloned().collect();
        for id in ids {
            let _ = self.close_session(&id).await;
        }
    }

    /// How long until a session of a caller that found no room is sure to be idle: a
    /// call ends by then, whatever it does.
    pub(crate) fn wait(&self, caller: &str) -> Duration {
        self.table.lock().wait(caller, &self.most)
    }

    /// Tells everybody that a session is over.
    fn told_over(&self, id: &SessionId, owner: Option<Owner>) {
        if let Some(gate) = owner.and_then(|owner| owner.gate) {
            gate.over(id);
        }
        self.unread.forget(id);
        if let Some(Over(tell)) = self.over.get() {
            tell(id);
        }
    }
}

/// What is known of each session.
#[derive(Clone, Debug, Default)]
struct Table {
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    all: HashMap<SessionId, One>,
    /// Those about to begin, by caller.
    beginning: Vec<String>,
}

#[derive(Debug)]
struct One {
    owner: Owner,
    /// When it was last used.
    last: Instant,
    /// Requests under way in it. A question to its client is part of one.
    busy: usize,
    /// Streams that wait for news: somebody is still there.
    streams: usize,
}

/// What comes of a wish for a session.
#[derive(Debug, PartialEq)]
enum Room {
    /// There is.
    Free,
    /// There is once this one has ended.
    After(SessionId),
    /// There is not.
    None,
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self, id: &SessionId) {
        if let Some(one) = self.lock().all.get_mut(id) {
            one.last = Instant::now();
        }
    }

    /// Something is under way in a session until this is dropped.
    fn begin(&self, id: &SessionId, what: What) -> Busy {
        if let Some(one) = self.lock().all.get_mut(id) {
            *one.count(what) += 1;
            one.last = Instant::now();
        }
        Busy {
            table: self.clone(),
            id: Arc::clone(id),
            what,
        }
    }
}

impl Known {
    /// Whether there is room for a session of a caller. A new one is worth more than
    /// one that nobody uses: many clients never say that they go. The caller's own give
    /// way first, then whoever's; those nobody listens at before the others, the longest
    /// idle first. One with something under way never does.
    fn room(&self, caller: &str, most: &Most) -> Room {
        let is_own = |one: &One| one.owner.caller == caller;
        let begins = self.beginning.iter().filter(|begins| *begins == caller);
        let own = self.all.values().filter(|one| is_own(one)).count() + begins.count();
        let all = self.all.len() + self.beginning.len();
        if own < most.per_caller && all < most.together {
            return Room::Free;
        }
        let idle = |only_own: bool| {
            let idle = self.all.iter().filter(|(_, one)| one.busy == 0);
            let idle = idle.filter(|(_, one)| !only_own || is_own(one));
            let longest = idle.min_by_key(|(_, one)| (one.streams > 0, one.last));
            longest.map(|(id, _)| Arc::clone(id))
        };
        let gives_way = match idle(true) {
            None if own < most.per_caller => idle(false),
            found => found,
        };
        gives_way.map_or(Room::None, Room::After)
    }

    fn wait(&self, caller: &str, most: &Most) -> Duration {
        let own = self.all.values().filter(|one| one.owner.caller == caller);
        let is_own = own.count() >= most.per_caller;
        let all = self.all.values();
        let all = all.filter(|one| !is_own || one.owner.caller == caller);
        let left = all.map(|one| most.call.saturating_sub(one.last.elapsed()));
        left.min().unwrap_or(most.call)
    }
}

/// What may be under way in a session.
#[derive(Clone, Copy, Debug)]
enum What {
    Request,
    Stream,
}

impl One {
    fn count(&mut self, what: What) -> &mut usize {
        match what {
            What::Request => &mut self.busy,
            What::Stream => &mut self.streams,
        }
    }
}

/// Something under way in a session.
#[derive(Debug)]
pub(crate) struct Busy {
    table: Table,
    id: SessionId,
    what: What,
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(one) = self.table.lock().all.get_mut(&self.id) {
            let count = one.count(self.what);
            *count = count.saturating_sub(1);
            one.last = Instant::now();
        }
    }
}

/// A place for a session that is about to begin. Dropped, it is free again.
struct Place<'a> {
    table: &'a Table,
    caller: String,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let beginning = &mut self.table.lock().beginning;
        let own = beginning.iter().position(|caller| *caller == self.caller);
        if let Some(own) = own {
            beginning.swap_remove(own);
        }
    }
}

impl Sessions {
    /// A place for a session of a caller, ending others if it must.
    async fn place(&self, caller: &str) -> Result<Place<'_>, SessionFault> {
        loop {
            let ended = {
                let mut table = self.table.lock();
                match table.room(caller, &self.most) {
                    Room::Free => {
                        table.beginning.push(caller.to_owned());
                        return Ok(Place {
                            table: &self.table,
                            caller: caller.to_owned(),
                        });
                    }
                    Room::After(id) => table.all.remove(&id).map(|one| (id, one.owner)),
                    Room::None => return Err(SessionFault::Full),
                }
            };
            if let Some((id, owner)) = ended {
                self.told_over(&id, Some(owner));
                self.kept.close_session(&id).await?;
            }
        }
    }
}

impl SessionManager for Sessions {
    type Error = SessionFault;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionFault> {
        let owner = OWNER.try_with(Owner::clone).unwrap_or_default();
        let place = self.place(&owner.caller).await?;
        let (id, transport) = self.kept.create_session().await?;
        if let Some(gate) = &owner.gate {
            gate.begun(&id);
        }
        let one = One {
            owner,
            last: Instant::now(),
            busy: 0,
            streams: 0,
        };
        self.table.lock().all.insert(Arc::clone(&id), one);
        drop(place);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionFault> {
        Ok(self.kept.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionFault> {
        let is_own = OWNER.try_with(|owner| self.is_of(id, &owner.caller));
        self.table.touch(id);
        Ok(is_own.unwrap_or(false) && self.kept.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionFault> {
        let one = self.table.lock().all.remove(id);
        self.told_over(id, one.map(|one| one.owner));
        Ok(self.kept.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionFault> {
        let busy = self.table.begin(id, What::Request);
        let messages = self.kept.create_stream(id, message).await?;
        Ok(self.unread.follow(id, messages, busy))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionFault> {
        Ok(self.kept.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionFault> {
        let stream = self.table.begin(id, What::Stream);
        let messages = self.kept.create_standalone_stream(id).await?;
        Ok(messages.inspect(move |_| {
            let _ = &stream;
        }))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionFault> {
        if let Some(messages) = self.unread.take(id, &last_event_id) {
            return Ok(stream::iter(messages).left_stream());
        }
        match self.kept.resume(id, last_event_id.clone()).await {
            Ok(messages) => {
                let busy = self.table.begin(id, What::Request);
                Ok(self.unread.follow(id, messages, busy).right_stream())
            }
            Err(fault) => {
                // The answer may be on its way to what is kept at this moment.
                tokio::time::sleep(Duration::from_millis(limit::RESUME_PAUSE_MS)).await;
                match self.unread.take(id, &last_event_id) {
                    Some(messages) => Ok(stream::iter(messages).left_stream()),
                    None => Err(fault.into()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Most = Most {
        together: 3,
        per_caller: 2,
        idle: Duration::from_secs(600),
        call: Duration::from_secs(300),
    };

    fn known(sessions: &[(&str, &str, u64, usize, usize)]) -> Known {
        let now = Instant::now();
        let one = |(id, caller, idle, busy, streams): &(&str, &str, u64, usize, usize)| {
            let one = One {
                owner: Owner {
                    caller: (*caller).to_owned(),
                    gate: None,
                },
                last: now.checked_sub(Duration::from_secs(*idle)).expect("a past"),
                busy: *busy,
                streams: *streams,
            };
            (Arc::from(*id), one)
        };
        Known {
            all: sessions.iter().map(one).collect(),
            beginning: Vec::new(),
        }
    }

    #[test]
    fn the_longest_idle_session_gives_way_and_never_a_busy_one() {
        let after = |id: &str| Room::After(Arc::from(id));
        let cases = [
            (vec![("a", "ann", 9, 0, 0)], Room::Free),
            (
                vec![("a", "ann", 9, 0, 0), ("b", "ann", 5, 0, 0)],
                after("a"),
            ),
            (
                vec![("a", "ann", 9, 1, 0), ("b", "ann", 5, 0, 0)],
                after("b"),
            ),
            // Somebody still listens at the first.
            (
                vec![("a", "ann", 9, 0, 1), ("b", "ann", 5, 0, 0)],
                after("b"),
            ),
            (
                vec![("a", "ann", 9, 0, 1), ("b", "ann", 5, 0, 1)],
                after("a"),
            ),
            (
                vec![("a", "ann", 9, 1, 0), ("b", "ann", 5, 2, 0)],
                Room::None,
            ),
            // All places are taken: the own ones first, then anybody's.
            (
                vec![
                    ("a", "ann", 1, 0, 0),
                    ("b", "bob", 9, 0, 0),
                    ("c", "bob", 8, 0, 0),
                ],
                after("a"),
            ),
            (
                vec![
                    ("a", "ann", 9, 1, 0),
                    ("b", "bob", 7, 0, 0),
                    ("c", "bob", 8, 0, 0),
                ],
                after("c"),
            ),
            // Her own share is used up: nobody else's gives way for that.
            (
                vec![
                    ("a", "ann", 9, 1, 0),
                    ("b", "ann", 9, 1, 0),
                    ("c", "bob", 8, 0, 0),
                ],
                Room::None,
            ),
        ];
        for (sessions, room) in cases {
            assert_eq!(known(&sessions).room("ann", &MOST), room, "{sessions:?}");
        }
    }

    #[test]
    fn places_are_counted_while_sessions_begin() {
        let mut known = known(&[("a", "ann", 9, 1, 0)]);
        known.beginning.push("ann".to_owned());
        assert_eq!(known.room("ann", &MOST), Room::None);
        assert_eq!(known.room("bob", &MOST), Room::Free);
        known.beginning.push("carol".to_owned());
        assert_eq!(known.room("bob", &MOST), Room::None);
    }

    #[test]
    fn who_found_no_room_is_told_when_there_will_be() {
        let known = known(&[
            ("a", "ann", 100, 1, 0),
            ("b", "ann", 250, 1, 0),
            ("c", "bob", 290, 1, 0),
        ]);
        let near = |wait: Duration, seconds: u64| {
            let seconds = Duration::from_secs(seconds);
            wait <= seconds && wait + Duration::from_secs(1) > seconds
        };
        assert!(near(known.wait("ann", &MOST), 50));
        assert!(near(known.wait("carol", &MOST), 10));
    }
}
