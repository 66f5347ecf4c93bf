//! Asking the person at the client, in both eras.
//!
//! Legacy: the question goes out while the call is open, from the call's own task;
//! a spawned one would lose the stream it belongs to. Modern: the call ends with the
//! question and a sealed state (`request_state`), and the client comes again with both.
//! One function judges what comes back in either era, and only the engine decides what
//! it counts for.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::approve::{ApprovalAnswer, ApprovalScope, Approver, Channel, Question};
use engine::call::ElicitAnswer;
use model::govern::approval::authority;
use model::sync::lock;
use model::word::Word as _;
use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotificationParam, ClientCapabilities, ClientResult, ElicitRequest,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, ProtocolVersion,
    RequestId, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use crate::era;
use crate::limit;

/// The one field of the form.
const FIELD: &str = "answer";

/// Whether a client can show a form.
pub(crate) fn can_ask(capabilities: Option<&ClientCapabilities>) -> bool {
    let elicitation = capabilities.and_then(|all| all.elicitation.as_ref());
    // A client that names no kind means forms.
    elicitation.is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none())
}

/// Asks a client of a session and waits.
#[derive(Debug)]
pub(crate) struct Elicit {
    pub(crate) peer: Peer<RoleServer>,
    pub(crate) version: Option<ProtocolVersion>,
    pub(crate) wait: Duration,
}

impl Approver for Elicit {
    fn channel(&self) -> Channel {
        Channel::Elicitation
    }

    fn ask<'a>(
        &'a self,
        question: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        Box::pin(async move {
            let Some(form) = form(question, self.version.as_ref()) else {
                return ApprovalAnswer::Unavailable;
            };
            let asked = Instant::now();
            match self.elicit(form).await {
                Ok(result) => {
                    let reading = reading(question);
                    judge(&result, asked.elapsed(), reading, &question.scopes)
                }
                Err(ServiceError::Timeout { .. }) => ApprovalAnswer::TimedOut,
                Err(ServiceError::Cancelled { .. }) => ApprovalAnswer::Dismissed,
                Err(ServiceError::UnexpectedResponse) => ApprovalAnswer::Malformed,
                // The client went away, or says that it cannot ask after all.
                Err(_) => ApprovalAnswer::Unavailable,
            }
        })
    }
}

impl Elicit {
    /// Puts the question of an MCP server, whose tool is being called, to the same person.
    pub(crate) async fn ask_for_server(&self, form: ElicitRequestParams) -> ElicitAnswer {
        match self.elicit(form).await {
            Ok(result) => answer_of(result),
            // The client is gone, late, or cannot ask after all.
            Err(_) => ElicitAnswer::Cancel,
        }
    }

    /// Sends the form and waits for the answer.
    async fn elicit(&self, form: ElicitRequestParams) -> Result<ElicitResult, ServiceError> {
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
        let options = PeerRequestOptions::with_timeout(self.wait);
        let asking = self.peer.send_cancellable_request(request, options).await?;
        let mut open = Open {
            peer: self.peer.clone(),
            question: Some(asking.id.clone()),
        };
        let result = asking.await_response().await;
        // Answered or given up: there is nothing to withdraw.
        open.question = None;
        match result? {
            ClientResult::ElicitResult(result) => Ok(result),
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }
}

/// A person's answer to a server.
pub(super) fn answer_of(result: ElicitResult) -> ElicitAnswer {
    match result.action {
        ElicitationAction::Accept => ElicitAnswer::Accept(result.content),
        ElicitationAction::Decline => ElicitAnswer::Decline,
        _ => ElicitAnswer::Cancel,
    }
}

/// A question that a client still shows. Dropped with the call, it is withdrawn.
#[derive(Debug)]
struct Open {
    peer: Peer<RoleServer>,
    question: Option<RequestId>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let (Some(question), Ok(runtime)) = (self.question.take(), Handle::try_current()) else {
            return;
        };
        let peer = self.peer.clone();
        let reason = Some("the call no longer waits for an answer".to_owned());
        let taken_back = CancelledNotificationParam::new(Some(question), reason);
        runtime.spawn(async move {
            let bound = Duration::from_secs(limit::LIST_CHANGED_SECONDS_MAX);
            let _ = timeout(bound, peer.notify_cancelled(taken_back)).await;
        });
    }
}

/// Keeps the question until the call has ended, so that it can be its answer.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    question: Mutex<Option<Question>>,
}

impl Deferred {
    /// The question, if one came up.
    pub(crate) fn take(&self) -> Option<Question> {
        let mut question = lock(&self.question);
        question.take()
    }
}

impl Approver for Deferred {
    fn channel(&self) -> Channel {
        Channel::InputRequired
    }

    fn ask<'a>(
        &'a self,
        question: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        let mut kept = lock(&self.question);
        *kept = Some(question.clone());
        Box::pin(async { ApprovalAnswer::Deferred })
    }
}

