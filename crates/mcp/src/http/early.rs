//! When a stream begins. A slow reply begins as one before it is ready, so that no proxy
//! closes the connection as idle. A large reply that is ready soon becomes none.
//!
//! rmcp sends no header before its reply is ready. A request of the newest revision
//! that is still under way after a while is a call; from then on it is a stream of
//! events with a comment now and then, and its answer, whatever form it has, is the
//! last of them.
//!
//! In a session rmcp streams every reply. Official clients take no event beyond a bound,
//! so a large answer that is the first message of its stream goes as a whole instead.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, to_bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_util::stream::{self, Stream, StreamExt as _};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::time::timeout;

use crate::limit;

/// A comment, which clients ignore.
const COMMENT: &[u8] = b":\n\n";
/// How an event begins and ends.
const EVENT: (&[u8], &[u8]) = (b"data: ", b"\n\n");
const STREAM: &str = "text/event-stream";

type Running = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Waits for an answer for a while; then it is a stream.
pub(super) async fn stream_if_late(
    running: impl Future<Output = Response> + Send + 'static,
    first: Duration,
) -> Response {
    let mut running: Running = Box::pin(running);
    match timeout(first, &mut running).await {
        Ok(response) => response,
        Err(_) => stream(running),
    }
}

fn stream(running: Running) -> Response {
    let first = stream::once(async { Bytes::from_static(COMMENT) });
    let rest = stream::unfold(State::Waits(running), next);
    let events = first.chain(rest).map(Ok::<_, Infallible>);
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::CONTENT_TYPE, STREAM);
    set(header::CACHE_CONTROL, "no-cache");
    // nginx would otherwise collect the events before it passes them on.
    set(header::HeaderName::from_static("x-accel-buffering"), "no");
    response
}

/// How far the answer is.
enum State {
    Waits(Running),
    /// It is a stream itself.
    Streams(BodyDataStream),
    /// It is one message, of which these pieces are left.
    Says(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

async fn next(state: State) -> Option<(Bytes, State)> {
    match state {
        State::Waits(mut running) => {
            let beat = Duration::from_secs(limit::KEEP_ALIVE_SECONDS);
            let Ok(response) = timeout(beat, &mut running).await else {
                return Some((Bytes::from_static(COMMENT), State::Waits(running)));
            };
            let is_stream = is_stream(&response);
            let body = response.into_body();
            if is_stream {
                let comment = Bytes::from_static(COMMENT);
                return Some((comment, State::Streams(body.into_data_stream())));
            }
            // The answer is in memory already. A bound would only lose it.
            let message = to_bytes(body, usize::MAX).await.ok()?;
            let (begin, end) = EVENT;
            let rest = stream::iter([message, Bytes::from_static(end)]);
            Some((Bytes::from_static(begin), State::Says(Box::pin(rest))))
        }
        State::Streams(mut events) => {
            let event = events.next().await?.ok()?;
            Some((event, State::Streams(events)))
        }
        State::Says(mut rest) => {
            let piece = rest.next().await?;
            Some((piece, State::Says(rest)))
        }
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(STREAM.as_bytes()))
}

/// Looks for a while at how a stream begins. An answer that is its first message, and large,
/// is the whole reply instead; every other stream goes on as it is.
pub(super) async fn whole_if_large(response: Response) -> Response {
    if !is_stream(&response) || response.status() != StatusCode::OK {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // Fused: it is read on after its end, when it was that which ended the look.
    let mut events = body.into_data_stream().fuse();
    let mut begin = Vec::new();
    let looking = async {
        while begin.len() < limit::STREAM_LOOK_EVENTS_MAX {
            let Some(Ok(event)) = events.next().await else {
                return;
            };
            let has_message = message_of(&event).is_some();
            begin.push(event);
            if has_message {
                return;
            }
        }
    };
    let most = Duration::from_millis(limit::STREAM_LOOK_MS);
    // Without a message by then it is a stream, and what came of it is its beginning.
    let _ = timeout(most, looking).await;
    if let Some(answer) = begin.last().and_then(large_answer) {
        let json = HeaderValue::from_static("application/json");
        parts.headers.insert(header::CONTENT_TYPE, json);
        return Response::from_parts(parts, Body::from(answer));
    }
    let begin = stream::iter(begin.into_iter().map(Ok::<_, axum::Error>));
    Response::from_parts(parts, Body::from_stream(begin.chain(events)))
}

/// The message of an event of rmcp's, which is one line. The first event of a stream has none.
fn message_of(event: &Bytes) -> Option<Bytes> {
    let (begin, _) = EVENT;
    let mut lines = event.split(|byte| *byte == b'\n');
    let message = lines.find_map(|line| line.strip_prefix(begin))?;
    (!message.is_empty()).then(|| event.slice_ref(message))
}

/// The message of an event that is an answer, and large.
fn large_answer(event: &Bytes) -> Option<Bytes> {
    /// What tells a request or a notification from an answer.
    #[derive(Deserialize)]
    struct Named {
        method: Option<IgnoredAny>,
    }
    let message = message_of(event)?;
    if message.len() <= limit::EVENT_BYTES_MAX {
        return None;
    }
    let named: Named = serde_json::from_slice(&message).ok()?;
    named.method.is_none().then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "data: \nid: 0/1\nretry: 3000\n\n";

    fn event(message: &str) -> String {
        format!("data: {message}\nid: 1/1\n\n")
    }

    fn answer(count: usize) -> String {
        let text = "x".repeat(count);
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"text\":\"{text}\"}}}}")
    }

    async fn passed(events: Vec<String>) -> (bool, String) {
        let body = stream::iter(
            events
                .into_iter()
                .map(|event| Ok::<_, Infallible>(Bytes::from(event))),
        );
        let mut response = Response::new(Body::from_stream(body));
        let kind = HeaderValue::from_static(STREAM);
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        let response = whole_if_large(response).await;
        let is_stream = is_stream(&response);
        let bytes = to_bytes(response.into_body(), usize::MAX).await;
        let bytes = bytes.expect("it was read").to_vec();
        (is_stream, String::from_utf8(bytes).expect("text"))
    }

    #[tokio::test]
    async fn only_a_large_answer_that_comes_first_is_no_event() {
        let (small, large) = (answer(10), answer(limit::EVENT_BYTES_MAX));
        let whole = passed(vec![FIRST.to_owned(), event(&large)]).await;
        assert_eq!(whole, (false, large.clone()));
        let notice = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}";
        let asks = large.replacen("\"result\"", "\"method\":\"x\",\"params\"", 1);
        for events in [
            vec![FIRST.to_owned(), event(&small)],
            vec![FIRST.to_owned(), event(notice), event(&large)],
            vec![FIRST.to_owned(), event(&asks)],
            vec![FIRST.to_owned()],
            vec![":\n\n".to_owned(); limit::STREAM_LOOK_EVENTS_MAX + 2],
            Vec::new(),
        ] {
            let whole = events.concat();
            assert_eq!(passed(events).await, (true, whole));
        }
    }
}
