//! What a server offers, fetched in a loop of our own: a hostile server may send endless pages.

use std::collections::BTreeSet;
use std::time::Duration;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, PaginatedRequestParams, ServerPeerInfo, ServerResult,
};
use rmcp::service::{Peer, RoleClient};
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::call::service_fault;
use crate::connect::ServerSettings;
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
    /// Whether it offers prompts.
    pub has_prompts: bool,
    /// Whether it offers resources.
    pub has_resources: bool,
}

/// Everything a server offers, at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenTools {
    /// What it says about itself.
    pub server: ServerIdentity,
    /// What it offers.
    pub offers: Offers,
}

/// What a server offers, as it sent it, in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offers {
    /// Its tools.
    pub tools: Vec<Value>,
    /// Its prompts, if its owner switched them on.
    pub prompts: Vec<Value>,
    /// Its resources, if its owner switched them on.
    pub resources: Vec<Value>,
    /// The templates of its resources.
    pub templates: Vec<Value>,
}

impl Offers {
    pub(crate) fn map(self, map: impl Fn(Value) -> Value) -> Offers {
        let each = |list: Vec<Value>| list.into_iter().map(&map).collect();
        Offers {
            tools: each(self.tools),
            prompts: each(self.prompts),
            resources: each(self.resources),
            templates: each(self.templates),
        }
    }
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
            has_prompts: info.capabilities.prompts.is_some(),
            has_resources: info.capabilities.resources.is_some(),
        }
    }
}

/// Which list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListKind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl ListKind {
    fn word(self) -> &'static str {
        match self {
            ListKind::Tools => "tools",
            ListKind::Prompts => "prompts",
            ListKind::Resources => "resources",
            ListKind::Templates => "templates",
        }
    }

    fn request(self, params: PaginatedRequestParams) -> ClientRequest {
        match self {
            ListKind::Tools => {
                ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params))
            }
            ListKind::Prompts => {
                ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params))
            }
            ListKind::Resources => {
                ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params))
            }
            ListKind::Templates => ClientRequest::ListResourceTemplatesRequest(
                ListResourceTemplatesRequest::with_param(params),
            ),
        }
    }

    /// The items of a page and where the next one begins.
    fn page(self, result: ServerResult) -> Result<(Vec<Value>, Option<String>), ServerFault> {
        match (self, result) {
            (ListKind::Tools, ServerResult::ListToolsResult(page)) => {
                Ok((values(page.tools)?, page.next_cursor))
            }
            (ListKind::Prompts, ServerResult::ListPromptsResult(page)) => {
                Ok((values(page.prompts)?, page.next_cursor))
            }
            (ListKind::Resources, ServerResult::ListResourcesResult(page)) => {
                Ok((values(page.resources)?, page.next_cursor))
            }
            (ListKind::Templates, ServerResult::ListResourceTemplatesResult(page)) => {
                Ok((values(page.resource_templates)?, page.next_cursor))
            }
            _ => Err(ServerFault::List("it is not a list".to_owned())),
        }
    }
}

fn values<T: Serialize>(items: Vec<T>) -> Result<Vec<Value>, ServerFault> {
    let values = items.into_iter().map(serde_json::to_value);
    let values: Result<Vec<_>, _> = values.collect();
    values.map_err(|error| ServerFault::List(error.to_string()))
}

/// Fetches what a server offers and its owner wants to see.
pub(crate) async fn fetch(
    peer: &Peer<RoleClient>,
    server: &ServerIdentity,
    settings: &ServerSettings,
) -> Result<Offers, ServerFault> {
    let most = Duration::from_millis(limit::SERVER_LIST_MS_MAX);
    let fetching = async {
        // One count for all lists: four lists at their bound would be four times too much.
        let mut bytes = 0;
        let mut offers = Offers::default();
        if server.has_tools {
            offers.tools = pages(peer, ListKind::Tools, &mut bytes).await?;
        }
        if settings.prompts && server.has_prompts {
            offers.prompts = pages(peer, ListKind::Prompts, &mut bytes).await?;
        }
        if settings.resources && server.has_resources {
            offers.resources = pages(peer, ListKind::Resources, &mut bytes).await?;
            offers.templates = match pages(peer, ListKind::Templates, &mut bytes).await {
                // Resources without templates are common.
                Err(ServerFault::Refused { code: -32601, .. }) => Vec::new(),
                fetched => fetched?,
            };
        }
        Ok(offers)
    };
    match timeout(most, fetching).await {
        Ok(listed) => listed,
        Err(_) => Err(ServerFault::List(format!(
            "it took longer than {} s",
            most.as_secs()
        ))),
    }
}

async fn pages(
    peer: &Peer<RoleClient>,
    kind: ListKind,
    bytes: &mut usize,
) -> Result<Vec<Value>, ServerFault> {
    let mut items = Vec::new();
    let mut seen = BTreeSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..limit::SERVER_LIST_PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        // Not `Peer::list_tools`: it caches, and serves an old page when the server fails.
        let result = peer.send_request(kind.request(params)).await;
        let (page, next) = kind.page(result.map_err(|error| service_fault(&error))?)?;
        for item in page {
            *bytes += item.to_string().len();
            if *bytes > limit::SERVER_LIST_BYTES_MAX {
                let most = limit::SERVER_LIST_BYTES_MAX >> 20;
                return Err(ServerFault::List(format!("it is larger than {most} MiB")));
            }
            items.push(item);
            if items.len() > limit::SERVER_TOOLS_MAX {
                let (most, what) = (limit::SERVER_TOOLS_MAX, kind.word());
                return Err(ServerFault::List(format!("it has more than {most} {what}")));
            }
        }
        let Some(next) = next else {
            return Ok(items);
        };
        if next.len() > limit::SERVER_CURSOR_BYTES_MAX {
            return Err(ServerFault::List("a cursor is too long".to_owned()));
        }
        // Attack: a cursor that leads back would be followed until the page limit.
        if !seen.insert(next.clone()) {
            return Err(ServerFault::List("a cursor comes twice".to_owned()));
        }
        cursor = Some(next);
    }
    let most = limit::SERVER_LIST_PAGES_MAX;
    Err(ServerFault::List(format!("it has more than {most} pages")))
}
