//! Trust: how a caller's history lowers or restores the level the operator gave.
//!
//! A pure function from a state, a history and a time to the next state.
//! Its signals are the audit and what people said, nothing else. It takes at most
//! one step at a time; what it takes away goes at once, and the step to
//! `elevated` is never its own: that is a question to a person.
//!
//! Attack: a thousand easy calls in an hour. A *task* is one tool used with
//! success on one day, so they are one task; ease earns no points; and no number
//! of them passes the last step.

use std::collections::{BTreeMap, BTreeSet};

use crate::govern::access::{AccessLevel, EarnedLevels};
use crate::limits;
use crate::policy::risk::Level;
use crate::reason::Reason;
use crate::record::audit::{Closing, Opening, Status};
use crate::time::DAY_MS;
use crate::word::Word;

mod config;

pub use config::{Criteria, Decay, Step, Strategy, TrustConfig, Weights};

/// Shares are integers, in ten-thousandths, so that every machine computes the same.
pub const WHOLE: u64 = 10_000;

/// A rate needs at least this many records.
const RECORDS_MIN: usize = 10;

/// One attempt, as the audit has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustRecord {
    /// When it ended, in milliseconds since 1970.
    pub at_ms: i64,
    /// The tool's name.
    pub tool: String,
    /// Its category, in capitals.
    pub category: Option<String>,
    /// The badge.
    pub risk: Level,
    /// How it ended.
    pub outcome: TrustOutcome,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustOutcome {
    /// The tool returned.
    Done,
    /// The tool failed.
    Failed,
    /// A rule, a level or a person said no.
    Denied,
}

/// A person's rating of a caller's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// From 0 to 10.
    pub score: u8,
    /// The category it is about; all if absent.
    pub category: Option<String>,
}

/// The state of a caller between evaluations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// The level earned.
    pub level: AccessLevel,
    /// Since when, in milliseconds since 1970. Earlier calls earned this level and do
    /// not count for the next.
    pub since_ms: i64,
    /// When it was last verified.
    pub verified_ms: i64,
}

/// All the tracks of a caller: one, and under `per_category` one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustState {
    /// For all tools.
    pub all: Track,
    /// For the tools of one category, in capitals.
    pub categories: BTreeMap<String, Track>,
}

/// The result of an evaluation for one track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustAssessment {
    /// The category; all tools if absent.
    pub category: Option<String>,
    /// The track from now on.
    pub next: Track,
    /// The change, made or proposed.
    pub change: Option<TrustChange>,
    /// The steps of the evaluation, one line each.
    pub lines: Vec<String>,
}

/// The change, made or proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustChange {
    /// One level up, by itself.
    Promoted(AccessLevel),
    /// One level up, if a person agrees.
    Proposed(AccessLevel),
    /// One level down, at once.
    Demoted(AccessLevel),
}

impl TrustRecord {
    /// Reads an audit entry. Invalid arguments, unknown tools and cancelled calls do
    /// not count for trust.
    #[must_use]
    pub fn from_audit(opening: &Opening, closing: &Closing) -> Option<TrustRecord> {
        let code = closing.error.as_ref().map(|error| error.code.as_str());
        let denying = [
            Reason::AccessDenied,
            Reason::ApprovalDeclined,
            Reason::CallerPaused,
            Reason::LevelDenied,
            Reason::RuleDenied,
            Reason::RuleUnevaluable,
        ];
        let outcome = match closing.status {
            Status::Done => TrustOutcome::Done,
            Status::Failed | Status::Crashed => TrustOutcome::Failed,
            Status::Refused if denying.iter().any(|reason| Some(reason.code()) == code) => {
                TrustOutcome::Denied
            }
            Status::Refused | Status::Cancelled => return None,
        };
        let tool = closing.tool.as_ref();
        let badge = tool.map_or("", |tool| tool.risk.as_str());
        let category = tool.and_then(|tool| tool.category.as_ref());
        Some(TrustRecord {
            at_ms: closing.at_ms,
            tool: opening.tool.to_lowercase(),
            category: category.map(|category| category.to_uppercase()),
            risk: Level::ALL
                .into_iter()
                .find(|level| level.badge() == badge)
                // An unknown badge earns nothing: it counts as the easiest.
                .unwrap_or(Level::L0),
            outcome,
        })
    }
}

