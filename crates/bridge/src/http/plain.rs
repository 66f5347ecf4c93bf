//! Plain calls: a `tools/call` of the newest revision whose caller wants no progress.
//!
//! rmcp passes a request and its answer through four loops, and each of them wakes a task.
//! A plain call is one request and its reply, over the same guarded client, in the task of
//! its caller. Nothing is left out: the revision has no session, a question comes as the
//! result of a call, and a call that is dropped is cancelled by the end of its reply. What
//! rmcp alone knows how to send is not plain and goes through it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt as _;
use hyper::header::{HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequestMethod, CallToolResponse, CallToolResult, ConstString as _, ErrorData,
    InputRequiredResult, InputResponses, JsonRpcVersion2_0, ProtocolVersion, RequestId,
    RequestMetaObject,
};
use rmcp::service::{Peer, RoleClient};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use super::{
    Asked, ClientMethod, ContentKind, HTTP_EVENT_BYTES_MAX, HttpSettings, HttpSettingsFault,
    McpHttpClient, StreamableHttpError, TransportFault, client, content_kind, events, fault_of,
};
use crate::client::{Client, UnderWay};
use crate::fault::{ServerFault, shown};
use crate::tool_call::{CallKind, ToolCall};

/// In a schema, it names a header that repeats an argument.
const HEADER_KEYWORD: &str = "x-mcp-header";
/// How a header begins whose value is encoded.
const ENCODED: &str = "=?";

/// Makes plain calls of one server.
#[derive(Clone, Debug)]
pub(crate) struct PlainCalls {
    client: McpHttpClient,
    url: Arc<str>,
    /// What every request says about us.
    meta: RequestMetaObject,
    next: Arc<AtomicU64>,
}

/// What one request asks for.
#[derive(Debug, Serialize)]
struct Question<'a> {
    jsonrpc: JsonRpcVersion2_0,
    id: &'a RequestId,
    method: CallToolRequestMethod,
    params: Params<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    name: &'a str,
    arguments: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_responses: Option<&'a InputResponses>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a str>,
    #[serde(rename = "_meta")]
    meta: &'a RequestMetaObject,
}

/// A message of a reply.
#[derive(Debug, Deserialize)]
struct Message {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    id: Option<RequestId>,
    /// Requests and notices have one, answers have none.
    method: Option<String>,
    result: Option<Value>,
    error: Option<ErrorData>,
}

impl PlainCalls {
    /// For a connection of the newest revision; nothing for an older one, which needs rmcp.
    pub(crate) fn new(
        settings: HttpSettings,
        peer: &Peer<RoleClient>,
        us: &Client,
    ) -> Result<Option<PlainCalls>, HttpSettingsFault> {
        let revision = peer.peer_info().map(|info| info.protocol_version.clone());
        let newest = ProtocolVersion::V_2026_07_28;
        if revision.as_ref() != Some(&newest) {
            return Ok(None);
        }
        let mut meta = RequestMetaObject::new();
        let about_us = us.about_us();
        meta.set_protocol_version(newest);
        meta.set_client_info(about_us.client_info);
        meta.set_client_capabilities(about_us.capabilities);
        let url = settings.url.as_str().into();
        Ok(Some(PlainCalls {
            client: client(settings)?,
            url,
            meta,
            next: Arc::default(),
        }))
    }

    /// Whether a call is plain.
    pub(crate) fn take(call: &ToolCall) -> bool {
        let name = call.tool.as_str();
        // Other names are encoded in the header that repeats them.
        let is_header = name.bytes().all(|byte| byte.is_ascii_graphic());
        call.kind == CallKind::Tool
            && call.progress.is_none()
            && is_header
            && !name.is_empty()
            && !name.starts_with(ENCODED)
    }

