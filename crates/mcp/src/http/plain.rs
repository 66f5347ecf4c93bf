//! Plain calls: a `tools/call` of the newest revision that gets its answer and nothing
//! before it, as most calls are.
//!
//! rmcp starts five tasks for every request, which cost more than the call itself. A plain
//! call is read, made and answered in the task of its connection, by the same method as every
//! other call. What is unusual in any way is not plain and goes to rmcp: a header that does not
//! agree with the body, a member that is not expected, a wish for progress. So nothing is
//! refused here, and what rmcp refuses is never accepted.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, ConstString as _,
    JsonRpcVersion2_0, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::era::VERSION_HEADER;
use crate::http::body;
use crate::http::bounds::HttpBounds;
use crate::jsonrpc::TRANSPORT;
use crate::protocol::door::Door;
use crate::protocol::server::McpServer;
use crate::protocol::view::{PlainRequest, RequestView};

/// The header that repeats the method.
const METHOD_HEADER: &str = "mcp-method";
/// The header that repeats the name of the tool.
const NAME_HEADER: &str = "mcp-name";
/// The kind of messages.
const JSON: &str = "application/json";
/// How a header begins whose value is encoded. rmcp decodes it.
const ENCODED: &str = "=?";
/// The hosts of this machine, as clients write them without a port.
const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Recognises plain calls and makes them.
#[derive(Clone, Debug)]
pub(super) struct PlainCalls {
    server: McpServer,
    /// Whether the transport itself answers loopback alone. rmcp then checks the origins.
    loopback_only: bool,
}

/// A plain call, read.
#[derive(Debug)]
pub(super) struct PlainCall {
    server: McpServer,
    id: RequestId,
    params: CallToolRequestParams,
}

/// The body of a plain call. A member more, twice or of another type makes it none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    #[serde(rename = "method")]
    _method: CallToolRequestMethod,
    id: RequestId,
    params: CallToolRequestParams,
}

impl PlainCalls {
    pub(super) fn new(door: Door, bounds: &HttpBounds) -> PlainCalls {
        PlainCalls {
            server: McpServer::authenticated(door),
            loopback_only: bounds.loopback_only,
        }
    }

    /// The call in a request, if it is plain.
    pub(super) fn read(&self, parts: &Parts, bytes: &Bytes) -> Option<PlainCall> {
        if self.loopback_only && !is_of_this_machine(&parts.headers) {
            return None;
        }
        let Message { id, params, .. } = Message::read(parts, bytes)?;
        // Its arguments must agree with headers, too, which rmcp compares.
        if self.server.may_name_headers(&params.name) {
            return None;
        }
        Some(PlainCall {
            server: self.server.clone(),
            id,
            params,
        })
    }
}

impl Message {
    fn read(parts: &Parts, bytes: &[u8]) -> Option<Message> {
        let headers = &parts.headers;
        let revision = ProtocolVersion::V_2026_07_28;
        // Before the body is parsed: what is not plain is parsed a second time by rmcp.
        let looks_plain = parts.method == Method::POST
            && is(headers, METHOD_HEADER, CallToolRequestMethod::VALUE)
            && is(headers, VERSION_HEADER, revision.as_str())
            && takes_both_kinds(headers)
            // A derived reader takes an array for a structure, and rmcp does not.
            && bytes.trim_ascii_start().starts_with(b"{")
            && only(headers, header::CONTENT_TYPE.as_str())
                .is_some_and(|kind| kind.starts_with(JSON));
        if !looks_plain {
            return None;
        }
        let message: Message = serde_json::from_slice(bytes).ok()?;
        let Message { params, .. } = &message;
        let meta = params.meta.as_ref()?;
        let is_plain = meta.protocol_version() == Some(revision)
            && meta.client_capabilities().is_some()
            && meta.get_progress_token().is_none()
            // A name that looks encoded would be decoded before it is compared.
            && !params.name.starts_with(ENCODED)
            && is(headers, NAME_HEADER, &params.name);
        is_plain.then_some(message)
    }
}

