//! `cases/trust`: a history as a timeline in days, and what trust makes of it.

use std::fs;

use model::access::AccessLevel;
use model::document::Word;
use model::risk::Level;
use model::trust::{
    Feedback, Strategy, TrustChange, TrustConfig, TrustOutcome, TrustRecord, TrustState, evaluate,
};
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
        config.strategy = word::<Strategy>(&case.strategy);
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
