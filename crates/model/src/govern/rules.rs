//! May this call, with these arguments, run now? Allow, ask a person, or deny.
//! Deny is stronger than ask, and ask than allow.
//!
//! The order of rules does not matter: the strongest match decides. A rule that cannot
//! be evaluated denies. Where no rule matches, the document and the caller's level
//! decide.

use crate::caller::{Caller, CallerKind, Origin};
use crate::document::params::Arguments;
use crate::document::{ApprovalMode, Document};
use crate::govern::access::CallerRights;
use crate::govern::access::level::{LevelInput, LevelObjection};
use crate::govern::action::{Action, Actions};
use crate::govern::autonomy::Autonomy;
use crate::policy::EffectivePolicy;
use crate::policy::host_bound::{HostBounds, HostList, ListedBy};
use crate::policy::risk::{Level, Risk};
use crate::reason::Reason;
use crate::record::outcome::{Advice, Retry};
use crate::word::Word as _;

pub mod condition;
pub mod lint;
mod rule;
mod words;

pub use condition::{Condition, ConditionFault, ConditionScope, Unevaluable};
use rule::{Facts, Match};
pub use rule::{RiskRange, Rule};

/// The operator's rules.
///
/// Defaults ([`Rules::standard`]): no rules; documents that leave it to the rules
/// (`AUTO_APPROVE`) ask from L3 up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The risk level from which a document that leaves approval to the rules asks.
    pub ask_from: Level,
    /// The rules, each with an id of its own.
    pub list: Vec<Rule>,
    /// Every action there is.
    pub actions: Actions,
}

/// The input of a rule.
#[derive(Clone, Copy, Debug)]
pub struct RuleInput<'a> {
    /// Who calls.
    pub caller: &'a Caller,
    /// The caller's rights.
    pub rights: &'a CallerRights,
    /// Through which door.
    pub origin: Origin,
    /// What is called.
    pub document: &'a Document,
    /// With what, checked.
    pub arguments: &'a Arguments,
    /// The policy of the call, narrowed by the caller's level.
    pub policy: &'a EffectivePolicy,
    /// The badge of the call's policy.
    pub risk: &'a Risk,
    /// Facts about the body that would run.
    pub body: BodyFacts<'a>,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
}

/// Facts about the body of a tool, beside its document and policy.
#[derive(Clone, Copy, Debug)]
pub struct BodyFacts<'a> {
    /// The actions of this call, if the body derives them from the arguments.
    pub actions: Option<&'a [Action]>,
    /// Whether it runs in the sandbox, in a jail with namespaces of its own, or in a
    /// container.
    pub contained: bool,
    /// Whether this call changes nothing, here or elsewhere, though others of the tool may.
    pub only_reads: bool,
}

impl BodyFacts<'_> {
    /// The body of an ordinary document: its code, in the sandbox.
    #[must_use]
    pub fn sandboxed() -> BodyFacts<'static> {
        BodyFacts {
            actions: None,
            contained: true,
            only_reads: false,
        }
    }
}

/// A decision, and its one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The effect.
    pub effect: Effect,
    /// For people.
    pub reason: String,
    /// The rule that decided, if one did.
    pub rule: Option<String>,
    /// The stable code, where the call is denied.
    pub code: Option<Reason>,
    /// The narrowest change that would let the call through, where it is denied.
    pub remedy: Option<String>,
    /// Whether it makes sense to try again, where it is denied.
    pub retry: Retry,
    /// The host bounds that rules add, if the call is not denied.
    pub bounds: HostBounds,
}

crate::words! {
    /// The effect of a decision. Later is stronger.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Effect {
        /// It runs.
        Allow = "allow",
        /// A person decides.
        Ask = "ask",
        /// It does not run.
        Deny = "deny",
    }
}

impl Rules {
    /// The defaults.
    #[must_use]
    pub fn standard() -> Rules {
        Rules {
            ask_from: Level::L3,
            list: Vec::new(),
            actions: Actions::default(),
        }
    }

    /// Decides about one call.
    #[must_use]
    pub fn decide(&self, asked: &RuleInput<'_>) -> Decision {
        let actions = self.actions_of(asked);
        let (by_rule, bounds) = self.strongest(asked, &actions);
        // A rule that allows answers the questions of the defaults and of the
        // level; never that of the document itself, and never a preset's.
        let said = match &by_rule {
            Some(_) => None,
            None => Some(self.unsaid(asked)),
        };
        let by_level = level(asked, &actions)
            .filter(|decision| decision.effect == Effect::Deny || by_rule.is_none());
        let all = [
            by_rule,
            said,
            by_level,
            document(asked),
            self.autonomy(asked, &actions),
            emptied(asked, &bounds),
        ];
        let strongest = |one: Decision, two: Decision| {
            if two.effect > one.effect { two } else { one }
        };
        let decided = all.into_iter().flatten().reduce(strongest);
        let decided = decided
            // Unreachable today, because `said` is there if no rule matches. Denies in
            // case that changes.
            .unwrap_or_else(|| Decision::deny(Reason::RuleDenied, "nothing decided".to_owned()));
        Decision { bounds, ..decided }
    }

