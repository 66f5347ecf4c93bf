//! The chain and its index together, for whoever writes. Who calls it decides when
//! a group begins and when it is written.
//!
//! A call waits for two lines of the log and nothing else. What filters look at is
//! made from them afterwards, many at a time; readers look at the few records that
//! are not indexed yet themselves.

use std::fs::File;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use model::record::audit::chain::{self, Checkpoint, Head, Kind};
use model::record::audit::notice::SERVER;
use model::record::audit::{Act, Notice, Opening, Status, spell};
use rusqlite::Connection;
use uuid::Uuid;

use crate::error::StoreError;
use crate::index::{self, Additions, End, Index, Place, Reach, Source};
use crate::log::moment::Moment;
use crate::log::{Log, Patience, Seen, disk};
use crate::mark::Mark;
use crate::process::Pulse;

/// The beginning of an entry.
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

/// The end of an entry.
#[derive(Clone, Debug)]
pub(crate) struct NewEnd {
    pub(crate) opened: u64,
    pub(crate) call_id: String,
    pub(crate) status: Status,
    /// Whether rules that are only tried say something else.
    pub(crate) differs: bool,
    /// The canonical closing.
    pub(crate) part: String,
}

/// A notice to write.
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

/// The chain, and what extends it.
#[derive(Debug)]
pub(crate) struct Ledger {
    log: Log,
    index: Index,
    /// The end, remembered in another place.
    mark: Mark,
    /// The record that place remembers, as far as we know.
    marked: u64,
    pulse: Pulse,
    /// What our own records add to the index from a place on, so that they need
    /// not be read back; nothing once others wrote in between.
    known: Option<(Reach, Additions)>,
    /// The same for the group that is being written.
    group: Additions,
    /// The last record that filters know.
    indexed: u64,
    /// Another process closed what we had open.
    is_taken_for_dead: bool,
}

impl Ledger {
    /// A ledger for entries of one process.
    pub(crate) fn new(
        log: Log,
        index: Index,
        mark: Mark,
        pulse: Pulse,
    ) -> Result<Ledger, StoreError> {
        let indexed = index::reach(index.connection())?.head.sequence;
        Ok(Ledger {
            log,
            index,
            mark,
            marked: 0,
            pulse,
            known: None,
            group: Additions::default(),
            indexed,
            is_taken_for_dead: false,
        })
    }

    /// The index, for questions.
    pub(crate) fn connection(&self) -> &Connection {
        self.index.connection()
    }

    /// The process whose entries are written.
    pub(crate) fn process(&self) -> &Arc<str> {
        self.pulse.id()
    }

    /// Where the chain ends.
    pub(crate) fn head(&self) -> Head {
        self.log.head()
    }

    /// Bytes of the log.
    pub(crate) fn bytes(&self) -> u64 {
        self.log.bytes()
    }

    /// The file that has to reach the disk.
    pub(crate) fn file(&self) -> &Arc<File> {
        self.log.file()
    }

    /// The log as it is, within a group.
    pub(crate) fn moment(&self) -> Result<Moment, StoreError> {
        self.log.moment()
    }

    /// Records that filters do not know yet, as far as we know.
    pub(crate) fn unindexed(&self) -> u64 {
        self.log.head().sequence.saturating_sub(self.indexed)
    }

    /// Whether it is time for a new segment.
    pub(crate) fn is_long(&self) -> bool {
        self.log.is_long()
    }

    /// Begins a group. Another process may have written since, and may have taken
    /// us for dead.
    pub(crate) fn begin(&mut self, patience: Patience) -> Result<(), StoreError> {
        if self.is_taken_for_dead {
            return Err(StoreError::TakenForDead);
        }
        if self.log.begin(patience)? == Seen::Others {
            self.known = None;
            self.is_taken_for_dead = !self.pulse.beats();
        }
        if self.is_taken_for_dead {
            self.roll_back();
            return Err(StoreError::TakenForDead);
        }
        Ok(())
    }

    /// Adds an open record.
    pub(crate) fn open(&mut self, new: &NewEntry) -> Result<Head, StoreError> {
        let process = self.pulse.id();
        let (head, position) = self.log.add(Kind::Open, Some(process), |out, sequence| {
            chain::write_open_body(out, sequence, &new.part);
            Ok(())
        })?;
        let place = Place {
            sequence: head.sequence,
            position,
        };
        self.group.open(place, process, &new.opening);
        Ok(head)
    }

    /// Adds a close record.
    pub(crate) fn close(&mut self, end: &NewEnd) -> Result<Head, StoreError> {
        let (head, position) = self.log.add(Kind::Close, None, |out, sequence| {
            chain::write_close_body(out, sequence, end.opened, &end.call_id, &end.part)?;
            Ok(())
        })?;
        let place = Place {
            sequence: head.sequence,
            position,
        };
        let ended = End {
            place,
            status: end.status,
            differs: end.differs,
        };
        self.group.close(end.opened, ended);
        Ok(head)
    }

