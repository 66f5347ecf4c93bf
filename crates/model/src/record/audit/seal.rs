//! The seal of an export: its last line, a note that the key of the log signed over every
//! line before it. An export that lost lines, at its end or anywhere else, does not fit
//! its seal, or has none.
//!
//! The first line of the note is not the name of a log, and its hash is not written as that
//! of a head, so a seal is never taken for a head.

use sha2::{Digest as _, Sha256};

use crate::record::audit::chain::ChainHash;
use crate::record::audit::proof::ExportedLine;
use crate::record::note::{CheckSignature, NoteKey, SignedNote};

/// Why an export is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealFault {
    /// The last line is missing.
    #[error("the export does not end with its seal: its end was cut off")]
    Missing,
    /// Another key sealed it, or the seal was changed.
    #[error("the seal of the export is not signed by the key of the log")]
    Signature,
    /// The lines are others than those that were sealed.
    #[error("the export has {found} lines that do not fit its seal over {sealed} lines")]
    Lines {
        /// The lines that are there.
        found: u64,
        /// The lines that were sealed.
        sealed: u64,
    },
}

/// The lines of an export so far.
#[derive(Clone, Debug, Default)]
pub struct ExportSeal {
    hasher: Sha256,
    lines: u64,
    has_ended: bool,
}

impl ExportSeal {
    /// Takes the next line. A record stands for its hash, which covers its body.
    pub fn add(&mut self, line: &ExportedLine) {
        if self.has_ended {
            // Nothing stands behind a seal, so no seal fits this.
            self.hasher.update(b"behind\n");
        }
        match line {
            ExportedLine::Log(log) => {
                self.hasher.update(b"log\n");
                self.hasher.update(log.head.as_bytes());
                let (size, root) = (log.removed.size(), log.removed.root());
                self.hasher
                    .update(format!("{}\n{size}\n{root}\n", log.whole));
            }
            ExportedLine::Record(record, _) => {
                self.hasher.update(b"record\n");
                self.hasher.update(record.hash.bytes());
            }
            ExportedLine::Head(note) => {
                self.hasher.update(b"head\n");
                self.hasher.update(note.as_bytes());
            }
            ExportedLine::End(_) if !self.has_ended => {
                self.has_ended = true;
                return;
            }
            ExportedLine::End(_) => {}
        }
        self.lines += 1;
    }

    /// What is signed, for the log of a name.
    #[must_use]
    pub fn text(&self, name: &str, at_ms: i64) -> String {
        let digest = ChainHash::from_bytes(self.hasher.clone().finalize().into());
        // In hexadecimal, where a head has base64: neither can be read as the other.
        format!("{name}/export\n{}\n{digest}\n{at_ms}\n", self.lines)
    }

    /// Holds the lines against the seal that was found. Gives back when it was made, in
    /// milliseconds since 1970.
    pub fn check(
        &self,
        seal: Option<&str>,
        key: &NoteKey,
        sound: CheckSignature<'_>,
    ) -> Result<i64, SealFault> {
        let seal = seal.ok_or(SealFault::Missing)?;
        let seal: SignedNote = seal.parse().map_err(|_| SealFault::Signature)?;
        if !key.has_signed(&seal, sound) {
            return Err(SealFault::Signature);
        }
        let mut lines = seal.text().lines().skip(1);
        // For the message only. What decides is whether the same text comes out.
        let sealed = lines.next().and_then(|it| it.parse().ok()).unwrap_or(0);
        let at_ms = lines.nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
        match self.text(key.name(), at_ms) == seal.text() {
            true => Ok(at_ms),
            false => Err(SealFault::Lines {
                found: self.lines,
                sealed,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::note::{NoteKeyKind, NoteSignature, TreeHead};

    /// Stands in for Ed25519: a message is signed by its own length.
    fn by_length(_: &[u8; 32], message: &[u8], signature: &[u8]) -> bool {
        signature == message.len().to_be_bytes()
    }

    fn seal(heads: &[&str]) -> ExportSeal {
        let mut seal = ExportSeal::default();
        for head in heads {
            seal.add(&ExportedLine::Head((*head).to_owned()));
        }
        seal
    }

    #[test]
    fn a_seal_fits_its_own_lines_alone() {
        let key = NoteKey::new("log", NoteKeyKind::Log, [1; 32]).expect("a name");
        let text = seal(&["a", "b"]).text("log", 7);
        let bytes = text.len().to_be_bytes().to_vec();
        let note = SignedNote::new(text, NoteSignature::by(&key, bytes));
        assert!(note.text().parse::<TreeHead>().is_err(), "no head");
        let note = note.to_string();
        let check = |heads: &[&str], note: Option<&str>| seal(heads).check(note, &key, &by_length);
        assert_eq!(check(&["a", "b"], Some(&note)), Ok(7));
        assert_eq!(check(&["a", "b"], None), Err(SealFault::Missing));
        for heads in [&["a"][..], &["b", "a"], &["a", "b", "b"], &[]] {
            let found = u64::try_from(heads.len()).expect("small");
            let sealed = 2;
            let fault = SealFault::Lines { found, sealed };
            assert_eq!(check(heads, Some(&note)), Err(fault), "{heads:?}");
        }
        // A second seal is none, whichever of the two fits.
        let mut twice = seal(&["a", "b"]);
        twice.add(&ExportedLine::End("another".to_owned()));
        twice.add(&ExportedLine::End(note.clone()));
        let fault = SealFault::Lines {
            found: 3,
            sealed: 2,
        };
        assert_eq!(twice.check(Some(&note), &key, &by_length), Err(fault));
        let other = note.replace("\n7\n", "\n70\n");
        assert_eq!(check(&["a", "b"], Some(&other)), Err(SealFault::Signature));
    }
}
