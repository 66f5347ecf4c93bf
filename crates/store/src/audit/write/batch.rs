//! Writing batches: taking requests into one group of records, writing it, and
//! answering; and the chores between calls, such as indexing and removing.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use model::record::audit::chain::Head;
use tokio::sync::oneshot;

use crate::audit::entry::Link;
use crate::audit::evidence::signer::Signer;
use crate::audit::log::{LockWait, disk};
use crate::audit::retention::Removal;
use crate::audit::settings::{Durability, Room, StoreSettings};
use crate::audit::write::chain::{ChainWriter, NewAnchor, NewEnd, NewEntry, NewNotice};
use crate::audit::write::queue::{OpenRow, Queue, WriteRequest};
use crate::audit::write::syncer::Syncer;
use crate::error::StoreError;
use crate::limit;

type OpenReply = oneshot::Sender<Result<OpenRow, StoreError>>;
type CloseReply = oneshot::Sender<Result<Link, StoreError>>;
type NoticeReply = mpsc::Sender<Result<Link, StoreError>>;

/// After being idle for this long, the writer indexes what was written.
const INDEX_IDLE: Duration = Duration::from_millis(limit::INDEX_IDLE_MS_MAX);

/// What can be used without access to the log: the queue, the syncer, the signer, counters.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) queue: Arc<Queue>,
    pub(crate) syncer: Syncer,
    pub(crate) signer: Signer,
    commits: AtomicU64,
    owed: AtomicU64,
}

impl Shared {
    pub(crate) fn new(home: &Path, queue_max: usize) -> Shared {
        Shared {
            queue: Arc::new(Queue::new(queue_max)),
            syncer: Syncer::default(),
            signer: Signer::new(home),
            commits: AtomicU64::new(0),
            owed: AtomicU64::new(0),
        }
    }

    /// Groups of records written.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Ends of calls that could not be written yet.
    pub(crate) fn owed(&self) -> u64 {
        self.owed.load(Ordering::Relaxed)
    }
}

/// Writes groups of requests to the log and answers them. The `Writer` lets one thread at a
/// time use it; `ChainWriter` makes the records.
#[derive(Debug)]
pub(crate) struct BatchWriter {
    chain: ChainWriter,
    settings: StoreSettings,
    /// Entries of this process that are open.
    open: u64,
    /// Ends that could not be written. Their callers got the error; the ends are
    /// still written as soon as there is room.
    owed: Vec<NewEnd>,
    removals: VecDeque<Removal>,
    /// After a failure, indexing is tried again from this record on.
    index_from: u64,
}

/// Openings, and who waits for each.
type Opens = Vec<(NewEntry, OpenReply)>;
/// Ends, and who waits for each.
type Closes = Vec<(NewEnd, Option<CloseReply>)>;

/// Requests that are written together.
#[derive(Default)]
struct Group {
    opens: Opens,
    closes: Closes,
    /// Synced before they are answered.
    notices: Vec<(NewNotice, NoticeReply)>,
    anchors: Vec<(NewAnchor, NoticeReply)>,
}

impl Group {
    fn is_empty(&self) -> bool {
        self.opens.is_empty()
            && self.closes.is_empty()
            && self.notices.is_empty()
            && self.anchors.is_empty()
    }
}

impl BatchWriter {
    /// Applies other settings from the next write on.
    pub(crate) fn set(&mut self, settings: StoreSettings) {
        self.settings = settings;
    }

    /// How much of the allowed size is used.
    pub(crate) fn room(&self) -> Room {
        Room {
            bytes: self.chain.bytes(),
            bytes_max: self.settings.audit_bytes_max,
        }
    }

    /// Whether the opening of another call could be written.
    pub(crate) fn ready(&self) -> Result<(), StoreError> {
        // Ends that are owed have the next room. Another opening would only make it worse.
        match self.owed.is_empty() {
            true => self.has_room(0),
            false => Err(StoreError::Full { source: None }),
        }
    }

    pub(crate) fn new(chain: ChainWriter, settings: StoreSettings) -> BatchWriter {
        BatchWriter {
            chain,
            settings,
            open: 0,
            owed: Vec::new(),
            removals: VecDeque::new(),
            index_from: 0,
        }
    }

    /// How long the writer thread may wait for a request; forever if none.
    pub(crate) fn idle_max(&self) -> Option<Duration> {
        if !self.removals.is_empty() {
            return Some(Duration::ZERO);
        }
        (self.chain.unindexed() > 0).then_some(INDEX_IDLE)
    }

    /// Whether there is work beside calls, which only the writer thread does.
    pub(crate) fn has_chores(&self) -> bool {
        !self.removals.is_empty() || self.is_index_due() || self.chain.is_long()
    }

    fn is_index_due(&self) -> bool {
        self.chain.unindexed() >= limit::UNINDEXED_RECORDS_MAX
            && self.chain.head().sequence >= self.index_from
    }

