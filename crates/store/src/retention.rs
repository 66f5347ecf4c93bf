//! Removing what is old: always a prefix of the chain, whole entries only, and
//! never without a checkpoint that says what is gone and where the chain goes on.

use std::sync::mpsc;

use model::audit::chain::{Body, Checkpoint, Ending, Head};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::audit::read::newest_checkpoint;
use crate::audit::{Removed, Retention};
use crate::error::StoreError;
use crate::ledger::{Ledger, head_of, now_ms, number, place};
use crate::limit;

/// A removal under way. Calls are written between its steps.
#[derive(Debug)]
pub(crate) struct Removal {
    rule: Retention,
    /// The last record to go, found by the first step.
    last: Option<u64>,
    removed: Removed,
    reply: mpsc::Sender<Result<Removed, StoreError>>,
}

impl Removal {
    pub(crate) fn new(
        rule: Retention,
        reply: mpsc::Sender<Result<Removed, StoreError>>,
    ) -> Removal {
        Removal {
            rule,
            last: None,
            removed: Removed::default(),
            reply,
        }
    }

    /// Does the next step, in a transaction of its own. Gives itself back if there
    /// is more to do, else answers.
    pub(crate) fn step(mut self, ledger: &mut Ledger) -> Option<Removal> {
        let done = ledger.begin().and_then(|()| {
            let step = self.remove(ledger)?;
            ledger.commit()?;
            Ok(step)
        });
        match done {
            Ok(Step::More(part)) => {
                self.add(&part);
                Some(self)
            }
            Ok(Step::Last(part)) => {
                self.add(&part);
                let _ = self.reply.send(Ok(self.removed));
                None
            }
            Err(error) => {
                ledger.roll_back();
                let _ = self.reply.send(Err(error));
                None
            }
        }
    }

    fn add(&mut self, part: &Removed) {
        self.removed.records += part.records;
        self.removed.entries += part.entries;
        self.removed.through = part.through.or(self.removed.through);
    }

    fn remove(&mut self, ledger: &mut Ledger) -> Result<Step, StoreError> {
        ledger.index()?;
        let last = match self.last {
            Some(last) => last,
            None => last_to_remove(ledger.connection(), &self.rule, ledger.head())?,
        };
        self.last = Some(last);
        remove_through(ledger, last)
    }
}

enum Step {
    More(Removed),
    Last(Removed),
}

/// Removes as much as one step may, up to a place.
fn remove_through(ledger: &mut Ledger, wanted: u64) -> Result<Step, StoreError> {
    let fail = StoreError::database("remove old entries");
    let earlier = match newest_checkpoint(ledger.connection())? {
        None => None,
        Some(record) => match record.read::<Ending>() {
            Ok(Body::Checkpoint(checkpoint)) => Some(checkpoint),
            Ok(Body::Open(_) | Body::Close(_)) | Err(_) => {
                return Err(StoreError::Damaged {
                    sequence: record.sequence,
                    what: "it is no checkpoint".to_owned(),
                });
            }
        },
    };
    let start = earlier.as_ref().map_or(0, |it| it.through.sequence);
    // Without this a checkpoint would be replaced by the next one for ever.
    if wanted <= start || !has_ended_entries(ledger.connection(), wanted)? {
        return Ok(Step::Last(Removed::default()));
    }
    let last = wanted.min(start + limit::REMOVE_STEP_RECORDS_MAX);
    let through = ledger
        .connection()
        .query_row(
            "SELECT sequence, hash FROM records WHERE sequence = ?1",
            [number(last)],
            |row| Ok(head_of(row.get(0)?, row.get(1)?)),
        )
        .map_err(&fail)?;
    let kept = kept(ledger.connection(), last)?;
    let (from_ms, to_ms) = times(ledger.connection(), last)?;
    let entries = ledger
        .connection()
        .execute(
            "DELETE FROM entries WHERE opened <= ?1 AND closed <= ?1",
            [number(last)],
        )
        .map_err(&fail)?;
    let records = ledger
        .connection()
        .execute(
            "DELETE FROM records WHERE sequence <= ?1
             AND NOT (kind = 'open' AND sequence IN (SELECT opened FROM entries WHERE opened <= ?1))",
            [number(last)],
        )
        .map_err(&fail)?;
    let (records, entries) = (count(records), count(entries));
    let checkpoint = Checkpoint {
        at_ms: now_ms(),
        through,
        records: records + earlier.as_ref().map_or(0, |it| it.records),
        entries: entries + earlier.as_ref().map_or(0, |it| it.entries),
        from_ms,
        to_ms,
        kept,
    };
    ledger.checkpoint(&checkpoint)?;
    let removed = Removed {
        records,
        entries,
        through: Some(through.sequence),
    };
    Ok(match last == wanted {
        true => Step::Last(removed),
        false => Step::More(removed),
    })
}

