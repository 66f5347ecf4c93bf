//! The settings of the audit: what is recorded, how surely, and who else keeps evidence
//! about it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::shown::{toml_list, toml_text};
use super::{Faults, StoreConfig};
use crate::limits;
use crate::record::audit::anchor::AnchorPace;
use crate::record::note::{NoteFault, NoteKey, NoteKeyKind};
use crate::word::Word as _;

/// What is written down, and how surely.
///
/// Defaults: masked arguments, `standard`, no age limit, 4 GiB, `refuse`; no witness, no
/// other nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditConfig {
    /// How surely a record is on the disk before a reply leaves.
    pub durability: AuditDurability,
    /// What is kept of the arguments.
    pub arguments: ArgumentRetention,
    /// Days a record is kept; forever if absent.
    pub keep_days: Option<u64>,
    /// Bytes the records may take.
    pub bytes_max: u64,
    /// What happens when they are nearly used up.
    pub when_full: WhenFull,
    /// A file elsewhere that signed heads are added to; relative to the home.
    pub heads_file: Option<String>,
    /// The address of a witness that heads are shown to.
    pub witness: Option<String>,
    /// The public key of that witness. Without it, any cosignature is taken.
    pub witness_key: Option<NoteKey>,
    /// The public keys of logs that this server is a witness of.
    pub witness_of: Vec<NoteKey>,
    /// Other nodes, whose heads are anchored in this log.
    pub peers: Vec<AuditPeer>,
    /// A folder that all nodes share, with the newest head of each.
    pub peers_folder: Option<String>,
    /// How often heads of other nodes are anchored.
    pub anchor: AnchorPace,
    /// Where records are copied to.
    pub ship: Option<ShipConfig>,
}

/// Another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPeer {
    /// What the operator calls it.
    pub name: String,
    /// The public key of its log.
    pub key: NoteKey,
    /// Its address as a witness, which heads of this log are shown to.
    pub url: Option<String>,
}

/// A database that records are copied to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShipConfig {
    /// Its address, without a password.
    pub url: String,
    /// The variable that holds the password.
    pub password: Option<String>,
    /// More authorities for its certificate, as a PEM file; a relative one is under the
    /// home folder.
    pub ca_file: Option<String>,
    /// Whether calls of L4 and up wait until their opening is there.
    pub sync: bool,
    /// Whether it is the database of `[store]`, because no other is named.
    pub is_of_store: bool,
}

impl AuditConfig {
    /// Nothing set.
    pub(super) fn standard() -> AuditConfig {
        AuditConfig {
            durability: AuditDurability::Standard,
            arguments: ArgumentRetention::Masked,
            keep_days: None,
            bytes_max: limits::AUDIT_BYTES_DEFAULT,
            when_full: WhenFull::Refuse,
            heads_file: None,
            witness: None,
            witness_key: None,
            witness_of: Vec::new(),
            peers: Vec::new(),
            peers_folder: None,
            anchor: AnchorPace {
                every_ms: limits::ANCHOR_SECONDS_DEFAULT * 1_000,
                records: limits::ANCHOR_RECORDS_DEFAULT,
            },
            ship: None,
        }
    }

    /// The keys of all logs that this server is a witness of: those it was told, and those
    /// of its peers.
    #[must_use]
    pub fn witnessed_keys(&self) -> Vec<NoteKey> {
        let peers = self.peers.iter().map(|peer| &peer.key);
        self.witness_of.iter().chain(peers).cloned().collect()
    }