impl TrustState {
    /// The initial state of a caller.
    #[must_use]
    pub fn initial(config: &TrustConfig, now_ms: i64) -> TrustState {
        // The call that a caller is first seen by counts.
        let since_ms = now_ms.saturating_sub(1);
        let track = |level: AccessLevel| Track {
            level,
            since_ms,
            verified_ms: now_ms,
        };
        let categories = config.initial_levels.iter();
        TrustState {
            all: track(config.initial_level),
            categories: categories
                .map(|(name, level)| (name.clone(), track(*level)))
                .collect(),
        }
    }

    /// The same with categories that the operator added since.
    #[must_use]
    pub fn completed(mut self, config: &TrustConfig, now_ms: i64) -> TrustState {
        for (name, track) in TrustState::initial(config, now_ms).categories {
            self.categories.entry(name).or_insert(track);
        }
        self
    }

    /// The earned levels for access; `None` while trust is disabled.
    #[must_use]
    pub fn earned(&self, config: &TrustConfig) -> Option<EarnedLevels> {
        if config.strategy == Strategy::Disabled {
            return None;
        }
        let level = |(name, track): (&String, &Track)| (name.clone(), track.level);
        let categories = match config.strategy {
            Strategy::PerCategory => self.categories.iter().map(level).collect(),
            // One level for all tools; nothing ever moves the others.
            Strategy::Disabled | Strategy::Weighted | Strategy::Milestone => BTreeMap::new(),
        };
        Some(EarnedLevels {
            level: self.all.level,
            categories,
        })
    }

    /// The state after an evaluation.
    #[must_use]
    pub fn after(mut self, assessments: &[TrustAssessment]) -> TrustState {
        for assessment in assessments {
            match &assessment.category {
                None => self.all = assessment.next.clone(),
                Some(name) => {
                    self.categories
                        .insert(name.clone(), assessment.next.clone());
                }
            }
        }
        self
    }
}

impl Track {
    /// The track after a person agreed to a proposal.
    #[must_use]
    pub fn promoted(&self, to: AccessLevel, now_ms: i64) -> Track {
        let next = Step::from(self.level).map(Step::to);
        if next != Some(to) {
            return self.clone();
        }
        Track {
            level: to,
            since_ms: now_ms,
            verified_ms: now_ms,
        }
    }
}

/// Evaluates every track of a caller.
#[must_use]
pub fn evaluate(
    config: &TrustConfig,
    state: &TrustState,
    records: &[TrustRecord],
    feedback: &[Feedback],
    now_ms: i64,
) -> Vec<TrustAssessment> {
    let one = |category: Option<&String>, track: &Track| {
        let seen = Seen::of(category, track, records, feedback, now_ms);
        assess(config, category, track, &seen, now_ms)
    };
    match config.strategy {
        Strategy::Disabled => Vec::new(),
        Strategy::Weighted | Strategy::Milestone => vec![one(None, &state.all)],
        Strategy::PerCategory => {
            let tracks = state.categories.iter();
            tracks.map(|(name, track)| one(Some(name), track)).collect()
        }
    }
}

/// The state and the last evaluation of a caller who was last evaluated at `from_ms`:
/// as if it had been evaluated every day since. So decay does not depend on whether a
/// process was running.
#[must_use]
pub fn follow(
    config: &TrustConfig,
    state: &TrustState,
    records: &[TrustRecord],
    feedback: &[Feedback],
    from_ms: i64,
    now_ms: i64,
) -> (TrustState, Vec<TrustAssessment>) {
    let absent_max = i64::from(limits::TRUST_ABSENT_DAYS_MAX) * DAY_MS;
    // Bounded: a year of absence and ten years end at the same level.
    let mut at_ms = from_ms.max(now_ms.saturating_sub(absent_max));
    let mut state = state.clone();
    loop {
        at_ms = at_ms.saturating_add(DAY_MS).min(now_ms);
        let assessments = evaluate(config, &state, records, feedback, at_ms);
        state = state.after(&assessments);
        if at_ms >= now_ms {
            return (state, assessments);
        }
    }
}

