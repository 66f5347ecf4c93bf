//! The messages of MCP for one call, in both eras: what a client sends, its headers over HTTP,
//! and what it is answered. The Studio calls the engine itself; these are the messages that
//! the same call has at the agents' door, for people who write or debug a client.

use engine::limit::NAME_SHOWN_CHARS_MAX;
use model::reason::Reason;
use model::record::outcome::{CallError, Outcome};
use model::text;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// The messages of one call in one era.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EraMessages {
    /// The revision of the protocol.
    revision: &'static str,
    /// What comes before the call, once for each session.
    before: Vec<Value>,
    /// Headers of the request over HTTP.
    headers: Vec<(&'static str, String)>,
    request: Value,
    response: Value,
}

/// The messages of a call, the newest era first.
pub(super) fn eras(
    tool: &str,
    arguments: &Value,
    outcome: &Outcome,
    version: &str,
) -> Vec<EraMessages> {
    let client = json!({"name": "your-client", "version": "1.0.0"});
    let modern = json!({
        "name": tool, "arguments": arguments,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": client,
        },
    });
    let initialize = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client},
    });
    let request = |params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    vec![
        EraMessages {
            revision: MODERN,
            before: Vec::new(),
            headers: vec![
                ("MCP-Protocol-Version", MODERN.to_owned()),
                ("Mcp-Method", "tools/call".to_owned()),
                ("Mcp-Name", text::one_line(tool)),
            ],
            request: request(modern),
            response: response(tool, outcome, Some(version)),
        },
        EraMessages {
            revision: LEGACY,
            before: vec![
                initialize,
                json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            ],
            headers: vec![
                ("MCP-Protocol-Version", LEGACY.to_owned()),
                (
                    "Mcp-Session-Id",
                    "as the answer to initialize says".to_owned(),
                ),
            ],
            request: request(json!({"name": tool, "arguments": arguments})),
            response: response(tool, outcome, None),
        },
    ]
}

/// The answer; `version` is our own, which the modern era hears.
fn response(tool: &str, outcome: &Outcome, version: Option<&str>) -> Value {
    match &outcome.error {
        // Denied and absent look the same at the agents' door; only here is the reason told.
        Some(error) if is_hidden(error.reason) => {
            let name = text::elided(tool, NAME_SHOWN_CHARS_MAX);
            let message = format!("there is no tool `{name}`");
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": message}})
        }
        Some(_) | None => {
            json!({"jsonrpc": "2.0", "id": 1, "result": result(outcome, version)})
        }
    }
}

/// Whether agents are told of a refusal that there is no such tool.
fn is_hidden(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::ToolUnknown
            | Reason::ToolDraft
            | Reason::ToolNotExposed
            | Reason::AccessDenied
            | Reason::LevelDenied
            | Reason::RequirementMissing
            | Reason::RequirementNotGranted
    )
}

fn result(outcome: &Outcome, version: Option<&str>) -> Value {
    let mut meta = Map::new();
    if let Some(version) = version {
        let server = json!({"name": "ringfence", "version": version});
        meta.insert("io.modelcontextprotocol/serverInfo".to_owned(), server);
    }
    let said = |text: String| json!({"type": "text", "text": text});
    let (mut content, structured) = match (&outcome.relayed, &outcome.error, &outcome.value) {
        (Some(relayed), _, _) => (relayed.content.clone(), relayed.structured.clone()),
        (None, None, value) => (vec![said(outcome.text())], value.clone()),
        (None, Some(error), value) => {
            let details = CallError {
                place: None,
                ..error.clone()
            };
            let details = details.to_json();
            meta.insert("ringfence/error".to_owned(), details.clone());
            let words = format!("{} [{}]", error.message, error.reason.code());
            match value {
                Some(value) => (vec![said(value.to_string())], Some(value.clone())),
                None => (vec![said(words)], Some(details)),
            }
        }
    };
    meta.insert("ringfence/callId".to_owned(), json!(outcome.call_id));
    content.extend(outcome.notes.iter().map(|note| said(note.clone())));
    // Before 2026-07-28 it is an object or nothing.
    let structured = structured.filter(|value| version.is_some() || value.is_object());
    let mut result = json!({"content": content});
    if let Some(members) = result.as_object_mut() {
        members.extend(structured.map(|value| ("structuredContent".to_owned(), value)));
        members.insert("isError".to_owned(), json!(outcome.error.is_some()));
        if version.is_some() {
            members.insert("resultType".to_owned(), json!("complete"));
        }
        members.insert("_meta".to_owned(), Value::Object(meta));
    }
    result
}
