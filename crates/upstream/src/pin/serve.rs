//! Which items of a server are served, given the accepted definitions.
//!
//! First sight is held. Other words are not served: the accepted ones are. What accepts
//! more, asks for more or comes from elsewhere is held, and the accepted definition with
//! it: what runs is the server's new code, whatever arguments it is called with.

use std::collections::{BTreeMap, BTreeSet};

use model::words;

use super::compare::{ChangeClass, ChangeSubject, ItemChange, compare};
use super::{PinDecision, PinnedItem, PinnedServer, SeenItem, SeenServer};
use crate::definition::{Definition, ItemKey};

words! {
    /// Why an item is held.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum HoldReason {
        /// The owner has not accepted the server yet.
        FirstSight = "first_sight",
        /// The server may be another one.
        Identity = "identity",
        /// It accepts or asks for more than was accepted.
        Wider = "wider",
        /// It was not there when the owner accepted the server.
        New = "new",
        /// It was there under another name.
        Renamed = "renamed",
        /// A structural finding holds it.
        Finding = "finding",
    }
}

/// The state of one item for callers.
#[derive(Clone, Debug, PartialEq)]
pub enum ServedState {
    /// It is listed and can be called.
    Callable {
        /// The listed definition, with the owner's description.
        definition: Box<Definition>,
        /// The digest of the server's text it is made from.
        digest: String,
        /// Whether the server says something else by now.
        is_old: bool,
    },
    /// Callers do not see it; the owner sees its name.
    Held(HoldReason),
    /// The owner blocked it or its server.
    Blocked,
    /// The server does not offer it any more.
    Gone,
    /// What the server sends cannot be read; the sentence says why.
    Refused(String),
}

/// One item and what is served of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedItem {
    /// Which item.
    pub key: ItemKey,
    /// What is served.
    pub state: ServedState,
}

/// The served part of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedServer {
    /// The accepted instructions.
    pub instructions: Option<String>,
    /// Every item known or seen, by key.
    pub items: Vec<ServedItem>,
    /// All changes since the acceptance, for the owner.
    pub changes: Vec<ItemChange>,
}

/// Decides what is served, from the accepted and the current definitions. While a
/// server is down, accepted items stay listed.
#[must_use]
pub fn serve(pinned: &PinnedServer, seen: Option<&SeenServer>) -> ServedServer {
    let changes = seen.map(|seen| compare(pinned, seen)).unwrap_or_default();
    // First for the whole: an item of another server must not be called, whatever it says.
    let whole = whole_server(pinned, &changes);
    let seen_keys = seen.into_iter().flat_map(|seen| seen.items.keys());
    let keys: BTreeSet<&ItemKey> = pinned.items.keys().chain(seen_keys).collect();
    let by_key: BTreeMap<&ItemKey, &ItemChange> = changes.iter().filter_map(keyed).collect();
    let mut states: BTreeMap<ItemKey, ServedState> = BTreeMap::new();
    for key in keys {
        let item = pinned.items.get(key);
        let is_blocked = item.is_some_and(|item| item.decision == PinDecision::Blocked);
        let state = match &whole {
            // Blocked wins over the state of the whole server: the owner said no to
            // this item.
            _ if is_blocked => ServedState::Blocked,
            Some(state) => state.clone(),
            None => {
                let change = by_key.get(key).copied();
                let now = seen.and_then(|seen| seen.items.get(key));
                item_state(item, now, change, seen)
            }
        };
        states.insert(key.clone(), state);
    }
    if let Some(seen) = seen {
        mark_refused(&mut states, seen);
    }
    let is_served = whole.is_none();
    // Instructions of a held server are not forwarded either.
    let accepted = pinned.server.as_ref().filter(|_| is_served);
    ServedServer {
        instructions: accepted.and_then(|server| server.definition.instructions.clone()),
        items: states
            .into_iter()
            .map(|(key, state)| ServedItem { key, state })
            .collect(),
        changes: changes
            .into_iter()
            .filter(|change| change.class != ChangeClass::Same)
            .collect(),
    }
}

