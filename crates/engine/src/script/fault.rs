//! The errors that a script gets for failed calls: eight codes, each with a sentence.

use guard::sanitise;
use model::reason::Reason;
use model::record::outcome::CallError;
use model::{limits, text};
use serde_json::{Value, json};

use crate::limit;

/// What a script is told about a tool that failed.
#[derive(Clone, Debug)]
pub(crate) struct ToolFault {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// The reason and the call, where it came that far.
    pub(crate) details: Option<Value>,
}

/// Arguments that are no data.
pub(super) fn no_data(name: &str) -> ToolFault {
    let name = text::elided(name, limit::NAME_SHOWN_CHARS_MAX);
    ToolFault {
        code: "VALIDATION",
        message: format!(
            "the arguments of `{name}` are not data but a function or symbol; give an object, such as \
             `{{ name: value }}`"
        ),
        details: None,
    }
}

/// The error as the script meets it. `call` is for us, when it comes back uncaught.
pub(super) fn fault_json(place: Option<u32>, code: &str, message: &str, tool: &str) -> String {
    json!({"code": code, "message": message, "toolName": tool, "call": place}).to_string()
}

impl ToolFault {
    pub(super) fn of(call_id: &str, error: &CallError) -> ToolFault {
        let code = code_of(error.reason);
        let chars_max = match code {
            "VALIDATION" => limits::SCRIPT_VALIDATION_CHARS_MAX,
            _ => limits::SCRIPT_MESSAGE_CHARS_MAX,
        };
        let message = text::elided(&sanitise::text(&error.message), chars_max);
        // Hidden and absent tools are the same, to the byte.
        let has_details = error.reason != Reason::ToolUnknown;
        let details = json!({
            "reason": error.reason.code(), "callId": call_id, "retryable": error.retryable,
        });
        ToolFault {
            code,
            message,
            details: has_details.then_some(details),
        }
    }

    /// One that was kept in a journal.
    pub(super) fn from_json(text: &str) -> ToolFault {
        let kept: Value = serde_json::from_str(text).unwrap_or_default();
        let word = kept.get("code").and_then(Value::as_str).unwrap_or("");
        let mut codes = CODES.iter().copied();
        let message = kept.get("message").and_then(Value::as_str);
        ToolFault {
            code: codes.find(|code| *code == word).unwrap_or("EXECUTION"),
            message: message.unwrap_or("").to_owned(),
            details: None,
        }
    }
}

/// Every code a script can meet.
const CODES: [&str; 8] = [
    "NOT_FOUND",
    "VALIDATION",
    "EXECUTION",
    "TIMEOUT",
    "ACCESS_DENIED",
    "SELF_REFERENCE",
    "APPROVAL_DENIED",
    "APPROVAL_PENDING",
];

/// What a reason is to a script. Named one by one where it is more than a failure.
fn code_of(reason: Reason) -> &'static str {
    match reason {
        Reason::ToolUnknown
        | Reason::ToolDraft
        | Reason::ToolNotExposed
        | Reason::RequirementMissing => "NOT_FOUND",
        Reason::ArgumentMissing
        | Reason::ArgumentType
        | Reason::ArgumentUnknown
        | Reason::ArgumentsNotAnObject
        | Reason::ArgumentsTooDeep
        | Reason::ArgumentsTooLarge => "VALIDATION",
        Reason::AccessDenied
        | Reason::CallerPaused
        | Reason::LevelDenied
        | Reason::LimitExceeded
        | Reason::RuleDenied
        | Reason::RuleUnevaluable => "ACCESS_DENIED",
        Reason::ApprovalDeclined | Reason::ApprovalDismissed | Reason::ApprovalMalformed => {
            "APPROVAL_DENIED"
        }
        Reason::ApprovalPending
        | Reason::ApprovalStale
        | Reason::ApprovalState
        | Reason::ApprovalTimedOut
        | Reason::ApprovalTooMany
        | Reason::ApprovalUnavailable
        | Reason::ApprovalUsed => "APPROVAL_PENDING",
        // Which bound an endless tool meets first depends on the machine.
        Reason::CallDeadline | Reason::SandboxCpu | Reason::SandboxWall | Reason::SandboxWork => {
            "TIMEOUT"
        }
        _ => "EXECUTION",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_one_of_the_codes() {
        for reason in Reason::ALL {
            assert!(CODES.contains(&code_of(*reason)), "{reason:?}");
        }
    }
}