    /// Whether the index covers everything.
    pub(crate) fn is_indexed(&self) -> bool {
        self.chain.unindexed() == 0
    }

    /// Whether calls can write for themselves: nothing slow is due, and a write
    /// needs no sync.
    pub(crate) fn is_light(&self) -> bool {
        self.settings.durability == Durability::Standard
            && self.owed.is_empty()
            && !self.has_chores()
    }

    /// Whether so few other calls are under way that sharing a write gains nothing.
    pub(crate) fn is_quiet(&self, request: &WriteRequest) -> bool {
        match request {
            WriteRequest::Open(..) => self.open <= limit::AT_ONCE_OPEN_MAX,
            // One more, because the call that ends is itself among the open.
            WriteRequest::Close(..) => self.open <= limit::AT_ONCE_OPEN_MAX + 1,
            WriteRequest::Notice(..) | WriteRequest::Anchor(..) | WriteRequest::Retain(..) => false,
        }
    }

    /// Writes requests without waiting for another process or the disk. What could
    /// not be written is left in `batch`.
    pub(crate) fn write_at_once(&mut self, shared: &Shared, batch: &mut Vec<WriteRequest>) {
        let mut group = Group::default();
        let mut others = Vec::new();
        for request in batch.drain(..) {
            match request {
                WriteRequest::Open(new, reply) => group.opens.push((new, reply)),
                WriteRequest::Close(end, reply) => group.closes.push((end, reply)),
                WriteRequest::Notice(..) | WriteRequest::Anchor(..) | WriteRequest::Retain(..) => {
                    others.push(request)
                }
            }
        }
        // Never waits here: this runs in the task of a call, on a thread of the runtime.
        // On failure the requests go to the writer thread, which can wait and retry.
        let _ = self.commit(shared, &mut group, LockWait::None);
        let opens = group.opens.into_iter();
        let closes = group.closes.into_iter();
        // Ends first, as in a group: every opening in the log must get its end.
        batch.extend(closes.map(|(end, reply)| WriteRequest::Close(end, reply)));
        batch.extend(opens.map(|(new, reply)| WriteRequest::Open(new, reply)));
        batch.append(&mut others);
    }

    /// Does the work that is due beside calls.
    pub(crate) fn do_chores(&mut self, shared: &Shared, is_idle: bool) {
        self.remove(shared);
        if is_idle || self.is_index_due() {
            self.index(shared);
        }
        // Other errors are met again at the next write. A failed sync is
        // not, so it is kept.
        if self.chain.is_long()
            && let Err(StoreError::Unconfirmed { source }) = self.chain.roll()
        {
            shared.syncer.fail(&StoreError::Unconfirmed { source });
        }
    }

    /// Writes every request of a batch, and the ends that are owed.
    pub(crate) fn write(&mut self, shared: &Shared, batch: &mut Vec<WriteRequest>) {
        let mut group = Group::default();
        let owed = std::mem::take(&mut self.owed);
        // First, in the order they came: openings must not overtake ends
        // that were promised.
        group.closes.extend(owed.into_iter().map(|end| (end, None)));
        for request in batch.drain(..) {
            match request {
                WriteRequest::Open(new, reply) => group.opens.push((new, reply)),
                WriteRequest::Close(end, reply) => group.closes.push((end, reply)),
                WriteRequest::Notice(new, reply) => group.notices.push((new, reply)),
                WriteRequest::Anchor(new, reply) => group.anchors.push((new, reply)),
                WriteRequest::Retain(rule, reply) => {
                    self.removals.push_back(Removal::new(rule, reply));
                }
            }
        }
        let wait = LockWait::Bounded;
        if let Err(error) = self.commit(shared, &mut group, wait) {
            for (_, reply) in group.opens.drain(..) {
                let _ = reply.send(Err(error.clone()));
            }
            for (_, reply) in group.notices.drain(..) {
                let _ = reply.send(Err(error.clone()));
            }
            for (_, reply) in group.anchors.drain(..) {
                let _ = reply.send(Err(error.clone()));
            }
            // Once more with the ends alone: they need less room, and every opening
            // in the log must get its end.
            if let Err(error) = self.commit(shared, &mut group, wait) {
                self.owe(shared, group.closes, &error);
            }
        }
        self.count_owed(shared);
    }

    /// Does one step of the oldest removal, if there is one.
    fn remove(&mut self, shared: &Shared) {
        let Some(removal) = self.removals.pop_front() else {
            return;
        };
        // To the front again: the next step belongs to the same removal, calls are
        // written in between.
        if let Some(rest) = removal.step(&mut self.chain, &shared.signer) {
            self.removals.push_front(rest);
        }
        self.note_commit(shared, false);
    }

