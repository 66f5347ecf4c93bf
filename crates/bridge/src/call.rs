//! One call of a tool, a prompt or a resource: sent, waited for, cancelled when it is
//! dropped, its result within bounds.

use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam,
    ClientRequest, GetPromptRequest, GetPromptRequestParams, InputRequest, InputRequiredResult,
    InputResponses, ReadResourceRequest, ReadResourceRequestParams, RequestId, RequestMetaObject,
    ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::client::{Calls, Client, UnderWay, elicit_result};
use crate::fault::{ServerFault, shown};
use crate::http;
use crate::http::plain::PlainCalls;
use crate::limit;
use crate::noise::Losses;
use crate::secret_mask::MaskNow;
use crate::tool_call::{CallKind, ToolCall};

/// What a tool gave back, within bounds, without controls and without `_meta`.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The content blocks, as the protocol writes them.
    pub content: Vec<Value>,
    /// The structured result, if there is one.
    pub structured: Option<Value>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
}

/// How the requests of a call get to the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallWay<'a> {
    pub(crate) peer: &'a Peer<RoleClient>,
    pub(crate) us: &'a Client,
    /// Without rmcp, if the call is plain.
    pub(crate) plain: Option<&'a PlainCalls>,
}

/// Makes a call on a connection.
pub(crate) fn run<'a>(
    way: CallWay<'a>,
    call: &'a ToolCall,
) -> BoxFuture<'a, Result<ToolResult, ServerFault>> {
    // Boxed at the crate's edge: rustc compiles a future again in every
    // crate that awaits it.
    Box::pin(exchange(way, call))
}

async fn exchange(way: CallWay<'_>, call: &ToolCall) -> Result<ToolResult, ServerFault> {
    let calls = way.us.calls();
    // Before anything is sent: a result that could not be masked must not
    // be fetched at all.
    calls.mask().now()?;
    let mut deadline = Instant::now() + call.timeout;
    let (mut responses, mut state) = (None, None);
    for round in 0..limit::SERVER_ROUNDS_MAX {
        let again = (responses.take(), state.take());
        let answered = exchange_once(way, call, again, &mut deadline).await;
        let (id, result) = match answered.map_err(|fault| calls.faults().explain(fault)) {
            Ok(answered) => answered,
            Err(fault) if round > 0 => return Err(fault.after_a_round()),
            Err(fault) => return Err(fault),
        };
        let result = match (call.kind, result) {
            (CallKind::Tool, ServerResult::CallToolResult(result)) => relay(result)?,
            (CallKind::Prompt, ServerResult::GetPromptResult(result)) => relay_whole(&result)?,
            (CallKind::Resource, ServerResult::ReadResourceResult(result)) => relay_whole(&result)?,
            (_, ServerResult::InputRequiredResult(asks)) => {
                let began = Instant::now();
                responses = Some(answer(calls, call, &id, &asks).await?);
                state = asks.request_state;
                deadline += began.elapsed();
                continue;
            }
            _ => return Err(ServerFault::Protocol("the answer is no result".to_owned())),
        };
        // With the tokens of this moment, because the request may have renewed one.
        return Ok(mask(result, &calls.mask().now()?));
    }
    Err(ServerFault::TooManyQuestions(limit::SERVER_ROUNDS_MAX))
}

/// One request and its answer, with what the last round asked for.
async fn exchange_once(
    way: CallWay<'_>,
    call: &ToolCall,
    (responses, state): (Option<InputResponses>, Option<String>),
    deadline: &mut Instant,
) -> Result<(RequestId, ServerResult), ServerFault> {
    let CallWay { peer, us, plain } = way;
    if let Some(plain) = plain {
        let again = (responses.as_ref(), state.as_deref());
        let (id, answered) = plain.exchange(us, call, again, *deadline).await?;
        return Ok((id, answered.into()));
    }
    let request = request(call, responses, state);
    let running = RunningRequest::send(peer, us.calls(), call, request).await?;
    let id = running.id.clone();
    let result = running.wait(deadline, call.timeout).await?;
    Ok((id, result))
}

