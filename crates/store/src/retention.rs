//! Removing what is old: always a prefix of the chain, whole entries only, and
//! never without a checkpoint that says what is gone and where the chain goes on.
//! The checkpoint comes first; then the index forgets, then the files go.

use std::sync::mpsc;

use model::record::audit::chain::{Checkpoint, Head};
use rusqlite::Connection;

use crate::audit::{Removed, Retention};
use crate::error::StoreError;
use crate::index::{Place, number, place};
use crate::ledger::{Ledger, now_ms};
use crate::limit;
use crate::log::Patience;
use crate::log::moment::{Moment, believable};

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

    /// Does the next step, in a group of its own. Gives itself back if there is
    /// more to do, else answers.
    pub(crate) fn step(mut self, ledger: &mut Ledger) -> Option<Removal> {
        match self.remove(ledger) {
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
        self.removed.notices += part.notices;
        self.removed.through = part.through.or(self.removed.through);
    }

    fn remove(&mut self, ledger: &mut Ledger) -> Result<Step, StoreError> {
        ledger.begin(Patience::Bounded)?;
        ledger.index_within()?;
        let moment = ledger.moment()?;
        let last = match self.last {
            Some(last) => last,
            None => last_to_remove(ledger, &moment, &self.rule)?,
        };
        self.last = Some(last);
        remove_through(ledger, &moment, last)
    }
}

enum Step {
    More(Removed),
    Last(Removed),
}

/// Removes as much as one step may, up to a record.
fn remove_through(ledger: &mut Ledger, moment: &Moment, wanted: u64) -> Result<Step, StoreError> {
    let earlier = match moment.newest_checkpoint()? {
        None => None,
        Some(line) => match believable(&line) {
            Some(checkpoint) => Some(checkpoint),
            None => {
                return Err(StoreError::Damaged {
                    sequence: line.record.sequence,
                    what: "it is no checkpoint".to_owned(),
                });
            }
        },
    };
    let start = earlier.as_ref().map_or(0, |it| it.through.sequence);
    // Without this a checkpoint would be replaced by the next one for ever.
    if wanted <= start || !has_old(ledger.connection(), wanted)? {
        ledger.roll_back();
        return Ok(Step::Last(Removed::default()));
    }
    let last = wanted.min(start + limit::REMOVE_STEP_RECORDS_MAX);
    let through = head_at(moment, last)?;
    let kept = kept(ledger.connection(), moment, last)?;
    let Old {
        entries,
        notices,
        from_ms,
        to_ms,
    } = old(ledger.connection(), last)?;
    let kept_before = earlier.as_ref().map_or(0, |it| it.kept.len());
    let records = (last - start + count(kept_before)).saturating_sub(count(kept.len()));
    let checkpoint = Checkpoint {
        at_ms: now_ms(),
        through,
        records: records + earlier.as_ref().map_or(0, |it| it.records),
        entries: entries + earlier.as_ref().map_or(0, |it| it.entries),
        notices: notices + earlier.as_ref().map_or(0, |it| it.notices),
        from_ms,
        to_ms,
        kept,
    };
    ledger.checkpoint(&checkpoint)?;
    ledger.commit()?;
    ledger.remove_through(last)?;
    let removed = Removed {
        records,
        entries,
        notices,
        through: Some(through.sequence),
    };
    Ok(match last == wanted {
        true => Step::Last(removed),
        false => Step::More(removed),
    })
}

/// The place and hash of a record.
fn head_at(moment: &Moment, sequence: u64) -> Result<Head, StoreError> {
    for placed in moment.lines(0) {
        let (_, line) = placed?;
        if let Some(line) = line
            && line.record.sequence == sequence
        {
            return Ok(line.head());
        }
    }
    Err(StoreError::Damaged {
        sequence,
        what: "it is not there".to_owned(),
    })
}

