//! Anchors: heads of other logs, written into this one. Once a node's head stands in the
//! chain of another, that node's past cannot be rewritten and its end cannot be cut
//! without contradicting it, even by a person with its key.
//!
//! This module decides which heads are worth a record, and when. Heads come from outside,
//! so each is believed only with the signature of a key the operator named.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::record::note::{CheckSignature, NoteKey, SignedNote, TreeHead};
use crate::text::{elided, one_line};

/// Heads of other logs, as they were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Anchor {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// The newest signed head of each log, by name.
    pub heads: Vec<String>,
}

/// How often heads of other logs are anchored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnchorPace {
    /// At the latest after so many milliseconds.
    pub every_ms: u64,
    /// Or after so many records, in this log or another.
    pub records: u64,
}

/// What this node anchored, and what is worth anchoring next.
#[derive(Debug, Default)]
pub struct AnchorPlan {
    /// The newest head of each log that was anchored.
    anchored: BTreeMap<String, TreeHead>,
    /// When the last anchor was written.
    at_ms: Option<i64>,
    /// Where the last anchor stands in this log.
    place: u64,
}

/// What this node knows of other logs as their witness.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WitnessedLogs {
    /// The newest head of each log, shown to extend every one before it.
    pub heads: Vec<SignedNote>,
    /// The names of logs that signed a head which does not extend what was seen. Of these,
    /// a head from elsewhere counts for nothing: it may continue the fork.
    pub forked: BTreeSet<String>,
}

/// What the heads that were seen amount to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sighting {
    /// Heads that are newer than the anchored ones, by the name of their log.
    pub news: BTreeMap<String, SignedNote>,
    /// Records that they cover beyond the anchored ones.
    pub grown: u64,
    /// Heads that cannot be: forged, forked, or older than what was anchored.
    pub faults: Vec<String>,
}

impl AnchorPlan {
    /// Holds heads against the keys of their logs, what was witnessed and what was anchored
    /// before. Heads of logs without a key are ignored.
    #[must_use]
    pub fn look(
        &self,
        notes: &[SignedNote],
        witnessed: &WitnessedLogs,
        keys: &[NoteKey],
        sound: CheckSignature<'_>,
    ) -> Sighting {
        let mut sighting = Sighting::default();
        let mut newest: BTreeMap<String, (TreeHead, &SignedNote)> = BTreeMap::new();
        // Those first: of two heads over one size, the one that was proved stays.
        let proved = witnessed.heads.iter().map(|note| (note, true));
        for (note, is_proved) in proved.chain(notes.iter().map(|note| (note, false))) {
            // Notes come from outside. What is no head says nothing about a log.
            let Ok(head) = note.head() else {
                continue;
            };
            let Some(key) = keys.iter().find(|key| key.name() == head.origin) else {
                continue;
            };
            let name = shown(&head.origin);
            if !key.has_signed(note, sound)
                || note.to_string().len() > limits::ANCHOR_NOTE_BYTES_MAX
            {
                let fault = format!("a head of `{name}` is not signed by its key");
                sighting.faults.push(fault);
                continue;
            }
            if let Some((known, _)) = newest.get(&head.origin) {
                if !is_proved && head.size > known.size && witnessed.forked.contains(&head.origin) {
                    sighting.faults.push(unproved(&head));
                    continue;
                }
                if differ(known, &head) {
                    sighting.faults.push(forked(&head));
                }
                if known.size >= head.size {
                    continue;
                }
            }
            newest.insert(head.origin.clone(), (head, note));
        }
        for (origin, (head, note)) in newest {
            let before = self.anchored.get(&origin);
            let known = before.map_or(0, |it| it.size);
            if before.is_some_and(|before| differ(before, &head)) {
                sighting.faults.push(forked(&head));
            } else if head.size < known {
                sighting.faults.push(format!(
                    "`{}` shows a head over {} records after one over {known}: its log was rolled \
                     back, or an old head is replayed",
                    shown(&origin),
                    head.size
                ));
            } else if head.size > known && sighting.news.len() < limits::ANCHOR_HEADS_MAX {
                sighting.grown = sighting.grown.saturating_add(head.size - known);
                sighting.news.insert(origin, note.clone());
            }
        }
        sighting
    }

