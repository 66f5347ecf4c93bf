//! Progressive listing: a line for each tool a caller may call, the card of one, and what its
//! document ships, within the budgets of `find::progressive`.
//!
//! What a caller loaded is kept by who they are, never by connection: a client that
//! comes back, or speaks without sessions, is still the same reader.

use find::progressive::{self, Card, ListedTool, LoadedItem, Page};
use model::caller::CallerKind;
use model::document::params::ArgumentFault;
use model::document::resource;
use model::limits::{LOADED_TOKENS_MAX, NAME_CHARS_MAX};
use model::reason::Reason;
use model::record::outcome::CallError;
use model::text;
use serde::Serialize;
use serde_json::{Value, json};

use crate::callable::CallableTool;
use crate::limit;
use crate::native::refuse_arguments;
use crate::refusal::CallRefusal;
use crate::request::{CallRequest, CallTarget};
use crate::run::RunResult;
use crate::work::Work;
use model::sync::lock;

/// `list_tools`.
pub(crate) fn list(work: &Work<'_>) -> Result<RunResult, CallRefusal> {
    let category = given(work, "category");
    let cursor = given(work, "cursor").unwrap_or_default();
    if cursor.chars().count() > NAME_CHARS_MAX {
        return Err(refuse_arguments(vec![ArgumentFault {
            reason: Reason::ArgumentType,
            name: "cursor".to_owned(),
            message: "the cursor is not valid; use `nextCursor` of the page before".to_owned(),
        }]));
    }
    let mut asked = asked(work, "");
    let plain = work.now.tools().filter(|tool| tool.body.native().is_none());
    let offered: Vec<_> = plain
        .filter(|tool| {
            let own = tool.usable.document.category.as_deref();
            category.is_none_or(|wanted| own.is_some_and(|own| own.eq_ignore_ascii_case(wanted)))
        })
        .filter_map(|tool| {
            asked.target = CallTarget::Name(tool.usable.document.name.clone());
            work.reach(&asked).ok()
        })
        .collect();
    let rest = offered
        .iter()
        .filter(|offered| cursor.is_empty() || offered.usable.document.name.as_str() > cursor);
    let entries = rest.map(|offered| {
        let tokens = progressive::tokens_of(&card(offered)).unwrap_or(usize::MAX);
        let document = &offered.usable.document;
        let cost = work.now.config.costs.of(&document.name);
        ListedTool::of(document, tokens, cost)
    });
    shown(&Page::fill(entries, offered.len()))
}

/// `load_tool`.
pub(crate) fn load(work: &Work<'_>) -> Result<RunResult, CallRefusal> {
    let name = given(work, "name").unwrap_or_default();
    let offered = callable(work, name)?;
    loaded(work, name, None, "tool", &card(&offered))
}

/// `load_tool_resource`.
pub(crate) fn load_resource(work: &Work<'_>) -> Result<RunResult, CallRefusal> {
    let name = given(work, "name").unwrap_or_default();
    let wanted = given(work, "resource").unwrap_or_default();
    let offered = callable(work, name)?;
    let mut shipped = resource::of(&offered.usable.document).into_iter();
    let Some(resource) = shipped.find(|resource| resource.name == wanted) else {
        let wanted = text::elided(wanted, limit::NAME_SHOWN_CHARS_MAX);
        let message = format!("`{name}` has no resource `{wanted}`");
        return Err(CallRefusal::new(CallError::new(
            Reason::DisclosureResource,
            message,
        )));
    };
    loaded(work, name, Some(wanted), "resource", &resource)
}

fn given<'a>(work: &'a Work<'_>, name: &str) -> Option<&'a str> {
    let text = work.arguments.get(name).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
}

/// The call the reader would make themselves, by the door they came in.
fn asked(work: &Work<'_>, name: &str) -> CallRequest {
    let request = work.request;
    CallRequest::new(request.caller.clone(), request.origin, name, Value::Null)
}

/// A tool the reader may call. To all but the owner every other one is not there, in
/// the same words; ours are on the list of clients, in full.
fn callable(work: &Work<'_>, name: &str) -> Result<CallableTool, CallRefusal> {
    let nothing = || {
        let shown = text::elided(name, limit::NAME_SHOWN_CHARS_MAX);
        let message = format!("there is no tool `{shown}`");
        // `ToolUnknown` would say that this tool itself is not there.
        CallError::new(Reason::ToolNotExposed, message)
    };
    match work.reach(&asked(work, name)) {
        Ok(offered) if offered.body.native().is_none() => Ok(offered),
        Err(refusal) if work.request.caller.kind == CallerKind::Owner => {
            let message = refusal.why().to_owned();
            let error = CallError::new(Reason::ToolNotExposed, message);
            Err(CallRefusal::new(error))
        }
        Ok(_) | Err(_) => Err(CallRefusal::new(nothing())),
    }
}

fn card(offered: &CallableTool) -> Card {
    let hints = offered.hints();
    let annotations = json!({
        "readOnlyHint": hints.read_only,
        "destructiveHint": hints.destructive,
        "idempotentHint": hints.idempotent.unwrap_or(false),
        "openWorldHint": hints.open_world,
    });
    let badge = offered.risk.level.badge();
    Card::of(
        &offered.usable.document,
        &offered.policy,
        badge,
        annotations,
    )
}

/// Counts it against the reader's budget and hands it over.
fn loaded(
    work: &Work<'_>,
    name: &str,
    resource: Option<&str>,
    key: &str,
    content: &impl Serialize,
) -> Result<RunResult, CallRefusal> {
    let item = LoadedItem {
        tool: name.to_owned(),
        resource: resource.map(str::to_owned),
        tokens: progressive::tokens_of(content).unwrap_or(usize::MAX),
    };
    let tokens = item.tokens;
    let told = lock(work.engine.loaded_cards()).load(&work.request.caller, item);
    let (unloaded, loaded_tokens) = told.map_err(|large| {
        let message = format!("`{}` was not loaded: {large}", resource.unwrap_or(name));
        CallRefusal::new(CallError::new(Reason::DisclosureTooLarge, message))
    })?;
    let mut answer = json!({
        key: content,
        "tokens": tokens,
        "loadedTokens": loaded_tokens,
        "loadedTokensMax": LOADED_TOKENS_MAX,
        "unloaded": unloaded,
    });
    if let (None, Some(members)) = (resource, answer.as_object_mut()) {
        let cost = work.now.config.costs.of(name);
        members.insert("cost".to_owned(), json!(cost));
    }
    shown(&answer)
}

fn shown(answer: &impl Serialize) -> Result<RunResult, CallRefusal> {
    match serde_json::to_value(answer) {
        Ok(value) => Ok(RunResult::done(value)),
        Err(error) => {
            let message = format!("the answer cannot be encoded: {error}");
            Err(CallRefusal::new(CallError::new(
                Reason::SandboxBroken,
                message,
            )))
        }
    }
}