fn assess(
    config: &TrustConfig,
    category: Option<&String>,
    track: &Track,
    seen: &Seen<'_>,
    now_ms: i64,
) -> TrustAssessment {
    let mut assessment = TrustAssessment {
        category: category.cloned(),
        next: track.clone(),
        change: None,
        lines: vec![format!(
            "level {} since {}",
            track.level.word(),
            days(now_ms - track.since_ms)
        )],
    };
    if track.level == AccessLevel::Custom {
        assessment
            .lines
            .push("a custom level is left alone".to_owned());
        return assessment;
    }
    // A clock that was set back shows a future that has not happened.
    if now_ms < track.since_ms {
        assessment
            .lines
            .push("the clock is behind; nothing changes".to_owned());
        return assessment;
    }
    assessment.lines.extend(seen.lines());
    // Loss comes first: a caller that is due for both falls.
    if let Some(why) = decay(&config.decay, track, seen, now_ms) {
        return demoted(assessment, &why, now_ms);
    }
    let quarter = i64::from(config.decay.verify_days) * DAY_MS;
    if config.decay.enabled && now_ms - track.verified_ms >= quarter {
        if seen.quality() < u64::from(config.decay.verify_quality_min) {
            let why = format!("not verified: quality {}", points(seen.quality()));
            return demoted(assessment, &why, now_ms);
        }
        assessment.next.verified_ms = now_ms;
        assessment.lines.push("verified again".to_owned());
    }
    promotion(config, category, track, seen, now_ms, assessment)
}

fn demoted(mut assessment: TrustAssessment, why: &str, now_ms: i64) -> TrustAssessment {
    let Some(lower) = lower(assessment.next.level) else {
        assessment
            .lines
            .push(format!("{why}; there is nothing below"));
        return assessment;
    };
    assessment
        .lines
        .push(format!("{why}: down to {}", lower.word()));
    // Counted from nothing: what was earned before does not lead up again.
    assessment.next = Track {
        level: lower,
        since_ms: now_ms,
        verified_ms: now_ms,
    };
    assessment.change = Some(TrustChange::Demoted(lower));
    assessment
}

fn lower(level: AccessLevel) -> Option<AccessLevel> {
    match level {
        AccessLevel::Elevated => Some(AccessLevel::Standard),
        AccessLevel::Standard => Some(AccessLevel::Restricted),
        AccessLevel::Restricted => Some(AccessLevel::Sandboxed),
        AccessLevel::Sandboxed | AccessLevel::Custom => None,
    }
}

/// Idle for too long, or wrong too often. Idleness counts from the last use.
fn decay(decay: &Decay, track: &Track, seen: &Seen<'_>, now_ms: i64) -> Option<String> {
    if !decay.enabled {
        return None;
    }
    // A caller without a call since its last step is idle since then.
    let used = seen.last_ms.unwrap_or(track.since_ms);
    let idle = now_ms - used;
    if idle >= i64::from(decay.idle_days) * DAY_MS {
        return Some(format!("idle for {}", days(idle)));
    }
    // `right` is a share of `WHOLE`, so this cannot underflow.
    let wrong = WHOLE - seen.right();
    let enough = seen.records.len() >= RECORDS_MIN;
    (enough && wrong > u64::from(decay.error_rate_max))
        .then(|| format!("{} of calls went wrong", percent(wrong)))
}

