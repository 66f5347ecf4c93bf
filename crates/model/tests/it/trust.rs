//! `cases/trust`: a history as a timeline in days, and what trust makes of it; and
//! random histories, beside milestones worked out on paper.

use std::fs;

use model::access::AccessLevel;
use model::document::Word;
use model::risk::Level;
use model::trust::{
    Feedback, Strategy as TrustStrategy, TrustChange, TrustConfig, TrustOutcome, TrustRecord,
    TrustState, evaluate,
};
use proptest::prelude::*;
use serde::Deserialize;

use crate::entries;

const DAY_MS: i64 = 86_400_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    about: String,
    strategy: String,
    start: Option<String>,
    step: Vec<Step>,
}

/// Calls, what a person says, or a look at the track.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    day: i64,
    tool: Option<String>,
    #[serde(default = "one")]
    times: i64,
    /// Days between one and the next; all on one day if absent.
    #[serde(default)]
    every: i64,
    category: Option<String>,
    risk: Option<String>,
    outcome: Option<String>,
    feedback: Option<u8>,
    agree: Option<bool>,
    expect: Option<String>,
}

fn one() -> i64 {
    1
}

fn word<T: Word>(text: &str) -> T {
    T::ALL
        .iter()
        .copied()
        .find(|word| word.word() == text)
        .unwrap()
}

struct Timeline {
    config: TrustConfig,
    state: TrustState,
    records: Vec<TrustRecord>,
    feedback: Vec<Feedback>,
    proposed: Option<AccessLevel>,
}

impl Timeline {
    fn take(&mut self, step: &Step) -> Option<String> {
        let at_ms = step.day * DAY_MS + DAY_MS / 2;
        let outcome = match step.outcome.as_deref() {
            None | Some("done") => TrustOutcome::Done,
            Some("failed") => TrustOutcome::Failed,
            Some("denied") => TrustOutcome::Denied,
            Some(other) => panic!("{other}"),
        };
        if let Some(tool) = &step.tool {
            self.records
                .extend((0..step.times).map(|index| TrustRecord {
                    at_ms: at_ms + index * step.every * DAY_MS + index,
                    tool: tool.clone(),
                    category: step.category.clone(),
                    risk: word::<Level>(step.risk.as_deref().unwrap_or("L3")),
                    outcome,
                }));
        }
        self.feedback.extend(step.feedback.map(|score| Feedback {
            at_ms,
            score,
            category: step.category.clone(),
        }));
        if let (Some(true), Some(level)) = (step.agree, self.proposed) {
            self.state.all = self.state.all.promoted(level, at_ms);
        }
        step.expect.as_ref()?;
        // An hour after what happened that day.
        let now_ms = at_ms + DAY_MS / 24;
        let seen = evaluate(
            &self.config,
            &self.state,
            &self.records,
            &self.feedback,
            now_ms,
        );
        let about = |category: Option<&String>| category == step.category.as_ref();
        let one = seen.iter().find(|one| about(one.category.as_ref()));
        let said = match one.and_then(|one| one.change) {
            None => "nothing".to_owned(),
            Some(TrustChange::Promoted(level)) => format!("promoted to {}", level.word()),
            Some(TrustChange::Proposed(level)) => format!("proposed for {}", level.word()),
            Some(TrustChange::Demoted(level)) => format!("demoted to {}", level.word()),
        };
        self.proposed = one.and_then(|one| match one.change {
            Some(TrustChange::Proposed(level)) => Some(level),
            Some(TrustChange::Promoted(_) | TrustChange::Demoted(_)) | None => None,
        });
        self.state = self.state.clone().after(&seen);
        let lines = one.map(|one| one.lines.join("\n  ")).unwrap_or_default();
        Some(format!("{said}\n  {lines}"))
    }
}

#[test]
fn trust_cases() {
    let files = entries("cases/trust");
    assert!(files.len() >= 12, "only {} cases", files.len());
    for file in files {
        let case: Case = toml::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let mut config = TrustConfig::standard();
        config.strategy = word::<TrustStrategy>(&case.strategy);
        let mut state = TrustState::initial(&config, DAY_MS / 2);
        if let Some(level) = &case.start {
            state.all.level = word(level);
        }
        let mut timeline = Timeline {
            config,
            state,
            records: Vec::new(),
            feedback: Vec::new(),
            proposed: None,
        };
        let looks = case.step.iter().filter(|step| step.expect.is_some());
        assert!(looks.count() > 0, "{} looks at nothing", file.display());
        for step in &case.step {
            let Some(seen) = timeline.take(step) else {
                continue;
            };
            let expected = step.expect.as_deref().unwrap();
            let said = seen.lines().next();
            assert_eq!(
                said,
                Some(expected),
                "{} ({}) day {}: {seen}",
                file.display(),
                case.about,
                step.day
            );
        }
    }
}

