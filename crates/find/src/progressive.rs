//! Progressive listing: a line for each tool, a card for those one wants, and the
//! resources a document ships, each within a budget of tokens.
//!
//! Pure. Other code decides who may see a tool; this counts the tokens of a text, fills
//! pages, and picks what to unload.

use serde::Serialize;
use serde_json::Value;

use model::caller::Caller;
use model::document::example::{self, Example};
use model::document::params;
use model::document::resource;
use model::document::{ApprovalMode, Document, NetworkMode};
use model::limits;
use model::policy::EffectivePolicy;
use model::reason::Reason;
use model::text;

/// Characters of a tool's one line.
const LINE_CHARS_MAX: usize = 120;
/// Characters of a category on the list.
const CATEGORY_CHARS_MAX: usize = 60;
/// Bytes of a page of the list without its entries and its cursor.
const PAGE_FRAME_BYTES: usize = 64;

/// An estimate of a text's tokens: its UTF-8 bytes divided by four, rounded up.
///
/// Models count differently from each other. For English and JSON, four bytes are about
/// one token in all of them.
#[must_use]
pub fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// [`tokens`] of something as JSON without spaces; none if it is no JSON.
pub fn tokens_of(shown: &impl Serialize) -> Option<usize> {
    serde_json::to_string(shown).ok().map(|text| tokens(&text))
}

/// One tool on the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedTool {
    /// Its name.
    pub name: String,
    /// What it does, in short.
    pub line: String,
    /// Its category.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Tokens its card takes.
    pub tokens: usize,
    /// The price of a call, in units of a day; left out if it is one, the default.
    #[serde(skip_serializing_if = "is_one")]
    pub cost: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "this is how serde asks whether to leave a field out"
)]
fn is_one(cost: &u64) -> bool {
    *cost == 1
}

impl ListedTool {
    /// The entry of a document whose card takes so many tokens.
    #[must_use]
    pub fn of(document: &Document, tokens: usize, cost: u64) -> ListedTool {
        let category = document.category.as_deref();
        ListedTool {
            name: document.name.clone(),
            line: line(&document.description),
            category: category.map(|category| cut(category, CATEGORY_CHARS_MAX)),
            tokens,
            cost,
        }
    }
}

/// The first sentence of a description, or as much of it as fits.
fn line(description: &str) -> String {
    let first = description.trim().lines().next().unwrap_or_default();
    let sentence = match first.split_once(". ") {
        Some((sentence, _)) => sentence,
        None => first.trim_end_matches('.'),
    };
    cut(sentence, LINE_CHARS_MAX)
}

fn cut(text: &str, chars_max: usize) -> String {
    let shown = text::one_line(text.trim());
    match shown.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", shown.get(..end).unwrap_or_default()),
        None => shown,
    }
}

/// As much of the list as one answer holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    /// The tools, by name.
    pub tools: Vec<ListedTool>,
    /// How many there are on all pages.
    pub total: usize,
    /// Where the next page begins, if there is one: after this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl Page {
    /// Fills a page from the entries that are left, until the next would break
    /// `LIST_TOKENS_MAX`. Entries are made only as needed.
    pub fn fill(rest: impl Iterator<Item = ListedTool>, total: usize) -> Page {
        let mut page = Page {
            tools: Vec::new(),
            total,
            next_cursor: None,
        };
        // In bytes, because `tokens` divides by four and rounds each part up.
        let room = limits::LIST_TOKENS_MAX * 4;
        let mut bytes = PAGE_FRAME_BYTES;
        for entry in rest {
            // The cursor may be any of the names on the page, so each is counted as if
            // it were the cursor.
            let name = json_bytes(&entry.name);
            let more = json_bytes(&entry).saturating_add(1);
            if bytes.saturating_add(more).saturating_add(name) > room {
                page.next_cursor = page.tools.last().map(|last| last.name.clone());
                break;
            }
            bytes = bytes.saturating_add(more);
            page.tools.push(entry);
        }
        page
    }
}

fn json_bytes(shown: &impl Serialize) -> usize {
    serde_json::to_string(shown).map_or(usize::MAX, |text| text.len())
}

/// The card of a tool: everything a caller needs before a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    /// Its name.
    pub name: String,
    /// Everything its author says.
    pub description: String,
    /// Its category.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Its arguments.
    pub input_schema: Value,
    /// What a call may do, in the words of MCP.
    pub annotations: Value,
    /// Its risk level, such as `L2`.
    pub risk: String,
    /// Calls as scripts make them.
    pub examples: Vec<Example>,
    /// How a call can fail.
    pub failure_modes: Vec<FailureMode>,
    /// What else it ships.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<CardResource>,
}

/// One way a call can fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailureMode {
    /// The reason code it would carry.
    pub code: &'static str,
    /// When it happens.
    pub when: String,
}

/// A resource as a card names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CardResource {
    /// Its name.
    pub name: String,
    /// What it is.
    pub mime_type: String,
    /// Tokens it takes.
    pub tokens: usize,
}

