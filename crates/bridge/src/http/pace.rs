//! How often streams are opened. Attack: a server that ends every stream at once, and
//! asks to be called again at once, would be called in an endless loop.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Time between two streams, once the first few are open.
const INTERVAL: Duration = Duration::from_secs(1);
/// Streams that are opened without waiting.
const BURST: u32 = 8;

#[derive(Debug)]
pub(crate) struct Pace {
    last: Mutex<Instant>,
}

impl Pace {
    pub(crate) fn new() -> Pace {
        let now = Instant::now();
        Pace {
            last: Mutex::new(now.checked_sub(INTERVAL * BURST).unwrap_or(now)),
        }
    }

    /// Waits for a turn.
    pub(crate) async fn wait(&self) {
        sleep_until(self.turn(Instant::now())).await;
    }

    fn turn(&self, now: Instant) -> Instant {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // A long silence saves up a burst and no more.
        let saved = now.checked_sub(INTERVAL * BURST).unwrap_or(now);
        *last = (*last).max(saved) + INTERVAL;
        *last
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Pace;

    #[tokio::test(start_paused = true)]
    async fn a_few_turns_are_free_and_the_rest_wait() {
        let pace = Pace::new();
        tokio::time::advance(Duration::from_secs(60)).await;
        let start = tokio::time::Instant::now();
        let waits: Vec<u64> = (0..12)
            .map(|_| (pace.turn(start).saturating_duration_since(start)).as_secs())
            .collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
        // And are free again after a while.
        let later = start + Duration::from_secs(60);
        assert!(pace.turn(later) <= later);
    }
}
