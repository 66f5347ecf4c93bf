//! Writing the chain: records become lines of the log, in groups, and rows of the
//! index behind it. The caller decides when a group begins and when it is written.
//!
//! A call waits for two lines of the log and nothing else. The index is made from
//! them later, many at a time; readers scan the few records it does not cover yet.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use model::record::audit::chain::{self, Checkpoint, Head, RecordKind};
use model::record::audit::notice::SERVER;
use model::record::audit::{Act, Anchor, Notice, Opening, Status, spell};
use rusqlite::Connection;
use uuid::Uuid;

use crate::audit::index::{
    self, Additions, AuditIndex, EntryEnd, IndexHead, IndexSource, RecordPlace,
};
use crate::audit::log::snapshot::LogSnapshot;
use crate::audit::log::{LockWait, Log, LogChange, disk};
use crate::clock::now_ms;
use crate::error::StoreError;
use crate::home::mark::AuditMark;
use crate::home::process::ProcessIdentity;

/// The opening of an entry, to be written.
#[derive(Debug)]
pub(crate) struct NewEntry {
    pub(crate) opening: Arc<Opening>,
    /// The canonical opening.
    pub(crate) part: String,
}

impl NewEntry {
    pub(crate) fn new(opening: Opening) -> Result<NewEntry, StoreError> {
        let part = spell::opening(&opening)?;
        let opening = Arc::new(opening);
        Ok(NewEntry { opening, part })
    }
}

/// The end of an entry, to be written.
#[derive(Clone, Debug)]
pub(crate) struct NewEnd {
    pub(crate) opened: u64,
    pub(crate) call_id: String,
    pub(crate) status: Status,
    /// Whether the shadow rules decide differently.
    pub(crate) differs: bool,
    /// The canonical closing.
    pub(crate) part: String,
}

/// A notice, to be written.
#[derive(Debug)]
pub(crate) struct NewNotice {
    pub(crate) notice: Arc<Notice>,
    /// The canonical notice.
    pub(crate) part: String,
}

impl NewNotice {
    pub(crate) fn new(notice: Notice) -> Result<NewNotice, StoreError> {
        let part = spell::notice(&notice)?;
        let notice = Arc::new(notice);
        Ok(NewNotice { notice, part })
    }
}

/// An anchor, to be written.
#[derive(Debug)]
pub(crate) struct NewAnchor {
    /// The canonical anchor.
    pub(crate) part: String,
}

impl NewAnchor {
    pub(crate) fn new(anchor: &Anchor) -> Result<NewAnchor, StoreError> {
        let part = spell::anchor(anchor)?;
        Ok(NewAnchor { part })
    }
}

/// Extends the chain.
#[derive(Debug)]
pub(crate) struct ChainWriter {
    log: Log,
    index: AuditIndex,
    /// The last record, remembered in the database.
    mark: AuditMark,
    /// The sequence the mark is known to have.
    marked: u64,
    identity: ProcessIdentity,
    /// What our own records add to the index since it was last complete, so that they
    /// need not be read back; nothing once another process wrote in between.
    known: Option<(IndexHead, Additions)>,
    /// The same for the current group.
    group: Additions,
    /// The last record the index covers.
    indexed: u64,
    /// Another process took this one for dead and closed its calls.
    is_taken_for_dead: bool,
}

impl ChainWriter {
    /// A writer for the entries of one process.
    pub(crate) fn new(
        log: Log,
        index: AuditIndex,
        mark: AuditMark,
        identity: ProcessIdentity,
    ) -> Result<ChainWriter, StoreError> {
        let indexed = index::reach(index.connection())?.head.sequence;
        Ok(ChainWriter {
            log,
            index,
            mark,
            marked: 0,
            identity,
            known: None,
            group: Additions::default(),
            indexed,
            is_taken_for_dead: false,
        })
    }

    /// The index, for queries.
    pub(crate) fn connection(&self) -> &Connection {
        self.index.connection()
    }

    /// The id of the process whose entries are written.
    pub(crate) fn process(&self) -> &Arc<str> {
        self.identity.id()
    }

    /// Where the chain ends.
    pub(crate) fn head(&self) -> Head {
        self.log.head()
    }

    /// Bytes of the log.
    pub(crate) fn bytes(&self) -> u64 {
        self.log.bytes()
    }

    /// The folder of the log.
    pub(crate) fn folder(&self) -> &Path {
        self.log.folder()
    }

    /// The file that has to reach the disk.
    pub(crate) fn file(&self) -> &Arc<File> {
        self.log.file()
    }

