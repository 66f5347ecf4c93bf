//! Writing, by whoever holds the pen: taking requests into one group and answering
//! when it is written, and what has to be done between calls.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use model::record::audit::chain::Head;
use tokio::sync::oneshot;

use crate::audit::Link;
use crate::error::StoreError;
use crate::ledger::{Ledger, NewEnd, NewEntry, NewNotice};
use crate::limit;
use crate::log::{Patience, disk};
use crate::queue::{OpenRow, Queue, Request};
use crate::retention::Removal;
use crate::sync::Sync;
use crate::{Durability, Room, StoreSettings};

type OpenReply = oneshot::Sender<Result<OpenRow, StoreError>>;
type CloseReply = oneshot::Sender<Result<Link, StoreError>>;
type NoticeReply = mpsc::Sender<Result<Link, StoreError>>;

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
    /// Entries that are open.
    open: u64,
    /// Ends that could not be written. Their callers were told; what happened is
    /// still written down as soon as there is room.
    owed: Vec<NewEnd>,
    removals: VecDeque<Removal>,
    /// The record from which on indexing is tried again after it failed.
    index_from: u64,
}

/// Beginnings with those who wait for them.
type Opens = Vec<(NewEntry, OpenReply)>;
/// Ends with those who wait for them.
type Closes = Vec<(NewEnd, Option<CloseReply>)>;

/// What is written together.
#[derive(Default)]
struct Group {
    opens: Opens,
    closes: Closes,
    /// On the disk before anybody is told.
    notices: Vec<(NewNotice, NoticeReply)>,
}

impl Group {
    fn is_empty(&self) -> bool {
        self.opens.is_empty() && self.closes.is_empty() && self.notices.is_empty()
    }
}

impl Shift {
    /// Other settings, in force from the next write on.
    pub(crate) fn set(&mut self, settings: StoreSettings) {
        self.settings = settings;
    }

    /// How much of the allowed size is used.
    pub(crate) fn room(&self) -> Room {
        Room {
            bytes: self.ledger.bytes(),
            bytes_max: self.settings.audit_bytes_max,
        }
    }

    /// Whether the next call could be written down.
    pub(crate) fn ready(&self) -> Result<(), StoreError> {
        match self.owed.is_empty() {
            true => self.has_room(0),
            false => Err(StoreError::Full { source: None }),
        }
    }

