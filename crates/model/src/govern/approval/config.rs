//! `[approvals]`: how people are asked.

use std::collections::BTreeMap;

use crate::limits;
use crate::policy::risk::Level;

/// How people are asked.
///
/// Defaults: an answer is waited for 45 seconds, less than the minute after which common
/// clients give a request up, a question lives ten minutes, and no caller's own client
/// may answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalsConfig {
    /// Seconds a call waits for an answer.
    pub wait_seconds: u64,
    /// Seconds a question can be answered, and an unused answer counts.
    pub expire_seconds: u64,
    /// Whether only a person other than the caller may approve. Then questions go
    /// to the inbox and never to the caller's own client.
    pub separate: bool,
    /// The risk up to which a command may approve without a person at a terminal.
    /// Absent: nothing.
    pub automation: Option<Level>,
    /// The risk up to which a caller's own client may answer for a person, by the
    /// caller's name as [`crate::caller::folded`] has it. Absent: nothing.
    pub answers: BTreeMap<String, Level>,
}

impl ApprovalsConfig {
    pub(crate) fn standard() -> ApprovalsConfig {
        ApprovalsConfig {
            wait_seconds: limits::APPROVAL_WAIT_SECONDS_DEFAULT,
            expire_seconds: limits::APPROVAL_EXPIRE_SECONDS_DEFAULT,
            separate: false,
            automation: None,
            answers: BTreeMap::new(),
        }
    }
}