    /// Writes all requests as one group and answers them; on failure leaves the lists
    /// as they are.
    fn commit(
        &mut self,
        shared: &Shared,
        group: &mut Group,
        wait: LockWait,
    ) -> Result<(), StoreError> {
        if group.is_empty() {
            return Ok(());
        }
        // After a failed sync no record may follow. It could be on the disk while one
        // before it is not.
        if let Some(failure) = shared.syncer.failure() {
            return Err(failure);
        }
        self.chain.begin(wait)?;
        let written = self.try_commit(group);
        let written = written.inspect_err(|_| self.chain.roll_back())?;
        // A change outside of calls has effect at once, so its notice is on the disk before
        // it is answered.
        let is_synced = self.settings.durability == Durability::Full || !group.notices.is_empty();
        if is_synced && let Err(failure) = disk::sync(self.chain.file()) {
            // The records are in the log and perhaps not on the disk: nothing is answered as
            // written, and no record follows.
            shared.syncer.fail(&failure);
            return Err(failure);
        }
        let commit = self.note_commit(shared, is_synced);
        self.open = self.open.saturating_sub(count(group.closes.len()));
        // Answered only now: a call that has its row may run, and the row
        // must be in the log.
        for ((new, reply), place) in group.opens.drain(..).zip(written.places) {
            let row = place.map(|sequence| {
                self.open += 1;
                let queue = Arc::clone(&shared.queue);
                OpenRow::new(queue, new.opening.call_id.clone(), sequence, commit)
            });
            // If no task waits any more, the row is dropped here and ends as cancelled.
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
        for ((_, reply), link) in group.anchors.drain(..).zip(written.anchors) {
            let _ = reply.send(link);
        }
        Ok(())
    }

    fn try_commit(&mut self, group: &Group) -> Result<Written, StoreError> {
        // Ends before all else: they alone may use the reserve, and what they take decides
        // whether an opening still fits.
        let mut links = Vec::with_capacity(group.closes.len());
        for (end, _) in &group.closes {
            links.push(link_to(self.chain.close(end)?));
        }
        // Ends may use the reserve, but may not go beyond the size that
        // the operator allows.
        if !group.closes.is_empty() && self.chain.bytes() > self.settings.audit_bytes_max {
            return Err(StoreError::Full { source: None });
        }
        let mut notices = Vec::with_capacity(group.notices.len());
        for (new, _) in &group.notices {
            notices.push(match self.has_room(new.part.len()) {
                Ok(()) => Ok(link_to(self.chain.notice(new)?)),
                Err(error) => Err(error),
            });
        }
        let mut anchors = Vec::with_capacity(group.anchors.len());
        for (new, _) in &group.anchors {
            anchors.push(match self.has_room(new.part.len()) {
                Ok(()) => Ok(link_to(self.chain.anchor(new)?)),
                Err(error) => Err(error),
            });
        }
        let mut places = Vec::with_capacity(group.opens.len());
        for (new, _) in &group.opens {
            places.push(match self.has_room(new.part.len()) {
                Ok(()) => Ok(self.chain.open(new)?.sequence),
                Err(error) => Err(error),
            });
        }
        self.chain.commit()?;
        Ok(Written {
            places,
            links,
            notices,
            anchors,
        })
    }

    /// Whether another opening fits. Part of the allowed size is reserved for the
    /// ends of calls that are open.
    fn has_room(&self, part_bytes: usize) -> Result<(), StoreError> {
        /// A generous estimate of what an entry takes beside its opening.
        const ENTRY_BYTES: u64 = 16 * 1024;
        let need = ENTRY_BYTES + count(part_bytes);
        let reserve = (self.settings.audit_bytes_max / 16).min(4 * 1024 * 1024);
        let bytes_max = self.settings.audit_bytes_max.saturating_sub(reserve);
        match self.chain.bytes().saturating_add(need) > bytes_max {
            true => Err(StoreError::Full { source: None }),
            false => Ok(()),
        }
    }

    fn note_commit(&self, shared: &Shared, is_synced: bool) -> u64 {
        shared.commits.fetch_add(1, Ordering::Relaxed);
        shared.syncer.note_commit(self.chain.file(), is_synced)
    }

    /// Indexes what was written. If that fails, readers scan the log for it, and it
    /// is tried again later.
    fn index(&mut self, shared: &Shared) {
        if self.chain.unindexed() == 0 {
            return;
        }
        match self.chain.index() {
            Ok(head) => shared.signer.note_indexed(head),
            Err(_) => {
                let head = self.chain.head().sequence;
                // Not at every record: a broken index must not slow each call down.
                self.index_from = head + limit::UNINDEXED_RECORDS_MAX;
            }
        }
    }

    /// Indexes what is left, when the writer thread ends. Calls that are still open
    /// are closed by the next process.
    pub(crate) fn finish(&mut self, shared: &Shared) {
        self.index(shared);
    }

    /// Keeps ends that could not be written, and answers with the error.
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

/// Where the records of a group are.
struct Written {
    /// The sequences of the openings.
    places: Vec<Result<u64, StoreError>>,
    links: Vec<Link>,
    notices: Vec<Result<Link, StoreError>>,
    anchors: Vec<Result<Link, StoreError>>,
}
