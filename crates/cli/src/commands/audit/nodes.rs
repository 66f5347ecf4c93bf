//! `ringfence audit verify --nodes` and `audit list --nodes`: the logs of several nodes,
//! held against each other or in one list.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use engine::SECRETS_FILE;
use host::secrets::Secrets;
use model::config::Config;
use model::record::audit::nodes::NodeFault;
use model::record::note::{NoteKey, SignedNote};
use model::text::one_line;
use serde_json::json;
use store::{Filter, NodeItem, NodePath, ShipDatabase, ShippedLog, VerifiedNodes, verify_nodes};

use super::evidence::{checkpoints, read_key};
use super::show_item;
use crate::arguments::AuditVerify;
use crate::output::exit::Exit;
use crate::output::printer::{Format, Printer, Style};
use crate::settings;
use crate::wiring::{self, ship};

/// Verifies the nodes that are named.
pub(super) fn run(verify: &AuditVerify, printer: &mut Printer) -> anyhow::Result<Exit> {
    let paths = &verify.against.nodes;
    let keys = &verify.against.key;
    if !keys.is_empty() && keys.len() != paths.len() {
        bail!(
            "{} nodes and {} keys are named; write one `--key` for each node, in their order",
            paths.len(),
            keys.len()
        );
    }
    let mut nodes = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let key = keys.get(number).map(|key| read_key(key)).transpose()?;
        let path = path.clone();
        nodes.push(NodePath { path, key });
    }
    let verified = verify_nodes(&nodes, &checkpoints(verify)?)?;
    // An auditor has no home, and a name is a convenience.
    let home = wiring::absolute_home(&verify.home).ok();
    let config = home.and_then(|home| engine::registry::read_config(&home).ok());
    let names = config.map_or_else(PeerNames::default, |(config, _)| PeerNames::of(&config));
    Ok(show_all(&verified, &names, printer))
}

/// The names that the settings give to logs.
#[derive(Default)]
struct PeerNames(BTreeMap<String, String>);

impl PeerNames {
    fn of(config: &Config) -> PeerNames {
        let peers = config.audit.peers.iter();
        PeerNames(
            peers
                .map(|peer| (peer.key.name().to_owned(), peer.name.clone()))
                .collect(),
        )
    }

    /// What the settings call a log, if they do.
    fn peer(&self, log: &str) -> Option<&str> {
        self.0.get(log).map(String::as_str)
    }

    /// A log for people: its name, and what the settings call it.
    fn shown(&self, log: &str) -> String {
        match self.peer(log) {
            Some(peer) => format!("{} ({})", one_line(log), one_line(peer)),
            None => one_line(log),
        }
    }
}

fn show_all(verified: &VerifiedNodes, names: &PeerNames, printer: &mut Printer) -> Exit {
    match printer.format() {
        Format::Json => show_json(verified, names, printer),
        Format::Human => show(verified, names, printer),
    }
    match verified.is_whole() {
        true => Exit::Done,
        false => Exit::No,
    }
}

/// Verifies every node from the database that records are shipped to. The keys are those of
/// this home and its peers, and those that are named. The log of this home is also held
/// against the heads that lie here.
pub(super) fn run_shipped(verify: &AuditVerify, printer: &mut Printer) -> anyhow::Result<Exit> {
    let home = wiring::absolute_home(&verify.home)?;
    let config = engine::registry::read_config(&home)?.0;
    let own = store::public_key(&home)?;
    let mut keys: Vec<NoteKey> = config.audit.peers.iter().map(|it| it.key.clone()).collect();
    keys.extend(own.clone());
    let expected = expected(keys.clone(), own.as_ref(), store::shipped_through(&home)?);
    for key in &verify.against.key {
        keys.push(read_key(key)?);
    }
    let checkpoints = checkpoints(verify)?;
    let folder = std::env::temp_dir().join(format!("ringfence-verify-{}", std::process::id()));
    let database = shipped_to(&home, &config)?;
    let written = wiring::runtime()?.block_on(database.write_logs(&folder, &home));
    let verified = written
        .map_err(anyhow::Error::new)
        .and_then(|logs| verify_shipped(logs, &keys, &checkpoints, &expected));
    // Copies of records stay nowhere, whatever was found.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(show_all(&verified?, &PeerNames::of(&config), printer))
}

