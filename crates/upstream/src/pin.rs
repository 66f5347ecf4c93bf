//! Pins: the definitions that the owner accepted, as whole text with digests, and what
//! is served when a server declares something else.
//!
//! Only the owner changes a pin. A definition that differs is compared with the
//! accepted one on every look, so a revert releases itself and a creeping change is
//! measured against what a person saw, not against yesterday.

use std::collections::{BTreeMap, BTreeSet};

use model::canonical::{self, CanonicalError};
use model::document::digest;
use model::words;
use serde_json::Value;

use crate::definition::{
    Definition, DefinitionFault, DefinitionFaultCode, ItemKey, ItemKind, ServerDefinition,
};
use crate::finding::{self, Neighbours, UpstreamFinding};
use crate::limit;
use crate::name::ServerName;

mod compare;
mod record;
mod serve;

pub use compare::{ChangeClass, ChangeSubject, ItemChange, compare};
pub use record::PinError;
pub use serve::{HoldReason, ServedItem, ServedServer, ServedState, serve};

/// The scheme of pins. A change of their input is a new scheme.
pub const SCHEME: &str = "ringfence-pin-1:sha256:rfc8785";

/// A text and its digest: canonical JSON of exactly what we forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    scheme: String,
    text: String,
    digest: String,
}

impl Pin {
    /// The pin of an item.
    pub fn of(definition: &Definition) -> Result<Pin, CanonicalError> {
        Pin::of_value(&definition.to_value())
    }

    /// The pin of a server as a whole.
    pub fn of_server(server: &ServerDefinition) -> Result<Pin, CanonicalError> {
        Pin::of_value(&server.to_value())
    }

    fn of_value(value: &Value) -> Result<Pin, CanonicalError> {
        let mut bytes = Vec::new();
        canonical::write(value, &mut bytes)?;
        // Canonical JSON is UTF-8; nothing is lost here.
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Pin {
            scheme: SCHEME.to_owned(),
            digest: digest::of_text(&text),
            text,
        })
    }

    /// How it was made.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The canonical text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// SHA-256 of the text, in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

words! {
    /// The owner's decision about a server or an item.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum PinDecision {
        /// Nothing yet: it is not callable.
        Held = "held",
        /// It may be used as accepted.
        Accepted = "accepted",
        /// It may not be used.
        Blocked = "blocked",
    }
}

/// An accepted definition, and when it was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted<T> {
    /// The definition.
    pub definition: T,
    /// The same as pinned.
    pub pin: Pin,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// The stored state of one item.
#[derive(Clone, Debug, PartialEq)]
pub struct PinnedItem {
    /// The owner's decision.
    pub decision: PinDecision,
    /// The last accepted definition.
    pub accepted: Option<Accepted<Definition>>,
    /// The owner's own description, which takes the place of the server's.
    pub own_description: Option<String>,
}

/// The stored state of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct PinnedServer {
    /// The owner's decision about the server as a whole.
    pub decision: PinDecision,
    /// The accepted definition of the server itself.
    pub server: Option<Accepted<ServerDefinition>>,
    /// Its items.
    pub items: BTreeMap<ItemKey, PinnedItem>,
}

/// One item that a server offers now.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenItem {
    /// The part we would forward.
    pub definition: Definition,
    /// The same as a pin.
    pub pin: Pin,
    /// The structural findings against it, in words.
    pub hold: Option<String>,
}

/// An item that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedItem {
    /// Its kind.
    pub kind: ItemKind,
    /// Its name, if it has one that fits.
    pub name: Option<String>,
    /// What is wrong with it.
    pub fault: DefinitionFault,
}

/// The current definitions of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenServer {
    /// The server itself.
    pub server: ServerDefinition,
    /// The same as a pin.
    pub pin: Pin,
    /// The structural findings against its instructions, in words.
    pub hold: Option<String>,
    /// Its items.
    pub items: BTreeMap<ItemKey, SeenItem>,
    /// Its items that cannot be used.
    pub refused: Vec<RefusedItem>,
}

