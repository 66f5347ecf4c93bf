//! The Merkle tree over a log, by RFC 6962: one hash covers all records up to a size,
//! and a short proof shows that a record is among them, or that a longer log begins
//! with them.
//!
//! The tree does not know where hashes are kept. Proofs ask for the hashes of complete
//! subtrees, which never change once they are there.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::record::audit::chain::ChainHash;

/// A hash of the tree: of a leaf, of a subtree, or of the whole.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreeHash([u8; 32]);

impl TreeHash {
    /// The hash of a leaf: SHA-256 over a zero byte and the leaf.
    #[must_use]
    pub fn leaf(leaf: &[u8]) -> TreeHash {
        let mut hasher = Sha256::new();
        // The byte keeps leaves and nodes apart. Otherwise a node could be shown as a
        // leaf.
        hasher.update([0]);
        hasher.update(leaf);
        TreeHash(hasher.finalize().into())
    }

    /// The leaf of an audit record: its hash, which covers its body and everything
    /// before it.
    #[must_use]
    pub fn record(hash: &ChainHash) -> TreeHash {
        TreeHash::leaf(hash.bytes())
    }

    /// The hash over two subtrees: SHA-256 over a one byte and both hashes.
    #[must_use]
    pub fn node(left: &TreeHash, right: &TreeHash) -> TreeHash {
        let mut hasher = Sha256::new();
        hasher.update([1]);
        hasher.update(left.0);
        hasher.update(right.0);
        TreeHash(hasher.finalize().into())
    }

    /// The hash of a tree without leaves.
    #[must_use]
    pub fn empty() -> TreeHash {
        TreeHash(Sha256::digest([]).into())
    }

    /// From the bytes a store keeps.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> TreeHash {
        TreeHash(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for TreeHash {
    /// In base64, as signed heads and proofs write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for TreeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is no hash of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hash of a tree is 32 bytes in base64")]
pub struct NotATreeHash;

impl FromStr for TreeHash {
    type Err = NotATreeHash;

    fn from_str(text: &str) -> Result<TreeHash, NotATreeHash> {
        let bytes = STANDARD.decode(text).map_err(|_| NotATreeHash)?;
        bytes.try_into().map(TreeHash).map_err(|_| NotATreeHash)
    }
}

impl Serialize for TreeHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TreeHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TreeHash, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What is left of a prefix of the tree when only its hash is wanted, and it can still
/// grow: the hashes of its complete subtrees, the largest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frontier {
    size: u64,
    hashes: Vec<TreeHash>,
}

impl Frontier {
    /// The frontier of so many leaves; nothing if the number of hashes does not fit it.
    #[must_use]
    pub fn new(size: u64, hashes: Vec<TreeHash>) -> Option<Frontier> {
        let fits = u32::try_from(hashes.len()).is_ok_and(|count| count == size.count_ones());
        fits.then_some(Frontier { size, hashes })
    }

    /// The same, read from outside: whether its parts fit each other.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        u32::try_from(self.hashes.len()).is_ok_and(|count| count == self.size.count_ones())
    }

    /// How many leaves it covers.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf.
    pub fn push(&mut self, leaf: TreeHash) {
        let mut hash = leaf;
        // Each subtree of the same size as the new one is joined with it, as in a binary
        // counter.
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.hashes.pop() {
                hash = TreeHash::node(&left, &hash);
            }
        }
        self.hashes.push(hash);
        self.size += 1;
    }

    /// The hash over all leaves.
    #[must_use]
    pub fn root(&self) -> TreeHash {
        let mut hashes = self.hashes.iter().rev();
        let Some(last) = hashes.next() else {
            return TreeHash::empty();
        };
        hashes.fold(*last, |right, left| TreeHash::node(left, &right))
    }
}

/// Gives the hash of the complete subtree of 2^`level` leaves that begins with leaf
/// `index` · 2^`level`.
pub trait Subtrees {
    /// Why it cannot.
    type Fault;

    /// The hash of one complete subtree.
    fn subtree(&self, level: u32, index: u64) -> Result<TreeHash, Self::Fault>;
}

/// The frontier of the first `size` leaves.
pub fn frontier<S: Subtrees>(trees: &S, size: u64) -> Result<Frontier, S::Fault> {
    let mut hashes = Vec::new();
    let mut begin = 0;
    for level in (0..64).rev() {
        if size & (1 << level) != 0 {
            hashes.push(trees.subtree(level, begin >> level)?);
            begin += 1 << level;
        }
    }
    Ok(Frontier { size, hashes })
}

/// The hash over the first `size` leaves.
pub fn root<S: Subtrees>(trees: &S, size: u64) -> Result<TreeHash, S::Fault> {
    Ok(frontier(trees, size)?.root())
}

/// The hashes that lead from leaf `index` to the root of a tree of `size`, by RFC 6962
/// 2.1.1. Nothing if there is no such leaf.
pub fn prove_inclusion<S: Subtrees>(
    trees: &S,
    index: u64,
    size: u64,
) -> Result<Option<Vec<TreeHash>>, S::Fault> {
    if index >= size {
        return Ok(None);
    }
    let mut proof = Vec::new();
    let (mut begin, mut end) = (0, size);
    while end - begin > 1 {
        let split = begin + split(end - begin);
        if index < split {
            proof.push(range(trees, split, end)?);
            end = split;
        } else {
            proof.push(range(trees, begin, split)?);
            begin = split;
        }
    }
    proof.reverse();
    Ok(Some(proof))
}

