//! From the end of a run to the stable codes of `model::reason`.

use std::fmt;

use model::reason::Reason;

use crate::job::{Breach, ConsoleLevel, RunReport, StopPlace, Thrown};
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

impl RunReport {
    /// A sentence about a bound that was reached, without its full stop.
    pub fn breach_words(breach: Breach, stopped_at: Option<StopPlace>) -> String {
        let in_regex = stopped_at.is_some_and(|place| place.in_regex);
        match breach {
            Breach::Work if in_regex => {
                "a regular expression took more steps than the code may".to_owned()
            }
            Breach::Cpu if in_regex => {
                "the code used up its processor time in a regular expression".to_owned()
            }
            other => other.to_string(),
        }
    }

    /// Warnings for the reader of a tool's result, one line each.
    pub fn remarks(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.notes.lines().map(str::to_owned).collect();
        let told = &self.rejections.told;
        lines.extend(told.iter().map(rejection_words));
        let more = (self.rejections.count as usize).saturating_sub(told.len());
        if more > 0 {
            lines.push(format!(
                "more rejected promises that nothing handled: {more}"
            ));
        }
        lines
    }
}

fn rejection_words(thrown: &Thrown) -> String {
    let place = match thrown.line {
        0 => String::new(),
        line => format!(" at line {line}, column {}", thrown.column),
    };
    let message = match thrown.message.is_empty() {
        true => thrown.name.clone(),
        false => format!("{}: {}", thrown.name, thrown.message),
    };
    format!("a promise was rejected{place} and nothing handled it: {message}")
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
            Breach::Deadlock => "the code awaits a promise that nothing can settle",
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