    /// The anchor that is due; `end` is the last record of this log.
    ///
    /// A head that grew by one record may be nothing but an anchor of ours, so it waits:
    /// otherwise two idle nodes would anchor each other's anchors without an end.
    #[must_use]
    pub fn due(
        &self,
        sighting: &Sighting,
        now_ms: i64,
        end: u64,
        pace: AnchorPace,
    ) -> Option<Anchor> {
        let news = u64::try_from(sighting.news.len()).unwrap_or(u64::MAX);
        let own = end.saturating_sub(self.place);
        let elapsed = match self.at_ms {
            None => u64::MAX,
            // A clock that was set back counts as no time passed.
            Some(at_ms) => u64::try_from(now_ms.saturating_sub(at_ms)).unwrap_or(0),
        };
        let is_busy = sighting.grown > news || own > 0;
        let is_full = own >= pace.records || sighting.grown >= pace.records;
        let is_time = elapsed >= pace.every_ms || is_full;
        let is_due = (is_busy && is_time) || elapsed >= limits::ANCHOR_IDLE_MS_MAX;
        (is_due && news > 0).then(|| Anchor {
            at_ms: now_ms,
            heads: sighting.news.values().map(ToString::to_string).collect(),
        })
    }

    /// Remembers an anchor that was written, and where.
    pub fn note(&mut self, anchor: &Anchor, place: u64) {
        for (head, _) in heads(anchor) {
            self.anchored.insert(head.origin.clone(), head);
        }
        self.at_ms = Some(anchor.at_ms);
        self.place = place;
    }
}

/// The heads of an anchor that can be read, with the notes they stand in.
pub fn heads(anchor: &Anchor) -> impl Iterator<Item = (TreeHead, SignedNote)> {
    let notes = anchor.heads.iter().take(limits::ANCHOR_HEADS_MAX);
    notes.filter_map(|note| {
        let note: SignedNote = note.parse().ok()?;
        Some((note.head().ok()?, note))
    })
}

fn differ(one: &TreeHead, other: &TreeHead) -> bool {
    one.size == other.size && one.root != other.root
}

fn forked(head: &TreeHead) -> String {
    format!(
        "`{}` signed two different heads over {} records: its log was forked",
        shown(&head.origin),
        head.size
    )
}

fn unproved(head: &TreeHead) -> String {
    format!(
        "heads of `{}` are not anchored: it signed one that does not extend what this node saw, \
         and these may continue it",
        shown(&head.origin)
    )
}

