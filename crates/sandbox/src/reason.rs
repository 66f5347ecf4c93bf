//! How a run's end is named to the outside: the stable codes of `model::reason`.

use std::fmt;

use model::reason::Reason;

use crate::job::{Breach, ConsoleLevel};
use crate::pool::{PoolError, RunError, StartError};

impl Breach {
    /// The stable reason.
    pub fn reason(self) -> Reason {
        match self {
            Breach::Work => Reason::SandboxWork,
            Breach::Cpu => Reason::SandboxCpu,
            Breach::Wall => Reason::SandboxWall,
            Breach::Memory => Reason::SandboxMemory,
            Breach::Stack => Reason::SandboxStack,
            Breach::ResultBytes => Reason::SandboxResultBytes,
            Breach::ResultDepth => Reason::SandboxResultDepth,
            Breach::ConsoleLines => Reason::SandboxConsoleLines,
            Breach::ConsoleBytes => Reason::SandboxConsoleBytes,
            Breach::HostCalls => Reason::SandboxHostCalls,
            Breach::HostOutstanding => Reason::SandboxHostOutstanding,
            Breach::PayloadBytes => Reason::SandboxPayloadBytes,
            Breach::Deadlock => Reason::SandboxDeadlock,
        }
    }
}

/// One sentence for the caller, without its full stop.
impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Breach::Work => "the code ran more statements than it may",
            Breach::Cpu => "the code used up its processor time",
            Breach::Wall => "the call took longer than it may",
            Breach::Memory => "the code used up its memory",
            Breach::Stack => "the code used up its stack",
            Breach::ResultBytes => "the result is too long",
            Breach::ResultDepth => "the result nests too deep",
            Breach::ConsoleLines => "the code wrote too many lines to the console",
            Breach::ConsoleBytes => "the code wrote too many bytes to the console",
            Breach::HostCalls => "the code made too many host calls",
            Breach::HostOutstanding => "the code made too many host calls at one time",
            Breach::PayloadBytes => "a host call of the code is too long",
            Breach::Deadlock => "the code waits for something that cannot happen",
        })
    }
}

impl RunError {
    /// The stable reason.
    pub fn reason(&self) -> Reason {
        match self {
            RunError::Busy => Reason::SandboxBusy,
            RunError::Waited => Reason::SandboxWaited,
            RunError::TooLarge => Reason::SandboxJobTooLarge,
            RunError::Lost => Reason::SandboxWorkerLost,
            RunError::Hung => Reason::SandboxWorkerHung,
            RunError::InDoubt(_) => Reason::SandboxWorkerInDoubt,
            RunError::Broken(_) => Reason::SandboxBroken,
            RunError::Closed => Reason::SandboxClosed,
        }
    }
}

impl PoolError {
    /// The stable reason.
    pub fn reason(&self) -> Reason {
        match self {
            PoolError::Worker(error) => error.reason(),
            PoolError::Thread(_) | PoolError::Setting(_) => Reason::SandboxStart,
        }
    }
}

impl StartError {
    /// The stable reason.
    pub fn reason(&self) -> Reason {
        match self {
            StartError::Layer { .. } => Reason::SandboxLayerMissing,
            StartError::Closed => Reason::SandboxClosed,
            StartError::Spawn(_)
            | StartError::Ended
            | StartError::Late
            | StartError::Hello(_)
            | StartError::Guest(_) => Reason::SandboxStart,
        }
    }
}

impl ConsoleLevel {
    /// `log`, `info`, `warn`, `error` or `debug`.
    pub fn word(self) -> &'static str {
        match self {
            ConsoleLevel::Log => "log",
            ConsoleLevel::Info => "info",
            ConsoleLevel::Warn => "warn",
            ConsoleLevel::Error => "error",
            ConsoleLevel::Debug => "debug",
        }
    }
}
