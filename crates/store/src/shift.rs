//! Writing, by whoever holds the pen: taking requests into one transaction and
//! answering after the commit, and what has to be done between calls.

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

/// What all who write share with the outside.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) queue: Arc<Queue>,
    pub(crate) sync: Sync,
    pub(crate) commits: AtomicU64,
    pub(crate) owed: AtomicU64,
}

/// The pen.
#[derive(Debug)]
pub(crate) struct Shift {
    ledger: Ledger,
    settings: StoreSettings,
    page_bytes: u64,
    /// Bytes that may be written before the size is looked at again.
    room: u64,
    /// Entries that are open.
    open: u64,
    /// Bytes written since the log was moved into the database, about.
    log_bytes: u64,
    /// Ends that could not be written. Their callers were told; what happened is
    /// still written down as soon as there is room.
    owed: Vec<NewEnd>,
    removals: VecDeque<Removal>,
}

/// Beginnings with those who wait for them.
type Opens = Vec<(NewEntry, OpenReply)>;
/// Ends with those who wait for them.
type Closes = Vec<(NewEnd, Option<CloseReply>)>;

impl Shift {
    pub(crate) fn new(ledger: Ledger, settings: StoreSettings, page_bytes: u64) -> Shift {
        Shift {
            ledger,
            settings,
            page_bytes,
            room: 0,
            open: 0,
            log_bytes: 0,
            owed: Vec::new(),
            removals: VecDeque::new(),
        }
    }

    /// How long the writer may wait for something to do.
    pub(crate) fn idle_max(&self) -> Option<Duration> {
        if !self.removals.is_empty() {
            return Some(Duration::ZERO);
        }
        (self.ledger.unindexed() > 0).then_some(INDEX_IDLE)
    }

    /// Whether there is work beside calls that only the writer does.
    pub(crate) fn has_chores(&self) -> bool {
        !self.removals.is_empty()
            || self.ledger.unindexed() >= limit::UNINDEXED_RECORDS_MAX
            || self.log_bytes >= limit::LOG_BYTES_MAX
    }

    /// Whether the index covers everything.
    pub(crate) fn is_indexed(&self) -> bool {
        self.ledger.unindexed() == 0
    }

    /// Whether a request can be written by who makes it: nothing that takes long
    /// is due, no sync belongs to it, and hardly anybody else is under way, with
    /// whom a transaction could be shared.
    pub(crate) fn is_light(&self, request: &Request) -> bool {
        let open_max = match request {
            Request::Open(..) => limit::AT_ONCE_OPEN_MAX,
            Request::Close(..) => limit::AT_ONCE_OPEN_MAX + 1,
            Request::Retain(..) => return false,
        };
        self.open <= open_max
            && self.settings.durability == Durability::Standard
            && self.owed.is_empty()
            && !self.has_chores()
    }

    /// Writes one request without waiting for anybody, or gives it back.
    pub(crate) fn write_at_once(&mut self, shared: &Shared, request: Request) -> Option<Request> {
        let (mut opens, mut closes) = (Opens::new(), Closes::new());
        match request {
            Request::Open(new, reply) => opens.push((new, reply)),
            Request::Close(end, reply) => closes.push((end, reply)),
            Request::Retain(..) => return Some(request),
        }
        self.be_patient(false);
        if self.commit(shared, &mut opens, &mut closes).is_ok() {
            return None;
        }
        // The writer can wait, and knows what to do about failures.
        let open = opens.pop().map(|(new, reply)| Request::Open(new, reply));
        let close = closes.pop().map(|(end, reply)| Request::Close(end, reply));
        open.or(close)
    }

    /// How long other processes are waited for.
    fn be_patient(&self, is_patient: bool) {
        let wait_ms = if is_patient { limit::BUSY_MS_MAX } else { 0 };
        let wait = Duration::from_millis(wait_ms);
        // It only sets a number, and a wrong wait is no wrong answer.
        let _ = self.ledger.connection().busy_timeout(wait);
    }

    /// Does what is due beside calls.
    pub(crate) fn do_chores(&mut self, shared: &Shared, is_idle: bool) {
        self.be_patient(true);
        self.remove(shared);
        if is_idle || self.ledger.unindexed() >= limit::UNINDEXED_RECORDS_MAX {
            self.index(shared);
        }
        if self.log_bytes >= limit::LOG_BYTES_MAX {
            self.move_log();
        }
    }

