//! MCP servers at an address: rmcp's HTTP transport on the guarded client of `host`.
//!
//! Every request goes through that client, so every address is checked. The token is
//! one of the owner's signing in, never a caller's. A server that has forgotten its
//! session is reported, not greeted again in silence: its list has to be fetched and
//! compared first.

mod event;
mod pace;
/// Calls without rmcp's loops.
pub(crate) mod plain;

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, unfold};
use host::client::{ClientMethod, ClientReply, ClientRequest, HttpClient, ReplyBody};
use host::fetch::HttpFault;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use model::text::{self, surrogate};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest as McpRequest, ErrorData, JsonRpcError, JsonRpcMessage,
    ServerJsonRpcMessage,
};
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use rmcp::transport::worker::WorkerQuitReason;
use sse_stream::{Sse, SseStream};

use crate::fault::{ServerFault, shown};
use crate::oauth::{AccessToken, OAuthFault, TokenSource, challenge};
use event::EventLimit;
use pace::Pace;

/// Requests of one server that wait for their replies at one time.
pub const HTTP_REQUESTS_MAX: usize = 64;
/// One event of a stream, in bytes.
pub const HTTP_EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A reply that is not a stream, in bytes.
pub const HTTP_REPLY_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Failed attempts in a row to open the stream of notices again.
const STREAM_ATTEMPTS_MAX: usize = 10;
/// Time between two of them, at most.
const STREAM_DELAY_MAX: Duration = Duration::from_secs(30);
/// What is kept of a challenge, in characters.
const CHALLENGE_CHARS_MAX: usize = 2_000;

/// Causes of one error that are looked at.
const CAUSES_MAX: usize = 16;

/// Headers that the transport sets itself.
const RESERVED: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The transport of a server at an address.
pub type HttpTransport = StreamableHttpClientTransport<McpHttpClient>;

/// Everything needed to reach a server at an address, secrets filled in.
#[derive(Clone)]
pub struct HttpSettings {
    /// Where it is.
    pub url: String,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// The guarded client. It knows whether the host may be private.
    pub client: HttpClient,
    /// Where tokens come from; nothing: none are sent.
    pub tokens: Option<TokenSource>,
    /// How long a reply may take to begin, and one that is no stream to end.
    pub reply: Duration,
}

// Headers are secrets.
impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSettings").finish_non_exhaustive()
    }
}

/// Why a server at an address cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpSettingsFault {
    /// A token or a secret would travel in the clear.
    #[error(
        "the URL is not https; use https, or set `private = true` if the server is on your own network"
    )]
    Cleartext,
    /// The name of a header is none.
    #[error("`{0}` is no name of a header")]
    HeaderName(String),
    /// A header is set by the protocol.
    #[error("the header `{0}` is set by the protocol; remove it")]
    HeaderReserved(String),
    /// The value of a header holds a line break or a control character.
    #[error("the value of header `{0}` holds a line break or a control character")]
    HeaderValue(String),
}

