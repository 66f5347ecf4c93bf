//! Questions of the era with sessions: the server asks while the call is open.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{CallToolResult, CreateMessageRequestParams, ErrorData};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::content::{failure, gone, text};
use crate::server::typed;

/// A client that never answers is given up on.
const WAIT: Duration = Duration::from_secs(20);

pub(crate) async fn sampling(
    context: &RequestContext<RoleServer>,
    prompt: &str,
) -> Result<CallToolResult, ErrorData> {
    if !declares(context, "sampling") {
        return failure("this client takes no sampling requests");
    }
    let request: CreateMessageRequestParams = typed(json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
        "maxTokens": 100,
    }))?;
    let answer = context.peer.create_message(request).await.map_err(gone)?;
    let answer = serde_json::to_value(answer).unwrap_or_default();
    let words = said(answer.get("content").unwrap_or(&Value::Null));
    text(&format!("LLM response: {words}"))
}

/// The text of one block, or of the first in a list.
pub(crate) fn said(content: &Value) -> String {
    let block = content.get(0).unwrap_or(content);
    let words = block.get("text").and_then(Value::as_str);
    words.unwrap_or_default().to_owned()
}

pub(crate) async fn name_and_address(
    context: &RequestContext<RoleServer>,
    message: &str,
) -> Result<CallToolResult, ErrorData> {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    });
    form(context, "User response", message, schema).await
}

/// A form in which every kind of field has a default.
pub(crate) async fn defaults(
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": {"type": "boolean", "default": true},
        },
        "required": [],
    });
    form(
        context,
        "Elicitation completed",
        "Please look at the defaults",
        schema,
    )
    .await
}

/// A form with every way to offer a choice.
pub(crate) async fn choices(
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let plain = ["option1", "option2", "option3"];
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": plain},
            "titledSingle": {"type": "string", "oneOf": [
                {"const": "value1", "title": "First Option"},
                {"const": "value2", "title": "Second Option"},
                {"const": "value3", "title": "Third Option"},
            ]},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
            "titledMulti": {"type": "array", "items": {"anyOf": [
                {"const": "value1", "title": "First Choice"},
                {"const": "value2", "title": "Second Choice"},
                {"const": "value3", "title": "Third Choice"},
            ]}},
        },
        "required": [],
    });
    form(context, "Elicitation completed", "Please choose", schema).await
}

async fn form(
    context: &RequestContext<RoleServer>,
    prefix: &str,
    message: &str,
    schema: Value,
) -> Result<CallToolResult, ErrorData> {
    if !declares(context, "elicitation") {
        return failure("this client takes no questions");
    }
    let request = typed(json!({"mode": "form", "message": message, "requestedSchema": schema}))?;
    let answer = context
        .peer
        .create_elicitation_with_timeout(request, Some(WAIT))
        .await
        .map_err(gone)?;
    let answer = serde_json::to_value(answer).unwrap_or_default();
    let action = answer
        .get("action")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let content = answer.get("content").unwrap_or(&Value::Null);
    text(&format!("{prefix}: action={action}, content={content}"))
}

/// Whether the client said it can do this.
pub(crate) fn declares(context: &RequestContext<RoleServer>, capability: &str) -> bool {
    let declared = serde_json::to_value(context.client_capabilities()).unwrap_or_default();
    declared
        .get(capability)
        .is_some_and(|value| !value.is_null())
}