fn promotion(
    config: &TrustConfig,
    category: Option<&String>,
    track: &Track,
    seen: &Seen<'_>,
    now_ms: i64,
    mut assessment: TrustAssessment,
) -> TrustAssessment {
    let Some(step) = Step::from(track.level) else {
        assessment.lines.push("there is nothing above".to_owned());
        return assessment;
    };
    let to = step.to();
    let (missing, person) = match config.strategy {
        Strategy::Disabled => (vec!["trust is disabled".to_owned()], true),
        Strategy::Weighted => {
            let (score, mut lines) = score(&config.weights, seen);
            assessment.lines.append(&mut lines);
            let wanted = u64::from(config.threshold(step));
            let mut missing = Vec::new();
            if seen.records.len() < RECORDS_MIN {
                missing.push(format!("at least {RECORDS_MIN} calls"));
            }
            // In the same list, so that a person reads all that is missing at once.
            if score < wanted {
                missing.push(format!("a score of {}", percent(wanted)));
            }
            // The score already includes what people said; only the last step needs one
            // to agree.
            (missing, false)
        }
        Strategy::PerCategory | Strategy::Milestone => {
            let criteria = config.criteria(category, step);
            (unmet(&criteria, track, seen, now_ms), criteria.person)
        }
    };
    if !missing.is_empty() {
        let line = format!("for {} it takes {}", to.word(), missing.join(", "));
        assessment.lines.push(line);
        return assessment;
    }
    // Whatever the settings, the last step needs a person.
    if person || step == Step::StandardToElevated {
        assessment
            .lines
            .push(format!("up to {}, if a person agrees", to.word()));
        assessment.change = Some(TrustChange::Proposed(to));
        return assessment;
    }
    assessment.lines.push(format!("up to {}", to.word()));
    assessment.next = track.promoted(to, now_ms);
    assessment.change = Some(TrustChange::Promoted(to));
    assessment
}

/// The weighted score, and how it comes about.
fn score(weights: &Weights, seen: &Seen<'_>) -> (u64, Vec<String>) {
    let parts = [
        ("difficulty", weights.difficulty, seen.difficulty()),
        ("completion", weights.completion, seen.completion()),
        ("freedom from errors", weights.errors, seen.right()),
        (
            "feedback",
            weights.feedback,
            // No rating is no praise: the part counts as nothing.
            seen.feedback_mean().unwrap_or(0),
        ),
    ];
    let sum: u64 = parts
        .iter()
        .map(|(_, weight, part)| u64::from(*weight) * part)
        .sum();
    let total = sum / WHOLE;
    let line = |(name, weight, part): &(&str, u32, u64)| {
        format!(
            "{name}: {} × weight {}",
            percent(*part),
            percent(u64::from(*weight))
        )
    };
    let mut lines: Vec<_> = parts.iter().map(line).collect();
    lines.push(format!("score {}", percent(total)));
    (total, lines)
}

fn unmet(criteria: &Criteria, track: &Track, seen: &Seen<'_>, now_ms: i64) -> Vec<String> {
    let mut missing = Vec::new();
    if seen.tasks() < u64::from(criteria.tasks) {
        missing.push(format!(
            "{} tasks, there are {}",
            criteria.tasks,
            seen.tasks()
        ));
    }
    if seen.quality() < u64::from(criteria.quality_min) {
        let wanted = points(u64::from(criteria.quality_min));
        missing.push(format!(
            "quality {wanted}, it is {}",
            points(seen.quality())
        ));
    }
    if now_ms - track.since_ms < i64::from(criteria.active_days) * DAY_MS {
        missing.push(format!("{} days at this level", criteria.active_days));
    }
    // An error older than this does not count. The level itself must be older, too.
    let clean_from = now_ms - i64::from(criteria.clean_days) * DAY_MS;
    let long_enough = criteria.clean_days == 0 || track.since_ms <= clean_from;
    let wrong =
        |record: &&TrustRecord| record.at_ms > clean_from && record.outcome != TrustOutcome::Done;
    if !long_enough || criteria.clean_days > 0 && seen.records.iter().any(wrong) {
        missing.push(format!("{} days without an error", criteria.clean_days));
    }
    missing
}

/// The records that count for one track: since it began, and not after now.
struct Seen<'a> {
    records: Vec<&'a TrustRecord>,
    scores: Vec<u64>,
    last_ms: Option<i64>,
}

