//! Between HTTP and rmcp: reads bodies within bounds, and changes rmcp's replies where
//! the specification wants others.

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
use model::text::surrogate;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::auth::{self, AuthRefusal, MessageLimit, Principal, Sessions};
use crate::era::{Era, VERSION_HEADER};
use crate::http::batch::{self, Content};
use crate::http::bounds::HttpBounds;
use crate::http::plain::PlainCalls;
use crate::http::{early, session};
use crate::jsonrpc::{self, BadMessage, HEADER_MISMATCH, INVALID, TRANSPORT};
use crate::limit;
use crate::unsent::{ReplyHold, Unsent};

/// Bytes of an answer of rmcp's that is not JSON; they are single sentences.
const SENTENCE_BYTES_MAX: usize = 4 << 10;
/// The kinds of answers that a client of the protocol takes.
const BOTH_KINDS: &str = "application/json, text/event-stream";

/// The state of the layer.
#[derive(Clone, Debug)]
pub(super) struct BodyState {
    pub(super) bounds: BodyBounds,
    pub(super) sessions: Sessions,
    pub(super) answers: Answers,
    pub(super) unsent: Unsent,
    /// Makes calls that need none of rmcp's machinery; nothing where only rmcp answers.
    pub(super) plain: Option<PlainCalls>,
    /// How long an answer may take before its stream begins.
    pub(super) stream_first: Duration,
}

/// How much of a request is read, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyBounds {
    bytes_max: usize,
    time_max: Duration,
}

impl BodyBounds {
    pub(super) fn of(bounds: &HttpBounds) -> BodyBounds {
        BodyBounds {
            bytes_max: bounds.body_bytes_max,
            time_max: bounds.body_max,
        }
    }
}

/// The answers to POST that are not written yet. When the server ends, nothing is
/// cut before they are.
#[derive(Clone, Debug)]
pub(super) struct Answers {
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
    pub(super) async fn wait_written(&self) {
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
    /// The bytes that the client has not taken yet.
    left: Bytes,
    hold: ReplyHold,
    unsent: Unsent,
    caller: String,
    _under_way: Option<UnderWay>,
}

impl Counted {
    /// Takes the next piece of the rest. A copy: `Bytes` are freed only as a whole, and
    /// the last piece must not keep all of them in memory.
    fn take_piece(&mut self) -> Bytes {
        let length = self.left.len().min(limit::WRITE_PIECE_BYTES);
        let piece = self.left.split_to(length);
        let piece = Bytes::copy_from_slice(&piece);
        if self.left.is_empty() {
            self.left = Bytes::new();
            self.hold.set_bytes(&self.unsent, &self.caller, 0);
            self.release_after(&piece);
        }
        piece
    }

