//! A slow reply begins as a stream before it is ready, so that no proxy closes the
//! connection as idle.
//!
//! rmcp sends no header before its reply is ready. A request of the newest revision
//! that is still under way after a while is a call; from then on it is a stream of
//! events with a comment now and then, and its answer, whatever form it has, is the
//! last of them.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, to_bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream::{self, Stream, StreamExt as _};
use tokio::time::timeout;

use crate::limit;

/// A comment, which clients ignore.
const COMMENT: &[u8] = b":\n\n";
/// How an event begins and ends.
const EVENT: (&[u8], &[u8]) = (b"data: ", b"\n\n");

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
    set(header::CONTENT_TYPE, "text/event-stream");
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
            let kind = response.headers().get(header::CONTENT_TYPE);
            let is_stream =
                kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
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
