//! The inbox: where the owner and operators see questions and answer them, from
//! any process of the home. And the way a client's own answer comes in when it
//! comes with another call.
//!
//! Invariant 7: a door of an agent reaches [`crate::Engine::answer`] only, which
//! takes an answer for a caller's own question, and none where somebody else
//! must approve. Who may have an [`Inbox`] is for the door to make sure of.

use model::approval::{self, Channel, Matter, Scope, State, Unfit, authority};
use model::audit::{Act, Notice};
use model::caller::{Caller, CallerKind};
use model::config::ApprovalsConfig;
use model::document::Word as _;
use model::risk::Level;
use model::{digest, limits, text};
use serde::{Deserialize, Serialize};
use store::approvals::{FoundApproval, GivenAnswer, WaitingPlace};
use store::{Approval, StoreError};

use crate::approve::{Answer, words};
use crate::notice::{Answered, with_notice};
use crate::{Engine, causes, trust};

pub use store::approvals::Listing;

/// The inbox of a home.
#[derive(Clone, Copy, Debug)]
pub struct Inbox<'a> {
    engine: &'a Engine,
    channel: Channel,
}

/// A question as people see it, and what was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// Its name.
    pub id: String,
    /// Where it stands now.
    pub state: State,
    /// The tool's name.
    pub tool: String,
    /// Who called.
    pub caller: String,
    /// The badge and why.
    pub risk: ListedRisk,
    /// Why a person is asked.
    pub why: String,
    /// Who may answer, as the settings have it now.
    pub may_answer: String,
    /// The question in words.
    pub prompt: String,
    /// The arguments as one line of JSON: whole while the question waits, then the
    /// middle left out if they are long.
    pub arguments: String,
    /// When it was asked, in milliseconds since 1970.
    pub asked_at_ms: i64,
    /// When it can no longer be answered or no longer counts.
    pub expires_at_ms: i64,
    /// What an approval may count for.
    pub scopes: Vec<Scope>,
    /// What the approval counts for.
    pub scope: Option<Scope>,
    /// Who answered.
    pub answered_by: Option<String>,
    /// When.
    pub answered_at_ms: Option<i64>,
    /// Through what.
    pub channel: Option<String>,
    /// What they added.
    pub note: Option<String>,
    /// Calls that ran by it.
    pub uses: u64,
    /// The call that asked.
    pub call_id: String,
    /// The call that used it last, or was told.
    pub used_by_call: Option<String>,
    /// What the answer counts for.
    pub binding: String,
}

/// A badge and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedRisk {
    /// `L0` to `L5`.
    pub level: Level,
    /// Each reason.
    pub reasons: Vec<String>,
}

/// What a person decides, as an interface takes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Yes or no.
    pub answer: Said,
    /// What a yes counts for; once, if absent.
    #[serde(default)]
    pub scope: Option<Scope>,
    /// What the caller is told besides.
    #[serde(default)]
    pub note: Option<String>,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Said {
    /// Yes.
    Approve,
    /// No.
    Deny,
}

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

