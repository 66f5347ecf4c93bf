//! What time it is, handed to the gate so that tests can hold it still.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// One moment on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since 1970, which people and tokens speak of. It may jump.
    pub unix_ms: i64,
    /// Time since some beginning. It only goes forward; limits are measured by it.
    pub steady: Duration,
}

/// Tells the time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Moment + Send + Sync>);

impl Clock {
    /// The machine's clocks.
    #[must_use]
    pub fn system() -> Clock {
        let start = Instant::now();
        Clock::new(move || Moment {
            unix_ms: unix_ms(),
            steady: start.elapsed(),
        })
    }

    /// Any other clock.
    pub fn new(tell: impl Fn() -> Moment + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(tell))
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Moment {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}
