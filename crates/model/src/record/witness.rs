//! A witness remembers the newest head of other people's logs and cosigns a newer one
//! only if that log begins with what it saw before, by C2SP `tlog-witness`. A log that
//! was rolled back or forked finds no cosignature any more.

use std::fmt;
use std::str::FromStr;

use crate::limits;
use crate::record::note::{CheckSignature, NoteKey, SignedNote, TreeHead};
use crate::record::tree::{TreeHash, shows_another_past, shows_consistency};

/// The request of a log to a witness: cosign a head that extends one of `old` records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessRequest {
    /// The records the witness is thought to have seen.
    pub old: u64,
    /// Shows that the head extends them.
    pub hashes: Vec<TreeHash>,
    /// The head.
    pub note: SignedNote,
}

/// Why a witness does not cosign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WitnessRefusal {
    /// The request cannot be read.
    #[error("the request is not `old SIZE`, hashes, an empty line and a signed checkpoint")]
    Malformed,
    /// The witness does not know this log.
    #[error("this witness does not know the log")]
    UnknownLog,
    /// The head is not signed by the log's key.
    #[error("the checkpoint is not signed by the key this witness knows")]
    Signature,
    /// The witness saw another number of records.
    #[error("this witness saw {0} records")]
    Conflict(u64),
    /// The log does not extend the head the witness saw.
    #[error("the log does not begin with what this witness saw")]
    Fork,
}

/// How a head that a log signed contradicts the head that a witness saw before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeadConflict {
    /// It does not extend what was seen: the log went on differently.
    Forked,
    /// It covers fewer records: the log was rolled back, or an old head is shown again.
    RolledBack,
}

impl HeadConflict {
    /// How two signed heads of one log contradict each other; `shown` was refused as an
    /// extension of `seen`.
    #[must_use]
    pub fn between(seen: &TreeHead, shown: &TreeHead) -> HeadConflict {
        match shown.size < seen.size {
            true => HeadConflict::RolledBack,
            false => HeadConflict::Forked,
        }
    }
}

impl FromStr for WitnessRequest {
    type Err = WitnessRefusal;

    fn from_str(text: &str) -> Result<WitnessRequest, WitnessRefusal> {
        if text.len() > limits::NOTE_BYTES_MAX {
            return Err(WitnessRefusal::Malformed);
        }
        let (head, note) = text.split_once("\n\n").ok_or(WitnessRefusal::Malformed)?;
        let mut lines = head.split('\n');
        let old = lines.next().and_then(|line| line.strip_prefix("old "));
        let old = old.filter(|old| old.bytes().all(|byte| byte.is_ascii_digit()));
        let old = old.and_then(|old| old.parse().ok());
        let hashes: Result<Vec<TreeHash>, _> = lines.map(str::parse).collect();
        match (old, hashes, note.parse()) {
            (Some(old), Ok(hashes), Ok(note)) if hashes.len() <= limits::PROOF_HASHES_MAX => {
                Ok(WitnessRequest { old, hashes, note })
            }
            (_, _, _) => Err(WitnessRefusal::Malformed),
        }
    }
}

impl fmt::Display for WitnessRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "old {}", self.old)?;
        for hash in &self.hashes {
            writeln!(f, "{hash}")?;
        }
        write!(f, "\n{}", self.note)
    }
}

impl WitnessRequest {
    /// Whether a witness may cosign: the log must be known, the head signed by its key,
    /// and an extension of what was seen, `seen`, the size and hash of the newest head.
    pub fn judge(
        &self,
        keys: &[NoteKey],
        seen: impl FnOnce(&str) -> Option<(u64, TreeHash)>,
        sound: CheckSignature<'_>,
    ) -> Result<TreeHead, WitnessRefusal> {
        let head = self.note.head().map_err(|_| WitnessRefusal::Malformed)?;
        let key = keys.iter().find(|key| key.name() == head.origin);
        let key = key.ok_or(WitnessRefusal::UnknownLog)?;
        if !key.has_signed(&self.note, sound) {
            return Err(WitnessRefusal::Signature);
        }
        if self.old > head.size {
            return Err(WitnessRefusal::Malformed);
        }
        // A log that was never seen begins with nothing.
        let (size, root) = seen(&head.origin).unwrap_or((0, TreeHash::empty()));
        if self.old != size {
            return Err(WitnessRefusal::Conflict(size));
        }
        match shows_consistency(size, &root, head.size, &head.root, &self.hashes) {
            true => Ok(head),
            false => Err(WitnessRefusal::Fork),
        }
    }

