//! Settings of trust.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::Faults;
use crate::govern::trust::{Criteria, Step, TrustConfig};
use crate::nearest::nearest;
use crate::text::elided;
use crate::word::{Word, words};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TrustFile {
    pub(super) strategy: Option<Spanned<String>>,
    callers: Option<Spanned<Vec<Spanned<String>>>>,
    initial_level: Option<Spanned<String>>,
    initial_levels: BTreeMap<String, Spanned<String>>,
    weights: Option<Spanned<WeightsFile>>,
    thresholds: BTreeMap<Spanned<String>, Spanned<f64>>,
    milestones: BTreeMap<Spanned<String>, Spanned<CriteriaFile>>,
    categories: BTreeMap<String, BTreeMap<Spanned<String>, Spanned<CriteriaFile>>>,
    re_verification: VerifyFile,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightsFile {
    task_difficulty: Spanned<f64>,
    completion_rate: Spanned<f64>,
    error_rate: Spanned<f64>,
    human_feedback: Spanned<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CriteriaFile {
    tasks_completed: Option<Spanned<u64>>,
    quality_score_min: Option<Spanned<f64>>,
    time_active_days: Option<Spanned<u64>>,
    clean_history_days: Option<Spanned<u64>>,
    requires_human_approval: Option<Spanned<bool>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct VerifyFile {
    enabled: Option<bool>,
    interval_days: Option<Spanned<u64>>,
    decay_on_idle_days: Option<Spanned<u64>>,
    decay_on_error_rate: Option<Spanned<f64>>,
    quality_score_min: Option<Spanned<f64>>,
}

/// Days and tasks an operator may ask for.
const COUNT_MAX: u64 = 100_000;

impl Faults<'_> {
    pub(super) fn trust(&mut self, file: TrustFile, groups: &[&str]) -> TrustConfig {
        let mut trust = TrustConfig::standard();
        self.set_word("strategy", file.strategy, &mut trust.strategy);
        let callers = self.names("callers", file.callers);
        (trust.callers, trust.groups) = self.callers(&callers, groups);
        self.set_word(
            "initial_level",
            file.initial_level,
            &mut trust.initial_level,
        );
        for (name, level) in &file.initial_levels {
            if let Some(level) = self.read_word(name, Some(level)) {
                trust.initial_levels.insert(name.to_uppercase(), level);
            }
        }
        if let Some(weights) = file.weights {
            self.weights(&weights, &mut trust);
        }
        for (name, score) in &file.thresholds {
            if let (Some(step), Some(score)) = (self.step(name), self.share(score, 1.0, 10_000.0)) {
                trust.thresholds.insert(step, score);
            }
        }
        self.milestones(file.milestones, &mut trust.milestones);
        for (category, steps) in file.categories {
            let known = trust.category_milestones.entry(category.to_uppercase());
            self.milestones(steps, known.or_default());
        }
        let decay = &mut trust.decay;
        let verify = file.re_verification;
        decay.enabled = verify.enabled.unwrap_or(decay.enabled);
        self.count(
            "interval_days",
            verify.interval_days,
            &mut decay.verify_days,
        );
        self.count(
            "decay_on_idle_days",
            verify.decay_on_idle_days,
            &mut decay.idle_days,
        );
        let rate = verify.decay_on_error_rate.as_ref();
        let rate = rate.and_then(|rate| self.share(rate, 1.0, 10_000.0));
        decay.error_rate_max = rate.unwrap_or(decay.error_rate_max);
        let quality = verify.quality_score_min.as_ref();
        let quality = quality.and_then(|quality| self.share(quality, 10.0, 100.0));
        decay.verify_quality_min = quality.unwrap_or(decay.verify_quality_min);
        trust
    }

    fn weights(&mut self, file: &Spanned<WeightsFile>, trust: &mut TrustConfig) {
        let given = file.get_ref();
        let mut one = |weight| self.share(weight, 1.0, 10_000.0).unwrap_or(0);
        trust.weights.difficulty = one(&given.task_difficulty);
        trust.weights.completion = one(&given.completion_rate);
        trust.weights.errors = one(&given.error_rate);
        trust.weights.feedback = one(&given.human_feedback);
        let weights = trust.weights;
        let sum = weights.difficulty + weights.completion + weights.errors + weights.feedback;
        // A hundredth of slack: thirds cannot be written exactly.
        if !(9_900..=10_100).contains(&sum) {
            let fix = Some("change them until they do".to_owned());
            self.say(file, "the weights do not add up to 1".to_owned(), fix);
        }
    }

    fn milestones(
        &mut self,
        file: BTreeMap<Spanned<String>, Spanned<CriteriaFile>>,
        into: &mut BTreeMap<Step, Criteria>,
    ) {
        for (name, criteria) in file {
            let Some(step) = self.step(&name) else {
                continue;
            };
            let given = criteria.into_inner();
            let mut criteria = into.get(&step).copied().unwrap_or(Criteria {
                tasks: 10,
                quality_min: 700,
                active_days: 0,
                clean_days: 0,
                person: step == Step::StandardToElevated,
            });
            self.count(
                "tasks_completed",
                given.tasks_completed,
                &mut criteria.tasks,
            );
            self.count(
                "time_active_days",
                given.time_active_days,
                &mut criteria.active_days,
            );
            self.count(
                "clean_history_days",
                given.clean_history_days,
                &mut criteria.clean_days,
            );
            let quality = given.quality_score_min.as_ref();
            let quality = quality.and_then(|quality| self.share(quality, 10.0, 100.0));
            criteria.quality_min = quality.unwrap_or(criteria.quality_min);
            if let Some(person) = given.requires_human_approval {
                if step == Step::StandardToElevated && !person.get_ref() {
                    let message = "the step to `elevated` always needs a person".to_owned();
                    self.say(&person, message, Some("remove the line".to_owned()));
                }
                criteria.person = *person.get_ref();
            }
            into.insert(step, criteria);
        }
    }

    fn step(&mut self, name: &Spanned<String>) -> Option<Step> {
        let text = name.get_ref();
        let found = Step::ALL.iter().copied().find(|step| step.word() == text);
        if found.is_none() {
            let near = nearest(text, Step::ALL.iter().map(|step| step.word()));
            let fix = near.map(|near| format!("write `{near}`"));
            let shown = elided(text, 40);
            self.say(
                name,
                format!("`{shown}` is not a step; it must be {}", words::<Step>()),
                fix,
            );
        }
        found
    }

    fn count(&mut self, name: &str, given: Option<Spanned<u64>>, into: &mut u32) {
        let given = self.read_number(name, given, 0..=COUNT_MAX);
        if let Some(count) = given.and_then(|count| u32::try_from(count).ok()) {
            *into = count;
        }
    }

    /// A number from 0 to `most`, counted in parts of one.
    fn share(&mut self, given: &Spanned<f64>, most: f64, parts: f64) -> Option<u32> {
        let number = *given.get_ref();
        if !(0.0..=most).contains(&number) {
            let message = format!("{number} is not between 0 and {most}");
            self.say(given, message, None);
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 10 000"
        )]
        Some((number * parts).round() as u32)
    }
}
