//! The methods of the protocol, in both eras and over both transports. Every branch
//! of the door is here; the modules beside this one do the work.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use engine::approve::{AnswerFault, ApprovalAnswer, Channel};
use engine::call::{CallRequest, Refused};
use engine::native::Native;
use engine::{Engine, Gate};
use model::caller::{Caller, Origin};
use model::govern::approval::ApprovalState;
use model::reason::Reason;
use model::record::outcome::{CallError, Outcome};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, DiscoverResult, ErrorCode,
    Extensions, InitializeRequestParams, InitializeResult, InputResponses,
    ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, SubscriptionFilter,
    Tool,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::auth::{PipeClient, Principal, SESSION_HEADER};
use crate::call_count::CallSlot;
use crate::era::Era;
use crate::limit;
use crate::protocol::door::{Door, Inner};
use crate::protocol::elicit::{AskVia, Deferred, Elicit, can_ask};
use crate::protocol::list_changed::ListenerChannel;
use crate::protocol::request_state::{ClientAnswer, ReturnedState, StateBinding};
use crate::protocol::{instruction, progress, reply, tool};
use crate::unsent::{self, ReplyHold};

/// How cursors begin.
const CURSOR: &str = "after:";
/// Where W3C's trace context stands, in a header or in `_meta`.
const TRACE_HEADER: &str = "traceparent";

/// Answers one client. rmcp makes one for each session and for each modern request.
#[derive(Clone, Debug)]
pub struct McpServer {
    door: Door,
    /// Who calls and in which session, where the transport itself knows.
    fixed: Option<(PipeClient, String)>,
}

impl McpServer {
    /// For clients whose requests carry a [`Principal`].
    #[must_use]
    pub fn authenticated(door: Door) -> McpServer {
        McpServer { door, fixed: None }
    }

    /// For the one client at the other end of a pipe.
    #[must_use]
    pub fn for_pipe(door: Door) -> McpServer {
        let session = door.inner.pipe_session.clone();
        let fixed = Some((door.inner.pipe_client.clone(), session));
        McpServer { door, fixed }
    }

    fn inner(&self) -> &Inner {
        &self.door.inner
    }

    /// Who calls. An unauthenticated request gets no further.
    fn caller(&self, extensions: &Extensions) -> Result<Caller, ErrorData> {
        if let Some((client, _)) = &self.fixed {
            let refused = |why| ErrorData::invalid_request(why, None);
            return client.caller().map_err(refused);
        }
        let parts = extensions.get::<Parts>();
        let principal = parts.and_then(|parts| parts.extensions.get::<Principal>());
        match principal {
            Some(principal) => Ok(principal.caller.clone()),
            None => Err(ErrorData::invalid_request(
                "the request was not authenticated",
                None,
            )),
        }
    }

    fn session(&self, extensions: &Extensions, era: Era) -> Option<String> {
        match (&self.fixed, era) {
            (Some((_, session)), _) => Some(session.clone()),
            // Modern requests have no session; a header that names one is ignored.
            (None, Era::Modern) => None,
            (None, Era::Legacy) => {
                let parts = extensions.get::<Parts>()?;
                let id = parts.headers.get(SESSION_HEADER)?.to_str().ok()?;
                Some(id.to_owned())
            }
        }
    }

    /// How the person at this client can be asked.
    fn ask_via(&self, context: &RequestContext<RoleServer>, era: Era, wait: Duration) -> AskVia {
        if !can_ask(context.client_capabilities().as_ref()) {
            return AskVia::None;
        }
        match era {
            Era::Legacy => AskVia::Now(Arc::new(Elicit {
                peer: context.peer.clone(),
                version: context.protocol_version(),
                wait,
            })),
            Era::Modern => AskVia::Later(Arc::new(Deferred::default())),
        }
    }

    /// One call through the engine, with progress and everything that can stop it.
    async fn run(&self, mut request: CallRequest, context: &RequestContext<RoleServer>) -> Outcome {
        let engine = &self.inner().engine;
        let cancel = context.ct.child_token();
        request.cancel = cancel.clone();
        let token = context.meta.get_progress_token();
        let feed = token.map(|token| {
            let (progress, feed) = progress::listener();
            request.progress = Some(progress);
            (token, feed)
        });
        let call = async {
            tokio::select! {
                outcome = engine.call(request) => outcome.into_inner(),
                never = forward(&self.inner().stop, &cancel) => match never {},
            }
        };
        match feed {
            Some((token, feed)) => progress::while_running(call, feed, &context.peer, token).await,
            None => call.await,
        }
    }

