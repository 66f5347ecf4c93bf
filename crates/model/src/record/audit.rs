//! The audit: the records of every attempt, and the hash chain that reveals later
//! changes.
//!
//! An attempt leaves two records: one when it opens, before anything happens, and
//! one when it closes. Both are links of one chain, so neither can be changed,
//! dropped or moved unseen. What a person reads as one entry is the two together.
//! What is done beside calls leaves one record, a notice, in the same chain, and so do
//! heads of other logs, as anchors.

pub mod anchor;
pub mod chain;
mod facts;
pub mod heads;
pub mod nodes;
pub mod notice;
pub mod proof;
pub mod seal;
pub mod spell;
pub mod walk;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::caller::Origin;

pub use anchor::Anchor;
pub use facts::SharedFacts;
pub use notice::{Act, Notice};

/// The opening record: the request and its caller, before any gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Opening {
    /// The attempt, a UUID.
    pub call_id: String,
    /// The attempt this one is part of, such as a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// The door.
    pub origin: Origin,
    /// The caller.
    pub caller: String,
    /// The tool's name as it was asked for.
    pub tool: String,
    /// The digest of the arguments as they came, canonical; in hexadecimal.
    pub arguments_digest: String,
}

/// The closing record: what was decided and how the call ended. Steps that a call did
/// not reach are absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Closing {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// How it ended.
    pub status: Status,
    /// Why it failed or was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The tool that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<SharedFacts>,
    /// Every gate that was asked, in order, with its answer.
    #[serde(default)]
    pub gates: Vec<GateRecord>,
    /// The arguments after validation, secrets masked; absent when only digests
    /// are kept or no gate got that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The digest of the result, canonical; in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_digest: Option<String>,
    /// Events of the powers: requests, files, approvals. Masked.
    #[serde(default)]
    pub events: Vec<Value>,
    /// Events beyond the bound, which were only counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub events_dropped: u64,
    /// The decision of the shadow rules, if it differs from the live one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<Shadow>,
    /// Where the time went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

impl Closing {
    /// A closing that says only how it ended.
    #[must_use]
    pub fn bare(at_ms: i64, status: Status, error: Option<Failure>) -> Closing {
        Closing {
            at_ms,
            status,
            error,
            tool: None,
            gates: Vec::new(),
            arguments: None,
            result_digest: None,
            events: Vec::new(),
            events_dropped: 0,
            shadow: None,
            timing: None,
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The code returned.
    Done,
    /// A gate said no; nothing ran.
    Refused,
    /// It ran and failed.
    Failed,
    /// The client disconnected or cancelled it.
    Cancelled,
    /// Its process died. The next process writes this.
    Crashed,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 5] = [
        Status::Done,
        Status::Refused,
        Status::Failed,
        Status::Cancelled,
        Status::Crashed,
    ];

    /// The word in the audit.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Status::Done => "done",
            Status::Refused => "refused",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
            Status::Crashed => "crashed",
        }
    }
}

/// A reason code and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The stable code.
    pub code: String,
    /// What happened, for a person.
    pub message: String,
}

/// The tool and policy in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolFacts {
    /// The tool's identity.
    pub tool_id: String,
    /// Its name.
    pub name: String,
    /// Its category.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The digest of the document that was used, with its scheme.
    pub digest: String,
    /// The risk level, such as `L3`.
    pub risk: String,
    /// The reasons for the risk level.
    #[serde(default)]
    pub risk_reasons: Vec<String>,
    /// The resolved safety record, verbatim.
    pub tool_safety: Value,
}

/// One gate's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRecord {
    /// The gate.
    pub gate: Cow<'static, str>,
    /// Its verdict: `pass`, `ask`, `stop`.
    pub verdict: Cow<'static, str>,
    /// The reason code, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
    /// A note for people: the list, the limit, the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The rule that decided, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Microseconds from the answer of the gate before it to its own; absent in records
    /// that were written before gates were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub us: Option<u64>,
}

/// The decision of a shadow candidate that differs from the live rules. It had no
/// effect on the call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shadow {
    /// The candidate's file.
    pub candidate: String,
    /// The live decision: `allow`, `ask` or `deny`.
    pub live: String,
    /// The candidate's decision.
    pub verdict: String,
    /// Why.
    pub reason: String,
    /// By which rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// Where the time went, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timing {
    /// From the opening record to the closing.
    pub total_us: u64,
    /// In the sandbox, waiting included.
    pub run_us: u64,
    /// Processor time of the script.
    pub cpu_us: u64,
}