impl SeenServer {
    /// Reads everything a server lists. Two items of one name are both refused: the
    /// server could choose between them call by call. Items with structural findings
    /// are marked; those that need to know other servers come with
    /// [`SeenServer::inspect`].
    pub fn read<'a>(
        server: ServerDefinition,
        listed: impl IntoIterator<Item = (ItemKind, &'a Value)>,
    ) -> Result<SeenServer, CanonicalError> {
        let mut items: BTreeMap<ItemKey, SeenItem> = BTreeMap::new();
        let mut refused = Vec::new();
        let mut twice = BTreeSet::new();
        for (index, (kind, value)) in listed.into_iter().enumerate() {
            // Not silently: the owner sees that there is more than is shown.
            if index >= limit::SERVER_ITEMS_MAX {
                refused.push(too_many(kind));
                break;
            }
            match Definition::read(kind, value) {
                Ok(definition) => {
                    let key = definition.key();
                    let pin = Pin::of(&definition)?;
                    let findings = finding::of_item(&definition, &Neighbours::default());
                    let seen = SeenItem {
                        definition,
                        pin,
                        hold: finding::hold(&findings),
                    };
                    if items.insert(key.clone(), seen).is_some() {
                        twice.insert(key);
                    }
                }
                Err(fault) => refused.push(RefusedItem {
                    kind,
                    name: raw_name(kind, value),
                    fault,
                }),
            }
        }
        // Attack: the server could answer a review with one and a call with the other.
        for key in twice {
            items.remove(&key);
            refused.push(duplicate(&key));
        }
        Ok(SeenServer {
            pin: Pin::of_server(&server)?,
            hold: finding::hold(&finding::of_server("", &server, &Neighbours::default())),
            server,
            items,
            refused,
        })
    }

    /// Looks at the server and all it offers beside its neighbours, and marks on each
    /// what holds it. Returns every finding, those of the server first.
    pub fn inspect(&mut self, name: &ServerName, neighbours: &Neighbours) -> Vec<UpstreamFinding> {
        let mut all = finding::of_server(name.as_str(), &self.server, neighbours);
        self.hold = finding::hold(&all);
        for item in self.items.values_mut() {
            let findings = finding::of_item(&item.definition, neighbours);
            item.hold = finding::hold(&findings);
            all.extend(findings);
        }
        all
    }

    /// One digest over all of it. The owner accepts the digest that was
    /// reviewed, so that nothing is accepted that came in between.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut lines = vec![self.pin.digest.clone()];
        for (key, item) in &self.items {
            lines.push(format!("{key} {}", item.pin.digest));
        }
        digest::of_text(&lines.join("\n"))
    }
}

fn raw_name(kind: ItemKind, value: &Value) -> Option<String> {
    let field = match kind {
        ItemKind::Tool | ItemKind::Prompt => "name",
        ItemKind::ResourceTemplate => "uriTemplate",
        ItemKind::Resource => "uri",
    };
    let name = value.get(field)?.as_str()?;
    let fits = !name.is_empty() && name.len() <= limit::URI_BYTES_MAX;
    fits.then(|| name.to_owned())
}

fn too_many(kind: ItemKind) -> RefusedItem {
    let most = limit::SERVER_ITEMS_MAX;
    RefusedItem {
        kind,
        name: None,
        fault: DefinitionFault {
            code: DefinitionFaultCode::TooLarge,
            name: None,
            field: String::new(),
            message: format!("the server lists more than {most} items; the rest is left out"),
        },
    }
}

fn duplicate(key: &ItemKey) -> RefusedItem {
    RefusedItem {
        kind: key.kind,
        name: Some(key.name.clone()),
        fault: DefinitionFault {
            code: DefinitionFaultCode::Duplicate,
            name: Some(model::text::elided(&key.name, 80)),
            field: "name".to_owned(),
            message: format!("the server lists {key} more than once"),
        },
    }
}

/// Which items the owner accepts.
#[derive(Clone, Copy, Debug)]
pub enum AcceptScope<'a> {
    /// The server and all it offers now, except blocked items and those with structural
    /// findings: both are accepted by name only. Items that are gone are forgotten.
    All,
    /// These items; the server itself only on first sight, so that the acceptance of a
    /// tool is never that of another server.
    Items(&'a BTreeSet<ItemKey>),
}

