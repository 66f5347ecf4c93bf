//! Randomness of the system, asked for in larger pieces: each call needs some, and
//! a system call for every few bytes costs more than the bytes.

use std::sync::Mutex;

use model::sync::lock;
use uuid::Builder;

/// Bytes asked for at a time.
const POOL_BYTES: usize = 4096;

/// Randomness that was asked for and not used yet. What was handed out is not kept.
#[derive(Default)]
pub(crate) struct Entropy {
    unused: Mutex<Vec<u8>>,
}

/// Says nothing of what it holds.
impl std::fmt::Debug for Entropy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Entropy")
    }
}

impl Entropy {
    /// The id of a call: a UUID of version 7, so that ids sort by time.
    pub(crate) fn call_id(&self, at_ms: i64) -> String {
        let millis = u64::try_from(at_ms).unwrap_or(0);
        let uuid = match self.take() {
            Some(random) => Builder::from_unix_timestamp_millis(millis, &random).into_uuid(),
            None => uuid::Uuid::now_v7(),
        };
        uuid.to_string()
    }

    /// What the randomness of a script starts from.
    pub(crate) fn seed(&self) -> u64 {
        let random = self.take().map(u64::from_le_bytes);
        random.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().1)
    }

    /// Nothing if the system gives none; the uuid crate knows what to do then.
    fn take<const BYTES: usize>(&self) -> Option<[u8; BYTES]> {
        let mut unused = lock(&self.unused);
        if unused.len() < BYTES {
            unused.resize(POOL_BYTES, 0);
            if getrandom::fill(&mut unused).is_err() {
                unused.clear();
                return None;
            }
        }
        let start = unused.len().checked_sub(BYTES)?;
        let taken = unused.get(start..)?.try_into().ok();
        // Bytes beyond the end are written over before they count again.
        unused.truncate(start);
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_of_version_seven_and_differ() {
        let entropy = Entropy::default();
        let ids: BTreeSet<_> = (0..2_000)
            .map(|_| entropy.call_id(1_700_000_000_000))
            .collect();
        assert_eq!(ids.len(), 2_000);
        for id in &ids {
            let id: uuid::Uuid = id.parse().expect("a uuid");
            assert_eq!(id.get_version_num(), 7);
            let seconds = id.get_timestamp().expect("a time").to_unix().0;
            assert_eq!(seconds, 1_700_000_000);
        }
        let seeds: BTreeSet<_> = (0..2_000).map(|_| entropy.seed()).collect();
        assert_eq!(seeds.len(), 2_000);
    }
}
