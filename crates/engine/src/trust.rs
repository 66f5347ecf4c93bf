//! Trust in force: when it is computed, from what, and how a person takes the last
//! step.
//!
//! The computation itself is `model::govern::trust`. Its records come from the audit, what
//! it says is kept in the store, and the level it leaves is part of the snapshot
//! every call is judged by. It is done before a call when the last time is an hour
//! or twenty calls ago, and before a person is shown it. Lists use what a call would
//! find (`preview`), and keep nothing. A lost level is lost at once; a step that a person
//! must approve is a question in the inbox.
//!
//! Invariant 7: no door of an agent leads here. An agent's own client cannot answer
//! these questions, and an answer of the caller itself does not count.

mod history;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use model::caller::Caller;
use model::config::Config;
use model::govern::access::AccessLevel;
use model::govern::access::quota::DenialCount;
use model::govern::approval::ApprovalState;
use model::govern::trust::{
    Feedback, Strategy, Track, TrustAssessment, TrustChange, TrustConfig, TrustState, follow,
};
use model::policy::risk::Level;
use model::record::audit::notice::SERVER;
use model::record::audit::{Act, Notice, Status};
use model::record::outcome::Outcome;
use model::word::Word as _;
use model::{document::digest, limits, text};
use serde::Serialize;
use serde_json::json;
use store::approvals::{AskResult, Claim, WaitingPlace};
use store::callers::{FeedbackRow, Raise, TrustSave};
use store::{Approval, Store, StoreError};

use crate::error::causes;
use crate::limit;
use crate::request::shown;
use crate::services::Clock;
use crate::snapshot::Snapshot;
use history::Histories;
use model::sync::lock;
use model::time::DAY_MS;

/// What questions about trust name as their tool.
const TOOL: &str = "trust:promote";

/// Whether a question is about trust. A document may have any name, so the name
/// alone does not tell; no call binds its tool and its arguments to one digest.
pub(crate) fn is_question(row: &Approval) -> bool {
    row.tool == TOOL && row.binding == row.tool_binding
}

/// Through what levels change.
const THROUGH: &str = "trust";

/// When each caller's trust was last recomputed in this process, and what that takes.
#[derive(Debug)]
pub(crate) struct Schedule {
    store: Store,
    clock: Clock,
    callers: Mutex<HashMap<String, LastTime>>,
    /// One recomputation at a time: calls that are due together wait for one.
    busy: tokio::sync::Mutex<()>,
    histories: Arc<Histories>,
}

#[derive(Clone, Copy, Debug)]
struct LastTime {
    at_ms: i64,
    calls: u64,
}

impl Schedule {
    pub(crate) fn new(store: &Store, clock: &Clock) -> Schedule {
        Schedule {
            store: store.clone(),
            clock: clock.clone(),
            callers: Mutex::default(),
            busy: tokio::sync::Mutex::default(),
            histories: Arc::default(),
        }
    }

    fn is_due(&self, name: &str, now_ms: i64) -> bool {
        let callers = lock(&self.callers);
        let Some(last) = callers.get(name) else {
            return true;
        };
        let every_ms = i64::try_from(limits::TRUST_SECONDS * 1_000).unwrap_or(i64::MAX);
        // A clock that was set back is a reason to look as well.
        let is_old = !(0..every_ms).contains(&(now_ms - last.at_ms));
        is_old || last.calls >= limits::TRUST_CALLS
    }

    fn mark_done(&self, name: String, at_ms: i64) {
        let mut callers = lock(&self.callers);
        let most = usize::try_from(limits::CALLERS_MAX).unwrap_or(usize::MAX);
        if callers.len() >= most {
            // A caller that is forgotten is only computed once more.
            callers.clear();
        }
        callers.insert(name, LastTime { at_ms, calls: 0 });
    }