    /// One attempt at a tool, from what the client said to what it is told. Whatever
    /// refuses it, the engine records it.
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let inner = self.inner();
        let era = era_of(&context);
        let caller = self.caller(&context.extensions)?;
        let now = inner.engine.registry().current();
        let most = now.config.serve.calls_per_caller_max;
        let slot = inner.calls.enter(&caller.name, most);
        // Other MCP products spell the tools of code mode with a colon. That is a spelling
        // of this protocol, so it is translated here; every gate sees the one name.
        let native = Native::named(&request.name);
        let name = native.map_or(request.name.as_ref(), |native| native.name());
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let binding = StateBinding {
            caller: &caller,
            tool: name,
            arguments: &arguments,
        };
        let wait = Duration::from_secs(now.config.approvals.wait_seconds);
        let mut ask_via = self.ask_via(&context, era, wait);
        let mut call = CallRequest::new(caller.clone(), Origin::Mcp, name, arguments.clone());
        call.deadline = Some(Duration::from_secs(now.config.serve.call_seconds_max));
        call.session = self.session(&context.extensions, era);
        call.trace = trace(&context);
        drop(now);
        call.refused = refuse_busy(inner, &slot, &caller);
        if let (None, Some(state)) = (&call.refused, &request.request_state) {
            let responses = request.input_responses.as_ref();
            match take_returned(inner, state, responses, &binding).await {
                // The client answers without showing its questions to a person. The engine
                // recorded that this answer counts for nothing; what is chosen here is only
                // that this client is no way to ask, so the engine asks in the inbox.
                Ok(Some(ApprovalAnswer::NotRendered)) => ask_via = AskVia::Unshown,
                Ok(_) => {}
                Err(reason) => call.refused = Some(refuse_state(reason)),
            }
        }
        call.approver = ask_via.approver();
        call.elicitor = ask_via.elicitor();
        let outcome = self.run(call, &context).await;
        if let Some(error) = state_error(&outcome) {
            return Err(error);
        }
        // A script that could not be kept, or ran out of time, has ended: an answer
        // would start it from the beginning.
        let is_pending = outcome
            .error
            .as_ref()
            .is_some_and(|error| error.reason == Reason::ApprovalPending);
        if let Some(question) = ask_via.question().filter(|_| is_pending) {
            return Ok(match inner.seal.ask(&question, &binding) {
                Some(required) => required.with_meta(reply::stamp(era)).into(),
                None => reply::failed(&unsealed(), Some(outcome.call_id), era).into(),
            });
        }
        self.reply(outcome, era, slot, &caller, &context)
    }

    /// The answer. It holds the slot of its call and its bytes until it was sent.
    fn reply(
        &self,
        mut outcome: Outcome,
        era: Era,
        slot: CallSlot,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // The same value twice: as text, and as structure.
        let bytes = match &outcome.relayed {
            None => outcome.value.as_ref().map_or(0, unsent::weight),
            Some(relayed) => {
                let parts = relayed.content.iter().chain(&relayed.structured);
                parts.map(unsent::weight).sum()
            }
        };
        let share = self
            .inner()
            .unsent
            .share(&caller.name, bytes.saturating_mul(2));
        if share.is_none() {
            outcome.value = None;
            outcome.relayed = None;
            outcome.error = Some(withheld());
        }
        let parts = context.extensions.get::<Parts>();
        if let Some(hold) = parts.and_then(|parts| parts.extensions.get::<ReplyHold>()) {
            hold.put(slot, share);
        }
        reply::of(outcome, era).map(CallToolResponse::from)
    }

    /// Records an attempt whose params do not fit. Nothing runs.
    async fn record_misfit(
        &self,
        params: Option<Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let inner = self.inner();
        let caller = self.caller(&context.extensions)?;
        let most = inner.engine.registry().current();
        let most = most.config.serve.calls_per_caller_max;
        let slot = inner.calls.enter(&caller.name, most);
        let member = |name: &str| params.as_ref().and_then(|params| params.get(name));
        let name = member("name").and_then(Value::as_str).unwrap_or_default();
        let arguments = member("arguments").cloned().unwrap_or_default();
        let mut call = CallRequest::new(caller.clone(), Origin::Mcp, name, arguments);
        call.trace = trace(context);
        call.refused = refuse_busy(inner, &slot, &caller).or_else(|| Some(refuse_params()));
        self.run(call, context).await;
        Ok(())
    }

    /// What a model should know before its first call, as far as this caller's list has it.
    fn instructions(&self, caller: &Caller) -> String {
        let offered = self.inner().engine.listed(caller);
        let has = |native: Native| {
            offered
                .iter()
                .any(|offered| offered.body == engine::registry::ToolBody::Native(native))
        };
        instruction::of(&has)
    }

    /// One page of the caller's tools.
    fn list(
        &self,
        cursor: Option<&str>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context.extensions)?;
        if !self.inner().unsent.has_room(&caller.name) {
            let message = "you have not read earlier answers; read them, then ask again";
            return Err(ErrorData::new(ErrorCode(-32000), message, None));
        }
        let era = era_of(context);
        let after = match cursor.map(|cursor| cursor.strip_prefix(CURSOR)) {
            None => "",
            Some(Some(after)) if after.len() <= limit::CURSOR_CHARS_MAX => after,
            Some(_) => {
                return Err(ErrorData::invalid_params(
                    "the cursor is not valid; use `nextCursor` of the page before",
                    None,
                ));
            }
        };
        let offered = self.inner().engine.listed(&caller);
        let mut rest = offered.iter().skip_while(|offered| {
            !after.is_empty() && offered.usable.document.name.as_str() <= after
        });
        let tools: Vec<_> = rest
            .by_ref()
            .take(limit::TOOLS_PAGE_MAX)
            .map(tool::listed)
            .collect();
        let more = rest.next().is_some();
        let last = tools.last().filter(|_| more);
        let next_cursor = last.map(|tool| format!("{CURSOR}{}", tool.name));
        let mut listed = ListToolsResult::with_all_items(tools);
        listed.next_cursor = next_cursor;
        if era == Era::Modern {
            listed.meta = Some(reply::stamp(era));
            // What a person can change is in force at once, for this caller alone.
            listed.ttl_ms = Some(0);
            listed.cache_scope = Some(CacheScope::Private);
        }
        Ok(listed)
    }

    /// Keeps a listener until the client or the server ends it.
    async fn keep_listener(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let inner = self.inner();
        let caller = self.caller(&context.request_context().extensions)?;
        let most = inner.engine.registry().current().config.serve.listeners_max;
        let channel = ListenerChannel::Sink(context.sink().clone());
        let Some(id) = inner.listeners.add(&inner.engine, caller, channel, most) else {
            let message = "too many streams wait for changes; try again later";
            return Err(ErrorData::new(ErrorCode(-32000), message, None));
        };
        tokio::select! {
            () = context.cancelled() => {}
            () = inner.closing.cancelled() => {}
        }
        inner.listeners.remove(id);
        Ok(())
    }
}

