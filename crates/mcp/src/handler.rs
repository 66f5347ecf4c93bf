//! What clients ask for, in both eras and over both transports. Every branch of
//! the door is here; what they do is next door.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use engine::approve::{Answer, AnswerFault, Channel};
use engine::call::{CallRequest, Refused};
use engine::native::Native;
use engine::{Engine, Gate};
use model::caller::{Caller, Origin};
use model::govern::approval::State;
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

use crate::answer::{self, Era};
use crate::ask::{About, Answered, Deferred, Elicit, Returned, Way, can_ask};
use crate::gate::Principal;
use crate::limit::Entered;
use crate::news::To;
use crate::unsent::{self, Sending};
use crate::who::PipeClient;
use crate::{Door, Inner, instruction, limit, progress, tool};

/// How cursors begin.
const CURSOR: &str = "after:";
/// Where W3C's trace context stands, in a header or in `_meta`.
const TRACE_HEADER: &str = "traceparent";
/// The header legacy sessions are known by.
pub(crate) const SESSION_HEADER: &str = "mcp-session-id";

/// Answers one client. Made for each session and for each modern request.
#[derive(Clone, Debug)]
pub struct Handler {
    door: Door,
    /// Who calls and in which session, where the transport itself knows.
    fixed: Option<(PipeClient, String)>,
}

impl Handler {
    /// For clients the gate has let in.
    #[must_use]
    pub fn behind_gate(door: Door) -> Handler {
        Handler { door, fixed: None }
    }

    /// For the one client at the other end of a pipe.
    #[must_use]
    pub fn of_one(door: Door, session: String) -> Handler {
        let fixed = Some((door.inner.pipe_client.clone(), session));
        Handler { door, fixed }
    }

    fn inner(&self) -> &Inner {
        &self.door.inner
    }

