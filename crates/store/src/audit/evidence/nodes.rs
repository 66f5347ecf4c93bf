//! Verifying the logs of several nodes together, from their homes or their exports, with
//! nothing but public keys: every chain, every head, every anchor against the log it
//! names.
//!
//! Homes are only read: no index, no lock, no database. The anchors of all logs are read
//! before any log is walked, so that a log that goes on meanwhile cannot look shorter
//! than an anchor says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use model::record::audit::anchor;
use model::record::audit::chain::{Body, Ending, Record, RecordKind};
use model::record::audit::heads::HeadCheck;
use model::record::audit::nodes::{
    AnchoredHead, NodeFault, NodeLog, NodesFound, compare, sizes_that_matter,
};
use model::record::audit::proof::{ExportedLine, ExportedLog};
use model::record::audit::seal::ExportSeal;
use model::record::audit::walk::{Broken, Verified, Walk};
use model::record::note::{NoteKey, SignedNote};
use model::record::tree::{Frontier, TreeHash, root};

use crate::audit::evidence::head_file;
use crate::audit::evidence::key::{HomeKey, is_sound};
use crate::audit::evidence::offline::{self, Expectation};
use crate::audit::evidence::tree_file::{TreeHashes, removed};
use crate::audit::log::snapshot::{LogSnapshot, believable};
use crate::error::StoreError;
use crate::home::audit_folder;
use crate::limit;

/// One node to verify.
#[derive(Clone, Debug)]
pub struct NodePath {
    /// Its home, or its export with proofs.
    pub path: PathBuf,
    /// The public key of its log. For a home, its own by default.
    pub key: Option<NoteKey>,
}

/// What was found about one node.
#[derive(Clone, Debug)]
pub struct VerifiedNode {
    /// Where it was read from.
    pub path: PathBuf,
    /// The name of its log.
    pub name: String,
    /// What its own log shows.
    pub verified: Verified,
}

/// What was found about all of them.
#[derive(Clone, Debug)]
pub struct VerifiedNodes {
    /// Each node, in the order they were given.
    pub nodes: Vec<VerifiedNode>,
    /// What the logs show about each other.
    pub found: NodesFound,
}

impl VerifiedNodes {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let broken = self.nodes.iter().any(|node| node.verified.broken.is_some());
        !broken && self.found.faults.is_empty()
    }
}

/// Verifies the logs of several nodes. `checkpoints` are heads of any of them that were kept
/// elsewhere.
pub fn verify_nodes(
    paths: &[NodePath],
    checkpoints: &[SignedNote],
) -> Result<VerifiedNodes, StoreError> {
    let mut evidence = Vec::new();
    for path in paths {
        evidence.push(Evidence::read(path)?);
    }
    let mut faults = Vec::new();
    for note in checkpoints {
        faults.extend(give(note, &mut evidence)?);
    }
    // All keys first: an anchor in one log is checked with the key of another.
    let keys: Vec<NoteKey> = evidence.iter().map(|it| it.key.clone()).collect();
    let mut logs: Vec<NodeLog> = Vec::new();
    for evidence in &evidence {
        logs.push(evidence.log(&keys, &mut faults));
    }
    let sizes = sizes_that_matter(&logs);
    let mut nodes = Vec::new();
    for (evidence, log) in evidence.iter().zip(&mut logs) {
        let verified = evidence.walk(log, &sizes)?;
        nodes.push(VerifiedNode {
            path: evidence.path.clone(),
            name: log.name.clone(),
            verified,
        });
        faults.extend(evidence.foreign(&keys));
    }
    let mut found = compare(&logs);
    faults.append(&mut found.faults);
    found.faults = faults;
    Ok(VerifiedNodes { nodes, found })
}

/// Gives a head to the log it names. One that no log is held against is a fault.
fn give(note: &SignedNote, evidence: &mut [Evidence]) -> Result<Option<NodeFault>, StoreError> {
    let head = note.head().map_err(|_| StoreError::Unchecked {
        what: "a given checkpoint is not a signed head".to_owned(),
    })?;
    let mut is_given = false;
    for evidence in evidence
        .iter_mut()
        .filter(|it| it.key.name() == head.origin)
    {
        evidence.given.push(note.clone());
        is_given = true;
    }
    let what = format!(
        "the given checkpoint covers {} records of it, but its log is not among those that are \
         verified",
        head.size
    );
    Ok((!is_given).then(|| fault(&head.origin, 1, what)))
}