    /// Whether the operator wants a person asked, whatever the document wants: by a
    /// rule, a level or an autonomy.
    #[must_use]
    pub fn operator_asks(&self, asked: &RuleInput<'_>) -> bool {
        let actions = self.actions_of(asked);
        let (by_rule, _) = self.strongest(asked, &actions);
        let by_level = level(asked, &actions).filter(|_| by_rule.is_none());
        let all = [by_rule, by_level, self.autonomy(asked, &actions)];
        all.into_iter()
            .flatten()
            .any(|decision| decision.effect == Effect::Ask)
    }

    fn actions_of(&self, asked: &RuleInput<'_>) -> Vec<Action> {
        let stated = asked.body.actions;
        self.actions.of_call(asked.document, asked.policy, stated)
    }

    /// The strongest of the rules that match; of equals, the one whose id comes first,
    /// so that the order in the file does not matter.
    fn strongest(
        &self,
        asked: &RuleInput<'_>,
        actions: &[Action],
    ) -> (Option<Decision>, HostBounds) {
        // Bounds come from every rule that matches, not only from the strongest.
        let mut bounds = HostBounds::default();
        if self.list.is_empty() {
            return (None, bounds);
        }
        let name = asked.document.name.to_lowercase();
        let caller = crate::caller::folded(&asked.caller.name);
        let category = asked
            .document
            .category
            .as_deref()
            .unwrap_or("")
            .to_lowercase();
        let facts = Facts {
            tool: &name,
            caller: &caller,
            category: &category,
            actions,
            known: &self.actions,
            risk: asked.risk.level,
            policy: asked.policy,
            scope: scope(asked, actions),
        };
        let mut matched: Vec<(Effect, bool, &Rule, Option<Unevaluable>)> = Vec::new();
        for rule in &self.list {
            match rule.matches(&facts) {
                Match::No => {}
                Match::Yes => matched.push((rule.effect, false, rule, None)),
                Match::ItsHosts => bounds.never.push(HostList {
                    by: ListedBy::Rules(vec![rule.id.clone()]),
                    hosts: rule.hosts.clone(),
                }),
                // Invariant 8: a rule that cannot be evaluated denies, whatever its
                // effect.
                Match::Unevaluable(why) => matched.push((Effect::Deny, true, rule, Some(why))),
            }
        }
        let matching = matched.iter().map(|(_, _, rule, _)| *rule);
        bounds.within.extend(held_to(matching));
        let strongest = matched.into_iter().min_by(|one, two| {
            // A rule that really denies is a better reason than one that could not be
            // evaluated.
            let stronger = two.0.cmp(&one.0).then(one.1.cmp(&two.1));
            stronger.then_with(|| one.2.id.cmp(&two.2.id))
        });
        let decision = strongest.map(|(_, _, rule, why)| match why {
            None => rule.decision(),
            Some(why) => rule.undecided(&why),
        });
        (decision, bounds)
    }

    /// Without a matching rule, the document's own setting decides.
    fn unsaid(&self, asked: &RuleInput<'_>) -> Decision {
        let from = self.ask_from.badge();
        match asked.document.approval() {
            ApprovalMode::Required => Decision::of(Effect::Ask, ASKS_ALWAYS.to_owned()),
            ApprovalMode::AutoApprove if asked.body.only_reads => {
                Decision::of(Effect::Allow, "this call changes nothing".to_owned())
            }
            ApprovalMode::AutoApprove if asked.risk.level >= self.ask_from => {
                Decision::of(Effect::Ask, format!("calls from {from} up are asked about"))
            }
            ApprovalMode::AutoApprove => Decision::of(
                Effect::Allow,
                format!("only calls from {from} up are asked about"),
            ),
            ApprovalMode::Disabled => Decision::of(Effect::Allow, "no rule names it".to_owned()),
        }
    }

    fn autonomy(&self, asked: &RuleInput<'_>, actions: &[Action]) -> Option<Decision> {
        let preset = asked.rights.autonomy;
        if preset == Autonomy::Full {
            return None;
        }
        let word = preset.word();
        match preset.effect(actions, &self.actions) {
            Effect::Allow => None,
            Effect::Ask => {
                let reason = format!("the caller's autonomy is {word}");
                Some(Decision::of(Effect::Ask, reason))
            }
            Effect::Deny => {
                let reason =
                    format!("the caller's autonomy is {word}, which refuses what cannot be undone");
                Some(Decision {
                    remedy: Some("ask the operator for another autonomy".to_owned()),
                    ..Decision::deny(Reason::LevelDenied, reason)
                })
            }
        }
    }
}

/// The hosts that allow rules limit a call to: the union of all matching ones. An allow
/// rule without hosts lifts the limit; an ask rule leaves it to the person who answers.
fn held_to<'a>(matching: impl Iterator<Item = &'a Rule> + Clone) -> Option<HostList> {
    let allows = |rule: &&Rule| rule.effect == Effect::Allow && !rule.hosts.is_empty();
    let held = matching.clone().filter(allows);
    // Some matching rule is no allow rule with hosts, so there is no limit to add.
    if held.clone().count() != matching.count() {
        return None;
    }
    let mut ids: Vec<_> = held.clone().map(|rule| rule.id.clone()).collect();
    ids.sort();
    (!ids.is_empty()).then(|| HostList {
        by: ListedBy::Rules(ids),
        hosts: held.flat_map(|rule| rule.hosts.iter().cloned()).collect(),
    })
}