    /// Adds a notice.
    pub(crate) fn notice(&mut self, new: &NewNotice) -> Result<Head, StoreError> {
        let (head, position) = self.log.add(Kind::Notice, None, |out, sequence| {
            chain::write_notice_body(out, sequence, &new.part);
            Ok(())
        })?;
        let place = Place {
            sequence: head.sequence,
            position,
        };
        self.group.notice(place, &new.notice);
        Ok(head)
    }

    /// Adds a checkpoint, as the first record of a new segment.
    pub(crate) fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<Head, StoreError> {
        self.log.roll()?;
        let added = self.log.add(Kind::Checkpoint, None, |out, sequence| {
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
        if let Some((_, known)) = &mut self.known {
            known.append(group);
        }
        Ok(())
    }

    /// Forgets what was not written.
    pub(crate) fn roll_back(&mut self) {
        self.group = Additions::default();
        self.log.roll_back();
    }

    /// Begins a new segment.
    pub(crate) fn roll(&mut self) -> Result<(), StoreError> {
        self.begin(Patience::Bounded)?;
        let rolled = self.log.roll();
        self.roll_back();
        rolled
    }

    /// Makes the index cover every record.
    pub(crate) fn index(&mut self) -> Result<(), StoreError> {
        self.begin(Patience::Bounded)?;
        // Nobody but us wrote since the index was last right.
        if self.known.is_none() {
            self.tell_of_a_cut()?;
        }
        let source = self.source();
        // Others may write while we index what was there.
        self.roll_back();
        // What the index and the mark cover is on the disk, so that no power cut
        // leaves them ahead of the log.
        disk::sync(self.log.file())?;
        let reach = match self.index.follow(source?)? {
            Some(reach) => reach,
            None => {
                self.begin(Patience::Bounded)?;
                self.tell_of_a_cut()?;
                let moment = self.log.moment();
                self.roll_back();
                self.index.read(&moment?)?
            }
        };
        self.note_indexed(reach);
        if reach.head.sequence > self.marked {
            self.mark.advance(reach.head)?;
            self.marked = reach.head.sequence;
        }
        Ok(())
    }

    /// Compares the log with what its index and the database remember of its end,
    /// within a group that has no record yet. If records are missing, that is on the
    /// disk as a notice before the index is made from what is left.
    fn tell_of_a_cut(&mut self) -> Result<(), StoreError> {
        let told = self.try_to_tell_of_a_cut();
        told.inspect_err(|_| self.roll_back())
    }

    fn try_to_tell_of_a_cut(&mut self) -> Result<(), StoreError> {
        let moment = self.log.moment()?;
        let found = self.log.head();
        let reach = index::reach(self.index.connection())?;
        let indexed = index::lost(&moment, &reach)?;
        let marked = self.mark.get()?;
        self.marked = marked.map_or(0, |head| head.sequence);
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
        let told = self.notice(&NewNotice::new(notice)?)?;
        self.commit()?;
        disk::sync(self.log.file())?;
        self.index.forget()?;
        self.mark.reset(told)?;
        self.marked = told.sequence;
        self.begin(Patience::Bounded)?;
        // From here on the index is read from what is left.
        self.known = None;
        Ok(())
    }

    /// The same within a group that has no record yet.
    pub(crate) fn index_within(&mut self) -> Result<(), StoreError> {
        self.known = None;
        let moment = self.log.moment()?;
        let reach = self.index.read(&moment)?;
        self.note_indexed(reach);
        Ok(())
    }

    /// Where additions to the index come from: from memory if nobody else wrote.
    fn source(&mut self) -> Result<Source, StoreError> {
        match self.known.take() {
            Some((from, additions)) => {
                let (head, position) = (self.log.head(), self.log.end());
                let to = Reach { head, position };
                Ok(Source::Known {
                    from,
                    additions,
                    to,
                })
            }
            None => Ok(Source::Log(self.log.moment()?)),
        }
    }

    fn note_indexed(&mut self, reach: Reach) {
        self.indexed = reach.head.sequence;
        self.known = Some((reach, Additions::default()));
    }

    /// Takes out what a checkpoint that was just written says is gone.
    pub(crate) fn remove_through(&mut self, last: u64) -> Result<u64, StoreError> {
        self.begin(Patience::Bounded)?;
        let removed = self.index.remove_through(last).and_then(|entries| {
            self.log.remove_old()?;
            Ok(entries)
        });
        self.roll_back();
        removed
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    elapsed.map_or(0, |elapsed| {
        i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
    })
}
