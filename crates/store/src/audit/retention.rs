//! Removing old entries: always a prefix of the chain, whole entries only, and never
//! without a checkpoint that says what was removed and where the chain continues. The
//! checkpoint is written first; then the rows of the index are deleted, then the files.

use std::path::Path;
use std::sync::mpsc;

use model::record::audit::chain::{Checkpoint, Head};
use model::record::tree::{TreeHash, root};
use rusqlite::Connection;
use serde::Serialize;

use crate::audit::evidence::signer::Signer;
use crate::audit::evidence::tree_file::TreeHashes;
use crate::audit::index::RecordPlace;
use crate::audit::log::LockWait;
use crate::audit::log::snapshot::{LogSnapshot, believable};
use crate::audit::shipped;
use crate::audit::write::chain::ChainWriter;
use crate::clock::now_ms;
use crate::error::StoreError;
use crate::home::database::{from_integer, to_integer};
use crate::limit;

/// Which entries to remove. With both set, an entry goes if either applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Opened before this time, in milliseconds since 1970.
    pub older_than_ms: Option<i64>,
    /// Beyond this many bytes, counted from the newest record.
    pub bytes_max: Option<u64>,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// Records.
    pub records: u64,
    /// Entries.
    pub entries: u64,
    /// Notices.
    pub notices: u64,
    /// The sequence of the last removed record; none if nothing was removed.
    pub through: Option<u64>,
}

/// A removal in progress. Calls are written between its steps.
#[derive(Debug)]
pub(crate) struct Removal {
    rule: Retention,
    /// The last record to remove, found by the first step.
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

