//! What tool code asks of a power, and what it gets back.

use model::record::mask::{Masker, Unmasked};
use serde_json::{Value, json};

/// Data in either direction: JSON and, beside it, bytes that JSON would bloat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PowerRequest {
    /// The arguments, as the face of the power in JavaScript shaped them.
    pub arguments: Value,
    /// A body or a buffer; empty when there is none.
    pub bytes: Vec<u8>,
}

/// What a power gives back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PowerReply {
    /// The value.
    pub value: Value,
    /// A body or a buffer; reaches the script as a `Uint8Array`.
    pub bytes: Vec<u8>,
}

/// The three kinds of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Policy says no.
    Security,
    /// The arguments make no sense.
    InvalidInput,
    /// It was allowed and tried, and did not work.
    HelperRuntime,
}

impl FaultKind {
    /// The word scripts see.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            FaultKind::Security => "SECURITY",
            FaultKind::InvalidInput => "INVALID_INPUT",
            FaultKind::HelperRuntime => "HELPER_RUNTIME",
        }
    }
}

/// An error a script can catch: kind, reason, helper, message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerFault {
    /// Which of the three kinds.
    pub kind: FaultKind,
    /// The stable word, such as `path-escapes-base`.
    pub reason: &'static str,
    /// Which helper, such as `safety.fs.readText`.
    pub helper: String,
    /// One sentence for the author. It may quote what the script gave, whole; it is
    /// masked before anything of it is cut.
    message: Unmasked,
}

/// Characters of a fault's sentence that are shown.
pub const FAULT_CHARS_MAX: usize = 300;

impl PowerFault {
    /// A fault.
    #[must_use]
    pub fn new(
        kind: FaultKind,
        reason: &'static str,
        helper: &str,
        message: impl Into<String>,
    ) -> PowerFault {
        PowerFault {
            kind,
            reason,
            helper: helper.to_owned(),
            message: Unmasked::new(message),
        }
    }

    /// The sentence: masked, then on one line and cut.
    #[must_use]
    pub fn told(&self, secrets: &Masker) -> String {
        let masked = self.message.masked(secrets);
        masked.elided(FAULT_CHARS_MAX).into_inner()
    }

    /// As it reaches the script: `{kind, reason, helper, message}`.
    #[must_use]
    pub fn to_json(&self, secrets: &Masker) -> Value {
        json!({
            "kind": self.kind.word(),
            "reason": self.reason,
            "helper": secrets.text(&self.helper).into_inner(),
            "message": self.told(secrets),
        })
    }
}