impl Engine {
    /// The inbox, for the owner and for operators.
    #[must_use]
    pub fn approvals(&self) -> Inbox<'_> {
        Inbox {
            engine: self,
            channel: Channel::Inbox,
        }
    }

    /// An answer that a caller's own client brought after the call had ended. The
    /// same call, made again, runs by it or is told of it. One that was not shown
    /// to a person leaves the question to the inbox: that call is then to be made
    /// without a way to ask, or the client would be asked the same again.
    pub fn answer(
        &self,
        id: &str,
        by: &Caller,
        channel: Channel,
        answer: Answer,
    ) -> Result<(), AnswerFault> {
        let answered = self.answer_of(id, by, channel, answer);
        self.alarmed(answered)
    }

    /// A store that fails is the operator's to know of, whoever is told besides.
    fn alarmed<T>(&self, done: Result<T, AnswerFault>) -> Result<T, AnswerFault> {
        if let Err(AnswerFault::Store(fault)) = &done {
            let why = causes(fault);
            self.alarm(&format!("the approvals cannot be used: {why}"));
        }
        done
    }

    fn answer_of(
        &self,
        id: &str,
        by: &Caller,
        channel: Channel,
        answer: Answer,
    ) -> Result<(), AnswerFault> {
        let found = self.store().approvals().get(id)?;
        let found = found.ok_or(AnswerFault::Unknown)?;
        let is_owner = by.kind == CallerKind::Owner;
        // Invariant 7: an agent's own client never raises trust.
        let is_trust = trust::is_question(&found);
        if is_trust || found.caller != by.name || found.caller_is_owner != is_owner {
            return Err(AnswerFault::NotYours);
        }
        self.counts(channel, &found, by)?;
        let given = Given {
            by: &by.name,
            channel,
            note: None,
        };
        self.give(&found, answer, &given).map(|_| ())
    }

    /// Whether a yes that comes so, from this one, counts for a question.
    fn counts(&self, channel: Channel, found: &Approval, by: &Caller) -> Result<(), AnswerFault> {
        let matter = match trust::is_question(found) {
            true => Matter::Trust,
            false => Matter::Call(found.level),
        };
        let settings = &self.registry().current().config.approvals;
        let caller = asker(found);
        match authority::counts(channel, matter, &caller, &by.name, settings) {
            Ok(()) => Ok(()),
            Err(Unfit::Separate) => Err(AnswerFault::Separate),
            Err(Unfit::Client(_)) => Err(AnswerFault::NotByClient),
            Err(Unfit::Automation(_)) => Err(AnswerFault::NotByCommand),
        }
    }

    /// Writes an answer down, if the question waits for it and it fits.
    fn give(
        &self,
        found: &Approval,
        answer: Answer,
        given: &Given<'_>,
    ) -> Result<Approval, AnswerFault> {
        let now = self.now_ms();
        match found.state.at(found.expires_at_ms, now) {
            State::Pending => {}
            State::Expired if found.answer.is_none() => return Err(AnswerFault::Expired),
            state => return Err(AnswerFault::Answered(state)),
        }
        let approvals = self.store().approvals();
        let Some((state, scope)) = answer.settles() else {
            let place = match answer {
                Answer::Deferred => WaitingPlace::Deferred,
                _ => WaitingPlace::Inbox,
            };
            approvals.wait_at(&found.id, place, now)?;
            return Ok(found.clone());
        };
        let scopes = approval::scopes_of_call(found.level, found.session.is_some());
        if let Some(scope) = scope
            && !scopes.contains(&scope)
        {
            return Err(AnswerFault::TooWide {
                level: found.level,
                scope,
                scopes,
            });
        }
        let settings = &self.registry().current().config.approvals;
        let note = given.note.map(str::trim).filter(|note| !note.is_empty());
        let kept = GivenAnswer {
            scope,
            at_ms: now,
            by: given.by.to_owned(),
            channel: given.channel.word().to_owned(),
            own_client: given.channel.is_own_client(),
            note: note.map(|note| text::elided(note, limits::APPROVAL_NOTE_CHARS_MAX)),
        };
        let expires = scope.map(|scope| expiry(scope, settings, now));
        let answered = Answered {
            id: &found.id,
            tool: &found.tool,
            caller: &found.caller,
            call_id: &found.call_id,
            by: given.by,
            channel: given.channel.word(),
            decision: word(state),
            scope: scope.map(word),
        };
        let was_first = with_notice(
            self.store(),
            self.alarm_of(),
            state == State::Approved,
            answered.notice(),
            || approvals.answer(&found.id, state, &kept, expires),
            |was_first| *was_first,
        )?;
        self.answers().notify_waiters();
        let after = approvals.get(&found.id)?.ok_or(AnswerFault::Unknown)?;
        if was_first {
            return Ok(after);
        }
        match after.state.at(after.expires_at_ms, self.now_ms()) {
            State::Expired | State::Pending => Err(AnswerFault::Expired),
            state => Err(AnswerFault::Answered(state)),
        }
    }
}

/// How an answer came.
struct Given<'a> {
    by: &'a str,
    channel: Channel,
    note: Option<&'a str>,
}

