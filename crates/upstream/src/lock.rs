//! `ringfence.lock`: the digests of everything accepted, for a repository and its CI.
//!
//! It holds names and digests and no text: a command line or an address may contain a
//! secret. One line for each item, sorted, so that a difference can be read.

use std::collections::BTreeMap;

use model::text::elided;
use model::word::Word;
use serde::{Deserialize, Serialize};

use crate::definition::{ItemKey, ItemKind};
use crate::limit;
use crate::pin::{PinDecision, PinnedServer, SCHEME, SeenServer};

/// The version of the file.
const VERSION: u32 = 1;

/// The digests of servers and their items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerLock {
    servers: BTreeMap<String, LockedServer>,
}

/// The digests of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LockedServer {
    digest: String,
    items: BTreeMap<ItemKey, String>,
}

/// A difference between two locks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockDifference {
    /// The server.
    pub server: String,
    /// The item; nothing for the server itself.
    pub item: Option<ItemKey>,
    /// The digest in the lock.
    pub locked: Option<String>,
    /// The digest that was found.
    pub found: Option<String>,
}

impl LockDifference {
    /// The difference in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let server = elided(&self.server, 60);
        let subject = match &self.item {
            Some(item) => format!("{item} of server `{server}`"),
            None => format!("server `{server}`"),
        };
        match (&self.locked, &self.found) {
            (Some(_), Some(_)) => format!("{subject} differs from the lock"),
            (Some(_), None) => format!("{subject} is in the lock but does not exist"),
            (None, _) => format!("{subject} is not in the lock"),
        }
    }
}

/// Why a lock cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// More bytes than a lock has.
    #[error("the lock has more than {} bytes", limit::LOCK_BYTES_MAX)]
    TooLarge,
    /// Not the JSON of a lock.
    #[error("the lock cannot be read")]
    Json(#[source] serde_json::Error),
    /// A version of another program.
    #[error(
        "the lock has version {found} and scheme `{scheme}`; this program reads version {VERSION} and `{SCHEME}`"
    )]
    Version {
        /// The version.
        found: u32,
        /// The scheme of its digests.
        scheme: String,
    },
    /// A word that is not a kind of item.
    #[error("the lock has the kind `{found}`; it must be {}", model::word::words::<ItemKind>())]
    Kind {
        /// The word.
        found: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockFile {
    version: u32,
    scheme: String,
    servers: BTreeMap<String, LockedServerFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockedServerFile {
    digest: String,
    items: BTreeMap<String, BTreeMap<String, String>>,
}

impl ServerLock {
    /// Adds the accepted items of a server. A server that is not accepted is left out,
    /// and so are held and blocked items.
    pub fn add_accepted(&mut self, name: &str, pinned: &PinnedServer) {
        let Some(server) = pinned.server.as_ref() else {
            return;
        };
        // A lock of what is held would let CI pass with what no person has seen.
        if pinned.decision != PinDecision::Accepted {
            return;
        }
        let items = pinned.items.iter().filter_map(|(key, item)| {
            let accepted = item.accepted.as_ref()?;
            let is_accepted = item.decision == PinDecision::Accepted;
            is_accepted.then(|| (key.clone(), accepted.pin.digest().to_owned()))
        });
        let locked = LockedServer {
            digest: server.pin.digest().to_owned(),
            items: items.collect(),
        };
        self.servers.insert(name.to_owned(), locked);
    }

    /// Adds the current definitions of a server.
    pub fn add_seen(&mut self, name: &str, seen: &SeenServer) {
        let items = seen.items.iter();
        let items = items.map(|(key, item)| (key.clone(), item.pin.digest().to_owned()));
        let locked = LockedServer {
            digest: seen.pin.digest().to_owned(),
            items: items.collect(),
        };
        self.servers.insert(name.to_owned(), locked);
    }

    /// The file.
    pub fn to_json(&self) -> Result<String, LockError> {
        let servers = self.servers.iter().map(|(name, server)| {
            let mut items: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
            for (key, digest) in &server.items {
                let kind = items.entry(key.kind.word().to_owned()).or_default();
                kind.insert(key.name.clone(), digest.clone());
            }
            let digest = server.digest.clone();
            (name.clone(), LockedServerFile { digest, items })
        });
        let file = LockFile {
            version: VERSION,
            scheme: SCHEME.to_owned(),
            servers: servers.collect(),
        };
        let text = serde_json::to_string_pretty(&file).map_err(LockError::Json)?;
        // A server chooses the names; hidden characters in them must be visible in a
        // diff.
        Ok(format!("{}\n", model::text::json_line(&text)))
    }

    /// Reads the file back.
    pub fn from_json(text: &str) -> Result<ServerLock, LockError> {
        if text.len() > limit::LOCK_BYTES_MAX {
            return Err(LockError::TooLarge);
        }
        let file: LockFile = serde_json::from_str(text).map_err(LockError::Json)?;
        if file.version != VERSION || file.scheme != SCHEME {
            return Err(LockError::Version {
                found: file.version,
                scheme: elided(&file.scheme, 60),
            });
        }
        let mut servers = BTreeMap::new();
        for (name, server) in file.servers {
            let mut items = BTreeMap::new();
            for (word, digests) in server.items {
                let known = ItemKind::ALL.iter().find(|kind| kind.word() == word);
                let Some(kind) = known.copied() else {
                    return Err(LockError::Kind {
                        found: elided(&word, 60),
                    });
                };
                let keyed = digests.into_iter();
                items.extend(keyed.map(|(name, digest)| (ItemKey { kind, name }, digest)));
            }
            let digest = server.digest;
            servers.insert(name, LockedServer { digest, items });
        }
        Ok(ServerLock { servers })
    }

    /// All differences from this lock, in order.
    #[must_use]
    pub fn verify(&self, found: &ServerLock) -> Vec<LockDifference> {
        let mut differences = Vec::new();
        let names = self.servers.keys().chain(found.servers.keys());
        let names: std::collections::BTreeSet<&String> = names.collect();
        for name in names {
            let (ours, theirs) = (self.servers.get(name), found.servers.get(name));
            let mut add =
                |item: Option<&ItemKey>, locked: Option<&String>, found: Option<&String>| {
                    if locked != found {
                        differences.push(LockDifference {
                            server: name.clone(),
                            item: item.cloned(),
                            locked: locked.cloned(),
                            found: found.cloned(),
                        });
                    }
                };
            add(
                None,
                ours.map(|one| &one.digest),
                theirs.map(|one| &one.digest),
            );
            let keys = ours
                .into_iter()
                .chain(theirs)
                .flat_map(|one| one.items.keys());
            let keys: std::collections::BTreeSet<&ItemKey> = keys.collect();
            for key in keys {
                let digest =
                    |one: Option<&'_ LockedServer>| one.and_then(|one| one.items.get(key)).cloned();
                let (locked, found) = (digest(ours), digest(theirs));
                add(Some(key), locked.as_ref(), found.as_ref());
            }
        }
        differences
    }
}

#[cfg(test)]
mod tests;
