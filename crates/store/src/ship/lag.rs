//! How long the oldest record that was not shipped has waited.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::limit;

/// Looks at the log, and what each found that the one before did not.
#[derive(Debug)]
pub(super) struct ShipLag {
    looked_at: Instant,
    /// The last record a look found, and when it was not there yet: at the look before.
    waiting: VecDeque<(u64, Instant)>,
}

impl ShipLag {
    pub(super) fn new() -> ShipLag {
        ShipLag {
            looked_at: Instant::now(),
            waiting: VecDeque::new(),
        }
    }

    /// The log ended with a record at some moment.
    pub(super) fn look(&mut self, end: u64, at: Instant) {
        let is_full = self.waiting.len() >= limit::SHIP_LOOKS_MAX;
        match self.waiting.back_mut() {
            Some((known, _)) if *known >= end => {}
            // Counts as older than it is.
            Some((known, _)) if is_full => *known = end,
            Some(_) | None => self.waiting.push_back((end, self.looked_at)),
        }
        self.looked_at = at;
    }

    /// Records up to this one are shipped.
    pub(super) fn ship(&mut self, last: u64) {
        while self.waiting.front().is_some_and(|(end, _)| *end <= last) {
            self.waiting.pop_front();
        }
    }

    /// How long the oldest record waits at most, if any does.
    pub(super) fn oldest(&self, now: Instant) -> Duration {
        let since = self
            .waiting
            .front()
            .map_or(self.looked_at, |(_, since)| *since);
        now.saturating_duration_since(since)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::ShipLag;
    use crate::limit;

    #[test]
    fn a_record_waits_since_the_last_look_that_did_not_find_it() {
        let mut lag = ShipLag::new();
        let start = lag.looked_at;
        let at = |seconds| start + Duration::from_secs(seconds);
        lag.look(10, at(1));
        lag.look(30, at(2));
        lag.look(30, at(3));
        assert_eq!(lag.oldest(at(4)), Duration::from_secs(4));
        lag.ship(9);
        assert_eq!(lag.oldest(at(4)), Duration::from_secs(4));
        lag.ship(10);
        assert_eq!(
            lag.oldest(at(4)),
            Duration::from_secs(3),
            "found at 2, not at 1"
        );
        lag.ship(30);
        lag.look(31, at(5));
        assert_eq!(lag.oldest(at(6)), Duration::from_secs(3), "not there at 3");
    }

    #[test]
    fn looks_are_bounded_and_never_count_as_younger() {
        let mut lag = ShipLag::new();
        let start = lag.looked_at;
        for look in 1..3 * limit::SHIP_LOOKS_MAX as u64 {
            lag.look(look, start + Duration::from_secs(look));
        }
        assert_eq!(lag.waiting.len(), limit::SHIP_LOOKS_MAX);
        lag.ship(limit::SHIP_LOOKS_MAX as u64);
        let end = start + Duration::from_secs(limit::SHIP_LOOKS_MAX as u64);
        assert!(lag.oldest(end) <= Duration::from_secs(1));
        assert!(!lag.waiting.is_empty());
    }
}
