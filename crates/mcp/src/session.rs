//! The sessions of legacy clients: how many there may be, and whose they are.
//!
//! rmcp keeps the sessions themselves and closes those that are idle. It does not
//! know who asks, so the caller of the request at hand travels with its task.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

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

/// Whose a session is, and the gate that must hear when it is over: an idle one
/// ends without a request the gate could see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owner {
    pub(crate) caller: String,
    pub(crate) gate: Option<gate::Sessions>,
}

/// The sessions of one server.
#[derive(Debug)]
pub struct Sessions {
    kept: LocalSessionManager,
    owners: Mutex<HashMap<SessionId, Owner>>,
    unread: Unread,
    over: OnceLock<Over>,
    together_max: usize,
    per_caller_max: usize,
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
    /// There are too many.
    #[error("{FULL}")]
    Full,
    /// What rmcp says.
    #[error(transparent)]
    Kept(#[from] LocalSessionManagerError),
}

impl Sessions {
    /// Sessions with these bounds.
    #[must_use]
    pub fn new(together_max: usize, per_caller_max: usize, idle_max: Duration) -> Sessions {
        let mut kept = LocalSessionManager::default();
        let config = &mut kept.session_config;
        config.channel_capacity = limit::STREAM_MESSAGES_MAX;
        config.keep_alive = Some(idle_max);
        config.init_timeout = Some(Duration::from_secs(limit::SESSION_START_SECONDS_MAX));
        config.completed_cache_ttl = Duration::from_secs(limit::RESUME_SECONDS_MAX);
        Sessions {
            kept,
            owners: Mutex::default(),
            unread: Unread::default(),
            over: OnceLock::new(),
            together_max,
            per_caller_max,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Whether a session is there.
    #[must_use]
    pub fn is_there(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    /// Whether a session is there and belongs to a caller. Another's looks like one
    /// that never was.
    #[must_use]
    pub fn is_of(&self, id: &str, caller: &str) -> bool {
        let owners = self.lock();
        owners.get(id).is_some_and(|owner| owner.caller == caller)
    }

    /// Who is told of each session that is over, however it ended. The first one
    /// named stays.
    pub fn when_over(&self, tell: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.over.set(Over(Box::new(tell)));
    }

    /// Ends every session.
    pub async fn close_all(&self) {
        let ids: Vec<_> = self.lock().keys().cloned().collect();
        for id in ids {
            let _ = self.close_session(&id).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Owner>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self, caller: &str) -> bool {
        let owners = self.lock();
        let own = owners.values().filter(|owner| owner.caller == caller);
        let own = own.count();
        owners.len() < self.together_max && own < self.per_caller_max
    }
}

impl SessionManager for Sessions {
    type Error = SessionFault;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionFault> {
        let owner = OWNER.try_with(Owner::clone).unwrap_or_default();
        if !self.has_room(&owner.caller) {
            return Err(SessionFault::Full);
        }
        let (id, transport) = self.kept.create_session().await?;
        self.lock().insert(Arc::clone(&id), owner);
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
        Ok(is_own.unwrap_or(false) && self.kept.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionFault> {
        let owner = self.lock().remove(id);
        if let Some(gate) = owner.and_then(|owner| owner.gate) {
            gate.forget(id);
        }
        self.unread.forget(id);
        if let Some(Over(tell)) = self.over.get() {
            tell(id);
        }
        Ok(self.kept.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionFault> {
        let messages = self.kept.create_stream(id, message).await?;
        Ok(self.unread.follow(id, messages))
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
        Ok(self.kept.create_standalone_stream(id).await?)
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
            Ok(messages) => Ok(self.unread.follow(id, messages).right_stream()),
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
