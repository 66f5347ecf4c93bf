//! Signing: the tree is brought up to the last indexed record, checked against the
//! newest head, and signed. A log that does not begin with what was signed before is
//! not signed, unless the owner acknowledged why records are missing.
//!
//! Locks are taken in one order: first that of the heads, then that of the log.

use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::record::audit::chain::{ChainHash, Checkpoint, Head, link};
use model::record::note::{NoteKey, TreeHead};
use model::record::tree::{TreeHash, root};
use model::sync::lock;

use crate::audit::evidence::head_file::{self, HeadFile};
use crate::audit::evidence::key::HomeKey;
use crate::audit::evidence::remembered::HeadMemory;
use crate::audit::evidence::tree_file::TreeHashes;
use crate::audit::index;
use crate::audit::log::snapshot::{LogSnapshot, believable};
use crate::error::StoreError;
use crate::home::audit_folder;
use crate::home::database::from_integer;
use crate::limit;

/// How long records may wait for a head.
const PACE: Duration = Duration::from_millis(limit::SIGN_MS_MAX);

/// The same when many wait and other nodes anchor heads.
const HURRIED_PACE: Duration = Duration::from_millis(limit::SIGN_HURRIED_MS_MAX);

/// Signs heads over the log of one home.
#[derive(Debug)]
pub(crate) struct Signer {
    home: PathBuf,
    memory: HeadMemory,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The last record that is on the disk and indexed.
    reached: u64,
    /// The records of the newest head, as far as this process knows.
    signed: u64,
    /// Where the last attempt began.
    tried: u64,
    /// Why the last attempt failed.
    fault: Option<StoreError>,
    /// Where the operator keeps a copy of the heads.
    copy: Option<PathBuf>,
    /// Whether many records are reason enough to sign sooner.
    is_hurried: bool,
    stop: bool,
}

/// How far heads cover the log.
#[derive(Clone, Debug)]
pub struct SigningStatus {
    /// Records that the newest head covers, as far as this process knows.
    pub signed: u64,
    /// Records on the disk that no head covers yet.
    pub unsigned: u64,
    /// Why no head could be signed, if that is so.
    pub fault: Option<StoreError>,
}

impl Signer {
    /// A signer for a home without links in its path.
    pub(crate) fn new(home: &Path) -> Signer {
        Signer {
            home: home.to_owned(),
            memory: HeadMemory::new(home),
            state: Mutex::default(),
            wake: Condvar::new(),
        }
    }

    /// What the database remembers of the newest head.
    pub(crate) fn memory(&self) -> &HeadMemory {
        &self.memory
    }

    /// Notes the last indexed record.
    pub(crate) fn note_indexed(&self, head: Head) {
        let mut state = self.lock();
        state.reached = state.reached.max(head.sequence);
        drop(state);
        self.wake.notify_one();
    }

    /// From now on, heads are also added to a file elsewhere.
    pub(crate) fn set_copy(&self, copy: Option<PathBuf>) {
        self.lock().copy = copy;
    }

    /// From now on, many records are reason enough to sign sooner.
    pub(crate) fn set_hurried(&self, is_hurried: bool) {
        self.lock().is_hurried = is_hurried;
        self.wake.notify_one();
    }

    /// Where the operator keeps a copy of the heads.
    pub(crate) fn copy(&self) -> Option<PathBuf> {
        self.lock().copy.clone()
    }

    pub(crate) fn status(&self) -> SigningStatus {
        let state = self.lock();
        SigningStatus {
            signed: state.signed,
            unsigned: state.reached.saturating_sub(state.signed),
            fault: state.fault.clone(),
        }
    }

