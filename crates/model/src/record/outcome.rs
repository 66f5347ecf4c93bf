//! The outcome of a call, in the form every door translates.

use serde_json::{Value, json};

use crate::reason::Reason;
use crate::record::audit::Status;
use crate::record::mask::{Masked, Masker};

/// How a call ended, and with what.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The call, as the audit knows it.
    pub call_id: String,
    /// How it ended.
    pub status: Status,
    /// The returned value; absent for `undefined` and when the code did not return.
    pub value: Option<Value>,
    /// The result of an MCP server, as it is passed on to MCP clients.
    pub relayed: Option<RelayedResult>,
    /// Why it did not get there.
    pub error: Option<CallError>,
    /// Console lines, in order.
    pub console: Vec<ConsoleLine>,
    /// Notes for the caller, for example that a person changed its arguments.
    pub notes: Vec<String>,
    /// The resources used, if code ran in the sandbox.
    pub usage: Option<CallUsage>,
    /// From asking to answering, in microseconds.
    pub elapsed_us: u64,
}

/// The resources a run used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallUsage {
    /// Statements, as the policy counts them.
    pub work: u64,
    /// Processor microseconds.
    pub cpu_us: u64,
    /// Microseconds from start to end.
    pub wall_us: u64,
    /// Bytes of memory at its largest.
    pub memory_bytes: u64,
    /// Calls to the host.
    pub host_calls: u32,
}

/// The result of an MCP server: content of any type, which a single value cannot hold.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayedResult {
    /// The content blocks, as the protocol writes them.
    pub content: Vec<Value>,
    /// The structured result, if there is one.
    pub structured: Option<Value>,
}

/// Whether it makes sense to try a denied call again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not until a person changed something.
    Never,
    /// With other arguments.
    Changed,
}

/// What helps a caller whose call was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The rule that decided, if one did.
    pub rule: Option<String>,
    /// The narrowest change that would let the call through.
    pub remedy: Option<String>,
    /// Whether it makes sense to try again.
    pub retry: Retry,
}

impl Retry {
    /// One word: `never` or `changed`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Retry::Never => "never",
            Retry::Changed => "changed",
        }
    }
}

/// Why a call did not get there, as the caller may know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// The stable reason.
    pub reason: Reason,
    /// One sentence.
    pub message: String,
    /// The author's own line and column, when the code threw.
    pub place: Option<(u32, u32)>,
    /// Whether the same call may succeed if it is made again.
    pub retryable: bool,
    /// What helps, where a rule or a level said no.
    pub advice: Option<Box<Advice>>,
}

impl CallError {
    /// An error that comes back however often the call is made.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>) -> CallError {
        CallError {
            reason,
            message: message.into(),
            place: None,
            retryable: false,
            advice: None,
        }
    }

    /// The same with what helps.
    #[must_use]
    pub fn advised(self, advice: Option<Advice>) -> CallError {
        CallError {
            advice: advice.map(Box::new),
            ..self
        }
    }

    /// As programs read it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut shown = json!({
            "code": self.reason.code(), "message": self.message, "retryable": self.retryable,
        });
        let Some(members) = shown.as_object_mut() else {
            return shown;
        };
        if let Some((line, column)) = self.place {
            members.insert("line".to_owned(), line.into());
            members.insert("column".to_owned(), column.into());
        }
        if let Some(advice) = &self.advice {
            let Advice {
                rule,
                remedy,
                retry,
            } = &**advice;
            members.insert("rule".to_owned(), rule.clone().into());
            members.insert("remedy".to_owned(), remedy.clone().into());
            members.insert("retry".to_owned(), retry.word().into());
        }
        shown
    }

    /// An error that may be gone the next time.
    #[must_use]
    pub fn passing(reason: Reason, message: impl Into<String>) -> CallError {
        CallError {
            retryable: true,
            ..CallError::new(reason, message)
        }
    }
}

