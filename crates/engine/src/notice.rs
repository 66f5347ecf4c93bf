//! Notices: what is done beside calls, written into the same chain.
//!
//! What grants something is written down first and does not happen without; what
//! takes something away happens in any case, and is said aloud if it cannot be
//! written down.

use model::record::audit::{Act, Notice};
use store::{Store, StoreError};

use crate::error::causes;
use crate::services::Alarm;

/// Writes a notice, or says aloud that it could not.
pub(crate) fn loudly(store: &Store, alarm: &Alarm, notice: Notice) {
    let said = format!("{}: {}", notice.act.word(), notice.message);
    if let Err(fault) = store.audit().notice(notice) {
        alarm.raise(&format!(
            "not recorded in the audit ({said}): {}",
            causes(&fault)
        ));
    }
}

/// An answer to a question, by whom and through what.
pub(crate) struct AnswerNotice<'a> {
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) caller: &'a str,
    pub(crate) call_id: &'a str,
    pub(crate) by: &'a str,
    pub(crate) channel: &'a str,
    /// The word of the answer, such as `approved`.
    pub(crate) decision: &'a str,
    pub(crate) scope: Option<&'a str>,
    /// Whether the arguments were changed.
    pub(crate) is_changed: bool,
}

impl AnswerNotice<'_> {
    pub(crate) fn notice(&self) -> Notice {
        let message = format!(
            "the question about a call of `{}` was answered: {}",
            self.tool, self.decision
        );
        let notice = Notice::new(Act::ApprovalAnswered, self.by, self.channel, &message)
            .about(self.id)
            .detail("decision", self.decision)
            .detail("tool", self.tool)
            .detail("caller", self.caller)
            .detail("callId", self.call_id);
        let notice = match self.is_changed {
            true => notice.detail("arguments", "changed"),
            false => notice,
        };
        match self.scope {
            Some(scope) => notice.detail("scope", scope),
            None => notice,
        }
    }
}

/// Carries an act out with its notice: before it, where it grants something, and
/// after it otherwise. `done` says whether it happened.
pub(crate) fn with_notice<T>(
    store: &Store,
    alarm: &Alarm,
    grants: bool,
    notice: Notice,
    act: impl FnOnce() -> Result<T, StoreError>,
    done: impl FnOnce(&T) -> bool,
) -> Result<T, StoreError> {
    let undone = notice.clone();
    let loud = |notice| loudly(store, alarm, notice);
    if grants {
        store.audit().notice(notice)?;
        let came = act();
        match &came {
            Ok(it) if done(it) => {}
            Ok(_) => loud(undone.undone("another change came first")),
            Err(fault) => loud(undone.undone(&causes(fault))),
        }
        return came;
    }
    let came = act()?;
    if done(&came) {
        loud(notice);
    }
    Ok(came)
}
