//! Errors of the parent's side, with stable codes.

use std::io;

use crate::frame::FrameError;
use crate::walls::Layer;

/// Why a pool could not be started.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The thread that starts workers and waits for their end could not be started.
    #[error("could not start the thread that spawns workers")]
    Thread(#[source] io::Error),
    /// A setting has no meaning.
    #[error("the setting `{0}` must be at least 1")]
    Setting(&'static str),
    /// The first worker did not come up.
    #[error("could not start a sandbox worker")]
    Worker(#[from] StartError),
}

/// Why a worker did not come up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The operating system did not start it.
    #[error("the process could not be started: {0}")]
    Spawn(String),
    /// It ended, or closed its pipe, before its hello.
    #[error("the worker ended before it was ready")]
    Ended,
    /// It took too long.
    #[error("the worker was not ready in time")]
    Late,
    /// Its first message was not a hello.
    #[error("the worker's first message cannot be read: {0}")]
    Hello(FrameError),
    /// It runs another guest than the parent was built with.
    #[error("the worker runs another guest, `{0}`")]
    Guest(String),
    /// A required layer is missing.
    #[error("the layer `{layer}` of the sandbox is missing: {reason}")]
    Layer {
        /// Which.
        layer: Layer,
        /// Why, as the worker saw it.
        reason: String,
    },
    /// The pool is closing.
    #[error("the pool is closing")]
    Closed,
}

impl StartError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.reason().code()
    }
}

/// Why a run has no report. None of these is the script's own doing, but for
/// [`RunError::InDoubt`] and [`RunError::Broken`], which may be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The queue is full.
    #[error("the sandbox is busy")]
    Busy,
    /// No worker became free in time.
    #[error("no sandbox worker became free in time")]
    Waited,
    /// The job does not fit into a frame.
    #[error("the job is too large for the sandbox")]
    TooLarge,
    /// The worker ended during the call.
    #[error("the sandbox worker ended")]
    Lost,
    /// The worker did not end the call by its deadline and was killed.
    #[error("the sandbox worker did not answer in time")]
    Hung,
    /// The worker broke the protocol about this call and was killed.
    #[error("the sandbox worker broke its protocol: {0}")]
    InDoubt(Violation),
    /// The sandbox failed in a way that no limit explains; the worker was killed.
    /// The text is for the operator only.
    #[error("the sandbox broke")]
    Broken(String),
    /// The pool is closing.
    #[error("the sandbox is closing")]
    Closed,
}

impl RunError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.reason().code()
    }

    /// Whether the same call may succeed if it is made again. Effects of its host calls
    /// stay. A call after which the worker is not trusted must not be repeated: the
    /// script may have been the cause.
    pub fn retryable(&self) -> bool {
        match self {
            RunError::Busy | RunError::Waited | RunError::Lost | RunError::Hung => true,
            RunError::TooLarge | RunError::InDoubt(_) | RunError::Broken(_) | RunError::Closed => {
                false
            }
        }
    }
}

/// A violation of the protocol by a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Not a frame.
    #[error("{0}")]
    Frame(FrameError),
    /// About a call that is not, or no longer, running.
    #[error("it sent a message about a call that is not running")]
    UnknownCall,
    /// More console lines, or bytes of them, than the job allows.
    #[error("it sent more console output than allowed")]
    Console,
    /// A host call whose number does not follow the last.
    #[error("it numbered a host call out of order")]
    HostCallOrder,
    /// More host calls, or more at one time, than the job allows.
    #[error("it made more host calls than allowed")]
    HostCallCount,
    /// A host call longer than the job allows.
    #[error("it made a longer host call than allowed")]
    HostCallLength,
    /// A result longer or deeper than the job allows.
    #[error("it sent a larger result than allowed")]
    ResultSize,
    /// A result that is not JSON.
    #[error("it sent a result that is not json")]
    ResultNotJson,
    /// An error longer than any of ours.
    #[error("it sent a longer error than allowed")]
    ThrownLength,
    /// Reported as cancelled without a request to cancel.
    #[error("it reported a cancellation that was not asked for")]
    NotCancelled,
}
