//! Prompts and resources of MCP servers, where their owner switched them on. Each is
//! called through the engine like a tool; here they get the shape of their own methods.

use engine::callable::CallableTool;
use engine::registry::Snapshot;
use engine::servers::item::{own_uri, prompt_target, shown_uri};
use model::reason::Reason;
use model::record::outcome::Outcome;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, ErrorCode, GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ReadResourceRequestMethod, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::McpServer;
use super::operate::{Operated, Operation};
use crate::era::Era;
use crate::limit;
use crate::protocol::view::RequestView;
use crate::protocol::{item, reply};

/// How cursors of these lists begin.
const CURSOR: &str = "item-after:";

/// Which items beside tools the servers of the settings may offer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ItemSwitches {
    pub(super) prompts: bool,
    pub(super) resources: bool,
}

/// One page of a list: its items, and where the next begins.
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
}

impl McpServer {
    /// The items that the owner switched on for any server.
    pub(super) fn switches(&self) -> ItemSwitches {
        switches(&self.inner().engine.registry().current())
    }

    /// One page of the items that `show` knows.
    fn items<T>(
        &self,
        cursor: Option<&str>,
        view: RequestView<'_>,
        show: impl Fn(&CallableTool) -> Option<T>,
    ) -> Result<Page<T>, ErrorData> {
        let caller = self.caller(view.parts())?;
        // A list waits in memory until it is read, as an answer does.
        if !self.inner().unsent.has_room(&caller.name) {
            let message = "you have not read earlier answers; read them, then ask again";
            return Err(ErrorData::new(ErrorCode(-32000), message, None));
        }
        let offered = self.inner().engine.server_items(&caller);
        let shown = offered.iter().filter_map(|item| {
            let name = item.usable.document.name.clone();
            Some((name, show(item)?))
        });
        page(shown, cursor)
    }

    pub(super) fn prompts(
        &self,
        cursor: Option<&str>,
        view: RequestView<'_>,
    ) -> Result<ListPromptsResult, ErrorData> {
        if !self.switches().prompts {
            return Err(ErrorData::method_not_found::<ListPromptsRequestMethod>());
        }
        let page = self.items(cursor, view, item::prompt)?;
        let mut listed = ListPromptsResult::with_all_items(page.items);
        listed.next_cursor = page.next;
        if view.era() == Era::Modern {
            listed.meta = Some(reply::stamp(Era::Modern));
            listed.ttl_ms = Some(0);
            listed.cache_scope = Some(CacheScope::Private);
        }
        Ok(listed)
    }

    pub(super) fn resources(
        &self,
        cursor: Option<&str>,
        view: RequestView<'_>,
    ) -> Result<ListResourcesResult, ErrorData> {
        if !self.switches().resources {
            return Err(ErrorData::method_not_found::<ListResourcesRequestMethod>());
        }
        let page = self.items(cursor, view, item::resource)?;
        let mut listed = ListResourcesResult::with_all_items(page.items);
        listed.next_cursor = page.next;
        if view.era() == Era::Modern {
            listed.meta = Some(reply::stamp(Era::Modern));
            listed.ttl_ms = Some(0);
            listed.cache_scope = Some(CacheScope::Private);
        }
        Ok(listed)
    }

    pub(super) fn templates(
        &self,
        cursor: Option<&str>,
        view: RequestView<'_>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        if !self.switches().resources {
            return Err(ErrorData::method_not_found::<
                ListResourceTemplatesRequestMethod,
            >());
        }
        let page = self.items(cursor, view, item::template)?;
        let mut listed = ListResourceTemplatesResult::with_all_items(page.items);
        listed.next_cursor = page.next;
        if view.era() == Era::Modern {
            listed.meta = Some(reply::stamp(Era::Modern));
            listed.ttl_ms = Some(0);
            listed.cache_scope = Some(CacheScope::Private);
        }
        Ok(listed)
    }

    /// One attempt at a prompt.
    pub(super) async fn prompt(
        &self,
        request: GetPromptRequestParams,
        view: RequestView<'_>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if !self.switches().prompts {
            return Err(ErrorData::method_not_found::<GetPromptRequestMethod>());
        }
        let operation = Operation {
            name: prompt_target(&request.name),
            arguments: Value::Object(request.arguments.unwrap_or_default()),
            state: request.request_state,
            responses: request.input_responses,
        };
        match self.operate(operation, view).await? {
            Operated::Asks(required) => Ok(required.into()),
            Operated::Ended(mut outcome, slot) => {
                self.hold_reply(&mut outcome, slot, view)?;
                let era = view.era();
                let absent = ErrorData::invalid_params("there is no such prompt", None);
                let mut result: GetPromptResult = read(*outcome, era, absent)?;
                result.meta = Some(reply::stamp(era));
                Ok(result.into())
            }
        }
    }

    /// One attempt at a resource.
    pub(super) async fn read(
        &self,
        request: ReadResourceRequestParams,
        view: RequestView<'_>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if !self.switches().resources {
            return Err(ErrorData::method_not_found::<ReadResourceRequestMethod>());
        }
        let raw_uri = request.uri;
        let (name, server, uri) = self.reader(&raw_uri);
        let operation = Operation {
            name,
            arguments: json!({"uri": uri}),
            state: request.request_state,
            responses: request.input_responses,
        };
        match self.operate(operation, view).await? {
            Operated::Asks(required) => Ok(required.into()),
            Operated::Ended(mut outcome, slot) => {
                self.hold_reply(&mut outcome, slot, view)?;
                let era = view.era();
                // The newest revision has no code of its own for a resource that is not there.
                let code = match era {
                    Era::Legacy => ErrorCode::RESOURCE_NOT_FOUND,
                    Era::Modern => ErrorCode::INVALID_PARAMS,
                };
                let about = json!({"uri": raw_uri});
                let absent = ErrorData::new(code, "there is no such resource", Some(about));
                if let Some(relayed) = &mut outcome.relayed
                    && let Some(value) = &mut relayed.structured
                {
                    show_uris(value, &server);
                }
                let mut result: ReadResourceResult = read(*outcome, era, absent)?;
                result.meta = Some(reply::stamp(era));
                if era == Era::Modern {
                    result.ttl_ms = Some(0);
                    result.cache_scope = Some(CacheScope::Private);
                }
                Ok(result.into())
            }
        }
    }

    /// The tool that reads a URI, its server and the server's own URI. For an unknown
    /// URI the tool is the URI itself, so that the attempt is recorded.
    fn reader(&self, raw_uri: &str) -> (String, String, String) {
        let now = self.inner().engine.registry().current();
        let (server, uri) = own_uri(raw_uri).unwrap_or(("", raw_uri));
        let name = now.servers().reader_of(server, uri);
        let name = name.map_or_else(|| raw_uri.to_owned(), str::to_owned);
        (name, server.to_owned(), uri.to_owned())
    }
}