    pub(crate) fn new(ledger: Ledger, settings: StoreSettings) -> Shift {
        Shift {
            ledger,
            settings,
            open: 0,
            owed: Vec::new(),
            removals: VecDeque::new(),
            index_from: 0,
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
        !self.removals.is_empty() || self.is_index_due() || self.ledger.is_long()
    }

    fn is_index_due(&self) -> bool {
        self.ledger.unindexed() >= limit::UNINDEXED_RECORDS_MAX
            && self.ledger.head().sequence >= self.index_from
    }

    /// Whether the index covers everything.
    pub(crate) fn is_indexed(&self) -> bool {
        self.ledger.unindexed() == 0
    }

    /// Whether calls can write for themselves: nothing that takes long is due, and
    /// no sync belongs to a write.
    pub(crate) fn is_light(&self) -> bool {
        self.settings.durability == Durability::Standard
            && self.owed.is_empty()
            && !self.has_chores()
    }

    /// Whether hardly anybody else is under way, with whom a write could be shared.
    pub(crate) fn is_quiet(&self, request: &Request) -> bool {
        match request {
            Request::Open(..) => self.open <= limit::AT_ONCE_OPEN_MAX,
            Request::Close(..) => self.open <= limit::AT_ONCE_OPEN_MAX + 1,
            Request::Notice(..) | Request::Retain(..) => false,
        }
    }

    /// Writes requests without waiting for anybody; what could not be written is
    /// left in `batch`.
    pub(crate) fn write_at_once(&mut self, shared: &Shared, batch: &mut Vec<Request>) {
        let mut group = Group::default();
        let mut others = Vec::new();
        for request in batch.drain(..) {
            match request {
                Request::Open(new, reply) => group.opens.push((new, reply)),
                Request::Close(end, reply) => group.closes.push((end, reply)),
                Request::Notice(..) | Request::Retain(..) => others.push(request),
            }
        }
        // The writer can wait, and knows what to do about failures.
        let _ = self.commit(shared, &mut group, Patience::None);
        let opens = group.opens.into_iter();
        let closes = group.closes.into_iter();
        batch.extend(closes.map(|(end, reply)| Request::Close(end, reply)));
        batch.extend(opens.map(|(new, reply)| Request::Open(new, reply)));
        batch.append(&mut others);
    }

    /// Does what is due beside calls.
    pub(crate) fn do_chores(&mut self, shared: &Shared, is_idle: bool) {
        self.remove(shared);
        if is_idle || self.is_index_due() {
            self.index();
        }
        if self.ledger.is_long()
            && let Err(StoreError::Unconfirmed { source }) = self.ledger.roll()
        {
            shared.sync.fail(&StoreError::Unconfirmed { source });
        }
    }

    /// Writes everything that waits.
    pub(crate) fn write(&mut self, shared: &Shared, batch: &mut Vec<Request>) {
        let mut group = Group::default();
        let owed = std::mem::take(&mut self.owed);
        group.closes.extend(owed.into_iter().map(|end| (end, None)));
        for request in batch.drain(..) {
            match request {
                Request::Open(new, reply) => group.opens.push((new, reply)),
                Request::Close(end, reply) => group.closes.push((end, reply)),
                Request::Notice(new, reply) => group.notices.push((new, reply)),
                Request::Retain(rule, reply) => {
                    self.removals.push_back(Removal::new(rule, reply));
                }
            }
        }
        let patience = Patience::Bounded;
        if let Err(error) = self.commit(shared, &mut group, patience) {
            for (_, reply) in group.opens.drain(..) {
                let _ = reply.send(Err(error.clone()));
            }
            for (_, reply) in group.notices.drain(..) {
                let _ = reply.send(Err(error.clone()));
            }
            // Ends need less than beginnings and matter more.
            if let Err(error) = self.commit(shared, &mut group, patience) {
                self.owe(shared, group.closes, &error);
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
        self.note_commit(shared, false);
    }

    /// Writes all of it in one group and answers, or leaves the lists as they are.
    fn commit(
        &mut self,
        shared: &Shared,
        group: &mut Group,
        patience: Patience,
    ) -> Result<(), StoreError> {
        if group.is_empty() {
            return Ok(());
        }
        if let Some(failure) = shared.sync.failure() {
            return Err(failure);
        }
        self.ledger.begin(patience)?;
        let written = self.try_commit(group);
        let written = written.inspect_err(|_| self.ledger.roll_back())?;
        let is_synced = self.settings.durability == Durability::Full || !group.notices.is_empty();
        if is_synced && let Err(failure) = disk::sync(self.ledger.file()) {
            shared.sync.fail(&failure);
            return Err(failure);
        }
        let commit = self.note_commit(shared, is_synced);
        self.open = self.open.saturating_sub(count(group.closes.len()));
        for ((new, reply), place) in group.opens.drain(..).zip(written.places) {
            let row = place.map(|sequence| {
                self.open += 1;
                let queue = Arc::clone(&shared.queue);
                OpenRow::new(queue, new.opening.call_id.clone(), sequence, commit)
            });
            // A row nobody waits for any more comes back and ends as cancelled.
            let _ = reply.send(row);
        }
        for ((_, reply), link) in group.closes.drain(..).zip(written.links) {
            if let Some(reply) = reply {
                let _ = reply.send(Ok(link));
            }
        }
        for ((_, reply), link) in group.notices.drain(..).zip(written.notices) {
            let _ = reply.send(link);
        }
        Ok(())
    }

    fn try_commit(&mut self, group: &Group) -> Result<Written, StoreError> {
        let mut links = Vec::with_capacity(group.closes.len());
        for (end, _) in &group.closes {
            links.push(link_to(self.ledger.close(end)?));
        }
        if !group.closes.is_empty() && self.ledger.bytes() > self.settings.audit_bytes_max {
            return Err(StoreError::Full { source: None });
        }
        let mut notices = Vec::with_capacity(group.notices.len());
        for (new, _) in &group.notices {
            notices.push(match self.has_room(new.part.len()) {
                Ok(()) => Ok(link_to(self.ledger.notice(new)?)),
                Err(error) => Err(error),
            });
        }
        let mut places = Vec::with_capacity(group.opens.len());
        for (new, _) in &group.opens {
            places.push(match self.has_room(new.part.len()) {
                Ok(()) => Ok(self.ledger.open(new)?.sequence),
                Err(error) => Err(error),
            });
        }
        self.ledger.commit()?;
        Ok(Written {
            places,
            links,
            notices,
        })
    }

    /// Whether another beginning fits. A part of the size is left for the ends of
    /// what has begun.
    fn has_room(&self, part_bytes: usize) -> Result<(), StoreError> {
        /// What an entry takes beside the text of its opening, generously.
        const ENTRY_BYTES: u64 = 16 * 1024;
        let need = ENTRY_BYTES + count(part_bytes);
        let reserve = (self.settings.audit_bytes_max / 16).min(4 * 1024 * 1024);
        let bytes_max = self.settings.audit_bytes_max.saturating_sub(reserve);
        match self.ledger.bytes().saturating_add(need) > bytes_max {
            true => Err(StoreError::Full { source: None }),
            false => Ok(()),
        }
    }

    fn note_commit(&self, shared: &Shared, is_synced: bool) -> u64 {
        shared.commits.fetch_add(1, Ordering::Relaxed);
        shared.sync.committed(self.ledger.file(), is_synced)
    }

    /// Lets filters know what was written. If that fails they find it in the log,
    /// and it is tried again.
    fn index(&mut self) {
        if self.ledger.unindexed() > 0 && self.ledger.index().is_err() {
            let head = self.ledger.head().sequence;
            self.index_from = head + limit::UNINDEXED_RECORDS_MAX;
        }
    }

    /// What is still open is found by whoever comes next.
    pub(crate) fn leave(&mut self) {
        self.index();
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

fn link_to(head: Head) -> Link {
    Link {
        sequence: head.sequence,
        hash: head.hash.hex(),
    }
}

/// Where everything of a group stands.
struct Written {
    /// The places of the beginnings.
    places: Vec<Result<u64, StoreError>>,
    links: Vec<Link>,
    notices: Vec<Result<Link, StoreError>>,
}