fn keyed(change: &ItemChange) -> Option<(&ItemKey, &ItemChange)> {
    match &change.subject {
        ChangeSubject::Server => None,
        ChangeSubject::Item(key) => Some((key, change)),
    }
}

/// The state of all items alike; `None` if each has its own.
fn whole_server(pinned: &PinnedServer, changes: &[ItemChange]) -> Option<ServedState> {
    match (pinned.decision, &pinned.server) {
        (PinDecision::Blocked, _) => return Some(ServedState::Blocked),
        // Accepted without a definition is a contradiction, so it counts as never seen.
        (PinDecision::Held, _) | (PinDecision::Accepted, None) => {
            return Some(ServedState::Held(HoldReason::FirstSight));
        }
        (PinDecision::Accepted, Some(_)) => {}
    }
    let server = changes
        .iter()
        .find(|change| change.subject == ChangeSubject::Server);
    match server.map(|change| change.class) {
        None | Some(ChangeClass::Same | ChangeClass::Wording | ChangeClass::Narrower) => None,
        Some(
            ChangeClass::Wider
            | ChangeClass::Identity
            | ChangeClass::New
            | ChangeClass::Renamed
            | ChangeClass::Gone,
        ) => Some(ServedState::Held(HoldReason::Identity)),
    }
}

fn item_state(
    item: Option<&PinnedItem>,
    now: Option<&SeenItem>,
    change: Option<&ItemChange>,
    seen: Option<&SeenServer>,
) -> ServedState {
    let accepted = item.and_then(|item| item.accepted.as_ref().map(|accepted| (item, accepted)));
    let Some((item, accepted)) = accepted else {
        return match change.map(|change| change.class) {
            // A finding is told before `new`, because it takes a yes by name.
            _ if now.is_some_and(|now| now.hold.is_some()) => {
                ServedState::Held(HoldReason::Finding)
            }
            Some(ChangeClass::Renamed) => ServedState::Held(HoldReason::Renamed),
            Some(_) | None => ServedState::Held(HoldReason::New),
        };
    };
    let old = |is_old: bool| callable(item, &accepted.definition, accepted.pin.digest(), is_old);
    let (Some(change), Some(now)) = (change, now) else {
        return match seen {
            // The server is down: clients keep the list, and a call says that it cannot
            // be reached.
            None => old(false),
            Some(_) => ServedState::Gone,
        };
    };
    // An unchanged text was accepted with its finding; a changed one was not.
    let is_suspect = now.hold.is_some() && change.class != ChangeClass::Same;
    if is_suspect {
        return ServedState::Held(HoldReason::Finding);
    }
    match change.class {
        ChangeClass::Same | ChangeClass::Narrower => {
            // What accepts less is served as it is now: old arguments could be refused.
            callable(item, &now.definition, now.pin.digest(), false)
        }
        // The accepted words are served until the owner reviews the new ones.
        ChangeClass::Wording => old(true),
        ChangeClass::Wider => ServedState::Held(HoldReason::Wider),
        ChangeClass::Identity => ServedState::Held(HoldReason::Identity),
        ChangeClass::New => ServedState::Held(HoldReason::New),
        ChangeClass::Renamed => ServedState::Held(HoldReason::Renamed),
        ChangeClass::Gone => ServedState::Gone,
    }
}

fn callable(item: &PinnedItem, definition: &Definition, digest: &str, is_old: bool) -> ServedState {
    let definition = definition.clone();
    ServedState::Callable {
        definition: Box::new(match &item.own_description {
            Some(words) => definition.with_description(words.clone()),
            None => definition,
        }),
        digest: digest.to_owned(),
        is_old,
    }
}

/// An item that cannot be read is refused, not gone.
fn mark_refused(states: &mut BTreeMap<ItemKey, ServedState>, seen: &SeenServer) {
    for refused in &seen.refused {
        let Some(name) = &refused.name else {
            continue;
        };
        let key = ItemKey {
            kind: refused.kind,
            name: name.clone(),
        };
        // A blocked item stays blocked, whatever its server sends.
        if states.get(&key) != Some(&ServedState::Blocked) {
            states.insert(key, ServedState::Refused(refused.fault.message.clone()));
        }
    }
}