    /// One request and its answer. Dropped, the request ends, which cancels it.
    pub(crate) async fn exchange(
        &self,
        us: &Client,
        call: &ToolCall,
        (responses, state): (Option<&InputResponses>, Option<&str>),
        deadline: Instant,
    ) -> Result<(RequestId, CallToolResponse), ServerFault> {
        // rmcp numbers its requests on this connection, so these are no numbers.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = RequestId::String(format!("call-{number}").into());
        let traced = call.trace.as_ref().map(|trace| {
            let mut meta = self.meta.clone();
            meta.set_traceparent(trace.clone());
            meta
        });
        let question = Question {
            jsonrpc: JsonRpcVersion2_0,
            id: &id,
            method: CallToolRequestMethod,
            params: Params {
                name: &call.tool,
                arguments: &call.arguments,
                input_responses: responses,
                request_state: state,
                meta: traced.as_ref().unwrap_or(&self.meta),
            },
        };
        let body = serde_json::to_vec(&question)
            .map_err(|error| ServerFault::Protocol(shown(&error.to_string())))?;
        let under_way = UnderWay::add(us.calls(), &id, None);
        let answered = timeout_at(deadline, self.send(&id, &call.tool, body)).await;
        drop(under_way);
        match answered {
            Ok(answered) => Ok((id, answered?)),
            Err(_) => Err(ServerFault::Timeout(call.timeout)),
        }
    }

    async fn send(
        &self,
        id: &RequestId,
        tool: &str,
        body: Vec<u8>,
    ) -> Result<CallToolResponse, ServerFault> {
        let asked = Asked {
            method: ClientMethod::Post,
            url: &self.url,
            session: None,
            last_event: None,
            own: headers(tool)?,
            body: body.into(),
        };
        let reply = self.client.exchange(asked).await.map_err(transport_fault)?;
        if !reply.status.is_success() {
            let failed = self.client.read_error(reply).await;
            let (failure, error) = failed.map_err(transport_fault)?;
            return Err(match error {
                Some(error) => ServerFault::refused(&error.error),
                None => transport_fault(failure.into()),
            });
        }
        match content_kind(&reply.headers) {
            ContentKind::Json => {
                let body = self.client.read(reply.body).await;
                let message = read(&body.map_err(transport_fault)?)?;
                answer(id, message)?.ok_or_else(no_answer)
            }
            ContentKind::Events => {
                let mut events = events(reply.body, HTTP_EVENT_BYTES_MAX);
                while let Some(event) = events.next().await {
                    let event = event.map_err(|error| transport_fault(error.into()))?;
                    // Pings of a server that works have no data.
                    let Some(data) = event.data.filter(|data| !data.is_empty()) else {
                        continue;
                    };
                    if let Some(answer) = answer(id, read(data.as_bytes())?)? {
                        return Ok(answer);
                    }
                }
                // As with rmcp: it may have run, so it is not said that it did not.
                Err(ServerFault::Closed("its reply had no answer".to_owned()))
            }
            ContentKind::Other(kind) => {
                let fault = StreamableHttpError::UnexpectedContentType(kind);
                Err(transport_fault(fault))
            }
        }
    }
}

/// The names of tools whose schemas name headers: their calls are not plain.
pub(crate) fn tools_with_headers(tools: &[Value]) -> Vec<String> {
    let names_headers = |tool: &&Value| tool.get("inputSchema").is_some_and(has_header_keyword);
    let names = tools.iter().filter(names_headers);
    let names = names.filter_map(|tool| tool.get("name")?.as_str().map(str::to_owned));
    names.collect()
}

fn has_header_keyword(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(has_header_keyword),
        Value::Object(members) => {
            members.contains_key(HEADER_KEYWORD) || members.values().any(has_header_keyword)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn headers(tool: &str) -> Result<HashMap<HeaderName, HeaderValue>, ServerFault> {
    let tool = HeaderValue::from_str(tool)
        .map_err(|_| ServerFault::Protocol("the name of the tool is no header".to_owned()))?;
    let revision = ProtocolVersion::V_2026_07_28;
    let revision = HeaderValue::from_str(revision.as_str())
        .map_err(|_| ServerFault::Protocol("the revision is no header".to_owned()))?;
    let method = HeaderValue::from_static(CallToolRequestMethod::VALUE);
    Ok(HashMap::from([
        (HeaderName::from_static("mcp-protocol-version"), revision),
        (HeaderName::from_static("mcp-method"), method),
        (HeaderName::from_static("mcp-name"), tool),
    ]))
}

fn read(bytes: &[u8]) -> Result<Message, ServerFault> {
    // A derived reader takes an array for a structure, and rmcp does not.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(ServerFault::Protocol("the answer is no message".to_owned()));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let error = shown(&error.to_string());
        ServerFault::Protocol(format!("the answer cannot be read: {error}"))
    })
}

