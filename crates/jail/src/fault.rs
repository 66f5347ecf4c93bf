//! What can go wrong before a child runs. Each is one sentence: what, where, and
//! the nearest fix.

use std::io;

/// Why a child was not started.
#[derive(Debug, thiserror::Error)]
pub enum JailFault {
    /// The settings ask for what a jail does not give.
    #[error("{0}")]
    Settings(String),
    /// No such program.
    #[error("{0}")]
    Program(String),
    /// A wall is missing, or the program could not be executed behind the walls.
    #[error("{0}")]
    Refused(String),
    /// The processes around the child could not be set up.
    #[error("could not {attempt}")]
    Setup {
        /// What was attempted.
        attempt: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The supervisor or the launcher ended before the child ran.
    #[error("{0}")]
    Ended(String),
    /// The child did not start in time.
    #[error("the program did not start within {seconds} seconds")]
    Late {
        /// How long it had.
        seconds: u64,
    },
}

impl JailFault {
    pub(crate) fn setup(attempt: &'static str) -> impl FnOnce(io::Error) -> JailFault {
        move |source| JailFault::Setup { attempt, source }
    }
}