    /// Counts a call towards the next recomputation; an error counts more.
    pub(crate) fn count_call(&self, caller: &Caller, outcome: &Outcome) {
        let is_wrong =
            DenialCount::of(outcome) == DenialCount::Denied || outcome.status == Status::Failed;
        let calls = if is_wrong {
            limits::TRUST_CALLS_OF_AN_ERROR
        } else {
            1
        };
        // A caller that was never computed is due anyway and needs no entry.
        if let Some(last) = lock(&self.callers).get_mut(&shown(caller)) {
            last.calls = last.calls.saturating_add(calls);
        }
    }

    /// Recomputes a caller's trust if that is due. Returns what the audit will say about
    /// it, or why it could not be done.
    pub(crate) async fn recompute_if_due(
        &self,
        config: &Config,
        caller: &Caller,
    ) -> Result<Option<String>, String> {
        let name = shown(caller);
        if !is_covered(config, caller) || !self.is_due(&name, self.clock.now_ms()) {
            return Ok(None);
        }
        let _one = self.busy.lock().await;
        let now_ms = self.clock.now_ms();
        // Again, now alone: the call before this one may have done it.
        if !self.is_due(&name, now_ms) {
            return Ok(Some("trust was recomputed".to_owned()));
        }
        let (store, config, whom) = (self.store.clone(), config.trust.clone(), name.clone());
        let histories = Arc::clone(&self.histories);
        let work = move || recompute(&store, &histories, &config, &whom, now_ms);
        let recomputed = match tokio::task::spawn_blocking(work).await {
            Ok(Ok(recomputed)) => recomputed,
            Ok(Err(fault)) => return Err(causes(&fault)),
            Err(_) => return Err("the trust task panicked".to_owned()),
        };
        // Only after success, so that a failure is tried again by the next call.
        self.mark_done(name, now_ms);
        let level = recomputed.state.all.level.word();
        Ok(Some(format!("trust was recomputed: {level}")))
    }

    /// The snapshot a call of a caller would be judged by if it came now: with trust
    /// recomputed where that is due. Nothing is kept and no person is asked: reading a
    /// list is not a call.
    pub(crate) fn preview(
        &self,
        now: &Arc<Snapshot>,
        caller: &Caller,
    ) -> Result<Arc<Snapshot>, String> {
        let config = &now.config;
        if !is_covered(config, caller) {
            return Ok(Arc::clone(now));
        }
        let name = shown(caller);
        let state = self.preview_state(&config.trust, &name);
        let state = state.map_err(|fault| causes(&fault))?;
        let earned = state.and_then(|state| state.earned(&config.trust));
        let Some(earned) = earned else {
            return Ok(Arc::clone(now));
        };
        let name = model::caller::folded(&name);
        let access = &config.access;
        // Cloning a snapshot costs more than this comparison, and most callers have what
        // they had.
        if access.earned.get(&name).or(access.unproven.as_ref()) == Some(&earned) {
            return Ok(Arc::clone(now));
        }
        Ok(Arc::new(now.with_earned(name, earned)))
    }

    /// What recomputing would leave of a caller's trust, where the next call would do
    /// it. Blocks.
    pub(crate) fn preview_state(
        &self,
        config: &TrustConfig,
        shown: &str,
    ) -> Result<Option<TrustState>, StoreError> {
        let now_ms = self.clock.now_ms();
        if config.strategy == Strategy::Disabled || !self.is_due(shown, now_ms) {
            return Ok(None);
        }
        let followed = followed(&self.store, &self.histories, config, shown, now_ms)?;
        Ok(Some(followed.after))
    }
}

/// What a computation came to.
#[derive(Debug)]
struct Recomputed {
    state: TrustState,
    assessments: Vec<TrustAssessment>,
    /// By the category they are about.
    questions: Vec<(Option<String>, PromotionStatus)>,
}

/// How a step that a person must take stands.
#[derive(Clone, Debug)]
enum PromotionStatus {
    /// It waits for an answer, under this id.
    Asked(String),
    /// A person agreed just now.
    Raised,
    /// A person said no, not long ago.
    Declined,
    /// It could not be asked: too many questions wait.
    Full,
}

