//! Proofs about single records, and about growth: everything a person needs to check
//! them is the public key.

use std::path::Path;

use model::record::audit::chain::Record;
use model::record::audit::proof::{GrowthProof, RecordProof, check_record, signed_head};
use model::record::note::{NoteKey, SignedNote, TreeHead};
use model::record::tree::{TreeHash, prove_consistency, prove_inclusion, root};

use crate::audit::evidence::head_file;
use crate::audit::evidence::key::is_sound;
use crate::audit::evidence::signer::unsigned;
use crate::audit::evidence::tree_file::TreeHashes;
use crate::error::StoreError;

/// The newest head and the tree below it, at one moment.
#[derive(Debug)]
pub(crate) struct Prover {
    tree: TreeHashes,
    note: SignedNote,
    head: TreeHead,
}

impl Prover {
    /// Opens the evidence of a folder.
    pub(crate) fn open(folder: &Path) -> Result<Prover, StoreError> {
        // Shared with other readers. A head that is signed in between would not fit the
        // tree read after it.
        let _lock = head_file::read_lock(folder)?;
        let note = head_file::last(folder)?;
        let note = note.ok_or_else(|| unsigned("no head was signed yet".to_owned()))?;
        let head = note.head();
        let head = head.map_err(|_| unsigned("the newest head cannot be read".to_owned()))?;
        let tree = TreeHashes::find(folder)?;
        let tree = tree.ok_or_else(|| unsigned("the tree is missing".to_owned()))?;
        if root(&tree, head.size)? != head.root {
            return Err(unsigned("the tree does not fit the newest head".to_owned()));
        }
        Ok(Prover { tree, note, head })
    }

    /// The newest head.
    pub(crate) fn note(&self) -> &SignedNote {
        &self.note
    }

    /// The records it covers.
    pub(crate) fn size(&self) -> u64 {
        self.head.size
    }

    /// The hashes below the head.
    pub(crate) fn tree(&self) -> &TreeHashes {
        &self.tree
    }

    /// The hashes that lead from a record to the newest head.
    pub(crate) fn hashes(&self, record: &Record) -> Result<Vec<TreeHash>, StoreError> {
        let sequence = record.sequence;
        let index = sequence.saturating_sub(1);
        let hashes = prove_inclusion(&self.tree, index, self.head.size)?;
        let hashes = hashes.ok_or_else(|| {
            unsigned(format!(
                "record {sequence} is newer than the newest head, which is signed within \
                 {} seconds",
                crate::limit::SIGN_MS_MAX / 1_000
            ))
        })?;
        // A proof that shows nothing must not leave the house.
        let checked = check_record(record, &hashes, &self.head);
        checked.map_err(|fault| unsigned(fault.to_string()))?;
        Ok(hashes)
    }

    /// A proof that a record is among those that were signed.
    pub(crate) fn record(&self, record: Record) -> Result<RecordProof, StoreError> {
        Ok(RecordProof {
            hashes: self.hashes(&record)?,
            record,
            head: self.note.to_string(),
        })
    }

    /// A proof that the log begins with what an earlier head covers.
    pub(crate) fn growth(
        &self,
        from: &SignedNote,
        key: &NoteKey,
    ) -> Result<GrowthProof, StoreError> {
        let old = signed_head(&from.to_string(), key, &is_sound);
        let old = old.map_err(|fault| unsigned(fault.to_string()))?;
        let hashes = self.growth_hashes(old.size)?;
        let proof = GrowthProof {
            from: from.to_string(),
            hashes,
            head: self.note.to_string(),
        };
        let checked = proof.check(key, &is_sound);
        checked.map_err(|fault| unsigned(fault.to_string()))?;
        Ok(proof)
    }

    /// The hashes that show that the log begins with its first `old` records.
    pub(crate) fn growth_hashes(&self, old: u64) -> Result<Vec<TreeHash>, StoreError> {
        let hashes = prove_consistency(&self.tree, old, self.head.size)?;
        hashes.ok_or_else(|| {
            unsigned(format!(
                "the newest head covers {} records, fewer than {old}",
                self.head.size
            ))
        })
    }
}