    /// Who calls. Nobody the gate did not let in gets further.
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
                "nobody let this request in",
                None,
            )),
        }
    }

    fn session(&self, extensions: &Extensions, era: Era) -> Option<String> {
        match (&self.fixed, era) {
            (Some((_, session)), _) => Some(session.clone()),
            // There are no sessions any more; a header that says so is ignored.
            (None, Era::Modern) => None,
            (None, Era::Legacy) => {
                let parts = extensions.get::<Parts>()?;
                let id = parts.headers.get(SESSION_HEADER)?.to_str().ok()?;
                Some(id.to_owned())
            }
        }
    }

    /// How this client's person can be asked.
    fn way(&self, context: &RequestContext<RoleServer>, era: Era, wait: Duration) -> Way {
        if !can_ask(context.client_capabilities().as_ref()) {
            return Way::None;
        }
        match era {
            Era::Legacy => Way::Now(Arc::new(Elicit {
                peer: context.peer.clone(),
                version: context.protocol_version(),
                wait,
            })),
            Era::Modern => Way::Later(Arc::new(Deferred::default())),
        }
    }

    /// One call through the engine, with progress and everything that can stop it.
    async fn run(&self, mut request: CallRequest, context: &RequestContext<RoleServer>) -> Outcome {
        let engine = &self.inner().engine;
        let cancel = context.ct.child_token();
        request.cancel = cancel.clone();
        let token = context.meta.get_progress_token();
        let told = token.map(|token| {
            let (progress, told) = progress::listener();
            request.progress = Some(progress);
            (token, told)
        });
        let call = async {
            tokio::select! {
                outcome = engine.call(request) => outcome.into_inner(),
                never = forward(&self.inner().stop, &cancel) => match never {},
            }
        };
        match told {
            Some((token, told)) => progress::while_running(call, told, &context.peer, token).await,
            None => call.await,
        }
    }

    /// One attempt at a tool, from what the client said to what it is told. Whatever stands
    /// in the way of it, the engine writes it down.
    async fn called(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let inner = self.inner();
        let era = Era::of(context.protocol_version().as_ref());
        let caller = self.caller(&context.extensions)?;
        let now = inner.engine.registry().current();
        let most = now.config.serve.calls_per_caller_max;
        let entered = inner.calls.enter(&caller.name, most);
        // Elsewhere the tools of code mode are known with a colon.
        let native = Native::named(&request.name);
        let name = native.map_or(request.name.as_ref(), |native| native.name());
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let about = About {
            caller: &caller,
            tool: name,
            arguments: &arguments,
        };
        let wait = Duration::from_secs(now.config.approvals.wait_seconds);
        let mut way = self.way(&context, era, wait);
        let mut call = CallRequest::new(caller.clone(), Origin::Mcp, name, arguments.clone());
        call.deadline = Some(Duration::from_secs(now.config.serve.call_seconds_max));
        call.session = self.session(&context.extensions, era);
        call.trace = trace(&context);
        drop(now);
        call.refused = crowded(inner, &entered, &caller);
        if let (None, Some(state)) = (&call.refused, &request.request_state) {
            let responses = request.input_responses.as_ref();
            match brought(inner, state, responses, &about).await {
                // This client shows its questions to nobody; somebody else is asked,
                // and the record says why.
                Ok(Some(Answer::NotRendered)) => way = Way::Unshown,
                Ok(_) => {}
                Err(reason) => call.refused = Some(not_its_own(reason)),
            }
        }
        call.approver = way.approver();
        let outcome = self.run(call, &context).await;
        if let Some(error) = state_refused(&outcome) {
            return Err(error);
        }
        // A script that could not be kept, or ran out of time, is over: an answer
        // would start it from the beginning.
        let is_pending = outcome
            .error
            .as_ref()
            .is_some_and(|error| error.reason == Reason::ApprovalPending);
        if let Some(question) = way.question().filter(|_| is_pending) {
            return Ok(match inner.seal.ask(&question, &about) {
                Some(required) => required.with_meta(answer::stamp(era)).into(),
                None => answer::failed(&unsealed(), Some(outcome.call_id), era).into(),
            });
        }
        self.answered(outcome, era, entered, &caller, &context)
    }

    /// The answer, which holds its call's place and its bytes until it was sent.
    fn answered(
        &self,
        mut outcome: Outcome,
        era: Era,
        entered: Entered,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // The same value twice: as text, and as structure.
        let bytes = outcome.value.as_ref().map_or(0, unsent::weight);
        let share = self
            .inner()
            .unsent
            .share(&caller.name, bytes.saturating_mul(2));
        if share.is_none() {
            outcome.value = None;
            outcome.error = Some(withheld());
        }
        let parts = context.extensions.get::<Parts>();
        if let Some(sending) = parts.and_then(|parts| parts.extensions.get::<Sending>()) {
            sending.hold(entered, share);
        }
        answer::of(outcome, era).map(CallToolResponse::from)
    }

    /// An attempt whose params do not fit: nothing can run, and it is written down.
    async fn misfit(
        &self,
        params: Option<Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let inner = self.inner();
        let caller = self.caller(&context.extensions)?;
        let most = inner.engine.registry().current();
        let most = most.config.serve.calls_per_caller_max;
        let entered = inner.calls.enter(&caller.name, most);
        let member = |name: &str| params.as_ref().and_then(|params| params.get(name));
        let name = member("name").and_then(Value::as_str).unwrap_or_default();
        let arguments = member("arguments").cloned().unwrap_or_default();
        let mut call = CallRequest::new(caller.clone(), Origin::Mcp, name, arguments);
        call.trace = trace(context);
        call.refused = crowded(inner, &entered, &caller).or_else(|| Some(no_call()));
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

    fn listed(
        &self,
        cursor: Option<&str>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context.extensions)?;
        if !self.inner().unsent.has_room(&caller.name) {
            let message = "you have not read earlier answers; read them, then ask again";
            return Err(ErrorData::new(ErrorCode(-32000), message, None));
        }
        let era = Era::of(context.protocol_version().as_ref());
        let after = match cursor.map(|cursor| cursor.strip_prefix(CURSOR)) {
            None => "",
            Some(Some(after)) if after.len() <= limit::CURSOR_CHARS_MAX => after,
            Some(_) => {
                return Err(ErrorData::invalid_params(
                    "the cursor is not one of ours",
                    None,
                ));
            }
        };
        let offered = self.inner().engine.listed(&caller);
        let mut rest = offered.iter().skip_while(|offered| {
            !after.is_empty() && offered.sound.document.name.as_str() <= after
        });
        let tools: Vec<_> = rest
            .by_ref()
            .take(limit::TOOLS_PAGE_MAX)
            .map(tool::shown)
            .collect();
        let more = rest.next().is_some();
        let last = tools.last().filter(|_| more);
        let next_cursor = last.map(|tool| format!("{CURSOR}{}", tool.name));
        let mut listed = ListToolsResult::with_all_items(tools);
        listed.next_cursor = next_cursor;
        if era == Era::Modern {
            listed.meta = Some(answer::stamp(era));
            // What a person can change is in force at once, for this caller alone.
            listed.ttl_ms = Some(0);
            listed.cache_scope = Some(CacheScope::Private);
        }
        Ok(listed)
    }

    /// Waits as a listener until the client or the server ends it.
    async fn listens(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let inner = self.inner();
        let caller = self.caller(&context.request_context().extensions)?;
        let most = inner.engine.registry().current().config.serve.listeners_max;
        let to = To::Sink(context.sink().clone());
        let Some(id) = inner.news.add(&inner.engine, caller, to, most) else {
            let message = "too many streams wait for news; try again later";
            return Err(ErrorData::new(ErrorCode(-32000), message, None));
        };
        tokio::select! {
            () = context.cancelled() => {}
            () = inner.closing.cancelled() => {}
        }
        inner.news.remove(id);
        Ok(())
    }
}

