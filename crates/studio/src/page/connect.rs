//! How each client connects: what `ringfence connect` prints, with a key of its own that is
//! not shown.

use engine::client_entry::{ENTRY, McpClient};
use model::word::Word as _;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ApiResult;
use crate::request::Asked;
use crate::studio::Studio;

/// How clients connect.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConnectView {
    url: String,
    clients: Vec<ClientView>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ClientView {
    id: &'static str,
    name: &'static str,
    file: &'static str,
    section: &'static str,
    kind: &'static str,
    snippet: Option<String>,
    command: String,
}

pub(crate) fn clients(studio: &Studio, _: &Asked) -> ApiResult<ConnectView> {
    let url = studio.inner.settings.mcp_url.clone();
    let view = |client: &McpClient| ClientView {
        id: client.word(),
        name: client.shown(),
        file: client.shown_file(),
        section: client.section(),
        kind: match client {
            McpClient::ClaudeCode => "command",
            McpClient::ClaudeDesktop | McpClient::Cursor | McpClient::VsCode => "json",
        },
        snippet: client.snippet(&url),
        command: format!("{ENTRY} connect {}", client.word()),
    };
    Ok(ConnectView {
        clients: McpClient::ALL.iter().map(view).collect(),
        url,
    })
}
