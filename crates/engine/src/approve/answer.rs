//! The one writer of answers. The client that was asked within a call, the same client
//! with a later call, the inbox and the terminal all end here, so an answer means the
//! same whichever way it came.

use std::sync::Arc;

use model::config::ApprovalsConfig;
use model::document::Word as _;
use model::govern::approval::{self, Channel, Scope, State, authority};
use model::policy::risk::Level;
use model::{document::digest, limits, text};
use store::approvals::{GivenAnswer, WaitingPlace};
use store::{Approval, Store, StoreError};
use tokio::sync::Notify;

use super::words;
use crate::notice::{AnswerNotice, with_notice};
use crate::question::Answer;
use crate::registry::Registry;
use crate::services::{Alarm, Clock};

/// Why an answer does not count.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AnswerFault {
    /// No such question.
    #[error("there is no such question")]
    Unknown,
    /// A question of somebody else, in the words of one that does not exist.
    #[error("there is no such question")]
    NotYours,
    /// A beginning that fits several.
    #[error("several questions begin so: {}", .0.join(", "))]
    Several(Vec<String>),
    /// Answered before.
    #[error("the question does not wait for an answer: it is {}", word(*.0))]
    Answered(State),
    /// Too late.
    #[error("the question expired; the call must be made again")]
    Expired,
    /// Wider than the risk allows.
    #[error(
        "an approval of {} cannot count for `{}`; this one can count for: {}",
        .level.badge(), word(*.scope), words(.scopes)
    )]
    TooWide {
        /// The badge.
        level: Level,
        /// What was given.
        scope: Scope,
        /// What may be.
        scopes: Vec<Scope>,
    },
    /// Nothing that could be taken back.
    #[error("there is nothing to take back: it is {}", word(*.0))]
    NotApproved(State),
    /// A yes to a step in trust that is not there to be taken any more.
    #[error("the caller's standing changed since the question was asked; nothing was raised")]
    TrustChanged,
    /// The caller's own answer where somebody else must approve.
    #[error("whoever asks for a call may not approve it here; somebody else must")]
    Separate,
    /// The caller's own client where it may not answer, or not up to this risk.
    #[error(
        "the caller's own client may not answer this question; {}",
        authority::ELSEWHERE
    )]
    NotByClient,
    /// A command that asked nobody, where it may not, or not up to this risk.
    #[error(
        "no command approves this without a person at a terminal; `approvals.automation` \
         says up to which risk one may"
    )]
    NotByCommand,
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn word(of: impl model::document::Word) -> &'static str {
    of.word()
}

/// Who answered, how the answer came, and what they added.
#[derive(Debug)]
pub(crate) struct Given<'a> {
    pub(crate) by: &'a str,
    pub(crate) channel: Channel,
    pub(crate) note: Option<&'a str>,
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
        answer: Answer,
        given: &Given<'_>,
    ) -> Result<Approval, AnswerFault> {
        let now_ms = self.clock.now_ms();
        match question.state.at(question.expires_at_ms, now_ms) {
            State::Pending => {}
            State::Expired if question.answer.is_none() => return Err(AnswerFault::Expired),
            state => return Err(AnswerFault::Answered(state)),
        }
        let approvals = self.store.approvals();
        let answer = fit(question, answer, given.channel)?;
        let Some((state, scope)) = answer.settles() else {
            let place = match answer {
                Answer::Deferred => WaitingPlace::Deferred,
                _ => WaitingPlace::Inbox,
            };
            // The same question may wait there already; then that one is waited for.
            let id = approvals.wait_at(&question.id, place, now_ms)?;
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
            note: given
                .note
                .map(str::trim)
                .filter(|note| !note.is_empty())
                .map(|note| text::elided(note, limits::APPROVAL_NOTE_CHARS_MAX)),
        };
        let was_first = self.write(question, state, &kept, given)?;
        self.answers.notify_waiters();
        let after = approvals.get(&question.id)?.ok_or(AnswerFault::Unknown)?;
        if was_first {
            return Ok(after);
        }
        match after.state.at(after.expires_at_ms, self.clock.now_ms()) {
            State::Expired | State::Pending => Err(AnswerFault::Expired),
            state => Err(AnswerFault::Answered(state)),
        }
    }

    /// The answer and its notice: the notice first where the answer grants something.
    /// Says whether it was the first answer.
    fn write(
        &self,
        question: &Approval,
        state: State,
        kept: &GivenAnswer,
        given: &Given<'_>,
    ) -> Result<bool, StoreError> {
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
        };
        let approvals = self.store.approvals();
        with_notice(
            &self.store,
            &self.alarm,
            state == State::Approved,
            answered.notice(),
            || approvals.answer(&question.id, state, kept, expires),
            |was_first| *was_first,
        )
    }
}

/// A yes may be wider than the risk allows. At the inbox a person can choose again; a
/// client that offers what was not on offer did not ask this question.
fn fit(question: &Approval, answer: Answer, channel: Channel) -> Result<Answer, AnswerFault> {
    let Answer::Approved(scope) = answer else {
        return Ok(answer);
    };
    let scopes = approval::scopes_of_call(question.level, question.session.is_some());
    match scopes.contains(&scope) {
        true => Ok(answer),
        false if channel.is_own_client() => Ok(Answer::Malformed),
        false => Err(AnswerFault::TooWide {
            level: question.level,
            scope,
            scopes,
        }),
    }
}

/// When an approval given now counts no more.
pub(crate) fn expiry(scope: Scope, settings: &ApprovalsConfig, now_ms: i64) -> i64 {
    let seconds = scope.lasts_seconds(settings.expire_seconds);
    let lasts_ms = i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
    now_ms.saturating_add(lasts_ms)
}

/// What is kept of a session: whoever knows its name can speak in it.
pub(crate) fn session_digest(session: &str) -> Option<String> {
    digest::of_value(&serde_json::Value::from(session)).ok()
}