/// The answer to our request; nothing for a message that is none, such as a notice.
fn answer(id: &RequestId, message: Message) -> Result<Option<CallToolResponse>, ServerFault> {
    if message.method.is_some() {
        return Ok(None);
    }
    // An error may come without an id, where the server could not read it.
    let is_ours = message
        .id
        .as_ref()
        .map_or(message.error.is_some(), |of| of == id);
    match (message.result, message.error) {
        _ if !is_ours => Err(ServerFault::Protocol(
            "the answer is to another request".to_owned(),
        )),
        (None, Some(error)) => Err(ServerFault::refused(&error)),
        (Some(result), None) => result_of(result).map(Some),
        (None, None) | (Some(_), Some(_)) => Err(no_answer()),
    }
}

fn result_of(result: Value) -> Result<CallToolResponse, ServerFault> {
    let kind = result.get("resultType").and_then(Value::as_str);
    let read = match kind {
        Some("input_required") => {
            serde_json::from_value::<InputRequiredResult>(result).map(CallToolResponse::from)
        }
        _ => serde_json::from_value::<CallToolResult>(result).map(CallToolResponse::from),
    };
    read.map_err(|error| {
        let error = shown(&error.to_string());
        ServerFault::Protocol(format!("the result cannot be read: {error}"))
    })
}

fn no_answer() -> ServerFault {
    ServerFault::Protocol("the answer is no result".to_owned())
}

fn transport_fault(fault: TransportFault) -> ServerFault {
    fault_of(&fault)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id() -> RequestId {
        RequestId::String("call-1".into())
    }

    fn answered(message: Value) -> Result<Option<CallToolResponse>, ServerFault> {
        answer(&id(), read(message.to_string().as_bytes())?)
    }

    #[test]
    fn an_answer_is_to_this_request() {
        let result = json!({"content": [{"type": "text", "text": "a"}], "resultType": "complete"});
        let whole = json!({"jsonrpc": "2.0", "id": "call-1", "result": result});
        assert!(matches!(
            answered(whole.clone()),
            Ok(Some(CallToolResponse::Complete(_)))
        ));
        for (key, value) in [
            ("id", json!("call-2")),
            ("id", json!(1)),
            ("id", Value::Null),
            ("jsonrpc", json!("1.0")),
            ("result", json!({"resultType": "task"})),
            ("result", json!([])),
            ("error", json!({"code": 1, "message": "x"})),
        ] {
            let mut changed = whole.clone();
            changed[key] = value;
            let answer = answered(changed.clone());
            assert!(matches!(answer, Err(ServerFault::Protocol(_))), "{changed}");
        }
    }

    #[test]
    fn an_error_may_have_no_id() {
        let error = json!({"code": -32602, "message": "no"});
        for id in [json!("call-1"), Value::Null] {
            let message = json!({"jsonrpc": "2.0", "id": id, "error": error});
            let fault = answered(message).expect_err("an error");
            assert!(matches!(fault, ServerFault::Refused { code: -32602, .. }));
        }
        let other = json!({"jsonrpc": "2.0", "id": 7, "error": error});
        assert!(matches!(answered(other), Err(ServerFault::Protocol(_))));
    }

    #[test]
    fn a_notice_is_no_answer() {
        let notice = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
        assert!(matches!(answered(notice), Ok(None)));
        let asks = json!({"jsonrpc": "2.0", "id": "call-1", "method": "elicitation/create"});
        assert!(matches!(answered(asks), Ok(None)));
    }

    #[test]
    fn a_question_is_a_result() {
        let result = json!({"resultType": "input_required", "requestState": "s"});
        let message = json!({"jsonrpc": "2.0", "id": "call-1", "result": result});
        assert!(matches!(
            answered(message),
            Ok(Some(CallToolResponse::InputRequired(_)))
        ));
    }

    #[test]
    fn a_schema_that_names_a_header_is_found_at_any_depth() {
        let deep = json!({"type": "object", "properties": {"a": {"anyOf": [
            {"type": "string", "x-mcp-header": "A"},
        ]}}});
        let plain = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let tools = [
            json!({"name": "deep", "inputSchema": deep}),
            json!({"name": "plain", "inputSchema": plain}),
            json!({"name": "none"}),
        ];
        assert_eq!(tools_with_headers(&tools), ["deep"]);
    }
}