    /// Every setting with its value.
    pub(super) fn rows(&self) -> Vec<(String, String)> {
        let or_nothing = |text: Option<&str>| text.map(toml_text).unwrap_or_default();
        let key = |key: &NoteKey| toml_text(&key.to_string());
        let keys: Vec<_> = self.witness_of.iter().map(ToString::to_string).collect();
        let keep_days = self.keep_days.map(|days| days.to_string());
        let rows = [
            ("durability", toml_text(self.durability.word())),
            ("arguments", toml_text(self.arguments.word())),
            ("keep_days", keep_days.unwrap_or_default()),
            ("bytes_max", self.bytes_max.to_string()),
            ("when_full", toml_text(self.when_full.word())),
            ("heads_file", or_nothing(self.heads_file.as_deref())),
            ("witness", or_nothing(self.witness.as_deref())),
            (
                "witness_key",
                self.witness_key.as_ref().map(key).unwrap_or_default(),
            ),
            ("witness_of", toml_list(keys.iter().map(String::as_str))),
            ("peers_folder", or_nothing(self.peers_folder.as_deref())),
            ("anchor_seconds", (self.anchor.every_ms / 1_000).to_string()),
            ("anchor_records", self.anchor.records.to_string()),
        ];
        let mut rows: Vec<(String, String)> = rows
            .into_iter()
            .map(|(name, value)| (format!("audit.{name}"), value))
            .collect();
        for peer in &self.peers {
            let name = &peer.name;
            rows.push((format!("audit.peers.{name}.key"), key(&peer.key)));
            let url = or_nothing(peer.url.as_deref());
            rows.push((format!("audit.peers.{name}.url"), url));
        }
        if let Some(ship) = &self.ship {
            rows.push(("audit.ship.url".to_owned(), toml_text(&ship.url)));
            let password = or_nothing(ship.password.as_deref());
            rows.push(("audit.ship.password".to_owned(), password));
            let ca_file = or_nothing(ship.ca_file.as_deref());
            rows.push(("audit.ship.ca_file".to_owned(), ca_file));
            rows.push(("audit.ship.sync".to_owned(), ship.sync.to_string()));
        }
        rows
    }
}

crate::words! {
    /// What happens when the records take nearly all the bytes they may.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WhenFull {
        /// Calls are refused until the owner makes room.
        Refuse = "refuse",
        /// The oldest records go, and a checkpoint says so.
        RemoveOldest = "remove-oldest",
    }
}

crate::words! {
    /// How surely a record is on the disk before a reply leaves.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AuditDurability {
        /// Dangerous calls before they run, the rest within 100 ms.
        Standard = "standard",
        /// Every record, before the reply leaves.
        Full = "full",
    }
}

