//! What an operator's instruments learn of each call, after its row is closed:
//! names, verdicts and times, never arguments, results or secrets.

use std::borrow::Cow;
use std::fmt;

use model::caller::Origin;
use model::record::audit::{Closing, Status};

use crate::request::CallRequest;

/// Receives a report of every call that is in the audit log.
pub trait Reporter: fmt::Debug + Send + Sync {
    /// Must not wait: the answer leaves after it.
    fn report(&self, report: &CallReport);
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallReport {
    /// The call, as the audit knows it.
    pub call_id: String,
    /// The tool that was found. The name of an unknown tool is not reported: callers
    /// choose it, and instruments keep every name they see.
    pub tool: Option<String>,
    /// Who called.
    pub caller: String,
    /// Through which door.
    pub origin: Origin,
    /// How it ended.
    pub status: Status,
    /// Why it did not get there, for the operator.
    pub code: Option<String>,
    /// The badge, once it is known.
    pub risk: Option<String>,
    /// Each gate that was asked, with its verdict.
    pub gates: Vec<(String, String)>,
    /// When it ended, in milliseconds since 1970.
    pub ended_at_ms: i64,
    /// From asking to answering, in microseconds.
    pub total_us: u64,
    /// In the sandbox, in microseconds.
    pub run_us: u64,
    /// Processor time of the script, in microseconds.
    pub cpu_us: u64,
    /// The trace it is part of, as W3C's `traceparent`, unchecked.
    pub trace: Option<String>,
    /// What it did, one after the other.
    pub steps: Vec<CallStep>,
}

/// A part of a call that took time: a gate, the wait for a person, the run, and what the
/// run asked its host for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallStep {
    /// The word of the gate, `run`, the operation of the host, or `upstream`.
    pub name: Cow<'static, str>,
    /// What it is a part of.
    pub within: StepWithin,
    /// Microseconds from the beginning of the call to its own.
    pub begin_us: u64,
    /// Microseconds from the beginning of the call to its end.
    pub end_us: u64,
}

impl CallStep {
    /// Microseconds from its beginning to its end.
    pub(crate) fn took_us(&self) -> u64 {
        self.end_us.saturating_sub(self.begin_us)
    }
}

/// What a step is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepWithin {
    /// The call.
    Call,
    /// Its run.
    Run,
}

impl CallReport {
    pub(crate) fn new(
        call_id: &str,
        request: &CallRequest,
        closing: &Closing,
        steps: Vec<CallStep>,
    ) -> CallReport {
        let tool = closing.tool.as_ref();
        // The gate that stopped the call knows the true reason.
        let reasons = closing.gates.iter().filter_map(|gate| gate.reason.as_ref());
        let stopped = reasons.map(ToString::to_string).next();
        let told = closing.error.as_ref().map(|error| error.code.clone());
        let timing = closing.timing;
        CallReport {
            call_id: call_id.to_owned(),
            tool: tool.map(|tool| tool.name.clone()),
            caller: request.caller.name.clone(),
            origin: request.origin,
            status: closing.status,
            code: stopped.or(told),
            risk: tool.map(|tool| tool.risk.clone()),
            gates: closing
                .gates
                .iter()
                .map(|gate| (gate.gate.to_string(), gate.verdict.to_string()))
                .collect(),
            ended_at_ms: closing.at_ms,
            total_us: timing.map_or(0, |timing| timing.total_us),
            run_us: timing.map_or(0, |timing| timing.run_us),
            cpu_us: timing.map_or(0, |timing| timing.cpu_us),
            trace: request.trace.clone(),
            steps,
        }
    }
}
