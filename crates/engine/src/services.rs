//! What the engine is given from outside: a clock, an alarm, an observer.
//! Each part of the engine holds the ones it uses.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use host::secrets::{Secrets, SecretsFault};
use model::document::environment::Environment;

/// Says something the operator must hear.
#[derive(Clone)]
pub struct Alarm(Arc<dyn Fn(&str) + Send + Sync>);

impl Alarm {
    /// Calls `say` with each sentence.
    pub fn new(say: impl Fn(&str) + Send + Sync + 'static) -> Alarm {
        Alarm(Arc::new(say))
    }

    /// Passes a sentence on to the operator.
    pub fn raise(&self, sentence: &str) {
        (self.0)(sentence);
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Alarm")
    }
}

/// What the clock and the randomness of a run start from, so that a run can be repeated.
#[derive(Clone, Copy, Debug)]
pub struct RunStart {
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// What `Math.random` starts from.
    pub seed: u64,
}

/// Says what time it is, in milliseconds since 1970.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// Asks `now` each time.
    pub fn new(now: impl Fn() -> i64 + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    /// A clock that tells the system's time.
    #[must_use]
    pub fn system() -> Clock {
        Clock::new(store::clock::now_ms)
    }

    /// What time it is.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Counts the time that passes, for the budgets of scripts.
#[derive(Clone)]
pub struct Stopwatch {
    read: Arc<dyn Fn() -> Duration + Send + Sync>,
    is_system: bool,
}

impl Stopwatch {
    /// Asks `read` each time how much has passed. It may jump, so a budget is looked at
    /// often.
    pub fn new(read: impl Fn() -> Duration + Send + Sync + 'static) -> Stopwatch {
        Stopwatch {
            read: Arc::new(read),
            is_system: false,
        }
    }

    /// A stopwatch of the system's own time.
    #[must_use]
    pub fn system() -> Stopwatch {
        let began = Instant::now();
        Stopwatch {
            read: Arc::new(move || began.elapsed()),
            is_system: true,
        }
    }

    /// How much has passed.
    pub(crate) fn read(&self) -> Duration {
        (self.read)()
    }

    /// How long to sleep until `left` may have passed, at least `look`.
    pub(crate) fn pause(&self, left: Duration, look: Duration) -> Duration {
        match self.is_system {
            // The system's time does not jump, so nothing is spent before `left` has
            // passed.
            true => left.max(look),
            false => look,
        }
    }
}

impl fmt::Debug for Stopwatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stopwatch")
    }
}

/// Receives each step of each call.
#[derive(Clone)]
pub struct Observer(Arc<dyn Fn(&str) + Send + Sync>);

impl Observer {
    /// Calls `see` with the name of each step: `opened`, the word of each gate,
    /// `ran`, `closed`.
    pub fn new(see: impl Fn(&str) + Send + Sync + 'static) -> Observer {
        Observer(Arc::new(see))
    }

    pub(crate) fn see(&self, step: &str) {
        (self.0)(step);
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// Where the values of variables come from: the process's own, then the credentials,
/// then the file of secrets.
#[derive(Debug)]
pub(crate) struct VariableSource {
    process: Environment,
    secrets: Secrets,
}

impl VariableSource {
    pub(crate) fn new(process: Environment, secrets: Secrets) -> VariableSource {
        VariableSource { process, secrets }
    }

    /// The values as they are now.
    pub(crate) fn read(&self) -> Result<Environment, SecretsFault> {
        self.secrets.below(&self.process)
    }
}
