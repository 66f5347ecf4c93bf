//! Verifying a log that was exported, on a machine that has nothing but the file and a
//! public key.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use model::record::audit::chain::{Head, Record, RecordKind};
use model::record::audit::heads::{HeadCheck, HeadSource};
use model::record::audit::proof::{ExportedLine, ExportedLog, check_record, signed_head};
use model::record::audit::seal::ExportSeal;
use model::record::audit::walk::{Broken, Verified, Walk};
use model::record::note::{NoteKey, SignedNote, TreeHead};

use crate::audit::evidence::key::is_sound;
use crate::error::StoreError;
use crate::limit;

/// What a verification holds the log against.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    /// A record that must be part of the chain.
    pub head: Option<Head>,
    /// The key that must have signed all heads; by default the one of the home.
    pub key: Option<NoteKey>,
    /// Heads that a person kept elsewhere.
    pub checkpoints: Vec<SignedNote>,
}

/// What verifying an export found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedExport {
    /// What its records show.
    pub verified: Verified,
    /// Which records it has.
    pub scope: ExportScope,
    /// When it was made, in milliseconds since 1970, if its seal fits.
    pub sealed_ms: Option<i64>,
}

/// Which records of a log an export has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportScope {
    /// All of them.
    Whole,
    /// Those that a filter selected. Nothing shows whether others are missing.
    Filtered {
        /// The records of the log, as its signed head says.
        of: u64,
    },
}

/// Verifies an export: every record, every head, and what was expected.
pub fn verify_export(path: &Path, expected: &Expectation) -> Result<VerifiedExport, StoreError> {
    let mut first = FirstPass::default();
    let mut last = 0;
    for line in lines(path)? {
        let line = match line? {
            Ok(line) => line,
            Err(what) => {
                let mut walk = Walk::new(None, None, None);
                // The place in the chain is that of the record which should stand there.
                walk.fault(last + 1, None, what);
                let scope = first.scope();
                return Ok(unsealed(walk.finish(), scope));
            }
        };
        if let ExportedLine::Record(record, _) = &line {
            last = record.sequence;
        }
        first.seal.add(&line);
        match line {
            ExportedLine::Log(log) => first.log = Some(*log),
            ExportedLine::End(note) => first.end = Some(note),
            ExportedLine::Head(note) => first.heads.push(note),
            ExportedLine::Record(record, _) if record.kind == RecordKind::Checkpoint => {
                first.checkpoint = Some(record);
            }
            ExportedLine::Record(..) => {}
        }
    }
    match first.scope() {
        ExportScope::Whole => verify_whole(path, &first, expected),
        ExportScope::Filtered { .. } => verify_some(path, &first, expected),
    }
}

/// What was found before the seal was looked at.
fn unsealed(verified: Verified, scope: ExportScope) -> VerifiedExport {
    VerifiedExport {
        verified,
        scope,
        sealed_ms: None,
    }
}

/// What is read before the records are walked.
#[derive(Default)]
struct FirstPass {
    log: Option<ExportedLog>,
    heads: Vec<String>,
    checkpoint: Option<Record>,
    seal: ExportSeal,
    end: Option<String>,
}

impl FirstPass {
    /// Which records the export says it has. Its own word is enough: a filtered one that
    /// calls itself whole lacks records, and a whole one that calls itself filtered lacks
    /// proofs.
    fn scope(&self) -> ExportScope {
        match self.log.as_ref().is_none_or(|log| log.whole) {
            true => ExportScope::Whole,
            false => ExportScope::Filtered { of: 0 },
        }
    }

    /// When the export was made, or what is wrong with its header or its end. One without
    /// heads has neither.
    fn seal(&self, key: Option<&NoteKey>) -> Result<Option<i64>, String> {
        let Some(key) = key else {
            return Ok(None);
        };
        let Some(log) = &self.log else {
            // Attack: without its header, an export with proofs would pass as one that has
            // no seal, and its end could be cut off.
            return match self.has_evidence() {
                true => Err("the export has signed heads and no header".to_owned()),
                false => Ok(None),
            };
        };
        let end = self.end.as_deref();
        let sealed_ms = self.seal.check(end, key, &is_sound);
        let sealed_ms = sealed_ms.map_err(|fault| fault.to_string())?;
        match other_key(log, key) {
            Some(fault) => Err(fault),
            None => Ok(Some(sealed_ms)),
        }
    }

    /// Whether something is there that only an export with proofs has.
    fn has_evidence(&self) -> bool {
        !self.heads.is_empty() || self.end.is_some()
    }

    /// The key that must have signed. An export's own word for it is not enough.
    fn key<'a>(&self, expected: &'a Expectation) -> Result<Option<&'a NoteKey>, StoreError> {
        let is_signed = self.log.is_some() || self.has_evidence();
        match (&expected.key, is_signed, expected.checkpoints.is_empty()) {
            (Some(key), _, _) => Ok(Some(key)),
            (None, false, true) => Ok(None),
            (None, _, _) => Err(StoreError::Unchecked {
                what: "the export has signed heads; name the public key with `--key`".to_owned(),
            }),
        }
    }
}