/// The hashes that show that a tree of `size` begins with the tree of `old` leaves, by
/// RFC 6962 2.1.2. Nothing if it cannot.
pub fn prove_consistency<S: Subtrees>(
    trees: &S,
    old: u64,
    size: u64,
) -> Result<Option<Vec<TreeHash>>, S::Fault> {
    if old > size {
        return Ok(None);
    }
    let mut proof = Vec::new();
    if old == 0 || old == size {
        return Ok(Some(proof));
    }
    let (mut begin, mut end) = (0, size);
    // Whether the part that is left is the whole old tree, which the verifier has.
    let mut is_whole = true;
    while end != old {
        let split = begin + split(end - begin);
        if old <= split {
            proof.push(range(trees, split, end)?);
            end = split;
        } else {
            proof.push(range(trees, begin, split)?);
            begin = split;
            is_whole = false;
        }
    }
    if !is_whole {
        proof.push(range(trees, begin, end)?);
    }
    proof.reverse();
    Ok(Some(proof))
}

/// Whether a proof leads from a leaf to a root, by RFC 9162 2.1.3.2.
#[must_use]
pub fn shows_inclusion(
    leaf: &TreeHash,
    index: u64,
    size: u64,
    proof: &[TreeHash],
    root: &TreeHash,
) -> bool {
    if index >= size {
        return false;
    }
    let (mut place, mut last) = (index, size - 1);
    let mut hash = *leaf;
    for step in proof {
        // More hashes than the tree is deep: such a proof was made up.
        if last == 0 {
            return false;
        }
        if place & 1 == 1 || place == last {
            hash = TreeHash::node(step, &hash);
            while place & 1 == 0 && place != 0 {
                place >>= 1;
                last >>= 1;
            }
        } else {
            hash = TreeHash::node(&hash, step);
        }
        place >>= 1;
        last >>= 1;
    }
    last == 0 && hash == *root
}

/// Whether a proof shows that a tree of `size` and `root` begins with one of `old` and
/// `old_root`, by RFC 9162 2.1.4.2.
#[must_use]
pub fn shows_consistency(
    old: u64,
    old_root: &TreeHash,
    size: u64,
    root: &TreeHash,
    proof: &[TreeHash],
) -> bool {
    if old == size {
        return proof.is_empty() && old_root == root;
    }
    if old == 0 {
        // Everything begins with nothing.
        return proof.is_empty() && *old_root == TreeHash::empty();
    }
    rebuilt(old, old_root, size, proof) == Some((*old_root, *root))
}

/// Whether a proof shows that a tree of `size` and `root` begins with `old` leaves whose root
/// is not `old_root`. A wrong proof shows nothing: nobody finds one that leads to `root` but
/// from the leaves below it. Where `old` is a power of two nothing can be shown, because a
/// proof does not hold the old root then.
#[must_use]
pub fn shows_another_past(
    old: u64,
    old_root: &TreeHash,
    size: u64,
    root: &TreeHash,
    proof: &[TreeHash],
) -> bool {
    let rebuilt = rebuilt(old, old_root, size, proof);
    rebuilt.is_some_and(|(past, hash)| hash == *root && past != *old_root)
}

/// The roots of the old tree and of the new one to which a proof leads, where the new one is
/// larger and neither is empty.
fn rebuilt(
    old: u64,
    old_root: &TreeHash,
    size: u64,
    proof: &[TreeHash],
) -> Option<(TreeHash, TreeHash)> {
    if old == 0 || old >= size {
        return None;
    }
    let mut steps = proof.iter();
    let (mut place, mut last) = (old - 1, size - 1);
    while place & 1 == 1 {
        place >>= 1;
        last >>= 1;
    }
    // The old tree is one complete subtree: the verifier has its hash already.
    let first = match place {
        0 => old_root,
        _ => steps.next()?,
    };
    let (mut old_hash, mut hash) = (*first, *first);
    for step in steps {
        // See `shows_inclusion`: no step may be left over.
        if last == 0 {
            return None;
        }
        if place & 1 == 1 || place == last {
            old_hash = TreeHash::node(step, &old_hash);
            hash = TreeHash::node(step, &hash);
            while place & 1 == 0 && place != 0 {
                place >>= 1;
                last >>= 1;
            }
        } else {
            hash = TreeHash::node(&hash, step);
        }
        place >>= 1;
        last >>= 1;
    }
    (last == 0).then_some((old_hash, hash))
}

/// The largest power of two below a number above one.
fn split(count: u64) -> u64 {
    1 << (count - 1).ilog2()
}

/// The hash over the leaves from `begin` up to `end`, where `begin` is the start of a
/// complete subtree at least as large as the range.
fn range<S: Subtrees>(trees: &S, begin: u64, end: u64) -> Result<TreeHash, S::Fault> {
    let count = end - begin;
    if count.is_power_of_two() {
        let level = count.ilog2();
        return trees.subtree(level, begin >> level);
    }
    let split = begin + split(count);
    let left = range(trees, begin, split)?;
    Ok(TreeHash::node(&left, &range(trees, split, end)?))
}

#[cfg(test)]
mod tests;