/// One line the code wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleLine {
    /// `log`, `info`, `warn`, `error` or `debug`.
    pub level: &'static str,
    /// The text.
    pub text: String,
}

impl Outcome {
    /// The result as text: a string as it is, anything else as JSON, `undefined`
    /// by that word.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.value {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => "undefined".to_owned(),
        }
    }

    /// The shape scripts rely on.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let error = self.error.as_ref().map(CallError::to_json);
        let line = |line: &ConsoleLine| json!({"level": line.level, "text": line.text});
        let mut shown = json!({
            "callId": self.call_id,
            "status": self.status.word(),
            "result": self.value,
            "error": error,
            "console": self.console.iter().map(line).collect::<Vec<_>>(),
            "elapsedMs": self.elapsed_ms(),
        });
        if let (false, Some(members)) = (self.notes.is_empty(), shown.as_object_mut()) {
            members.insert("notes".to_owned(), self.notes.clone().into());
        }
        shown
    }

    /// From asking to answering, in milliseconds.
    #[must_use]
    pub fn elapsed_ms(&self) -> f64 {
        let elapsed = std::time::Duration::from_micros(self.elapsed_us);
        (elapsed.as_secs_f64() * 1e6).round() / 1e3
    }
}

impl Masker {
    /// Masks everything an outcome shows.
    #[must_use]
    pub fn outcome(&self, outcome: Outcome) -> Masked<Outcome> {
        let text = |text: String| self.own_text(text).into_inner();
        Masked::of(Outcome {
            value: outcome.value.map(|value| self.value(value).into_inner()),
            relayed: outcome.relayed.map(|relayed| {
                let value = |value: Value| self.value(value).into_inner();
                RelayedResult {
                    content: relayed.content.into_iter().map(value).collect(),
                    structured: relayed.structured.map(value),
                }
            }),
            error: outcome.error.map(|error| CallError {
                // The sandbox cuts what is thrown at a length.
                message: self.cut_text(&error.message).into_inner(),
                advice: error.advice.map(|advice| {
                    Box::new(Advice {
                        rule: advice.rule.map(text),
                        remedy: advice.remedy.map(text),
                        retry: advice.retry,
                    })
                }),
                ..error
            }),
            console: outcome
                .console
                .into_iter()
                .map(|line| ConsoleLine {
                    text: text(line.text),
                    ..line
                })
                .collect(),
            notes: outcome.notes.into_iter().map(text).collect(),
            ..outcome
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(value: Option<Value>) -> Outcome {
        Outcome {
            call_id: "1".to_owned(),
            status: Status::Done,
            value,
            relayed: None,
            error: Some(CallError {
                place: Some((2, 7)),
                ..CallError::passing(Reason::ToolThrew, "key hunter2!")
            }),
            console: vec![ConsoleLine {
                level: "log",
                text: "hunter2! again".to_owned(),
            }],
            notes: vec!["changed to hunter2!".to_owned()],
            usage: None,
            elapsed_us: 1_500,
        }
    }

    #[test]
    fn text_keeps_undefined_apart() {
        assert_eq!(outcome(None).text(), "undefined");
        assert_eq!(outcome(Some(Value::Null)).text(), "null");
        assert_eq!(outcome(Some(json!("a\nb"))).text(), "a\nb");
        assert_eq!(outcome(Some(json!({"a": [1]}))).text(), r#"{"a":[1]}"#);
    }

    #[test]
    fn every_part_is_masked() {
        let masker = Masker::new(["hunter2!"]).expect("a masker");
        let masked = masker.outcome(outcome(Some(json!({"hunter2!": "is hunter2!"}))));
        let expected = json!({
            "callId": "1", "status": "done", "result": {"***": "is ***"},
            "error": {"code": "tool.threw", "message": "key ***", "retryable": true, "line": 2, "column": 7},
            "console": [{"level": "log", "text": "*** again"}], "elapsedMs": 1.5,
            "notes": ["changed to ***"],
        });
        assert_eq!(masked.get().to_json(), expected);
    }
}