fn shown(name: &str) -> String {
    elided(&one_line(name), 80)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::note::{NoteKeyKind, NoteSignature};
    use crate::record::tree::TreeHash;

    const PACE: AnchorPace = AnchorPace {
        every_ms: 10_000,
        records: 1_000,
    };

    /// Stands in for Ed25519: a message is signed by its own length.
    fn by_length(_: &[u8; 32], message: &[u8], signature: &[u8]) -> bool {
        signature == message.len().to_be_bytes()
    }

    fn key(name: &str) -> NoteKey {
        NoteKey::new(name, NoteKeyKind::Log, [1; 32]).expect("a name")
    }

    fn note(name: &str, size: u64, root: &str) -> SignedNote {
        let head = TreeHead {
            origin: name.to_owned(),
            size,
            root: TreeHash::leaf(root.as_bytes()),
            fork: None,
        };
        let text = head.to_string();
        let bytes = text.len().to_be_bytes().to_vec();
        SignedNote::new(text, NoteSignature::by(&key(name), bytes))
    }

    fn look(plan: &AnchorPlan, notes: &[SignedNote]) -> Sighting {
        look_beside(plan, &WitnessedLogs::default(), notes)
    }

    fn look_beside(plan: &AnchorPlan, witnessed: &WitnessedLogs, notes: &[SignedNote]) -> Sighting {
        plan.look(notes, witnessed, &[key("b"), key("c")], &by_length)
    }

    fn anchored(plan: &mut AnchorPlan, notes: &[SignedNote], now_ms: i64, end: u64) -> bool {
        let sighting = look(plan, notes);
        assert_eq!(sighting.faults, Vec::<String>::new());
        let due = plan.due(&sighting, now_ms, end, PACE);
        if let Some(anchor) = &due {
            plan.note(anchor, end + 1);
        }
        due.is_some()
    }

    #[test]
    fn heads_are_anchored_by_time_and_by_number() {
        let mut plan = AnchorPlan::default();
        assert!(anchored(&mut plan, &[note("b", 5, "x")], 0, 7), "the first");
        assert!(
            !anchored(&mut plan, &[note("b", 5, "x")], 60_000, 99),
            "no news"
        );
        assert!(
            !anchored(&mut plan, &[note("b", 9, "y")], 9_999, 8),
            "too soon"
        );
        assert!(
            anchored(&mut plan, &[note("b", 9, "y")], 10_000, 8),
            "in time"
        );
        assert!(
            anchored(&mut plan, &[note("b", 1_009, "z")], 10_001, 9),
            "many"
        );
        assert!(
            anchored(&mut plan, &[note("b", 1_010, "w")], 10_002, 1_010),
            "many here"
        );
    }

    #[test]
    fn idle_nodes_do_not_anchor_each_others_anchors_without_an_end() {
        let mut plan = AnchorPlan::default();
        assert!(anchored(
            &mut plan,
            &[note("b", 5, "x"), note("c", 5, "x")],
            0,
            7
        ));
        let news = [note("b", 6, "y"), note("c", 6, "y")];
        assert!(!anchored(&mut plan, &news, 10_000, 8));
        let idle = i64::try_from(limits::ANCHOR_IDLE_MS_MAX).expect("small");
        assert!(anchored(&mut plan, &news, idle, 8));
        // A call here or there is two records or more.
        assert!(anchored(&mut plan, &[note("b", 8, "z")], idle + 10_000, 9));
        assert!(anchored(&mut plan, &[note("c", 7, "z")], idle + 20_000, 12));
    }

    #[test]
    fn heads_that_cannot_be_are_named_and_not_anchored() {
        let mut plan = AnchorPlan::default();
        assert!(anchored(&mut plan, &[note("b", 5, "x")], 0, 7));
        let fault = |notes: &[SignedNote]| {
            let sighting = look(&plan, notes);
            assert!(sighting.news.is_empty(), "{sighting:?}");
            sighting.faults.join("; ")
        };
        assert!(fault(&[note("b", 4, "x")]).contains("an old head is replayed"));
        assert!(fault(&[note("b", 5, "y")]).contains("was forked"));
        let forged: SignedNote = note("b", 9, "x")
            .to_string()
            .replace("\n9\n", "\n90\n")
            .parse()
            .expect("a note");
        assert!(fault(&[forged]).contains("is not signed by its key"));
        // A log without a key is none of ours.
        assert_eq!(fault(&[note("d", 9, "x")]), "");
        // Two heads of one size, seen in two places.
        let both = look(&plan, &[note("b", 9, "x"), note("b", 9, "y")]);
        assert!(both.faults.join("").contains("was forked"), "{both:?}");
    }

    #[test]
    fn a_head_that_contradicts_what_was_witnessed_is_never_anchored() {
        let plan = AnchorPlan::default();
        let mut witnessed = WitnessedLogs {
            heads: vec![note("b", 9, "x")],
            forked: BTreeSet::new(),
        };
        // Over the same records: the one that was proved is taken, whatever else there is.
        let found = look_beside(&plan, &witnessed, &[note("b", 9, "y")]);
        assert_eq!(found.news["b"], note("b", 9, "x"));
        assert!(found.faults.join("").contains("was forked"), "{found:?}");
        // Longer ones count, because a node need not show itself to all.
        let found = look_beside(&plan, &witnessed, &[note("b", 12, "y"), note("c", 3, "z")]);
        assert_eq!(found.news["b"], note("b", 12, "y"));
        // But not after a fork was seen.
        witnessed.forked.insert("b".to_owned());
        let found = look_beside(&plan, &witnessed, &[note("b", 12, "y"), note("c", 3, "z")]);
        assert_eq!(found.news["b"], note("b", 9, "x"));
        assert_eq!(found.news["c"], note("c", 3, "z"));
        assert!(
            found
                .faults
                .join("")
                .contains("heads of `b` are not anchored"),
            "{found:?}"
        );
        // The way it grows with proofs is open.
        witnessed.heads.push(note("b", 14, "w"));
        let found = look_beside(&plan, &witnessed, &[]);
        assert_eq!(found.news["b"], note("b", 14, "w"));
    }
}
