//! The time, handed in so that tests can hold it still.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// One moment on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthMoment {
    /// Milliseconds since 1970, which people and tokens speak of. It may jump.
    pub unix_ms: i64,
    /// Time since some beginning. It only goes forward; limits are measured by it.
    pub steady: Duration,
}

/// Tells the time.
#[derive(Clone)]
pub struct AuthClock(Arc<dyn Fn() -> AuthMoment + Send + Sync>);

impl AuthClock {
    /// The machine's clocks.
    #[must_use]
    pub fn system() -> AuthClock {
        let start = Instant::now();
        AuthClock::new(move || AuthMoment {
            unix_ms: unix_ms(),
            steady: start.elapsed(),
        })
    }

    /// Any other clock.
    pub fn new(tell: impl Fn() -> AuthMoment + Send + Sync + 'static) -> AuthClock {
        AuthClock(Arc::new(tell))
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> AuthMoment {
        (self.0)()
    }
}

impl fmt::Debug for AuthClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthClock")
    }
}

fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}
