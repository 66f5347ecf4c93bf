//! Between HTTP and rmcp: bodies are read within bounds, and what rmcp answers in
//! its own way is put as the specification has it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Frame, SizeHint};
use model::reason::Reason;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::gate::{self, Principal};
use crate::handler::SESSION_HEADER;
use crate::http::HttpBounds;
use crate::session::{self, Owner, Sessions};
use crate::unsent::{Sending, Unsent};
use crate::{early, limit};

/// Bytes of an answer of rmcp's that is not JSON; they are single sentences.
const SENTENCE_BYTES_MAX: usize = 4 << 10;
/// What whoever speaks the protocol takes.
const BOTH_KINDS: &str = "application/json, text/event-stream";
/// JSON-RPC: this is not JSON.
const PARSE: i64 = -32700;
/// JSON-RPC: this is no message.
pub(crate) const INVALID: i64 = -32600;
/// Ours: the transport says no.
const TRANSPORT: i64 = -32000;
/// What clients know an unknown session by.
const NO_SESSION: i64 = -32001;

/// What the layer needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) reading: Reading,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) answers: Answers,
    pub(crate) unsent: Unsent,
    /// How long an answer may take before its stream begins.
    pub(crate) stream_first: Duration,
}

/// How much of a request is read, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    bytes_max: usize,
    patience: Duration,
}

impl Reading {
    pub(crate) fn of(bounds: &HttpBounds) -> Reading {
        Reading {
            bytes_max: bounds.body_bytes_max,
            patience: bounds.body_max,
        }
    }
}

/// The answers to POST that are not written yet. When the server ends, nothing is
/// cut before they are.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    under_way: Arc<watch::Sender<usize>>,
}

impl Default for Answers {
    fn default() -> Answers {
        Answers {
            under_way: Arc::new(watch::Sender::new(0)),
        }
    }
}

impl Answers {
    /// Waits until all are written.
    pub(crate) async fn written(&self) {
        let mut under_way = self.under_way.subscribe();
        let _ = under_way.wait_for(|under_way| *under_way == 0).await;
    }

    fn begin(&self) -> UnderWay {
        self.under_way.send_modify(|under_way| *under_way += 1);
        UnderWay {
            answers: self.clone(),
        }
    }
}

#[derive(Debug)]
struct UnderWay {
    answers: Answers,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.answers
            .under_way
            .send_modify(|under_way| *under_way = under_way.saturating_sub(1));
    }
}

/// A body that is counted until it was taken: its answer is under way, its call holds
/// its place, and so many of its bytes wait.
struct Counted {
    body: Body,
    /// What the transport has of it and the other side has not taken.
    left: Bytes,
    sending: Sending,
    unsent: Unsent,
    caller: String,
    _under_way: Option<UnderWay>,
}

impl Counted {
    /// The next piece of what is left. A copy, for what is left is freed only as a whole,
    /// and the last piece must not keep all of it.
    fn piece(&mut self) -> Bytes {
        let length = self.left.len().min(limit::WRITE_PIECE_BYTES);
        let piece = self.left.split_to(length);
        let piece = Bytes::copy_from_slice(&piece);
        if self.left.is_empty() {
            self.left = Bytes::new();
            self.sending.holds(&self.unsent, &self.caller, 0);
            self.taken(&piece);
        }
        piece
    }