/// Reports at once that no person saw the question, which then waits in the inbox. For
/// a client that answered faster than a person can read.
#[derive(Debug)]
pub(crate) struct Unshown;

impl Approver for Unshown {
    fn channel(&self) -> Channel {
        Channel::InputRequired
    }

    fn ask<'a>(
        &'a self,
        _: &'a Question,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        Box::pin(async { ApprovalAnswer::NotRendered })
    }
}

/// The least time a person needs to read a question.
fn reading(question: &Question) -> Duration {
    Duration::from_millis(authority::reading_ms(&question.text()))
}

/// Judges an answer, in both eras. A yes counts only if it fits the form and took as
/// long as a person needs to read.
pub(super) fn judge(
    result: &ElicitResult,
    took: Duration,
    reading: Duration,
    scopes: &[ApprovalScope],
) -> ApprovalAnswer {
    if took < reading {
        // Some clients decline by themselves, without showing the question.
        return ApprovalAnswer::NotRendered;
    }
    match result.action {
        ElicitationAction::Decline => return ApprovalAnswer::Declined,
        ElicitationAction::Cancel => return ApprovalAnswer::Dismissed,
        ElicitationAction::Accept => {}
        _ => return ApprovalAnswer::Malformed,
    }
    let members = result.content.as_ref().and_then(Value::as_object);
    let chosen = members
        // A form with other fields is not the one that was sent.
        .filter(|members| members.len() == 1)
        .and_then(|members| members.get(FIELD)?.as_str())
        .and_then(scope)
        .filter(|scope| scopes.contains(scope));
    match chosen {
        None => ApprovalAnswer::Malformed,
        Some(scope) => ApprovalAnswer::Approved(scope),
    }
}

/// The question as a form: what would run, for whom, how risky, and one choice.
pub(super) fn form(
    question: &Question,
    version: Option<&ProtocolVersion>,
) -> Option<ElicitRequestParams> {
    let words: Vec<_> = question.scopes.iter().map(|scope| scope.word()).collect();
    let titles: Vec<_> = question.scopes.iter().map(|scope| title(*scope)).collect();
    if words.is_empty() {
        return None;
    }
    let titled = version
        .is_some_and(|version| era::is_at_least(version.as_str(), &ProtocolVersion::V_2025_11_25));
    let field = if titled {
        let choice = |(word, title): (&&str, &&str)| json!({"const": word, "title": title});
        let choices: Vec<_> = words.iter().zip(&titles).map(choice).collect();
        json!({"type": "string", "title": "Approve", "oneOf": choices})
    } else {
        // Older revisions know no titles in the choices themselves.
        json!({"type": "string", "title": "Approve", "enum": words, "enumNames": titles})
    };
    let schema = json!({"type": "object", "properties": {FIELD: field}, "required": [FIELD]});
    let schema: Map<String, Value> = schema.as_object()?.clone();
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question.text(),
        requested_schema: ElicitationSchema::from_json_schema(schema).ok()?,
    })
}

fn title(scope: ApprovalScope) -> &'static str {
    match scope {
        ApprovalScope::Once => "This call only",
        ApprovalScope::SameArguments => "This tool with these arguments, for a while",
        ApprovalScope::Session => "This tool, for this session",
        ApprovalScope::UntilChanged => "This tool, until it changes",
    }
}

pub(super) fn scope(word: &str) -> Option<ApprovalScope> {
    let mut all = [
        ApprovalScope::Once,
        ApprovalScope::SameArguments,
        ApprovalScope::Session,
        ApprovalScope::UntilChanged,
    ]
    .into_iter();
    all.find(|scope| scope.word() == word)
}

/// How the person at the client is asked about a call.
#[derive(Clone, Debug)]
pub(crate) enum AskVia {
    /// While the call is open, as legacy clients are.
    Now(Arc<Elicit>),
    /// By ending the call with the question, as modern clients are.
    Later(Arc<Deferred>),
    /// The client was asked and showed the question to no person.
    Unshown,
    /// Not through this client.
    None,
}

impl AskVia {
    /// The approver for the engine.
    pub(crate) fn approver(&self) -> Option<Arc<dyn Approver>> {
        match self {
            AskVia::Now(elicit) => Some(Arc::clone(elicit) as Arc<dyn Approver>),
            AskVia::Later(deferred) => Some(Arc::clone(deferred) as Arc<dyn Approver>),
            AskVia::Unshown => Some(Arc::new(Unshown)),
            AskVia::None => None,
        }
    }

    /// The question the call ended with.
    pub(crate) fn question(&self) -> Option<Question> {
        match self {
            AskVia::Later(deferred) => deferred.take(),
            AskVia::Now(_) | AskVia::Unshown | AskVia::None => None,
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
