//! Keys of ours, looked up at every request: one that was revoked opens nothing from
//! the next request on.

use std::fmt;

use model::govern::key::{KeyDigest, KeyRecord};
use subtle::ConstantTimeEq as _;

/// The keys that count.
pub trait KeyLookup: fmt::Debug + Send + Sync {
    /// The key with this id; an error is one sentence for the operator.
    fn find(&self, id: &str) -> Result<Option<KeyRecord>, String>;
}

/// Why a key opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyFault {
    /// It cannot be looked up.
    Unavailable,
    /// There is no such key, or its secret is another one.
    Wrong,
    Expired,
}

/// The record of a key whose secret has this digest.
pub(super) fn find_holder(
    keys: &dyn KeyLookup,
    id: &str,
    digest: &KeyDigest,
    now_ms: i64,
) -> Result<KeyRecord, KeyFault> {
    // Invariant 13: keys that cannot be looked up open nothing, and say so.
    let found = keys.find(id).map_err(|_| KeyFault::Unavailable)?;
    // The same work whether there is such a key or not.
    let expected = found.as_ref().map_or([0; 32], |record| record.digest);
    let is_right = is_same(&expected, digest);
    let record = found.filter(|_| is_right).ok_or(KeyFault::Wrong)?;
    match record.is_expired(now_ms) {
        true => Err(KeyFault::Expired),
        false => Ok(record),
    }
}

/// Compares in constant time.
pub(super) fn is_same(one: &KeyDigest, other: &KeyDigest) -> bool {
    one.ct_eq(other).into()
}
