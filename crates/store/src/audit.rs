//! The audit: writing openings, ends and notices, and reading them back.
//!
//! Writes go through the writer. A reader has a snapshot of the log and a
//! connection of its own to the index, and blocks no writer.

/// What readers ask for and get.
pub(crate) mod entry;
/// Signed heads, and the tree they are signed over.
pub(crate) mod evidence;
/// The SQLite index of the log, which filters use.
pub(crate) mod index;
/// The append-only log, which is the truth.
pub(crate) mod log;
/// Reading notices.
pub(crate) mod notices;
/// Reading entries.
pub(crate) mod read;
/// Removing what is old.
pub(crate) mod retention;
/// What the operator decides, and how much room is left.
pub(crate) mod settings;
/// How far records were copied elsewhere.
pub(crate) mod shipped;
/// The last records, which the index does not cover yet.
mod tail;
/// Verifying the chain and its index.
mod verify;
/// Writing: who writes, in which batches, and when it is on the disk.
pub(crate) mod write;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use model::record::audit::chain::{Head, Record};
use model::record::audit::proof::{ExportedLine, GrowthProof, RecordProof};
use model::record::audit::walk::Verified;
use model::record::audit::{Anchor, Closing, Failure, Notice, Opening, spell};
use model::record::note::{NoteKey, SignedNote};
use model::record::witness::{HeadConflict, WitnessRequest};
use model::sync::lock;
use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

use crate::audit::entry::{AuditEntry, AuditItem, Filter, FoundEntry, Link, NoticeEntry};
use crate::audit::evidence::conflicts::{self, Keeping, KeptConflict};
use crate::audit::evidence::head_file;
use crate::audit::evidence::key::HomeKey;
use crate::audit::evidence::offline::Expectation;
use crate::audit::evidence::prove::Prover;
use crate::audit::evidence::published;
use crate::audit::evidence::signer::{self, Signer, SigningStatus, unsigned};
use crate::audit::log::snapshot::LogSnapshot;
use crate::audit::read::AuditReader;
use crate::audit::retention::{Removed, Retention};
use crate::audit::shipped::ShipStatus;
use crate::audit::verify::SignedHeads;
use crate::audit::write::chain::{NewAnchor, NewEntry, NewNotice};
use crate::audit::write::queue::{OpenRow, WriteRequest};
use crate::audit::write::writer::Writer;
use crate::clock::now_ms;
use crate::error::StoreError;
use crate::home::audit_folder;
use crate::home::mark::AuditMark;
use crate::limit;

/// The audit of one home.
#[derive(Debug)]
pub struct Audit {
    home: PathBuf,
    writer: Arc<Writer>,
    /// Opened by the first read; most processes only write.
    index: Mutex<Option<Connection>>,
    /// The index for those who follow the audit: news must not wait for a long list.
    followed: Mutex<Option<Connection>>,
    mark: AuditMark,
    shipping: Mutex<ShipStatus>,
    /// A call waits until its opening is shipped.
    ship_wanted: Notify,
    /// Conflicts that could not be stored, remembered so that each is reported once.
    unkept: Mutex<BTreeSet<(String, HeadConflict)>>,
}

impl Audit {
    pub(crate) fn new(home: PathBuf, writer: Arc<Writer>) -> Audit {
        Audit {
            mark: AuditMark::new(&home),
            home,
            writer,
            index: Mutex::default(),
            followed: Mutex::default(),
            shipping: Mutex::default(),
            ship_wanted: Notify::new(),
            unkept: Mutex::default(),
        }
    }