crate::words! {
    /// What the audit keeps of the arguments.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ArgumentRetention {
        /// All of them, secrets masked.
        Masked = "masked",
        /// Their digest.
        Digest = "digest",
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AuditFile {
    durability: Option<toml::Spanned<String>>,
    arguments: Option<toml::Spanned<String>>,
    keep_days: Option<toml::Spanned<u64>>,
    bytes_max: Option<toml::Spanned<u64>>,
    when_full: Option<toml::Spanned<String>>,
    heads_file: Option<String>,
    witness: Option<toml::Spanned<String>>,
    witness_key: Option<toml::Spanned<String>>,
    witness_of: Vec<toml::Spanned<String>>,
    peers: BTreeMap<toml::Spanned<String>, PeerFile>,
    peers_folder: Option<String>,
    anchor_seconds: Option<toml::Spanned<u64>>,
    anchor_records: Option<toml::Spanned<u64>>,
    ship: Option<toml::Spanned<ShipFile>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PeerFile {
    key: Option<toml::Spanned<String>>,
    url: Option<toml::Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ShipFile {
    url: Option<toml::Spanned<String>>,
    password: Option<toml::Spanned<String>>,
    ca_file: Option<String>,
    sync: Option<bool>,
}

impl Faults<'_> {
    pub(super) fn audit(&mut self, file: AuditFile, store: &StoreConfig) -> AuditConfig {
        let mut audit = AuditConfig::standard();
        self.set_word("durability", file.durability, &mut audit.durability);
        self.set_word("arguments", file.arguments, &mut audit.arguments);
        let days_max = limits::AUDIT_KEEP_DAYS_MAX;
        audit.keep_days = self.read_number("keep_days", file.keep_days, 1..=days_max);
        let bytes = limits::AUDIT_BYTES_MIN..=limits::AUDIT_BYTES_MAX;
        let bytes_max = self.read_number("bytes_max", file.bytes_max, bytes);
        audit.bytes_max = bytes_max.unwrap_or(audit.bytes_max);
        self.set_word("when_full", file.when_full, &mut audit.when_full);
        audit.heads_file = file.heads_file;
        audit.witness = file.witness.and_then(|witness| self.web_address(&witness));
        let witness = file.witness_key;
        audit.witness_key = witness.and_then(|key| self.note_key(&key, NoteKeyKind::Witness));
        for key in &file.witness_of {
            audit
                .witness_of
                .extend(self.note_key(key, NoteKeyKind::Log));
        }
        audit.peers_folder = file.peers_folder;
        let seconds = 1..=limits::ANCHOR_SECONDS_MAX;
        if let Some(seconds) = self.read_number("anchor_seconds", file.anchor_seconds, seconds) {
            audit.anchor.every_ms = seconds.saturating_mul(1_000);
        }
        let records = 1..=limits::ANCHOR_RECORDS_MAX;
        let records = self.read_number("anchor_records", file.anchor_records, records);
        audit.anchor.records = records.unwrap_or(audit.anchor.records);
        audit.peers = self.peers(file.peers);
        audit.ship = file.ship.and_then(|ship| self.ship(ship, store));
        audit
    }

    fn peers(&mut self, file: BTreeMap<toml::Spanned<String>, PeerFile>) -> Vec<AuditPeer> {
        let mut peers: Vec<AuditPeer> = Vec::new();
        for (name, peer) in file {
            if peers.len() >= limits::PEERS_MAX {
                let message = format!("there are more than {} peers", limits::PEERS_MAX);
                self.say(&name, message, None);
                break;
            }
            let Some(key) = &peer.key else {
                let message = format!("the peer `{}` has no `key`", name.get_ref());
                let fix = "write the key that `ringfence audit key` prints there".to_owned();
                self.say(&name, message, Some(fix));
                continue;
            };
            let url = peer.url.as_ref().and_then(|url| self.web_address(url));
            let Some(key) = self.note_key(key, NoteKeyKind::Log) else {
                continue;
            };
            if let Some(known) = peers.iter().find(|known| known.key.name() == key.name()) {
                let message = format!("the peer `{}` is the same log", known.name);
                self.say(&name, message, None);
                continue;
            }
            let name = name.into_inner();
            peers.push(AuditPeer { name, key, url });
        }
        peers
    }

    fn ship(
        &mut self,
        spanned: toml::Spanned<ShipFile>,
        store: &StoreConfig,
    ) -> Option<ShipConfig> {
        let Some(url) = &spanned.get_ref().url else {
            let Some(url) = store.url.clone() else {
                let message = "no database is named".to_owned();
                let fix = "set `url` here or under `[store]`".to_owned();
                self.say(&spanned, message, Some(fix));
                return None;
            };
            return Some(ShipConfig {
                url,
                password: Some(store.password.clone()),
                ca_file: store.ca_file.clone(),
                sync: spanned.get_ref().sync.unwrap_or(false),
                is_of_store: true,
            });
        };
        let parsed = url::Url::parse(url.get_ref());
        let is_sound = parsed.as_ref().is_ok_and(|url| {
            matches!(url.scheme(), "postgres" | "postgresql") && url.password().is_none()
        });
        if !is_sound {
            let message = "`url` is `postgres://USER@HOST/DATABASE`, without a password";
            let fix = "name the variable that holds the password with `password`".to_owned();
            self.say(url, message.to_owned(), Some(fix));
        }
        let file = spanned.into_inner();
        Some(ShipConfig {
            url: file.url?.into_inner(),
            password: file.password.map(toml::Spanned::into_inner),
            ca_file: file.ca_file,
            sync: file.sync.unwrap_or(false),
            is_of_store: false,
        })
    }

    /// A public key of a kind.
    fn note_key(&mut self, text: &toml::Spanned<String>, kind: NoteKeyKind) -> Option<NoteKey> {
        let read: Result<NoteKey, NoteFault> = text.get_ref().parse();
        match read {
            Ok(key) if key.kind() == kind => Some(key),
            Ok(_) => {
                let (message, fix) = match kind {
                    NoteKeyKind::Log => ("this is the key of a witness", "ringfence audit key"),
                    NoteKeyKind::Witness => {
                        ("this is the key of a log", "ringfence audit witness --key")
                    }
                };
                self.say(
                    text,
                    message.to_owned(),
                    Some(format!("write what `{fix}` prints")),
                );
                None
            }
            Err(fault) => {
                self.say(text, fault.to_string(), None);
                None
            }
        }
    }
}
