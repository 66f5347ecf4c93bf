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
use crate::client::Calls;
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

    fn page(self, result: ServerResult) -> Result<Page, ServerFault> {
        let (items, next, ttl_ms) = match (self, result) {
            (ListKind::Tools, ServerResult::ListToolsResult(page)) => {
                (values(page.tools)?, page.next_cursor, page.ttl_ms)
            }
            (ListKind::Prompts, ServerResult::ListPromptsResult(page)) => {
                (values(page.prompts)?, page.next_cursor, page.ttl_ms)
            }
            (ListKind::Resources, ServerResult::ListResourcesResult(page)) => {
                (values(page.resources)?, page.next_cursor, page.ttl_ms)
            }
            (ListKind::Templates, ServerResult::ListResourceTemplatesResult(page)) => (
                values(page.resource_templates)?,
                page.next_cursor,
                page.ttl_ms,
            ),
            _ => return Err(ServerFault::List("it is not a list".to_owned())),
        };
        Ok(Page {
            items,
            next,
            ttl_ms,
        })
    }
}

/// A part of a list.
struct Page {
    items: Vec<Value>,
    /// Where the next one begins.
    next: Option<String>,
    /// For how long the server says that it holds.
    ttl_ms: Option<u64>,
}

/// What all lists of one fetch have in common.
#[derive(Debug, Default)]
struct Fetching {
    /// One count for all lists: four lists at their bound would be four times too much.
    bytes: usize,
    /// The least that a page holds.
    ttl_ms: Option<u64>,
}

impl Fetching {
    fn note_ttl(&mut self, ttl_ms: Option<u64>) {
        // Nothing said is no promise; the bound of all lists holds then.
        self.ttl_ms = match (self.ttl_ms, ttl_ms) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    fn count(&mut self, item: &Value) -> Result<(), ServerFault> {
        self.bytes += item.to_string().len();
        if self.bytes > limit::SERVER_LIST_BYTES_MAX {
            let most = limit::SERVER_LIST_BYTES_MAX >> 20;
            return Err(ServerFault::List(format!("it is larger than {most} MiB")));
        }
        Ok(())
    }
}

/// For how long a list counts as current at a server that does not tell of changes.
fn age(ttl_ms: Option<u64>) -> Duration {
    let most = limit::SERVER_LIST_AGE_MS_MAX;
    // Attack: a server that names no time at all would be asked before every call.
    let ms = ttl_ms
        .unwrap_or(most)
        .clamp(limit::SERVER_LIST_AGE_MS_MIN, most);
    Duration::from_millis(ms)
}

fn values<T: Serialize>(items: Vec<T>) -> Result<Vec<Value>, ServerFault> {
    let values = items.into_iter().map(serde_json::to_value);
    let values: Result<Vec<_>, _> = values.collect();
    values.map_err(|error| ServerFault::List(error.to_string()))
}

/// Fetches what a server offers and its owner wants to see, and for how long that counts.
pub(crate) async fn fetch(
    (peer, calls): (&Peer<RoleClient>, &Calls),
    server: &ServerIdentity,
    settings: &ServerSettings,
) -> Result<(Offers, Duration), ServerFault> {
    let most = Duration::from_millis(limit::SERVER_LIST_MS_MAX);
    let mut losses = calls.faults().losses();
    let fetching = async {
        let mut all = Fetching::default();
        let mut offers = Offers::default();
        if server.has_tools {
            offers.tools = pages(peer, ListKind::Tools, &mut all).await?;
        }
        if settings.prompts && server.has_prompts {
            offers.prompts = pages(peer, ListKind::Prompts, &mut all).await?;
        }
        if settings.resources && server.has_resources {
            offers.resources = pages(peer, ListKind::Resources, &mut all).await?;
            offers.templates = match pages(peer, ListKind::Templates, &mut all).await {
                // Resources without templates are common.
                Err(ServerFault::Refused { code: -32601, .. }) => Vec::new(),
                fetched => fetched?,
            };
        }
        Ok((offers, age(all.ttl_ms)))
    };
    let fetched = tokio::select! {
        fetched = timeout(most, fetching) => fetched,
        // Without a call, what was lost can only be a page.
        () = calls.wait_for_loss(&mut losses, 0) => {
            let most = limit::SERVER_LINE_BYTES_MAX >> 20;
            let what = format!("it is in a message of more than {most} MiB");
            return Err(ServerFault::List(what));
        }
    };
    match fetched {
        Ok(listed) => listed.map_err(|fault| calls.faults().explain(fault)),
        Err(_) => Err(ServerFault::List(format!(
            "it took longer than {} s",
            most.as_secs()
        ))),
    }
}

async fn pages(
    peer: &Peer<RoleClient>,
    kind: ListKind,
    all: &mut Fetching,
) -> Result<Vec<Value>, ServerFault> {
    let mut items = Vec::new();
    let mut seen = BTreeSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..limit::SERVER_LIST_PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        // Not `Peer::list_tools`: it caches, and serves an old page when the server fails.
        let result = peer.send_request(kind.request(params)).await;
        let page = kind.page(result.map_err(|error| service_fault(&error))?)?;
        all.note_ttl(page.ttl_ms);
        for item in page.items {
            all.count(&item)?;
            items.push(item);
            if items.len() > limit::SERVER_TOOLS_MAX {
                let (most, what) = (limit::SERVER_TOOLS_MAX, kind.word());
                return Err(ServerFault::List(format!("it has more than {most} {what}")));
            }
        }
        let Some(next) = page.next else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_current_within_bounds_whatever_the_server_says() {
        let seconds = |ttl_ms| age(ttl_ms).as_secs();
        assert_eq!(seconds(None), 30);
        assert_eq!(seconds(Some(0)), 10);
        assert_eq!(seconds(Some(20_000)), 20);
        assert_eq!(seconds(Some(u64::MAX)), 30);
        let mut all = Fetching::default();
        for ttl_ms in [None, Some(40), None, Some(20), Some(30)] {
            all.note_ttl(ttl_ms);
        }
        assert_eq!(all.ttl_ms, Some(20));
    }
}
