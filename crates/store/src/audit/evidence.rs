//! Evidence about the log that lasts when the log itself is changed: the hashes of a
//! Merkle tree over its records, and heads that the key of this home signed over it.
//!
//! A thread of its own computes and signs, behind the index, from records that are on
//! the disk. No call waits for it.

/// Heads of other logs that contradict what was seen of them.
pub(crate) mod conflicts;
/// Heads in the order they were signed.
pub(crate) mod head_file;
/// The key that signs.
pub(crate) mod key;
/// Verifying the logs of several nodes together.
pub(crate) mod nodes;
/// Verifying a log that was exported.
pub(crate) mod offline;
/// Proofs about single records.
pub(crate) mod prove;
/// Heads of this log that others have, held against it.
pub(crate) mod published;
/// The newest head, remembered in the database.
pub(crate) mod remembered;
/// Who signs, and when.
pub(crate) mod signer;
/// The hashes of the tree.
pub(crate) mod tree_file;
