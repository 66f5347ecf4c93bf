//! The list of tools, in a loop of our own: a hostile server may send pages for ever.

use std::collections::BTreeSet;
use std::time::Duration;

use rmcp::model::{
    ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerPeerInfo, ServerResult,
};
use rmcp::service::{Peer, RoleClient};
use serde_json::Value;
use tokio::time::timeout;

use crate::call::service_fault;
use crate::fault::ServerFault;
use crate::limit;

/// What a server says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    /// Its name, if it gives one.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// What it tells models about itself.
    pub instructions: Option<String>,
    /// The revision of the protocol that was agreed on.
    pub protocol: String,
    /// Whether it offers tools at all.
    pub has_tools: bool,
}

/// Everything a server offers, at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenTools {
    /// What it says about itself.
    pub server: ServerIdentity,
    /// Its tools as it sent them, in its order.
    pub tools: Vec<Value>,
}

impl ServerIdentity {
    pub(crate) fn of(info: &ServerPeerInfo) -> ServerIdentity {
        let implementation = info.server_info.as_ref();
        ServerIdentity {
            name: implementation.map(|server| server.name.clone()),
            version: implementation.map(|server| server.version.clone()),
            instructions: info.instructions.clone(),
            protocol: info.protocol_version.to_string(),
            has_tools: info.capabilities.tools.is_some(),
        }
    }
}

/// Fetches the whole list.
pub(crate) async fn fetch(peer: &Peer<RoleClient>) -> Result<Vec<Value>, ServerFault> {
    let most = Duration::from_millis(limit::SERVER_LIST_MS_MAX);
    match timeout(most, pages(peer)).await {
        Ok(listed) => listed,
        Err(_) => Err(ServerFault::List(format!(
            "it took longer than {} s",
            most.as_secs()
        ))),
    }
}

async fn pages(peer: &Peer<RoleClient>) -> Result<Vec<Value>, ServerFault> {
    let mut tools = Vec::new();
    let mut bytes = 0;
    let mut seen = BTreeSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..limit::SERVER_LIST_PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        // Not `Peer::list_tools`: it caches, and serves an old page when the server fails.
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let result = peer.send_request(request).await;
        let page = match result.map_err(|error| service_fault(&error))? {
            ServerResult::ListToolsResult(page) => page,
            _ => return Err(ServerFault::List("it is not a list".to_owned())),
        };
        for tool in page.tools {
            let tool =
                serde_json::to_value(tool).map_err(|error| ServerFault::List(error.to_string()))?;
            bytes += tool.to_string().len();
            if bytes > limit::SERVER_LIST_BYTES_MAX {
                let most = limit::SERVER_LIST_BYTES_MAX >> 20;
                return Err(ServerFault::List(format!("it is larger than {most} MiB")));
            }
            tools.push(tool);
            if tools.len() > limit::SERVER_TOOLS_MAX {
                let most = limit::SERVER_TOOLS_MAX;
                return Err(ServerFault::List(format!("it has more than {most} tools")));
            }
        }
        let Some(next) = page.next_cursor else {
            return Ok(tools);
        };
        if next.len() > limit::SERVER_CURSOR_BYTES_MAX {
            return Err(ServerFault::List("a cursor is too long".to_owned()));
        }
        if !seen.insert(next.clone()) {
            return Err(ServerFault::List("a cursor comes twice".to_owned()));
        }
        cursor = Some(next);
    }
    let most = limit::SERVER_LIST_PAGES_MAX;
    Err(ServerFault::List(format!("it has more than {most} pages")))
}