    /// The log as it is, within a group.
    pub(crate) fn snapshot(&self) -> Result<LogSnapshot, StoreError> {
        self.log.snapshot()
    }

    /// Records the index does not cover yet, as far as this process knows.
    pub(crate) fn unindexed(&self) -> u64 {
        self.log.head().sequence.saturating_sub(self.indexed)
    }

    /// Whether it is time for a new segment.
    pub(crate) fn is_long(&self) -> bool {
        self.log.is_long()
    }

    /// Begins a group. Another process may have written since, and may have taken
    /// this one for dead.
    pub(crate) fn begin(&mut self, wait: LockWait) -> Result<(), StoreError> {
        if self.is_taken_for_dead {
            return Err(StoreError::TakenForDead);
        }
        if self.log.begin(wait)? == LogChange::ByOthers {
            // Others' records are between ours, so what this process
            // remembers is no longer all.
            self.known = None;
            // Asked only after another process wrote: only another process can
            // have closed our calls.
            self.is_taken_for_dead = !self.identity.has_lock();
        }
        if self.is_taken_for_dead {
            self.roll_back();
            return Err(StoreError::TakenForDead);
        }
        Ok(())
    }

    /// Adds an open record.
    pub(crate) fn open(&mut self, new: &NewEntry) -> Result<Head, StoreError> {
        let process = self.identity.id();
        let (head, position) = self
            .log
            .add(RecordKind::Open, Some(process), |out, sequence| {
                chain::write_open_body(out, sequence, &new.part);
                Ok(())
            })?;
        let place = RecordPlace {
            sequence: head.sequence,
            position,
        };
        self.group.open(place, process, &new.opening);
        Ok(head)
    }

    /// Adds a close record.
    pub(crate) fn close(&mut self, end: &NewEnd) -> Result<Head, StoreError> {
        let (head, position) = self.log.add(RecordKind::Close, None, |out, sequence| {
            chain::write_close_body(out, sequence, end.opened, &end.call_id, &end.part)?;
            Ok(())
        })?;
        let place = RecordPlace {
            sequence: head.sequence,
            position,
        };
        let ended = EntryEnd {
            place,
            status: end.status,
            differs: end.differs,
        };
        self.group.close(end.opened, ended);
        Ok(head)
    }

    /// Adds a notice.
    pub(crate) fn notice(&mut self, new: &NewNotice) -> Result<Head, StoreError> {
        let (head, position) = self.log.add(RecordKind::Notice, None, |out, sequence| {
            chain::write_notice_body(out, sequence, &new.part);
            Ok(())
        })?;
        let place = RecordPlace {
            sequence: head.sequence,
            position,
        };
        self.group.notice(place, &new.notice);
        Ok(head)
    }

    /// Adds an anchor. The index has no rows for it.
    pub(crate) fn anchor(&mut self, new: &NewAnchor) -> Result<Head, StoreError> {
        let added = self.log.add(RecordKind::Anchor, None, |out, sequence| {
            chain::write_anchor_body(out, sequence, &new.part);
            Ok(())
        })?;
        Ok(added.0)
    }

    /// Adds a checkpoint, as the first record of a new segment.
    pub(crate) fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<Head, StoreError> {
        self.log.roll()?;
        let added = self
            .log
            .add(RecordKind::Checkpoint, None, |out, sequence| {
                let body = chain::checkpoint_body(sequence, checkpoint)?;
                out.extend_from_slice(body.as_bytes());
                Ok(())
            })?;
        Ok(added.0)
    }

    /// Writes the group. On failure nothing was written.
    pub(crate) fn commit(&mut self) -> Result<(), StoreError> {
        let group = std::mem::take(&mut self.group);
        self.log.commit()?;
        // Only after the write: rows about records that are not in the log would be wrong.
        if let Some((_, known)) = &mut self.known {
            known.append(group);
        }
        Ok(())
    }

    /// Discards the current group.
    pub(crate) fn roll_back(&mut self) {
        self.group = Additions::default();
        self.log.roll_back();
    }

    /// Begins a new segment.
    pub(crate) fn roll(&mut self) -> Result<(), StoreError> {
        self.begin(LockWait::Bounded)?;
        let rolled = self.log.roll();
        self.roll_back();
        rolled
    }

