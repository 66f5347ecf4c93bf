//! Rate limits: a token bucket that refills evenly. Time comes in as an argument.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use crate::auth::limit;

/// A burst size, which is also the number per window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The time one token takes to come back.
    token: Duration,
    /// The time an empty bucket takes to fill up.
    whole: Duration,
}

impl Rate {
    /// `count` in `window`; never less than one.
    #[must_use]
    pub fn new(count: u64, window: Duration) -> Rate {
        let count = count.max(1);
        let nanos = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        // Rounded up: the rate is never higher than was set.
        let token = nanos.div_ceil(count).max(1);
        Rate {
            token: Duration::from_nanos(token),
            whole: Duration::from_nanos(token.saturating_mul(count)),
        }
    }
}

/// A bucket; a new one is full. All that needs to be known is when it will be full
/// again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    full_at: Duration,
}

impl Bucket {
    /// Takes one token, or says how long to wait for one.
    pub fn take(&mut self, rate: Rate, now: Duration) -> Result<(), Duration> {
        let full_at = self.full_at.max(now).saturating_add(rate.token);
        let behind = full_at.saturating_sub(now);
        // A refusal changes nothing: a client that keeps trying does not prolong its own
        // wait.
        if behind > rate.whole {
            return Err(behind.saturating_sub(rate.whole));
        }
        self.full_at = full_at;
        Ok(())
    }

    /// Whether a token could be taken; else how long to wait for one.
    pub fn look(self, rate: Rate, now: Duration) -> Result<(), Duration> {
        let mut copy = self;
        copy.take(rate, now)
    }

    /// Whether it is full.
    #[must_use]
    pub fn is_full(self, now: Duration) -> bool {
        self.full_at <= now
    }
}

/// A bucket for each of many, in bounded memory. Full buckets are forgotten; when there
/// is no room for another, all newcomers share one bucket, so that a flood of new names
/// slows down the flood and not known callers.
#[derive(Debug)]
pub struct Buckets<K> {
    rate: Rate,
    count_max: usize,
    known: HashMap<K, Bucket>,
    newcomers: Bucket,
    purge_at: Duration,
}

impl<K: Eq + Hash> Buckets<K> {
    /// None yet.
    #[must_use]
    pub fn new(rate: Rate, count_max: usize) -> Buckets<K> {
        Buckets {
            rate,
            count_max,
            known: HashMap::new(),
            newcomers: Bucket::default(),
            purge_at: Duration::ZERO,
        }
    }

    /// Takes one token of a key's bucket, or says how long to wait for one.
    pub fn take(&mut self, key: K, now: Duration) -> Result<(), Duration> {
        let rate = self.rate;
        if let Some(bucket) = self.known.get_mut(&key) {
            return bucket.take(rate, now);
        }
        if !self.make_room(now) {
            return self.newcomers.take(rate, now);
        }
        let mut bucket = Bucket::default();
        let taken = bucket.take(rate, now);
        self.known.insert(key, bucket);
        taken
    }

    /// Whether there is a token to take; else how long to wait for one.
    pub fn look(&self, key: &K, now: Duration) -> Result<(), Duration> {
        match self.known.get(key) {
            Some(bucket) => bucket.look(self.rate, now),
            // One that is not known has a full bucket.
            None if self.known.len() < self.count_max => Ok(()),
            None => self.newcomers.look(self.rate, now),
        }
    }

    /// How many are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    fn make_room(&mut self, now: Duration) -> bool {
        if self.known.len() >= self.count_max && now >= self.purge_at {
            // Not at every newcomer: in a flood each request would walk the whole table.
            self.purge_at = now.saturating_add(limit::PURGE_INTERVAL);
            self.known.retain(|_, bucket| !bucket.is_full(now));
        }
        self.known.len() < self.count_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_full_bucket_gives_exactly_its_count_and_then_one_at_a_time() {
        for count in [1, 2, 7, 60, 6_000] {
            let rate = Rate::new(count, MINUTE);
            let mut bucket = Bucket::default();
            for _ in 0..count {
                assert_eq!(bucket.take(rate, MINUTE), Ok(()));
            }
            let wait = bucket.take(rate, MINUTE).expect_err("empty");
            assert!(wait <= MINUTE, "{wait:?}");
            assert_eq!(bucket.take(rate, MINUTE + wait), Ok(()));
            assert!(bucket.take(rate, MINUTE + wait).is_err());
        }
    }

    #[test]
    fn a_flood_of_names_shares_one_bucket_and_takes_no_room() {
        let mut buckets = Buckets::new(Rate::new(2, MINUTE), 10);
        for name in 0..10 {
            assert_eq!(buckets.take(name, MINUTE), Ok(()));
        }
        let answers = (10..1_000).map(|name| buckets.take(name, MINUTE));
        assert_eq!(answers.filter(Result::is_ok).count(), 2);
        assert_eq!(buckets.len(), 10);
        assert!(buckets.look(&5_000, MINUTE).is_err());
        // A known key keeps its own bucket.
        assert_eq!(buckets.take(3, MINUTE), Ok(()));
        assert!(buckets.take(3, MINUTE).is_err());
        // Later the full ones make room.
        assert_eq!(buckets.take(5_000, 3 * MINUTE), Ok(()));
        assert_eq!(buckets.len(), 1);
    }

    proptest! {
        /// In any stretch of time no key gets more than a full bucket and what comes
        /// back meanwhile; a client that waits as told is let in.
        #[test]
        fn no_key_gets_more_than_its_rate(
            count in 1_u64..50,
            gaps in prop::collection::vec(0_u64..5_000, 1..200),
        ) {
            let rate = Rate::new(count, MINUTE);
            let mut bucket = Bucket::default();
            let mut now = Duration::from_secs(1);
            let mut taken = Vec::new();
            for gap in gaps {
                now += Duration::from_millis(gap);
                match bucket.take(rate, now) {
                    Ok(()) => taken.push(now),
                    Err(wait) => {
                        prop_assert!(wait > Duration::ZERO);
                        prop_assert_eq!(bucket.look(rate, now + wait), Ok(()));
                        prop_assert!(bucket.look(rate, now + wait - Duration::from_nanos(1)).is_err());
                    }
                }
            }
            for (place, from) in taken.iter().enumerate() {
                for (further, to) in taken.iter().enumerate().skip(place) {
                    let span = to.saturating_sub(*from).as_nanos();
                    let back = span / rate.token.as_nanos();
                    let got = u128::try_from(further - place + 1).expect("small");
                    prop_assert!(got <= u128::from(count) + back + 1, "{got} in {span} ns");
                }
            }
        }

        /// The table never grows past its bound, and no bucket refuses before its
        /// count is used up unless the table is full.
        #[test]
        fn a_table_is_bounded(names in prop::collection::vec(0_u16..500, 1..400), room in 1_usize..40) {
            let mut buckets = Buckets::new(Rate::new(5, MINUTE), room);
            for (step, name) in names.iter().enumerate() {
                let now = Duration::from_millis(u64::try_from(step).expect("small") * 100);
                let _ = buckets.take(*name, now);
                prop_assert!(buckets.len() <= room);
            }
        }
    }
}
