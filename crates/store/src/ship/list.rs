//! Reading what was shipped: calls and notices of all nodes in one list. A row is shown
//! only if its hash fits its body; whether the rows are the log of their node is what
//! `audit verify --nodes` shows.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use model::record::audit::chain::{Record, RecordKind, link};
use model::record::audit::nodes::NodeFault;
use model::record::note::SignedNote;
use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::database::{ShipDatabase, column, hash_of, integer, number, wait_for};
use super::rows::Shown;
use crate::audit::entry::{AuditItem, Filter, Rows};
use crate::audit::evidence::head_file;
use crate::audit::log::line::{self, Line};
use crate::audit::log::segment;
use crate::audit::{notices, read};
use crate::error::StoreError;
use crate::home::audit_folder;
use crate::home::files::make_folder;
use crate::limit;

/// A call or notice of a node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeItem {
    /// The name of the node's log.
    pub node: String,
    /// What it is.
    #[serde(flatten)]
    pub item: AuditItem,
}

const LIST: &str = "
    SELECT o.node, o.sequence, o.kind, o.previous, o.hash, o.body,
           c.sequence, c.kind, c.previous, c.hash, c.body
    FROM audit_records o
    LEFT JOIN audit_records c
        ON c.node = o.node AND c.kind = 'close' AND c.opened = o.sequence
    WHERE o.kind = ANY($1)
        AND ($2::text IS NULL OR o.tool = $2)
        AND ($3::text IS NULL OR o.caller = $3)
        AND ($4::text IS NULL OR c.status = $4)
        AND ($5::bigint IS NULL OR o.at_ms >= $5)
        AND ($6::bigint IS NULL OR o.at_ms < $6)
        AND (NOT $7 OR c.differs)
    ORDER BY o.at_ms DESC, o.node, o.sequence DESC
    LIMIT $8";

impl ShipDatabase {
    /// Calls and notices of all nodes, newest first.
    pub async fn list(&self, filter: &Filter) -> Result<Vec<NodeItem>, StoreError> {
        // Filters for calls select no notices.
        let is_of_calls = filter.tool.is_some() || filter.status.is_some() || filter.differs;
        let kinds: Vec<&str> = match filter.rows {
            Rows::Calls => vec![RecordKind::Open.word()],
            Rows::Notices => vec![RecordKind::Notice.word()],
            Rows::All if is_of_calls => vec![RecordKind::Open.word()],
            Rows::All => vec![RecordKind::Open.word(), RecordKind::Notice.word()],
        };
        let most = filter.limit.unwrap_or(limit::LIST_MAX).min(limit::LIST_MAX);
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let status = filter.status.map(model::record::audit::Status::word);
        let values: [&(dyn ToSql + Sync); 8] = [
            &kinds,
            &filter.tool,
            &filter.caller,
            &status,
            &filter.since_ms,
            &filter.until_ms,
            &filter.differs,
            &most,
        ];
        let client = self.client().await?;
        let rows = wait_for("list what was shipped", client.get()?.query(LIST, &values)).await?;
        rows.iter().map(item).collect()
    }

    /// Records of a node behind a sequence, oldest first.
    pub async fn records(&self, node: &str, after: u64) -> Result<Vec<Record>, StoreError> {
        let client = self.client().await?;
        let sql = "SELECT node, sequence, kind, previous, hash, body FROM audit_records
                   WHERE node = $1 AND sequence > $2 ORDER BY sequence LIMIT $3";
        let most = i64::try_from(limit::SHIP_RECORDS_MAX).unwrap_or(i64::MAX);
        let values: [&(dyn ToSql + Sync); 3] = [&node, &integer(after), &most];
        let rows = wait_for("read what was shipped", client.get()?.query(sql, &values)).await?;
        rows.iter().map(|row| record(row, 1)).collect()
    }

    /// The same, each with the columns that lists use.
    async fn rows(&self, node: &str, after: u64) -> Result<Vec<(Record, Shown)>, StoreError> {
        let client = self.client().await?;
        let sql = "SELECT node, sequence, kind, previous, hash, body,
                          at_ms, id, caller, tool, status, differs, opened FROM audit_records
                   WHERE node = $1 AND sequence > $2 ORDER BY sequence LIMIT $3";
        let most = i64::try_from(limit::SHIP_RECORDS_MAX).unwrap_or(i64::MAX);
        let values: [&(dyn ToSql + Sync); 3] = [&node, &integer(after), &most];
        let rows = wait_for("read what was shipped", client.get()?.query(sql, &values)).await?;
        rows.iter()
            .map(|row| Ok((record(row, 1)?, shown(row)?)))
            .collect()
    }
}

/// The columns that lists use.
fn shown(row: &Row) -> Result<Shown, StoreError> {
    Ok(Shown {
        at_ms: column(row, 6)?,
        id: column(row, 7)?,
        caller: column(row, 8)?,
        tool: column(row, 9)?,
        status: column(row, 10)?,
        differs: column(row, 11)?,
        opened: column(row, 12)?,
    })
}

/// The log of a node, as it was shipped.
#[derive(Clone, Debug)]
pub struct ShippedLog {
    /// The name of the log.
    pub node: String,
    /// A folder with its records and its newest head, laid out as in a home.
    pub path: PathBuf,
    /// The last record that is there.
    pub last: u64,
    /// The first row whose columns, which lists use, are not what its record says.
    pub fault: Option<NodeFault>,
}

