//! Settings of trust: a strategy and its tables.

use std::collections::BTreeMap;

use crate::govern::access::AccessLevel;
use crate::govern::pattern::NamePattern;
use crate::word::Word;

crate::words! {
    /// How trust is computed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Strategy {
        /// Not at all: the operator's levels apply.
        Disabled = "disabled",
        /// One score of four weighted parts.
        Weighted = "weighted",
        /// A track for each category of tools.
        PerCategory = "per_category",
        /// Tasks, quality and time, and the same again every so often.
        Milestone = "milestone",
    }
}

crate::words! {
    /// A step from one level to the next.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Step {
        /// The first.
        SandboxedToRestricted = "sandboxed_to_restricted",
        /// The second.
        RestrictedToStandard = "restricted_to_standard",
        /// The last, which only a person takes.
        StandardToElevated = "standard_to_elevated",
    }
}

impl Step {
    /// The step up from a level.
    #[must_use]
    pub fn from(level: AccessLevel) -> Option<Step> {
        match level {
            AccessLevel::Sandboxed => Some(Step::SandboxedToRestricted),
            AccessLevel::Restricted => Some(Step::RestrictedToStandard),
            AccessLevel::Standard => Some(Step::StandardToElevated),
            AccessLevel::Elevated | AccessLevel::Custom => None,
        }
    }

    /// The level it leads to.
    #[must_use]
    pub fn to(self) -> AccessLevel {
        match self {
            Step::SandboxedToRestricted => AccessLevel::Restricted,
            Step::RestrictedToStandard => AccessLevel::Standard,
            Step::StandardToElevated => AccessLevel::Elevated,
        }
    }
}

/// The weights of the four parts, in ten-thousandths. They add up to the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// How hard the tasks were.
    pub difficulty: u32,
    /// The share of success.
    pub completion: u32,
    /// The absence of errors.
    pub errors: u32,
    /// People's ratings.
    pub feedback: u32,
}

/// The requirements of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Criteria {
    /// Tasks.
    pub tasks: u32,
    /// Quality, in hundredths of a point of ten.
    pub quality_min: u32,
    /// Days at the level below.
    pub active_days: u32,
    /// Days without an error.
    pub clean_days: u32,
    /// Whether a person must agree.
    pub person: bool,
}

/// How trust is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decay {
    /// Whether levels decay.
    pub enabled: bool,
    /// Days without use.
    pub idle_days: u32,
    /// The share of calls that may go wrong, in ten-thousandths.
    pub error_rate_max: u32,
    /// Days after which a level is verified again.
    pub verify_days: u32,
    /// The quality that verification requires, in hundredths of a point of ten.
    pub verify_quality_min: u32,
}

/// Settings of trust.
///
/// Defaults ([`TrustConfig::standard`]): disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustConfig {
    /// The strategy.
    pub strategy: Strategy,
    /// Whose level trust may lower; every caller's if none is named.
    pub callers: Vec<NamePattern>,
    /// Groups of such callers, in lower case.
    pub groups: Vec<String>,
    /// The level a caller starts with.
    pub initial_level: AccessLevel,
    /// The level a caller starts with for tools of a category, in capitals.
    pub initial_levels: BTreeMap<String, AccessLevel>,
    /// The weights of the four parts.
    pub weights: Weights,
    /// The score each step takes, in ten-thousandths.
    pub thresholds: BTreeMap<Step, u32>,
    /// The requirements of each step.
    pub milestones: BTreeMap<Step, Criteria>,
    /// The requirements of each step for tools of a category, in capitals, where they
    /// differ.
    pub category_milestones: BTreeMap<String, BTreeMap<Step, Criteria>>,
    /// How trust is lost.
    pub decay: Decay,
}

impl TrustConfig {
    /// Trust when nothing is configured: it is off.
    #[must_use]
    pub fn standard() -> TrustConfig {
        let steps = Step::ALL.iter().copied();
        let criteria = |tasks, quality_min, active_days, clean_days, person| Criteria {
            tasks,
            quality_min,
            active_days,
            clean_days,
            person,
        };
        TrustConfig {
            strategy: Strategy::Disabled,
            callers: Vec::new(),
            groups: Vec::new(),
            initial_level: AccessLevel::Sandboxed,
            initial_levels: BTreeMap::from(
                [
                    ("FILE", AccessLevel::Restricted),
                    ("VERSION_CONTROL", AccessLevel::Restricted),
                    ("CODE_EXECUTION", AccessLevel::Sandboxed),
                    ("DEPLOYMENT", AccessLevel::Sandboxed),
                    ("DATABASE", AccessLevel::Sandboxed),
                    ("TERMINAL", AccessLevel::Sandboxed),
                    ("WEB", AccessLevel::Sandboxed),
                ]
                .map(|(name, level)| (name.to_owned(), level)),
            ),
            weights: Weights {
                difficulty: 3_000,
                completion: 2_500,
                errors: 2_500,
                feedback: 2_000,
            },
            thresholds: steps.zip([4_000, 6_000, 8_000]).collect(),
            milestones: BTreeMap::from([
                (Step::SandboxedToRestricted, criteria(5, 700, 0, 0, false)),
                (Step::RestrictedToStandard, criteria(20, 800, 7, 0, false)),
                (Step::StandardToElevated, criteria(20, 800, 14, 14, true)),
            ]),
            category_milestones: BTreeMap::from([
                (
                    "FILE".to_owned(),
                    BTreeMap::from([(Step::RestrictedToStandard, criteria(10, 700, 0, 0, false))]),
                ),
                (
                    "DEPLOYMENT".to_owned(),
                    BTreeMap::from([
                        (Step::SandboxedToRestricted, criteria(20, 850, 0, 0, true)),
                        (Step::RestrictedToStandard, criteria(20, 850, 7, 14, true)),
                    ]),
                ),
            ]),
            decay: Decay {
                enabled: true,
                idle_days: 30,
                error_rate_max: 1_500,
                verify_days: 90,
                verify_quality_min: 700,
            },
        }
    }

    /// The score a step requires; unreachable if not configured.
    pub(super) fn threshold(&self, step: Step) -> u32 {
        self.thresholds.get(&step).copied().unwrap_or(u32::MAX)
    }

    /// The requirements of a step for a category; a person's approval if not
    /// configured.
    pub(super) fn criteria(&self, category: Option<&String>, step: Step) -> Criteria {
        let special = category.and_then(|name| self.category_milestones.get(name));
        let special = special.and_then(|steps| steps.get(&step));
        let plain = || self.milestones.get(&step);
        special.or_else(plain).copied().unwrap_or(Criteria {
            tasks: u32::MAX,
            quality_min: 1_000,
            active_days: 0,
            clean_days: 0,
            person: true,
        })
    }
}