    /// Moves the log into the database, as far as readers let it. What is left is
    /// moved another time.
    fn move_log(&mut self) {
        self.log_bytes = 0;
        let sql = "PRAGMA wal_checkpoint(PASSIVE)";
        let _ = self.ledger.connection().query_row(sql, [], |_| Ok(()));
    }

    /// Writes everything that waits.
    pub(crate) fn write(&mut self, shared: &Shared, batch: &mut Vec<Request>) {
        self.be_patient(true);
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
        if let Err(error) = self.commit(shared, &mut opens, &mut closes) {
            for (_, reply) in opens.drain(..) {
                let _ = reply.send(Err(error.clone()));
            }
            // Ends need less than beginnings and matter more.
            if let Err(error) = self.commit(shared, &mut Opens::new(), &mut closes) {
                self.owe(shared, closes, &error);
            }
        }
        self.count_owed(shared);
    }

    /// One step of the oldest removal, if there is one.
    fn remove(&mut self, shared: &Shared) {
        let Some(removal) = self.removals.pop_front() else {
            return;
        };
        if let Some(rest) = removal.step(&mut self.ledger) {
            self.removals.push_front(rest);
        }
        // There may be more room now.
        self.room = 0;
        self.note_commit(shared);
    }

    /// Writes all of it in one transaction and answers, or leaves both lists as
    /// they are.
    fn commit(
        &mut self,
        shared: &Shared,
        opens: &mut Opens,
        closes: &mut Closes,
    ) -> Result<(), StoreError> {
        if opens.is_empty() && closes.is_empty() {
            return Ok(());
        }
        if let Some(failure) = shared.sync.failure() {
            return Err(failure);
        }
        let written = self.try_commit(opens, closes);
        let (places, links) = written.inspect_err(|_| self.ledger.roll_back())?;
        let commit = self.note_commit(shared);
        self.open = self.open.saturating_sub(count(closes.len()));
        for ((new, reply), place) in opens.drain(..).zip(places) {
            let row = place.map(|sequence| {
                self.open += 1;
                let queue = Arc::clone(&shared.queue);
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
        let ends = closes.iter().map(|(end, _)| end.part.len());
        let written = ends.chain(opens.iter().map(|(new, _)| new.part.len()));
        self.log_bytes +=
            written.map(|bytes| count(bytes) + 512).sum::<u64>() + 2 * self.page_bytes;
        Ok((places, links))
    }

    /// Whether another beginning fits. A part of the size is left for the ends of
    /// what has begun.
    fn has_room(&mut self, new: &NewEntry) -> Result<(), StoreError> {
        /// What an entry takes beside the text of its opening, generously.
        const ENTRY_BYTES: u64 = 16 * 1024;
        let need = ENTRY_BYTES + u64::try_from(new.part.len()).unwrap_or(u64::MAX);
        if self.room < need {
            let used = used_bytes(self.ledger.connection(), self.page_bytes)?;
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

    fn note_commit(&self, shared: &Shared) -> u64 {
        shared.commits.fetch_add(1, Ordering::Relaxed);
        let is_synced = self.settings.durability == Durability::Full;
        shared.sync.committed(is_synced)
    }

    /// Lets filters know what was written. If that fails they find it in the
    /// records, and it is tried again.
    fn index(&mut self, shared: &Shared) {
        if self.ledger.unindexed() == 0 {
            return;
        }
        let indexed = self.ledger.begin().and_then(|()| {
            self.ledger.index()?;
            self.ledger.commit()
        });
        match indexed {
            Ok(()) => {
                // A few pages for each of the trees that are touched.
                self.log_bytes += 128 * self.page_bytes;
                self.note_commit(shared);
            }
            Err(_) => self.ledger.roll_back(),
        }
    }

    /// With something still open this process stays listed, and is found dead.
    pub(crate) fn leave(&mut self, shared: &Shared) {
        self.index(shared);
        let (connection, process) = (self.ledger.connection(), self.ledger.process());
        if self.open == 0 && self.owed.is_empty() && process::end(connection, process).is_ok() {
            self.note_commit(shared);
        }
    }

    /// Keeps ends that could not be written, then says so.
    fn owe(&mut self, shared: &Shared, closes: Closes, error: &StoreError) {
        let (ends, replies): (Vec<_>, Vec<_>) = closes.into_iter().unzip();
        self.owed = ends;
        self.count_owed(shared);
        for reply in replies.into_iter().flatten() {
            let _ = reply.send(Err(error.clone()));
        }
    }

    fn count_owed(&self, shared: &Shared) {
        shared.owed.store(count(self.owed.len()), Ordering::Relaxed);
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