fn verify_whole(
    path: &Path,
    first: &FirstPass,
    expected: &Expectation,
) -> Result<VerifiedExport, StoreError> {
    let key = first.key(expected)?;
    let checked = key.map(|key| heads(&first.heads, expected, key));
    let (heads, fault) = checked.unwrap_or_default();
    let count = heads.len();
    let start = first.log.as_ref().map(|log| log.removed.clone());
    let start = start.unwrap_or_default();
    let gap = start.size();
    let is_known = |size| size >= gap;
    let fault = fault.or_else(|| incomparable(&heads, gap, is_known));
    // The tree over removed records is known at their end alone; kept heads within them
    // were replaced by the newest one behind them.
    let heads: Vec<_> = heads
        .into_iter()
        .filter(|(head, _)| is_known(head.size))
        .collect();
    let root = start.root();
    let check = HeadCheck::new(heads, start, |_| Ok::<_, StoreError>(root));
    let mut check = check?;
    let mut walk = Walk::new(first.checkpoint.as_ref(), expected.head, None);
    let removed = walk.head().sequence;
    // With heads, the tree must begin where the removed records end, or nothing signed
    // could be compared.
    let is_sealed = removed == check.tree().size() || key.is_none();
    for line in lines(path)? {
        let Ok(ExportedLine::Record(record, hashes)) = line? else {
            continue;
        };
        if !hashes.is_empty() {
            walk.fault(record.sequence, None, STRAY_HASHES.to_owned());
            return Ok(unsealed(walk.finish(), ExportScope::Whole));
        }
        let Ok(body) = walk.step(&record) else {
            // The chain broke: what the heads say about records behind that
            // place means nothing.
            return Ok(unsealed(walk.finish(), ExportScope::Whole));
        };
        if record.sequence > removed {
            check.step(&record, &body);
        }
    }
    let signed = check.signed();
    walk.note_heads(u64::try_from(count).unwrap_or(u64::MAX), signed);
    let mut verified = walk.finish();
    let fault = match (is_sealed, fault) {
        (false, _) => Some((1, "the tree over the removed records is missing".to_owned())),
        (true, Some(fault)) => Some(fault),
        (true, None) => check.finish().map(|fault| (fault.sequence, fault.what)),
    };
    // The end is checked last. A record that is wrong says more than a cut behind it.
    let sealed = first.seal(key);
    let next = verified.head.sequence.saturating_add(1);
    let fault = fault.or_else(|| sealed.clone().err().map(|fault| (next, fault)));
    // Attack: an export without a single head, for an auditor who names the key.
    let is_bare = key.is_some() && verified.records > 0 && signed == 0;
    let fault = fault.or_else(|| is_bare.then(|| (1, BARE_EXPORT.to_owned())));
    if verified.broken.is_none() {
        verified.broken = fault.map(|(sequence, what)| broken(sequence, what));
    }
    Ok(VerifiedExport {
        verified,
        scope: ExportScope::Whole,
        sealed_ms: sealed.unwrap_or_default(),
    })
}

/// What is wrong with an export that a key says nothing about.
const BARE_EXPORT: &str = "no signed head covers its records, so the key proves nothing; make the \
                           export with `ringfence audit export --format proofs`";

/// The first given head that lies within the removed records, where nothing tells the hash.
/// To pass over it would look as if the log extended it.
pub(crate) fn incomparable(
    heads: &[Sourced],
    removed: u64,
    is_known: impl Fn(u64) -> bool,
) -> Option<(u64, String)> {
    let mut given = heads
        .iter()
        .filter(|(_, source)| *source == HeadSource::Given);
    let (head, _) = given.find(|(head, _)| !is_known(head.size))?;
    let size = head.size;
    let what = format!(
        "the given checkpoint covers {size} records, which are among the {removed} that were \
         removed, so there is nothing to compare; `ringfence audit prove --since FILE` in the \
         home of the log proves that the log extends it"
    );
    Some((size, what))
}