/// Recomputes a caller's trust and stores the result. Blocks.
fn recompute(
    store: &Store,
    histories: &Histories,
    config: &TrustConfig,
    shown: &str,
    now_ms: i64,
) -> Result<Recomputed, StoreError> {
    let mut attempts = 0;
    let (state, assessments) = loop {
        attempts += 1;
        let Followed {
            before,
            begun,
            after,
            assessments,
        } = followed(store, histories, config, shown, now_ms)?;
        let before = before.as_ref();
        let moves = moves(shown, &begun, &after);
        // A promotion is recorded first, and does not happen without its record.
        for notice in moves.iter().filter(|(is_up, _)| *is_up) {
            store.audit().notice(notice.1.clone())?;
        }
        // Written only if the row is still `before`: another process may have computed,
        // too.
        let kept = store.callers().keep_trust(shown, before, &after, now_ms)?;
        for (is_up, notice) in moves {
            match (&kept, is_up) {
                (TrustSave::Yes, true) | (TrustSave::Changed | TrustSave::Full, false) => {}
                (TrustSave::Yes, false) => drop(store.audit().notice(notice)?),
                (TrustSave::Changed | TrustSave::Full, true) => {
                    // The notice stands already, so another one takes it back.
                    store.audit().notice(notice.undone("it was not saved"))?;
                }
            }
        }
        match kept {
            TrustSave::Yes => break (after, assessments),
            TrustSave::Changed if attempts < limit::TRUST_ATTEMPTS_MAX => {}
            // Another process was faster, and its result counts. Without room nothing is
            // earned.
            TrustSave::Changed | TrustSave::Full => break (begun, Vec::new()),
        }
    };
    let mut recomputed = Recomputed {
        state,
        assessments,
        questions: Vec::new(),
    };
    for assessment in &recomputed.assessments {
        let Some(TrustChange::Proposed(to)) = assessment.change else {
            continue;
        };
        let to = assessment.next.promoted(to, now_ms);
        let step = Step {
            shown,
            category: assessment.category.as_deref(),
            from: &assessment.next,
            to: &to,
            lines: &assessment.lines,
        };
        let standing = propose(store, &step, now_ms)?;
        let about = (assessment.category.clone(), standing);
        recomputed.questions.push(about);
    }
    // A yes that waited may have raised the level just now.
    if let Some(row) = store.callers().get(shown)?
        && let Some(state) = row.trust
    {
        recomputed.state = state;
    }
    Ok(recomputed)
}

/// A caller's trust from what was kept to now.
struct Followed {
    /// As it was kept.
    before: Option<TrustState>,
    /// With what the settings add.
    begun: TrustState,
    /// As it is now.
    after: TrustState,
    assessments: Vec<TrustAssessment>,
}

fn followed(
    store: &Store,
    histories: &Histories,
    config: &TrustConfig,
    shown: &str,
    now_ms: i64,
) -> Result<Followed, StoreError> {
    let said = store.callers().feedback(shown)?;
    let feedback: Vec<Feedback> = said.into_iter().map(|said| said.feedback).collect();
    let row = store.callers().get(shown)?;
    let before = row.as_ref().and_then(|row| row.trust.clone());
    let begun = match &before {
        Some(state) => state.clone().completed(config, now_ms),
        None => TrustState::initial(config, now_ms),
    };
    let since_ms = since_ms(config, &begun);
    let mut records = histories.of(store, shown, since_ms)?;
    if let Some(row) = &row
        && row.shown != shown
    {
        // The same caller, written in another way.
        records.extend(histories.of(store, &row.shown, since_ms)?);
    }
    let last_ms = row.as_ref().and_then(|row| row.evaluated_ms);
    let from_ms = last_ms.unwrap_or(now_ms);
    let (after, assessments) = follow(config, &begun, &records, &feedback, from_ms, now_ms);
    Ok(Followed {
        before,
        begun,
        after,
        assessments,
    })
}

