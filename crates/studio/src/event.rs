//! What pages are told without asking: one stream of numbered events for each tab. A page
//! that missed some is told so, and asks for everything again; nothing is ever made up.
//!
//! The engine's parts are looked at ten times a second, once for all pages, and only while
//! one listens. What other processes of the home do is seen as well.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::Response;
use engine::{AuditItem, Engine};
use futures_util::stream;
use model::govern::key::Secret;
use model::sync::lock;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::error::{ApiError, ApiResult};
use crate::hub::LAST_EVENT_ID;
use crate::limit;
use crate::page::{audit, inbox};
use crate::request::Asked;
use crate::studio::Studio;

/// One stream of one page.
struct Stream {
    studio: Studio,
    secret: Secret,
    seen: u64,
    first: Vec<Arc<str>>,
    newest: watch::Receiver<u64>,
    ends: watch::Receiver<u64>,
    checked: Instant,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

/// Begins a stream.
pub(crate) async fn stream(studio: Studio, asked: Asked) -> ApiResult<Response> {
    let (secret, _) = asked.session.clone().ok_or_else(ApiError::session)?;
    let hub = &studio.inner.events;
    let place = Arc::clone(&hub.streams).try_acquire_owned();
    let place = place.map_err(|_| ApiError::unavailable("too many pages listen at one time"))?;
    watch_while_listened(&studio);
    hub.listened.notify_one();
    // Subscribed before the number is read, so that no event falls in between.
    let newest = hub.newest.subscribe();
    let ends = hub.ends.subscribe();
    let seq = lock(&hub.kept).seq;
    let mut first = vec![hub.text(None, seq, "hello", json!({}))];
    let mut seen = seq;
    if asked.headers.contains_key(LAST_EVENT_ID) {
        match hub
            .left_off(&asked.headers)
            // Events that are gone cannot be made up for, so such a page starts over.
            .filter(|after| hub.since(*after).is_some())
        {
            Some(after) => seen = after,
            None => first.push(hub.text(Some(seq), seq, "reset", json!({}))),
        }
    }
    let stream = Stream {
        secret,
        seen,
        first,
        newest,
        ends,
        checked: Instant::now(),
        is_over: false,
        _place: place,
        studio: studio.clone(),
    };
    let pieces = stream::unfold(stream, |mut stream| async move {
        let piece = stream.next().await?;
        Some((Ok::<_, Infallible>(piece), stream))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

impl Stream {
    /// The next piece of the stream; nothing if it is over.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        if !self.first.is_empty() {
            let first = std::mem::take(&mut self.first).concat();
            return Some(first.into());
        }
        let ping = Duration::from_secs(limit::EVENTS_PING_SECONDS);
        loop {
            let end = self.studio.inner.settings.end.clone();
            let woken = tokio::select! {
                () = end.cancelled() => return None,
                _ = self.ends.changed() => Woken::Ends,
                news = timeout(ping, self.newest.wait_for(|newest| *newest > self.seen)) => match news {
                    Ok(_) => Woken::News,
                    Err(_) => Woken::Silence,
                },
            };
            // Not for each event: looking at the session is a question to the store.
            if woken != Woken::News || self.checked.elapsed() >= ping {
                self.checked = Instant::now();
                if !self.is_open().await {
                    return Some(self.end());
                }
            }
            let hub = &self.studio.inner.events;
            match woken {
                Woken::Ends => continue,
                Woken::Silence => {
                    let at_ms = model_now();
                    // To all pages: it gets a number like any other event, so none
                    // seems to be missing.
                    hub.tell("ping", json!({ "atMs": at_ms }));
                }
                Woken::News => {}
            }
            let Some(events) = hub.since(self.seen) else {
                let seq = lock(&hub.kept).seq;
                self.seen = seq;
                let text = hub.text(Some(seq), seq, "reset", json!({}));
                return Some(text.to_string().into());
            };
            if let Some(last) = events.last() {
                self.seen = last.seq;
                let text: String = events.iter().map(|event| &*event.text).collect();
                return Some(text.into());
            }
        }
    }

    /// Whether the session is still open. Listening is no use of it.
    async fn is_open(&self) -> bool {
        let (studio, secret) = (self.studio.clone(), self.secret.clone());
        let look = move || studio.engine().people().is_open(&secret, studio.address());
        let looked = tokio::task::spawn_blocking(look).await;
        // In doubt the stream ends. The page signs in again, or reconnects.
        matches!(looked, Ok(Ok(true)))
    }

    fn end(&mut self) -> Bytes {
        self.is_over = true;
        let hub = &self.studio.inner.events;
        let text = hub.text(None, self.seen, "session", json!({ "ended": true }));
        text.to_string().into()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Woken {
    News,
    Silence,
    Ends,
}

fn model_now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}

/// Starts the watcher, once.
fn watch_while_listened(studio: &Studio) {
    let mut kept = lock(&studio.inner.events.kept);
    if std::mem::replace(&mut kept.is_watched, true) {
        return;
    }
    drop(kept);
    let studio = studio.clone();
    tokio::spawn(async move {
        let end = studio.inner.settings.end.clone();
        tokio::select! {
            () = end.cancelled() => {}
            () = watch(&studio) => {}
        }
    });
}

async fn watch(studio: &Studio) {
    let hub = &studio.inner.events;
    let mut known: Option<Seen> = None;
    loop {
        if hub.streams.available_permits() >= limit::STREAMS_MAX {
            // No page listens. What happens meanwhile is not kept, so that one which comes
            // back is told to ask again.
            known = None;
            hub.listened.notified().await;
            let mut kept = lock(&hub.kept);
            kept.events.clear();
            // A number that no page has seen, so that those who come back start over.
            kept.seq += 1;
            drop(kept);
        }
        let engine = Arc::clone(&studio.inner.engine);
        // Taken, so that a look that fails starts from nothing and tells nothing wrong.
        let before = known.take();
        let looked = tokio::task::spawn_blocking(move || Seen::look(&engine, before)).await;
        if let Ok((seen, news)) = looked {
            known = Some(seen);
            for (topic, data) in news {
                hub.tell(topic, data);
            }
        }
        sleep(Duration::from_millis(limit::EVENTS_EVERY_MS)).await;
    }
}

type News = Vec<(&'static str, Value)>;

/// What was last seen of the engine.
struct Seen {
    sequence: u64,
    pending: BTreeSet<String>,
    snapshot: Arc<engine::registry::Snapshot>,
}

impl Seen {
    /// Looks again. The first look tells nothing: a page asks for everything itself.
    fn look(engine: &Engine, before: Option<Seen>) -> (Seen, News) {
        let snapshot = engine.registry().current();
        let head = || {
            engine
                .store()
                .audit()
                .head()
                .map_or(0, |head| head.sequence)
        };
        let Some(before) = before else {
            let seen = Seen {
                sequence: head(),
                pending: engine.approvals().pending_ids().unwrap_or_default(),
                snapshot,
            };
            return (seen, News::new());
        };
        let mut news = News::new();
        let mut sequence = before.sequence;
        if head() > sequence {
            let items = engine
                .store()
                .audit()
                .after(sequence, limit::EVENTS_AUDIT_MAX);
            for item in items.unwrap_or_default() {
                sequence = sequence.max(item.last_sequence());
                news.extend(topic_of(&item).map(|topic| (topic, json!({}))));
                let row = audit::row(&item);
                news.push(("audit", json!({ "item": row })));
            }
        }
        // A store that cannot be read tells nothing, and is told about where it is used.
        let pending = match engine.approvals().pending_ids() {
            Ok(pending) => pending,
            Err(_) => before.pending.clone(),
        };
        for id in pending.symmetric_difference(&before.pending) {
            // With the question itself: one more among a thousand is one row for a page. Where
            // it cannot be read, the page asks for all of them.
            let item = engine.approvals().find(id).ok();
            let item = item.as_ref().map(inbox::row);
            let waiting = pending.len();
            news.push(("inbox", json!({"id": id, "waiting": waiting, "item": item})));
        }
        if !Arc::ptr_eq(&snapshot, &before.snapshot) {
            news.push(("tools", json!({})));
            news.push(("servers", json!({})));
            if !Arc::ptr_eq(&snapshot.settings, &before.snapshot.settings) {
                news.push(("settings", json!({})));
            }
        }
        let seen = Seen {
            sequence,
            pending,
            snapshot,
        };
        (seen, news)
    }
}

/// What else a notice of the audit is news about.
fn topic_of(item: &AuditItem) -> Option<&'static str> {
    let AuditItem::Notice(entry) = item else {
        return None;
    };
    let (kind, _) = entry.notice.act.word().split_once('.')?;
    match kind {
        "caller" | "trust" | "key" => Some("callers"),
        "server" => Some("servers"),
        "secret" | "tool" => Some("tools"),
        _ => None,
    }
}
