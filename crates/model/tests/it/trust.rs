//! `cases/trust`: a history as a timeline in days, and what trust makes of it; and
//! random histories, beside milestones worked out on paper.

use std::fs;

use model::govern::access::AccessLevel;
use model::govern::trust::{
    Feedback, Strategy as TrustStrategy, TrustChange, TrustConfig, TrustOutcome, TrustRecord,
    TrustState, evaluate,
};
use model::policy::risk::Level;
use model::time::DAY_MS;
use model::word::Word;
use proptest::prelude::*;
use serde::Deserialize;

use crate::entries;

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
    fn milestones_agree_with_a_naive_computation(
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

/// A deed: its day, its tool, its badge, and whether it was done, failed or denied.
type LevelInput = (i64, u8, usize, u8);

/// The weighted score, computed naively, and the level that follows.
/// Nothing where the score is so near a threshold that rounding decides.
fn weighted_on_paper(
    level: AccessLevel,
    deeds: &[LevelInput],
    said: &[u8],
    now: i64,
) -> Option<Option<TrustChange>> {
    let past: Vec<_> = deeds.iter().filter(|(day, ..)| *day <= now).collect();
    let count = |wanted: u8| {
        past.iter()
            .filter(|(.., outcome)| *outcome == wanted)
            .count()
    };
    let (done, failed, all) = (count(0), count(1), past.len());
    let part = |part: usize, of: usize| match of {
        0 => 0.0,
        _ => part as f64 / of as f64,
    };
    let right = if all == 0 { 1.0 } else { part(done, all) };
    let total: usize = said.iter().map(|score| usize::from(*score)).sum();
    let mean = part(total, 10 * said.len());
    let quality = match (all, said.is_empty()) {
        (0, _) => 0.0,
        (_, true) => right,
        (_, false) => right.min(mean),
    };
    let last = past.iter().map(|(day, ..)| *day).max().unwrap_or(0);
    let is_wrong = all >= 10 && done * 100 < 85 * all;
    if now - last >= 30 || is_wrong || now >= 90 && quality < 0.7 {
        return Some(match level {
            AccessLevel::Standard => Some(TrustChange::Demoted(AccessLevel::Restricted)),
            AccessLevel::Restricted => Some(TrustChange::Demoted(AccessLevel::Sandboxed)),
            _ => None,
        });
    }
    // Each tool once a day, however often it was used.
    let tasks: std::collections::BTreeMap<_, _> = past
        .iter()
        .filter(|(.., outcome)| *outcome == 0)
        .map(|(day, tool, badge, _)| ((day, tool), *badge))
        .collect();
    let difficulty = part(tasks.values().sum(), 5 * tasks.len());
    let score = 0.3 * difficulty + 0.25 * part(done, done + failed) + 0.25 * right + 0.2 * mean;
    let (threshold, change) = match level {
        AccessLevel::Sandboxed => (0.4, TrustChange::Promoted(AccessLevel::Restricted)),
        AccessLevel::Restricted => (0.6, TrustChange::Promoted(AccessLevel::Standard)),
        _ => (0.8, TrustChange::Proposed(AccessLevel::Elevated)),
    };
    if (score - threshold).abs() < 0.001 {
        return None;
    }
    Some((all >= 10 && score > threshold).then_some(change))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn weights_agree_with_a_naive_computation(
        level in prop::sample::select(vec![
            AccessLevel::Sandboxed, AccessLevel::Restricted, AccessLevel::Standard,
        ]),
        good in prop::collection::vec((0_i64..40, 0_u8..5), 0..40),
        badges in prop::array::uniform5(0_usize..6),
        bad in prop::collection::vec((0_i64..100, 0_u8..5, 1_u8..3), 0..6),
        said in prop::collection::vec(5_u8..=10, 0..3),
        now in 0_i64..100,
    ) {
        let badge = |tool: u8| *badges.get(usize::from(tool)).unwrap();
        let good = good.iter().map(|(day, tool)| (*day, *tool, badge(*tool), 0));
        let bad = bad.iter().map(|(day, tool, outcome)| (*day, *tool, badge(*tool), *outcome));
        let deeds: Vec<LevelInput> = good.chain(bad).collect();
        let mut config = TrustConfig::standard();
        config.strategy = TrustStrategy::Weighted;
        let mut state = TrustState::initial(&config, 0);
        state.all.level = level;
        let outcomes = [TrustOutcome::Done, TrustOutcome::Failed, TrustOutcome::Denied];
        let records: Vec<_> = deeds.iter().map(|(day, tool, badge, outcome)| TrustRecord {
            at_ms: day * DAY_MS,
            tool: format!("t{tool}"),
            category: None,
            risk: *Level::ALL.get(*badge).unwrap(),
            outcome: *outcomes.get(usize::from(*outcome)).unwrap(),
        }).collect();
        let feedback: Vec<_> = said.iter().map(|score| Feedback { at_ms: 0, score: *score, category: None }).collect();
        let seen = evaluate(&config, &state, &records, &feedback, now * DAY_MS);
        if let Some(expected) = weighted_on_paper(level, &deeds, &said, now) {
            prop_assert_eq!(seen.first().unwrap().change, expected, "{:?}", seen);
        }
    }

    /// A category's track is the same track as if there were no other tools.
    #[test]
    fn categories_have_separate_tracks(
        good in prop::collection::vec((0_i64..40, 0_u8..3, 0_usize..2), 0..40),
        now in 0_i64..60,
    ) {
        let names = ["WEB", "FILE"];
        let mut config = TrustConfig::standard();
        config.strategy = TrustStrategy::PerCategory;
        config.initial_levels = names.map(|name| (name.to_owned(), AccessLevel::Sandboxed)).into();
        let record = |(day, tool, category): &(i64, u8, usize)| TrustRecord {
            at_ms: day * DAY_MS,
            tool: format!("t{tool}"),
            category: names.get(*category).map(|name| (*name).to_owned()),
            risk: Level::L3,
            outcome: TrustOutcome::Done,
        };
        let records: Vec<_> = good.iter().map(record).collect();
        let state = TrustState::initial(&config, 0);
        let both = evaluate(&config, &state, &records, &[], now * DAY_MS);
        prop_assert_eq!(both.len(), 2);
        for name in names {
            let own = |record: &&TrustRecord| record.category.as_deref() == Some(name);
            let own: Vec<_> = records.iter().filter(own).cloned().collect();
            let alone = evaluate(&config, &state, &own, &[], now * DAY_MS);
            let of = |all: &[model::govern::trust::TrustAssessment]| {
                all.iter().find(|one| one.category.as_deref() == Some(name)).cloned()
            };
            prop_assert_eq!(of(&both), of(&alone));
        }
    }
}