    /// Makes the index cover every record. Returns the last one.
    pub(crate) fn index(&mut self) -> Result<Head, StoreError> {
        self.begin(LockWait::Bounded)?;
        // With `known` set, only this process wrote since the index was complete, so
        // nothing can be missing.
        if self.known.is_none() {
            self.report_cut()?;
        }
        let source = self.source();
        // Other processes may write while this one indexes what was there.
        self.roll_back();
        // The log is synced first, so that after a power cut the index and the mark
        // are never ahead of it.
        disk::sync(self.log.file())?;
        let reach = match self.index.follow(source?)? {
            Some(reach) => reach,
            // Another process indexed first, or rebuilt the index. Then the log is read.
            None => {
                self.begin(LockWait::Bounded)?;
                self.report_cut()?;
                let snapshot = self.log.snapshot();
                self.roll_back();
                self.index.read(&snapshot?)?
            }
        };
        self.note_indexed(reach);
        // Forward only, and not at every indexing: it is a write to the database.
        if reach.head.sequence > self.marked {
            self.mark.advance(reach.head)?;
            self.marked = reach.head.sequence;
        }
        Ok(reach.head)
    }

    /// Compares the end of the log with what the index and the mark remember of it,
    /// within a group that has no record yet. If records are missing, a notice about
    /// it is on the disk before the index is rebuilt from what is left.
    fn report_cut(&mut self) -> Result<(), StoreError> {
        let reported = self.try_report_cut();
        reported.inspect_err(|_| self.roll_back())
    }

    fn try_report_cut(&mut self) -> Result<(), StoreError> {
        let snapshot = self.log.snapshot()?;
        let found = self.log.head();
        let reach = index::reach(self.index.connection())?;
        let indexed = index::lost(&snapshot, &reach)?;
        let marked = self.mark.get()?;
        self.marked = marked.map_or(0, |head| head.sequence);
        // A mark within the log is compared by the walk of `verify`, which has the hashes.
        let marked = marked.filter(|it| it.sequence > found.sequence);
        let newest = [indexed, marked].into_iter().flatten();
        let Some(known) = newest.max_by_key(|head| head.sequence) else {
            return Ok(());
        };
        let message = match found.sequence < known.sequence {
            true => format!(
                "the log ends with record {}, but record {} was on the disk",
                found.sequence, known.sequence
            ),
            false => format!(
                "the log does not hold record {} as it was on the disk",
                known.sequence
            ),
        };
        let mut notice = Notice::new(Act::AuditCut, SERVER, "log", &message)
            .detail("known", &format!("{}:{}", known.sequence, known.hash.hex()))
            .detail("found", &format!("{}:{}", found.sequence, found.hash.hex()));
        notice.id = Uuid::now_v7().to_string();
        notice.at_ms = now_ms();
        let reported = self.notice(&NewNotice::new(notice)?)?;
        self.commit()?;
        // The notice before the index forgets: the index is what shows that
        // records are missing.
        disk::sync(self.log.file())?;
        self.index.forget()?;
        self.mark.reset(reported)?;
        self.marked = reported.sequence;
        self.begin(LockWait::Bounded)?;
        // From here on the index is rebuilt from what is left.
        self.known = None;
        Ok(())
    }

    /// Makes the index cover every record, within a group that has no record yet.
    pub(crate) fn index_within_group(&mut self) -> Result<(), StoreError> {
        self.known = None;
        let snapshot = self.log.snapshot()?;
        let reach = self.index.read(&snapshot)?;
        self.note_indexed(reach);
        Ok(())
    }

    /// Where additions to the index come from: from memory, if no other process wrote.
    fn source(&mut self) -> Result<IndexSource, StoreError> {
        match self.known.take() {
            Some((from, additions)) => {
                let (head, position) = (self.log.head(), self.log.end());
                let to = IndexHead { head, position };
                Ok(IndexSource::Known {
                    from,
                    additions,
                    to,
                })
            }
            None => Ok(IndexSource::Log(self.log.snapshot()?)),
        }
    }

    fn note_indexed(&mut self, reach: IndexHead) {
        self.indexed = reach.head.sequence;
        self.known = Some((reach, Additions::default()));
    }

    /// Removes what a checkpoint that was just written says is gone.
    pub(crate) fn remove_through(&mut self, last: u64) -> Result<u64, StoreError> {
        self.begin(LockWait::Bounded)?;
        // The index first: a row without its record would be reported as damage, a record
        // without its row is found by the next reading.
        let removed = self.index.remove_through(last).and_then(|entries| {
            self.log.remove_old()?;
            Ok(entries)
        });
        self.roll_back();
        removed
    }
}
