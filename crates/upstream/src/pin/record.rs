//! The record of a server's pins as it is stored: JSON with a version.
//!
//! A record that cannot be read, or whose digests do not fit its texts, is an error,
//! and the server it belongs to does not run: a damaged pin must not become a first
//! sight, and certainly not an acceptance.

use std::collections::BTreeMap;

use model::document::digest;
use model::text::elided;
use model::word::Word;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Accepted, Pin, PinDecision, PinnedItem, PinnedServer, SCHEME};
use crate::definition::{Definition, ItemKey, ItemKind, ServerDefinition};
use crate::limit;

/// The version of the record.
const FORMAT: &str = "ringfence-pins-1";

/// Why a record cannot be used. Nothing of its server runs.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// More bytes than a record has.
    #[error("the pin record has more than {} bytes", limit::PIN_RECORD_BYTES_MAX)]
    TooLarge,
    /// Not the JSON of a record.
    #[error("the pin record cannot be read")]
    Json(#[source] serde_json::Error),
    /// A version of another program.
    #[error("the pin record has the format `{found}`; this program reads `{FORMAT}`")]
    Format {
        /// What it says.
        found: String,
    },
    /// A pin that was made in another way.
    #[error("the pin of {subject} has the scheme `{found}`; this program reads `{SCHEME}`")]
    Scheme {
        /// Whose pin.
        subject: String,
        /// What it says.
        found: String,
    },
    /// A text that was changed.
    #[error("the pin of {subject} does not fit its digest")]
    Digest {
        /// Whose pin.
        subject: String,
    },
    /// A text that is no definition, or that of something else.
    #[error("the pin of {subject} does not hold its definition")]
    Text {
        /// Whose pin.
        subject: String,
    },
    /// A word that is none.
    #[error("the pin record has the word `{found}` in place of a kind or a decision")]
    Word {
        /// The word.
        found: String,
    },
    /// One item twice.
    #[error("the pin record has {subject} twice")]
    Duplicate {
        /// Which item.
        subject: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RecordFile {
    format: String,
    decision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<PinFile>,
    items: Vec<ItemFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PinFile {
    scheme: String,
    digest: String,
    accepted_at_ms: u64,
    text: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ItemFile {
    kind: String,
    name: String,
    decision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<PinFile>,
    /// What older versions kept of texts accepted before. It counts no more.
    #[serde(default, rename = "earlier", skip_serializing)]
    _earlier: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    own_description: Option<String>,
}

impl PinnedServer {
    /// The record, for storing.
    pub fn to_json(&self) -> Result<String, PinError> {
        let items = self.items.iter().map(|(key, item)| ItemFile {
            kind: key.kind.word().to_owned(),
            name: key.name.clone(),
            decision: item.decision.word().to_owned(),
            accepted: item.accepted.as_ref().map(pin_file),
            _earlier: Vec::new(),
            own_description: item.own_description.clone(),
        });
        let file = RecordFile {
            format: FORMAT.to_owned(),
            decision: self.decision.word().to_owned(),
            server: self.server.as_ref().map(pin_file),
            items: items.collect(),
        };
        serde_json::to_string_pretty(&file).map_err(PinError::Json)
    }

    /// Reads a record back. Every digest and every text is checked.
    pub fn from_json(text: &str) -> Result<PinnedServer, PinError> {
        if text.len() > limit::PIN_RECORD_BYTES_MAX {
            return Err(PinError::TooLarge);
        }
        // The format before the rest: a record of another version says so and is
        // not called damaged.
        let version: Value = serde_json::from_str(text).map_err(PinError::Json)?;
        let found = version.get("format").and_then(Value::as_str).unwrap_or("");
        if found != FORMAT {
            return Err(PinError::Format {
                found: elided(found, 60),
            });
        }
        let file: RecordFile = serde_json::from_value(version).map_err(PinError::Json)?;
        let server = match file.server {
            None => None,
            Some(pin) => Some(server_pin(pin)?),
        };
        let mut items = BTreeMap::new();
        for item in file.items {
            let (key, item) = read_item(item)?;
            let subject = key.to_string();
            // Two records of one item could hold two decisions.
            if items.insert(key, item).is_some() {
                return Err(PinError::Duplicate { subject });
            }
        }
        Ok(PinnedServer {
            decision: word(&file.decision)?,
            server,
            items,
        })
    }
}

fn pin_file<T>(accepted: &Accepted<T>) -> PinFile {
    PinFile {
        scheme: accepted.pin.scheme.clone(),
        digest: accepted.pin.digest.clone(),
        accepted_at_ms: accepted.at_ms,
        text: accepted.pin.text.clone(),
    }
}

fn read_item(file: ItemFile) -> Result<(ItemKey, PinnedItem), PinError> {
    let key = ItemKey {
        kind: word::<ItemKind>(&file.kind)?,
        name: file.name,
    };
    let accepted = match file.accepted {
        None => None,
        Some(pin) => Some(item_pin(&key, pin)?),
    };
    let decision: PinDecision = word(&file.decision)?;
    // Accepted without a text is a contradiction; nothing says what was accepted.
    if decision == PinDecision::Accepted && accepted.is_none() {
        return Err(PinError::Text {
            subject: key.to_string(),
        });
    }
    let item = PinnedItem {
        decision,
        accepted,
        own_description: file.own_description,
    };
    Ok((key, item))
}

fn server_pin(file: PinFile) -> Result<Accepted<ServerDefinition>, PinError> {
    let subject = "the server";
    let value = checked_text(subject, &file)?;
    let definition = ServerDefinition::from_value(&value);
    let same = |definition: &ServerDefinition| {
        Pin::of_server(definition).is_ok_and(|pin| pin.text == file.text)
    };
    match definition.filter(same) {
        Some(definition) => Ok(accepted(definition, file)),
        None => Err(PinError::Text {
            subject: subject.to_owned(),
        }),
    }
}

fn item_pin(key: &ItemKey, file: PinFile) -> Result<Accepted<Definition>, PinError> {
    let subject = key.to_string();
    let value = checked_text(&subject, &file)?;
    let definition = Definition::read(key.kind, &value).ok();
    // What was accepted must come out of the reader as it went in: a text that reads
    // as something else is none of ours.
    let same = |definition: &Definition| {
        definition.key() == *key && Pin::of(definition).is_ok_and(|pin| pin.text == file.text)
    };
    match definition.filter(same) {
        Some(definition) => Ok(accepted(definition, file)),
        None => Err(PinError::Text { subject }),
    }
}

fn checked_text(subject: &str, file: &PinFile) -> Result<Value, PinError> {
    if file.scheme != SCHEME {
        return Err(PinError::Scheme {
            subject: subject.to_owned(),
            found: elided(&file.scheme, 60),
        });
    }
    // A text that was changed by hand is not what the owner accepted.
    if digest::of_text(&file.text) != file.digest {
        return Err(PinError::Digest {
            subject: subject.to_owned(),
        });
    }
    serde_json::from_str(&file.text).map_err(PinError::Json)
}

fn accepted<T>(definition: T, file: PinFile) -> Accepted<T> {
    Accepted {
        definition,
        at_ms: file.accepted_at_ms,
        pin: Pin {
            scheme: file.scheme,
            text: file.text,
            digest: file.digest,
        },
    }
}

fn word<T: Word>(found: &str) -> Result<T, PinError> {
    let known = T::ALL.iter().find(|value| value.word() == found);
    known.copied().ok_or_else(|| PinError::Word {
        found: elided(found, 60),
    })
}