/// From when on attempts matter: since the oldest track that is looked at began. A
/// call that ended after that may have begun before.
fn since_ms(config: &TrustConfig, state: &TrustState) -> i64 {
    let since_ms = match config.strategy {
        Strategy::Disabled | Strategy::Weighted | Strategy::Milestone => Some(state.all.since_ms),
        Strategy::PerCategory => state.categories.values().map(|track| track.since_ms).min(),
    };
    since_ms.unwrap_or(0).saturating_sub(DAY_MS)
}

/// What the audit says about each level that changes, and whether it is a step up.
fn moves(shown: &str, before: &TrustState, after: &TrustState) -> Vec<(bool, Notice)> {
    let all = [(None, Some(&before.all), &after.all)];
    let categories = after.categories.iter();
    let categories = categories.map(|(name, track)| {
        let before = before.categories.get(name);
        (Some(name.as_str()), before, track)
    });
    let mut moves = Vec::new();
    for (category, before, after) in all.into_iter().chain(categories) {
        let Some(before) = before.filter(|before| before.level != after.level) else {
            continue;
        };
        let is_up = after.level > before.level;
        let notice = moved(shown, category, SERVER, (before.level, after.level));
        moves.push((is_up, notice));
    }
    moves
}

fn moved(
    shown: &str,
    category: Option<&str>,
    by: &str,
    (from, to): (AccessLevel, AccessLevel),
) -> Notice {
    let (from, to) = (from.word(), to.word());
    let name = text::one_line(shown);
    let message = format!("the earned level of {name} changed from {from} to {to}");
    let notice = Notice::new(Act::TrustChanged, by, THROUGH, &message).about(shown);
    let notice = notice.detail("from", from).detail("to", to);
    match category {
        Some(category) => notice.detail("category", category),
        None => notice,
    }
}

/// A step up that a person must agree to.
struct Step<'a> {
    shown: &'a str,
    category: Option<&'a str>,
    from: &'a Track,
    to: &'a Track,
    lines: &'a [String],
}

impl Step<'_> {
    /// What an answer counts for: this step from this very track. Once the caller
    /// fell or rose, it counts for nothing.
    fn binding(&self) -> Option<String> {
        let bound = json!({
            "trust": model::caller::folded(self.shown), "category": self.category,
            "from": self.from.level.word(), "since": self.from.since_ms,
            "to": self.to.level.word(),
        });
        digest::of_value(&bound).ok()
    }

    fn question(&self, binding: String, now_ms: i64) -> Approval {
        let tools = match self.category {
            None => "all tools".to_owned(),
            Some(category) => format!("{category} tools"),
        };
        let (from, to) = (self.from.level.word(), self.to.level.word());
        let lines = self.lines.iter().map(|line| text::elided(line, 200));
        let id = uuid::Uuid::new_v4().simple().to_string();
        Approval {
            state: ApprovalState::Pending,
            place: WaitingPlace::Inbox,
            asked_at_ms: now_ms,
            expires_at_ms: now_ms.saturating_add(patience_ms()),
            tool_binding: binding.clone(),
            binding,
            session: None,
            call_id: id.clone(),
            id,
            tool: TOOL.to_owned(),
            caller: self.shown.to_owned(),
            // Trust does not cover the owner, who sets the levels.
            caller_is_owner: false,
            // The gravest level, so that a yes counts once and no wider scope can be
            // chosen.
            level: Level::L5,
            reasons: lines.take(limits::APPROVAL_REASONS_MAX).collect(),
            why: "a person must approve the last step in trust".to_owned(),
            prompt: format!(
                "Raise the level of {} from {from} to {to} for {tools}?",
                text::one_line(self.shown)
            ),
            arguments: json!({"from": from, "to": to, "category": self.category}).to_string(),
            answer: None,
            used_by_call: None,
            used_at_ms: None,
            uses: 0,
        }
    }
}

fn patience_ms() -> i64 {
    i64::from(limits::TRUST_QUESTION_DAYS) * DAY_MS
}

