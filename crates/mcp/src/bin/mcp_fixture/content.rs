//! Tools whose answer never changes, and those that talk while they work.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ErrorData, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::server::{Fixture, typed};

/// One red pixel.
pub(crate) const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";

/// A millisecond of silence.
const SOUND: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";

/// Between two messages of a tool that talks.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) fn text(text: &str) -> Result<CallToolResult, ErrorData> {
    complete(json!([{"type": "text", "text": text}]))
}

pub(crate) fn complete(content: Value) -> Result<CallToolResult, ErrorData> {
    Ok(CallToolResult::success(typed(content)?))
}

pub(crate) fn failure(text: &str) -> Result<CallToolResult, ErrorData> {
    Ok(CallToolResult::error(typed(
        json!([{"type": "text", "text": text}]),
    )?))
}

pub(crate) fn picture() -> Result<CallToolResult, ErrorData> {
    complete(json!([{"type": "image", "data": PICTURE, "mimeType": "image/png"}]))
}

pub(crate) fn sound() -> Result<CallToolResult, ErrorData> {
    complete(json!([{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}]))
}

pub(crate) fn embedded() -> Result<CallToolResult, ErrorData> {
    let resource = json!({
        "uri": "test://embedded-resource",
        "mimeType": "text/plain",
        "text": "This is an embedded resource content.",
    });
    complete(json!([{"type": "resource", "resource": resource}]))
}

pub(crate) fn mixed() -> Result<CallToolResult, ErrorData> {
    let resource = json!({
        "uri": "test://mixed-content-resource",
        "mimeType": "application/json",
        "text": json!({"test": "data", "value": 123}).to_string(),
    });
    complete(json!([
        {"type": "text", "text": "Multiple content types test:"},
        {"type": "image", "data": PICTURE, "mimeType": "image/png"},
        {"type": "resource", "resource": resource},
    ]))
}

/// Says three things while it works, each only if the client wants to hear it.
pub(crate) async fn logging(
    fixture: &Fixture,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    // A client of the era without sessions asks per request, or hears nothing.
    let least = match is_modern(context) {
        true => context.meta.log_level(),
        false => Some(fixture.level()),
    };
    let wanted = least.is_some_and(|least| rank(LoggingLevel::Info) >= rank(least));
    for message in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        if wanted {
            let note = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
            context
                .peer
                .notify_logging_message(note)
                .await
                .map_err(gone)?;
        }
        // Sleeps: the messages must come apart, while the call is open.
        tokio::time::sleep(PAUSE).await;
    }
    text("Three messages were on their way.")
}

pub(crate) async fn progress(
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let token = context.meta.get_progress_token();
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = token.clone() {
            let mut note = ProgressNotificationParam::new(token, done);
            note.total = Some(100.0);
            context.peer.notify_progress(note).await.map_err(gone)?;
        }
        // Sleeps: the steps must come apart, while the call is open.
        tokio::time::sleep(PAUSE).await;
    }
    text("All of it is done.")
}

/// Whether the request is of the era without sessions.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= "2026-07-28")
}

/// What a client that left is told, by nobody.
pub(crate) fn gone(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(format!("the client could not be reached: {error}"), None)
}

fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