    /// The other side may act on a whole event before its stream ends.
    fn taken(&self, piece: &[u8]) {
        if piece.ends_with(b"\n\n") {
            self.sending.release();
        }
    }
}

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.left.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(self.piece()))));
        }
        let frame = match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => frame,
            other => return other,
        };
        match frame.into_data() {
            Ok(data) if data.len() > limit::WRITE_PIECE_BYTES => {
                let this = &mut *self;
                this.sending.holds(&this.unsent, &this.caller, data.len());
                this.left = data;
                let piece = this.piece();
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Ok(data) => {
                self.taken(&data);
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            Err(frame) => Poll::Ready(Some(Ok(frame))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let left = u64::try_from(self.left.len()).unwrap_or(u64::MAX);
        let of_body = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(of_body.lower().saturating_add(left));
        if let Some(upper) = of_body.upper() {
            hint.set_upper(upper.saturating_add(left));
        }
        hint
    }
}

/// The layer itself.
pub(crate) async fn layer(
    State(bounds): State<Bounds>,
    mut request: Request,
    next: Next,
) -> Response {
    let under_way = (request.method() == Method::POST).then(|| bounds.answers.begin());
    let unsent = bounds.unsent.clone();
    let sending = Sending::default();
    request.extensions_mut().insert(sending.clone());
    let principal = request.extensions().get::<Principal>();
    let caller = principal.map(|principal| principal.caller.name.clone());
    let caller = caller.unwrap_or_default();
    let response = answer(bounds, request, next).await;
    response.map(|body| {
        Body::new(Counted {
            body,
            left: Bytes::new(),
            sending,
            unsent,
            caller,
            _under_way: under_way,
        })
    })
}

async fn answer(bounds: Bounds, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let is_modern = is_modern(&parts);
    if is_modern {
        // Attack: what is modern by one header and names another's session by the
        // next would get there if rmcp looked at a third thing.
        parts.headers.remove(SESSION_HEADER);
    }
    let principal = parts.extensions.get::<Principal>();
    let Some(caller) = principal.map(|principal| principal.caller.name.clone()) else {
        return refusal(
            StatusCode::UNAUTHORIZED,
            TRANSPORT,
            "nobody let this request in",
            Value::Null,
        );
    };
    if let Some(id) = parts.headers.get(SESSION_HEADER) {
        let is_own = |id: &str| bounds.sessions.is_of(id, &caller);
        if !id.to_str().is_ok_and(is_own) {
            return no_session();
        }
    }
    let bytes = match read(body, bounds.reading).await {
        Ok(bytes) => bytes,
        Err(response) => return *response,
    };
    take_anything(&mut parts.headers);
    let method = parts.method.clone();
    let gate = parts.extensions.get::<gate::Beginning>().cloned();
    let owner = Owner { caller, gate };
    let request = Request::from_parts(parts, Body::from(bytes.clone()));
    let running = session::OWNER.scope(owner.clone(), next.run(request));
    let (sessions, first) = (Arc::clone(&bounds.sessions), bounds.stream_first);
    let running = async move {
        let response = running.await;
        if method == Method::DELETE && response.status() == StatusCode::ACCEPTED {
            return StatusCode::NO_CONTENT.into_response();
        }
        if response.status().as_u16() < 400 || is_json(&response) {
            return response;
        }
        in_words(response, &bytes, &sessions, &owner.caller).await
    };
    match is_modern {
        true => early::answered(running, first).await,
        false => running.await,
    }
}

/// Whoever takes anything, or does not say, takes both kinds of answers.
fn take_anything(headers: &mut HeaderMap) {
    let mut all = headers.get_all(header::ACCEPT).iter().peekable();
    let is_said = all.peek().is_some();
    let takes_anything = all.any(|accept| {
        let accept = accept.to_str().unwrap_or_default();
        let mut kinds = accept.split(',');
        kinds.any(|kind| kind.split(';').next().map(str::trim) == Some("*/*"))
    });
    if !is_said || takes_anything {
        headers.insert(header::ACCEPT, HeaderValue::from_static(BOTH_KINDS));
    }
}

/// Modern requests have no session, whatever their headers say.
fn is_modern(parts: &Parts) -> bool {
    let version = parts.headers.get("mcp-protocol-version");
    version.is_some_and(|version| version.as_bytes() >= b"2026-07-28".as_slice())
}

/// For routes that are not the protocol's: what is behind gets the request whole.
pub(crate) async fn whole(
    State(reading): State<Reading>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    match read(body, reading).await {
        Ok(bytes) => {
            next.run(Request::from_parts(parts, Body::from(bytes)))
                .await
        }
        Err(response) => *response,
    }
}

async fn read(body: Body, reading: Reading) -> Result<Bytes, Box<Response>> {
    let no = |status, message: &str| {
        let mut response = refusal(status, TRANSPORT, message, Value::Null);
        // What was not read must not be taken for the next request.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
        Box::new(response)
    };
    let Reading {
        bytes_max,
        patience,
    } = reading;
    match timeout(patience, to_bytes(body, bytes_max)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            let message = format!("the request is cut off or longer than {bytes_max} bytes");
            Err(no(StatusCode::PAYLOAD_TOO_LARGE, &message))
        }
        Err(_) => Err(no(
            StatusCode::REQUEST_TIMEOUT,
            "the request took too long to arrive",
        )),
    }
}

fn is_json(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}

/// A sentence of rmcp's, as an error of JSON-RPC.
async fn in_words(
    response: Response,
    request: &Bytes,
    sessions: &Sessions,
    caller: &str,
) -> Response {
    let (parts, body) = response.into_parts();
    let sentence = to_bytes(body, SENTENCE_BYTES_MAX).await.unwrap_or_default();
    let sentence = String::from_utf8_lossy(&sentence);
    let mut answer = match parts.status {
        StatusCode::NOT_FOUND => no_session(),
        // rmcp takes what it cannot read for another media type.
        StatusCode::UNSUPPORTED_MEDIA_TYPE if !sentence.starts_with("Unsupported") => {
            unread(request)
        }
        StatusCode::INTERNAL_SERVER_ERROR if sentence.contains(session::FULL) => {
            let message = "there are as many sessions as may be, and calls are under way in all \
                of them; end one, or try again later";
            gate::Refusal::new(Reason::GateSessionLimit, message)
                .after(sessions.wait(caller))
                .into_response()
        }
        StatusCode::INTERNAL_SERVER_ERROR => {
            // Its words are about the insides of the server.
            let message = "the server could not answer";
            refusal(parts.status, TRANSPORT, message, Value::Null)
        }
        status => {
            let sentence = sentence
                .split_once(": ")
                .map_or(&*sentence, |(_, said)| said);
            refusal(status, TRANSPORT, sentence, Value::Null)
        }
    };
    for name in [header::ALLOW, header::WWW_AUTHENTICATE] {
        if let Some(value) = parts.headers.get(&name) {
            answer.headers_mut().insert(name, value.clone());
        }
    }
    answer
}

/// A body that is no message.
fn unread(request: &Bytes) -> Response {
    let fault = fault(request);
    refusal(
        StatusCode::BAD_REQUEST,
        fault.code,
        fault.sentence,
        fault.id,
    )
}

/// What is wrong with bytes that are no message.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: i64,
    pub(crate) sentence: &'static str,
    pub(crate) id: Value,
    /// It has a method and no id, so that it is not to be answered.
    pub(crate) is_notification: bool,
}