impl<'a> Seen<'a> {
    fn of(
        category: Option<&String>,
        track: &Track,
        records: &'a [TrustRecord],
        feedback: &[Feedback],
        now_ms: i64,
    ) -> Seen<'a> {
        // A record at the very moment of a step led to that step.
        let counts = |at_ms: i64| at_ms > track.since_ms && at_ms <= now_ms;
        let about = |of: Option<&String>| category.is_none() || of == category;
        let relevant =
            |record: &&TrustRecord| record.at_ms <= now_ms && about(record.category.as_ref());
        let last_ms = records
            .iter()
            .filter(relevant)
            .map(|record| record.at_ms)
            .max();
        let mut seen: Vec<_> = records
            .iter()
            .filter(relevant)
            .filter(|record| counts(record.at_ms))
            .collect();
        // Newest first, so that the bound cuts the oldest.
        seen.sort_by_key(|record| std::cmp::Reverse(record.at_ms));
        seen.truncate(limits::TRUST_RECORDS_MAX + limits::TRUST_OLDER_ERRORS_MAX);
        let scores = feedback.iter().filter(|said| counts(said.at_ms));
        let scores = scores.filter(|said| said.category.is_none() || about(said.category.as_ref()));
        Seen {
            records: seen,
            // The scale ends at ten, whatever a row of the store says.
            scores: scores.map(|said| u64::from(said.score.min(10))).collect(),
            last_ms: last_ms.map(|last| last.max(track.since_ms)),
        }
    }

    fn count(&self, outcome: TrustOutcome) -> u64 {
        let of = self
            .records
            .iter()
            .filter(|record| record.outcome == outcome);
        as_count(of.count())
    }

    /// Tools used with success, each once a day.
    fn tasks(&self) -> u64 {
        let done = self
            .records
            .iter()
            .filter(|record| record.outcome == TrustOutcome::Done);
        let days: BTreeSet<_> = done
            .map(|record| (record.tool.as_str(), record.at_ms.div_euclid(DAY_MS)))
            .collect();
        as_count(days.len())
    }

    /// How hard the tasks were: the risk levels of successful calls, each tool once a
    /// day, so that repeating a hard call earns nothing more.
    fn difficulty(&self) -> u64 {
        let done = self
            .records
            .iter()
            .filter(|record| record.outcome == TrustOutcome::Done);
        let tasks: BTreeMap<_, _> = done
            .map(|record| {
                let key = (record.tool.as_str(), record.at_ms.div_euclid(DAY_MS));
                (key, weight(record.risk))
            })
            .collect();
        // Five is the weight of the hardest task.
        share(tasks.values().sum(), as_count(tasks.len()) * 5)
    }

    /// The share of runs that succeeded.
    fn completion(&self) -> u64 {
        let done = self.count(TrustOutcome::Done);
        share(done, done + self.count(TrustOutcome::Failed))
    }

    /// The share of attempts that succeeded.
    fn right(&self) -> u64 {
        match self.records.len() {
            // Without attempts nothing went wrong. `quality` counts that as nothing
            // shown.
            0 => WHOLE,
            all => share(self.count(TrustOutcome::Done), as_count(all)),
        }
    }

    fn feedback_mean(&self) -> Option<u64> {
        let sum: u64 = self.scores.iter().sum();
        (!self.scores.is_empty()).then(|| share(sum, as_count(self.scores.len()) * 10))
    }

    /// Hundredths of ten points: the share of success, or people's rating if that is
    /// lower. Feedback cannot remove an error, and a success cannot remove a complaint.
    fn quality(&self) -> u64 {
        let done = match self.records.len() {
            0 => 0,
            _ => self.right(),
        };
        self.feedback_mean().map_or(done, |said| said.min(done)) / 10
    }

    fn lines(&self) -> Vec<String> {
        vec![
            format!(
                "since then {} done, {} failed, {} denied: {} tasks",
                self.count(TrustOutcome::Done),
                self.count(TrustOutcome::Failed),
                self.count(TrustOutcome::Denied),
                self.tasks()
            ),
            format!("quality {} of 10", points(self.quality())),
        ]
    }
}

fn weight(level: Level) -> u64 {
    match level {
        Level::L0 => 0,
        Level::L1 => 1,
        Level::L2 => 2,
        Level::L3 => 3,
        Level::L4 => 4,
        Level::L5 => 5,
    }
}

fn share(part: u64, of: u64) -> u64 {
    (part * WHOLE).checked_div(of).unwrap_or(0)
}

fn as_count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn percent(share: u64) -> String {
    format!("{}.{:02} %", share / 100, share % 100)
}

fn points(hundredths: u64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn days(ms: i64) -> String {
    let days = usize::try_from(ms.max(0) / DAY_MS).unwrap_or(usize::MAX);
    crate::text::count(days, "day")
}

#[cfg(test)]
mod tests;
