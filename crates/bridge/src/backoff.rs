//! When a server that failed is tried again: after 1, 2, 4 … seconds, at most 300, and
//! not at all after ten failures in a row. Only a connection that lasted counts as a
//! recovery; a process that starts and dies does not.

use std::time::Duration;

use tokio::time::Instant;

use crate::fault::ServerFault;
use crate::limit;

/// How often a server failed, and when it may be tried again.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    failures: u32,
    next: Option<Instant>,
    why: Option<String>,
}

impl Backoff {
    /// Whether the server may be tried now; otherwise why not.
    pub fn check(&self, now: Instant) -> Result<(), ServerFault> {
        let why = || self.why.clone().unwrap_or_default();
        if self.failures >= limit::SERVER_FAILURES_MAX {
            let times = self.failures;
            return Err(ServerFault::Held(format!(
                "it failed {times} times in a row, the last time because {}",
                why()
            )));
        }
        match self.next {
            Some(next) if next > now => Err(ServerFault::Waiting {
                why: why(),
                retry_in: next - now,
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Counts a failure. `spread` in 0..=255 shifts the pause by up to a quarter, so that
    /// several processes do not try at the same moment.
    pub fn fail(&mut self, why: &str, now: Instant, spread: u8) {
        // Capped before the shift below, which would overflow.
        let doublings = self.failures.min(16);
        let pause = limit::SERVER_RETRY_MS_MIN.saturating_mul(1 << doublings);
        let pause = pause.min(limit::SERVER_RETRY_MS_MAX);
        // Earlier and never later, so that the longest pause stays the longest.
        let shift = pause / 4 * u64::from(spread) / 255;
        self.failures = self.failures.saturating_add(1);
        self.next = Some(now + Duration::from_millis(pause - shift));
        self.why = Some(why.to_owned());
    }

    /// A connection ended that lasted so long.
    pub fn note_uptime(&mut self, uptime: Duration) {
        if uptime >= Duration::from_millis(limit::SERVER_HEALTHY_MS) {
            *self = Backoff::default();
        }
    }

    /// The owner restarts it.
    pub fn forget(&mut self) {
        *self = Backoff::default();
    }

    /// Failures in a row.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_and_ten_failures_hold() {
        let mut backoff = Backoff::default();
        let now = Instant::now();
        let mut pauses = Vec::new();
        while backoff.failures() < limit::SERVER_FAILURES_MAX {
            assert!(backoff.check(now + Duration::from_secs(400)).is_ok());
            backoff.fail("it ended", now, 0);
            if let Err(ServerFault::Waiting { retry_in, .. }) = backoff.check(now) {
                pauses.push(retry_in.as_secs());
            }
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256]);
        let later = backoff.check(now + Duration::from_secs(100_000));
        assert!(matches!(later, Err(ServerFault::Held(why)) if why.contains("it ended")));
        backoff.forget();
        assert_eq!(backoff.check(now), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_connection_that_lasted_is_a_recovery() {
        let mut backoff = Backoff::default();
        backoff.fail("x", Instant::now(), 255);
        backoff.note_uptime(Duration::from_secs(59));
        assert_eq!(backoff.failures(), 1);
        backoff.note_uptime(Duration::from_secs(60));
        assert_eq!(backoff.failures(), 0);
    }
}