/// Opens the state that came with a call and hands the answer in it to the engine.
/// Nothing if there is no answer, and the same is asked again; the reason if the state
/// or the answer does not count.
async fn take_returned(
    inner: &Inner,
    state: &str,
    responses: Option<&InputResponses>,
    binding: &StateBinding<'_>,
) -> Result<Option<ApprovalAnswer>, Reason> {
    match inner.seal.open(state, responses, binding) {
        ReturnedState::Refused => Err(Reason::ApprovalState),
        ReturnedState::Unanswered => Ok(None),
        ReturnedState::Answered(answered) => {
            let taken = give(&inner.engine, binding.caller, &answered).await;
            taken.map_err(|fault| reason_of(&fault))?;
            Ok(Some(answered.answer))
        }
    }
}

/// Gives a person's answer to the engine, which decides what it counts for. The
/// same call, made again, finds it there.
async fn give(
    engine: &Arc<Engine>,
    caller: &Caller,
    answered: &ClientAnswer,
) -> Result<(), AnswerFault> {
    let (engine, caller) = (Arc::clone(engine), caller.clone());
    let (question, answer) = (answered.question.clone(), answered.answer);
    let taking = move || engine.answer(&question, &caller, Channel::InputRequired, answer);
    let taken = tokio::task::spawn_blocking(taking).await;
    match taken.unwrap_or(Err(AnswerFault::Unknown)) {
        // It was approved in the inbox meanwhile; the call finds that answer.
        Err(AnswerFault::Answered(ApprovalState::Approved)) => Ok(()),
        other => other,
    }
}

/// The error for an answer that was not accepted. A store that cannot write
/// is the operator's to know of; the same answer may be brought again.
fn reason_of(fault: &AnswerFault) -> Reason {
    match fault {
        AnswerFault::Store(_) => Reason::ApprovalUnavailable,
        AnswerFault::Unknown
        | AnswerFault::NotYours
        | AnswerFault::Several(_)
        | AnswerFault::Answered(_)
        | AnswerFault::Expired
        | AnswerFault::TooWide { .. }
        | AnswerFault::Refused(_)
        | AnswerFault::Masked
        | AnswerFault::NotApproved(_)
        | AnswerFault::TrustChanged
        | AnswerFault::NotByClient
        | AnswerFault::NotByCommand
        | AnswerFault::Separate => Reason::ApprovalState,
    }
}