impl<'a> Inbox<'a> {
    /// The same inbox for answers that come another way than with an operator's key.
    /// The audit says which. A way of a caller's own client answers nothing here.
    #[must_use]
    pub fn through(self, channel: Channel) -> Inbox<'a> {
        Inbox { channel, ..self }
    }

    /// Questions, the oldest first.
    pub fn list(&self, listing: Listing) -> Result<Vec<Listed>, StoreError> {
        let now = self.engine.now_ms();
        let found = self.engine.store().approvals().list(listing, now)?;
        Ok(found.into_iter().map(|row| self.listed(row)).collect())
    }

    /// One question by its id or how it begins.
    pub fn find(&self, beginning: &str) -> Result<Listed, AnswerFault> {
        self.found(beginning).map(|row| self.listed(row))
    }

    /// Yes, by the owner or an operator.
    pub fn approve(
        &self,
        beginning: &str,
        by: &Caller,
        scope: Scope,
        note: Option<&str>,
    ) -> Result<Listed, AnswerFault> {
        let found = self.found(beginning)?;
        if self.channel.is_own_client() {
            return Err(AnswerFault::NotByClient);
        }
        self.engine.counts(self.channel, &found, by)?;
        if trust::is_question(&found) {
            return self.raise(&found, by, note);
        }
        self.give(&found, Answer::Approved(scope), by, note)
    }

    /// A yes to a step in trust is done at once, or counts for nothing.
    fn raise(
        &self,
        found: &Approval,
        by: &Caller,
        note: Option<&str>,
    ) -> Result<Listed, AnswerFault> {
        self.give(found, Answer::Approved(Scope::Once), by, note)?;
        let is_raised = self.engine.trust().answered(found)?;
        let approvals = self.engine.store().approvals();
        if !is_raised {
            approvals.revoke(&found.id, self.engine.now_ms())?;
            return Err(AnswerFault::TrustChanged);
        }
        let after = approvals.get(&found.id)?.ok_or(AnswerFault::Unknown)?;
        Ok(self.listed(after))
    }

    /// No, by the owner or an operator.
    pub fn deny(
        &self,
        beginning: &str,
        by: &Caller,
        note: Option<&str>,
    ) -> Result<Listed, AnswerFault> {
        let found = self.found(beginning)?;
        self.give(&found, Answer::Declined, by, note)
    }

    /// Yes or no, as an interface takes it.
    pub fn decide(
        &self,
        id: &str,
        by: &Caller,
        decision: &Decision,
    ) -> Result<Listed, AnswerFault> {
        let note = decision.note.as_deref();
        match decision.answer {
            Said::Approve => self.approve(id, by, decision.scope.unwrap_or(Scope::Once), note),
            Said::Deny => self.deny(id, by, note),
        }
    }

    /// Takes an approval back that was not used up.
    pub fn revoke(&self, beginning: &str, by: &Caller) -> Result<Listed, AnswerFault> {
        let found = self.found(beginning)?;
        let approvals = self.engine.store().approvals();
        let is_revoked = approvals.revoke(&found.id, self.engine.now_ms())?;
        let after = approvals.get(&found.id)?.ok_or(AnswerFault::Unknown)?;
        let after = self.listed(after);
        if is_revoked {
            let message = format!("an approval of `{}` was taken back", found.tool);
            let notice = Notice::new(Act::ApprovalRevoked, &by.name, word(self.channel), &message);
            let notice = notice.about(&found.id).detail("tool", &found.tool);
            self.engine.noticed(notice.detail("caller", &found.caller));
            Ok(after)
        } else {
            Err(AnswerFault::NotApproved(after.state))
        }
    }

    /// A session is over: approvals for it count no more. The answer is how many.
    pub fn end_session(&self, session: &str) -> Result<usize, StoreError> {
        match session_digest(session) {
            Some(session) => self.engine.store().approvals().end_session(&session),
            None => Ok(0),
        }
    }

    fn found(&self, beginning: &str) -> Result<Approval, AnswerFault> {
        match self.engine.store().approvals().find(beginning)? {
            FoundApproval::None => Err(AnswerFault::Unknown),
            FoundApproval::One(one) => Ok(*one),
            FoundApproval::Several(ids) => Err(AnswerFault::Several(ids)),
        }
    }

    fn give(
        &self,
        found: &Approval,
        answer: Answer,
        by: &Caller,
        note: Option<&str>,
    ) -> Result<Listed, AnswerFault> {
        let given = Given {
            by: &by.name,
            channel: self.channel,
            note,
        };
        let after = self.engine.give(found, answer, &given);
        let after = self.engine.alarmed(after)?;
        Ok(self.listed(after))
    }

    fn listed(&self, row: Approval) -> Listed {
        let settings = &self.engine.registry().current().config.approvals;
        let may_answer = match trust::is_question(&row) {
            true => authority::ELSEWHERE.to_owned(),
            false => authority::told(&asker(&row), row.level, settings),
        };
        listed(row, may_answer, self.engine.now_ms())
    }
}

/// Who raised a question.
fn asker(row: &Approval) -> Caller {
    match row.caller_is_owner {
        true => Caller::owner(),
        false => Caller::named(&row.caller),
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

fn listed(row: Approval, may_answer: String, now_ms: i64) -> Listed {
    let answer = row.answer;
    Listed {
        state: row.state.at(row.expires_at_ms, now_ms),
        tool: text::one_line(&row.tool),
        caller: approval::shown(&row.caller),
        risk: ListedRisk {
            level: row.level,
            reasons: row.reasons,
        },
        why: row.why,
        may_answer,
        prompt: row.prompt,
        arguments: row.arguments,
        asked_at_ms: row.asked_at_ms,
        expires_at_ms: row.expires_at_ms,
        scopes: approval::scopes_of_call(row.level, row.session.is_some()),
        scope: answer.as_ref().and_then(|answer| answer.scope),
        answered_at_ms: answer.as_ref().map(|answer| answer.at_ms),
        channel: answer.as_ref().map(|answer| answer.channel.clone()),
        answered_by: answer.as_ref().map(|answer| approval::shown(&answer.by)),
        note: answer.and_then(|answer| answer.note),
        uses: row.uses,
        call_id: row.call_id,
        used_by_call: row.used_by_call,
        binding: row.binding,
        id: row.id,
    }
}