/// The request of a call, with what the last round asked for.
fn request(
    call: &ToolCall,
    responses: Option<InputResponses>,
    state: Option<String>,
) -> ClientRequest {
    let arguments = Some(call.arguments.clone());
    match call.kind {
        CallKind::Tool => {
            let mut params = CallToolRequestParams::new(call.tool.clone());
            params.arguments = arguments;
            params.input_responses = responses;
            params.request_state = state;
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        }
        CallKind::Prompt => {
            let mut params = GetPromptRequestParams::new(call.tool.clone());
            params.arguments = arguments;
            params.input_responses = responses;
            params.request_state = state;
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
        }
        CallKind::Resource => {
            let uri = call.arguments.get("uri").and_then(Value::as_str);
            let mut params = ReadResourceRequestParams::new(uri.unwrap_or_default());
            params.input_responses = responses;
            params.request_state = state;
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
        }
    }
}

/// The answers to what a server of the newer era asks between two rounds.
async fn answer(
    calls: &Calls,
    call: &ToolCall,
    id: &RequestId,
    asks: &InputRequiredResult,
) -> Result<InputResponses, ServerFault> {
    let mut answers = InputResponses::new();
    let requests = asks.input_requests.iter().flatten();
    for (key, request) in requests.take(limit::SERVER_QUESTIONS_MAX) {
        let answered = match request {
            InputRequest::Elicitation(question) => {
                // The round is over; its person still answers for the call.
                let _asked = UnderWay::add(calls, id, call.elicitor.clone());
                let answer = calls.ask(Some(id), Some(key), &question.params).await;
                serde_json::to_value(elicit_result(answer)).unwrap_or_default()
            }
            // No folder of this machine is told to a server.
            InputRequest::ListRoots(_) => json!({"roots": []}),
            // Sampling would let a server use the caller's model under our name.
            _ => {
                let what = "it asks for a language model, which is not offered";
                return Err(ServerFault::Protocol(what.to_owned()));
            }
        };
        answers.insert(key.clone(), answered);
    }
    Ok(answers)
}

/// A request that was sent. Dropped before its answer came, it is cancelled at the
/// server.
struct RunningRequest<'a> {
    peer: &'a Peer<RoleClient>,
    calls: &'a Calls,
    id: RequestId,
    handle: Option<RequestHandle<RoleClient>>,
    /// The messages that were lost since it was sent.
    losses: Losses,
    is_over: bool,
}

impl<'a> RunningRequest<'a> {
    async fn send(
        peer: &'a Peer<RoleClient>,
        calls: &'a Calls,
        call: &ToolCall,
        request: ClientRequest,
    ) -> Result<RunningRequest<'a>, ServerFault> {
        let mut options = PeerRequestOptions::no_options();
        if let Some(trace) = &call.trace {
            let mut meta = RequestMetaObject::new();
            meta.set_traceparent(trace.clone());
            options = options.with_meta(meta);
        }
        let losses = calls.faults().losses();
        let sent = peer.send_request_with_option(request, options);
        let handle = sent.await.map_err(|error| service_fault(&error))?;
        let elicitor = call.elicitor.clone();
        // After sending, when the id is known. Progress that comes before that
        // has no call to go to.
        calls.add(
            &handle.id,
            &handle.progress_token,
            call.progress.clone(),
            elicitor,
        );
        Ok(RunningRequest {
            peer,
            calls,
            id: handle.id.clone(),
            handle: Some(handle),
            losses,
            is_over: false,
        })
    }

    async fn wait(
        mut self,
        deadline: &mut Instant,
        allowed: Duration,
    ) -> Result<ServerResult, ServerFault> {
        // Taken out of the guard, whose drop still cancels the request if this
        // future goes first.
        let Some(handle) = self.handle.take() else {
            return Err(ServerFault::Protocol("the request was not sent".to_owned()));
        };
        let mut response = std::pin::pin!(handle.await_response());
        loop {
            let answered = tokio::select! {
                answered = timeout_at(*deadline, &mut response) => answered,
                // Its answer was longer than a line may be, and nothing more would come.
                () = self.calls.wait_for_loss(&mut self.losses, 1) => {
                    let most = limit::SERVER_LINE_BYTES_MAX >> 20;
                    let what = format!("is in a message of more than {most} MiB");
                    return Err(ServerFault::TooLarge(what));
                }
            };
            match answered {
                Ok(result) => {
                    self.is_over = true;
                    return result.map_err(|error| service_fault(&error));
                }
                // Perhaps a person was asked meanwhile. Only time that was the server's own
                // ends the call.
                Err(_) => match self.calls.take_asked(&self.id) {
                    Duration::ZERO => return Err(ServerFault::Timeout(allowed)),
                    asked => *deadline += asked,
                },
            }
        }
    }
}

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        self.calls.remove(&self.id);
        if self.is_over {
            return;
        }
        let peer = self.peer.clone();
        let reason = "the call was given up".to_owned();
        let param = CancelledNotificationParam::new(Some(self.id.clone()), Some(reason));
        // On a task of its own, because dropping cannot wait. A closed connection
        // needs no cancelling.
        tokio::spawn(async move { drop(peer.notify_cancelled(param).await) });
    }
}

