//! Compiled bodies, kept for the next call of the same tool. A body is kept when it
//! comes the second time: tools come again, the scripts that models write do not.
//!
//! An entry is made inside a sandbox, from the source, before any of the source has
//! run, and is found again only by that source; nothing is ever taken from outside
//! the worker. So the worst an entry can do is what its own source could do anyway.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// Below this, compiling is cheaper than remembering.
pub(super) const SOURCE_BYTES_MIN: usize = 1024;

const ENTRIES_MAX: usize = 512;

/// Names a body: its source, how it is wrapped, and the guest that compiled it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CacheKey([u8; 32]);

impl CacheKey {
    pub(super) fn of(wrapped_source: &[u8]) -> CacheKey {
        let mut digest = Sha256::new();
        // Bytecode of another guest would be read as if it were this one's.
        digest.update(super::guest_key());
        digest.update(wrapped_source);
        CacheKey(digest.finalize().into())
    }
}

/// Bounded by entries and bytes; the least recently used entry is dropped first.
pub(super) struct Cache {
    entries: HashMap<CacheKey, Entry>,
    /// Bodies that came once.
    once: HashSet<CacheKey>,
    bytes: usize,
    bytes_max: usize,
    uses: u64,
}

struct Entry {
    bytecode: Arc<[u8]>,
    used: u64,
}

impl Cache {
    pub(super) fn new(bytes_max: usize) -> Cache {
        Cache {
            entries: HashMap::new(),
            once: HashSet::new(),
            bytes: 0,
            bytes_max,
            uses: 0,
        }
    }

    pub(super) fn get(&mut self, key: CacheKey) -> Option<Arc<[u8]>> {
        self.uses += 1;
        let entry = self.entries.get_mut(&key)?;
        entry.used = self.uses;
        Some(Arc::clone(&entry.bytecode))
    }

    /// Whether a body that is not here came before, and so may come again.
    pub(super) fn comes_again(&mut self, key: CacheKey) -> bool {
        // It is about to become an entry. If `put` refuses it, it counts as new again.
        if self.once.remove(&key) {
            return true;
        }
        if self.once.len() >= ENTRIES_MAX {
            // Dropping all is crude and cheap. The price is that a tool is
            // compiled once more.
            self.once.clear();
        }
        self.once.insert(key);
        false
    }

    pub(super) fn put(&mut self, key: CacheKey, bytecode: &[u8]) {
        // One body may not push out all the others.
        if bytecode.len() > self.bytes_max / 4 || self.entries.contains_key(&key) {
            return;
        }
        while self.entries.len() >= ENTRIES_MAX || self.bytes + bytecode.len() > self.bytes_max {
            let Some(oldest) = self.oldest() else { return };
            if let Some(entry) = self.entries.remove(&oldest) {
                self.bytes -= entry.bytecode.len();
            }
        }
        self.uses += 1;
        self.bytes += bytecode.len();
        self.entries.insert(
            key,
            Entry {
                bytecode: bytecode.into(),
                used: self.uses,
            },
        );
    }

    fn oldest(&self) -> Option<CacheKey> {
        self.entries
            .iter()
            .min_by_key(|(_, entry)| entry.used)
            .map(|(key, _)| *key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_repeated_bodies_are_cached() {
        let mut cache = Cache::new(1 << 20);
        let (one, other) = (CacheKey::of(b"one"), CacheKey::of(b"other"));
        assert!(!cache.comes_again(one));
        assert!(!cache.comes_again(other));
        assert!(cache.comes_again(one));
        // Many that come once forget those before them, and take no more room.
        for number in 0..10 * ENTRIES_MAX {
            assert!(!cache.comes_again(CacheKey::of(&number.to_be_bytes())));
            assert!(cache.once.len() <= ENTRIES_MAX);
        }
        assert!(!cache.comes_again(other));
    }
}
