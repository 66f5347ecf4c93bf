//! How often codes are tried. Only so many wrong ones are looked at in a minute, and then
//! none, the right one included.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use engine::limit;
use model::sync::lock;
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);

/// Wrong codes of the last minute, of all peers together: whoever guesses can have many
/// addresses.
#[derive(Debug, Default)]
pub(crate) struct SignInTries(Mutex<VecDeque<Instant>>);

impl SignInTries {
    /// Counts a try before the code is looked at, so that many at once are many.
    pub(crate) fn begin(&self, now: Instant) -> Result<(), u64> {
        let mut tries = lock(&self.0);
        while tries
            .front()
            .is_some_and(|first| now.duration_since(*first) >= MINUTE)
        {
            tries.pop_front();
        }
        match tries.front() {
            Some(first) if tries.len() >= limit::SIGN_IN_WRONG_PER_MINUTE_MAX => {
                let wait = MINUTE.saturating_sub(now.duration_since(*first));
                Err(wait.as_secs().saturating_add(1))
            }
            Some(_) | None => {
                tries.push_back(now);
                Ok(())
            }
        }
    }

    /// A right code was no try at guessing.
    pub(crate) fn forgive(&self, began: Instant) {
        let mut tries = lock(&self.0);
        if let Some(at) = tries.iter().position(|one| *one == began) {
            tries.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_so_many_wrong_codes_are_looked_at_in_a_minute() {
        let tries = SignInTries::default();
        let begin = Instant::now();
        for _ in 0..limit::SIGN_IN_WRONG_PER_MINUTE_MAX {
            assert_eq!(tries.begin(begin), Ok(()));
        }
        assert_eq!(tries.begin(begin), Err(61));
        assert_eq!(tries.begin(begin + Duration::from_secs(59)), Err(2));
        assert_eq!(tries.begin(begin + MINUTE), Ok(()));
        // A right code gives its place back.
        let tries = SignInTries::default();
        for _ in 0..100 {
            assert_eq!(tries.begin(begin), Ok(()));
            tries.forgive(begin);
        }
    }
}