/// Takes the step if a person agreed to it, else sees to it that one is asked.
fn propose(store: &Store, step: &Step<'_>, now_ms: i64) -> Result<PromotionStatus, StoreError> {
    // Without a binding an answer could count for another step.
    let Some(binding) = step.binding() else {
        return Ok(PromotionStatus::Full);
    };
    if let Some(last) = store.approvals().last_about(&binding)? {
        let answered_ms = last.answer.as_ref().map(|answer| answer.at_ms);
        let is_recent = answered_ms.is_some_and(|at_ms| now_ms - at_ms < patience_ms());
        match last.state.at(last.expires_at_ms, now_ms) {
            ApprovalState::Pending => return Ok(PromotionStatus::Asked(last.id)),
            ApprovalState::Approved => {
                if let Some(by) = taken(store, &binding, now_ms)? {
                    let raise = Raise {
                        category: step.category.map(str::to_owned),
                        from: step.from.clone(),
                        to: step.to.clone(),
                        by,
                    };
                    let levels = (step.from.level, step.to.level);
                    let notice = moved(step.shown, step.category, &raise.by, levels);
                    store.audit().notice(notice.clone())?;
                    if store.callers().raise(step.shown, &raise)? {
                        return Ok(PromotionStatus::Raised);
                    }
                    store
                        .audit()
                        .notice(notice.undone("the caller's trust changed first"))?;
                }
            }
            ApprovalState::Declined | ApprovalState::Dismissed | ApprovalState::Malformed
                if is_recent =>
            {
                return Ok(PromotionStatus::Declined);
            }
            ApprovalState::Declined
            | ApprovalState::Dismissed
            | ApprovalState::Malformed
            | ApprovalState::Expired => {}
            // A yes at a time when the step could not be taken.
            ApprovalState::Revoked => {}
            // Used, but the level is what it was: the process died in between.
            ApprovalState::Used => {}
        }
    }
    let question = step.question(binding, now_ms);
    Ok(match store.approvals().ask(&question, now_ms)? {
        AskResult::Written => PromotionStatus::Asked(question.id),
        AskResult::Joined(same) => PromotionStatus::Asked(same.id),
        AskResult::TooManyOfCaller | AskResult::TooMany => PromotionStatus::Full,
    })
}

/// Uses up a person's yes. Returns who gave it. The caller's own yes, or that of its
/// client, does not count.
fn taken(store: &Store, binding: &str, now_ms: i64) -> Result<Option<String>, StoreError> {
    let claim = Claim {
        call_id: TOOL.to_owned(),
        binding: binding.to_owned(),
        tool_binding: binding.to_owned(),
        session: None,
        separate: true,
        own_client: false,
    };
    let claimed = store.approvals().claim(&claim, now_ms)?;
    let claimed = claimed
        .filter(|given| matches!(given.state, ApprovalState::Approved | ApprovalState::Used));
    Ok(claimed
        .and_then(|given| given.answer)
        .map(|answer| answer.by))
}

/// A caller's trust as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustReport {
    /// The name of the caller.
    pub caller: String,
    /// How it is recomputed.
    pub strategy: &'static str,
    /// Whether it is: not where trust is off or names others.
    pub covered: bool,
    /// The level for all tools, or one for each category.
    pub tracks: Vec<TrackReport>,
}

/// One track.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrackReport {
    /// The category; all tools if absent.
    pub category: Option<String>,
    /// The level earned.
    pub level: &'static str,
    /// Since when, in milliseconds since 1970.
    pub since_ms: i64,
    /// The question that waits for a person, if one does.
    pub question: Option<String>,
    /// How it came about, a line for each step.
    pub lines: Vec<String>,
}

/// Shows trust and keeps what people say. For the owner and operators.
#[derive(Clone, Debug)]
pub struct TrustAdmin<'a> {
    pub(crate) schedule: &'a Schedule,
    pub(crate) now: Arc<Snapshot>,
}