    /// Releases the answer's slot and bytes after a whole event: the client may act on
    /// it before the stream ends.
    fn release_after(&self, piece: &[u8]) {
        if piece.ends_with(b"\n\n") {
            self.hold.release();
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
            return Poll::Ready(Some(Ok(Frame::data(self.take_piece()))));
        }
        let frame = match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => frame,
            other => return other,
        };
        match frame.into_data() {
            // In pieces, because the write timeout is for each of them: a client that reads a large
            // answer slowly, but reads, is not dropped.
            Ok(data) if data.len() > limit::WRITE_PIECE_BYTES => {
                let this = &mut *self;
                this.hold.set_bytes(&this.unsent, &this.caller, data.len());
                this.left = data;
                let piece = this.take_piece();
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Ok(data) => {
                self.release_after(&data);
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
pub(super) async fn layer(
    State(state): State<BodyState>,
    mut request: Request,
    next: Next,
) -> Response {
    let under_way = (request.method() == Method::POST).then(|| state.answers.begin());
    let unsent = state.unsent.clone();
    let hold = ReplyHold::default();
    request.extensions_mut().insert(hold.clone());
    let principal = request.extensions().get::<Principal>();
    let caller = principal.map(|principal| principal.caller.name.clone());
    let caller = caller.unwrap_or_default();
    let response = forward(state, &caller, request, next).await;
    response.map(|body| {
        Body::new(Counted {
            body,
            left: Bytes::new(),
            hold,
            unsent,
            caller,
            _under_way: under_way,
        })
    })
}

/// Reads a whole request, and makes its call or passes its messages to rmcp.
async fn forward(state: BodyState, caller: &str, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    if parts.headers.get_all(VERSION_HEADER).iter().count() > 1 {
        // rmcp would read the first and believe it.
        let message = "there are two `MCP-Protocol-Version` headers; send one";
        return refusal(
            StatusCode::BAD_REQUEST,
            HEADER_MISMATCH,
            message,
            &Value::Null,
        );
    }
    let era = Era::of_headers(&parts.headers);
    let bytes = match read(body, state.bounds).await {
        // Clients in JavaScript cut texts in the middle of a character.
        Ok(bytes) => surrogate::mended_copy(&bytes).map_or(bytes, Bytes::from),
        Err(response) => return *response,
    };
    accept_both_kinds(&mut parts.headers);
    let plain = state.plain.as_ref().filter(|_| era == Era::Modern);
    if let Some(call) = plain.and_then(|plain| plain.read(&parts, &bytes)) {
        return early::stream_if_late(call.answer(parts), state.stream_first).await;
    }
    let passing = Passing {
        next,
        sessions: state.sessions,
        caller: caller.to_owned(),
    };
    match (Content::of(&parts.headers, &bytes), era) {
        (Content::Single, Era::Legacy) => {
            let is_post = parts.method == Method::POST;
            let response = passing.pass_on(parts, bytes).await;
            match is_post {
                true => early::whole_if_large(response).await,
                // The stream of a session, or one that is taken up again.
                false => response,
            }
        }
        (Content::Single, Era::Modern) => {
            let running = passing.pass_on(parts, bytes);
            early::stream_if_late(running, state.stream_first).await
        }
        (Content::Batch(messages), _) => {
            // Authentication has counted the first.
            let more = messages.len().saturating_sub(1);
            let limit = parts.extensions.get::<MessageLimit>();
            if let Some(Err(refusal)) = limit.map(|limit| limit.count(more)) {
                return refusal.into_response();
            }
            let running = pass_on_batch(passing, messages, parts);
            early::stream_if_late(running, state.stream_first).await
        }
        (Content::Refused(sentence), _) => {
            refusal(StatusCode::BAD_REQUEST, INVALID, &sentence, &Value::Null)
        }
    }
}

/// Everything needed to pass a message to rmcp.
#[derive(Clone, Debug)]
struct Passing {
    next: Next,
    sessions: Sessions,
    caller: String,
}

impl Passing {
    /// Passes a message to rmcp, and returns the reply in the form of the
    /// specification.
    async fn pass_on(self, parts: Parts, bytes: Bytes) -> Response {
        let method = parts.method.clone();
        let request = Request::from_parts(parts, Body::from(bytes.clone()));
        let response = self.next.run(request).await;
        if method == Method::DELETE && response.status() == StatusCode::ACCEPTED {
            return StatusCode::NO_CONTENT.into_response();
        }
        // What rmcp says in JSON is in the form of the specification already.
        if response.status().as_u16() < 400 || is_json(&response) {
            return response;
        }
        restate(response, &bytes, &self.sessions, &self.caller).await
    }
}

/// Hands each message of a batch to rmcp as if it had come alone. The reply to the
/// batch holds their slots and bytes until it was sent.
async fn pass_on_batch(passing: Passing, messages: Vec<Value>, mut parts: Parts) -> Response {
    // It is the length of the whole batch.
    parts.headers.remove(header::CONTENT_LENGTH);
    let whole = parts.extensions.get::<ReplyHold>().cloned();
    let whole = whole.unwrap_or_default();
    let pass_on = |bytes| {
        let (passing, mut parts) = (passing.clone(), parts.clone());
        let hold = ReplyHold::default();
        whole.add(hold.clone());
        parts.extensions.insert(hold);
        passing.pass_on(parts, bytes)
    };
    batch::answer(messages, pass_on).await
}

/// A client that accepts anything, or does not say, accepts both kinds of answers.
fn accept_both_kinds(headers: &mut HeaderMap) {
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

/// Reads the request whole before a route that is not the protocol's sees it.
pub(super) async fn read_whole(
    State(bounds): State<BodyBounds>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    match read(body, bounds).await {
        Ok(bytes) => {
            next.run(Request::from_parts(parts, Body::from(bytes)))
                .await
        }
        Err(response) => *response,
    }
}

async fn read(body: Body, bounds: BodyBounds) -> Result<Bytes, Box<Response>> {
    let no = |status, message: &str| {
        let mut response = refusal(status, TRANSPORT, message, &Value::Null);
        // The unread rest must not be parsed as the next request.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
        Box::new(response)
    };
    let BodyBounds {
        bytes_max,
        time_max,
    } = bounds;
    match timeout(time_max, to_bytes(body, bytes_max)).await {
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

/// Turns a plain-text error of rmcp into an error of JSON-RPC.
async fn restate(
    response: Response,
    request: &Bytes,
    sessions: &Sessions,
    caller: &str,
) -> Response {
    let (parts, body) = response.into_parts();
    let sentence = to_bytes(body, SENTENCE_BYTES_MAX).await.unwrap_or_default();
    let sentence = String::from_utf8_lossy(&sentence);
    let mut answer = match parts.status {
        StatusCode::NOT_FOUND => auth::no_session().into_response(),
        // rmcp reports an unreadable body as a wrong media type.
        StatusCode::UNSUPPORTED_MEDIA_TYPE if !sentence.starts_with("Unsupported") => {
            bad_message(request)
        }
        StatusCode::INTERNAL_SERVER_ERROR if sentence.contains(session::FULL) => {
            let message = "the session limit is reached, and every session has a call in flight; \
                end one, or try again later";
            AuthRefusal::new(Reason::GateSessionLimit, message)
                .after(sessions.wait(caller))
                .into_response()
        }
        StatusCode::INTERNAL_SERVER_ERROR => {
            // Its message describes internals of the server.
            let message = "the server could not answer";
            refusal(parts.status, TRANSPORT, message, &Value::Null)
        }
        status => {
            let sentence = sentence
                .split_once(": ")
                .map_or(&*sentence, |(_, said)| said);
            refusal(status, TRANSPORT, sentence, &Value::Null)
        }
    };
    for name in [header::ALLOW, header::WWW_AUTHENTICATE] {
        if let Some(value) = parts.headers.get(&name) {
            answer.headers_mut().insert(name, value.clone());
        }
    }
    answer
}

fn bad_message(request: &Bytes) -> Response {
    let bad = BadMessage::of(request);
    refusal(StatusCode::BAD_REQUEST, bad.code, bad.sentence, &bad.id)
}

/// An error of JSON-RPC with a status of HTTP.
pub(super) fn refusal(status: StatusCode, code: i64, message: &str, id: &Value) -> Response {
    (status, axum::Json(jsonrpc::error(code, message, id))).into_response()
}
