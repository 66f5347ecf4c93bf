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

/// Verifies an export: every record, every head, and what was expected.
pub fn verify_export(path: &Path, expected: &Expectation) -> Result<Verified, StoreError> {
    let mut first = FirstPass::default();
    let mut last = 0;
    for line in lines(path)? {
        let line = match line? {
            Ok(line) => line,
            Err(what) => {
                let mut walk = Walk::new(None, None, None);
                // The place in the chain is that of the record which should stand there.
                walk.fault(last + 1, None, what);
                return Ok(walk.finish());
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
    let is_whole = first.log.as_ref().is_none_or(|log| log.whole);
    match is_whole {
        true => verify_whole(path, &first, expected),
        false => verify_some(path, &first, expected),
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
    /// What is wrong with the header or the end of the export. One without heads has
    /// neither.
    fn seal_fault(&self, key: Option<&NoteKey>) -> Option<String> {
        match (&self.log, key) {
            (Some(log), Some(key)) => {
                let end = self.end.as_deref();
                let sealed = self.seal.check(end, key, &is_sound);
                let fault = sealed.err().map(|fault| fault.to_string());
                fault.or_else(|| other_key(log, key))
            }
            (_, _) => None,
        }
    }

    /// The key that must have signed. An export's own word for it is not enough.
    fn key<'a>(&self, expected: &'a Expectation) -> Result<Option<&'a NoteKey>, StoreError> {
        match (&expected.key, &self.log, expected.checkpoints.is_empty()) {
            (Some(key), _, _) => Ok(Some(key)),
            (None, None, true) => Ok(None),
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
) -> Result<Verified, StoreError> {
    let key = first.key(expected)?;
    let checked = key.map(|key| heads(&first.heads, expected, key));
    let (heads, fault) = checked.unwrap_or_default();
    let count = heads.len();
    let start = first.log.as_ref().map(|log| log.removed.clone());
    let start = start.unwrap_or_default();
    // The tree over removed records is known at their end alone; heads within them
    // were replaced by the newest one behind them.
    let heads: Vec<_> = heads
        .into_iter()
        .filter(|(head, _)| head.size >= start.size())
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
            return Ok(walk.finish());
        }
        let Ok(body) = walk.step(&record) else {
            // The chain broke: what the heads say about records behind that
            // place means nothing.
            return Ok(walk.finish());
        };
        if record.sequence > removed {
            check.step(&record, &body);
        }
    }
    walk.note_heads(u64::try_from(count).unwrap_or(u64::MAX), check.signed());
    let mut verified = walk.finish();
    let fault = match (is_sealed, fault) {
        (false, _) => Some((1, "the tree over the removed records is missing".to_owned())),
        (true, Some(fault)) => Some(fault),
        (true, None) => check.finish().map(|fault| (fault.sequence, fault.what)),
    };
    // The end is checked last. A record that is wrong says more than a cut behind it.
    let fault = fault.or_else(|| {
        let next = verified.head.sequence.saturating_add(1);
        first.seal_fault(key).map(|fault| (next, fault))
    });
    if verified.broken.is_none() {
        verified.broken = fault.map(|(sequence, what)| broken(sequence, what));
    }
    Ok(verified)
}

/// Checks each record of an export of some records by its own proof.
fn verify_some(
    path: &Path,
    first: &FirstPass,
    expected: &Expectation,
) -> Result<Verified, StoreError> {
    let mut walk = Walk::new(None, None, None);
    let key = first.key(expected)?;
    let note = first.log.as_ref().map(|log| log.head.as_str());
    let head = match (key, note) {
        (Some(key), Some(note)) => signed_head(note, key, &is_sound),
        (_, _) => return Ok(walk.finish()),
    };
    let head = match head {
        Ok(head) => head,
        Err(fault) => {
            walk.fault(1, None, fault.to_string());
            return Ok(walk.finish());
        }
    };
    let mut verified = walk.finish();
    verified.signed = head.size;
    verified.heads = 1;
    for line in lines(path)? {
        let Ok(ExportedLine::Record(record, hashes)) = line? else {
            continue;
        };
        if let Err(fault) = check_record(&record, &hashes, &head) {
            verified.broken = Some(broken(record.sequence, fault.to_string()));
            return Ok(verified);
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
    if let Some(fault) = first.seal_fault(key) {
        let next = verified.head.sequence.saturating_add(1);
        verified.broken = Some(broken(next, fault));
    }
    Ok(verified)
}

/// A head and where it comes from.
type Sourced = (TreeHead, HeadSource);

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