/// One page of items in the order of their names.
fn page<T>(
    items: impl Iterator<Item = (String, T)>,
    cursor: Option<&str>,
) -> Result<Page<T>, ErrorData> {
    let after = match cursor.map(|cursor| cursor.strip_prefix(CURSOR)) {
        None => "",
        Some(Some(after)) if (1..=limit::CURSOR_CHARS_MAX).contains(&after.len()) => after,
        Some(_) => {
            return Err(ErrorData::invalid_params(
                "the cursor is not valid; use `nextCursor` of the page before",
                None,
            ));
        }
    };
    // By name, not by number: an item that comes or goes meanwhile moves no page.
    let mut rest = items.skip_while(|(name, _)| name.as_str() <= after);
    let shown = rest.by_ref().take(limit::TOOLS_PAGE_MAX);
    let (names, items): (Vec<_>, Vec<_>) = shown.unzip();
    let last = names.last().filter(|_| rest.next().is_some());
    Ok(Page {
        next: last.map(|name| format!("{CURSOR}{name}")),
        items,
    })
}

/// The items that the owner switched on for any server of a snapshot.
pub(super) fn switches(now: &Snapshot) -> ItemSwitches {
    let mut switches = ItemSwitches::default();
    for view in now.servers().servers().values() {
        switches.prompts |= view.config.prompts;
        switches.resources |= view.config.resources;
    }
    switches
}

/// The result of a prompt or a resource, or why there is none.
fn read<T: DeserializeOwned>(
    outcome: Outcome,
    era: Era,
    absent: ErrorData,
) -> Result<T, ErrorData> {
    let Outcome {
        error,
        relayed,
        call_id,
        ..
    } = outcome;
    if let Some(error) = error {
        // Denied and absent look the same, to the byte: no call id, no detail.
        if error.reason == Reason::ToolUnknown {
            return Err(absent);
        }
        let code = match error.reason {
            Reason::ArgumentSchema | Reason::ArgumentType => ErrorCode::INVALID_PARAMS,
            _ => ErrorCode(-32000),
        };
        let data = json!({"code": error.reason.code(), "callId": call_id});
        let message = format!("{} [{}]", error.message, error.reason.code());
        return Err(ErrorData::new(code, message, Some(data)));
    }
    let structured = relayed.and_then(|relayed| relayed.structured);
    let mut structured = structured.unwrap_or_default();
    // The newest revision wants an explicit mark that the result is complete.
    if let (Era::Modern, Value::Object(members)) = (era, &mut structured) {
        members.insert("resultType".to_owned(), "complete".into());
    }
    serde_json::from_value(structured)
        .map_err(|_| ErrorData::internal_error("the server's reply does not fit the request", None))
}

/// Rewrites the URIs of a server's contents to those that clients use.
fn show_uris(value: &mut Value, server: &str) {
    let contents = value.get_mut("contents").and_then(Value::as_array_mut);
    for content in contents.into_iter().flatten() {
        if let Some(Value::String(uri)) = content.get_mut("uri") {
            *uri = shown_uri(server, uri);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items by their numbers, as a server of one name has them.
    fn items(numbers: impl Iterator<Item = usize>) -> impl Iterator<Item = (String, usize)> {
        numbers.map(|number| (format!("a__prompt.{number:04}"), number))
    }

    /// Items that come or go between two pages neither hide an item nor show it twice.
    #[test]
    fn a_page_goes_on_where_the_one_before_ended() {
        let most = limit::TOOLS_PAGE_MAX;
        let all = 2 * most + 1;
        let first = page(items(1..all), None).unwrap();
        assert_eq!(first.items, Vec::from_iter(1..=most));
        for (what, now) in [
            ("as it was", Vec::from_iter(1..all)),
            ("one before went", Vec::from_iter(2..all)),
            ("the last one went", {
                Vec::from_iter((1..all).filter(|number| *number != most))
            }),
            ("one before came", Vec::from_iter(0..all)),
        ] {
            let second = page(items(now.into_iter()), first.next.as_deref()).unwrap();
            assert_eq!(second.items, Vec::from_iter(most + 1..all), "{what}");
            assert_eq!(second.next, None, "{what}");
        }
    }

    #[test]
    fn a_cursor_that_no_page_gave_is_refused() {
        let overlong = format!("{CURSOR}{}", "x".repeat(limit::CURSOR_CHARS_MAX + 1));
        for cursor in ["", "x", "tool-after:a", CURSOR, overlong.as_str()] {
            assert!(page(items(1..3), Some(cursor)).is_err(), "{cursor}");
        }
    }
}