/// The last record of the prefix the rule names; 0 for nothing.
fn last_to_remove(ledger: &Ledger, moment: &Moment, rule: &Retention) -> Result<u64, StoreError> {
    let fail = StoreError::database("look for old entries");
    let head = ledger.head().sequence;
    let by_age = match rule.older_than_ms {
        None => 0,
        Some(older_than_ms) => {
            let first_young: Option<i64> = ledger
                .connection()
                .query_row(
                    "SELECT min(place) FROM (
                         SELECT min(opened) AS place FROM entries WHERE at_ms >= ?1
                         UNION ALL SELECT min(sequence) FROM notices WHERE at_ms >= ?1)",
                    [older_than_ms],
                    |row| row.get(0),
                )
                .map_err(&fail)?;
            first_young.map_or(head, |opened| place(opened).saturating_sub(1))
        }
    };
    let by_size = match rule.bytes_max {
        None => 0,
        Some(bytes_max) => last_beyond(moment, bytes_max)?,
    };
    Ok(by_age.max(by_size).min(head))
}

/// The last record, counted from the newest, that does not fit in the size.
fn last_beyond(moment: &Moment, bytes_max: u64) -> Result<u64, StoreError> {
    let first_that_fits = moment.end().saturating_sub(bytes_max);
    let mut last = 0;
    for placed in moment.lines(0) {
        let (position, line) = placed?;
        if position >= first_that_fits {
            break;
        }
        last = line.map_or(last, |line| line.record.sequence);
    }
    Ok(last)
}

/// Open records of the prefix whose attempt has not ended within it.
fn kept(connection: &Connection, moment: &Moment, last: u64) -> Result<Vec<Head>, StoreError> {
    let fail = StoreError::database("look for open entries");
    let mut statement = connection
        .prepare(
            "SELECT opened, opened_at FROM entries
             WHERE opened <= ?1 AND (closed IS NULL OR closed > ?1) ORDER BY opened",
        )
        .map_err(&fail)?;
    let rows = statement
        .query_map([number(last)], |row| {
            Ok(Place {
                sequence: place(row.get(0)?),
                position: place(row.get(1)?),
            })
        })
        .map_err(&fail)?;
    let mut kept = Vec::new();
    for row in rows {
        let row = row.map_err(&fail)?;
        let line = moment.record(&row)?.ok_or_else(|| StoreError::Damaged {
            sequence: row.sequence,
            what: "it is not there".to_owned(),
        })?;
        kept.push(line.head());
    }
    if kept.len() > limit::KEPT_MAX {
        return Err(StoreError::TooManyOpen { open: kept.len() });
    }
    Ok(kept)
}

fn has_old(connection: &Connection, last: u64) -> Result<bool, StoreError> {
    connection
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM entries WHERE opened <= ?1 AND closed <= ?1)
                 OR EXISTS (SELECT 1 FROM notices WHERE sequence <= ?1)",
            [number(last)],
            |row| row.get(0),
        )
        .map_err(StoreError::database("look for old entries"))
}

/// What can go, and from when to when it was written.
struct Old {
    entries: u64,
    notices: u64,
    from_ms: i64,
    to_ms: i64,
}

/// The entries that ended up to a record, and the notices.
fn old(connection: &Connection, last: u64) -> Result<Old, StoreError> {
    connection
        .query_row(
            "SELECT coalesce(sum(is_entry), 0), coalesce(sum(1 - is_entry), 0),
                    coalesce(min(at_ms), 0), coalesce(max(at_ms), 0)
             FROM (SELECT 1 AS is_entry, at_ms FROM entries
                   WHERE opened <= ?1 AND closed <= ?1
                   UNION ALL SELECT 0, at_ms FROM notices WHERE sequence <= ?1)",
            [number(last)],
            |row| {
                Ok(Old {
                    entries: place(row.get(0)?),
                    notices: place(row.get(1)?),
                    from_ms: row.get(2)?,
                    to_ms: row.get(3)?,
                })
            },
        )
        .map_err(StoreError::database("look for old entries"))
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
