//! The chain: how a record's body is spelled and what its hash covers.
//!
//! A body is canonical JSON that names its own place and kind. A hash covers the body
//! and the hash before it, so a record covers everything before it.
//! `docs/guide/audit.md` gives the same recipe for other tools.

use std::fmt;
use std::io::Write as _;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::canonical::{self, CanonicalError};
use crate::record::audit::anchor::Anchor;
use crate::record::audit::notice::Notice;
use crate::record::audit::{Closing, Opening, Status};
use crate::record::tree::TreeHash;

/// The tag at the start of every hash input. A change of the recipe is a new tag.
pub const TAG: &str = "ringfence-audit-1";

/// One hash of the chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChainHash([u8; 32]);

impl ChainHash {
    /// The hash before the first record.
    pub const ZERO: ChainHash = ChainHash([0; 32]);

    /// From the bytes a store keeps.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> ChainHash {
        ChainHash(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// In hexadecimal, lower case.
    #[must_use]
    pub fn hex(&self) -> String {
        String::from_utf8_lossy(&self.hex_bytes()).into_owned()
    }

    /// The same as bytes.
    #[must_use]
    pub fn hex_bytes(&self) -> [u8; 64] {
        let mut hex = [0; 64];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            for (place, nibble) in pair.iter_mut().zip([byte >> 4, byte & 15]) {
                *place = match nibble {
                    0..=9 => b'0' + nibble,
                    _ => b'a' + nibble - 10,
                };
            }
        }
        hex
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

/// The text is no hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hash of the audit is 64 hexadecimal digits")]
pub struct NotAHash;

impl FromStr for ChainHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<ChainHash, NotAHash> {
        if text.len() != 64 {
            return Err(NotAHash);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            for digit in pair {
                *byte = (*byte << 4) | nibble(*digit)?;
            }
        }
        Ok(ChainHash(bytes))
    }
}

fn nibble(digit: u8) -> Result<u8, NotAHash> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(NotAHash),
    }
}

impl Serialize for ChainHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.hex())
    }
}

impl<'de> Deserialize<'de> for ChainHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ChainHash, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The hash of a body that follows `previous`: SHA-256 over the tag, the previous
/// hash in hexadecimal and the body, with a line feed between them.
#[must_use]
pub fn link(previous: &ChainHash, body: impl AsRef<[u8]>) -> ChainHash {
    let mut hasher = Sha256::new();
    // Tag and hash have fixed lengths, so no two inputs run together to the same bytes.
    hasher.update(TAG);
    hasher.update(b"\n");
    hasher.update(previous.hex_bytes());
    hasher.update(b"\n");
    hasher.update(body);
    ChainHash(hasher.finalize().into())
}

/// A place in the chain. A copy kept elsewhere can later show that nothing
/// up to it was changed or cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The record.
    pub sequence: u64,
    /// Its hash.
    pub hash: ChainHash,
}

impl Head {
    /// Before the first record.
    pub const START: Head = Head {
        sequence: 0,
        hash: ChainHash::ZERO,
    };
}

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordKind {
    /// An attempt begins.
    Open,
    /// An attempt ends.
    Close,
    /// Older records were removed on purpose.
    Checkpoint,
    /// A change outside of calls.
    Notice,
    /// Heads of other logs were seen.
    Anchor,
}

impl RecordKind {
    /// The word in the body.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            RecordKind::Open => "open",
            RecordKind::Close => "close",
            RecordKind::Checkpoint => "checkpoint",
            RecordKind::Notice => "notice",
            RecordKind::Anchor => "anchor",
        }
    }

    /// The kind a word names.
    #[must_use]
    pub fn of_word(word: &str) -> Option<RecordKind> {
        [
            RecordKind::Open,
            RecordKind::Close,
            RecordKind::Checkpoint,
            RecordKind::Notice,
            RecordKind::Anchor,
        ]
        .into_iter()
        .find(|kind| kind.word() == word)
    }
}

/// One link, as it is kept and exported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its place, counted from 1 without gaps.
    pub sequence: u64,
    /// What it is; the body says it too.
    pub kind: RecordKind,
    /// The hash of the record before it.
    pub previous: ChainHash,
    /// Its own hash.
    pub hash: ChainHash,
    /// Canonical JSON, byte for byte what was hashed.
    pub body: String,
}

