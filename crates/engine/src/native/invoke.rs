//! Invoke: one call of one tool, for clients that do not write scripts. It is a call
//! like any other, with this one as its parent.

use model::outcome::CallError;
use model::pattern;
use model::reason::Reason;
use model::text;
use serde_json::{Value, json};

use super::{Work, inner, is_self_reference};
use crate::offer;
use crate::record::Stop;
use crate::run::Ran;

pub(super) async fn run(work: &Work<'_>) -> Result<Ran, Stop> {
    let name = work.arguments.get("tool").and_then(Value::as_str);
    let name = name.unwrap_or_default();
    if let Some(stop) = refusal(work, name) {
        return Err(stop);
    }
    let mut request = inner(work.request, name);
    let input = work.arguments.get("input").cloned();
    request.arguments = input.unwrap_or_else(|| json!({}));
    request.parent_id = Some(work.call_id.to_owned());
    // A call within a call: the compiler cannot size it otherwise.
    let outcome = Box::pin(work.engine.call(request)).await.into_inner();
    let error = outcome.error.map(|error| match error.reason {
        // That would say that invoke itself is not there.
        Reason::ToolUnknown => CallError::new(Reason::ToolNotExposed, error.message),
        _ => error,
    });
    Ok(Ran {
        status: outcome.status,
        value: outcome.value,
        error,
        console: outcome.console,
        usage: None,
    })
}

/// What invoke itself does not do. Only of a tool the caller may call is it said that
/// it is not on the list; of others the call says what it says of all.
fn refusal(work: &Work<'_>, name: &str) -> Option<Stop> {
    let refused = |message: String| {
        let error = CallError::new(Reason::ToolNotExposed, message);
        Some(Stop::refused(error))
    };
    if is_self_reference(name) {
        return refused("the tools of code mode are called by themselves, not here".to_owned());
    }
    let allowed = &work.now.config.codecall.invoke;
    if pattern::first(allowed, name).is_some() {
        return None;
    }
    offer::reachable(work.engine, work.now, &inner(work.request, name)).ok()?;
    refused(format!(
        "`{}` is not among the tools codecall_invoke may call; use a script",
        text::elided(name, 200)
    ))
}
