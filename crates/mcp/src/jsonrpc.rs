//! Errors of JSON-RPC that the transports write themselves, because rmcp never sees
//! those messages.

use serde_json::{Value, json};

/// The body is not JSON.
pub(crate) const PARSE: i64 = -32700;
/// The JSON is not a message.
pub(crate) const INVALID: i64 = -32600;
/// Ours: the transport refuses.
pub(crate) const TRANSPORT: i64 = -32000;
/// The code by which clients recognise an unknown session.
pub(crate) const NO_SESSION: i64 = -32001;
/// Headers contradict each other or the body.
pub(crate) const HEADER_MISMATCH: i64 = -32020;

/// An error as a message.
pub(crate) fn error(code: i64, message: &str, id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// Bytes that are not a message, and why.
#[derive(Debug)]
pub(crate) struct BadMessage {
    pub(crate) code: i64,
    pub(crate) sentence: &'static str,
    pub(crate) id: Value,
    /// It has a method and no id, so that it is not to be answered.
    pub(crate) is_notification: bool,
}

impl BadMessage {
    /// Why bytes are not a message: not JSON, a batch, or something else.
    pub(crate) fn of(bytes: &[u8]) -> BadMessage {
        let no = |code, sentence| BadMessage {
            code,
            sentence,
            id: Value::Null,
            is_notification: false,
        };
        match serde_json::from_slice::<Value>(bytes) {
            Err(_) => no(PARSE, "the request is not JSON"),
            Ok(Value::Array(_)) => no(
                INVALID,
                "batches are not supported; send one message at a time",
            ),
            Ok(value) => {
                let id = value.get("id");
                let has_method = value.get("method").is_some_and(Value::is_string);
                BadMessage {
                    is_notification: id.is_none() && has_method,
                    id: id
                        // The answer repeats it, so it must be one that JSON-RPC allows.
                        .filter(|id| id.is_string() || id.is_number())
                        .cloned()
                        .unwrap_or_default(),
                    ..no(INVALID, "the request is not a JSON-RPC 2.0 message")
                }
            }
        }
    }
}