/// Milestones as one would check them on paper, in whole days.
fn on_paper(
    level: AccessLevel,
    deeds: &[(i64, u8, u8)],
    said: &[u8],
    now: i64,
) -> Option<TrustChange> {
    let past: Vec<_> = deeds.iter().filter(|(day, _, _)| *day <= now).collect();
    let all = past.len();
    let done: Vec<_> = past
        .iter()
        .filter(|(_, _, outcome)| *outcome == 0)
        .collect();
    let last = past.iter().map(|(day, _, _)| *day).max().unwrap_or(0);
    let total: usize = said.iter().map(|score| usize::from(*score)).sum();
    let quality = |least: usize| {
        all > 0
            && done.len() * 10 >= least * all
            && (said.is_empty() || total >= least * said.len())
    };
    let idle = now - last >= 30;
    let wrong = all >= 10 && done.len() * 100 < 85 * all;
    let stale = now >= 90 && !quality(7);
    if idle || wrong || stale {
        return match level {
            AccessLevel::Standard => Some(TrustChange::Demoted(AccessLevel::Restricted)),
            AccessLevel::Restricted => Some(TrustChange::Demoted(AccessLevel::Sandboxed)),
            _ => None,
        };
    }
    let tasks: std::collections::BTreeSet<_> =
        done.iter().map(|(day, tool, _)| (day, tool)).collect();
    let clean = past
        .iter()
        .all(|(day, _, outcome)| *outcome == 0 || now - day >= 14);
    match level {
        AccessLevel::Sandboxed => (tasks.len() >= 5 && quality(7))
            .then_some(TrustChange::Promoted(AccessLevel::Restricted)),
        AccessLevel::Restricted => (tasks.len() >= 20 && quality(8) && now >= 7)
            .then_some(TrustChange::Promoted(AccessLevel::Standard)),
        _ => (tasks.len() >= 20 && quality(8) && now >= 14 && clean)
            .then_some(TrustChange::Proposed(AccessLevel::Elevated)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn milestones_are_what_they_are_on_paper(
        level in prop::sample::select(vec![
            AccessLevel::Sandboxed, AccessLevel::Restricted, AccessLevel::Standard,
        ]),
        span in prop::sample::select(vec![6_i64, 25, 60, 120]),
        good in 0_usize..60,
        bad in prop::collection::vec((0_i64..120, 0_u8..5, 1_u8..3), 0..8),
        seed in any::<u32>(),
        said in prop::collection::vec(0_u8..=10, 0..3),
        now in 0_i64..120,
    ) {
        // Good days spread over the span by a plain generator, so that many worlds
        // come near the thresholds.
        let mut state = u64::from(seed);
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut deeds: Vec<(i64, u8, u8)> = (0..good)
            .map(|_| (i64::try_from(next(span.unsigned_abs())).unwrap(), u8::try_from(next(4)).unwrap(), 0))
            .collect();
        deeds.extend(bad);
        let mut config = TrustConfig::standard();
        config.strategy = TrustStrategy::Milestone;
        let mut track = TrustState::initial(&config, 0);
        track.all.level = level;
        let outcomes = [TrustOutcome::Done, TrustOutcome::Failed, TrustOutcome::Denied];
        let records: Vec<_> = deeds.iter().map(|(day, tool, outcome)| TrustRecord {
            at_ms: day * DAY_MS,
            tool: format!("t{tool}"),
            category: None,
            risk: Level::L3,
            outcome: *outcomes.get(usize::from(*outcome)).unwrap(),
        }).collect();
        let feedback: Vec<_> = said.iter().map(|score| Feedback { at_ms: 0, score: *score, category: None }).collect();
        let seen = evaluate(&config, &track, &records, &feedback, now * DAY_MS);
        let change = seen.first().unwrap().change;
        prop_assert_eq!(change, on_paper(level, &deeds, &said, now), "{:?}", seen);
    }
}
