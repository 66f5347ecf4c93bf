//! The one writer of answers. The client that was asked within a call, the same client
//! with a later call, the inbox and the terminal all end here, so an answer means the
//! same whichever way it came.

use std::sync::Arc;

use model::config::ApprovalsConfig;
use model::govern::approval::{self, ApprovalScope, ApprovalState, Channel, authority};
use model::policy::risk::Level;
use model::record::audit::{Act, Notice};
use model::word::Word as _;
use model::{document::digest, limits, text};
use store::approvals::{ChangedArguments, GivenAnswer, WaitingPlace};
use store::{Approval, Store, StoreError};
use tokio::sync::Notify;

use super::words;
use crate::notice::{AnswerNotice, loudly, with_notice};
use crate::question::ApprovalAnswer;
use crate::registry::Registry;
use crate::services::{Alarm, Clock};

/// Why an answer does not count.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AnswerFault {
    /// No question has that id.
    #[error("there is no such question")]
    Unknown,
    /// A question of another caller, in the words of one that does not exist.
    #[error("there is no such question")]
    NotYours,
    /// A beginning that fits several.
    #[error("several questions begin with that: {}", .0.join(", "))]
    Several(Vec<String>),
    /// The question was answered before.
    #[error("the question is not waiting for an answer: it is {}", word(*.0))]
    Answered(ApprovalState),
    /// The question expired before the answer came.
    #[error("the question expired; make the call again")]
    Expired,
    /// Wider than the risk allows.
    #[error(
        "an approval at risk {} cannot have the scope `{}`; it can have: {}",
        .level.badge(), word(*.scope), words(.scopes)
    )]
    TooWide {
        /// The risk level of the call.
        level: Level,
        /// The scope that was given.
        scope: ApprovalScope,
        /// The scopes that are allowed.
        scopes: Vec<ApprovalScope>,
    },
    /// Nothing that could be revoked.
    #[error("there is nothing to revoke: the approval is {}", word(*.0))]
    NotApproved(ApprovalState),
    /// A yes to a higher level for which the caller no longer qualifies.
    #[error("the caller's trust changed since the question was asked; its level was not raised")]
    TrustChanged,
    /// The caller's own answer where another person must approve.
    #[error("the caller may not approve its own call here; another person must approve it")]
    Separate,
    /// The caller's own client where it may not answer, or not up to this risk.
    #[error(
        "the caller's own client may not answer this question; {}",
        authority::ELSEWHERE
    )]
    NotByClient,
    /// A command that asked no person, where it may not, or not up to this risk.
    #[error(
        "a command without a person at a terminal may not approve this; `approvals.automation` \
         sets the highest risk it may approve"
    )]
    NotByCommand,
    /// The call with changed arguments would not run.
    #[error("the call with these arguments would be refused: {0}")]
    Refused(String),
    /// Changed arguments that hold what was masked: what was there is not known here.
    #[error(
        "the arguments hold a secret that is not shown, so they cannot be changed here; deny the call and have it made again"
    )]
    Masked,
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn word(of: impl model::word::Word) -> &'static str {
    of.word()
}

/// Who answered, how the answer came, and what they added.
#[derive(Debug)]
pub(crate) struct Given<'a> {
    pub(crate) by: &'a str,
    pub(crate) channel: Channel,
    pub(crate) note: Option<&'a str>,
    /// What is to run instead.
    pub(crate) changed: Option<ChangedArguments>,
}

/// Writes answers down and wakes the calls that wait for them.
#[derive(Clone, Debug)]
pub(crate) struct AnswerWriter {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) alarm: Alarm,
    pub(super) registry: Arc<Registry>,
    pub(super) answers: Arc<Notify>,
}

