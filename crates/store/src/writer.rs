//! The one thread that writes the audit. Each time it wakes it takes everything
//! that waits into one transaction, and answers after the commit.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::audit::Link;
use crate::error::StoreError;
use crate::ledger::{Ledger, NewEnd, NewEntry};
use crate::limit;
use crate::process;
use crate::queue::{OpenRow, Queue, Request};
use crate::retention::Removal;
use crate::sync::Sync;
use crate::{Durability, StoreSettings};

type OpenReply = oneshot::Sender<Result<OpenRow, StoreError>>;
type CloseReply = oneshot::Sender<Result<Link, StoreError>>;

/// With nothing to do for so long, what was written is indexed.
const INDEX_IDLE: Duration = Duration::from_millis(limit::INDEX_IDLE_MS_MAX);

/// What the writer shares with the outside.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) queue: Arc<Queue>,
    pub(crate) sync: Sync,
    pub(crate) commits: AtomicU64,
    pub(crate) owed: AtomicU64,
}

/// What the thread is given.
pub(crate) struct Writer {
    pub(crate) desk: Arc<Desk>,
    pub(crate) connection: Connection,
    pub(crate) settings: StoreSettings,
    pub(crate) process: i64,
    pub(crate) page_bytes: u64,
}

impl Writer {
    /// The thread. Whatever ends it closes the queue.
    pub(crate) fn run(self) {
        let desk = Arc::clone(&self.desk);
        let _guard = Guard(&desk);
        let Ok(ledger) = Ledger::new(&self.connection, self.process) else {
            return;
        };
        let mut shift = Shift {
            desk: &desk,
            ledger,
            connection: &self.connection,
            settings: &self.settings,
            page_bytes: self.page_bytes,
            room: 0,
            open: 0,
            owed: Vec::new(),
            removals: VecDeque::new(),
        };
        let mut batch = Vec::new();
        loop {
            let is_open = desk.queue.take(&mut batch, shift.idle_max());
            let is_idle = batch.is_empty();
            shift.write(&mut batch);
            shift.remove();
            if is_idle || shift.ledger.unindexed() >= limit::UNINDEXED_RECORDS_MAX {
                shift.index();
            }
            if !is_open {
                return shift.leave(self.process);
            }
        }
    }
}

/// Tells everybody when the thread ends, even by a panic.
struct Guard<'a>(&'a Desk);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.queue.abandon();
    }
}

/// The writer at work.
struct Shift<'a> {
    desk: &'a Desk,
    ledger: Ledger<'a>,
    connection: &'a Connection,
    settings: &'a StoreSettings,
    page_bytes: u64,
    /// Bytes that may be written before the size is looked at again.
    room: u64,
    /// Entries that are open.
    open: u64,
    /// Ends that could not be written. Their callers were told; what happened is
    /// still written down as soon as there is room.
    owed: Vec<NewEnd>,
    removals: VecDeque<Removal>,
}

/// Beginnings with those who wait for them.
type Opens = Vec<(NewEntry, OpenReply)>;
/// Ends with those who wait for them.
type Closes = Vec<(NewEnd, Option<CloseReply>)>;

