//! Invoke: one call of one tool, for clients that do not write scripts. It is a call
//! like any other, with this one as its parent.

use model::govern::pattern;
use model::reason::Reason;
use model::record::outcome::CallError;
use model::text;
use serde_json::{Value, json};

use crate::native::is_self_reference;
use crate::refusal::CallRefusal;
use crate::request::ParentCall;
use crate::run::RunResult;
use crate::work::Work;

pub(crate) async fn run(work: &Work<'_>) -> Result<RunResult, CallRefusal> {
    let name = work.arguments.get("tool").and_then(Value::as_str);
    let name = name.unwrap_or_default();
    if let Some(refusal) = refusal(work, name) {
        return Err(refusal);
    }
    let input = work.arguments.get("input").cloned();
    let input = input.unwrap_or_else(|| json!({}));
    let mut request = work.request.child(name, input);
    request.parent = Some(ParentCall::new(work.call_id));
    request.trace = work.request.trace_below(work.call_id);
    // A call within a call: the compiler cannot size it otherwise.
    let outcome = Box::pin(work.engine.call(request)).await.into_inner();
    let error = outcome.error.map(|error| match error.reason {
        // That would say that invoke itself is not there.
        Reason::ToolUnknown => CallError::new(Reason::ToolNotExposed, error.message),
        _ => error,
    });
    Ok(RunResult {
        status: outcome.status,
        value: outcome.value,
        relayed: outcome.relayed,
        error,
        console: outcome.console,
        usage: None,
    })
}

/// What invoke itself does not do. Only of a tool the caller may call is it said that
/// it is not on the list; of others the call says what it says of all.
fn refusal(work: &Work<'_>, name: &str) -> Option<CallRefusal> {
    let refused = |message: String| {
        let error = CallError::new(Reason::ToolNotExposed, message);
        Some(CallRefusal::new(error))
    };
    if is_self_reference(name) {
        return refused(
            "code mode tools cannot be called through codecall_invoke; call them directly"
                .to_owned(),
        );
    }
    let allowed = &work.now.config.codecall.invoke;
    if pattern::first(allowed, name).is_some() {
        return None;
    }
    work.reach(&work.request.child(name, Value::Null)).ok()?;
    refused(format!(
        "`{}` is not among the tools codecall_invoke may call; use a script",
        text::elided(name, 200)
    ))
}
