//! A tool, a prompt or a resource of an MCP server: the call goes on to the server, and what comes back is
//! passed on whole.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bridge::{
    ElicitAnswer, ElicitQuestion, Elicitor, ProgressSink, ReviewedTools, ServerFault, ToolCall,
    ToolResult,
};
use model::document::environment::Environment;
use model::reason::Reason;
use model::record::audit::Status;
use model::record::mask::Masker;
use model::record::outcome::{CallError, ConsoleLine, RelayedResult};
use model::trace::TraceParent;
use serde_json::{Map, Value};

use crate::engine::Engine;
use crate::powers::Powers;
use crate::refusal::CallRefusal;
use crate::request::{CallRequest, CallTarget};
use crate::run::RunResult;
use crate::server_tool::ServerTool;
use crate::servers::address::Outbound;
use crate::servers::item;
use crate::tool::ToolBody;

/// What a person is shown of a server's question.
mod form;

/// What a call of a server's tool works with.
#[derive(Debug)]
pub(crate) struct ServerCall<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) request: &'a CallRequest,
    pub(crate) tool: &'a Arc<ServerTool>,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) environment: Environment,
    pub(crate) masker: Arc<Masker>,
    /// What keeps the events of its record.
    pub(crate) powers: Arc<Powers>,
    /// Where the call stands in a trace, for the server.
    pub(crate) trace: Option<TraceParent>,
}

/// Says which server asks, so that a question cannot pass for one of ours.
#[derive(Debug)]
struct NamedElicitor {
    server: String,
    inner: Arc<dyn Elicitor>,
}

impl Elicitor for NamedElicitor {
    fn ask(
        &self,
        mut question: ElicitQuestion,
    ) -> Pin<Box<dyn Future<Output = ElicitAnswer> + Send + '_>> {
        match form::shown(&self.server, question.form) {
            Some(form) => {
                question.form = form;
                self.inner.ask(question)
            }
            None => Box::pin(async { ElicitAnswer::Decline }),
        }
    }
}

/// Why a call of a server's tool failed.
#[derive(Debug)]
enum ServerCallError {
    Fault(ServerFault),
    Changed,
}

impl From<ServerFault> for ServerCallError {
    fn from(fault: ServerFault) -> ServerCallError {
        ServerCallError::Fault(fault)
    }
}

pub(crate) async fn run(call: ServerCall<'_>) -> Result<RunResult, CallRefusal> {
    let ServerCall {
        engine,
        request,
        tool,
        arguments,
        environment,
        masker,
        powers,
        trace,
    } = call;
    let config = &tool.server;
    let progress = request.progress.clone().map(|progress| {
        ProgressSink::new(move |done, total, words| {
            progress.tell(&progress_words(done, total, words));
        })
    });
    let (kind, _) = item::kind(tool.item.key().kind);
    let tool_call = ToolCall {
        kind,
        tool: tool.definition.name.clone(),
        arguments,
        timeout: Duration::from_millis(config.call_timeout_ms),
        progress,
        elicitor: request.elicitor.clone().map(|inner| {
            Arc::new(NamedElicitor {
                server: config.name.clone(),
                inner,
            }) as Arc<dyn Elicitor>
        }),
        trace: trace.map(|trace| trace.to_string()),
    };
    let connections = engine.server_connections();
    let caller = &request.caller.name;
    // The newest settings, so that a host taken off the list is not reached again.
    let outbound = Outbound::new(engine.powers(), &engine.registry().current().config);
    let server = connections.get(
        config,
        tool.restarts,
        caller,
        &environment,
        &masker,
        &outbound,
    );
    let ran = match server {
        Ok(server) => {
            let ran = server
                .call(tool_call, |reviewed| {
                    check_unchanged(engine, request, tool, reviewed)
                })
                .await;
            // Its process answers several calls, so what ended between two of them stands
            // in the record of the later one.
            for event in server.take_connections() {
                let mut event = event.to_json();
                if let Some(members) = event.as_object_mut() {
                    members.insert("server".to_owned(), config.name.clone().into());
                }
                powers.note(event);
            }
            ran.map_err(|error| (error, server.next_attempt()))
        }
        Err(fault) => Err((ServerCallError::Fault(fault), None)),
    };
    match ran {
        Ok(result) => Ok(relay(tool, result)),
        Err((error, next_attempt)) => Err(refusal(&config.name, error, next_attempt)),
    }
}