/// Makes the transport of a server. It connects when it is first used.
///
/// # Errors
/// The URL is not https and not private, or a header cannot be sent.
pub fn transport(settings: HttpSettings) -> Result<HttpTransport, HttpSettingsFault> {
    let mut backoff = ExponentialBackoff::default();
    backoff.max_times = Some(STREAM_ATTEMPTS_MAX);
    backoff.max_delay = Some(STREAM_DELAY_MAX);
    let mut config = StreamableHttpClientTransportConfig::with_uri(settings.url.clone())
        .max_concurrent_requests(HTTP_REQUESTS_MAX)
        .max_sse_event_size(HTTP_EVENT_BYTES_MAX)
        // The list of a new session is compared before any of it is used.
        .reinit_on_expired_session(false);
    config.retry_config = Arc::new(backoff);
    let client = client(settings)?;
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Makes the client of a server, once its URL and its headers were checked.
fn client(settings: HttpSettings) -> Result<McpHttpClient, HttpSettingsFault> {
    let is_https = settings
        .url
        .trim_start()
        .to_ascii_lowercase()
        .starts_with("https://");
    // Attack: a token or a header with a secret in the clear, to be read on the way.
    if !is_https && !settings.client.is_private_host(&settings.url) {
        return Err(HttpSettingsFault::Cleartext);
    }
    let mut headers = HeaderMap::new();
    for (raw_name, raw_value) in &settings.headers {
        let name = HeaderName::from_bytes(raw_name.as_bytes())
            .map_err(|_| HttpSettingsFault::HeaderName(raw_name.clone()))?;
        let is_reserved = RESERVED.contains(&name.as_str())
            || name.as_str().starts_with("mcp-param-")
            || name.as_str().starts_with("proxy-")
            // Two sources for one header: which of them counts must not
            // depend on the order.
            || (name == header::AUTHORIZATION && settings.tokens.is_some());
        if is_reserved {
            return Err(HttpSettingsFault::HeaderReserved(raw_name.clone()));
        }
        let mut value = HeaderValue::from_str(raw_value)
            .map_err(|_| HttpSettingsFault::HeaderValue(raw_name.clone()))?;
        // Debug output of the HTTP library does not show values that are marked so.
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(McpHttpClient {
        client: settings.client,
        headers,
        tokens: settings.tokens,
        reply: settings.reply,
        pace: Arc::new(Pace::new()),
    })
}

/// Why a request over HTTP got no answer.
pub(crate) fn fault_of(error: &(dyn Error + 'static)) -> ServerFault {
    match end_of(error) {
        HttpEnd::SignInRequired => ServerFault::SignInRequired,
        HttpEnd::SessionExpired => ServerFault::Forgotten,
        HttpEnd::Unreachable => ServerFault::Unreachable(shown(&explain(error))),
        HttpEnd::Other => ServerFault::Closed(shown(&explain(error))),
    }
}

/// What an error of the transport means for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpEnd {
    /// A person has to sign in, or to grant more.
    SignInRequired,
    /// The server has forgotten the session: connect again, list and compare.
    SessionExpired,
    /// No connection came about, so nothing was sent.
    Unreachable,
    /// Anything else.
    Other,
}

/// Reads an error of the transport, however deep it lies.
#[must_use]
pub fn end_of(error: &(dyn Error + 'static)) -> HttpEnd {
    for error in causes(error) {
        if error.is::<AuthRequiredError>() || error.is::<InsufficientScopeError>() {
            return HttpEnd::SignInRequired;
        }
        if let Some(StreamableHttpError::SessionExpired) = error.downcast_ref::<TransportFault>() {
            return HttpEnd::SessionExpired;
        }
        if let Some(McpHttpFault::Request(fault)) = error.downcast_ref()
            && fault.is_unsent
        {
            return HttpEnd::Unreachable;
        }
    }
    HttpEnd::Other
}

/// An error of a transport in the words that say most: those of the guarded client, or
/// the first of its causes.
pub(crate) fn explain(error: &(dyn Error + 'static)) -> String {
    let mut words = String::new();
    for error in causes(error) {
        words = error.to_string();
        if error.is::<McpHttpFault>() {
            break;
        }
    }
    words
}

/// An error and what lies under it. rmcp does not name every cause as one.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |error| cause(*error)).take(CAUSES_MAX)
}

fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    if let Some(error) = error.downcast_ref::<ClientInitializeError>() {
        return match error {
            ClientInitializeError::TransportError { error, .. } => Some(error),
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => Some(&**fallback),
            other => other.source(),
        };
    }
    if let Some(ServiceError::TransportSend(error)) = error.downcast_ref() {
        return Some(error);
    }
    if let Some(WorkerQuitReason::<TransportFault>::Fatal { error, .. }) = error.downcast_ref() {
        return Some(error);
    }
    if let Some(TransportFault::Client(fault)) = error.downcast_ref() {
        return Some(fault);
    }
    error.source()
}

/// Why a request to a server failed.
#[derive(Debug, thiserror::Error)]
pub enum McpHttpFault {
    /// The request.
    #[error(transparent)]
    Request(#[from] HttpFault),
    /// The token for it.
    #[error(transparent)]
    Token(#[from] OAuthFault),
}

type TransportFault = StreamableHttpError<McpHttpFault>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

fn client_fault(fault: impl Into<McpHttpFault>) -> TransportFault {
    StreamableHttpError::Client(fault.into())
}

/// The client of one server.
#[derive(Clone)]
pub struct McpHttpClient {
    client: HttpClient,
    headers: HeaderMap,
    tokens: Option<TokenSource>,
    reply: Duration,
    pace: Arc<Pace>,
}

// Headers are secrets.
impl fmt::Debug for McpHttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpHttpClient").finish_non_exhaustive()
    }
}

/// One request of the transport, without what every request has.
struct Asked<'a> {
    method: ClientMethod,
    url: &'a str,
    session: Option<&'a str>,
    last_event: Option<&'a str>,
    own: HashMap<HeaderName, HeaderValue>,
    body: Bytes,
}

impl McpHttpClient {
    /// Sends a request with a token, if there is one. A token that is refused is
    /// renewed once: a server that answers 401 has done nothing.
    async fn exchange(&self, asked: Asked<'_>) -> Result<ClientReply, TransportFault> {
        let headers = self.request_headers(&asked)?;
        let mut refused: Option<AccessToken> = None;
        loop {
            let token = match &self.tokens {
                None => None,
                Some(tokens) => match tokens.token(refused.as_ref()).await {
                    Ok(token) => token,
                    Err(fault) if fault.is_sign_in_required() => return Err(sign_in("")),
                    Err(fault) => return Err(client_fault(fault)),
                },
            };
            let mut request = ClientRequest::new(asked.method, asked.url);
            request.headers.clone_from(&headers);
            request.body = asked.body.clone();
            request.first_byte = Some(self.reply);
            if let Some(token) = &token {
                request
                    .headers
                    .insert(header::AUTHORIZATION, token.header());
            }
            let reply = self.client.send(request).await.map_err(client_fault)?;
            match (reply.status, token) {
                // Once: a server that refuses a fresh token will refuse the next one too.
                (StatusCode::UNAUTHORIZED, Some(token)) if refused.is_none() => {
                    refused = Some(token);
                }
                (StatusCode::UNAUTHORIZED, _) => return Err(sign_in(&shown_challenge(&reply))),
                // A 403 without a challenge is an ordinary refusal, and no sign-in helps.
                (StatusCode::FORBIDDEN, _)
                    if reply.headers.contains_key(header::WWW_AUTHENTICATE) =>
                {
                    let text = shown_challenge(&reply);
                    let scope = challenge::parse(&text).scope;
                    let error = InsufficientScopeError::new(text, scope);
                    return Err(StreamableHttpError::InsufficientScope(error));
                }
                _ => return Ok(reply),
            }
        }
    }

    fn request_headers(&self, asked: &Asked<'_>) -> Result<HeaderMap, TransportFault> {
        let mut headers = self.headers.clone();
        // Headers of the protocol go over those of the settings, never the other way round.
        for (name, value) in &asked.own {
            headers.insert(name, value.clone());
        }
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(header::ACCEPT, accept);
        if asked.method == ClientMethod::Post {
            let json = HeaderValue::from_static("application/json");
            headers.insert(header::CONTENT_TYPE, json);
        }
        for (name, text) in [
            ("mcp-session-id", asked.session),
            ("last-event-id", asked.last_event),
        ] {
            let Some(text) = text else { continue };
            let wrong = || format!("the server gave a value of `{name}` that no header can hold");
            // A session id is the server's own text. One with a line break would be a
            // header of its choice.
            let value = HeaderValue::from_str(text)
                .map_err(|_| StreamableHttpError::UnexpectedServerResponse(wrong().into()))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(headers)
    }

    /// The body of a reply that is a message.
    async fn read(&self, body: ReplyBody) -> Result<Vec<u8>, TransportFault> {
        let reading = body.read(HTTP_REPLY_BYTES_MAX, self.reply);
        let mut body = reading.await.map_err(client_fault)?;
        surrogate::mend(&mut body);
        Ok(body)
    }

    /// Reads a reply that is not a success: its status, and the error of the protocol in it.
    async fn read_error(
        &self,
        reply: ClientReply,
    ) -> Result<(HttpStatusError, Option<JsonRpcError>), TransportFault> {
        let (status, kind) = (reply.status, content_kind(&reply.headers));
        let failure = HttpStatusError::new(status.as_u16(), retry_after(&reply.headers));
        // A body of 429 is not read: what counts is how long to wait. With 403 the status
        // counts, whatever is said beside it.
        let is_read = kind == ContentKind::Json
            && !matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::FORBIDDEN
            );
        let body = match is_read {
            true => self.read(reply.body).await?,
            false => Vec::new(),
        };
        let error = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(JsonRpcMessage::Error(error)) => Some(error),
            Ok(_) | Err(_) => None,
        };
        Ok((failure, error))
    }

    /// The answer to a message that was not a success.
    async fn read_failure(
        &self,
        reply: ClientReply,
        message: &ClientJsonRpcMessage,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, TransportFault> {
        let status = reply.status;
        let (failure, error) = self.read_error(reply).await?;
        // A server of the older protocol refuses to be discovered in its own words,
        // under an id of its own or none; the handshake looks for ours.
        if let ClientJsonRpcMessage::Request(request) = message
            && matches!(request.request, McpRequest::DiscoverRequest(_))
            && status.is_client_error()
            && status != StatusCode::FORBIDDEN
            && !has_session
        {
            let refused = || ErrorData::invalid_request(format!("HTTP {status}"), None);
            let error = error.map_or_else(refused, |error| error.error);
            let message = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
        match error {
            Some(error) => {
                let message = JsonRpcMessage::Error(error);
                Ok(StreamableHttpPostResponse::Json(message, None))
            }
            None => Err(failure.into()),
        }
    }
}

impl StreamableHttpClient for McpHttpClient {
    type Error = McpHttpFault;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, TransportFault> {
        self.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            HTTP_EVENT_BYTES_MAX,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        event_bytes_max: usize,
    ) -> Result<StreamableHttpPostResponse, TransportFault> {
        // The token in the arguments of rmcp is not used: ours come from
        // `TokenSource` alone.
        let asked = Asked {
            method: ClientMethod::Post,
            url: &uri,
            session: session_id.as_deref(),
            last_event: None,
            own: custom_headers,
            body: serde_json::to_vec(&message)?.into(),
        };
        let reply = self.exchange(asked).await?;
        let wants_reply = matches!(message, ClientJsonRpcMessage::Request(_));
        let status = reply.status;
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        // Only with a session. Without one a 404 means that the address is wrong.
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            let has_session = session_id.is_some();
            return self.read_failure(reply, &message, has_session).await;
        }
        if !wants_reply && reply.body.is_empty() {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = text_header(&reply.headers, "mcp-session-id");
        match content_kind(&reply.headers) {
            ContentKind::Events => {
                let events = events(reply.body, event_bytes_max);
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            ContentKind::Json => {
                let body = self.read(reply.body).await?;
                match serde_json::from_slice(&body) {
                    Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
                    // An answer to a notification means nothing, so an odd one is no fault.
                    Err(_) if !wants_reply => Ok(StreamableHttpPostResponse::Accepted),
                    Err(error) => Err(error.into()),
                }
            }
            ContentKind::Other(kind) => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), TransportFault> {
        let asked = Asked {
            method: ClientMethod::Delete,
            url: &uri,
            session: Some(&session_id),
            last_event: None,
            own: custom_headers,
            body: Bytes::new(),
        };
        let reply = self.exchange(asked).await?;
        match reply.status {
            status if status.is_success() => Ok(()),
            // It keeps no sessions, or not this one.
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND => Ok(()),
            status => Err(HttpStatusError::new(status.as_u16(), None).into()),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, TransportFault> {
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            HTTP_EVENT_BYTES_MAX,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        event_bytes_max: usize,
    ) -> Result<Events, TransportFault> {
        self.pace.wait().await;
        let asked = Asked {
            method: ClientMethod::Get,
            url: &uri,
            session: session_id.as_deref(),
            last_event: last_event_id.as_deref(),
            own: custom_headers,
            body: Bytes::new(),
        };
        let reply = self.exchange(asked).await?;
        match reply.status {
            StatusCode::METHOD_NOT_ALLOWED => {
                return Err(StreamableHttpError::ServerDoesNotSupportSse);
            }
            StatusCode::NOT_FOUND if session_id.is_some() => {
                return Err(StreamableHttpError::SessionExpired);
            }
            status if !status.is_success() => {
                let after = retry_after(&reply.headers);
                return Err(HttpStatusError::new(status.as_u16(), after).into());
            }
            _ => {}
        }
        match content_kind(&reply.headers) {
            ContentKind::Events => Ok(events(reply.body, event_bytes_max)),
            ContentKind::Json => Err(StreamableHttpError::ServerDoesNotSupportSse),
            ContentKind::Other(kind) => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }
}

fn sign_in(challenge: &str) -> TransportFault {
    StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge.to_owned()))
}

fn shown_challenge(reply: &ClientReply) -> String {
    let text = text_header(&reply.headers, "www-authenticate").unwrap_or_default();
    text::elided(&text::one_line(&text), CHALLENGE_CHARS_MAX)
}

fn text_header(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

fn retry_after(headers: &HeaderMap) -> Option<String> {
    text_header(headers, "retry-after")
}

/// What a reply says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ContentKind {
    Json,
    Events,
    Other(Option<String>),
}

fn content_kind(headers: &HeaderMap) -> ContentKind {
    let Some(kind) = text_header(headers, "content-type") else {
        return ContentKind::Other(None);
    };
    let essence = kind.split(';').next().unwrap_or_default().trim();
    match essence.to_ascii_lowercase().as_str() {
        "application/json" => ContentKind::Json,
        "text/event-stream" => ContentKind::Events,
        other => ContentKind::Other(Some(text::elided(&text::one_line(other), 100))),
    }
}

/// The events of a body, each within its bound.
fn events(body: ReplyBody, bytes_max: usize) -> Events {
    type Piece = Result<Bytes, Box<dyn Error + Send + Sync>>;
    let start = Some((body, EventLimit::new(bytes_max)));
    let pieces = unfold(start, |state| async move {
        let (mut body, mut limit) = state?;
        let piece: Piece = match body.next().await? {
            Err(fault) => Err(fault.into()),
            Ok(piece) => match limit.observe(&piece) {
                Ok(()) => Ok(piece),
                Err(large) => Err(large.into()),
            },
        };
        match piece {
            Ok(piece) => Some((Ok(piece), Some((body, limit)))),
            // Nothing follows a fault: the reader would take the rest for the same event.
            Err(error) => Some((Err(StreamFault(error)), None)),
        }
    });
    let events = SseStream::from_bytes_stream(pieces);
    let mended = events.map(|event| {
        event.map(|event| Sse {
            data: event.data.map(surrogate::mended_text),
            ..event
        })
    });
    mended.boxed()
}

/// A stream that ended before its time.
#[derive(Debug, thiserror::Error)]
#[error("the stream ended early")]
struct StreamFault(#[source] Box<dyn Error + Send + Sync>);