/// A result as it is passed on.
fn relay(result: CallToolResult) -> Result<ToolResult, ServerFault> {
    if result.content.len() > limit::SERVER_RESULT_BLOCKS_MAX {
        let most = limit::SERVER_RESULT_BLOCKS_MAX;
        return Err(ServerFault::TooLarge(format!("has more than {most} parts")));
    }
    let mut bytes = 0;
    let mut content = Vec::with_capacity(result.content.len());
    for block in result.content {
        let mut block = serde_json::to_value(block)
            .map_err(|error| ServerFault::Protocol(shown(&error.to_string())))?;
        // Measured as it will be sent on: a small message can have many escapes.
        bytes += measure(&block)?;
        within_bytes(bytes)?;
        clean(&mut block);
        content.push(block);
    }
    let mut structured = result.structured_content;
    if let Some(value) = &mut structured {
        bytes += measure(value)?;
        within_bytes(bytes)?;
        strip_controls(value);
    }
    // A client that reads only text must not read nothing.
    if content.is_empty()
        && let Some(value) = &structured
    {
        content.push(json!({"type": "text", "text": value.to_string()}));
    }
    Ok(ToolResult {
        content,
        structured,
        is_error: result.is_error.unwrap_or_default(),
    })
}

/// The result of a prompt or a resource as it is passed on: whole, as a structure.
fn relay_whole(result: &impl serde::Serialize) -> Result<ToolResult, ServerFault> {
    let mut value = serde_json::to_value(result)
        .map_err(|error| ServerFault::Protocol(shown(&error.to_string())))?;
    within_bytes(measure(&value)?)?;
    let parts = ["messages", "contents"].into_iter();
    let parts = parts.filter_map(|part| value.get(part)?.as_array());
    if parts.map(Vec::len).sum::<usize>() > limit::SERVER_RESULT_BLOCKS_MAX {
        let most = limit::SERVER_RESULT_BLOCKS_MAX;
        return Err(ServerFault::TooLarge(format!("has more than {most} parts")));
    }
    strip_meta(&mut value);
    strip_controls(&mut value);
    Ok(ToolResult {
        content: vec![json!({"type": "text", "text": value.to_string()})],
        structured: Some(value),
        is_error: false,
    })
}