/// Why bytes are no message: not JSON, a batch, or something else.
pub(crate) fn fault(bytes: &[u8]) -> Fault {
    let no = |code, sentence| Fault {
        code,
        sentence,
        id: Value::Null,
        is_notification: false,
    };
    match serde_json::from_slice::<Value>(bytes) {
        Err(_) => no(PARSE, "the request is not JSON"),
        Ok(Value::Array(_)) => no(INVALID, "batches are not taken; send one message at a time"),
        Ok(value) => {
            let id = value.get("id");
            Fault {
                is_notification: id.is_none() && value.get("method").is_some_and(Value::is_string),
                id: id
                    .filter(|id| id.is_string() || id.is_number())
                    .cloned()
                    .unwrap_or_default(),
                ..no(INVALID, "the request is not a JSON-RPC 2.0 message")
            }
        }
    }
}

fn no_session() -> Response {
    let message = "there is no such session; begin a new one";
    refusal(StatusCode::NOT_FOUND, NO_SESSION, message, Value::Null)
}

/// An error of JSON-RPC with a status of HTTP.
pub(crate) fn refusal(status: StatusCode, code: i64, message: &str, id: Value) -> Response {
    let error = json!({"code": code, "message": message});
    let body = json!({"jsonrpc": "2.0", "id": id, "error": error});
    (status, axum::Json(body)).into_response()
}