/// The logs that must be in the database, each with the last record that must be there: those
/// of the peers, and the own one if the database ever acknowledged a record of it.
fn expected(
    known: Vec<NoteKey>,
    own: Option<&NoteKey>,
    shipped: Option<u64>,
) -> BTreeMap<String, u64> {
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for key in known {
        let is_own = own.is_some_and(|own| own.name() == key.name());
        match shipped.filter(|shipped| *shipped > 0) {
            Some(shipped) if is_own => expected.insert(key.name().to_owned(), shipped),
            // Nothing was shipped from here yet.
            None if is_own => None,
            Some(_) | None => expected.insert(key.name().to_owned(), 1),
        };
    }
    expected
}

/// What is missing of the logs that must be there. Rows that are gone as a whole contradict
/// nothing that is left.
fn missing(expected: &BTreeMap<String, u64>, logs: &[ShippedLog]) -> Vec<NodeFault> {
    let missing = expected.iter().filter_map(|(name, through)| {
        let log = logs.iter().find(|log| log.node == *name);
        let what = match log {
            Some(log) if log.last >= *through => return None,
            Some(log) => format!(
                "its rows end with record {}, but the database acknowledged record {through}: \
                 they were removed there",
                log.last
            ),
            None => "none of its records is in the database: they were removed there, or it \
                     does not ship to it"
                .to_owned(),
        };
        Some(NodeFault {
            node: name.clone(),
            sequence: log.map_or(1, |log| log.last.saturating_add(1)),
            what,
        })
    });
    missing.collect()
}

fn verify_shipped(
    logs: Vec<ShippedLog>,
    keys: &[NoteKey],
    checkpoints: &[SignedNote],
    expected: &BTreeMap<String, u64>,
) -> anyhow::Result<VerifiedNodes> {
    let mut faults = missing(expected, &logs);
    faults.extend(logs.iter().filter_map(|log| log.fault.clone()));
    let mut nodes = Vec::new();
    for log in logs {
        let key = keys.iter().find(|key| key.name() == log.node);
        let key = key.with_context(|| {
            let node = one_line(&log.node);
            format!("no key of `{node}` is known; name it with `--key`")
        })?;
        nodes.push(NodePath {
            path: log.path,
            key: Some(key.clone()),
        });
    }
    let mut verified = verify_nodes(&nodes, checkpoints)?;
    verified.found.faults.extend(faults);
    Ok(verified)
}

/// The database that the settings of a home ship to.
fn shipped_to(home: &Path, config: &Config) -> anyhow::Result<Arc<ShipDatabase>> {
    let ship = config.audit.ship.as_ref();
    let ship = ship.context("no database is named; set `audit.ship.url`")?;
    let secrets = Secrets::open(home.join(SECRETS_FILE)).read()?;
    let environment = settings::environment().over(&secrets);
    ship::database(home, ship, &environment)
}

/// Lists calls and notices of all nodes, newest first.
pub(super) fn run_list(
    home: &Path,
    filter: &Filter,
    printer: &mut Printer,
) -> anyhow::Result<Exit> {
    let config = engine::registry::read_config(home)?.0;
    let database = shipped_to(home, &config)?;
    let items = wiring::runtime()?.block_on(database.list(filter))?;
    let names = PeerNames::of(&config);
    match printer.format() {
        Format::Json => {
            let values: serde_json::Result<Vec<_>> =
                items.iter().map(|item| named(item, &names)).collect();
            printer.json(&serde_json::Value::Array(values?));
        }
        Format::Human => {
            for item in &items {
                show_item(Some(&names.shown(&item.node)), &item.item, printer);
            }
        }
    }
    Ok(Exit::Done)
}

/// An item with what the settings call its node.
fn named(item: &NodeItem, names: &PeerNames) -> serde_json::Result<serde_json::Value> {
    let mut value = serde_json::to_value(item)?;
    if let (Some(object), Some(peer)) = (value.as_object_mut(), names.peer(&item.node)) {
        object.insert("peer".to_owned(), peer.into());
    }
    Ok(value)
}

