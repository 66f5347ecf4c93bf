//! The three ways `fetch` says no, and the reasons it has.

use crate::ask::{Fault, FaultKind};

/// The helper's name in every fault.
pub(crate) const HELPER: &str = "fetch";

/// Policy says no. `rule` names the host and what it broke.
pub(crate) fn denied(reason: &'static str, rule: impl AsRef<str>) -> Fault {
    let message = format!("[fetch] denied: {}", rule.as_ref());
    Fault::new(FaultKind::Security, reason, HELPER, message)
}

/// The arguments make no sense.
pub(crate) fn invalid(reason: &'static str, what: impl AsRef<str>) -> Fault {
    let message = format!("[fetch] {}", what.as_ref());
    Fault::new(FaultKind::InvalidInput, reason, HELPER, message)
}

/// It was allowed and tried, and did not work.
pub(crate) fn failed(reason: &'static str, what: impl AsRef<str>) -> Fault {
    let message = format!("[fetch] {}", what.as_ref());
    Fault::new(FaultKind::HelperRuntime, reason, HELPER, message)
}