impl Shift<'_> {
    /// How long to wait for something to do.
    fn idle_max(&self) -> Option<Duration> {
        if !self.removals.is_empty() {
            return Some(Duration::ZERO);
        }
        (self.ledger.unindexed() > 0).then_some(INDEX_IDLE)
    }

    fn write(&mut self, batch: &mut Vec<Request>) {
        let (mut opens, mut closes) = (Opens::new(), Closes::new());
        closes.extend(self.owed.drain(..).map(|end| (end, None)));
        for request in batch.drain(..) {
            match request {
                Request::Open(new, reply) => opens.push((new, reply)),
                Request::Close(end, reply) => closes.push((end, reply)),
                Request::Retain(rule, reply) => {
                    self.removals.push_back(Removal::new(rule, reply));
                }
            }
        }
        if let Err(error) = self.commit(&mut opens, &mut closes) {
            for (_, reply) in opens.drain(..) {
                let _ = reply.send(Err(error.clone()));
            }
            // Ends need less than beginnings and matter more.
            if let Err(error) = self.commit(&mut Opens::new(), &mut closes) {
                self.owe(closes, &error);
            }
        }
        self.count_owed();
    }

    /// One step of the oldest removal, if there is one.
    fn remove(&mut self) {
        let Some(removal) = self.removals.pop_front() else {
            return;
        };
        if let Some(rest) = removal.step(&mut self.ledger, self.connection) {
            self.removals.push_front(rest);
        }
        // There may be more room now.
        self.room = 0;
        self.note_commit();
    }

    /// Writes all of it in one transaction and answers, or leaves both lists as
    /// they are.
    fn commit(&mut self, opens: &mut Opens, closes: &mut Closes) -> Result<(), StoreError> {
        if opens.is_empty() && closes.is_empty() {
            return Ok(());
        }
        if let Some(failure) = self.desk.sync.failure() {
            return Err(failure);
        }
        let written = self.try_commit(opens, closes);
        let (places, links) = written.inspect_err(|_| self.ledger.roll_back())?;
        let commit = self.note_commit();
        self.open = self.open.saturating_sub(count(closes.len()));
        for ((new, reply), place) in opens.drain(..).zip(places) {
            let row = place.map(|sequence| {
                self.open += 1;
                let queue = Arc::clone(&self.desk.queue);
                OpenRow::new(queue, new.opening.call_id, sequence, commit)
            });
            // A row nobody waits for any more comes back and ends as cancelled.
            let _ = reply.send(row);
        }
        for ((_, reply), link) in closes.drain(..).zip(links) {
            if let Some(reply) = reply {
                let _ = reply.send(Ok(link));
            }
        }
        Ok(())
    }

    fn try_commit(&mut self, opens: &Opens, closes: &Closes) -> Result<Written, StoreError> {
        self.ledger.begin()?;
        let mut links = Vec::with_capacity(closes.len());
        for (end, _) in closes {
            let head = self.ledger.close(end)?;
            links.push(Link {
                sequence: head.sequence,
                hash: head.hash.hex(),
            });
        }
        let mut places = Vec::with_capacity(opens.len());
        for (new, _) in opens {
            places.push(match self.has_room(new) {
                Ok(()) => Ok(self.ledger.open(new)?.sequence),
                Err(error) => Err(error),
            });
        }
        self.ledger.commit()?;
        Ok((places, links))
    }

    /// Whether another beginning fits. A part of the size is left for the ends of
    /// what has begun.
    fn has_room(&mut self, new: &NewEntry) -> Result<(), StoreError> {
        /// What an entry takes beside the text of its opening, generously.
        const ENTRY_BYTES: u64 = 16 * 1024;
        let need = ENTRY_BYTES + u64::try_from(new.part.len()).unwrap_or(u64::MAX);
        if self.room < need {
            let used = used_bytes(self.connection, self.page_bytes)?;
            let reserve = (self.settings.audit_bytes_max / 16).min(4 * 1024 * 1024);
            let bytes_max = self.settings.audit_bytes_max.saturating_sub(reserve);
            self.room = bytes_max.saturating_sub(used);
        }
        if self.room < need {
            return Err(StoreError::Full { source: None });
        }
        self.room -= need;
        Ok(())
    }

    fn note_commit(&self) -> u64 {
        self.desk.commits.fetch_add(1, Ordering::Relaxed);
        let is_synced = self.settings.durability == Durability::Full;
        self.desk.sync.committed(is_synced)
    }

    /// Lets filters know what was written. If that fails they find it in the
    /// records, and it is tried again.
    fn index(&mut self) {
        if self.ledger.unindexed() == 0 {
            return;
        }
        let indexed = self.ledger.begin().and_then(|()| {
            self.ledger.index()?;
            self.ledger.commit()
        });
        match indexed {
            Ok(()) => {
                self.note_commit();
            }
            Err(_) => self.ledger.roll_back(),
        }
    }

    /// With something still open this process stays listed, and is found dead.
    fn leave(mut self, process: i64) {
        self.index();
        if self.open == 0 && self.owed.is_empty() && process::end(self.connection, process).is_ok()
        {
            self.note_commit();
        }
    }

    /// Keeps ends that could not be written, then says so.
    fn owe(&mut self, closes: Closes, error: &StoreError) {
        let (ends, replies): (Vec<_>, Vec<_>) = closes.into_iter().unzip();
        self.owed = ends;
        self.count_owed();
        for reply in replies.into_iter().flatten() {
            let _ = reply.send(Err(error.clone()));
        }
    }

    fn count_owed(&self) {
        self.desk
            .owed
            .store(count(self.owed.len()), Ordering::Relaxed);
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// The places of the beginnings, the links of the ends.
type Written = (Vec<Result<u64, StoreError>>, Vec<Link>);

/// Bytes of the database that hold something.
fn used_bytes(connection: &Connection, page_bytes: u64) -> Result<u64, StoreError> {
    let read = |sql| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .map_err(StoreError::database("ask how large the audit is"))
    };
    let pages = read("PRAGMA page_count")? - read("PRAGMA freelist_count")?;
    Ok(u64::try_from(pages).unwrap_or(0) * page_bytes)
}
