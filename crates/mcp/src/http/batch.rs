//! Batches: several messages in one body, which only the revision 2025-03-26 has.
//!
//! Each message takes the path of a single one, so that every call is checked, counted
//! and recorded. The answers are collected and sent as one array.

use axum::body::{Bytes, to_bytes};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::join_all;
use serde_json::Value;

use crate::auth::SESSION_HEADER;
use crate::era::VERSION_HEADER;
use crate::jsonrpc::{self, TRANSPORT};
use crate::limit;

/// The revision with batches. Clients of it do not know the header that names it, so a
/// session without the header counts as one of it.
const REVISION: &str = "2025-03-26";

/// The content of a body.
#[derive(Debug, PartialEq)]
pub(super) enum Content {
    /// One message, or something that is not a message.
    Single,
    Batch(Vec<Value>),
    /// A batch that is refused, and why.
    Refused(String),
}

impl Content {
    pub(super) fn of(headers: &HeaderMap, bytes: &[u8]) -> Content {
        if !bytes.trim_ascii_start().starts_with(b"[") || !has_batches(headers) {
            return Content::Single;
        }
        // rmcp answers what is no JSON.
        let Ok(messages) = serde_json::from_slice::<Vec<Value>>(bytes) else {
            return Content::Single;
        };
        let most = limit::BATCH_MESSAGES_MAX;
        let is_handshake =
            |message: &Value| message.get("method").and_then(Value::as_str) == Some("initialize");
        if messages.is_empty() {
            Content::Refused("a batch has at least one message".to_owned())
        } else if messages.len() > most {
            Content::Refused(format!("a batch has at most {most} messages"))
        } else if messages.iter().any(is_handshake) {
            // The specification forbids it: a handshake begins the session that a batch is
            // part of.
            Content::Refused("`initialize` cannot be part of a batch".to_owned())
        } else {
            Content::Batch(messages)
        }
    }
}

fn has_batches(headers: &HeaderMap) -> bool {
    let revision = headers.get(VERSION_HEADER);
    headers.contains_key(SESSION_HEADER)
        && revision.is_none_or(|revision| revision.as_bytes() == REVISION.as_bytes())
}

/// Passes each message on, in order and without waiting for one before the next, and
/// puts their answers together.
pub(super) async fn answer<F>(messages: Vec<Value>, pass_on: impl Fn(Bytes) -> F) -> Response
where
    F: Future<Output = Response>,
{
    let answers = messages.iter().map(async |message| {
        let response = pass_on(Bytes::from(message.to_string())).await;
        answer_to(message, response).await
    });
    let answers: Vec<_> = join_all(answers).await.into_iter().flatten().collect();
    match answers.is_empty() {
        // Nothing in it wanted an answer.
        true => StatusCode::ACCEPTED.into_response(),
        false => axum::Json(answers).into_response(),
    }
}

/// The answer to one message; nothing if it wants none. Progress messages are left out:
/// one array has no place for them.
async fn answer_to(message: &Value, response: Response) -> Option<Value> {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let bytes = to_bytes(response.into_body(), limit::BATCH_ANSWER_BYTES_MAX).await;
    let found = bytes.ok().and_then(|bytes| match is_stream {
        true => events(&String::from_utf8_lossy(&bytes)).find(is_answer),
        false => serde_json::from_slice(&bytes).ok(),
    });
    let id = message
        .get("id")
        .filter(|_| message.get("method").is_some());
    // A request is answered, also if its session ended meanwhile.
    found.or_else(|| Some(jsonrpc::error(TRANSPORT, "there is no answer", id?)))
}

/// The messages of a stream of events.
fn events(text: &str) -> impl Iterator<Item = Value> {
    text.split("\n\n").filter_map(|event| {
        let data = event.lines().filter_map(|line| line.strip_prefix("data:"));
        serde_json::from_str(&data.collect::<String>()).ok()
    })
}

fn is_answer(message: &Value) -> bool {
    message.get("result").is_some() || message.get("error").is_some()
}
