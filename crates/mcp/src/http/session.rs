//! rmcp's sessions of legacy clients, behind the table that says whose they are.
//!
//! rmcp closes sessions that are idle. It makes a session before it shows the request
//! that wants it, so a new session is entered in the table with its first message, in
//! the same step and before anything is awaited: no session is ever without an owner,
//! and none that found no room is answered.

use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use futures_util::{Stream, StreamExt as _, stream};
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _, ServerJsonRpcMessage};
use rmcp::transport::common::server_side_http::ServerSseMessage;
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::SessionId;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};

use crate::auth::session::{InUse, NoRoom};
use crate::auth::{Principal, Sessions};
use crate::http::resume::ResumeCache;
use crate::limit;

/// The error text when there is no room for another session.
pub(super) const FULL: &str = "no room for another session";

/// The sessions rmcp keeps for one server.
#[derive(Debug)]
pub struct RmcpSessions {
    rmcp: Arc<LocalSessionManager>,
    table: Sessions,
    resume: ResumeCache,
}

/// A session could not be created or used.
#[derive(Debug, thiserror::Error)]
pub enum SessionFault {
    /// The limit is reached, and every session is in use.
    #[error("{FULL}")]
    Full,
    /// The request carries no principal.
    #[error("the request was not authenticated")]
    Unauthenticated,
    /// rmcp failed.
    #[error(transparent)]
    Rmcp(#[from] LocalSessionManagerError),
}

impl RmcpSessions {
    /// Sessions that are entered in this table.
    #[must_use]
    pub(super) fn new(table: Sessions) -> RmcpSessions {
        let mut rmcp = LocalSessionManager::default();
        let config = &mut rmcp.session_config;
        config.channel_capacity = limit::STREAM_MESSAGES_MAX;
        config.keep_alive = Some(table.bounds().idle);
        config.init_timeout = Some(Duration::from_secs(limit::SESSION_START_SECONDS_MAX));
        config.completed_cache_ttl = Duration::from_secs(limit::RESUME_SECONDS_MAX);
        RmcpSessions {
            rmcp: Arc::new(rmcp),
            table,
            resume: ResumeCache::default(),
        }
    }

    /// How many rmcp keeps. The same as in the table, but for those just closing.
    pub async fn count(&self) -> usize {
        self.rmcp.sessions.read().await.len()
    }

    /// Ends every session.
    pub(super) async fn close_all(&self) {
        for id in self.table.ids() {
            let _ = self.close_session(&id).await;
        }
    }

    /// Enters a session in the table, and closes those that give way to it.
    fn enter(&self, id: &SessionId, message: &ClientJsonRpcMessage) -> Result<(), SessionFault> {
        let principal = principal(message).ok_or(SessionFault::Unauthenticated)?;
        let ended = self.table.begin(id, principal);
        for id in ended.map_err(|NoRoom| SessionFault::Full)? {
            self.close_apart(id);
        }
        Ok(())
    }

    /// Closes a session that is not in the table. In a task of its own: the client
    /// whose request caused it may disconnect.
    fn close_apart(&self, id: SessionId) {
        self.resume.forget(&id);
        let rmcp = Arc::clone(&self.rmcp);
        tokio::spawn(async move { rmcp.close_session(&id).await });
    }
}

/// Who sent a message: authentication put it into the request, and rmcp the request
/// into the message.
fn principal(message: &ClientJsonRpcMessage) -> Option<&Principal> {
    let ClientJsonRpcMessage::Request(request) = message else {
        return None;
    };
    let parts = request.request.extensions().get::<Parts>()?;
    parts.extensions.get()
}

impl SessionManager for RmcpSessions {
    type Error = SessionFault;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionFault> {
        Ok(self.rmcp.create_session().await?)
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionFault> {
        if let Err(fault) = self.enter(id, &message) {
            self.close_apart(Arc::clone(id));
            return Err(fault);
        }
        Ok(self.rmcp.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionFault> {
        self.table.touch(id);
        Ok(self.rmcp.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionFault> {
        // The table first: no request may reach a session that is about to close.
        self.table.end(id);
        self.resume.forget(id);
        Ok(self.rmcp.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionFault> {
        // Before anything is awaited, or the session could give way to another one.
        let in_use = self.table.start(id, InUse::Request);
        let messages = self.rmcp.create_stream(id, message).await?;
        Ok(self.resume.follow(id, messages, in_use))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionFault> {
        Ok(self.rmcp.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionFault> {
        let in_use = self.table.start(id, InUse::Stream);
        let messages = self.rmcp.create_standalone_stream(id).await?;
        Ok(messages.inspect(move |_| {
            // Moved into the closure, so that the session is in use for as long as the
            // stream lives.
            let _ = &in_use;
        }))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionFault> {
        if let Some(messages) = self.resume.take(id, &last_event_id) {
            return Ok(stream::iter(messages).left_stream());
        }
        match self.rmcp.resume(id, last_event_id.clone()).await {
            Ok(messages) => {
                let in_use = self.table.start(id, InUse::Request);
                Ok(self.resume.follow(id, messages, in_use).right_stream())
            }
            Err(fault) => {
                // The answer may be on its way to the cache at this moment.
                tokio::time::sleep(Duration::from_millis(limit::RESUME_PAUSE_MS)).await;
                match self.resume.take(id, &last_event_id) {
                    Some(messages) => Ok(stream::iter(messages).left_stream()),
                    None => Err(fault.into()),
                }
            }
        }
    }
}
