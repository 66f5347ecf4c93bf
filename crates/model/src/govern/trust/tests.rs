//! Properties of trust. Its timelines are in `cases/trust`.

use proptest::prelude::*;

use super::*;

fn record(at_ms: i64, tool: &str, outcome: TrustOutcome) -> TrustRecord {
    TrustRecord {
        at_ms,
        tool: tool.to_owned(),
        category: Some("FILE".to_owned()),
        risk: Level::L5,
        outcome,
    }
}

fn outcomes() -> impl Strategy<Value = TrustOutcome> {
    prop_oneof![
        8 => Just(TrustOutcome::Done),
        1 => Just(TrustOutcome::Failed),
        1 => Just(TrustOutcome::Denied),
    ]
}

use proptest::strategy::Strategy;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever happened, however often it is looked at, no caller gets to elevated
    /// without a person, nor more than one step at a time.
    #[test]
    fn elevation_needs_a_person(
        deeds in prop::collection::vec((0_i64..100, "[a-z]{1,2}", outcomes()), 0..100),
        said in prop::collection::vec((0_i64..200, 0_u8..=10), 0..10),
        strategy in prop::sample::select(vec![
            super::Strategy::Weighted, super::Strategy::PerCategory, super::Strategy::Milestone,
        ]),
        person in any::<bool>(),
    ) {
        let mut config = TrustConfig::standard();
        config.strategy = strategy;
        // Settings that try to leave the person out.
        for criteria in config.milestones.values_mut() {
            criteria.person = person;
            criteria.tasks = 1;
            criteria.active_days = 0;
        }
        let records: Vec<_> = deeds
            .iter()
            .map(|(day, tool, outcome)| record(day * DAY_MS, tool, *outcome))
            .collect();
        let feedback: Vec<_> = said
            .iter()
            .map(|(day, score)| Feedback { at_ms: day * DAY_MS, score: *score, category: None })
            .collect();
        let mut state = TrustState::initial(&config, 0);
        for day in 0..150 {
            let seen = evaluate(&config, &state, &records, &feedback, day * DAY_MS);
            for one in &seen {
                let before = one.category.as_ref().map_or(&state.all, |name| &state.categories[name]);
                let (from, to) = (before.level as i32, one.next.level as i32);
                prop_assert!((from - to).abs() <= 1);
                prop_assert!(to <= AccessLevel::Standard as i32);
                prop_assert!(to <= from || matches!(one.change, Some(TrustChange::Promoted(_))));
            }
            state = state.after(&seen);
        }
    }

    /// Same history, same clock, same answer; and what lies in the future, or was
    /// written down in another order, changes nothing.
    #[test]
    fn the_same_world_gives_the_same_answer(
        deeds in prop::collection::vec((0_i64..60, "[a-z]{1,2}", outcomes()), 0..80),
        now in 0_i64..60,
    ) {
        let mut config = TrustConfig::standard();
        config.strategy = super::Strategy::Milestone;
        let state = TrustState::initial(&config, 0);
        let records: Vec<_> = deeds
            .iter()
            .map(|(day, tool, outcome)| record(day * DAY_MS, tool, *outcome))
            .collect();
        let mut past: Vec<_> = records.iter().filter(|one| one.at_ms <= now * DAY_MS).cloned().collect();
        past.reverse();
        let look = |records: &[TrustRecord]| evaluate(&config, &state, records, &[], now * DAY_MS);
        prop_assert_eq!(look(&records), look(&past));
    }

    /// One more failure never helps.
    #[test]
    fn failures_never_raise_trust(
        deeds in prop::collection::vec((0_i64..25, "[a-z]{1,2}", outcomes()), 0..80),
        at in 0_i64..25,
    ) {
        let config = TrustConfig { strategy: super::Strategy::Weighted, ..TrustConfig::standard() };
        let state = TrustState::initial(&config, 0);
        let mut records: Vec<_> = deeds
            .iter()
            .map(|(day, tool, outcome)| record(day * DAY_MS, tool, *outcome))
            .collect();
        // Below the number that says anything, one more is only one more.
        prop_assume!(records.len() >= RECORDS_MIN);
        let level = |records: &[TrustRecord]| {
            evaluate(&config, &state, records, &[], 25 * DAY_MS)[0].next.level
        };
        let before = level(&records);
        records.push(record(at * DAY_MS, "zz", TrustOutcome::Failed));
        prop_assert!(level(&records) <= before);
    }
}