/// Whether the tool is still what the caller was shown and the gates decided on, and this
/// very connection was shown a list that says the same.
fn check_unchanged(
    engine: &Engine,
    request: &CallRequest,
    tool: &Arc<ServerTool>,
    reviewed: &ReviewedTools,
) -> Result<(), ServerCallError> {
    let now = engine.registry().current();
    let CallTarget::Name(name) = &request.target else {
        return Err(ServerCallError::Changed);
    };
    let body = now.tool(name).map(|tool| &tool.body);
    let view = now.servers().servers().get(&tool.server.name);
    match (body, view) {
        (Some(ToolBody::Server(current)), Some(view))
            if **current == **tool && view.serves(reviewed, tool) =>
        {
            Ok(())
        }
        _ => Err(ServerCallError::Changed),
    }
}

fn progress_words(done: f64, total: Option<f64>, words: Option<&str>) -> String {
    let words = words.map(model::text::one_line);
    let words = words.map(|words| model::text::elided(&words, 200));
    let count = match total {
        Some(total) => format!("{done} of {total}"),
        None => done.to_string(),
    };
    match words {
        Some(words) => format!("{words} ({count})"),
        None => count,
    }
}

/// What a script gets is the structured result, else the one text, else the blocks.
fn script_value(result: &ToolResult) -> Value {
    if let Some(structured) = &result.structured {
        return structured.clone();
    }
    match result.content.as_slice() {
        [block] if block.get("type").and_then(Value::as_str) == Some("text") => {
            block.get("text").cloned().unwrap_or_default()
        }
        blocks => Value::Array(blocks.to_vec()),
    }
}

/// Puts the addresses of a server's resources as clients read them here, if they may.
fn show_links(tool: &ServerTool, content: &mut [Value]) {
    if !tool.server.resources || !tool.is_tool() {
        return;
    }
    for block in content {
        let uri = match block.get("type").and_then(Value::as_str) {
            Some("resource_link") => block.get_mut("uri"),
            Some("resource") => block.pointer_mut("/resource/uri"),
            _ => None,
        };
        if let Some(Value::String(uri)) = uri {
            *uri = item::shown_uri(&tool.server.name, uri);
        }
    }
}

fn relay(tool: &ServerTool, mut result: ToolResult) -> RunResult {
    show_links(tool, &mut result.content);
    let value = script_value(&result);
    // The schema speaks of results. What comes with an error need not fit it.
    let wrong = match result.is_error {
        true => None,
        false => tool.schemas.check_result(result.structured.as_ref()),
    };
    // Passed on all the same: the sender is told that the server breaks its own schema.
    let console = wrong.map(|text| ConsoleLine {
        level: "warn",
        text,
    });
    let error = result.is_error.then(|| {
        let words = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        CallError::new(Reason::ServerFailed, model::text::elided(&words, 1_000))
    });
    RunResult {
        status: match result.is_error {
            true => Status::Failed,
            false => Status::Done,
        },
        value: (!result.is_error).then_some(value),
        relayed: Some(RelayedResult {
            content: result.content,
            structured: result.structured,
        }),
        error,
        console: console.into_iter().collect(),
        usage: None,
    }
}

/// The refusal of a call that failed. One whose server failed says when that is tried again.
fn refusal(server: &str, error: ServerCallError, next_attempt: Option<Duration>) -> CallRefusal {
    let fault = match error {
        ServerCallError::Fault(fault) => fault,
        ServerCallError::Changed => {
            let message = format!(
                "the server `{server}` changed this tool; it did not run, list the tools again"
            );
            return CallRefusal::new(CallError::new(Reason::ServerChanged, message));
        }
    };
    let reason = match &fault {
        ServerFault::Waiting { .. }
        | ServerFault::Held(_)
        | ServerFault::SignInRequired
        | ServerFault::SecretsMissing(_)
        | ServerFault::Start(_)
        | ServerFault::StartTimeout(_)
        | ServerFault::Unreachable(_)
        | ServerFault::Forgotten
        | ServerFault::Closed(_) => Reason::ServerUnavailable,
        ServerFault::Protocol(_)
        | ServerFault::List(_)
        | ServerFault::TooLarge(_)
        | ServerFault::TooManyQuestions(_) => Reason::ServerProtocol,
        ServerFault::Refused { .. } => Reason::ServerRefused,
        ServerFault::Timeout(_) => Reason::ServerTimeout,
    };
    let mut message = fault.for_caller(server);
    if let Some(wait) = next_attempt.filter(|_| fault.is_failure_of_server()) {
        let seconds = wait.as_secs().max(1);
        message = format!("{message}; the next attempt is in {seconds} s");
    }
    let error = CallError {
        retryable: fault.is_passing(),
        ..CallError::new(reason, message)
    };
    let mut refusal = CallRefusal::new(error).noted(fault.to_string());
    refusal.status = Status::Failed;
    refusal
}