/// What came with a call: it is opened, and an answer is handed to the engine. Nothing if
/// there is none, and the same is asked again; why it is not taken, if it is not.
async fn brought(
    inner: &Inner,
    state: &str,
    responses: Option<&InputResponses>,
    about: &About<'_>,
) -> Result<Option<Answer>, Reason> {
    match inner.seal.open(state, responses, about) {
        Returned::Refused => Err(Reason::ApprovalState),
        Returned::Unanswered => Ok(None),
        Returned::Answered(answered) => {
            let taken = take(&inner.engine, about.caller, &answered).await;
            taken.map_err(|fault| untaken(&fault))?;
            Ok(Some(answered.answer))
        }
    }
}

/// Hands a person's answer to the engine, which decides what it counts for. The
/// same call, made again, finds it there.
async fn take(
    engine: &Arc<Engine>,
    caller: &Caller,
    answered: &Answered,
) -> Result<(), AnswerFault> {
    let (engine, caller) = (Arc::clone(engine), caller.clone());
    let (question, answer) = (answered.question.clone(), answered.answer);
    let taking = move || engine.answer(&question, &caller, Channel::InputRequired, answer);
    let taken = tokio::task::spawn_blocking(taking).await;
    match taken.unwrap_or(Err(AnswerFault::Unknown)) {
        // Somebody was faster in the inbox; the call finds that answer.
        Err(AnswerFault::Answered(State::Approved)) => Ok(()),
        other => other,
    }
}

/// What the caller is told of an answer that was not taken. A store that cannot write
/// is the operator's to know of; the same answer may be brought again.
fn untaken(fault: &AnswerFault) -> Reason {
    match fault {
        AnswerFault::Store(_) => Reason::ApprovalUnavailable,
        AnswerFault::Unknown
        | AnswerFault::NotYours
        | AnswerFault::Several(_)
        | AnswerFault::Answered(_)
        | AnswerFault::Expired
        | AnswerFault::TooWide { .. }
        | AnswerFault::NotApproved(_)
        | AnswerFault::TrustChanged
        | AnswerFault::NotByClient
        | AnswerFault::NotByCommand
        | AnswerFault::Separate => Reason::ApprovalState,
    }
}

/// A state that counts for nothing is an error of the protocol: the call was not made, so
/// there is no result of it.
fn state_refused(outcome: &Outcome) -> Option<ErrorData> {
    let error = outcome.error.as_ref();
    let error = error.filter(|error| error.reason == Reason::ApprovalState)?;
    let data = json!({"code": error.reason.code(), "callId": outcome.call_id});
    Some(ErrorData::invalid_params(error.message.clone(), Some(data)))
}

/// The trace a call is part of: in the request's own words, or in its header.
fn trace(context: &RequestContext<RoleServer>) -> Option<String> {
    let told = context.meta.get(TRACE_HEADER).and_then(Value::as_str);
    let parts = context.extensions.get::<Parts>();
    let header = || parts?.headers.get(TRACE_HEADER)?.to_str().ok();
    told.or_else(header).map(str::to_owned)
}

/// Whether the door has room for a call: a place among the calls of its caller, and room
/// for its answer.
fn crowded(inner: &Inner, entered: &Entered, caller: &Caller) -> Option<Refused> {
    let message = if entered.is_one_too_many() {
        "you have as many calls under way as you may; wait for one to end"
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

/// A call that came with an answer which is not its own, or cannot be kept.
fn not_its_own(reason: Reason) -> Refused {
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

/// The params of a call that are none.
fn no_call() -> Refused {
    Refused {
        gate: Gate::Arguments,
        error: CallError::new(Reason::ArgumentType, "the params are not those of a call"),
    }
}

/// The call ran, and nothing of what came of it leaves.
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

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(answer::server())
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
        self.listed(cursor.as_deref(), &context)
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
        let schema = tool::schema(&found.sound.document.params, found.body.native());
        Some(Tool::new_with_raw(name.to_owned(), None, schema))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.called(request, context).await
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
        self.listens(context).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Ok(caller) = self.caller(&context.extensions) else {
            return;
        };
        let inner = self.inner();
        let most = inner.engine.registry().current().config.serve.listeners_max;
        // One listener too many hears nothing; its calls work all the same.
        let _ = inner
            .news
            .add(&inner.engine, caller, To::Peer(context.peer), most);
    }

    /// Where a message does not fit the method it names.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        if method == "tools/call" {
            self.misfit(params, &context).await?;
        }
        if matches!(method.as_str(), "tools/call" | "tools/list") {
            let message = format!("the params of `{method}` are not what it takes");
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }
}