impl AnswerWriter {
    /// Writes an answer down, if the question waits for it and it fits. An answer that
    /// settles nothing leaves the question where it can be answered.
    pub(crate) fn record(
        &self,
        question: &Approval,
        answer: ApprovalAnswer,
        given: &Given<'_>,
    ) -> Result<Approval, AnswerFault> {
        let now_ms = self.clock.now_ms();
        match question.state.at(question.expires_at_ms, now_ms) {
            ApprovalState::Pending => {}
            // A row with an answer keeps the state that the answer gave it, and says so
            // below.
            ApprovalState::Expired if question.answer.is_none() => {
                return Err(AnswerFault::Expired);
            }
            state => return Err(AnswerFault::Answered(state)),
        }
        let approvals = self.store.approvals();
        // Checked here and not in the channels: every channel ends here, so none can
        // forget it.
        let answer = fit(question, answer, given.channel)?;
        let Some((state, scope)) = answer.settles() else {
            // The place decides who sees the question next. Neither place is an answer.
            let place = match answer {
                ApprovalAnswer::Deferred => WaitingPlace::Deferred,
                _ => WaitingPlace::Inbox,
            };
            // The same question may wait there already; then that one is waited for.
            let id = approvals.wait_at(&question.id, place, now_ms)?;
            if answer == ApprovalAnswer::NotRendered {
                self.tell_unread(question, &id, given);
            }
            return Ok(Approval {
                id,
                ..question.clone()
            });
        };
        let kept = GivenAnswer {
            scope,
            at_ms: now_ms,
            by: given.by.to_owned(),
            channel: given.channel.word().to_owned(),
            own_client: given.channel.is_own_client(),
            // The note goes to the model that made the call, so its length is bounded.
            note: given
                .note
                .map(str::trim)
                .filter(|note| !note.is_empty())
                .map(|note| text::elided(note, limits::APPROVAL_NOTE_CHARS_MAX)),
            changed: given.changed.clone(),
        };
        let was_first = self.write(question, state, &kept, given)?;
        // Woken even if another answer came first: a waiting call then finds that one.
        self.answers.notify_waiters();
        let after = approvals.get(&question.id)?.ok_or(AnswerFault::Unknown)?;
        if was_first {
            return Ok(after);
        }
        // Lost the race against another answer, or against the clock. The store says
        // which.
        match after.state.at(after.expires_at_ms, self.clock.now_ms()) {
            ApprovalState::Expired | ApprovalState::Pending => Err(AnswerFault::Expired),
            state => Err(AnswerFault::Answered(state)),
        }
    }

    /// Says and writes down that an answer did not count because no person can have read the
    /// question. Once for a question: it then waits in the inbox.
    ///
    /// Attack: a client that answers by itself is asked again with every repetition of its
    /// call, and would fill the log of the server and the audit.
    fn tell_unread(&self, question: &Approval, id: &str, given: &Given<'_>) {
        if question.place == WaitingPlace::Inbox {
            return;
        }
        let message = format!(
            "the client of `{}` answered a question about a call of `{}` faster than a person reads \
             it; the answer does not count, and the question waits in the inbox",
            text::one_line(&question.caller),
            text::one_line(&question.tool),
        );
        self.alarm.raise(&message);
        let notice = Notice::new(
            Act::ApprovalUnread,
            given.by,
            given.channel.word(),
            &message,
        )
        .about(id)
        .detail("tool", &question.tool)
        .detail("caller", &question.caller)
        .detail("callId", &question.call_id);
        loudly(&self.store, &self.alarm, notice);
    }

    /// The answer and its notice: the notice first where the answer grants something.
    /// Says whether it was the first answer.
    fn write(
        &self,
        question: &Approval,
        state: ApprovalState,
        kept: &GivenAnswer,
        given: &Given<'_>,
    ) -> Result<bool, StoreError> {
        // The newest settings: they may have shortened how long an approval lasts since
        // the question was asked.
        let settings = &self.registry.current().config.approvals;
        let expires = kept.scope.map(|scope| expiry(scope, settings, kept.at_ms));
        let answered = AnswerNotice {
            id: &question.id,
            tool: &question.tool,
            caller: &question.caller,
            call_id: &question.call_id,
            by: given.by,
            channel: given.channel.word(),
            decision: word(state),
            scope: kept.scope.map(word),
            is_changed: kept.changed.is_some(),
        };
        let approvals = self.store.approvals();
        with_notice(
            &self.store,
            &self.alarm,
            state == ApprovalState::Approved,
            answered.notice(),
            || approvals.answer(&question.id, state, kept, expires),
            |was_first| *was_first,
        )
    }
}

/// A yes may be wider than the risk allows. At the inbox a person can choose again; a
/// client that answers with a scope it was not given did not ask this question.
fn fit(
    question: &Approval,
    answer: ApprovalAnswer,
    channel: Channel,
) -> Result<ApprovalAnswer, AnswerFault> {
    let ApprovalAnswer::Approved(scope) = answer else {
        return Ok(answer);
    };
    let scopes = approval::scopes_of_call(question.level, question.session.is_some());
    // The scopes come from the level in the store, not from what the channel offered.
    match scopes.contains(&scope) {
        true => Ok(answer),
        false if channel.is_own_client() => Ok(ApprovalAnswer::Malformed),
        false => Err(AnswerFault::TooWide {
            level: question.level,
            scope,
            scopes,
        }),
    }
}

/// When an approval given now counts no more.
pub(crate) fn expiry(scope: ApprovalScope, settings: &ApprovalsConfig, now_ms: i64) -> i64 {
    let seconds = scope.lasts_seconds(settings.expire_seconds);
    // Saturates: an expiry that is too large lasts as long as time can be written, and
    // does not wrap into the past.
    let lasts_ms = i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
    now_ms.saturating_add(lasts_ms)
}

/// What is kept of a session: a digest, because its name lets a client speak in it.
pub(crate) fn session_digest(session: &str) -> Option<String> {
    digest::of_value(&serde_json::Value::from(session)).ok()
}