impl ShipDatabase {
    /// Writes what was shipped of each node to a folder of its own, to be verified as a home
    /// would be. Heads are read first: a log that goes on meanwhile has more records, not
    /// fewer. The log of `home` gets the heads that lie there as well.
    pub async fn write_logs(
        &self,
        folder: &Path,
        home: &Path,
    ) -> Result<Vec<ShippedLog>, StoreError> {
        let heads = self.heads().await?;
        // Attack: the database lost its head of this log, or has an old one, and the records
        // behind it were rewritten.
        let known = head_file::read(&audit_folder(home))?;
        let mut logs = Vec::new();
        for (place, node) in self.nodes().await?.into_iter().enumerate() {
            let path = folder.join(place.to_string());
            let audit = audit_folder(&path);
            let (last, fault) = self.write_log(&node, &audit).await?;
            let is_own = |note: &&SignedNote| note.head().is_ok_and(|head| head.origin == node);
            let known: Vec<&SignedNote> = known.iter().filter(is_own).collect();
            let heads = together(heads.iter().filter(is_own), known, last);
            let text: String = heads.iter().map(|note| format!("{note}\n")).collect();
            let wrote = fs::write(audit.join("heads"), text);
            wrote.map_err(|error| StoreError::file("write", &audit, error))?;
            logs.push(ShippedLog {
                node,
                path,
                last,
                fault,
            });
        }
        Ok(logs)
    }

    async fn write_log(
        &self,
        node: &str,
        audit: &Path,
    ) -> Result<(u64, Option<NodeFault>), StoreError> {
        make_folder(audit)?;
        let fail = |error| StoreError::file("write", audit, error);
        let mut file = File::create(segment::path(audit, 0)).map_err(fail)?;
        let mut after = 0;
        let mut fault = None;
        loop {
            let rows = self.rows(node, after).await?;
            let Some((last, _)) = rows.last() else {
                break;
            };
            after = last.sequence;
            let mut text = Vec::new();
            for (record, shown) in rows {
                fault = fault.or_else(|| column_fault(node, &record, &shown));
                let process = None;
                line::write_again(&mut text, &Line { record, process });
            }
            file.write_all(&text).map_err(fail)?;
        }
        Ok((after, fault))
    }

    /// The names of all logs that were shipped.
    async fn nodes(&self) -> Result<Vec<String>, StoreError> {
        let client = self.client().await?;
        let sql = "SELECT DISTINCT node FROM audit_records ORDER BY node LIMIT $1";
        let most = i64::try_from(model::limits::PEERS_MAX * 4).unwrap_or(i64::MAX);
        let rows = wait_for("read what was shipped", client.get()?.query(sql, &[&most])).await?;
        rows.iter().map(|row| column(row, 0)).collect()
    }
}

/// The head of a log that is in the database together with those that its home keeps, in the
/// order they were signed. Heads over records that were not shipped yet are left out.
fn together<'a>(
    published: impl Iterator<Item = &'a SignedNote>,
    known: Vec<&'a SignedNote>,
    last: u64,
) -> Vec<&'a SignedNote> {
    let size = |note: &SignedNote| note.head().map_or(0, |head| head.size);
    let mut heads: Vec<&SignedNote> = known.into_iter().filter(|it| size(it) <= last).collect();
    for note in published {
        if heads.iter().all(|known| known.text() != note.text()) {
            // An older head behind a newer one would look as if the log was rolled back.
            let later = heads.iter().position(|known| size(known) > size(note));
            heads.insert(later.unwrap_or(heads.len()), note);
        }
    }
    heads
}

/// What is wrong with the columns of a row.
fn column_fault(node: &str, record: &Record, shown: &Shown) -> Option<NodeFault> {
    let differing = shown.differing(record);
    (!differing.is_empty()).then(|| NodeFault {
        node: node.to_owned(),
        sequence: record.sequence,
        what: format!(
            "the columns that lists use are not what its body says: {}",
            differing.join(", ")
        ),
    })
}

fn item(row: &Row) -> Result<NodeItem, StoreError> {
    let node: String = column(row, 0)?;
    // Others can write to this database; a row that does not fit its hash is not shown.
    let first = sound(record(row, 1)?)?;
    let closed: Option<i64> = column(row, 6)?;
    let item = match first.kind {
        RecordKind::Notice => AuditItem::Notice(notices::entry(&first)?),
        RecordKind::Open | RecordKind::Close | RecordKind::Checkpoint | RecordKind::Anchor => {
            let close = closed.map(|_| record(row, 6).and_then(sound));
            let entry = read::entry(&first, close.transpose()?.as_ref())?;
            AuditItem::Call(Box::new(entry))
        }
    };
    Ok(NodeItem { node, item })
}

/// The record whose columns begin at an index.
fn record(row: &Row, begin: usize) -> Result<Record, StoreError> {
    let sequence = number(column(row, begin)?);
    let kind: String = column(row, begin + 1)?;
    let previous: Vec<u8> = column(row, begin + 2)?;
    let hash: Vec<u8> = column(row, begin + 3)?;
    let kind = RecordKind::of_word(&kind).ok_or_else(|| StoreError::Damaged {
        sequence,
        what: "it is of no known kind".to_owned(),
    })?;
    Ok(Record {
        sequence,
        kind,
        previous: hash_of(&previous)?,
        hash: hash_of(&hash)?,
        body: column(row, begin + 4)?,
    })
}

fn sound(record: Record) -> Result<Record, StoreError> {
    match link(&record.previous, &record.body) == record.hash {
        true => Ok(record),
        false => Err(StoreError::Damaged {
            sequence: record.sequence,
            what: "its hash does not fit its body in the database".to_owned(),
        }),
    }
}