/// What stands beside the records of one log, and the anchors among them.
struct Evidence {
    path: PathBuf,
    key: NoteKey,
    files: Files,
    heads: Vec<String>,
    /// Heads of this log that a person kept elsewhere.
    given: Vec<SignedNote>,
    /// Anchors with the record each stands in.
    anchors: Vec<(u64, anchor::Anchor)>,
    /// The newest checkpoint of an export. That of a home is read with its records.
    checkpoint: Option<Record>,
    /// What is wrong beside the records; without a place, it stands behind the last one.
    fault: Option<(Option<u64>, String)>,
}

/// Where records are read from.
enum Files {
    Home(PathBuf),
    Export(Box<ExportedLog>),
}

impl Evidence {
    fn read(node: &NodePath) -> Result<Evidence, StoreError> {
        match node.path.is_dir() {
            true => Evidence::of_home(node),
            false => Evidence::of_export(node),
        }
    }

    fn of_home(node: &NodePath) -> Result<Evidence, StoreError> {
        let folder = audit_folder(&node.path);
        let key = match &node.key {
            Some(key) => key.clone(),
            None => match HomeKey::find(&node.path)? {
                Some(key) => key.public().clone(),
                None => return Err(no_key(&node.path)),
            },
        };
        let (heads, fault) = match head_file::read(&folder) {
            Ok(heads) => (heads, None),
            // Heads that cannot be read are a finding about this node. The other nodes are
            // still verified.
            Err(StoreError::Unsigned { what }) => (Vec::new(), Some((Some(1), what))),
            Err(error) => return Err(error),
        };
        let mut evidence = Evidence {
            path: node.path.clone(),
            key,
            files: Files::Home(folder),
            heads: heads.iter().map(ToString::to_string).collect(),
            given: Vec::new(),
            anchors: Vec::new(),
            checkpoint: None,
            fault,
        };
        let mut anchors = Vec::new();
        evidence.records()?.each(&mut |record| {
            anchors.extend(record.ok().and_then(|record| anchor_of(&record)));
            true
        })?;
        evidence.anchors = bounded(anchors, &node.path)?;
        Ok(evidence)
    }

    fn of_export(node: &NodePath) -> Result<Evidence, StoreError> {
        // An export names its own key, but a forged one names the key of its forger.
        let key = node.key.clone().ok_or_else(|| no_key(&node.path))?;
        let (mut log, mut heads, mut anchors) = (None, Vec::new(), Vec::new());
        let (mut checkpoint, mut end) = (None, None);
        let mut seal = ExportSeal::default();
        for line in offline::lines(&node.path)? {
            // What cannot be read is found again, in its place, when the records are walked.
            let Ok(line) = line? else {
                continue;
            };
            seal.add(&line);
            match line {
                ExportedLine::Log(it) => log = Some(it),
                ExportedLine::Head(note) => heads.push(note),
                ExportedLine::End(note) => end = Some(note),
                ExportedLine::Record(record, _) => {
                    anchors.extend(anchor_of(&record));
                    if record.kind == RecordKind::Checkpoint {
                        checkpoint = Some(record);
                    }
                }
            }
        }
        // Some records prove nothing about missing ones, so only a whole
        // export is compared.
        let log = log.filter(|log| log.whole).ok_or_else(|| {
            let what = format!(
                "`{}` is not a whole export with proofs; make one with `ringfence audit export \
                 --format proofs`",
                node.path.display()
            );
            StoreError::Unchecked { what }
        })?;
        let fault = seal.check(end.as_deref(), &key, &is_sound).err();
        let fault = fault.map(|fault| fault.to_string());
        let fault = fault.or_else(|| offline::other_key(&log, &key));
        Ok(Evidence {
            path: node.path.clone(),
            key,
            files: Files::Export(log),
            heads,
            given: Vec::new(),
            anchors: bounded(anchors, &node.path)?,
            checkpoint,
            fault: fault.map(|fault| (None, fault)),
        })
    }

    /// What is known before the records are walked. Anchored heads with a wrong signature
    /// are faults of the log they stand in.
    fn log(&self, keys: &[NoteKey], faults: &mut Vec<NodeFault>) -> NodeLog {
        let name = self.key.name().to_owned();
        let (heads, _) = offline::heads(&self.heads, &Expectation::default(), &self.key);
        let mut anchors = Vec::new();
        for (record, anchor) in &self.anchors {
            let readable = anchor::heads(anchor).count();
            if readable != anchor.heads.len() {
                let what = "it anchors something that is not a head".to_owned();
                faults.push(fault(&name, *record, what));
            }
            for (head, note) in anchor::heads(anchor) {
                let key = keys.iter().find(|key| key.name() == head.origin);
                // A log that is not given cannot be checked; its anchors stay
                // without a verdict.
                if key.is_some_and(|key| !key.has_signed(&note, &is_sound)) {
                    let what = format!(
                        "it anchors a head of `{}` over {} records that was not signed by it",
                        head.origin, head.size
                    );
                    faults.push(fault(&name, *record, what));
                    continue;
                }
                let record = *record;
                anchors.push(AnchoredHead { record, head });
            }
        }
        NodeLog {
            name,
            end: None,
            removed: 0,
            roots: BTreeMap::new(),
            heads: heads.into_iter().map(|(head, _)| head).collect(),
            anchors,
        }
    }

