//! Proofs about the log that need nothing but a public key to check: that a record is
//! among those that were signed, and that a signed log begins with an earlier one.

use serde::{Deserialize, Serialize};

use crate::record::audit::chain::{Body, Ending, Record, link};
use crate::record::note::{CheckSignature, NoteKey, SignedNote, TreeHead};
use crate::record::tree::{Frontier, TreeHash, shows_consistency, shows_inclusion};

/// Why a proof fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofFault {
    /// A head is not a signed checkpoint.
    #[error("the head is not a signed checkpoint")]
    Head,
    /// It is signed by another key, or of another log.
    #[error("the head is not signed by `{0}`")]
    Signature(String),
    /// The record was changed.
    #[error("the hash of record {0} does not fit its body")]
    Record(u64),
    /// The hashes do not lead to the signed root.
    #[error("record {0} is not among those that were signed")]
    Inclusion(u64),
    /// The later log is another one.
    #[error("the log of {size} records does not begin with the {old} records signed before")]
    Growth {
        /// The records signed before.
        old: u64,
        /// The records of the later head.
        size: u64,
    },
}

/// A proof, as one JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "proves", rename_all = "lowercase")]
pub enum LogProof {
    /// A record is among those that were signed.
    Inclusion(RecordProof),
    /// A signed log begins with an earlier one.
    Growth(GrowthProof),
}

impl LogProof {
    /// Checks the proof with a key. Gives back the later head.
    pub fn check(&self, key: &NoteKey, sound: CheckSignature<'_>) -> Result<TreeHead, ProofFault> {
        match self {
            LogProof::Inclusion(proof) => proof.check(key, sound),
            LogProof::Growth(proof) => proof.check(key, sound),
        }
    }
}

/// A record, a signed head and the hashes that lead from one to the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordProof {
    /// The record.
    pub record: Record,
    /// The hashes, from the leaf to the root.
    pub hashes: Vec<TreeHash>,
    /// The signed head.
    pub head: String,
}

impl RecordProof {
    /// Checks the proof with a key.
    pub fn check(&self, key: &NoteKey, sound: CheckSignature<'_>) -> Result<TreeHead, ProofFault> {
        let head = signed_head(&self.head, key, sound)?;
        check_record(&self.record, &self.hashes, &head)?;
        Ok(head)
    }
}

/// Two signed heads and the hashes that show that the later log begins with the earlier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrowthProof {
    /// The earlier head.
    pub from: String,
    /// The hashes.
    pub hashes: Vec<TreeHash>,
    /// The later head.
    pub head: String,
}

impl GrowthProof {
    /// Checks the proof with a key.
    pub fn check(&self, key: &NoteKey, sound: CheckSignature<'_>) -> Result<TreeHead, ProofFault> {
        let from = signed_head(&self.from, key, sound)?;
        let head = signed_head(&self.head, key, sound)?;
        let (old, size) = (from.size, head.size);
        match shows_consistency(old, &from.root, size, &head.root, &self.hashes) {
            true => Ok(head),
            false => Err(ProofFault::Growth { old, size }),
        }
    }
}

/// The head of a signed note, if a key signed it for its own log.
pub fn signed_head(
    note: &str,
    key: &NoteKey,
    sound: CheckSignature<'_>,
) -> Result<TreeHead, ProofFault> {
    let note: SignedNote = note.parse().map_err(|_| ProofFault::Head)?;
    let head = note.head().map_err(|_| ProofFault::Head)?;
    // A key speaks for its own log: its signature under the head of another proves
    // nothing.
    match head.origin == key.name() && key.has_signed(&note, sound) {
        true => Ok(head),
        false => Err(ProofFault::Signature(key.to_string())),
    }
}

/// Whether hashes lead from a record to a head.
pub fn check_record(
    record: &Record,
    hashes: &[TreeHash],
    head: &TreeHead,
) -> Result<Body<Ending>, ProofFault> {
    let sequence = record.sequence;
    let fits = link(&record.previous, &record.body) == record.hash;
    let (true, Ok(body)) = (fits, record.read::<Ending>()) else {
        return Err(ProofFault::Record(sequence));
    };
    let leaf = TreeHash::record(&record.hash);
    // Records are counted from 1, leaves from 0.
    let index = sequence.checked_sub(1);
    let is_there =
        index.is_some_and(|index| shows_inclusion(&leaf, index, head.size, hashes, &head.root));
    match is_there {
        true => Ok(body),
        false => Err(ProofFault::Inclusion(sequence)),
    }
}

/// The header of an export with proofs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportedLog {
    /// The public key. A reader compares it with the one that was handed over before.
    pub key: String,
    /// The newest signed head.
    pub head: String,
    /// Whether every record is exported. Otherwise each record has its own proof.
    pub whole: bool,
    /// The tree over the records that were removed.
    #[serde(default)]
    pub removed: Frontier,
}

/// One line of an export with proofs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportedLine {
    /// The header about the log.
    Log(Box<ExportedLog>),
    /// A record; in an export of some records, with the hashes that lead to the head.
    Record(Record, Vec<TreeHash>),
    /// A signed head, in the order they were signed.
    Head(String),
    /// The seal over all lines before it.
    End(String),
}