impl TrustAdmin<'_> {
    /// Recomputes a caller's trust and explains it. Nothing if the caller was never
    /// seen. Blocks.
    pub fn show(&self, name: &str) -> Result<Option<TrustReport>, StoreError> {
        let config = &self.now.config;
        let row = self.schedule.store.callers().get(name)?;
        let covered = is_covered(config, &Caller::named(name));
        let mut report = TrustReport {
            caller: text::one_line(name),
            strategy: config.trust.strategy.word(),
            covered,
            tracks: Vec::new(),
        };
        if !covered {
            return Ok(Some(report));
        }
        let Some(row) = row else {
            return Ok(None);
        };
        report.caller = text::one_line(&row.shown);
        report.tracks = self.recompute(&row.shown)?.tracks();
        Ok(Some(report))
    }

    fn recompute(&self, shown: &str) -> Result<Recomputed, StoreError> {
        let Schedule {
            store,
            histories,
            clock,
            ..
        } = self.schedule;
        let config = &self.now.config.trust;
        recompute(store, histories, config, shown, clock.now_ms())
    }

    /// Stores a person's feedback on a caller. Returns whether there was room for it.
    pub fn feedback(
        &self,
        name: &str,
        by: &Caller,
        score: u8,
        category: Option<&str>,
        note: Option<&str>,
    ) -> Result<bool, StoreError> {
        let note = note.map(str::trim).filter(|note| !note.is_empty());
        let said = FeedbackRow {
            feedback: Feedback {
                at_ms: self.schedule.clock.now_ms(),
                score: score.min(10),
                category: category.map(str::to_uppercase),
            },
            note: note.map(|note| text::elided(note, limits::APPROVAL_NOTE_CHARS_MAX)),
            by: by.name.clone(),
        };
        self.schedule.store.callers().add_feedback(name, &said)
    }

    /// A person answered a question about trust: what they agreed to is done now,
    /// if it still can be. Returns whether it was.
    pub(crate) fn apply_answer(&self, question: &Approval) -> Result<bool, StoreError> {
        let recomputed = self.recompute(&question.caller)?;
        let is_raised =
            |(_, status): &(_, PromotionStatus)| matches!(status, PromotionStatus::Raised);
        let after = self.schedule.store.approvals().get(&question.id)?;
        // By this very answer, not by another one about the same step.
        let is_used = after.is_some_and(|after| after.state == ApprovalState::Used);
        Ok(is_used && recomputed.questions.iter().any(is_raised))
    }
}

impl Recomputed {
    fn tracks(&self) -> Vec<TrackReport> {
        let report = |assessment: &TrustAssessment| {
            let category = &assessment.category;
            let track = match category {
                None => Some(&self.state.all),
                Some(name) => self.state.categories.get(name),
            };
            // A category without a stored track is shown as it would be stored.
            let track = track.unwrap_or(&assessment.next);
            let mut lines = assessment.lines.clone();
            let asked = self.questions.iter().find(|(about, _)| about == category);
            let asked = asked.map(|(_, standing)| standing);
            let mut question = None;
            match asked {
                None => {}
                Some(PromotionStatus::Asked(id)) => {
                    lines.push(format!(
                        "a person is asked: `ringfence approvals show {id}`"
                    ));
                    question = Some(id.clone());
                }
                Some(PromotionStatus::Raised) => lines.push("a person agreed".to_owned()),
                Some(PromotionStatus::Declined) => lines.push("a person declined".to_owned()),
                Some(PromotionStatus::Full) => {
                    lines.push("no person can be asked: too many questions are waiting".to_owned());
                }
            }
            TrackReport {
                category: category.clone(),
                level: track.level.word(),
                since_ms: track.since_ms,
                question,
                lines,
            }
        };
        self.assessments.iter().map(report).collect()
    }
}

/// Whether a caller's trust is computed at all.
pub(crate) fn is_covered(config: &Config, caller: &Caller) -> bool {
    config.trust.strategy != Strategy::Disabled && config.access.is_in_trust_scope(caller)
}
