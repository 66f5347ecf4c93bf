//! Nodes that vouch for each other's audit: a server shows its newest head to the others,
//! and anchors theirs in its own log. A head that cannot be is reported at once; `ringfence
//! audit verify --nodes` shows the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use engine::{Alarm, Clock, Engine};
use host::fetch::TlsTrust;
use model::config::{AuditConfig, AuditPeer, ShipConfig};
use model::record::audit::anchor::{AnchorPlan, WitnessedLogs};
use model::record::note::{NoteKey, NoteKeyKind, SignedNote};
use model::record::witness::HeadConflict;
use store::{HeadExchange, ShipDatabase, StoreError, is_signature_sound};

use crate::wiring::witness::PinnedWitness;
use crate::wiring::{outbound, ship, witness};

/// How often a server looks for heads of others.
const EVERY: Duration = Duration::from_millis(500);
/// Reasons for failures that are remembered, so that each is reported once.
const TOLD_MAX: usize = 256;

/// Exchanges heads while a server runs.
pub(crate) async fn run(engine: Arc<Engine>, trust: TlsTrust, alarm: Alarm) {
    let mut node = Node {
        engine,
        trust,
        alarm,
        own: None,
        plan: AnchorPlan::default(),
        shown: BTreeMap::new(),
        published: None,
        database: None,
        told: BTreeSet::new(),
    };
    loop {
        // Read in each turn: settings can change while the server runs.
        let mut audit = node.engine.registry().current().config.audit.clone();
        let own = node.own_name().await;
        // One file of settings may serve all nodes.
        audit
            .peers
            .retain(|peer| own.as_deref() != Some(peer.key.name()));
        let has_peers = !audit.peers.is_empty() || audit.ship.is_some();
        node.engine.store().audit().hurry_heads(has_peers);
        if has_peers {
            node.publish(&audit).await;
            node.anchor(&audit).await;
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// This node, as it stands to the others.
struct Node {
    engine: Arc<Engine>,
    trust: TlsTrust,
    alarm: Alarm,
    /// The name of this node's log.
    own: Option<String>,
    plan: AnchorPlan,
    /// The records that each peer cosigned, by its name.
    shown: BTreeMap<String, u64>,
    /// The records of the head that was published last.
    published: Option<u64>,
    /// The database that all nodes ship to.
    database: Option<(ShipConfig, Arc<ShipDatabase>)>,
    told: BTreeSet<String>,
}

impl Node {
    /// The name of this node's log, once there is a key.
    async fn own_name(&mut self) -> Option<String> {
        if self.own.is_none() {
            let store = self.engine.store().clone();
            let key = tokio::task::spawn_blocking(move || store.audit().public_key());
            let key = key.await.ok()?.ok()?;
            self.own = key.map(|key| key.name().to_owned());
        }
        self.own.clone()
    }

    /// Shows the newest head to all others.
    async fn publish(&mut self, audit: &AuditConfig) {
        let store = self.engine.store().clone();
        let newest = tokio::task::spawn_blocking(move || {
            let key = store.audit().public_key().ok().flatten()?;
            Some((store.audit().signed_head().ok()?, key))
        });
        let Ok(Some((note, key))) = newest.await else {
            return;
        };
        let Ok(head) = note.head() else {
            return;
        };
        for peer in &audit.peers {
            let is_shown = self.shown.get(&peer.name) == Some(&head.size);
            if let (Some(url), false) = (&peer.url, is_shown) {
                self.show(peer, url).await;
            }
        }
        if self.published == Some(head.size) {
            return;
        }
        let mut is_published = true;
        for exchange in self.exchanges(audit) {
            if let Err(error) = self.publish_at(&exchange, &note, &key).await {
                is_published = false;
                self.tell(&format!("the head of the audit was not published: {error}"));
            }
        }
        if is_published {
            // Only if every place took it: a failure is tried again in the next turn.
            self.published = Some(head.size);
        }
    }

    /// Leaves the newest head at a place, unless the head that is there is not of this log's
    /// past: then it is what shows others that this log was rolled back, and stays.
    async fn publish_at(
        &self,
        exchange: &HeadExchange,
        note: &SignedNote,
        key: &NoteKey,
    ) -> Result<(), StoreError> {
        let place = match exchange {
            HeadExchange::Witnessed => return Ok(()),
            HeadExchange::Folder(folder) => folder.display().to_string(),
            HeadExchange::Database(_) => "audit_heads".to_owned(),
        };
        let store = self.engine.store().clone();
        let there = match exchange {
            // By name: a table full of other names must not hide it.
            HeadExchange::Database(database) => Vec::from_iter(database.head_of(key.name()).await?),
            HeadExchange::Witnessed | HeadExchange::Folder(_) => exchange.heads(&store).await?,
        };
        let checked = tokio::task::spawn_blocking(move || {
            let audit = store.audit();
            audit.check_published(&there, &place)
        });
        checked.await.map_err(|_| StoreError::Closed)??;
        exchange.publish(note, key).await
    }

    /// Shows the newest head to one other node, as its witness.
    async fn show(&mut self, peer: &AuditPeer, url: &str) {
        let key = &peer.key;
        let key = NoteKey::new(key.name(), NoteKeyKind::Witness, *key.public());
        let old = self.shown.get(&peer.name).copied().unwrap_or(0);
        let setting = format!("audit.peers.{}.url", peer.name);
        let asked = match outbound::client(&setting, url, &self.trust) {
            Ok(fetch) => {
                let audit = self.engine.store().audit();
                let pinned = key.as_ref().map(|key| PinnedWitness {
                    key,
                    named_by: "`audit.peers`",
                });
                witness::ask(audit, &fetch, url, pinned, old).await
            }
            Err(error) => Err(error),
        };
        match asked {
            Ok((cosigned, _)) => {
                self.shown.insert(peer.name.clone(), cosigned.size);
            }
            Err(error) => self.tell(&format!(
                "the audit was not shown to `{}`: {error:#}",
                peer.name
            )),
        }
    }

    /// Anchors the newest heads of others, if that is due.
    async fn anchor(&mut self, audit: &AuditConfig) {
        let mut notes: Vec<SignedNote> = Vec::new();
        let mut witnessed = WitnessedLogs::default();
        for exchange in self.exchanges(audit) {
            let heads = exchange.heads(self.engine.store()).await;
            match (heads, &exchange) {
                (Ok(heads), HeadExchange::Witnessed) => witnessed.heads = heads,
                (Ok(heads), HeadExchange::Folder(_) | HeadExchange::Database(_)) => {
                    notes.extend(heads);
                }
                (Err(error), _) => {
                    self.tell(&format!("the heads of others cannot be read: {error}"));
                }
            }
        }
        let store = self.engine.store().clone();
        let kept = tokio::task::spawn_blocking(move || store.audit().conflicts());
        match kept.await {
            Ok(Ok(kept)) => {
                let forked = kept.iter().filter(|it| it.conflict == HeadConflict::Forked);
                witnessed.forked = forked.map(|it| it.origin.clone()).collect();
            }
            Ok(Err(error)) => {
                // Without it, a fork could be anchored.
                self.tell(&format!("heads of others are not anchored: {error}"));
                return;
            }
            Err(_) => return,
        }
        let keys: Vec<NoteKey> = audit.peers.iter().map(|peer| peer.key.clone()).collect();
        let sighting = self
            .plan
            .look(&notes, &witnessed, &keys, &is_signature_sound);
        // A head that contradicts an earlier one is evidence, so it is told even if nothing
        // is anchored.
        for fault in &sighting.faults {
            self.tell(&format!("the audit of another node is in doubt: {fault}"));
        }
        let store = self.engine.store().clone();
        let end = tokio::task::spawn_blocking(move || store.audit().head());
        let Ok(Ok(end)) = end.await else {
            return;
        };
        let now_ms = Clock::system().now_ms();
        let due = self.plan.due(&sighting, now_ms, end.sequence, audit.anchor);
        let Some(anchor) = due else {
            return;
        };
        let store = self.engine.store().clone();
        let written = anchor.clone();
        let written = tokio::task::spawn_blocking(move || store.audit().anchor(&written));
        match written.await {
            // Noted after it is written: what is not in the log is not anchored.
            Ok(Ok(link)) => self.plan.note(&anchor, link.sequence),
            Ok(Err(error)) => self.tell(&format!("heads of others were not anchored: {error}")),
            Err(_) => {}
        }
    }

    /// The places where heads are found and left.
    fn exchanges(&mut self, audit: &AuditConfig) -> Vec<HeadExchange> {
        let home = self.engine.home();
        let folder = audit.peers_folder.as_ref();
        let folder = folder.map(|folder| HeadExchange::Folder(home.join(folder)));
        let database = self.database(audit.ship.as_ref());
        std::iter::once(HeadExchange::Witnessed)
            .chain(folder)
            .chain(database.map(HeadExchange::Database))
            .collect()
    }

    /// The database that all nodes ship to. What is wrong with it is reported where records
    /// are shipped.
    fn database(&mut self, wanted: Option<&ShipConfig>) -> Option<Arc<ShipDatabase>> {
        if self.database.as_ref().map(|(config, _)| config) != wanted {
            self.database = None;
        }
        let wanted = wanted?;
        if self.database.is_none() {
            let environment = self.engine.environment().ok()?;
            let database = ship::database(self.engine.home(), wanted, &environment).ok()?;
            self.database = Some((wanted.clone(), database));
        }
        let database = self.database.as_ref();
        database.map(|(_, database)| Arc::clone(database))
    }

    /// Reports a failure, once for each reason.
    fn tell(&mut self, what: &str) {
        if self.told.len() >= TOLD_MAX {
            self.told.clear();
        }
        if self.told.insert(what.to_owned()) {
            self.alarm.raise(what);
        }
    }
}
