//! Verifying what the database holds: the walk over the chain, and that the
//! columns filters look at say what the bodies say.

use std::collections::HashMap;

use model::audit::Opening;
use model::audit::chain::{Body, Ending, Head, Record};
use model::audit::walk::{Verified, Walk};
use rusqlite::{Connection, Row};

use crate::audit::read::{newest_checkpoint, record_of};
use crate::error::StoreError;
use crate::ledger::{indexed, place};

const DOING: &str = "walk the audit";

/// The columns of an entry that its bodies say too.
struct Columns {
    call_id: String,
    at_ms: i64,
    origin: String,
    caller: String,
    tool: String,
    end: End,
}

impl Columns {
    fn say(&self, opening: &Opening) -> bool {
        self.call_id == opening.call_id
            && self.at_ms == opening.at_ms
            && self.origin == opening.origin.word()
            && self.caller == opening.caller
            && self.tool == opening.tool
    }
}

#[derive(PartialEq, Eq, Default)]
struct End {
    closed: Option<u64>,
    status: Option<String>,
}

pub(crate) fn verify(
    connection: &Connection,
    expected_head: Option<&Head>,
) -> Result<Verified, StoreError> {
    let fail = StoreError::database(DOING);
    // One transaction, so that the walk sees one moment.
    let transaction = connection.unchecked_transaction().map_err(&fail)?;
    let indexed = indexed(&transaction)?;
    let checkpoint = newest_checkpoint(&transaction)?;
    let mut walk = Walk::new(checkpoint.as_ref(), expected_head.copied());
    let mut ends = HashMap::new();
    let mut statement = transaction
        .prepare(
            "SELECT r.sequence, r.kind, r.previous, r.hash, r.body,
                    e.call_id, e.at_ms, e.origin, e.caller, e.tool, e.closed, e.status
             FROM records r LEFT JOIN entries e ON e.opened = r.sequence
             ORDER BY r.sequence",
        )
        .map_err(&fail)?;
    let mut rows = statement.query([]).map_err(&fail)?;
    while let Some(row) = rows.next().map_err(&fail)? {
        let Ok(record) = record_of(row) else {
            let sequence = row.get(0).map_or(0, place);
            walk.fault(sequence, None, "its columns cannot be read".to_owned());
            return Ok(walk.finish());
        };
        let Ok(body) = walk.step(&record) else {
            return Ok(walk.finish());
        };
        let columns = columns_of(row).ok();
        if let Err((call_id, what)) = compare(&record, body, columns, indexed, &mut ends) {
            walk.fault(record.sequence, call_id, what.to_owned());
            return Ok(walk.finish());
        }
    }
    if let Some((opened, _)) = ends.iter().find(|(_, end)| **end != End::default()) {
        let what = "its index names an end that is not there".to_owned();
        walk.fault(*opened, None, what);
    }
    if let Some(opened) = stray_entry(&transaction)? {
        let what = "the index names an entry that is not there".to_owned();
        walk.fault(opened, None, what);
    }
    Ok(walk.finish())
}

/// Holds the columns against the body. Ends are remembered until their record
/// comes; what is not indexed yet has no columns.
fn compare(
    record: &Record,
    body: Body<Ending>,
    columns: Option<Columns>,
    indexed: u64,
    ends: &mut HashMap<u64, End>,
) -> Result<(), (Option<String>, &'static str)> {
    let is_indexed = record.sequence <= indexed;
    let (agrees, call_id) = match body {
        Body::Open(opening) => {
            let agrees = match columns {
                None => !is_indexed,
                Some(columns) => {
                    let agrees = is_indexed && columns.say(&opening);
                    ends.insert(record.sequence, columns.end);
                    agrees
                }
            };
            (agrees, opening.call_id)
        }
        Body::Close(close) => {
            let end = match is_indexed {
                true => End {
                    closed: Some(record.sequence),
                    status: Some(close.closing.status.word().to_owned()),
                },
                false => End::default(),
            };
            let found = ends.remove(&close.opened);
            let is_opening_indexed = close.opened <= indexed;
            let agrees = match found {
                Some(found) => found == end,
                None => !is_opening_indexed,
            };
            (agrees, close.call_id)
        }
        Body::Checkpoint(_) => return Ok(()),
    };
    match agrees {
        true => Ok(()),
        false => Err((Some(call_id), "its index says something else than its body")),
    }
}

fn columns_of(row: &Row<'_>) -> rusqlite::Result<Columns> {
    Ok(Columns {
        call_id: row.get(5)?,
        at_ms: row.get(6)?,
        origin: row.get(7)?,
        caller: row.get(8)?,
        tool: row.get(9)?,
        end: End {
            closed: row.get::<_, Option<i64>>(10)?.map(place),
            status: row.get(11)?,
        },
    })
}

/// A row of the index without an open record.
fn stray_entry(connection: &Connection) -> Result<Option<u64>, StoreError> {
    let fail = StoreError::database(DOING);
    let mut statement = connection
        .prepare(
            "SELECT e.opened FROM entries e LEFT JOIN records r
             ON r.sequence = e.opened AND r.kind = 'open'
             WHERE r.sequence IS NULL ORDER BY e.opened LIMIT 1",
        )
        .map_err(&fail)?;
    let mut rows = statement.query([]).map_err(&fail)?;
    match rows.next().map_err(&fail)? {
        Some(row) => row.get(0).map(|opened| Some(place(opened))).map_err(&fail),
        None => Ok(None),
    }
}