/// Checks each record of an export of some records by its own proof.
fn verify_some(
    path: &Path,
    first: &FirstPass,
    expected: &Expectation,
) -> Result<VerifiedExport, StoreError> {
    refuse_references(expected)?;
    let mut walk = Walk::new(None, None, None);
    let key = first.key(expected)?;
    let note = first.log.as_ref().map(|log| log.head.as_str());
    let head = match (key, note) {
        (Some(key), Some(note)) => signed_head(note, key, &is_sound),
        (_, _) => return Ok(unsealed(walk.finish(), first.scope())),
    };
    let head = match head {
        Ok(head) => head,
        Err(fault) => {
            walk.fault(1, None, fault.to_string());
            return Ok(unsealed(walk.finish(), first.scope()));
        }
    };
    let scope = ExportScope::Filtered { of: head.size };
    let mut verified = walk.finish();
    verified.signed = head.size;
    verified.heads = 1;
    for line in lines(path)? {
        let Ok(ExportedLine::Record(record, hashes)) = line? else {
            continue;
        };
        if let Err(fault) = check_record(&record, &hashes, &head) {
            verified.broken = Some(broken(record.sequence, fault.to_string()));
            return Ok(unsealed(verified, scope));
        }
        verified.records += 1;
        verified.head = Head {
            sequence: record.sequence,
            hash: record.hash,
        };
        match record.kind {
            RecordKind::Open => verified.entries += 1,
            RecordKind::Notice => verified.notices += 1,
            RecordKind::Checkpoint => verified.checkpoints += 1,
            RecordKind::Anchor => verified.anchors += 1,
            RecordKind::Close => {}
        }
    }
    let sealed = first.seal(key);
    if let Err(fault) = &sealed {
        let next = verified.head.sequence.saturating_add(1);
        verified.broken = Some(broken(next, fault.clone()));
    }
    Ok(VerifiedExport {
        verified,
        scope,
        sealed_ms: sealed.unwrap_or_default(),
    })
}

/// Attack: a log that contradicts a kept head is handed over as a filtered export, which
/// lacks the records between the two heads. A reference that cannot be compared is refused.
fn refuse_references(expected: &Expectation) -> Result<(), StoreError> {
    let flag = match (expected.checkpoints.is_empty(), expected.head) {
        (false, _) => "--checkpoint",
        (true, Some(_)) => "--head",
        (true, None) => return Ok(()),
    };
    Err(StoreError::Unchecked {
        what: format!(
            "the export has some records of the log only, which `{flag}` cannot be compared \
             with; ask for an export without a filter, or for a proof by `ringfence audit prove \
             --since FILE`"
        ),
    })
}

/// A head and where it comes from.
pub(crate) type Sourced = (TreeHead, HeadSource);

/// The heads whose signature is sound, and the first whose is not.
pub(crate) fn heads(
    kept: &[String],
    expected: &Expectation,
    key: &NoteKey,
) -> (Vec<Sourced>, Option<(u64, String)>) {
    let given = expected.checkpoints.iter().map(ToString::to_string);
    let given = given.map(|note| (note, HeadSource::Given));
    let kept = kept.iter().cloned();
    let kept = kept.map(|note| (note, HeadSource::Kept));
    let mut sound = Vec::new();
    let mut fault = None;
    for (note, source) in kept.chain(given) {
        match signed_head(&note, key, &is_sound) {
            Ok(head) => sound.push((head, source)),
            Err(wrong) => {
                let size = note.parse::<SignedNote>().ok();
                let size = size.and_then(|note| note.head().ok()).map(|head| head.size);
                let about = match (size, source) {
                    (Some(size), HeadSource::Kept) => format!("the head over {size} records: "),
                    (Some(size), HeadSource::Given) => {
                        format!("the given checkpoint over {size} records: ")
                    }
                    (None, _) => String::new(),
                };
                fault.get_or_insert((size.unwrap_or(1), format!("{about}{wrong}")));
            }
        }
    }
    (sound, fault)
}

fn broken(sequence: u64, what: String) -> Broken {
    Broken {
        sequence,
        call_id: None,
        what,
    }
}

/// What is wrong with a record of a whole export that has hashes of its own.
pub(crate) const STRAY_HASHES: &str =
    "it has hashes of its own, which only a record of a filtered export has";

/// A header that names another key than the one that signed.
pub(crate) fn other_key(log: &ExportedLog, key: &NoteKey) -> Option<String> {
    let is_other = log.key != key.to_string();
    is_other.then(|| "the header of the export names another key".to_owned())
}

/// A line, or what is wrong with it in a sentence.
type ReadLine = Result<ExportedLine, String>;

/// The lines of an export, bounded in length.
pub(crate) fn lines(
    path: &Path,
) -> Result<impl Iterator<Item = Result<ReadLine, StoreError>>, StoreError> {
    use std::io::Read as _;
    let file = File::open(path).map_err(|error| StoreError::file("read", path, error))?;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let path = path.to_owned();
    let mut number = 0_u64;
    Ok(std::iter::from_fn(move || {
        let mut line = String::new();
        let bytes_max = u64::try_from(limit::LINE_BYTES_MAX).unwrap_or(u64::MAX);
        // A line longer than any record of ours ends here and is no record.
        let read = (&mut reader).take(bytes_max * 2).read_line(&mut line);
        number += 1;
        match read {
            Ok(0) => None,
            Ok(_) => {
                let read = ExportedLine::read(&line);
                Some(Ok(read.map_err(|why| format!("line {number}: {why}"))))
            }
            // Bytes that are no text are a finding about the file, not a fault of the disk.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                Some(Ok(Err(format!("line {number}: it is not text"))))
            }
            Err(error) => Some(Err(StoreError::file("read", &path, error))),
        }
    }))
}