/// A state that counts for nothing is an error of the protocol: the call was not made, so
/// there is no result of it.
fn state_error(outcome: &Outcome) -> Option<ErrorData> {
    let error = outcome.error.as_ref();
    let error = error.filter(|error| error.reason == Reason::ApprovalState)?;
    let data = json!({"code": error.reason.code(), "callId": outcome.call_id});
    Some(ErrorData::invalid_params(error.message.clone(), Some(data)))
}

/// The era of a request, by its own `_meta` or by the handshake of its session.
fn era_of(context: &RequestContext<RoleServer>) -> Era {
    let version = context.protocol_version();
    Era::of(version.as_ref().map(ProtocolVersion::as_str))
}

/// The trace a call is part of: in the request's own words, or in its header.
fn trace(context: &RequestContext<RoleServer>) -> Option<String> {
    let told = context.meta.get(TRACE_HEADER).and_then(Value::as_str);
    let parts = context.extensions.get::<Parts>();
    let header = || parts?.headers.get(TRACE_HEADER)?.to_str().ok();
    told.or_else(header).map(str::to_owned)
}

/// Refuses a call the door has no room for: too many calls of its caller are under
/// way, or too many answers are not read. Only the door can count these: both last until
/// the client has read the reply, after the engine's call has ended. The engine refuses
/// and records the attempt, at the gate of the limits.
fn refuse_busy(inner: &Inner, slot: &CallSlot, caller: &Caller) -> Option<Refused> {
    let message = if slot.is_one_too_many() {
        "too many of your calls are in flight; wait for one to end"
    } else if !inner.unsent.has_room(&caller.name) {
        "you have not read the answers to earlier calls; read them, then make this call again"
    } else {
        return None;
    };
    Some(Refused {
        gate: Gate::Limits,
        error: CallError::passing(Reason::CallBusy, message),
    })
}

/// Refuses a call whose state counts for nothing, or whose answer cannot be kept.
fn refuse_state(reason: Reason) -> Refused {
    let error = match reason {
        Reason::ApprovalUnavailable => unsealed(),
        _ => CallError::new(
            Reason::ApprovalState,
            "the answer does not belong to this call, is too old, was used before or is not this \
             client's to give; the call did not run, make it again to be asked again",
        ),
    };
    Refused {
        gate: Gate::Approval,
        error,
    }
}

fn unsealed() -> CallError {
    CallError::passing(
        Reason::ApprovalUnavailable,
        "a person must approve this call, and the answer cannot be kept just now; it did not run",
    )
}

/// Refuses params that are not those of a call.
fn refuse_params() -> Refused {
    Refused {
        gate: Gate::Arguments,
        error: CallError::new(
            Reason::ArgumentType,
            "the params are not those of `tools/call`",
        ),
    }
}

/// The call ran, and its result is withheld.
fn withheld() -> CallError {
    CallError::new(
        Reason::AnswerWithheld,
        "the call ran, but its answer is withheld: you have not read the answers to earlier \
         calls, and there is no room for another",
    )
}

/// Cancels a call when the server must end.
async fn forward(stop: &CancellationToken, cancel: &CancellationToken) -> std::convert::Infallible {
    stop.cancelled().await;
    cancel.cancel();
    std::future::pending().await
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(reply::server())
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let caller = self.caller(&context.extensions)?;
        let versions = self.supported_protocol_versions().into_owned();
        let info = self
            .get_info()
            .with_instructions(self.instructions(&caller));
        Ok(DiscoverResult::from_server_info(versions, info))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let caller = self.caller(&context.extensions)?;
        context.peer.set_peer_info(request.clone());
        let info = self.negotiate_initialize(&request)?;
        Ok(info.with_instructions(self.instructions(&caller)))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        self.list(cursor.as_deref(), &context)
    }

    // What is not declared does not exist, in any revision: an empty list would say
    // that it does.

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<
            ListResourceTemplatesRequestMethod,
        >())
    }

    /// For the transport, which checks headers against the schema. It does not know
    /// who asks, so it learns nothing but the names of the arguments.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let now = self.inner().engine.registry().current();
        let found = now.tool(name)?;
        let schema = tool::schema(&found.body, &found.usable.document);
        Some(Tool::new_with_raw(name.to_owned(), None, schema))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, context).await
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::default();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.keep_listener(context).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Ok(caller) = self.caller(&context.extensions) else {
            return;
        };
        let inner = self.inner();
        let most = inner.engine.registry().current().config.serve.listeners_max;
        // One listener too many hears nothing; its calls work all the same.
        let channel = ListenerChannel::Peer(context.peer);
        let _ = inner.listeners.add(&inner.engine, caller, channel, most);
    }

    /// Where a message does not fit the method it names.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        if method == "tools/call" {
            self.record_misfit(params, &context).await?;
        }
        if matches!(method.as_str(), "tools/call" | "tools/list") {
            let message = format!("the params of `{method}` are not what it takes");
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }
}