/// Appends the body of an open record; `part` comes from [`super::spell::opening`].
/// The part is canonical and the keys are written in order, so the whole is
/// canonical.
pub fn write_open_body(out: &mut Vec<u8>, sequence: u64, part: &str) {
    out.extend_from_slice(br#"{"kind":"open","opening":"#);
    out.extend_from_slice(part.as_bytes());
    // Writing to memory does not fail.
    let _ = write!(out, r#","sequence":{sequence}}}"#);
}

/// Appends the body of a close record; `part` comes from [`super::spell::closing`],
/// `opened` is the place of its open record.
pub fn write_close_body(
    out: &mut Vec<u8>,
    sequence: u64,
    opened: u64,
    call_id: &str,
    part: &str,
) -> Result<(), CanonicalError> {
    out.extend_from_slice(br#"{"callId":"#);
    canonical::write_text(call_id, out)?;
    out.extend_from_slice(br#","closing":"#);
    out.extend_from_slice(part.as_bytes());
    let _ = write!(
        out,
        r#","kind":"close","opened":{opened},"sequence":{sequence}}}"#
    );
    Ok(())
}

/// Appends the body of a notice; `part` comes from [`super::spell::notice`].
pub fn write_notice_body(out: &mut Vec<u8>, sequence: u64, part: &str) {
    out.extend_from_slice(br#"{"kind":"notice","notice":"#);
    out.extend_from_slice(part.as_bytes());
    let _ = write!(out, r#","sequence":{sequence}}}"#);
}

/// Appends the body of an anchor; `part` comes from [`super::spell::anchor`].
pub fn write_anchor_body(out: &mut Vec<u8>, sequence: u64, part: &str) {
    out.extend_from_slice(br#"{"anchor":"#);
    out.extend_from_slice(part.as_bytes());
    let _ = write!(out, r#","kind":"anchor","sequence":{sequence}}}"#);
}

#[cfg(test)]
pub(crate) fn notice_body(sequence: u64, part: &str) -> String {
    let mut out = Vec::new();
    write_notice_body(&mut out, sequence, part);
    String::from_utf8(out).expect("text")
}

#[cfg(test)]
pub(crate) fn open_body(sequence: u64, part: &str) -> String {
    let mut out = Vec::new();
    write_open_body(&mut out, sequence, part);
    String::from_utf8(out).expect("text")
}

#[cfg(test)]
pub(crate) fn close_body(sequence: u64, opened: u64, call_id: &str, part: &str) -> String {
    let mut out = Vec::new();
    write_close_body(&mut out, sequence, opened, call_id, part).expect("canonical");
    String::from_utf8(out).expect("text")
}

/// The body of a checkpoint.
pub fn checkpoint_body(sequence: u64, checkpoint: &Checkpoint) -> Result<String, CanonicalError> {
    let value = serde_json::json!({
        "checkpoint": checkpoint,
        "kind": RecordKind::Checkpoint,
        "sequence": sequence,
    });
    let bytes = canonical::to_bytes(&value)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A checkpoint's summary of the removed records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// The last removed record: the next one follows this hash.
    pub through: Head,
    /// Records removed so far, by this and all earlier checkpoints.
    pub records: u64,
    /// Entries removed so far.
    pub entries: u64,
    /// Notices removed so far.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub notices: u64,
    /// When the first entry or notice removed by this checkpoint was written.
    pub from_ms: i64,
    /// When the last one was.
    pub to_ms: i64,
    /// Open records up to `through` that stay, because their attempt had not
    /// ended.
    #[serde(default)]
    pub kept: Vec<Head>,
    /// The hash of the tree over all records up to `through`, so that removed records
    /// can still be proved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<TreeHash>,
}

/// A body, read again. `C` is how much of a closing is wanted.
#[derive(Clone, Debug, PartialEq)]
pub enum Body<C = Closing> {
    /// An attempt begins.
    Open(Opening),
    /// An attempt ends.
    Close(Close<C>),
    /// Older records were removed on purpose.
    Checkpoint(Checkpoint),
    /// A change outside of calls.
    Notice(Notice),
    /// Heads of other logs were seen.
    Anchor(Anchor),
}

/// A close record's body.
#[derive(Clone, Debug, PartialEq)]
pub struct Close<C = Closing> {
    /// The place of its open record.
    pub opened: u64,
    /// The attempt.
    pub call_id: String,
    /// How it ended.
    pub closing: C,
}

/// Only how an attempt ended; reading it skips the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Ending {
    /// How it ended.
    pub status: Status,
    /// Whether the shadow rules decide differently.
    #[serde(default, rename = "shadow", deserialize_with = "is_there")]
    pub differs: bool,
}

fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    serde::de::IgnoredAny::deserialize(deserializer).map(|_| true)
}

/// A body contradicts its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It is not JSON, or not of a shape we write.
    #[error("its body cannot be read")]
    Unreadable,
    /// It is a body of another place.
    #[error("its body belongs to record {0}")]
    Place(u64),
    /// It is a body of another kind.
    #[error("its body is of another kind")]
    RecordKind,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parts<C> {
    kind: RecordKind,
    sequence: u64,
    opening: Option<Opening>,
    opened: Option<u64>,
    call_id: Option<String>,
    closing: Option<C>,
    checkpoint: Option<Checkpoint>,
    notice: Option<Notice>,
    anchor: Option<Anchor>,
}

impl Record {
    /// Its body, parsed and compared with the record's place and kind.
    pub fn read<'a, C: Deserialize<'a>>(&'a self) -> Result<Body<C>, BodyError> {
        let parts: Parts<C> =
            serde_json::from_str(&self.body).map_err(|_| BodyError::Unreadable)?;
        // The body names its place and kind, so that a record cannot be moved or
        // relabelled.
        if parts.sequence != self.sequence {
            return Err(BodyError::Place(parts.sequence));
        }
        if parts.kind != self.kind {
            return Err(BodyError::RecordKind);
        }
        let body = match self.kind {
            RecordKind::Open => parts.opening.map(Body::Open),
            RecordKind::Checkpoint => parts.checkpoint.map(Body::Checkpoint),
            RecordKind::Notice => parts.notice.map(Body::Notice),
            RecordKind::Anchor => parts.anchor.map(Body::Anchor),
            RecordKind::Close => match (parts.opened, parts.call_id, parts.closing) {
                (Some(opened), Some(call_id), Some(closing)) => Some(Body::Close(Close {
                    opened,
                    call_id,
                    closing,
                })),
                (_, _, _) => None,
            },
        };
        body.ok_or(BodyError::Unreadable)
    }
}

#[cfg(test)]
mod tests;