impl PlainCall {
    /// Makes the call. `parts` are the head it came with.
    pub(super) async fn answer(mut self, parts: Parts) -> Response {
        let cancel = CancellationToken::new();
        let request = PlainRequest {
            parts,
            meta: self.params.meta.take().unwrap_or_default(),
            cancel: cancel.clone(),
        };
        let PlainCall { server, id, params } = self;
        let running = async move { server.call(params, RequestView::Plain(&request)).await };
        let ended = AttendedCall {
            running: Some(Box::pin(running)),
            cancel,
        };
        let message = match ended.await {
            Ok(response) => ServerJsonRpcMessage::response(ServerResult::from(response), id),
            Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
        };
        match serde_json::to_vec(&message) {
            Ok(body) => {
                let kind = [(header::CONTENT_TYPE, JSON)];
                (kind, body).into_response()
            }
            Err(_) => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                let sentence = "the server could not answer";
                body::refusal(status, TRANSPORT, sentence, &Value::Null)
            }
        }
    }
}

/// The value of a header that occurs once, and is text.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    match values.next() {
        None => first.to_str().ok(),
        Some(_) => None,
    }
}

fn is(headers: &HeaderMap, name: &str, value: &str) -> bool {
    only(headers, name) == Some(value)
}

fn takes_both_kinds(headers: &HeaderMap) -> bool {
    let accept = only(headers, header::ACCEPT.as_str()).unwrap_or_default();
    accept.contains(JSON) && accept.contains("text/event-stream")
}

/// Whether a request names this machine as its host, and no page as its origin.
fn is_of_this_machine(headers: &HeaderMap) -> bool {
    let host = only(headers, header::HOST.as_str()).unwrap_or_default();
    let is_port = |rest: &str| {
        let port = rest.strip_prefix(':');
        port.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let names_loopback = LOOPBACK_HOSTS.iter().any(|name| {
        let rest = host.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || is_port(rest))
    });
    names_loopback && !headers.contains_key(header::ORIGIN)
}

type RunningCall =
    Pin<Box<dyn Future<Output = Result<CallToolResponse, ErrorData>> + Send + 'static>>;

/// A call in the task of its connection. When the client disconnects, the task drops it; the
/// call is then cancelled, and ends in a task of its own, so that its record is closed.
struct AttendedCall {
    /// Nothing once it has ended.
    running: Option<RunningCall>,
    cancel: CancellationToken,
}

impl Future for AttendedCall {
    type Output = Result<CallToolResponse, ErrorData>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(running) = &mut self.running else {
            return Poll::Pending;
        };
        let polled = running.as_mut().poll(context);
        if polled.is_ready() {
            self.running = None;
        }
        polled
    }
}

