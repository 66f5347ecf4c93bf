//! Checks a log against the heads that were signed over it. A chain that was cut,
//! rewritten or rolled back is consistent in itself, but lacks the hashes that were
//! signed before.
//!
//! The check sees the same records as the walk, in the same order, and computes the
//! tree over them. After a cut that the owner acknowledged, a head says from which size
//! on earlier heads count no more.

use std::collections::BTreeSet;

use crate::record::audit::chain::{Body, Ending, Record};
use crate::record::audit::{Act, Notice};
use crate::record::note::TreeHead;
use crate::record::tree::{Frontier, TreeHash};

/// Where a head comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadSource {
    /// It is kept beside the log, in the order it was signed.
    Kept,
    /// A person keeps it elsewhere and brings it.
    Given,
}

/// A check under way.
#[derive(Debug)]
pub struct HeadCheck {
    heads: Vec<(TreeHead, HeadSource)>,
    /// Heads that are yet to be reached, the smallest last.
    waiting: Vec<usize>,
    tree: Frontier,
    /// Removed records; acknowledgements among them are not visible.
    removed: u64,
    /// Sizes whose hash is the signed one.
    matched: BTreeSet<u64>,
    /// Heads whose hash is another.
    wrong: Vec<usize>,
    /// Notices about a cut, by id and place.
    cuts: Vec<(String, u64)>,
    /// Places of those that the owner acknowledged.
    acknowledged: Vec<u64>,
}

/// The first contradiction between a log and its heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadFault {
    /// The first record that may be wrong.
    pub sequence: u64,
    /// What is wrong.
    pub what: String,
}

impl HeadCheck {
    /// Starts a check. `start` is the tree over the records that were removed. A head
    /// over fewer records is held against `removed_root`, which gives the hash over so
    /// many of them.
    pub fn new<E>(
        heads: Vec<(TreeHead, HeadSource)>,
        start: Frontier,
        removed_root: impl Fn(u64) -> Result<TreeHash, E>,
    ) -> Result<HeadCheck, E> {
        let mut waiting: Vec<usize> = (0..heads.len()).collect();
        waiting.sort_by_key(|index| std::cmp::Reverse(size_of(&heads, *index)));
        let mut check = HeadCheck {
            heads,
            waiting,
            removed: start.size(),
            tree: start,
            matched: BTreeSet::new(),
            wrong: Vec::new(),
            cuts: Vec::new(),
            acknowledged: Vec::new(),
        };
        while let Some(index) = check.next_within(check.tree.size()) {
            let size = size_of(&check.heads, index);
            let root = removed_root(size)?;
            check.compare(index, &root);
        }
        Ok(check)
    }

    /// Takes the next record of the chain; records that a removal kept are not part of
    /// this.
    pub fn step(&mut self, record: &Record, body: &Body<Ending>) {
        self.tree.push(TreeHash::record(&record.hash));
        // The root costs a hash for each level, so it is made only where a head waits.
        if self.has_reached() {
            let root = self.tree.root();
            while let Some(index) = self.next_within(self.tree.size()) {
                self.compare(index, &root);
            }
        }
        match body {
            Body::Notice(notice) => self.note(record.sequence, notice),
            Body::Open(_) | Body::Close(_) | Body::Checkpoint(_) | Body::Anchor(_) => {}
        }
    }

    /// The records that the newest fitting head covers.
    #[must_use]
    pub fn signed(&self) -> u64 {
        self.matched.last().copied().unwrap_or(0)
    }

    /// The hash over all records so far.
    #[must_use]
    pub fn tree(&self) -> &Frontier {
        &self.tree
    }

    /// The first contradiction, once all records were seen.
    #[must_use]
    pub fn finish(self) -> Option<HeadFault> {
        if let Some(fault) = self.disorder() {
            return Some(fault);
        }
        let end = self.tree.size();
        let mut contradicting: Vec<usize> = self.wrong.clone();
        contradicting.extend(self.waiting.iter().rev());
        contradicting.sort_by_key(|index| size_of(&self.heads, *index));
        let first = contradicting
            .into_iter()
            .find(|index| !self.is_void(*index))?;
        let (head, source) = self.heads.get(first)?;
        let size = head.size;
        if size > end {
            let what = match source {
                HeadSource::Kept => format!(
                    "the log ends with record {end}, but a head over {size} records was signed"
                ),
                HeadSource::Given => format!(
                    "the log ends with record {end}, but the given checkpoint covers {size} records"
                ),
            };
            let sequence = end.saturating_add(1);
            return Some(HeadFault { sequence, what });
        }
        // The last head that fits bounds the damage: the records up to it are sound.
        let sound = self.matched.range(..size).next_back().copied();
        let begin = sound.unwrap_or(0).saturating_add(1);
        let whose = match source {
            HeadSource::Kept => "that were signed",
            HeadSource::Given => "of the given checkpoint",
        };
        Some(HeadFault {
            sequence: begin,
            what: format!("records {begin} to {size} are not those {whose}"),
        })
    }