/// Denies a call whose granted hosts are all removed: it could only fail.
fn emptied(asked: &RuleInput<'_>, bounds: &HostBounds) -> Option<Decision> {
    if bounds.is_empty() && asked.policy.bounds.is_empty() {
        return None;
    }
    // Judged with both: the caller's lists and the rules may leave nothing only together.
    let policy = EffectivePolicy {
        bounds: asked.policy.bounds.clone().and(bounds),
        ..asked.policy.clone()
    };
    if !policy.bounds_leave_nothing() {
        return None;
    }
    let HostBounds { within, never } = &policy.bounds;
    let whose: Vec<_> = within
        .iter()
        .chain(never)
        .map(|it| it.by.to_string())
        .collect();
    let reason = format!(
        "none of the hosts the tool may reach is left by the hosts of {}",
        whose.join(", ")
    );
    Some(Decision {
        remedy: Some("ask the operator for another list of hosts".to_owned()),
        ..Decision::deny(Reason::HostDenied, reason)
    })
}

const ASKS_ALWAYS: &str = "the tool asks before every call";

fn document(asked: &RuleInput<'_>) -> Option<Decision> {
    match asked.document.approval() {
        ApprovalMode::Required => Some(Decision::of(Effect::Ask, ASKS_ALWAYS.to_owned())),
        ApprovalMode::AutoApprove | ApprovalMode::Disabled => None,
    }
}

fn level(asked: &RuleInput<'_>, actions: &[Action]) -> Option<Decision> {
    let constraints = asked.rights.constraints.as_ref()?;
    let objection = constraints.check(&LevelInput {
        category: asked.document.category.as_deref().unwrap_or(""),
        actions,
        arguments: asked.arguments.values(),
        contained: asked.body.contained,
    })?;
    let LevelObjection {
        effect,
        reason,
        remedy,
    } = objection;
    Some(match (effect, remedy) {
        (Effect::Allow | Effect::Ask, _) => Decision::of(effect, reason),
        (Effect::Deny, None) => Decision::deny(Reason::LevelDenied, reason),
        (Effect::Deny, Some(remedy)) => Decision {
            remedy: Some(remedy.to_owned()),
            retry: Retry::Changed,
            ..Decision::deny(Reason::LevelDenied, reason)
        },
    })
}

fn scope<'a>(asked: &'a RuleInput<'a>, actions: &'a [Action]) -> ConditionScope<'a> {
    ConditionScope {
        args: asked.arguments.values(),
        caller_name: &asked.caller.name,
        caller_kind: match asked.caller.kind {
            CallerKind::Owner => "owner",
            CallerKind::Named => "named",
        },
        caller_door: asked.origin.word(),
        caller_groups: &asked.rights.groups,
        caller_level: asked.rights.level.map_or("", |level| level.word()),
        tool_name: &asked.document.name,
        tool_category: asked.document.category.as_deref().unwrap_or(""),
        tool_tags: &asked.document.tags,
        tool_actions: actions,
        risk: asked.risk.level,
        at_ms: asked.at_ms,
    }
}

impl Decision {
    /// A denial in a sentence the caller can act on: the reason, the rule, what
    /// would help, and whether to try again.
    #[must_use]
    pub fn told(&self) -> String {
        let mut told = self.reason.clone();
        if let Some(rule) = &self.rule {
            told.push_str(&format!(" (rule `{rule}`)"));
        }
        if let Some(remedy) = &self.remedy {
            told.push_str(&format!("; it would take: {remedy}"));
        }
        match (self.effect, self.retry) {
            (Effect::Allow | Effect::Ask, _) => {}
            (Effect::Deny, Retry::Changed) => {
                told.push_str("; do not try again with the same arguments");
            }
            (Effect::Deny, Retry::Never) => told.push_str("; do not try again"),
        }
        told
    }

    /// The same in parts, for programs.
    #[must_use]
    pub fn advice(&self) -> Option<Advice> {
        (self.effect == Effect::Deny).then(|| Advice {
            rule: self.rule.clone(),
            remedy: self.remedy.clone(),
            retry: self.retry,
        })
    }

    /// Allow or ask, for a reason.
    fn of(effect: Effect, reason: String) -> Decision {
        Decision {
            effect,
            reason,
            rule: None,
            code: None,
            remedy: None,
            retry: Retry::Never,
            bounds: HostBounds::default(),
        }
    }

    /// Deny, for a reason, until the operator changes something.
    fn deny(code: Reason, reason: String) -> Decision {
        Decision {
            code: Some(code),
            remedy: Some("ask the operator for another level".to_owned()),
            ..Decision::of(Effect::Deny, reason)
        }
    }
}

#[cfg(test)]
mod tests;
