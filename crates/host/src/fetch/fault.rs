//! Why a request over HTTP failed: the same words for tool code, which
//! gets a [`PowerFault`], and for our own clients.

use std::fmt;

use crate::message::{FaultKind, PowerFault};

/// A request that was refused, made no sense, or did not work.
///
/// The sentence names the scheme and the host, never the whole URL. It may quote
/// what was asked for, so it is masked before it is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpFault {
    /// Refused, senseless or failed.
    pub kind: FaultKind,
    /// The stable word, such as `resolved-private-ip`.
    pub reason: &'static str,
    /// Whether no connection came about, so that nothing of the request was sent.
    pub is_unsent: bool,
    sentence: String,
}

impl HttpFault {
    /// Policy says no. `rule` names the host and what it broke.
    pub(crate) fn denied(reason: &'static str, rule: impl Into<String>) -> HttpFault {
        HttpFault::new(FaultKind::Security, reason, rule)
    }

    /// The arguments make no sense.
    pub(crate) fn invalid(reason: &'static str, what: impl Into<String>) -> HttpFault {
        HttpFault::new(FaultKind::InvalidInput, reason, what)
    }

    /// It was allowed and tried, and did not work.
    pub(crate) fn failed(reason: &'static str, what: impl Into<String>) -> HttpFault {
        HttpFault::new(FaultKind::HelperRuntime, reason, what)
    }

    fn new(kind: FaultKind, reason: &'static str, sentence: impl Into<String>) -> HttpFault {
        HttpFault {
            kind,
            reason,
            is_unsent: false,
            sentence: sentence.into(),
        }
    }

    /// The same for a request that was not sent.
    pub(crate) fn unsent(self) -> HttpFault {
        HttpFault {
            is_unsent: true,
            ..self
        }
    }

    /// As tool code sees it.
    pub(crate) fn into_power_fault(self, helper: &str) -> PowerFault {
        let denied = match self.kind {
            FaultKind::Security => "denied: ",
            FaultKind::InvalidInput | FaultKind::HelperRuntime => "",
        };
        let message = format!("[{helper}] {denied}{}", self.sentence);
        PowerFault::new(self.kind, self.reason, helper, message)
    }
}

impl fmt::Display for HttpFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

// The reason is enough for a log; the sentence may quote what is secret.
impl fmt::Debug for HttpFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpFault").field(&self.reason).finish()
    }
}

impl std::error::Error for HttpFault {}