    /// Does the next step, in a group of its own. Returns itself if there is more to do;
    /// otherwise answers.
    pub(crate) fn step(mut self, chain: &mut ChainWriter, signer: &Signer) -> Option<Removal> {
        match self.remove(chain, signer) {
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
                chain.roll_back();
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

    fn remove(&mut self, chain: &mut ChainWriter, signer: &Signer) -> Result<Step, StoreError> {
        // Before the lock of the log, because the signer takes the lock of the heads first.
        let covered = cover(chain, signer)?;
        chain.begin(LockWait::Bounded)?;
        chain.index_within_group()?;
        let snapshot = chain.snapshot()?;
        let last = match self.last {
            Some(last) => last,
            None => {
                // What is copied elsewhere goes only after it arrived there; without a mark
                // there is no such bound.
                let acknowledged = shipped::read(chain.folder())?.unwrap_or(u64::MAX);
                let last = last_to_remove(chain, &snapshot, &self.rule)?;
                last.min(covered).min(acknowledged)
            }
        };
        // Kept for all steps. Records that age meanwhile are for the next removal.
        self.last = Some(last);
        remove_through(chain, &snapshot, last)
    }
}

/// Gets the hashes of what may be removed into the tree, or nothing could be proved about
/// it any more. Returns the last record that is there. A log that contradicts itself has
/// no tree; `verify` reports it, before and after a removal.
fn cover(chain: &mut ChainWriter, signer: &Signer) -> Result<u64, StoreError> {
    if chain.unindexed() > 0 {
        chain.index()?;
    }
    match signer.cover() {
        Ok(size) => Ok(size),
        Err(StoreError::Unsigned { .. }) => Ok(u64::MAX),
        Err(error) => Err(error),
    }
}

enum Step {
    More(Removed),
    Last(Removed),
}

/// Removes as much as one step may, up to a record.
fn remove_through(
    chain: &mut ChainWriter,
    snapshot: &LogSnapshot,
    wanted: u64,
) -> Result<Step, StoreError> {
    let earlier = match snapshot.newest_checkpoint()? {
        None => None,
        Some(line) => match believable(&line) {
            Some(checkpoint) => Some(checkpoint),
            // Counts would start at nought again and hide what was removed before.
            None => {
                return Err(StoreError::Damaged {
                    sequence: line.record.sequence,
                    what: "it is not a checkpoint".to_owned(),
                });
            }
        },
    };
    let start = earlier.as_ref().map_or(0, |it| it.through.sequence);
    // Otherwise each checkpoint would be replaced by a next one forever.
    if wanted <= start || !has_old(chain.connection(), wanted)? {
        chain.roll_back();
        return Ok(Step::Last(Removed::default()));
    }
    let last = wanted.min(start + limit::REMOVE_STEP_RECORDS_MAX);
    let through = head_at(snapshot, last)?;
    let kept = kept(chain.connection(), snapshot, last)?;
    let Old {
        entries,
        notices,
        from_ms,
        to_ms,
    } = old(chain.connection(), last)?;
    let kept_before = earlier.as_ref().map_or(0, |it| it.kept.len());
    // Records kept earlier may be removed now; those kept now are not.
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
        root: sealed(chain.folder(), through)?,
    };
    chain.checkpoint(&checkpoint)?;
    // The checkpoint is in the log before anything goes; `remove::finish` syncs it first.
    chain.commit()?;
    chain.remove_through(last)?;
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

/// The hash over all records up to one; nothing if the tree does not have them as the log
/// does.
fn sealed(folder: &Path, through: Head) -> Result<Option<TreeHash>, StoreError> {
    let Some(tree) = TreeHashes::find(folder)? else {
        return Ok(None);
    };
    let Some(last) = through.sequence.checked_sub(1) else {
        return Ok(None);
    };
    // A wrong seal would make every later verification fail. Without one the
    // last leaf is compared.
    if tree.size() < through.sequence || tree.leaf(last)? != TreeHash::record(&through.hash) {
        return Ok(None);
    }
    root(&tree, through.sequence).map(Some)
}

/// The sequence and hash of a record.
fn head_at(snapshot: &LogSnapshot, sequence: u64) -> Result<Head, StoreError> {
    for placed in snapshot.lines(0) {
        let (_, line) = placed?;
        if let Some(line) = line
            && line.record.sequence == sequence
        {
            return Ok(line.head());
        }
    }
    Err(StoreError::Damaged {
        sequence,
        what: "it is missing".to_owned(),
    })
}

/// The last record of the prefix the rule selects; 0 for none.
fn last_to_remove(
    chain: &ChainWriter,
    snapshot: &LogSnapshot,
    rule: &Retention,
) -> Result<u64, StoreError> {
    let fail = StoreError::database("look for old entries");
    let head = chain.head().sequence;
    let by_age = match rule.older_than_ms {
        None => 0,
        Some(older_than_ms) => {
            let first_young: Option<i64> = chain
                .connection()
                .query_row(
                    "SELECT min(place) FROM (
                         SELECT min(opened) AS place FROM entries WHERE at_ms >= ?1
                         UNION ALL SELECT min(sequence) FROM notices WHERE at_ms >= ?1)",
                    [older_than_ms],
                    |row| row.get(0),
                )
                .map_err(&fail)?;
            first_young.map_or(head, |opened| from_integer(opened).saturating_sub(1))
        }
    };
    let by_size = match rule.bytes_max {
        None => 0,
        Some(bytes_max) => last_beyond(snapshot, bytes_max)?,
    };
    Ok(by_age.max(by_size).min(head))
}

/// The newest record that does not fit into the size, counted from the end.
fn last_beyond(snapshot: &LogSnapshot, bytes_max: u64) -> Result<u64, StoreError> {
    let first_that_fits = snapshot.end().saturating_sub(bytes_max);
    let mut last = 0;
    for placed in snapshot.lines(0) {
        let (position, line) = placed?;
        if position >= first_that_fits {
            break;
        }
        last = line.map_or(last, |line| line.record.sequence);
    }
    Ok(last)
}

/// Open records of the prefix whose call has not ended within it.
fn kept(
    connection: &Connection,
    snapshot: &LogSnapshot,
    last: u64,
) -> Result<Vec<Head>, StoreError> {
    let fail = StoreError::database("look for open entries");
    let mut statement = connection
        .prepare(
            "SELECT opened, opened_at FROM entries
             WHERE opened <= ?1 AND (closed IS NULL OR closed > ?1) ORDER BY opened",
        )
        .map_err(&fail)?;
    let rows = statement
        .query_map([to_integer(last)], |row| {
            Ok(RecordPlace {
                sequence: from_integer(row.get(0)?),
                position: from_integer(row.get(1)?),
            })
        })
        .map_err(&fail)?;
    let mut kept = Vec::new();
    for row in rows {
        let row = row.map_err(&fail)?;
        let line = snapshot.record(&row)?.ok_or_else(|| StoreError::Damaged {
            sequence: row.sequence,
            what: "it is missing".to_owned(),
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
            [to_integer(last)],
            |row| row.get(0),
        )
        .map_err(StoreError::database("look for old entries"))
}

/// What can be removed, and when it was written.
struct Old {
    entries: u64,
    notices: u64,
    from_ms: i64,
    to_ms: i64,
}

/// Counts the entries that ended up to a record, and the notices.
fn old(connection: &Connection, last: u64) -> Result<Old, StoreError> {
    connection
        .query_row(
            "SELECT coalesce(sum(is_entry), 0), coalesce(sum(1 - is_entry), 0),
                    coalesce(min(at_ms), 0), coalesce(max(at_ms), 0)
             FROM (SELECT 1 AS is_entry, at_ms FROM entries
                   WHERE opened <= ?1 AND closed <= ?1
                   UNION ALL SELECT 0, at_ms FROM notices WHERE sequence <= ?1)",
            [to_integer(last)],
            |row| {
                Ok(Old {
                    entries: from_integer(row.get(0)?),
                    notices: from_integer(row.get(1)?),
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