    /// Heads of another given log in the place of this one's.
    fn foreign(&self, keys: &[NoteKey]) -> Option<NodeFault> {
        let note: SignedNote = self.heads.last()?.parse().ok()?;
        let mut others = keys.iter().filter(|key| key.name() != self.key.name());
        let other = others.find(|other| other.has_signed(&note, &is_sound))?;
        let what = format!(
            "its heads are signed by `{}`: the files were swapped",
            other.name()
        );
        Some(fault(self.key.name(), 1, what))
    }

    /// Walks the records: the chain, and the heads that were signed over it. Notes the
    /// hashes at the sizes that matter to others.
    fn walk(&self, log: &mut NodeLog, sizes: &BTreeSet<u64>) -> Result<Verified, StoreError> {
        let expected = Expectation {
            checkpoints: self.given.clone(),
            ..Expectation::default()
        };
        let (heads, wrong) = offline::heads(&self.heads, &expected, &self.key);
        let count = u64::try_from(heads.len()).unwrap_or(u64::MAX);
        let records = self.records()?;
        let checkpoint = records.checkpoint(self)?;
        let mut walk = Walk::new(checkpoint.as_ref(), None, None);
        let through = walk.head().sequence;
        let gap = self.gap(through, checkpoint.as_ref())?;
        log.removed = through;
        for size in sizes.iter().filter(|size| **size <= through) {
            log.roots.extend(gap.root(*size)?.map(|root| (*size, root)));
        }
        // Within the removed records only a home with its tree can tell the hash of a size.
        let wrong = wrong.or_else(|| offline::incomparable(&heads, through, |it| gap.knows(it)));
        let heads: Vec<_> = heads
            .into_iter()
            .filter(|(head, _)| gap.knows(head.size))
            .collect();
        let root_of = |size| gap.root(size).map(|it| it.unwrap_or_else(TreeHash::empty));
        let mut check = HeadCheck::new(heads, gap.start.clone(), root_of)?;
        let mut last = through;
        records.each(&mut |record| {
            let record = match record {
                Ok(record) => record,
                Err(what) => {
                    walk.fault(last + 1, None, what);
                    return false;
                }
            };
            last = record.sequence;
            let Ok(body) = walk.step(&record) else {
                return false;
            };
            // Kept openings come first and are older than the removed prefix ends: their
            // leaves are in the frontier already.
            if record.sequence > through {
                check.step(&record, &body);
                let size = check.tree().size();
                if sizes.contains(&size) {
                    log.roots.insert(size, check.tree().root());
                }
            }
            true
        })?;
        let signed = check.signed();
        walk.note_heads(count, signed);
        let mut verified = walk.finish();
        // A broken chain explains everything after it, so the first fault is
        // the one that is told.
        if verified.broken.is_none() {
            log.end = Some(verified.head.sequence);
            let next = verified.head.sequence.saturating_add(1);
            let beside = self.fault.clone();
            let beside = beside.map(|(sequence, what)| (sequence.unwrap_or(next), what));
            let fault = gap.fault.or(wrong).or(beside);
            let fault = fault.or_else(|| check.finish().map(|fault| (fault.sequence, fault.what)));
            let fault = fault.or_else(|| uncovered(verified.records, signed));
            verified.broken = fault.map(|(sequence, what)| Broken {
                sequence,
                call_id: None,
                what,
            });
        }
        Ok(verified)
    }

    /// The tree over the records that were removed.
    fn gap(&self, through: u64, checkpoint: Option<&Record>) -> Result<Gap, StoreError> {
        let (tree, start) = match &self.files {
            Files::Home(folder) => {
                let tree = TreeHashes::find(folder)?;
                let start = removed(tree.as_ref(), through)?;
                (tree, start)
            }
            Files::Export(log) => {
                let start = (log.removed.size() == through).then(|| log.removed.clone());
                (None, start)
            }
        };
        let sealed = checkpoint.and_then(|record| match record.read::<Ending>() {
            Ok(Body::Checkpoint(checkpoint)) => checkpoint.root,
            Ok(_) | Err(_) => None,
        });
        let fault = match (&start, sealed) {
            (None, _) => Some("the hashes of removed records are missing"),
            (Some(start), Some(sealed)) if sealed != start.root() => {
                Some("the hashes of removed records were changed")
            }
            (Some(_), _) => None,
        };
        Ok(Gap {
            through,
            tree,
            start: start.unwrap_or_default(),
            fault: fault.map(|what| (1, what.to_owned())),
        })
    }

