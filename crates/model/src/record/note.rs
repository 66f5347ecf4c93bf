//! Signed heads of a log, as text that other programs read: a checkpoint of C2SP
//! `tlog-checkpoint`, signed as a note of C2SP `signed-note`, by keys written as note
//! verifier keys.
//!
//! This module spells and reads. Signatures are made and checked by functions that are
//! handed in.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::limits;
use crate::record::tree::TreeHash;

/// What every line of a signature begins with: an em dash and a space.
const SIGNATURE: &str = "\u{2014} ";

/// The extension that says from which size on earlier heads count no more.
const FORK: &str = "ringfence-fork ";

/// Checks an Ed25519 signature: public key, message, signature.
pub type CheckSignature<'a> = &'a dyn Fn(&[u8; 32], &[u8], &[u8]) -> bool;

/// The kind of text a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKeyKind {
    /// The text of a note: the key of a log.
    Log,
    /// The text of a note, and when it was seen: the key of a witness
    /// (`cosignature/v1`).
    Witness,
}

impl NoteKeyKind {
    /// The number the format gives it.
    fn number(self) -> u8 {
        match self {
            NoteKeyKind::Log => 1,
            NoteKeyKind::Witness => 4,
        }
    }
}

/// A public key that signs notes: `name+id+key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteKey {
    name: String,
    kind: NoteKeyKind,
    public: [u8; 32],
}

/// A text does not have its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteFault {
    /// No verifier key.
    #[error("a public key is written `NAME+ID+KEY`, as `ringfence audit key` prints it")]
    Key,
    /// No signed note.
    #[error("a signed note is a text, an empty line and lines of signatures")]
    Note,
    /// No checkpoint.
    #[error("a checkpoint has the name of its log, a size and a hash, on a line each")]
    Checkpoint,
}

impl NoteKey {
    /// A key; nothing if the format has no room for its name.
    #[must_use]
    pub fn new(name: &str, kind: NoteKeyKind, public: [u8; 32]) -> Option<NoteKey> {
        is_name(name).then(|| NoteKey {
            name: name.to_owned(),
            kind,
            public,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kind of text it signs.
    #[must_use]
    pub fn kind(&self) -> NoteKeyKind {
        self.kind
    }

    /// The key.
    #[must_use]
    pub fn public(&self) -> &[u8; 32] {
        &self.public
    }

    /// Four bytes that tell keys of one name apart.
    #[must_use]
    pub fn id(&self) -> [u8; 4] {
        let mut hasher = Sha256::new();
        hasher.update(&self.name);
        hasher.update([b'\n', self.kind.number()]);
        hasher.update(self.public);
        let digest: [u8; 32] = hasher.finalize().into();
        let [first, second, third, fourth, ..] = digest;
        [first, second, third, fourth]
    }

    /// Whether a note has a sound signature by this key.
    #[must_use]
    pub fn has_signed(&self, note: &SignedNote, check: CheckSignature<'_>) -> bool {
        let own = note
            .signatures
            .iter()
            .filter(|signature| signature.name == self.name && signature.id == self.id());
        // A note may carry the same signature twice, never a wrong one beside it.
        let mut any = false;
        for signature in own {
            let sound = match self.kind {
                NoteKeyKind::Log => check(&self.public, note.text.as_bytes(), &signature.bytes),
                NoteKeyKind::Witness => match signature.bytes.split_first_chunk::<8>() {
                    Some((seconds, bytes)) => {
                        let seconds = u64::from_be_bytes(*seconds);
                        let message = cosigned(seconds, &note.text);
                        check(&self.public, message.as_bytes(), bytes)
                    }
                    None => false,
                },
            };
            if !sound {
                return false;
            }
            any = true;
        }
        any
    }
}

/// The text a witness signs: when it saw a text, in seconds since 1970, and the text.
#[must_use]
pub fn cosigned(seconds: u64, text: &str) -> String {
    format!("cosignature/v1\ntime {seconds}\n{text}")
}

impl fmt::Display for NoteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut key = vec![self.kind.number()];
        key.extend_from_slice(&self.public);
        let id = u32::from_be_bytes(self.id());
        write!(f, "{}+{id:08x}+{}", self.name, STANDARD.encode(key))
    }
}

impl FromStr for NoteKey {
    type Err = NoteFault;

    fn from_str(text: &str) -> Result<NoteKey, NoteFault> {
        // Base64 may hold a `+`, so only the first two separate.
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(NoteFault::Key);
        };
        let key = STANDARD.decode(key).map_err(|_| NoteFault::Key)?;
        let Some((number, public)) = key.split_first() else {
            return Err(NoteFault::Key);
        };
        let kinds = [NoteKeyKind::Log, NoteKeyKind::Witness];
        let kind = kinds.into_iter().find(|kind| kind.number() == *number);
        let (Some(kind), Ok(public)) = (kind, public.try_into()) else {
            return Err(NoteFault::Key);
        };
        let key = NoteKey::new(name, kind, public).ok_or(NoteFault::Key)?;
        // The id is made from the key, so a mistyped key does not fit it.
        let expected = format!("{:08x}", u32::from_be_bytes(key.id()));
        match id == expected {
            true => Ok(key),
            false => Err(NoteFault::Key),
        }
    }
}

/// Whether the format has room for a name.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= limits::LOG_NAME_BYTES_MAX
        && !name.contains('+')
        && !name.chars().any(|it| it.is_whitespace() || it.is_control())
}

/// One signature of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteSignature {
    /// The name of the key.
    pub name: String,
    /// The id of the key.
    pub id: [u8; 4],
    /// The signature.
    pub bytes: Vec<u8>,
}