fn show(verified: &VerifiedNodes, names: &PeerNames, printer: &mut Printer) {
    for node in &verified.nodes {
        let name = names.shown(&node.name);
        let line = match &node.verified.broken {
            None => format!(
                "{}  {name}  records: {}, anchors: {}, signed: {}",
                printer.styled(Style::Good, "whole"),
                node.verified.records,
                node.verified.anchors,
                node.verified.signed
            ),
            Some(broken) => format!(
                "{}  {name}  record {}: {}",
                printer.styled(Style::Bad, "broken"),
                broken.sequence,
                one_line(&broken.what)
            ),
        };
        printer.line(&line);
    }
    for fault in &verified.found.faults {
        let word = printer.styled(Style::Bad, "broken");
        let (name, what) = (names.shown(&fault.node), one_line(&fault.what));
        printer.line(&format!(
            "{word}  {name}  record {}: {what}",
            fault.sequence
        ));
    }
    for vouched in &verified.found.vouched {
        printer.line(&format!(
            "anchored  {}, up to record {}, by {}",
            names.shown(&vouched.node),
            vouched.size,
            names.shown(&vouched.by)
        ));
    }
    for name in &verified.found.unchecked {
        let word = printer.styled(Style::Caution, "unchecked");
        printer.line(&format!(
            "{word}  {}: it is anchored, but its log was not given",
            names.shown(name)
        ));
    }
}

fn show_json(verified: &VerifiedNodes, names: &PeerNames, printer: &mut Printer) {
    let nodes = verified.nodes.iter().map(|node| {
        json!({
            "path": node.path.display().to_string(),
            "log": node.name,
            "peer": names.peer(&node.name),
            "records": node.verified.records,
            "anchors": node.verified.anchors,
            "signed": node.verified.signed,
            "broken": node.verified.broken,
        })
    });
    let faults = verified.found.faults.iter();
    let faults = faults.map(|it| json!({"log": it.node, "sequence": it.sequence, "what": it.what}));
    let anchored = verified.found.vouched.iter();
    let anchored = anchored.map(|it| json!({"log": it.node, "size": it.size, "by": it.by}));
    printer.json(&json!({
        "ok": verified.is_whole(),
        "nodes": nodes.collect::<Vec<_>>(),
        "faults": faults.collect::<Vec<_>>(),
        "anchored": anchored.collect::<Vec<_>>(),
        "unchecked": verified.found.unchecked,
    }));
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use model::record::note::NoteKeyKind;

    use super::*;

    #[test]
    fn a_log_that_must_be_in_the_database_and_is_not_is_a_fault() {
        let key = |name: &str| NoteKey::new(name, NoteKeyKind::Log, [1; 32]).expect("a name");
        let (own, peer) = (key("own"), key("peer"));
        let log = |node: &str, last| ShippedLog {
            node: node.to_owned(),
            path: PathBuf::new(),
            last,
            fault: None,
        };
        let found = |shipped, logs: &[ShippedLog]| -> Vec<(String, u64)> {
            let keys = vec![own.clone(), peer.clone()];
            let faults = missing(&expected(keys, Some(&own), shipped), logs);
            faults
                .into_iter()
                .map(|it| (it.node, it.sequence))
                .collect()
        };
        let fault = |name: &str, sequence| (name.to_owned(), sequence);
        let whole = [log("own", 7), log("peer", 3), log("else", 1)];
        assert_eq!(found(Some(7), &whole), []);
        assert_eq!(found(Some(7), &whole[..1]), [fault("peer", 1)]);
        assert_eq!(found(Some(7), &whole[1..]), [fault("own", 1)]);
        // More was acknowledged than is there now.
        assert_eq!(found(Some(9), &whole), [fault("own", 8)]);
        // Nothing was shipped from here yet.
        for shipped in [None, Some(0)] {
            assert_eq!(found(shipped, &whole[1..]), []);
        }
    }
}
