//! The gates of a call, and what a gate says: the call passes with a note for the
//! record, or it is refused.

use model::policy::assessment::UsableDocument;
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::CallError;

/// The gates of a call, in order. A call asks them in `walk`, the last in `body`;
/// `explain` asks them for a call that is not made.
///
/// Two refusals come out of order: consent to a document on trial is `Approval` before
/// `Limits`, and `explain` refuses a bad folder as `Powers` before it comes to `Approval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// May this caller call at all?
    Caller,
    /// Is there such a tool?
    Registry,
    /// May this caller use it?
    Access,
    /// Can its variables be read?
    Secrets,
    /// Can its secrets be masked?
    Masking,
    /// Are its variables set?
    Requirements,
    /// Do the arguments fit?
    Arguments,
    /// What is it held to?
    Policy,
    /// Allow, ask, deny?
    Rules,
    /// Is there anything left of its limits?
    Limits,
    /// Did a person agree?
    Approval,
    /// Is the attempt on the disk?
    Audit,
    /// Are its powers there?
    Powers,
}

impl Gate {
    /// Every gate.
    pub const ALL: [Gate; 13] = [
        Gate::Caller,
        Gate::Registry,
        Gate::Access,
        Gate::Secrets,
        Gate::Masking,
        Gate::Requirements,
        Gate::Arguments,
        Gate::Policy,
        Gate::Rules,
        Gate::Limits,
        Gate::Approval,
        Gate::Audit,
        Gate::Powers,
    ];

    /// The word in the audit.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Gate::Caller => "caller",
            Gate::Registry => "registry",
            Gate::Access => "access",
            Gate::Secrets => "secrets",
            Gate::Masking => "masking",
            Gate::Requirements => "requirements",
            Gate::Arguments => "arguments",
            Gate::Policy => "policy",
            Gate::Rules => "rules",
            Gate::Limits => "limits",
            Gate::Approval => "approval",
            Gate::Audit => "audit",
            Gate::Powers => "powers",
        }
    }
}

/// A gate let something through, with a note for the record.
#[derive(Debug)]
pub(crate) struct GatePass<T> {
    pub(crate) value: T,
    pub(crate) note: String,
}

/// What a gate says.
pub(crate) type GateResult<T> = Result<GatePass<T>, CallRefusal>;

impl<T> GatePass<T> {
    pub(crate) fn new(value: T, note: impl Into<String>) -> GatePass<T> {
        GatePass {
            value,
            note: note.into(),
        }
    }
}

/// Where the gates note what they said.
pub(crate) trait Notes {
    /// Notes what a gate said, and hands on what it let through.
    fn gate<T>(&mut self, gate: Gate, said: GateResult<T>) -> Result<T, CallRefusal>;

    /// The tool was found.
    fn note_tool(&mut self, _sound: &UsableDocument) {}
}

/// Notes nothing: for lists, search, and rules that are only evaluated.
#[derive(Debug)]
pub(crate) struct Unrecorded;

impl Notes for Unrecorded {
    fn gate<T>(&mut self, _gate: Gate, said: GateResult<T>) -> Result<T, CallRefusal> {
        // Lists walk the gates for every tool. A record of each refusal would be noise.
        said.map(|passed| passed.value)
    }
}

/// A call ends here without a result. It carries two messages: one for the caller, one
/// for the operator.
#[derive(Debug)]
pub(crate) struct CallRefusal {
    pub(crate) status: Status,
    pub(crate) error: CallError,
    /// The reason the operator reads, where it is another.
    operator_reason: Option<Reason>,
    note: Option<String>,
}

impl CallRefusal {
    /// A gate refused the call.
    pub(crate) fn new(error: CallError) -> CallRefusal {
        CallRefusal::with_status(Status::Refused, error)
    }

    /// The call ends for another reason than a gate.
    pub(crate) fn with_status(status: Status, error: CallError) -> CallRefusal {
        CallRefusal {
            status,
            error,
            operator_reason: None,
            note: None,
        }
    }

    /// With what only the operator reads.
    pub(crate) fn noted(self, note: impl Into<String>) -> CallRefusal {
        CallRefusal {
            note: Some(note.into()),
            ..self
        }
    }

    /// With a reason that only the operator reads.
    pub(crate) fn because(self, reason: Reason) -> CallRefusal {
        CallRefusal {
            operator_reason: Some(reason),
            ..self
        }
    }

    /// With what went before, for the operator.
    pub(crate) fn after(self, before: &str) -> CallRefusal {
        // The newer refusal first: it is what ended the call.
        let note = format!("{}; {before}", self.why());
        self.noted(note)
    }

    /// Adds words to what the caller is told.
    pub(crate) fn tell_more(&mut self, more: &str) {
        self.error.message.push_str(more);
    }

    /// The sentence the operator reads.
    pub(crate) fn why(&self) -> &str {
        self.note.as_deref().unwrap_or(&self.error.message)
    }

    /// The reason the operator reads.
    pub(crate) fn reason(&self) -> Reason {
        self.operator_reason.unwrap_or(self.error.reason)
    }
}