impl Default for PinnedServer {
    fn default() -> PinnedServer {
        PinnedServer::unknown()
    }
}

impl PinnedServer {
    /// A server without a decision.
    #[must_use]
    pub fn unknown() -> PinnedServer {
        PinnedServer {
            decision: PinDecision::Held,
            server: None,
            items: BTreeMap::new(),
        }
    }

    /// Accepts what is seen, for the owner. Returns what is accepted by now, with
    /// digests, for the audit: the server first, then each item that was accepted here.
    /// Only items that are seen now can be accepted.
    pub fn accept(
        &mut self,
        seen: &SeenServer,
        scope: AcceptScope<'_>,
        at_ms: u64,
    ) -> Vec<(ChangeSubject, String)> {
        let mut accepted = Vec::new();
        // An item alone brings its server along only at first sight, when there is
        // nothing to replace.
        let is_whole = match scope {
            AcceptScope::All => true,
            AcceptScope::Items(_) => self.server.is_none(),
        };
        if is_whole {
            self.decision = PinDecision::Accepted;
            self.server = Some(Accepted {
                definition: seen.server.clone(),
                pin: seen.pin.clone(),
                at_ms,
            });
        }
        let server = self.server.iter();
        accepted.extend(server.map(|server| (ChangeSubject::Server, server.pin.digest.clone())));
        if matches!(scope, AcceptScope::All) {
            let is_kept = |key: &ItemKey, item: &mut PinnedItem| {
                seen.items.contains_key(key) || item.decision == PinDecision::Blocked
            };
            // What is gone comes back as new, and is held. A block is remembered.
            self.items.retain(is_kept);
        }
        for (key, item) in &seen.items {
            let is_wanted = match scope {
                // What was blocked, or is suspicious, takes a yes of its own.
                AcceptScope::All => !self.is_blocked(key) && self.is_clear(key, item),
                AcceptScope::Items(keys) => keys.contains(key),
            };
            if is_wanted {
                self.item(key).accept(item, at_ms);
                accepted.push((ChangeSubject::Item(key.clone()), item.pin.digest.clone()));
            }
        }
        accepted
    }

    /// Blocks one item, known or not, until it is accepted by name.
    pub fn block(&mut self, key: &ItemKey) {
        self.item(key).decision = PinDecision::Blocked;
    }

    /// Replaces the description of an item by the owner's, or takes the owner's away.
    pub fn describe(&mut self, key: &ItemKey, words: Option<String>) {
        self.item(key).own_description = words;
    }

    fn is_blocked(&self, key: &ItemKey) -> bool {
        let item = self.items.get(key);
        item.is_some_and(|item| item.decision == PinDecision::Blocked)
    }

    /// Whether no finding holds an item, or the owner accepted it all the same.
    fn is_clear(&self, key: &ItemKey, seen: &SeenItem) -> bool {
        let known = self.items.get(key);
        seen.hold.is_none() || known.is_some_and(|item| item.knows(&seen.pin.digest))
    }

    fn item(&mut self, key: &ItemKey) -> &mut PinnedItem {
        self.items.entry(key.clone()).or_insert_with(|| PinnedItem {
            decision: PinDecision::Held,
            accepted: None,
            own_description: None,
        })
    }
}

impl PinnedItem {
    fn accept(&mut self, seen: &SeenItem, at_ms: u64) {
        let accepted = Accepted {
            definition: seen.definition.clone(),
            pin: seen.pin.clone(),
            at_ms,
        };
        // Only the text accepted last counts: an owner who accepts a narrower one takes the
        // wider one away. What is narrower than the last, or says it in other words, is served
        // whether it was accepted before or not.
        self.accepted = Some(accepted);
        self.decision = PinDecision::Accepted;
    }

    /// Whether this is exactly the text that the owner accepted last.
    #[must_use]
    pub fn knows(&self, digest: &str) -> bool {
        self.accepted
            .as_ref()
            .is_some_and(|accepted| accepted.pin.digest == digest)
    }
}

#[cfg(test)]
mod tests;