impl NoteSignature {
    /// The signature of a key.
    #[must_use]
    pub fn by(key: &NoteKey, bytes: Vec<u8>) -> NoteSignature {
        NoteSignature {
            name: key.name.clone(),
            id: key.id(),
            bytes,
        }
    }

    /// When a witness says it saw the text, in seconds since 1970.
    #[must_use]
    pub fn seen_at(&self) -> Option<u64> {
        let seconds = self.bytes.first_chunk::<8>()?;
        Some(u64::from_be_bytes(*seconds))
    }
}

impl fmt::Display for NoteSignature {
    /// One line, without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.id.to_vec();
        bytes.extend_from_slice(&self.bytes);
        write!(f, "{SIGNATURE}{} {}", self.name, STANDARD.encode(bytes))
    }
}

impl FromStr for NoteSignature {
    type Err = NoteFault;

    fn from_str(line: &str) -> Result<NoteSignature, NoteFault> {
        let rest = line.strip_prefix(SIGNATURE).ok_or(NoteFault::Note)?;
        let (name, bytes) = rest.split_once(' ').ok_or(NoteFault::Note)?;
        let bytes = STANDARD.decode(bytes).map_err(|_| NoteFault::Note)?;
        let (id, bytes) = bytes.split_first_chunk::<4>().ok_or(NoteFault::Note)?;
        if !is_name(name) || bytes.is_empty() {
            return Err(NoteFault::Note);
        }
        Ok(NoteSignature {
            name: name.to_owned(),
            id: *id,
            bytes: bytes.to_vec(),
        })
    }
}

/// A text and its signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedNote {
    text: String,
    signatures: Vec<NoteSignature>,
}

impl SignedNote {
    /// A text with its first signature.
    #[must_use]
    pub fn new(text: String, signature: NoteSignature) -> SignedNote {
        let signatures = vec![signature];
        SignedNote { text, signatures }
    }

    /// The signed text, with its last line feed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its signatures.
    #[must_use]
    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    /// Adds a signature, unless it is there or there is no room.
    pub fn add(&mut self, signature: NoteSignature) {
        let is_new = !self.signatures.contains(&signature);
        // With more of them the note could not be read back.
        if is_new && self.signatures.len() < limits::NOTE_SIGNATURES_MAX {
            self.signatures.push(signature);
        }
    }

    /// The checkpoint it holds.
    pub fn head(&self) -> Result<TreeHead, NoteFault> {
        self.text.parse()
    }
}

impl fmt::Display for SignedNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures
            .iter()
            .try_for_each(|signature| writeln!(f, "{signature}"))
    }
}

impl FromStr for SignedNote {
    type Err = NoteFault;

    fn from_str(note: &str) -> Result<SignedNote, NoteFault> {
        // `signed-note` allows no other control characters.
        let is_control = |it: char| it.is_control() && it != '\n';
        if note.len() > limits::NOTE_BYTES_MAX || note.contains(is_control) {
            return Err(NoteFault::Note);
        }
        // The last empty line: the text may have others.
        let (text, signatures) = note.rsplit_once("\n\n").ok_or(NoteFault::Note)?;
        let signatures = signatures.strip_suffix('\n').ok_or(NoteFault::Note)?;
        let signatures: Vec<NoteSignature> = signatures
            .split('\n')
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        if signatures.is_empty() || signatures.len() > limits::NOTE_SIGNATURES_MAX {
            return Err(NoteFault::Note);
        }
        // The last line break is part of what is signed.
        let text = format!("{text}\n");
        Ok(SignedNote { text, signatures })
    }
}

/// A checkpoint: the records of a log up to a size have this hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeHead {
    /// The name of the log.
    pub origin: String,
    /// How many records.
    pub size: u64,
    /// The hash over all of them.
    pub root: TreeHash,
    /// Heads over more records than this that were signed before count no more: the
    /// records behind it were lost, and the owner acknowledged it.
    pub fork: Option<u64>,
}

impl fmt::Display for TreeHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}\n{}", self.origin, self.size, self.root)?;
        match self.fork {
            Some(fork) => writeln!(f, "{FORK}{fork}"),
            None => Ok(()),
        }
    }
}

impl FromStr for TreeHead {
    type Err = NoteFault;

    /// Lines after the third are extensions. All are signed; ours alone is read.
    fn from_str(text: &str) -> Result<TreeHead, NoteFault> {
        let text = text.strip_suffix('\n').ok_or(NoteFault::Checkpoint)?;
        let mut lines = text.split('\n');
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next())
        else {
            return Err(NoteFault::Checkpoint);
        };
        let mut fork = None;
        for line in lines {
            // Lines after the third are extensions. Those that are not known here are
            // skipped.
            if line.is_empty() {
                return Err(NoteFault::Checkpoint);
            }
            if let Some(size) = line.strip_prefix(FORK) {
                fork = Some(number(size)?);
            }
        }
        if !is_name(origin) {
            return Err(NoteFault::Checkpoint);
        }
        Ok(TreeHead {
            origin: origin.to_owned(),
            size: number(size)?,
            root: root.parse().map_err(|_| NoteFault::Checkpoint)?,
            fork,
        })
    }
}

/// A number as the format writes it: digits, without zeros in front.
fn number(text: &str) -> Result<u64, NoteFault> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = text == "0" || !text.starts_with('0');
    match is_number && is_short {
        true => text.parse().map_err(|_| NoteFault::Checkpoint),
        false => Err(NoteFault::Checkpoint),
    }
}

#[cfg(test)]
mod tests;