impl Drop for AttendedCall {
    fn drop(&mut self) {
        if let (Some(running), Ok(runtime)) = (self.running.take(), Handle::try_current()) {
            self.cancel.cancel();
            runtime.spawn(running);
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue, Request};
    use serde_json::json;

    use super::*;

    const META: &str = "io.modelcontextprotocol/";

    fn message() -> Value {
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
            "name": "echo", "arguments": {"text": "x"}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }})
    }

    fn head() -> Parts {
        let request = Request::post("/mcp")
            .header("host", "127.0.0.1:7464")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header(VERSION_HEADER, "2026-07-28")
            .header(METHOD_HEADER, "tools/call")
            .header(NAME_HEADER, "echo");
        request.body(()).expect("a request").into_parts().0
    }

    fn is_plain(parts: &Parts, message: &Value) -> bool {
        Message::read(parts, message.to_string().as_bytes()).is_some()
    }

    #[test]
    fn a_regular_call_is_plain() {
        assert!(is_plain(&head(), &message()));
        let mut parts = head();
        let kinds = "text/event-stream, application/json;q=0.9";
        parts
            .headers
            .insert(header::ACCEPT, HeaderValue::from_static(kinds));
        let kind = HeaderValue::from_static("application/json; charset=utf-8");
        parts.headers.insert(header::CONTENT_TYPE, kind);
        assert!(is_plain(&parts, &message()));
    }

    /// Attack: each of these is refused by rmcp, so it must get there.
    #[test]
    fn a_header_that_is_not_as_it_should_be_makes_it_none() {
        for (name, value) in [
            ("content-type", "text/plain"),
            ("accept", "application/json"),
            ("accept", "text/event-stream"),
            (VERSION_HEADER, "2025-11-25"),
            (VERSION_HEADER, "2027-01-01"),
            (METHOD_HEADER, "tools/list"),
            (NAME_HEADER, "Echo"),
            (NAME_HEADER, "=?base64?ZWNobw==?="),
        ] {
            let other = HeaderValue::from_static(value);
            let mut replaced = head();
            replaced
                .headers
                .insert(HeaderName::from_static(name), other.clone());
            assert!(!is_plain(&replaced, &message()), "{name}: {value}");
            let mut twice = head();
            twice.headers.append(HeaderName::from_static(name), other);
            assert!(!is_plain(&twice, &message()), "{name}: {value}, too");
            let mut none = head();
            none.headers.remove(name);
            assert!(!is_plain(&none, &message()), "no {name}");
        }
        let mut parts = head();
        parts.method = Method::PUT;
        assert!(!is_plain(&parts, &message()));
    }

    #[test]
    fn a_member_that_is_not_as_it_should_be_makes_it_none() {
        for (pointer, value) in [
            ("", json!([message()])),
            ("/jsonrpc", json!("1.0")),
            ("/id", Value::Null),
            ("/method", json!("tools/list")),
            ("/result", json!({})),
            ("/params", Value::Null),
            ("/params/name", json!("other")),
            ("/params/arguments", json!(["x"])),
            ("/params/_meta", Value::Null),
            ("/params/_meta/progressToken", json!(1)),
            (
                "/params/_meta/io.modelcontextprotocol~1protocolVersion",
                json!("2025-11-25"),
            ),
            (
                "/params/_meta/io.modelcontextprotocol~1clientCapabilities",
                json!(1),
            ),
        ] {
            let mut changed = message();
            let (within, name) = pointer.rsplit_once('/').unwrap_or_default();
            match changed.pointer_mut(within) {
                Some(Value::Object(members)) if !pointer.is_empty() => {
                    members.insert(name.replace("~1", "/"), value.clone());
                }
                _ => changed = value.clone(),
            }
            assert!(!is_plain(&head(), &changed), "{pointer}: {value}");
        }
        let twice = message()
            .to_string()
            .replace("\"id\":7", "\"id\":7,\"id\":8");
        assert!(Message::read(&head(), twice.as_bytes()).is_none());
        let mut without = message();
        for key in ["protocolVersion", "clientCapabilities"] {
            let meta = without["params"]["_meta"]
                .as_object_mut()
                .expect("an object");
            let removed = meta.remove(&format!("{META}{key}")).expect("the key");
            assert!(!is_plain(&head(), &without), "no {key}");
            without["params"]["_meta"][format!("{META}{key}")] = removed;
        }
        // What the changes began with.
        assert!(is_plain(&head(), &without));
    }

    /// A name whose header looks encoded would be decoded and compared by rmcp.
    #[test]
    fn a_name_that_looks_encoded_makes_it_none() {
        let name = "=?base64?ZWNobw==?=";
        let (mut parts, mut message) = (head(), message());
        parts
            .headers
            .insert(NAME_HEADER, HeaderValue::from_static(name));
        message["params"]["name"] = name.into();
        assert!(!is_plain(&parts, &message));
    }

    #[test]
    fn only_loopback_hosts_are_this_machine() {
        for (host, is_loopback) in [
            ("localhost", true),
            ("localhost:80", true),
            ("127.0.0.1:7464", true),
            ("[::1]:7464", true),
            ("", false),
            ("localhost.example", false),
            ("127.0.0.10", false),
            ("localhost9", false),
            ("example:80", false),
            ("localhost:80x", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            assert_eq!(is_of_this_machine(&headers), is_loopback, "{host}");
            headers.insert(header::ORIGIN, HeaderValue::from_static("http://localhost"));
            assert!(!is_of_this_machine(&headers), "{host} from a page");
        }
    }
}
