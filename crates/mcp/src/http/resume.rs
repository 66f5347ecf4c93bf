//! Answers for clients that lost the connection and come back for them.
//!
//! rmcp forgets a stream of a session as soon as its answer was sent, even if the
//! client had lost the connection by then. Here such a stream is read to its end in
//! the client's place, and the messages are kept for a while. A client that reads its
//! answer at once costs nothing.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt as _};
use model::sync::lock;
use rmcp::model::JsonRpcMessage;
use rmcp::transport::common::server_side_http::ServerSseMessage;
use rmcp::transport::streamable_http_server::session::SessionId;
use tokio::runtime::Handle;

use crate::auth::session::SessionUse;
use crate::limit;

type Messages = Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>;

/// The streams that are kept, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct ResumeCache {
    kept: Arc<Mutex<VecDeque<KeptStream>>>,
}

#[derive(Debug)]
struct KeptStream {
    session: SessionId,
    stream: u64,
    since: Instant,
    messages: Vec<ServerSseMessage>,
    bytes: usize,
}

impl ResumeCache {
    /// A stream that is read to its end when its reader goes away.
    pub(super) fn follow(
        &self,
        session: &SessionId,
        messages: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
        in_use: SessionUse,
    ) -> Followed {
        Followed {
            messages: Some(Box::pin(messages)),
            session: Arc::clone(session),
            cache: self.clone(),
            in_use: Some(in_use),
        }
    }

    /// Takes the messages of a stream after an event, if they are kept.
    pub(super) fn take(&self, session: &SessionId, last: &str) -> Option<Vec<ServerSseMessage>> {
        let (index, stream) = place(last)?;
        let mut kept = self.lock();
        forget_old(&mut kept);
        let found = kept
            .iter()
            .position(|kept| kept.session == *session && kept.stream == stream)?;
        // Taken, not copied: an answer is fetched once, and its memory is free at once.
        let messages = kept.remove(found)?.messages;
        let is_new = |message: &ServerSseMessage| {
            let event = message.event_id.as_deref().and_then(place);
            event.is_none_or(|(event, _)| event > index)
        };
        Some(messages.into_iter().filter(is_new).collect())
    }

    /// Drops the kept messages of a session.
    pub(super) fn forget(&self, session: &SessionId) {
        self.lock().retain(|kept| kept.session != *session);
    }

    fn keep(&self, session: SessionId, messages: Vec<ServerSseMessage>) {
        let last = messages.last();
        let is_answer = last
            .and_then(|last| last.message.as_deref())
            .is_some_and(|last| {
                matches!(last, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))
            });
        let event = last.and_then(|last| last.event_id.as_deref());
        let (Some((_, stream)), true) = (event.and_then(place), is_answer) else {
            // The session ended, or the client came back before the answer did.
            return;
        };
        let bytes = messages.iter().map(weight).sum::<usize>();
        // It would displace every other answer and still not fit.
        if bytes > limit::RESUME_ANSWERS_BYTES_MAX {
            return;
        }
        let mut kept = self.lock();
        forget_old(&mut kept);
        let own = kept.iter().filter(|kept| kept.session == session).count();
        let held = |kept: &VecDeque<KeptStream>| kept.iter().map(|kept| kept.bytes).sum::<usize>();
        if own >= limit::RESUME_ANSWERS_PER_SESSION_MAX || kept.len() >= limit::RESUME_ANSWERS_MAX {
            forget_one(&mut kept, &session);
        }
        while !kept.is_empty()
            && held(&kept).saturating_add(bytes) > limit::RESUME_ANSWERS_BYTES_MAX
        {
            forget_one(&mut kept, &session);
        }
        kept.push_back(KeptStream {
            session,
            stream,
            since: Instant::now(),
            messages,
            bytes,
        });
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<KeptStream>> {
        lock(&self.kept)
    }
}

fn forget_old(kept: &mut VecDeque<KeptStream>) {
    let patience = Duration::from_secs(limit::RESUME_SECONDS_MAX);
    kept.retain(|kept| kept.since.elapsed() < patience);
}

/// Forgets the oldest of a session, or of all if it has none.
fn forget_one(kept: &mut VecDeque<KeptStream>, session: &SessionId) {
    let oldest = kept.iter().position(|kept| kept.session == *session);
    kept.remove(oldest.unwrap_or(0));
}

/// The bytes of a message, as it will be written.
fn weight(message: &ServerSseMessage) -> usize {
    let mut count = Count(0);
    if let Some(message) = message.message.as_deref() {
        let _ = serde_json::to_writer(&mut count, message);
    }
    count.0
}

/// Counts bytes written to it.
struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An event's place: its number, and that of its stream.
fn place(event: &str) -> Option<(u64, u64)> {
    let (index, stream) = event.split_once('/')?;
    Some((index.parse().ok()?, stream.parse().ok()?))
}

/// The messages of one request, until they are read.
pub(super) struct Followed {
    messages: Option<Messages>,
    session: SessionId,
    cache: ResumeCache,
    /// Its session does not end as idle before it has its answer.
    in_use: Option<SessionUse>,
}

impl Stream for Followed {
    type Item = ServerSseMessage;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<ServerSseMessage>> {
        let Some(messages) = &mut self.messages else {
            return Poll::Ready(None);
        };
        let polled = messages.as_mut().poll_next(context);
        if matches!(polled, Poll::Ready(None)) {
            self.messages = None;
            self.in_use = None;
        }
        polled
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let (Some(mut messages), Ok(runtime)) = (self.messages.take(), Handle::try_current())
        else {
            return;
        };
        let (session, cache) = (Arc::clone(&self.session), self.cache.clone());
        let in_use = self.in_use.take();
        runtime.spawn(async move {
            let mut came = VecDeque::new();
            while let Some(message) = messages.next().await {
                // The newest are kept: the answer is the last of them.
                if came.len() >= limit::STREAM_MESSAGES_MAX {
                    came.pop_front();
                }
                came.push_back(message);
            }
            // In use until here, so that the session does not end before its answer is
            // kept.
            cache.keep(session, came.into());
            drop(in_use);
        });
    }
}
