//! The inbox: where the owner and operators see questions and answer them, from
//! any process of the home. And the way a client's own answer comes in when it
//! comes with another call.
//!
//! Invariant 7: a door of an agent reaches [`crate::Engine::answer`] only, which
//! takes an answer for a caller's own question, and none where another person must
//! approve. The door makes sure of who gets an [`Inbox`].

use std::collections::BTreeSet;

use model::caller::{Caller, CallerKind};
use model::govern::approval::{
    self, AnswerRefusal, ApprovalScope, ApprovalState, ApprovalSubject, Channel, authority,
};
use model::policy::risk::Level;
use model::record::audit::{Act, Notice};
use model::text;
use serde::{Deserialize, Serialize};
use store::approvals::{ChangedArguments, FoundApproval};
use store::{Approval, Store, StoreError};

use super::Questions;
use super::answer::{AnswerFault, Given, session_digest};
use crate::error::causes;
use crate::notice::loudly;
use crate::question::ApprovalAnswer;
use crate::trust::{self, Schedule, TrustAdmin};

pub use store::approvals::Listing;

/// The inbox of a home.
#[derive(Clone, Copy, Debug)]
pub struct Inbox<'a> {
    pub(crate) questions: &'a Questions,
    pub(crate) schedule: &'a Schedule,
    pub(crate) channel: Channel,
}

/// A question as people see it, and what was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The id that answers name.
    pub id: String,
    /// Where it stands now.
    pub state: ApprovalState,
    /// The tool that would run, on one line.
    pub tool: String,
    /// The caller as people see it.
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
    pub scopes: Vec<ApprovalScope>,
    /// What the approval counts for.
    pub scope: Option<ApprovalScope>,
    /// The person who answered.
    pub answered_by: Option<String>,
    /// When it was answered, in milliseconds since 1970.
    pub answered_at_ms: Option<i64>,
    /// The channel the answer came through.
    pub channel: Option<String>,
    /// The note of the person who answered.
    pub note: Option<String>,
    /// The arguments it runs with instead, as JSON, if the person changed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
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
    /// The risk level, `L0` to `L5`.
    pub level: Level,
    /// The reasons for the risk level.
    pub reasons: Vec<String>,
}

/// What a person decides, as an interface takes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalDecision {
    /// Whether the call may run.
    pub answer: ApprovalVerdict,
    /// What a yes counts for; once, if absent.
    #[serde(default)]
    pub scope: Option<ApprovalScope>,
    /// A note for the caller.
    #[serde(default)]
    pub note: Option<String>,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalVerdict {
    /// The call may run.
    Approve,
    /// The call must not run.
    Deny,
}

fn word(of: impl model::word::Word) -> &'static str {
    of.word()
}

impl Questions {
    /// Takes an answer that a caller's own client brought after the call had ended.
    pub(crate) fn answer_own(
        &self,
        id: &str,
        by: &Caller,
        channel: Channel,
        answer: ApprovalAnswer,
    ) -> Result<(), AnswerFault> {
        let found = self.writer.store.approvals().get(id)?;
        let found = found.ok_or(AnswerFault::Unknown)?;
        let is_owner = by.kind == CallerKind::Owner;
        // Invariant 7: an agent's own client never raises trust.
        let is_trust = trust::is_question(&found);
        // Name and kind both: a name alone does not make a caller the owner.
        if is_trust || found.caller != by.name || found.caller_is_owner != is_owner {
            return Err(AnswerFault::NotYours);
        }
        // Also for a no: it would use the question up.
        self.check_authority(channel, &found, by)?;
        let given = Given {
            by: &by.name,
            channel,
            note: None,
            changed: None,
        };
        self.writer.record(&found, answer, &given).map(|_| ())
    }

    /// Raises an alarm if the store failed: the operator must know, not only the person
    /// who answered.
    pub(crate) fn alarmed<T>(&self, done: Result<T, AnswerFault>) -> Result<T, AnswerFault> {
        if let Err(AnswerFault::Store(fault)) = &done {
            let why = causes(fault);
            let alarm = &self.writer.alarm;
            alarm.raise(&format!("the approvals cannot be read or written: {why}"));
        }
        done
    }

