//! The result of a call, as clients read it.
//!
//! A result is text and, where the revision has room for it, the value itself. An
//! error is a result the model can read: one sentence, and its stable code. Only a
//! tool that does not exist for the caller is an error of the protocol.

use model::reason::Reason;
use model::record::outcome::{CallError, Outcome, RelayedResult};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, Implementation, MetaObject};
use serde_json::{Value, json};

use crate::era::Era;

/// The key under which the newest revision expects the server's name.
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// This server's name and version.
pub(crate) fn server() -> Implementation {
    let mut server = Implementation::new("ringfence", env!("CARGO_PKG_VERSION"));
    server.title = Some("Ringfence".to_owned());
    server
}

/// The metadata of a result: which server made it.
pub(crate) fn stamp(era: Era) -> MetaObject {
    let mut meta = MetaObject::new();
    if era == Era::Modern {
        let server = json!({"name": "ringfence", "version": env!("CARGO_PKG_VERSION")});
        meta.0.insert(SERVER_KEY.to_owned(), server);
    }
    meta
}

/// The answer to a call. Notes for the caller follow it, as text.
pub(crate) fn of(mut outcome: Outcome, era: Era) -> Result<CallToolResult, ErrorData> {
    let notes = std::mem::take(&mut outcome.notes);
    let mut result = answer(outcome, era)?;
    result
        .content
        .extend(notes.into_iter().map(ContentBlock::text));
    Ok(result)
}

fn answer(outcome: Outcome, era: Era) -> Result<CallToolResult, ErrorData> {
    if let Some(relayed) = outcome.relayed {
        let is_error = outcome.error.is_some();
        return Ok(relay(relayed, is_error, outcome.call_id, era));
    }
    match (outcome.error, outcome.value) {
        (None, value) => Ok(done(
            Outcome {
                error: None,
                value,
                ..outcome
            },
            era,
        )),
        (Some(error), _) if error.reason == Reason::ToolUnknown => Err(unknown(error)),
        (Some(error), None) => Ok(failed(&error, Some(outcome.call_id), era)),
        (Some(error), Some(value)) => {
            let mut result = failed(&error, Some(outcome.call_id), era);
            // A script that failed says more than one sentence.
            result.content = vec![ContentBlock::text(value.to_string())];
            result.structured_content = Some(value);
            Ok(result)
        }
    }
}

/// The result of an MCP server, with our call id.
fn relay(relayed: RelayedResult, is_error: bool, call_id: String, era: Era) -> CallToolResult {
    let blocks = relayed.content.into_iter();
    // Masking keeps the shape, unless a secret was the name of a type.
    let blocks = blocks.filter_map(|block| serde_json::from_value(block).ok());
    let blocks: Vec<ContentBlock> = blocks.collect();
    let mut result = match is_error {
        true => CallToolResult::error(blocks),
        false => CallToolResult::success(blocks),
    };
    result.structured_content = match (era, relayed.structured) {
        (Era::Legacy, Some(Value::Object(members))) => Some(Value::Object(members)),
        (Era::Legacy, _) => None,
        (Era::Modern, structured) => structured,
    };
    let mut meta = stamp(era);
    meta.0.insert("ringfence/callId".to_owned(), call_id.into());
    result.meta = Some(meta);
    result
}

fn done(outcome: Outcome, era: Era) -> CallToolResult {
    let text = outcome.text();
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = match (era, outcome.value) {
        (Era::Modern, value) => value,
        // Before 2026-07-28 it is an object or nothing.
        (Era::Legacy, Some(Value::Object(members))) => Some(Value::Object(members)),
        (Era::Legacy, _) => None,
    };
    let mut meta = stamp(era);
    meta.0
        .insert("ringfence/callId".to_owned(), outcome.call_id.into());
    result.meta = Some(meta);
    result
}

/// A refused or failed call. The model is told why, and what helps.
pub(crate) fn failed(error: &CallError, call_id: Option<String>, era: Era) -> CallToolResult {
    let code = error.reason.code();
    let text = format!("{} [{code}]", error.message);
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    // Where in its code a tool threw is for its author.
    let details = CallError {
        place: None,
        ..error.clone()
    };
    let details = details.to_json();
    let mut meta = stamp(era);
    meta.0.insert("ringfence/error".to_owned(), details.clone());
    if let Some(call_id) = call_id {
        meta.0.insert("ringfence/callId".to_owned(), call_id.into());
    }
    result.structured_content = Some(details);
    result.meta = Some(meta);
    result
}

/// Denied and absent look the same, to the byte: no call id, no detail.
fn unknown(error: CallError) -> ErrorData {
    ErrorData::invalid_params(error.message, None)
}

#[cfg(test)]
mod tests {
    use model::record::outcome::{Advice, Retry};

    use super::*;

    #[test]
    fn a_denial_tells_the_rule_and_what_would_help() {
        let advice = Advice {
            rule: Some("big".to_owned()),
            remedy: Some("less".to_owned()),
            retry: Retry::Changed,
        };
        let error = CallError::new(Reason::RuleDenied, "too much").advised(Some(advice));
        let result = failed(&error, None, Era::Legacy);
        let expected = json!({
            "code": "rule.denied", "message": "too much", "retryable": false,
            "rule": "big", "remedy": "less", "retry": "changed",
        });
        assert_eq!(result.structured_content, Some(expected));
        assert_eq!(result.is_error, Some(true));
    }

    #[test]
    fn where_a_tool_threw_is_for_its_author() {
        let error = CallError {
            place: Some((2, 7)),
            ..CallError::new(Reason::ToolThrew, "no")
        };
        let result = failed(&error, None, Era::Modern);
        let expected = json!({"code": "tool.threw", "message": "no", "retryable": false});
        assert_eq!(result.structured_content, Some(expected));
    }
}