    /// Writes the opening of a call. Resolves when the row survives the death of this
    /// process. The caller makes call ids unique.
    pub async fn open(&self, opening: Opening) -> Result<OpenRow, StoreError> {
        let new = NewEntry::new(opening)?;
        // Before it is queued: a record that no line can hold must not fail a whole group.
        if new.part.len() > limit::RECORD_BYTES_MAX {
            return Err(StoreError::TooLong {
                bytes: new.part.len(),
                bytes_max: limit::RECORD_BYTES_MAX,
            });
        }
        let (reply, answer) = oneshot::channel();
        self.writer.submit(WriteRequest::Open(new, reply)).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Resolves when the row is on the disk. Calls that wait at the same time share a
    /// sync.
    pub async fn secure(&self, row: &OpenRow) -> Result<(), StoreError> {
        self.writer.shared().syncer.wait_for(row.commit).await
    }

    /// Writes how a call ended. Resolves when that survives the death of this process.
    /// After an error the end is kept and written as soon as possible.
    pub async fn close(&self, mut row: OpenRow, closing: Closing) -> Result<Link, StoreError> {
        // From here on the row counts as ended. If the write fails, the end is
        // owed, not forgotten.
        let (status, differs) = (closing.status, closing.shadow.is_some());
        let part = bounded_part(closing)?;
        let end = row.end(status, differs, part);
        let (reply, answer) = oneshot::channel();
        self.writer
            .submit(WriteRequest::Close(end, Some(reply)))
            .await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Writes a notice; its id and time are set here. Blocks until it is on the disk.
    pub fn notice(&self, mut notice: Notice) -> Result<Link, StoreError> {
        #[cfg(feature = "testing")]
        crate::testing::takes_notices(&self.home)?;
        notice.id = uuid::Uuid::now_v7().to_string();
        notice.at_ms = now_ms();
        let new = NewNotice::new(notice)?;
        if new.part.len() > limit::RECORD_BYTES_MAX {
            return Err(StoreError::TooLong {
                bytes: new.part.len(),
                bytes_max: limit::RECORD_BYTES_MAX,
            });
        }
        let (reply, answer) = mpsc::channel();
        self.writer
            .submit_to_thread(WriteRequest::Notice(new, reply))?;
        answer.recv().map_err(|_| StoreError::Closed)?
    }

    /// Writes heads of other logs into this one. Blocks until they survive the death of
    /// this process.
    pub fn anchor(&self, anchor: &Anchor) -> Result<Link, StoreError> {
        let new = NewAnchor::new(anchor)?;
        if new.part.len() > limit::RECORD_BYTES_MAX {
            return Err(StoreError::TooLong {
                bytes: new.part.len(),
                bytes_max: limit::RECORD_BYTES_MAX,
            });
        }
        let (reply, answer) = mpsc::channel();
        self.writer
            .submit_to_thread(WriteRequest::Anchor(new, reply))?;
        answer.recv().map_err(|_| StoreError::Closed)?
    }

    /// Notices, newest first.
    pub fn notices(&self, filter: &Filter) -> Result<Vec<NoticeEntry>, StoreError> {
        self.read(|reader| notices::list(reader, filter))
    }

    /// Calls and notices, newest first.
    pub fn items(&self, filter: &Filter) -> Result<Vec<AuditItem>, StoreError> {
        self.read(|reader| notices::items(reader, filter))
    }

    /// Entries, newest first.
    pub fn list(&self, filter: &Filter) -> Result<Vec<AuditEntry>, StoreError> {
        self.read(|reader| read::list(reader, filter))
    }

    /// The entry or notice with an id, or the only one with that prefix.
    pub fn find(&self, call_id_or_prefix: &str) -> Result<FoundEntry, StoreError> {
        self.read(|reader| read::find(reader, call_id_or_prefix))
    }

    /// Entries that ended and notices that were written after a sequence, oldest first. To
    /// follow the audit, ask again with the last one's [`AuditItem::last_sequence`].
    pub fn after(&self, sequence: u64, limit: usize) -> Result<Vec<AuditItem>, StoreError> {
        self.read_by(&self.followed, |reader| {
            read::after(reader, sequence, limit)
        })
    }

    /// The last record.
    pub fn head(&self) -> Result<Head, StoreError> {
        LogSnapshot::take(&audit_folder(&self.home))?.head()
    }

    /// Walks the whole chain and reports the first record that is wrong.
    pub fn verify(&self, expected_head: Option<&Head>) -> Result<Verified, StoreError> {
        let head = expected_head.copied();
        self.verify_against(&Expectation {
            head,
            ..Expectation::default()
        })
    }

    /// The same, held against a key and heads that were kept elsewhere.
    pub fn verify_against(&self, expected: &Expectation) -> Result<Verified, StoreError> {
        let index = self.own_index()?;
        // Read before the log, so that the log cannot look shorter than these.
        let signed = SignedHeads::read(&self.home, self.signer(), expected)?;
        let remembered = self.mark.get()?;
        let reader = AuditReader::new(&index, &self.home)?;
        verify::verify(&reader, expected.head.as_ref(), remembered, signed)
    }

    /// The public key that the heads of this log are signed with; nothing before the
    /// first was.
    pub fn public_key(&self) -> Result<Option<NoteKey>, StoreError> {
        signer::public_key(&self.home, self.signer().memory())
    }

    /// Signs a head over all records that are indexed. Returns how many those are.
    pub fn sign(&self) -> Result<u64, StoreError> {
        self.signer().sign()
    }

    /// From now on, heads are signed sooner when many records wait, because other nodes
    /// anchor them.
    pub fn hurry_heads(&self, is_hurried: bool) {
        self.signer().set_hurried(is_hurried);
    }

    /// How far heads cover the log.
    #[must_use]
    pub fn signing(&self) -> SigningStatus {
        self.signer().status()
    }

    /// From now on, heads are also added to a file elsewhere, and the log is held
    /// against that file when it is verified.
    pub fn copy_heads_to(&self, file: Option<PathBuf>) {
        self.signer().set_copy(file);
    }

    /// The newest signed head.
    pub fn signed_head(&self) -> Result<SignedNote, StoreError> {
        let prover = Prover::open(&audit_folder(&self.home))?;
        Ok(prover.note().clone())
    }

    /// Proves that records are among those that were signed.
    pub fn prove(&self, sequences: &[u64]) -> Result<Vec<RecordProof>, StoreError> {
        let prover = Prover::open(&audit_folder(&self.home))?;
        let snapshot = LogSnapshot::take(&audit_folder(&self.home))?;
        let prove = |sequence: &u64| prover.record(record_at(&snapshot, *sequence)?);
        sequences.iter().map(prove).collect()
    }

    /// Proves that the log begins with what an earlier head covers.
    pub fn prove_growth(&self, from: &SignedNote) -> Result<GrowthProof, StoreError> {
        let key = self.public_key()?;
        let key = key.ok_or_else(|| unsigned("this home has no key".to_owned()))?;
        let prover = Prover::open(&audit_folder(&self.home))?;
        prover.growth(from, &key)
    }

    /// What a witness is asked: to cosign the newest head, which extends what it saw.
    pub fn witness_request(&self, old: u64) -> Result<WitnessRequest, StoreError> {
        let prover = Prover::open(&audit_folder(&self.home))?;
        // A witness that saw more is asked with what there is, and says so.
        let old = old.min(prover.size());
        Ok(WitnessRequest {
            old,
            hashes: prover.growth_hashes(old)?,
            note: prover.note().clone(),
        })
    }

    /// The records of the newest head that a witness cosigned.
    pub fn witnessed_size(&self) -> Result<u64, StoreError> {
        let last = head_file::last_cosigned(&audit_folder(&self.home))?;
        let last = last.and_then(|note| note.head().ok());
        Ok(last.map_or(0, |head| head.size))
    }

    /// Keeps a head with the cosignatures of witnesses.
    pub fn keep_cosigned(&self, note: &SignedNote) -> Result<(), StoreError> {
        head_file::keep_cosigned(&audit_folder(&self.home), note)
    }

    /// Holds heads of this log that lie elsewhere against it. An error if one of them is
    /// not of its past: a newer head must not take the place of that evidence.
    pub fn check_published(&self, notes: &[SignedNote], place: &str) -> Result<(), StoreError> {
        match self.public_key()? {
            Some(key) => published::check(&audit_folder(&self.home), &key, notes, place),
            // Nothing was ever signed, so none of them is of this log.
            None => Ok(()),
        }
    }

    /// Keeps two heads of another log that contradict each other. Returns whether this is
    /// the first contradiction of its kind about that log.
    pub fn keep_conflict(&self, conflict: &KeptConflict) -> Result<bool, StoreError> {
        Ok(
            match conflicts::keep(&audit_folder(&self.home), conflict)? {
                Keeping::First => true,
                Keeping::Known => false,
                Keeping::TooMuch => {
                    let mut unkept = lock(&self.unkept);
                    let about = (conflict.origin.clone(), conflict.conflict);
                    // Bounded: beyond that, what is kept says enough.
                    unkept.len() < limit::CONFLICTS_MAX && unkept.insert(about)
                }
            },
        )
    }

    /// The contradictions of other logs that are kept, oldest first.
    pub fn conflicts(&self) -> Result<Vec<KeptConflict>, StoreError> {
        conflicts::read(&audit_folder(&self.home))
    }

    /// Forgets the contradictions of another log.
    pub fn forget_conflicts(&self, origin: &str) -> Result<(), StoreError> {
        conflicts::forget(&audit_folder(&self.home), origin)
    }

    /// Records on the disk behind a sequence, as many as one batch may have.
    pub(crate) fn unshipped(&self, after: u64) -> Result<Unshipped, StoreError> {
        let index = self.own_index()?;
        // What is indexed is on the disk, and no power cut takes it back.
        let reach = index::reach(&index)?.head.sequence;
        let mut records = Vec::new();
        let mut bytes = 0;
        if reach > after {
            let snapshot = LogSnapshot::take(&audit_folder(&self.home))?;
            for placed in snapshot.after(after)? {
                let (_, Some(line)) = placed? else {
                    return Err(unsigned(format!(
                        "a line behind record {after} cannot be read"
                    )));
                };
                let record = line.record;
                // Not beyond the index: only what the index covers is on
                // the disk for certain.
                if record.sequence > reach
                    || records.len() >= limit::SHIP_RECORDS_MAX
                    || bytes >= limit::SHIP_BYTES_MAX
                {
                    break;
                }
                bytes += record.body.len();
                records.push(record);
            }
        }
        let last = records.last().map_or(after, |record| record.sequence);
        Ok(Unshipped {
            records,
            waiting: reach.saturating_sub(last),
        })
    }

    /// From now on, records are copied elsewhere.
    pub(crate) fn begin_shipping(&self) -> Result<(), StoreError> {
        let folder = audit_folder(&self.home);
        match shipped::read(&folder)? {
            Some(_) => Ok(()),
            None => shipped::write(&folder, 0),
        }
    }

    /// From now on, records are not copied, and may be removed without it.
    pub fn end_shipping(&self) -> Result<(), StoreError> {
        *lock(&self.shipping) = ShipStatus::default();
        shipped::forget(&audit_folder(&self.home))
    }

    /// Remembers the last record that was acknowledged elsewhere.
    pub(crate) fn acknowledge_shipped(&self, sequence: u64) -> Result<(), StoreError> {
        shipped::write(&audit_folder(&self.home), sequence)
    }

    pub(crate) fn note_shipping(&self, status: ShipStatus) {
        *lock(&self.shipping) = status;
    }

    /// How far records were copied elsewhere.
    #[must_use]
    pub fn shipping(&self) -> ShipStatus {
        lock(&self.shipping).clone()
    }

    /// Waits until the database acknowledged the opening of a call. An error if it does not
    /// in time.
    pub async fn await_shipped(&self, row: &OpenRow) -> Result<(), StoreError> {
        let until = Instant::now() + Duration::from_millis(limit::SHIP_SYNC_MS_MAX);
        let unavailable = |why: String| StoreError::Unavailable {
            doing: "ship the audit",
            why,
        };
        loop {
            let status = self.shipping();
            if status.shipped >= row.sequence() {
                return Ok(());
            }
            if let Some(fault) = status.fault {
                return Err(unavailable(fault));
            }
            if Instant::now() >= until {
                let wait = limit::SHIP_SYNC_MS_MAX;
                return Err(unavailable(format!("not within {wait} ms")));
            }
            self.ship_wanted.notify_one();
            tokio::time::sleep(Duration::from_millis(limit::SHIP_LOOK_MS)).await;
        }
    }

    /// Returns when a call waits until its opening is shipped.
    pub async fn shipping_wanted(&self) {
        self.ship_wanted.notified().await;
    }

    /// The sequence and hash of a record; nothing if the log does not have it.
    pub(crate) fn head_of(&self, sequence: u64) -> Result<Option<Head>, StoreError> {
        let snapshot = LogSnapshot::take(&audit_folder(&self.home))?;
        let line = snapshot.find(sequence)?;
        Ok(line.map(|line| line.head()))
    }

    fn signer(&self) -> &Signer {
        &self.writer.shared().signer
    }

    /// Hands over the records of the entries a filter selects, oldest first, and every
    /// checkpoint: with an empty filter that is enough to verify the chain elsewhere.
    /// Returns how many. Stops when `each` fails.
    pub fn export(
        &self,
        filter: &Filter,
        each: &mut dyn FnMut(&Record) -> std::io::Result<()>,
    ) -> Result<u64, StoreError> {
        let index = self.own_index()?;
        read::export(&AuditReader::new(&index, &self.home)?, filter, each)
    }

    /// The same as lines that can be checked with nothing but the public key. It ends
    /// with the records of the newest signed head.
    pub fn export_proved(
        &self,
        filter: &Filter,
        each: &mut dyn FnMut(&ExportedLine) -> std::io::Result<()>,
    ) -> Result<u64, StoreError> {
        let folder = audit_folder(&self.home);
        let key = self.public_key()?;
        let key = key.ok_or_else(|| unsigned("this home has no key".to_owned()))?;
        // The prover before the reader: the log read later surely has all the
        // records of its head.
        let prover = Prover::open(&folder)?;
        let heads = head_file::read(&folder)?;
        let index = self.own_index()?;
        let reader = AuditReader::new(&index, &self.home)?;
        let (count, seal) = read::export_proved(&reader, filter, &key, &prover, heads, each)?;
        let own = HomeKey::find(&self.home)?;
        let own = own.ok_or_else(|| unsigned("the key `audit.key` is missing".to_owned()))?;
        let end = own.sign(seal.text(own.public().name(), now_ms()));
        each(&ExportedLine::End(end.to_string())).map_err(read::exporting)?;
        Ok(count)
    }

    /// Removes old entries and writes a checkpoint about it. Open entries stay. Blocks
    /// until it is done.
    pub fn retain(&self, rule: &Retention) -> Result<Removed, StoreError> {
        let (reply, answer) = mpsc::channel();
        self.writer
            .submit_to_thread(WriteRequest::Retain(*rule, reply))?;
        answer.recv().map_err(|_| StoreError::Closed)?
    }

    fn read<T>(
        &self,
        read: impl FnOnce(&AuditReader<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.read_by(&self.index, read)
    }

    fn read_by<T>(
        &self,
        index: &Mutex<Option<Connection>>,
        read: impl FnOnce(&AuditReader<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut index = lock(index);
        let index = match &mut *index {
            Some(index) => index,
            none => none.insert(self.own_index()?),
        };
        read(&AuditReader::new(index, &self.home)?)
    }

    /// A connection for slow reads, so that lists do not wait for them.
    fn own_index(&self) -> Result<Connection, StoreError> {
        index::connect_to_read(&self.home)
    }
}

/// Records to be copied elsewhere.
#[derive(Debug)]
pub(crate) struct Unshipped {
    pub(crate) records: Vec<Record>,
    /// Records behind them.
    pub(crate) waiting: u64,
}

/// A record that the log still holds.
fn record_at(snapshot: &LogSnapshot, sequence: u64) -> Result<Record, StoreError> {
    match snapshot.find(sequence)? {
        Some(line) => Ok(line.record),
        None => Err(unsigned(format!("record {sequence} is not in the log"))),
    }
}

/// The canonical closing. If it is too long, its details are left out and it says so:
/// every opening must get its end.
fn bounded_part(closing: Closing) -> Result<String, StoreError> {
    let part = spell::closing(&closing)?;
    if part.len() <= limit::RECORD_BYTES_MAX {
        return Ok(part);
    }
    let note = Failure {
        code: "audit.shortened".to_owned(),
        message: format!(
            "the record had {} bytes; its details were left out",
            part.len()
        ),
    };
    let events = u64::try_from(closing.events.len()).unwrap_or(u64::MAX);
    let mut short = Closing::bare(closing.at_ms, closing.status, closing.error.or(Some(note)));
    short.events_dropped = closing.events_dropped.saturating_add(events);
    short.result_digest = closing.result_digest;
    short.shadow = closing.shadow;
    short.timing = closing.timing;
    let part = spell::closing(&short)?;
    if part.len() <= limit::RECORD_BYTES_MAX {
        return Ok(part);
    }
    let mut bare = Closing::bare(short.at_ms, short.status, None);
    // A reason is cut when it is made, so this is short.
    bare.shadow = short.shadow;
    Ok(spell::closing(&bare)?)
}
