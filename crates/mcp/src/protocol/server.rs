//! The methods of the protocol, in both eras and over both transports. Every branch
//! of the door is here; the modules beside this one do the work.

use std::borrow::Cow;

use axum::http::request::Parts;
use engine::Gate;
use engine::call::{CallRequest, Refused};
use engine::native::Native;
use model::caller::{Caller, Origin};
use model::reason::Reason;
use model::record::outcome::{CallError, Outcome};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, DiscoverResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, PromptsCapability, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ResourcesCapability, ServerCapabilities, ServerConfig,
    SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;

use crate::auth::{PipeClient, Principal, SESSION_HEADER};
use crate::call_count::CallSlot;
use crate::era::Era;
use crate::limit;
use crate::protocol::door::{Door, Inner};
use crate::protocol::list_changed::ListenerChannel;
use crate::protocol::server::items::switches;
use crate::protocol::server::operate::{Operated, Operation, refuse_busy};
use crate::protocol::view::RequestView;
use crate::protocol::{instruction, reply, tool};
use crate::unsent::{self, ReplyHold};

mod items;
mod operate;

/// How cursors begin.
const CURSOR: &str = "after:";
/// The key with which a schema maps an argument to a header.
const HEADER_KEY: &str = "x-mcp-header";

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

    /// Whether the schema of a tool may name headers that must agree with its arguments. Only
    /// schemas of MCP servers do.
    pub(crate) fn may_name_headers(&self, name: &str) -> bool {
        let latest = self.inner().engine.registry().latest();
        let server = latest.tool(name).and_then(|found| found.body.server());
        server.is_some_and(|tool| names_header(&tool.definition.input_schema))
    }

    /// The caller. An unauthenticated request gets no further.
    fn caller(&self, parts: Option<&Parts>) -> Result<Caller, ErrorData> {
        if let Some((client, _)) = &self.fixed {
            let refused = |why| ErrorData::invalid_request(why, None);
            return client.caller().map_err(refused);
        }
        let principal = parts.and_then(|parts| parts.extensions.get::<Principal>());
        match principal {
            Some(principal) => Ok(principal.caller.clone()),
            None => Err(ErrorData::invalid_request(
                "the request was not authenticated",
                None,
            )),
        }
    }

    fn session(&self, parts: Option<&Parts>, era: Era) -> Option<String> {
        match (&self.fixed, era) {
            (Some((_, session)), _) => Some(session.clone()),
            // Modern requests have no session; a header that names one is ignored.
            (None, Era::Modern) => None,
            (None, Era::Legacy) => {
                let id = parts?.headers.get(SESSION_HEADER)?.to_str().ok()?;
                Some(id.to_owned())
            }
        }
    }

    /// One attempt at a tool.
    pub(crate) async fn call(
        &self,
        request: CallToolRequestParams,
        view: RequestView<'_>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Other MCP products spell the tools of code mode with a colon. That is a spelling
        // of this protocol, so it is translated here; every gate sees the one name.
        let native = Native::named(&request.name);
        let name = native.map_or(request.name.as_ref(), |native| native.name());
        let operation = Operation {
            name: name.to_owned(),
            arguments: Value::Object(request.arguments.unwrap_or_default()),
            state: request.request_state,
            responses: request.input_responses,
        };
        match self.operate(operation, view).await? {
            Operated::Asks(required) => Ok(required.into()),
            Operated::Ended(mut outcome, slot) => {
                self.hold_reply(&mut outcome, slot, view)?;
                reply::of(*outcome, view.era()).map(CallToolResponse::from)
            }
        }
    }

    /// An answer holds the slot of its call and its bytes until it was sent. One there is
    /// no room for is withheld.
    fn hold_reply(
        &self,
        outcome: &mut Outcome,
        slot: CallSlot,
        view: RequestView<'_>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(view.parts())?;
        // The same value twice: as text, and as structure.
        let bytes = match &outcome.relayed {
            None => outcome.value.as_ref().map_or(0, unsent::weight),
            Some(relayed) => {
                let parts = relayed.content.iter().chain(&relayed.structured);
                parts.map(unsent::weight).sum()
            }
        };
        let unsent = &self.inner().unsent;
        // A refused share does not undo the call; only its result is withheld.
        let share = unsent.share(&caller.name, bytes.saturating_mul(2));
        if share.is_none() {
            outcome.value = None;
            outcome.relayed = None;
            outcome.error = Some(withheld());
        }
        let parts = view.parts();
        if let Some(hold) = parts.and_then(|parts| parts.extensions.get::<ReplyHold>()) {
            hold.put(slot, share);
        }
        Ok(())
    }

    /// Records an attempt whose params do not fit. Nothing runs.
    async fn record_misfit(
        &self,
        params: Option<Value>,
        view: RequestView<'_>,
    ) -> Result<(), ErrorData> {
        let inner = self.inner();
        let caller = self.caller(view.parts())?;
        let most = inner.engine.registry().current();
        let most = most.config.serve.calls_per_caller_max;
        let slot = inner.calls.enter(&caller.name, most);
        let member = |name: &str| params.as_ref().and_then(|params| params.get(name));
        let name = member("name").and_then(Value::as_str).unwrap_or_default();
        let arguments = member("arguments").cloned().unwrap_or_default();
        let mut call = CallRequest::new(caller.clone(), Origin::Mcp, name, arguments);
        call.trace = view.trace();
        call.refused = refuse_busy(inner, &slot, &caller).or_else(|| Some(refuse_params()));
        self.call_engine(call, view).await;
        Ok(())
    }

    /// Instructions for the model, limited to the tools of this caller's list.
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
        view: RequestView<'_>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(view.parts())?;
        if !self.inner().unsent.has_room(&caller.name) {
            let message = "you have not read earlier answers; read them, then ask again";
            return Err(ErrorData::new(ErrorCode(-32000), message, None));
        }
        let era = view.era();
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
        let engine = &self.inner().engine;
        // By name, not by number: a tool that comes or goes meanwhile moves no page.
        let page = engine.listed_page(&caller, after, limit::TOOLS_PAGE_MAX);
        let tools: Vec<_> = page.tools.iter().map(tool::listed).collect();
        let last = tools.last().filter(|_| page.has_more);
        let next_cursor = last.map(|tool| format!("{CURSOR}{}", tool.name));
        let mut listed = ListToolsResult::with_all_items(tools);
        listed.next_cursor = next_cursor;
        if era == Era::Modern {
            listed.meta = Some(reply::stamp(era));
            // No caching: settings and approvals change lists at once, and for one
            // caller alone.
            listed.ttl_ms = Some(0);
            listed.cache_scope = Some(CacheScope::Private);
        }
        Ok(listed)
    }

    /// Keeps a listener until the client or the server ends it.
    async fn keep_listener(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let inner = self.inner();
        let view = RequestView::Rmcp(context.request_context());
        let caller = self.caller(view.parts())?;
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

/// Whether the key that maps an argument to a header occurs anywhere in a part of a schema.
fn names_header(part: &Value) -> bool {
    match part {
        Value::Object(members) => {
            members.contains_key(HEADER_KEY) || members.values().any(names_header)
        }
        Value::Array(items) => items.iter().any(names_header),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
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

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        // An undeclared capability does not exist for clients. rmcp asks before every
        // request, most of which never show it, so this does not look at the files.
        let switches = switches(&self.inner().engine.registry().latest());
        if switches.prompts {
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(true);
            capabilities.prompts = Some(prompts);
        }
        if switches.resources {
            let mut resources = ResourcesCapability::default();
            resources.list_changed = Some(true);
            capabilities.resources = Some(resources);
        }
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(reply::server())
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let caller = self.caller(RequestView::Rmcp(&context).parts())?;
        let versions = self.supported_protocol_versions().into_owned();
        // First, because it looks at the files: the capabilities are then those of now.
        let instructions = self.instructions(&caller);
        let info = self.get_info().with_instructions(instructions);
        Ok(DiscoverResult::from_server_info(versions, info))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let caller = self.caller(RequestView::Rmcp(&context).parts())?;
        context.peer.set_peer_info(request.clone());
        // First, because it looks at the files: the capabilities are then those of now.
        let instructions = self.instructions(&caller);
        let info = self.negotiate_initialize(&request)?;
        Ok(info.with_instructions(instructions))
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
        self.list(cursor.as_deref(), RequestView::Rmcp(&context))
    }

    // Undeclared methods are not found, in any revision: an empty list would declare
    // them.

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        self.prompts(cursor.as_deref(), RequestView::Rmcp(&context))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        self.resources(cursor.as_deref(), RequestView::Rmcp(&context))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        self.templates(cursor.as_deref(), RequestView::Rmcp(&context))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Box::pin(self.prompt(request, RequestView::Rmcp(&context))).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Box::pin(self.read(request, RequestView::Rmcp(&context))).await
    }

    /// For the transport, which checks the headers that a schema names. Only schemas of MCP
    /// servers name any; to make another one for each call would be for nothing. The transport
    /// does not know who asks, so it learns nothing but the names of the arguments. A client
    /// knows the headers of a changed tool from a list, and every list looks at the files.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let latest = self.inner().engine.registry().latest();
        let found = latest.tool(name)?;
        found.body.server()?;
        let schema = tool::schema(&found.body, &found.usable.document);
        Some(Tool::new_with_raw(name.to_owned(), None, schema))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // On the heap: rmcp moves the future of a request several times, and every method has
        // room in it for the largest.
        Box::pin(self.call(request, RequestView::Rmcp(&context))).await
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::default();
        accepted.tools_list_changed = requested.tools_list_changed;
        let switches = self.switches();
        accepted.prompts_list_changed = requested.prompts_list_changed.filter(|_| switches.prompts);
        accepted.resources_list_changed = requested
            .resources_list_changed
            .filter(|_| switches.resources);
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.keep_listener(context).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Ok(caller) = self.caller(context.extensions.get::<Parts>()) else {
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
            Box::pin(self.record_misfit(params, RequestView::Rmcp(&context))).await?;
        }
        if matches!(method.as_str(), "tools/call" | "tools/list") {
            let message = format!("the params do not fit `{method}`");
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }
}