    /// How the head contradicts the one that was seen of its log, if that is shown by what the
    /// log signed. Other refusals say nothing about the log: its key may not have signed the
    /// head, or the proof, which nobody signs, is no proof.
    #[must_use]
    pub fn conflict(&self, refusal: WitnessRefusal, seen: &TreeHead) -> Option<HeadConflict> {
        let shown = self.note.head().ok()?;
        let is_other =
            shown.size < seen.size || (shown.size == seen.size && shown.root != seen.root);
        let is_conflict = match refusal {
            // Attack: a sound head, which is public, with a proof that anyone made up.
            WitnessRefusal::Fork => {
                let (size, root) = (seen.size, &seen.root);
                is_other || shows_another_past(size, root, shown.size, &shown.root, &self.hashes)
            }
            // Only a wrong guess of what was seen, unless the head itself says more.
            WitnessRefusal::Conflict(_) => is_other,
            WitnessRefusal::Malformed | WitnessRefusal::UnknownLog | WitnessRefusal::Signature => {
                false
            }
        };
        is_conflict.then(|| HeadConflict::between(seen, &shown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::note::{NoteKeyKind, NoteSignature};
    use crate::record::tree::Frontier;

    /// Stands in for Ed25519: a message is signed by its own length.
    fn by_length(_: &[u8; 32], message: &[u8], signature: &[u8]) -> bool {
        signature == message.len().to_be_bytes()
    }

    fn key() -> NoteKey {
        NoteKey::new("log", NoteKeyKind::Log, [1; 32]).expect("a name")
    }

    /// A log of so many leaves, and a request to cosign it.
    fn request(old: u64, leaves: &[&str], hashes: Vec<TreeHash>) -> WitnessRequest {
        let mut tree = Frontier::default();
        for leaf in leaves {
            tree.push(TreeHash::leaf(leaf.as_bytes()));
        }
        let head = TreeHead {
            origin: "log".to_owned(),
            size: tree.size(),
            root: tree.root(),
            fork: None,
        };
        let text = head.to_string();
        let signature = NoteSignature::by(&key(), text.len().to_be_bytes().to_vec());
        WitnessRequest {
            old,
            hashes,
            note: SignedNote::new(text, signature),
        }
    }

    fn seen(leaves: &[&str]) -> Option<(u64, TreeHash)> {
        let mut tree = Frontier::default();
        for leaf in leaves {
            tree.push(TreeHash::leaf(leaf.as_bytes()));
        }
        Some((tree.size(), tree.root()))
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let hash = TreeHash::leaf(b"b");
        for request in [
            request(1, &["a", "b"], vec![hash]),
            request(0, &["a"], Vec::new()),
        ] {
            assert_eq!(request.to_string().parse(), Ok(request));
        }
        let sound = request(1, &["a", "b"], vec![hash]).to_string();
        for bad in [
            String::new(),
            sound.replace("old 1", "old -1"),
            sound.replace("old 1", "1"),
            sound.replace("old 1\n", "old 1\nnothing\n"),
            sound.replace(
                "old 1\n",
                &format!("old 1\n{}", format!("{hash}\n").repeat(100)),
            ),
        ] {
            let read = bad.parse::<WitnessRequest>();
            assert_eq!(read, Err(WitnessRefusal::Malformed), "{bad}");
        }
    }

    #[test]
    fn only_growth_is_cosigned() {
        let keys = [key()];
        let judge = |request: &WitnessRequest, known: Option<(u64, TreeHash)>| {
            let judged = request.judge(&keys, |_| known, &by_length);
            judged.map(|head| head.size)
        };
        let second = TreeHash::leaf(b"b");
        let first = request(0, &["a"], Vec::new());
        let grown = request(1, &["a", "b"], vec![second]);
        assert_eq!(judge(&first, None), Ok(1));
        assert_eq!(judge(&grown, seen(&["a"])), Ok(2));
        // The same again is no change.
        let again = request(2, &["a", "b"], Vec::new());
        assert_eq!(judge(&again, seen(&["a", "b"])), Ok(2));
        // Rolled back.
        assert_eq!(
            judge(&first, seen(&["a", "b"])),
            Err(WitnessRefusal::Conflict(2))
        );
        let back = request(2, &["a"], Vec::new());
        assert_eq!(
            judge(&back, seen(&["a", "b"])),
            Err(WitnessRefusal::Malformed)
        );
        // Forked.
        let forked = request(1, &["x", "b"], vec![second]);
        assert_eq!(judge(&forked, seen(&["a"])), Err(WitnessRefusal::Fork));
        let swapped = request(2, &["x", "b"], Vec::new());
        assert_eq!(
            judge(&swapped, seen(&["a", "b"])),
            Err(WitnessRefusal::Fork)
        );
    }

    #[test]
    fn a_refusal_tells_whether_the_log_contradicts_itself() {
        let head = |leaves: &[&str]| request(0, leaves, Vec::new()).note.head().expect("a head");
        let conflict = |request: &WitnessRequest, refusal, known: &[&str]| {
            request.conflict(refusal, &head(known))
        };
        let leaf = |text: &str| TreeHash::leaf(text.as_bytes());
        // A real proof of growth, from three leaves of which one is another.
        let start = TreeHash::node(&leaf("a"), &leaf("x"));
        let proof = vec![leaf("c"), leaf("d"), start];
        let forked = request(3, &["a", "x", "c", "d"], proof.clone());
        let (fork, other) = (WitnessRefusal::Fork, WitnessRefusal::Conflict(2));
        let seen = ["a", "b", "c"];
        assert_eq!(conflict(&forked, fork, &seen), Some(HeadConflict::Forked));
        let as_long = request(3, &["a", "x", "c"], Vec::new());
        for refusal in [fork, other] {
            let conflict = conflict(&as_long, refusal, &seen);
            assert_eq!(conflict, Some(HeadConflict::Forked));
        }
        // Attack: a head of an honest log with a proof that is none, by someone without its key.
        for made_up in [vec![leaf("z")], proof, Vec::new()] {
            for (old, leaves) in [(3, &["a", "b", "c"][..]), (3, &["a", "b", "c", "d"])] {
                let shown = request(old, leaves, made_up.clone());
                assert_eq!(conflict(&shown, fork, &seen), None, "{leaves:?}");
            }
        }
        // The hash of the old tree is in no proof: nothing is shown, and nothing cosigned.
        let grown = request(2, &["a", "x", "c"], vec![leaf("c")]);
        assert_eq!(conflict(&grown, fork, &["a", "b"]), None);
        let back = request(0, &["a"], Vec::new());
        assert_eq!(
            conflict(&back, other, &["a", "b"]),
            Some(HeadConflict::RolledBack)
        );
        // A log that has forgotten what it showed asks again, with the number it is told.
        let again = request(0, &["a", "b"], Vec::new());
        assert_eq!(conflict(&again, other, &["a", "b"]), None);
        let grown = request(0, &["a", "b", "c"], Vec::new());
        assert_eq!(conflict(&grown, other, &["a", "b"]), None);
        // Without the signature of the log, a head says nothing about it.
        for refusal in [
            WitnessRefusal::Malformed,
            WitnessRefusal::UnknownLog,
            WitnessRefusal::Signature,
        ] {
            assert_eq!(conflict(&back, refusal, &["a", "b"]), None);
        }
    }

    #[test]
    fn unknown_logs_and_wrong_signatures_are_refused() {
        let first = request(0, &["a"], Vec::new());
        let judge = |keys: &[NoteKey], sound: CheckSignature<'_>| {
            first.judge(keys, |_| None, sound).map(|head| head.size)
        };
        assert_eq!(judge(&[key()], &by_length), Ok(1));
        assert_eq!(judge(&[], &by_length), Err(WitnessRefusal::UnknownLog));
        let other = NoteKey::new("log", NoteKeyKind::Log, [2; 32]).expect("a name");
        assert_eq!(judge(&[other], &by_length), Err(WitnessRefusal::Signature));
        let never: CheckSignature<'_> = &|_, _, _| false;
        assert_eq!(judge(&[key()], never), Err(WitnessRefusal::Signature));
    }
}