/// The last record of the prefix the rule names; 0 for nothing.
fn last_to_remove(
    connection: &Connection,
    rule: &Retention,
    head: Head,
) -> Result<u64, StoreError> {
    let fail = StoreError::database("look for old entries");
    let by_age = match rule.older_than_ms {
        None => 0,
        Some(older_than_ms) => {
            let first_young: Option<i64> = connection
                .query_row(
                    "SELECT opened FROM entries WHERE at_ms >= ?1 ORDER BY opened LIMIT 1",
                    [older_than_ms],
                    |row| row.get(0),
                )
                .optional()
                .map_err(&fail)?;
            first_young.map_or(head.sequence, |opened| place(opened).saturating_sub(1))
        }
    };
    let by_size = match rule.bytes_max {
        None => 0,
        Some(bytes_max) => last_beyond(connection, bytes_max)?,
    };
    Ok(by_age.max(by_size).min(head.sequence))
}

/// The last record, counted from the newest, that does not fit in the size. An
/// index entry and the row's own fields are counted along.
fn last_beyond(connection: &Connection, bytes_max: u64) -> Result<u64, StoreError> {
    const ROW_BYTES: i64 = 300;
    let fail = StoreError::database("measure the audit");
    let mut statement = connection
        .prepare("SELECT sequence, length(body) FROM records ORDER BY sequence DESC")
        .map_err(&fail)?;
    let mut rows = statement.query([]).map_err(&fail)?;
    let mut left = number(bytes_max);
    while let Some(row) = rows.next().map_err(&fail)? {
        let bytes: i64 = row.get(1).map_err(&fail)?;
        left -= bytes + ROW_BYTES;
        if left < 0 {
            return Ok(place(row.get(0).map_err(&fail)?));
        }
    }
    Ok(0)
}

/// Open records of the prefix whose attempt has not ended within it.
fn kept(connection: &Connection, last: u64) -> Result<Vec<Head>, StoreError> {
    let fail = StoreError::database("look for open entries");
    let mut statement = connection
        .prepare(
            "SELECT r.sequence, r.hash FROM entries e JOIN records r ON r.sequence = e.opened
             WHERE e.opened <= ?1 AND (e.closed IS NULL OR e.closed > ?1) ORDER BY e.opened",
        )
        .map_err(&fail)?;
    let rows = statement
        .query_map([number(last)], |row| Ok(head_of(row.get(0)?, row.get(1)?)))
        .map_err(&fail)?;
    let kept: Vec<Head> = rows.collect::<Result<_, _>>().map_err(&fail)?;
    if kept.len() > limit::KEPT_MAX {
        return Err(StoreError::TooManyOpen { open: kept.len() });
    }
    Ok(kept)
}

fn has_ended_entries(connection: &Connection, last: u64) -> Result<bool, StoreError> {
    connection
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM entries WHERE opened <= ?1 AND closed <= ?1)",
            [number(last)],
            |row| row.get(0),
        )
        .map_err(StoreError::database("look for old entries"))
}

fn times(connection: &Connection, last: u64) -> Result<(i64, i64), StoreError> {
    connection
        .query_row(
            "SELECT coalesce(min(at_ms), 0), coalesce(max(at_ms), 0) FROM entries
             WHERE opened <= ?1 AND closed <= ?1",
            params![number(last)],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .map_err(StoreError::database("look for old entries"))
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