    /// Ends the thread, after what is left was signed.
    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.wake.notify_one();
    }

    /// Body of the signing thread.
    pub(crate) fn run(&self) {
        let mut last: Option<Instant> = None;
        while self.wait(last) {
            last = Some(Instant::now());
            // A fault is kept for those who ask; calls go on.
            let _ = self.sign();
        }
    }

    /// Waits until there is something to sign and it is time. Returns whether there is.
    fn wait(&self, last: Option<Instant>) -> bool {
        let mut state = self.lock();
        loop {
            let has_more = state.reached > state.tried;
            let waiting = state.reached.saturating_sub(state.tried);
            let pace = match state.is_hurried && waiting >= limit::SIGN_RECORDS_MAX {
                true => HURRIED_PACE,
                false => PACE,
            };
            let left = last.map_or(Duration::ZERO, |last| pace.saturating_sub(last.elapsed()));
            // After a fault, the end of the process is no reason to try again.
            let is_due = left.is_zero() || (state.stop && state.fault.is_none());
            if has_more && is_due {
                return true;
            }
            if state.stop {
                return false;
            }
            state = match has_more {
                true => {
                    let waited = self.wake.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                false => {
                    let waited = self.wake.wait(state);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }

    /// Signs a head over all indexed records, unless there is one. Returns how many
    /// records it covers.
    pub(crate) fn sign(&self) -> Result<u64, StoreError> {
        {
            // What could not be signed is tried again when more is written.
            let mut state = self.lock();
            // Before the attempt: records that are indexed while it runs are
            // reason for the next one.
            state.tried = state.reached;
        }
        let signed = self.try_sign();
        let mut state = self.lock();
        match &signed {
            Ok(size) => {
                state.signed = *size;
                state.reached = state.reached.max(*size);
                state.tried = state.tried.max(*size);
                state.fault = None;
            }
            Err(fault) => state.fault = Some(fault.clone()),
        }
        signed
    }

    fn try_sign(&self) -> Result<u64, StoreError> {
        let folder = audit_folder(&self.home);
        // Held from here to the end: no other process may sign between our
        // look and our head.
        let mut heads = HeadFile::lock(&folder)?;
        let newest = heads.last()?;
        let remembered = self.memory.get()?;
        let key = match HomeKey::find(&self.home)? {
            Some(key) => key,
            // Only a home that never signed gets a new key without being asked.
            None if newest.is_none() && remembered.is_none() => HomeKey::make(&self.home)?,
            None => return Err(unsigned("the key `audit.key` is missing".to_owned())),
        };
        if let Some(remembered) = &remembered {
            // Attack: with a new key an edited log could be signed again as if
            // it were the first.
            if remembered.key != key.public().to_string() {
                return Err(unsigned(
                    "`audit.key` is another key than before".to_owned(),
                ));
            }
            let is_newest = newest.as_ref().is_some_and(|head| remembered.is(head));
            // A process may have died between the history and the database, so the
            // remembered head need not be the newest.
            if !is_newest && !has(&heads, |head| remembered.is(head))? {
                let size = remembered.size;
                return Err(unsigned(format!(
                    "the head over {size} records is missing from `audit/heads`"
                )));
            }
        }
        let connection = index::connect_to_read(&self.home)?;
        let reach = index::reach(&connection)?.head;
        let mut tree = TreeHashes::open(&folder)?;
        let is_first = newest.is_none() && remembered.is_none();
        let fork = match follow(&folder, &mut tree, reach, newest.as_ref(), is_first)? {
            Begin::Extends => None,
            Begin::Forks => Some(self.fork(&heads, &tree, reach)?),
        };
        if fork.is_none()
            && let Some(newest) = &newest
            // All records are covered, so a second head over the same size would say
            // nothing new.
            && newest.size == reach.sequence
        {
            // An earlier attempt may have failed at the copy alone.
            if let (Some(copy), Some(note)) = (self.copy(), heads.last_note()?) {
                head_file::complete_copy(&copy, &note)?;
            }
            return Ok(newest.size);
        }
        let head = TreeHead {
            origin: key.public().name().to_owned(),
            size: reach.sequence,
            root: root(&tree, reach.sequence)?,
            fork,
        };
        // The leaves before the head: a head over a tree that the disk has not is one that
        // nothing can prove.
        tree.sync()?;
        let note = key.sign(head.to_string());
        heads.append(&note)?;
        // After the history, for the same reason as in `HeadFile::append`.
        self.memory.set(&head, &key.public().to_string())?;
        if let Some(copy) = self.copy() {
            head_file::append_copy(&copy, &note)?;
        }
        Ok(head.size)
    }

    /// Brings the tree up to the last indexed record, so that a removal loses no leaf.
    /// Returns how many records it covers.
    pub(crate) fn cover(&self) -> Result<u64, StoreError> {
        let folder = audit_folder(&self.home);
        // The lock also keeps other processes from writing to the tree.
        let heads = HeadFile::lock(&folder)?;
        let newest = heads.last()?;
        let connection = index::connect_to_read(&self.home)?;
        let reach = index::reach(&connection)?.head;
        let mut tree = TreeHashes::open(&folder)?;
        let is_first = newest.is_none() && self.memory.get()?.is_none();
        follow(&folder, &mut tree, reach, newest.as_ref(), is_first)?;
        tree.sync()?;
        Ok(tree.size())
    }

    /// From which size on earlier heads count no more: the newest that still fits. Only
    /// if the owner acknowledged that records are missing.
    fn fork(&self, heads: &HeadFile, tree: &TreeHashes, reach: Head) -> Result<u64, StoreError> {
        let mut fork = 0;
        let mut lost = 0;
        for note in heads.all()? {
            let Ok(head) = note.head() else {
                continue;
            };
            let fits = head.size <= tree.size() && root(tree, head.size)? == head.root;
            match fits {
                true => fork = fork.max(head.size),
                false => lost = lost.max(head.size),
            }
        }
        let connection = index::connect_to_read(&self.home)?;
        let cuts = acknowledged_cuts(&connection)?;
        // An acknowledged cut excuses only what lies behind the fork, and only once the
        // notice about it is itself covered.
        let is_known = |cut: &u64| (fork + 1..=reach.sequence).contains(cut);
        match cuts.iter().any(is_known) {
            true => Ok(fork),
            false => Err(unsigned(format!(
                "records from {} on are not those that a head over {lost} records was signed for",
                fork + 1
            ))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// The public key of a home: of its file, or the one the database remembers.
pub(crate) fn public_key(home: &Path, memory: &HeadMemory) -> Result<Option<NoteKey>, StoreError> {
    let remembered = memory.get()?;
    // The database before the file: a replaced `audit.key` must not verify
    // its own signatures.
    if let Some(remembered) = remembered {
        let key = remembered.key.parse();
        let wrong = |_| unsigned("the database remembers no sound key".to_owned());
        return key.map(Some).map_err(wrong);
    }
    let key = HomeKey::find(home)?;
    Ok(key.map(|key| key.public().clone()))
}

/// How the log stands to the newest head.
enum Begin {
    /// It begins with what was signed.
    Extends,
    /// It does not.
    Forks,
}

/// Makes the tree cover the log up to a record. `is_first` if nothing was ever signed.
fn follow(
    folder: &Path,
    tree: &mut TreeHashes,
    reach: Head,
    newest: Option<&TreeHead>,
    is_first: bool,
) -> Result<Begin, StoreError> {
    let snapshot = LogSnapshot::take(folder)?;
    let is_rebuilt = !extend(&snapshot, tree, reach)?;
    if is_rebuilt {
        rebuild(&snapshot, tree, reach, is_first)?;
    }
    if fits(tree, newest)? {
        return Ok(Begin::Extends);
    }
    // Perhaps only the tree is damaged.
    if !is_rebuilt {
        rebuild(&snapshot, tree, reach, is_first)?;
    }
    Ok(match fits(tree, newest)? {
        true => Begin::Extends,
        false => Begin::Forks,
    })
}

fn fits(tree: &TreeHashes, newest: Option<&TreeHead>) -> Result<bool, StoreError> {
    match newest {
        None => Ok(true),
        Some(head) if head.size > tree.size() => Ok(false),
        Some(head) => Ok(root(tree, head.size)? == head.root),
    }
}

/// Adds the records after the last leaf. Returns whether the log continues the tree; if
/// not, nothing was added that does not belong to the log.
fn extend(snapshot: &LogSnapshot, tree: &mut TreeHashes, reach: Head) -> Result<bool, StoreError> {
    let size = tree.size();
    // More leaves than records: the log was cut, or the tree is of another log.
    if size > reach.sequence {
        return Ok(false);
    }
    if size == reach.sequence {
        return match size.checked_sub(1) {
            None => Ok(true),
            Some(last) => Ok(tree.leaf(last)? == TreeHash::record(&reach.hash)),
        };
    }
    let before = match size.checked_sub(1) {
        None => TreeHash::record(&ChainHash::ZERO),
        Some(last) => tree.leaf(last)?,
    };
    add(snapshot, tree, before, reach)
}

/// Adds records up to `reach`, the first of which must follow the record of the leaf
/// `before`. Every record is checked: what was changed must not be signed.
fn add(
    snapshot: &LogSnapshot,
    tree: &mut TreeHashes,
    before: TreeHash,
    reach: Head,
) -> Result<bool, StoreError> {
    let mut leaves = Vec::new();
    let mut next = tree.size() + 1;
    let mut previous: Option<ChainHash> = None;
    for placed in snapshot.after(tree.size())? {
        if next > reach.sequence {
            break;
        }
        let (position, Some(line)) = placed? else {
            return Err(unsigned(format!(
                "the line of record {next} cannot be read"
            )));
        };
        let record = line.record;
        if record.sequence != next {
            // At the first record this only means that the log does not continue the tree.
            // Later it is a gap in the log itself.
            return match previous {
                None => Ok(false),
                Some(_) => Err(unsigned(format!("record {next} is missing at {position}"))),
            };
        }
        match previous {
            None if TreeHash::record(&record.previous) != before => return Ok(false),
            Some(previous) if previous != record.previous => {
                return Err(unsigned(format!(
                    "record {next} does not follow the one before it"
                )));
            }
            None | Some(_) => {}
        }
        if link(&record.previous, &record.body) != record.hash {
            return Err(unsigned(format!(
                "the hash of record {next} does not fit its body"
            )));
        }
        leaves.push(TreeHash::record(&record.hash));
        previous = Some(record.hash);
        next += 1;
        if leaves.len() >= limit::LEAVES_PIECE_MAX {
            tree.append(&leaves)?;
            leaves.clear();
        }
    }
    tree.append(&leaves)?;
    match tree.size() == reach.sequence {
        true => Ok(true),
        false => Err(unsigned(format!("record {next} is missing"))),
    }
}

/// Makes the tree again from the log. The leaves of removed records are only in the
/// tree, so they stay.
fn rebuild(
    snapshot: &LogSnapshot,
    tree: &mut TreeHashes,
    reach: Head,
    is_first: bool,
) -> Result<(), StoreError> {
    let checkpoint = snapshot.newest_checkpoint()?;
    let checkpoint = checkpoint.as_ref().and_then(believable);
    let through = checkpoint.as_ref().map_or(Head::START, |it| it.through);
    // Leaves behind the checkpoint are made again from the log; those before it cannot be.
    tree.truncate(through.sequence)?;
    if tree.size() < through.sequence {
        // Removed before there was a tree: their hashes are not known any more.
        if !is_first {
            return Err(unsigned(
                "the hashes of removed records are missing".to_owned(),
            ));
        }
        fill(tree, through)?;
    }
    check_removed(tree, checkpoint.as_ref())?;
    let before = TreeHash::record(&through.hash);
    match add(snapshot, tree, before, reach)? {
        true => Ok(()),
        false => Err(unsigned(format!(
            "record {} does not follow the one before it",
            through.sequence + 1
        ))),
    }
}

/// Leaves for records that were removed before the first head. Only the last of them is
/// known.
fn fill(tree: &mut TreeHashes, through: Head) -> Result<(), StoreError> {
    let unknown = TreeHash::record(&ChainHash::ZERO);
    while tree.size() + 1 < through.sequence {
        let left = through.sequence - 1 - tree.size();
        let piece = usize::try_from(left).unwrap_or(usize::MAX);
        tree.append(&vec![unknown; piece.min(limit::LEAVES_PIECE_MAX)])?;
    }
    tree.append(&[TreeHash::record(&through.hash)])
}

/// Holds the leaves of removed records against what the checkpoint sealed.
fn check_removed(tree: &TreeHashes, checkpoint: Option<&Checkpoint>) -> Result<(), StoreError> {
    let Some(checkpoint) = checkpoint else {
        return Ok(());
    };
    let through = checkpoint.through;
    let is_sound = match (through.sequence.checked_sub(1), checkpoint.root) {
        (None, _) => true,
        // The sealed hash covers every leaf. An older checkpoint has none, and then only
        // the last leaf can be compared.
        (Some(_), Some(sealed)) => root(tree, through.sequence)? == sealed,
        (Some(last), None) => tree.leaf(last)? == TreeHash::record(&through.hash),
    };
    match is_sound {
        true => Ok(()),
        false => Err(unsigned(
            "the hashes of removed records were changed".to_owned(),
        )),
    }
}

/// Whether the history has a head.
fn has(heads: &HeadFile, is_it: impl Fn(&TreeHead) -> bool) -> Result<bool, StoreError> {
    let notes = heads.all()?;
    Ok(notes
        .iter()
        .any(|note| note.head().is_ok_and(|head| is_it(&head))))
}

/// The places of notices about a cut that the owner acknowledged.
fn acknowledged_cuts(connection: &rusqlite::Connection) -> Result<Vec<u64>, StoreError> {
    let fail = StoreError::database("read the notices");
    let sql = "SELECT cut.sequence FROM notices cut
               JOIN notices known ON known.about = cut.id
               WHERE cut.act = 'audit.cut' AND known.act = 'audit.cut_acknowledged'";
    let mut statement = connection.prepare(sql).map_err(&fail)?;
    let rows = statement.query_map([], |row| row.get(0)).map_err(&fail)?;
    let rows = rows.map(|row| row.map(from_integer));
    rows.collect::<Result<_, _>>().map_err(&fail)
}

pub(crate) fn unsigned(what: String) -> StoreError {
    StoreError::Unsigned { what }
}
