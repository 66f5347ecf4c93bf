//! Keys of ours, looked up at every request, so a revoked key stops working at the next
//! one.

use std::fmt;

use model::govern::key::{FormerKey, KeyDigest, KeyRecord};
use subtle::ConstantTimeEq as _;

/// Finds valid keys.
pub trait KeyLookup: fmt::Debug + Send + Sync {
    /// The key with this id; an error is one sentence for the operator.
    fn find(&self, id: &str) -> Result<Option<KeyRecord>, String>;

    /// The key that had this digest before it was replaced or revoked, where such keys
    /// are remembered.
    fn former(&self, _digest: &KeyDigest) -> Option<FormerKey> {
        None
    }
}

/// Why a key is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyFault {
    /// It cannot be looked up.
    Unavailable,
    /// There is no such key, or its secret is another one.
    Wrong,
    /// It was the key of a caller.
    Former(FormerKey),
    Expired,
}

/// The record of a key whose secret has this digest.
pub(super) fn find_holder(
    keys: &dyn KeyLookup,
    id: &str,
    digest: &KeyDigest,
    now_ms: i64,
) -> Result<KeyRecord, KeyFault> {
    // Invariant 13: keys that cannot be looked up are refused, with that reason.
    let found = keys.find(id).map_err(|_| KeyFault::Unavailable)?;
    // The same work for an unknown key, so that the time tells nothing.
    let expected = found.as_ref().map_or([0; 32], |record| record.digest);
    let is_right = is_same(&expected, digest);
    let record = found.filter(|_| is_right).ok_or_else(|| {
        // Attack: an id is no secret, so the name is told only for the whole former key.
        let former = keys.former(digest);
        former.map_or(KeyFault::Wrong, KeyFault::Former)
    })?;
    match record.is_expired(now_ms) {
        true => Err(KeyFault::Expired),
        false => Ok(record),
    }
}

/// Compares in constant time.
pub(super) fn is_same(one: &KeyDigest, other: &KeyDigest) -> bool {
    one.ct_eq(other).into()
}
