//! Exit codes: 0 done, 1 the answer is no, 2 could not do it, 130 interrupted.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Done; the answer is yes.
    Done,
    /// Done; the answer is no: denied, findings, a failed test.
    No,
    /// Could not do it: usage, settings, IO.
    CouldNot,
    /// The person interrupted it.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::No => 1,
            Exit::CouldNot => 2,
            Exit::Interrupted => 130,
        })
    }
}
