//! The wall clock. Nodes that share a store follow the clock of its database, so that what
//! one of them lets expire has expired for all, however wrong their own clocks are.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::limit;

/// What is added to our own clock, in milliseconds.
static AHEAD_MS: AtomicI64 = AtomicI64::new(0);

/// Milliseconds since 1970.
#[must_use]
pub fn now_ms() -> i64 {
    own_ms().saturating_add(AHEAD_MS.load(Ordering::Relaxed))
}

/// How far our own clock is behind the one of the shared store, in milliseconds. Small
/// differences count as none.
#[must_use]
pub fn behind_ms() -> i64 {
    AHEAD_MS.load(Ordering::Relaxed)
}

fn own_ms() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    let own = elapsed.map_or(0, |elapsed| {
        i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
    });
    #[cfg(feature = "testing")]
    let own = own.saturating_add(crate::testing::clock_ahead_ms());
    own
}

/// Follows another clock, which showed this time when it was asked; that took a while.
pub(crate) fn follow(shown_ms: i64, took: Duration) {
    AHEAD_MS.store(ahead(own_ms(), shown_ms, took), Ordering::Relaxed);
}

/// How far the other clock is ahead. The answer may be as old as the question took, so no
/// difference below that counts, nor one that no decision would notice.
fn ahead(own_ms: i64, shown_ms: i64, took: Duration) -> i64 {
    let took_ms = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
    let ahead = shown_ms.saturating_sub(own_ms);
    match ahead.abs() <= took_ms.saturating_add(limit::CLOCK_SKEW_MS) {
        true => 0,
        false => ahead,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::ahead;

    #[test]
    fn an_hour_is_followed_and_a_moment_is_not() {
        let took = Duration::from_millis(20);
        assert_eq!(ahead(10_000_000, 13_600_000, took), 3_600_000);
        assert_eq!(ahead(13_600_000, 10_000_000, took), -3_600_000);
        assert_eq!(ahead(10_000_000, 10_000_100, took), 0);
        assert_eq!(ahead(10_000_000, 10_002_000, Duration::from_secs(3)), 0);
    }
}