    /// The records at one moment.
    fn records(&self) -> Result<LogRecords<'_>, StoreError> {
        match &self.files {
            Files::Home(folder) => LogSnapshot::take(folder).map(LogRecords::Home),
            Files::Export(_) => Ok(LogRecords::Export(&self.path)),
        }
    }
}

/// The records of a log at one moment.
enum LogRecords<'a> {
    Home(LogSnapshot),
    Export(&'a Path),
}

impl LogRecords<'_> {
    /// The newest checkpoint.
    fn checkpoint(&self, evidence: &Evidence) -> Result<Option<Record>, StoreError> {
        match self {
            LogRecords::Home(snapshot) => {
                let line = snapshot.newest_checkpoint()?;
                let line = line.filter(|line| believable(line).is_some());
                Ok(line.map(|line| line.record))
            }
            LogRecords::Export(_) => Ok(evidence.checkpoint.clone()),
        }
    }

    /// Hands over every record, oldest first, until `each` says no. A line that cannot be
    /// read is a sentence.
    fn each(&self, each: &mut dyn FnMut(Result<Record, String>) -> bool) -> Result<(), StoreError> {
        match self {
            LogRecords::Home(snapshot) => {
                let kept = snapshot.kept().iter().cloned();
                let kept = kept.map(|line| Ok((0, Some(line))));
                for placed in kept.chain(snapshot.lines(0)) {
                    let (position, line) = placed?;
                    let record = line.map(|line| line.record);
                    let record =
                        record.ok_or_else(|| format!("its line at {position} cannot be read"));
                    if !each(record) {
                        break;
                    }
                }
            }
            LogRecords::Export(path) => {
                for line in offline::lines(path)? {
                    let record = match line? {
                        Ok(ExportedLine::Record(record, hashes)) if hashes.is_empty() => Ok(record),
                        Ok(ExportedLine::Record(..)) => Err(offline::STRAY_HASHES.to_owned()),
                        Ok(ExportedLine::Log(_) | ExportedLine::Head(_) | ExportedLine::End(_)) => {
                            continue;
                        }
                        Err(what) => Err(what),
                    };
                    if !each(record) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Anchors, unless there are more than are held in memory.
fn bounded(
    anchors: Vec<(u64, anchor::Anchor)>,
    path: &Path,
) -> Result<Vec<(u64, anchor::Anchor)>, StoreError> {
    match anchors.len() <= limit::ANCHORS_MAX {
        true => Ok(anchors),
        false => Err(StoreError::Unchecked {
            what: format!(
                "`{}` has more than {} anchors, too many to compare at one time",
                path.display(),
                limit::ANCHORS_MAX
            ),
        }),
    }
}

/// What is known of removed records.
struct Gap {
    through: u64,
    tree: Option<TreeHashes>,
    start: Frontier,
    fault: Option<(u64, String)>,
}

impl Gap {
    /// The hash over so many removed records; an export has that of all of them alone.
    fn root(&self, size: u64) -> Result<Option<TreeHash>, StoreError> {
        match &self.tree {
            _ if size == self.start.size() => Ok(Some(self.start.root())),
            Some(tree) if size <= tree.size() => root(tree, size).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    /// Whether a head can be compared.
    fn knows(&self, size: u64) -> bool {
        size >= self.through || self.tree.is_some()
    }
}

/// Attack: a log is rewritten and its heads are taken away, so that nothing contradicts it.
/// That takes no key, only write access to the place it is read from.
fn uncovered(records: u64, signed: u64) -> Option<(u64, String)> {
    let what = format!(
        "no signed head covers any of its {records} records: its heads were taken away, or it \
         has none yet; a server signs and publishes one within {} seconds",
        limit::SIGN_MS_MAX / 1_000
    );
    (records > 0 && signed == 0).then_some((1, what))
}

fn anchor_of(record: &Record) -> Option<(u64, anchor::Anchor)> {
    if record.kind != RecordKind::Anchor {
        return None;
    }
    match record.read::<Ending>() {
        Ok(Body::Anchor(anchor)) => Some((record.sequence, anchor)),
        Ok(_) | Err(_) => None,
    }
}

fn fault(node: &str, sequence: u64, what: String) -> NodeFault {
    NodeFault {
        node: node.to_owned(),
        sequence,
        what,
    }
}

fn no_key(path: &Path) -> StoreError {
    StoreError::Unchecked {
        what: format!("name the public key of `{}` with `--key`", path.display()),
    }
}