    fn has_reached(&self) -> bool {
        let next = self.waiting.last();
        next.is_some_and(|index| size_of(&self.heads, *index) <= self.tree.size())
    }

    fn next_within(&mut self, size: u64) -> Option<usize> {
        let next = *self.waiting.last()?;
        match size_of(&self.heads, next) <= size {
            true => self.waiting.pop(),
            false => None,
        }
    }

    fn compare(&mut self, index: usize, root: &TreeHash) {
        match self.heads.get(index) {
            Some((head, _)) if head.root == *root => {
                self.matched.insert(head.size);
            }
            Some(_) | None => self.wrong.push(index),
        }
    }

    fn note(&mut self, sequence: u64, notice: &Notice) {
        match notice.act {
            Act::AuditCut => self.cuts.push((notice.id.clone(), sequence)),
            Act::AuditCutAcknowledged => {
                let about = notice.about.as_ref();
                let cuts = self.cuts.iter().filter(|(id, _)| about == Some(id));
                self.acknowledged.extend(cuts.map(|(_, place)| *place));
            }
            // Other notices do not concern the log.
            _ => {}
        }
    }

    /// Whether a kept head is void: a later one declares a fork before it, and the
    /// owner acknowledged the cut.
    fn is_void(&self, index: usize) -> bool {
        let Some((head, HeadSource::Kept)) = self.heads.get(index) else {
            return false;
        };
        // Only what the cut removed: a head of what was there before it must still hold, or
        // a forged cut at the end would excuse any change.
        let is_removed = |cut: &u64| head.size >= *cut && self.is_pending(*cut);
        if self.acknowledged.iter().any(is_removed) {
            return true;
        }
        let later = self.kept().filter(|(later, _)| *later > index);
        let mut forks = later.filter_map(|(_, it)| Some((it.fork?, it.size)));
        forks.any(|(fork, size)| head.size > fork && self.may_fork(fork, size))
    }

    /// Whether no head was signed yet since a cut was acknowledged.
    fn is_pending(&self, cut: u64) -> bool {
        !self.kept().any(|(_, head)| match head.fork {
            Some(fork) => (fork + 1..=head.size).contains(&cut),
            None => false,
        })
    }

    /// Whether the chain has an acknowledged cut between a fork and the head that
    /// declares it.
    fn may_fork(&self, fork: u64, size: u64) -> bool {
        let mut cuts = self.acknowledged.iter();
        // The acknowledgement itself may be among the removed records.
        fork < self.removed || cuts.any(|cut| (fork + 1..=size).contains(cut))
    }

    /// The first head with an impossible order or fork.
    fn disorder(&self) -> Option<HeadFault> {
        let mut before: Option<u64> = None;
        for (_, head) in self.kept() {
            let size = head.size;
            match (head.fork, before) {
                (Some(fork), _) if !self.may_fork(fork, size) => {
                    return Some(HeadFault {
                        sequence: fork.saturating_add(1),
                        what: format!(
                            "the head over {size} records forks after record {fork}, and no \
                             acknowledged cut says why"
                        ),
                    });
                }
                (None, Some(before)) if size < before => {
                    return Some(HeadFault {
                        sequence: size.saturating_add(1),
                        what: format!(
                            "the head over {size} records was signed after one over {before}: \
                             the log was rolled back"
                        ),
                    });
                }
                (Some(_) | None, _) => before = Some(size),
            }
        }
        None
    }

    fn kept(&self) -> impl Iterator<Item = (usize, &TreeHead)> {
        let heads = self.heads.iter().enumerate();
        heads.filter_map(|(index, (head, source))| match source {
            HeadSource::Kept => Some((index, head)),
            HeadSource::Given => None,
        })
    }
}

fn size_of(heads: &[(TreeHead, HeadSource)], index: usize) -> u64 {
    heads.get(index).map_or(0, |(head, _)| head.size)
}

#[cfg(test)]
mod tests;