    /// Checks that this person may answer the question over this channel.
    fn check_authority(
        &self,
        channel: Channel,
        found: &Approval,
        by: &Caller,
    ) -> Result<(), AnswerFault> {
        // The level of a trust question says nothing about a call, so it has rules of its
        // own.
        let matter = match trust::is_question(found) {
            true => ApprovalSubject::Trust,
            false => ApprovalSubject::Call(found.level),
        };
        let settings = &self.writer.registry.current().config.approvals;
        let caller = asker(found);
        match authority::counts(channel, matter, &caller, &by.name, settings) {
            Ok(()) => Ok(()),
            Err(AnswerRefusal::Separate) => Err(AnswerFault::Separate),
            Err(AnswerRefusal::Client(_)) => Err(AnswerFault::NotByClient),
            Err(AnswerRefusal::Automation(_)) => Err(AnswerFault::NotByCommand),
        }
    }
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
        let now = self.now_ms();
        let found = self.store().approvals().list(listing, now)?;
        Ok(found.into_iter().map(|row| self.listed(row)).collect())
    }

    /// One question, by its id or a prefix of it.
    pub fn find(&self, beginning: &str) -> Result<Listed, AnswerFault> {
        self.found(beginning).map(|row| self.listed(row))
    }

    /// Yes, by the owner or an operator.
    pub fn approve(
        &self,
        beginning: &str,
        by: &Caller,
        scope: ApprovalScope,
        note: Option<&str>,
    ) -> Result<Listed, AnswerFault> {
        let found = self.found(beginning)?;
        // Invariant 7. A client's door gets no inbox; this holds even if one is handed to
        // it.
        if self.channel.is_own_client() {
            return Err(AnswerFault::NotByClient);
        }
        self.questions.check_authority(self.channel, &found, by)?;
        if trust::is_question(&found) {
            return self.raise(&found, by, note);
        }
        self.give(&found, ApprovalAnswer::Approved(scope), by, note)
    }

    /// A yes to a step in trust is done at once, or counts for nothing.
    fn raise(
        &self,
        found: &Approval,
        by: &Caller,
        note: Option<&str>,
    ) -> Result<Listed, AnswerFault> {
        // The answer is written first: it must be the first one, or the level is not
        // raised.
        self.give(
            found,
            ApprovalAnswer::Approved(ApprovalScope::Once),
            by,
            note,
        )?;
        let trust = TrustAdmin {
            schedule: self.schedule,
            now: self.questions.writer.registry.current(),
        };
        let is_raised = trust.apply_answer(found)?;
        let approvals = self.store().approvals();
        if !is_raised {
            // The level did not change, so an approval that stays would say that it had.
            approvals.revoke(&found.id, self.now_ms())?;
            return Err(AnswerFault::TrustChanged);
        }
        let after = approvals.get(&found.id)?.ok_or(AnswerFault::Unknown)?;
        Ok(self.listed(after))
    }

    /// Yes to the call with other arguments, once. `level` is the risk of that call, and
    /// `changed` what was judged: [`crate::inquiry`] makes both.
    pub(crate) fn approve_changed(
        &self,
        found: &Approval,
        by: &Caller,
        level: Level,
        note: Option<&str>,
        changed: ChangedArguments,
    ) -> Result<Listed, AnswerFault> {
        if self.channel.is_own_client() || trust::is_question(found) {
            return Err(AnswerFault::NotByClient);
        }
        // The change may have raised the risk. The authority of the person must cover the
        // graver of both calls.
        let mut graver = found.clone();
        graver.level = found.level.max(level);
        self.questions.check_authority(self.channel, &graver, by)?;
        let once = ApprovalAnswer::Approved(ApprovalScope::Once);
        self.give_changed(found, once, by, note, Some(changed))
    }

    /// The ids of the questions that wait.
    pub fn pending_ids(&self) -> Result<BTreeSet<String>, StoreError> {
        self.store().approvals().pending_ids(self.now_ms())
    }

    /// No, by the owner or an operator.
    pub fn deny(
        &self,
        beginning: &str,
        by: &Caller,
        note: Option<&str>,
    ) -> Result<Listed, AnswerFault> {
        // Everyone who sees the inbox may deny: a no takes nothing that was not asked
        // for.
        let found = self.found(beginning)?;
        self.give(&found, ApprovalAnswer::Declined, by, note)
    }

    /// Yes or no, as an interface takes it.
    pub fn decide(
        &self,
        id: &str,
        by: &Caller,
        decision: &ApprovalDecision,
    ) -> Result<Listed, AnswerFault> {
        // Without a scope the narrowest applies.
        let note = decision.note.as_deref();
        match decision.answer {
            ApprovalVerdict::Approve => {
                self.approve(id, by, decision.scope.unwrap_or(ApprovalScope::Once), note)
            }
            ApprovalVerdict::Deny => self.deny(id, by, note),
        }
    }

    /// Takes an approval back that was not used up.
    pub fn revoke(&self, beginning: &str, by: &Caller) -> Result<Listed, AnswerFault> {
        let found = self.found(beginning)?;
        let approvals = self.store().approvals();
        let is_revoked = approvals.revoke(&found.id, self.now_ms())?;
        let after = approvals.get(&found.id)?.ok_or(AnswerFault::Unknown)?;
        let after = self.listed(after);
        if is_revoked {
            let message = format!("an approval of `{}` was revoked", found.tool);
            let notice = Notice::new(Act::ApprovalRevoked, &by.name, word(self.channel), &message);
            // A revocation happens even if the audit cannot have it; then the operator is
            // alarmed.
            let notice = notice.about(&found.id).detail("tool", &found.tool);
            let notice = notice.detail("caller", &found.caller);
            loudly(self.store(), &self.questions.writer.alarm, notice);
            Ok(after)
        } else {
            Err(AnswerFault::NotApproved(after.state))
        }
    }

    /// A session is over: approvals for it count no more. Returns how many.
    pub fn end_session(&self, session: &str) -> Result<usize, StoreError> {
        match session_digest(session) {
            Some(session) => self.store().approvals().end_session(&session),
            None => Ok(0),
        }
    }

    fn store(&self) -> &'a Store {
        &self.questions.writer.store
    }

    fn now_ms(&self) -> i64 {
        self.questions.writer.clock.now_ms()
    }

    pub(crate) fn found(&self, beginning: &str) -> Result<Approval, AnswerFault> {
        match self.store().approvals().find(beginning)? {
            FoundApproval::None => Err(AnswerFault::Unknown),
            FoundApproval::One(one) => Ok(*one),
            FoundApproval::Several(ids) => Err(AnswerFault::Several(ids)),
        }
    }

    fn give(
        &self,
        found: &Approval,
        answer: ApprovalAnswer,
        by: &Caller,
        note: Option<&str>,
    ) -> Result<Listed, AnswerFault> {
        self.give_changed(found, answer, by, note, None)
    }

    fn give_changed(
        &self,
        found: &Approval,
        answer: ApprovalAnswer,
        by: &Caller,
        note: Option<&str>,
        changed: Option<ChangedArguments>,
    ) -> Result<Listed, AnswerFault> {
        let given = Given {
            by: &by.name,
            channel: self.channel,
            note,
            changed,
        };
        let after = self.questions.writer.record(found, answer, &given);
        let after = self.questions.alarmed(after)?;
        Ok(self.listed(after))
    }

    pub(crate) fn listed(&self, row: Approval) -> Listed {
        let settings = &self.questions.writer.registry.current().config.approvals;
        let may_answer = match trust::is_question(&row) {
            true => authority::ELSEWHERE.to_owned(),
            false => authority::told(&asker(&row), row.level, settings),
        };
        listed(row, may_answer, self.now_ms())
    }
}

/// Who raised a question.
pub(crate) fn asker(row: &Approval) -> Caller {
    match row.caller_is_owner {
        true => Caller::owner(),
        false => Caller::named(&row.caller),
    }
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
        changed: answer.as_ref().and_then(|answer| {
            let changed = answer.changed.as_ref()?;
            Some(text::json_line(&changed.arguments))
        }),
        note: answer.and_then(|answer| answer.note),
        uses: row.uses,
        call_id: row.call_id,
        used_by_call: row.used_by_call,
        binding: row.binding,
        id: row.id,
    }
}