/// Takes `_meta` off wherever it stands. Everything else in these results has a name of
/// the protocol.
fn strip_meta(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(strip_meta),
        Value::Object(members) => {
            members.remove("_meta");
            members.values_mut().for_each(strip_meta);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The same without the server's own secrets.
fn mask(result: ToolResult, mask: &MaskNow) -> ToolResult {
    let content = result.content.into_iter().map(|block| mask.value(block));
    ToolResult {
        content: content.collect(),
        structured: result.structured.map(|value| mask.value(value)),
        is_error: result.is_error,
    }
}

fn within_bytes(bytes: usize) -> Result<(), ServerFault> {
    if bytes > limit::SERVER_RESULT_BYTES_MAX {
        let most = limit::SERVER_RESULT_BYTES_MAX >> 20;
        return Err(ServerFault::TooLarge(format!("is larger than {most} MiB")));
    }
    Ok(())
}

/// The length of a value as JSON. Nesting was bounded when it was parsed.
fn measure(value: &Value) -> Result<usize, ServerFault> {
    let mut counted = Counter(0);
    serde_json::to_writer(&mut counted, value)
        .map_err(|error| ServerFault::Protocol(shown(&error.to_string())))?;
    Ok(counted.0)
}

struct Counter(usize);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Takes `_meta` off a block and what it embeds, and controls out of its texts.
fn clean(block: &mut Value) {
    if let Some(members) = block.as_object_mut() {
        members.remove("_meta");
        if let Some(resource) = members.get_mut("resource").and_then(Value::as_object_mut) {
            resource.remove("_meta");
        }
    }
    strip_controls(block);
}

/// Takes out what steers a terminal or reverses the reading direction. Line ends and
/// tabs stay.
fn strip_controls(value: &mut Value) {
    match value {
        Value::String(text) => {
            if text.chars().any(is_control) {
                text.retain(|character| !is_control(character));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip_controls),
        Value::Object(members) => members.values_mut().for_each(strip_controls),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_control(character: char) -> bool {
    // Attack: text that is shown in another order than it is read.
    let is_bidi = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_bidi || (character.is_control() && !matches!(character, '\n' | '\r' | '\t'))
}

/// Why a request of ours got no result.
pub(crate) fn service_fault(error: &ServiceError) -> ServerFault {
    match error {
        ServiceError::McpError(error) => ServerFault::refused(error),
        ServiceError::TransportClosed => ServerFault::Closed("it closed".to_owned()),
        ServiceError::TransportSend(error) => http::fault_of(error),
        ServiceError::Timeout { timeout } => ServerFault::Timeout(*timeout),
        ServiceError::UnexpectedResponse => ServerFault::Protocol(
            "the answer is of another kind than the question, or has a part of an unknown type"
                .to_owned(),
        ),
        other => ServerFault::Closed(shown(&other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ContentBlock;

    use super::*;

    #[test]
    fn results_are_relayed_without_controls_and_meta() {
        let raw = json!({
            "content": [
                {"type": "text", "text": "a\u{1b}[31mb\nc\u{202e}d", "_meta": {"x": 1}},
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "a:b", "text": "t", "_meta": {}}},
                {"type": "resource_link", "uri": "a:b", "name": "n"},
                {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            ],
            "isError": true,
        });
        let result: CallToolResult = serde_json::from_value(raw).expect("a result");
        let relayed = relay(result).expect("relayed");
        assert!(relayed.is_error);
        assert_eq!(
            relayed.content[0],
            json!({"type": "text", "text": "a[31mb\ncd"})
        );
        assert_eq!(
            relayed.content[2],
            json!({"type": "resource", "resource": {"uri": "a:b", "text": "t"}})
        );
        assert_eq!(relayed.content.len(), 5);
    }

    #[test]
    fn a_structured_result_alone_has_its_text() {
        let raw = json!({"content": [], "structuredContent": {"n": 1}});
        let relayed = relay(serde_json::from_value(raw).expect("a result")).expect("relayed");
        assert_eq!(
            relayed.content,
            [json!({"type": "text", "text": "{\"n\":1}"})]
        );
    }

    #[test]
    fn a_result_over_a_bound_is_refused() {
        let block = ContentBlock::text("x".repeat(limit::SERVER_RESULT_BYTES_MAX));
        let large = relay(CallToolResult::success(vec![block]));
        assert!(matches!(large, Err(ServerFault::TooLarge(_))));
        let many = vec![ContentBlock::text(""); limit::SERVER_RESULT_BLOCKS_MAX + 1];
        let many = relay(CallToolResult::success(many));
        assert!(matches!(many, Err(ServerFault::TooLarge(_))));
    }
}