/// Why a line is not one of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportedLineFault {
    /// It cannot be read.
    #[error("it is not a record, a signed head or the seal of an export")]
    Unknown,
    /// It can be read, but no export writes it so: hashes do not cover what is more there.
    #[error(
        "it is not written as an export writes it: it was changed afterwards, or is of another \
         version of this program"
    )]
    Spelling,
}

impl ExportedLine {
    /// Reads one line, which must be spelled as an export spells it. A field that no hash
    /// covers, or another order, would else pass as part of the evidence.
    pub fn read(line: &str) -> Result<ExportedLine, ExportedLineFault> {
        let read = ExportedLine::read_loosely(line).ok_or(ExportedLineFault::Unknown)?;
        let line = line.strip_suffix('\n').unwrap_or(line);
        let spelled = read.json().to_string();
        match spelled == line {
            true => Ok(read),
            false => Err(ExportedLineFault::Spelling),
        }
    }

    fn read_loosely(line: &str) -> Option<ExportedLine> {
        #[derive(Deserialize)]
        struct Kind<'a> {
            kind: &'a str,
        }
        #[derive(Deserialize)]
        struct HeadLine {
            note: String,
        }
        #[derive(Deserialize)]
        struct Hashes {
            #[serde(default)]
            hashes: Vec<TreeHash>,
        }
        let kind: Kind<'_> = serde_json::from_str(line).ok()?;
        match kind.kind {
            "log" => {
                let log: ExportedLog = serde_json::from_str(line).ok()?;
                // From outside. With parts that do not fit, every root would be another.
                let log = log.removed.is_sound().then_some(log)?;
                Some(ExportedLine::Log(Box::new(log)))
            }
            "head" => {
                let head: HeadLine = serde_json::from_str(line).ok()?;
                Some(ExportedLine::Head(head.note))
            }
            "end" => {
                let seal: HeadLine = serde_json::from_str(line).ok()?;
                Some(ExportedLine::End(seal.note))
            }
            _ => {
                let record = serde_json::from_str(line).ok()?;
                let hashes: Hashes = serde_json::from_str(line).ok()?;
                Some(ExportedLine::Record(record, hashes.hashes))
            }
        }
    }

    /// The line, as JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let (kind, value) = match self {
            ExportedLine::Log(log) => ("log", serde_json::to_value(log)),
            ExportedLine::Head(note) => return serde_json::json!({"kind": "head", "note": note}),
            ExportedLine::End(note) => return serde_json::json!({"kind": "end", "note": note}),
            ExportedLine::Record(record, hashes) => {
                let mut value = serde_json::to_value(record).unwrap_or_default();
                if let (Some(object), false) = (value.as_object_mut(), hashes.is_empty()) {
                    let hashes = serde_json::to_value(hashes).unwrap_or_default();
                    object.insert("hashes".to_owned(), hashes);
                }
                return value;
            }
        };
        let mut object = serde_json::Map::new();
        object.insert("kind".to_owned(), kind.into());
        if let Ok(serde_json::Value::Object(rest)) = value {
            object.extend(rest);
        }
        serde_json::Value::Object(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::audit::chain::{ChainHash, RecordKind};

    #[test]
    fn a_line_is_read_only_as_an_export_spells_it() {
        let record = Record {
            sequence: 1,
            kind: RecordKind::Notice,
            previous: ChainHash::ZERO,
            hash: ChainHash::ZERO,
            body: "{}".to_owned(),
        };
        let log = ExportedLog {
            key: "key".to_owned(),
            head: "head".to_owned(),
            whole: true,
            removed: Frontier::default(),
        };
        // A plain export writes the record alone.
        let plain = serde_json::to_string(&record).expect("JSON");
        let record = ExportedLine::Record(record, Vec::new());
        assert_eq!(ExportedLine::read(&plain), Ok(record.clone()));
        for line in [
            record,
            ExportedLine::Log(Box::new(log)),
            ExportedLine::Head("note\n".to_owned()),
            ExportedLine::End("note\n".to_owned()),
        ] {
            let text = line.json().to_string();
            assert_eq!(ExportedLine::read(&text), Ok(line.clone()));
            assert_eq!(ExportedLine::read(&format!("{text}\n")), Ok(line));
            let spelling = Err(ExportedLineFault::Spelling);
            for changed in [
                format!("{text} "),
                text.replacen('{', "{ ", 1),
                text.replacen('}', r#","remark":"hi"}"#, 1),
                text.replacen(':', ": ", 1),
                text.replacen("kind", r"k\u0069nd", 1),
            ] {
                if changed != text {
                    let read = ExportedLine::read(&changed);
                    assert!(
                        read == spelling || read == Err(ExportedLineFault::Unknown),
                        "{changed}"
                    );
                }
            }
        }
        assert_eq!(ExportedLine::read("[]"), Err(ExportedLineFault::Unknown));
    }
}
