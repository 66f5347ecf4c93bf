//! A review of a server as plain parts: each thing it offers, what differs from what was
//! accepted, what was found in it, its risk. Doors of people show it.

use std::collections::BTreeMap;

use model::policy::risk::Risk;
use model::text::{json_line, one_line};
use model::word::Word as _;
use serde_json::Value;
use upstream::definition::{Definition, ItemKey};
use upstream::finding::{FindingCode, UpstreamFinding};
use upstream::pin::{ChangeSubject, ItemChange, PinnedServer, ServedState};

use crate::server_admin::ServerReview;
use crate::servers::ServerView;

/// One thing a server offers, or offered.
#[derive(Clone, Debug)]
pub struct SheetItem {
    /// Its name, in visible characters.
    pub name: String,
    /// `new`, `changed` and so on; `same` if nothing changed.
    pub change: &'static str,
    /// What is served of it, in one word.
    pub state: &'static str,
    /// The same with its reason.
    pub state_words: String,
    /// Every field that differs.
    pub fields: Vec<SheetField>,
    /// What was found in it.
    pub findings: Vec<SheetFinding>,
    /// The risk it has, or would have once it is accepted.
    pub risk: Option<Risk>,
    /// What the server says of it now.
    pub offered: Option<Value>,
}

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SheetField {
    /// The field.
    pub field: String,
    /// What the difference does.
    pub effect: &'static str,
    /// As it was accepted, as JSON in visible characters.
    pub before: Option<String>,
    /// As it is now.
    pub after: Option<String>,
}

/// Something suspicious.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SheetFinding {
    /// Its stable code.
    pub code: &'static str,
    /// `hold` or `warn`.
    pub weight: &'static str,
    /// In a sentence.
    pub message: String,
    /// Where.
    pub place: String,
    /// The text itself, in visible characters.
    pub evidence: Option<String>,
}

impl SheetFinding {
    /// The same finding, in visible characters.
    #[must_use]
    pub fn of(finding: &UpstreamFinding) -> SheetFinding {
        // What a shell reads is not repeated: it may hold a secret.
        let is_shown = finding.code != FindingCode::Shell && !finding.excerpt.is_empty();
        let item = finding.item.as_ref().map(|key| one_line(&key.name));
        let field = one_line(&finding.field);
        SheetFinding {
            code: finding.code.word(),
            weight: finding.weight().word(),
            message: one_line(&finding.message),
            place: match item {
                Some(item) => format!("{item} / {field}"),
                None => field,
            },
            evidence: is_shown.then(|| one_line(&finding.excerpt)),
        }
    }
}

/// The items of a review.
#[must_use]
pub fn items(review: &ServerReview) -> Vec<SheetItem> {
    let mut changes: BTreeMap<&ItemKey, &ItemChange> = BTreeMap::new();
    for change in &review.served.changes {
        if let ChangeSubject::Item(key) = &change.subject {
            changes.insert(key, change);
        }
    }
    let item = |served: &upstream::pin::ServedItem| {
        let now = review
            .seen
            .items
            .get(&served.key)
            .map(|seen| &seen.definition);
        let change = changes.get(&served.key).copied();
        let about = review.findings.iter();
        let about = about.filter(|finding| finding.item.as_ref() == Some(&served.key));
        SheetItem {
            name: one_line(&served.key.name),
            change: change.map_or("same", |change| change.class.word()),
            state: state_word(&served.state),
            state_words: state_words(&served.state),
            fields: change.map(fields).unwrap_or_default(),
            findings: about.map(SheetFinding::of).collect(),
            risk: now.map(|definition| review.risk(definition)),
            offered: now.map(Definition::to_value),
        }
    };
    review.served.items.iter().map(item).collect()
}

/// Whether the owner has something to decide.
#[must_use]
pub fn is_settled(review: &ServerReview) -> bool {
    let mut items = review.served.items.iter();
    let is_held = items.any(|item| matches!(item.state, ServedState::Held(_)));
    review.served.changes.is_empty() && !is_held
}

fn fields(change: &ItemChange) -> Vec<SheetField> {
    let shown = |value: &Option<Value>| value.as_ref().map(|value| json_line(&value.to_string()));
    let field = |diff: &upstream::schema::FieldDiff| SheetField {
        field: one_line(&diff.path),
        effect: diff.effect.word(),
        before: shown(&diff.old),
        after: shown(&diff.new),
    };
    change.diffs.iter().map(field).collect()
}

/// What the owner said about a server.
#[must_use]
pub fn decision(view: &ServerView) -> &'static str {
    if view.record.pins.is_empty() {
        return upstream::pin::PinDecision::Held.word();
    }
    match PinnedServer::from_json(&view.record.pins) {
        Ok(pinned) => pinned.decision.word(),
        Err(_) => "unreadable",
    }
}

/// Each tool of a server: its name there, its name here, its state in a word and in words.
#[must_use]
pub fn tools(view: &ServerView) -> Vec<(String, Option<String>, &'static str, String)> {
    let items = view.served.iter().flat_map(|served| &served.items);
    let tool = |item: &upstream::pin::ServedItem| {
        let here = view.name_of(&item.key).map(str::to_owned);
        let state = &item.state;
        (
            one_line(&item.key.name),
            here,
            state_word(state),
            state_words(state),
        )
    };
    items.map(tool).collect()
}

/// What is served of an item, in one word.
#[must_use]
pub fn state_word(state: &ServedState) -> &'static str {
    match state {
        ServedState::Callable { .. } => "callable",
        ServedState::Held(_) => "held",
        ServedState::Blocked => "blocked",
        ServedState::Gone => "gone",
        ServedState::Refused(_) => "refused",
    }
}

/// Whether it is served with the words that were accepted, because its server has others now.
#[must_use]
pub fn is_reworded(state: &ServedState) -> bool {
    match state {
        ServedState::Callable { is_old, .. } => *is_old,
        ServedState::Held(_)
        | ServedState::Blocked
        | ServedState::Gone
        | ServedState::Refused(_) => false,
    }
}

/// The same with its reason.
#[must_use]
pub fn state_words(state: &ServedState) -> String {
    match state {
        ServedState::Callable { is_old: true, .. } => "callable, with the accepted text".to_owned(),
        ServedState::Held(reason) => format!("held: {}", reason.word().replace('_', " ")),
        ServedState::Refused(why) => format!("refused: {}", one_line(why)),
        ServedState::Callable { is_old: false, .. } | ServedState::Blocked | ServedState::Gone => {
            state_word(state).to_owned()
        }
    }
}