impl Card {
    /// The card of a tool under the policy of a call.
    #[must_use]
    pub fn of(document: &Document, policy: &EffectivePolicy, risk: &str, hints: Value) -> Card {
        let lines = document.description.trim().lines().map(text::one_line);
        let resources = resource::of(document)
            .into_iter()
            .map(|resource| CardResource {
                tokens: tokens_of(&resource).unwrap_or(usize::MAX),
                name: resource.name,
                mime_type: resource.mime_type,
            });
        let category = document.category.as_deref();
        Card {
            name: document.name.clone(),
            description: lines.collect::<Vec<_>>().join("\n"),
            category: category.map(|category| cut(category, CATEGORY_CHARS_MAX)),
            input_schema: params::shown_schema(&document.params),
            annotations: hints,
            risk: risk.to_owned(),
            examples: example::of(document),
            failure_modes: failure_modes(document, policy),
            resources: resources.collect(),
        }
    }
}

/// Failures that follow from the document and its policy. The operator's rules and
/// limits are not disclosed in advance.
fn failure_modes(document: &Document, policy: &EffectivePolicy) -> Vec<FailureMode> {
    let mut modes = Vec::new();
    let mut mode = |reason: Reason, when: String| {
        let code = reason.code();
        modes.push(FailureMode { code, when });
    };
    let required = document.params.iter().filter(|param| param.required);
    let required: Vec<_> = required
        .map(|param| format!("`{}`", text::one_line(&param.name)))
        .collect();
    if !required.is_empty() {
        let when = format!("{} not given", required.join(" or "));
        mode(Reason::ArgumentMissing, when);
    }
    if !document.params.is_empty() {
        let when = "an argument is of another type".to_owned();
        mode(Reason::ArgumentType, when);
    }
    match document.approval() {
        ApprovalMode::Disabled | ApprovalMode::AutoApprove => {}
        ApprovalMode::Required => mode(
            Reason::ApprovalDeclined,
            "a person is asked and says no".to_owned(),
        ),
    }
    let reach = match policy.network {
        NetworkMode::Blocked => None,
        NetworkMode::Allowlist if policy.hosts.is_empty() => None,
        NetworkMode::Allowlist => Some("a host it is not granted, or one that does not answer"),
        NetworkMode::Open | NetworkMode::Strict => Some("a host that does not answer"),
    };
    let when = match reach {
        Some(reach) => format!("its code fails, or meets {reach}"),
        None => "its code fails on what it is given".to_owned(),
    };
    mode(Reason::ToolThrew, when);
    let when = format!("it takes longer than {} ms", policy.timeout_ms);
    mode(Reason::SandboxWall, when);
    modes
}

/// A loaded card or resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoadedItem {
    /// The tool.
    pub tool: String,
    /// The resource, if it is not the card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// What it costs.
    pub tokens: usize,
}

/// It exceeds the budget on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it takes {tokens} tokens, and all that is loaded together may take {}",
    limits::LOADED_TOKENS_MAX
)]
pub struct TooLarge {
    /// What it costs.
    pub tokens: usize,
}

/// The loaded items of one caller, the oldest first. Never more than
/// `LOADED_TOKENS_MAX`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    items: Vec<LoadedItem>,
}

impl Loaded {
    /// Loads an item, and returns those that were unloaded for it. An item that was
    /// loaded before moves to the end: its reader has just read it again.
    pub fn load(&mut self, item: LoadedItem) -> Result<Vec<LoadedItem>, TooLarge> {
        if item.tokens > limits::LOADED_TOKENS_MAX {
            let tokens = item.tokens;
            return Err(TooLarge { tokens });
        }
        self.items
            .retain(|known| (&known.tool, &known.resource) != (&item.tool, &item.resource));
        self.items.push(item);
        let mut tokens = self.tokens();
        let mut gone = 0;
        for item in &self.items {
            if tokens <= limits::LOADED_TOKENS_MAX {
                break;
            }
            tokens = tokens.saturating_sub(item.tokens);
            gone += 1;
        }
        Ok(self.items.drain(..gone).collect())
    }

    /// What everything costs together.
    #[must_use]
    pub fn tokens(&self) -> usize {
        let tokens = self.items.iter().map(|item| item.tokens);
        tokens.fold(0, usize::saturating_add)
    }

    /// Everything, the oldest first.
    #[must_use]
    pub fn items(&self) -> &[LoadedItem] {
        &self.items
    }
}

/// The loaded items of each caller. At most `PROGRESSIVE_CALLERS_MAX` callers are
/// remembered; the least recent one is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadedByCaller {
    /// The most recent caller is last.
    readers: Vec<(Caller, Loaded)>,
}

impl LoadedByCaller {
    /// Loads an item for a caller. Returns the unloaded items and the total.
    pub fn load(
        &mut self,
        caller: &Caller,
        item: LoadedItem,
    ) -> Result<(Vec<LoadedItem>, usize), TooLarge> {
        let mut loaded = self.loaded(caller).cloned().unwrap_or_default();
        // A request that is too large unloads nothing.
        let gone = loaded.load(item)?;
        let tokens = loaded.tokens();
        self.readers.retain(|(known, _)| known != caller);
        if self.readers.len() >= limits::PROGRESSIVE_CALLERS_MAX {
            self.readers.remove(0);
        }
        self.readers.push((caller.clone(), loaded));
        Ok((gone, tokens))
    }

    /// The loaded items of a caller, if any are remembered.
    #[must_use]
    pub fn loaded(&self, caller: &Caller) -> Option<&Loaded> {
        let mut readers = self.readers.iter();
        readers
            .find(|(known, _)| known == caller)
            .map(|(_, loaded)| loaded)
    }

    /// How many callers are remembered.
    #[must_use]
    pub fn count(&self) -> usize {
        self.readers.len()
    }
}

#[cfg(test)]
mod tests;
