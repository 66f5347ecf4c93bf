//! One rule: which calls it matches, and its effect.

use std::collections::BTreeSet;

use super::condition::ConditionScope;
use super::{Condition, Decision, Effect, Unevaluable};
use crate::govern::action::{Action, Actions};
use crate::govern::pattern::NamePattern;
use crate::network::host_pattern::HostPattern;
use crate::policy::EffectivePolicy;
use crate::policy::host_bound::Share;
use crate::policy::risk::Level;
use crate::reason::Reason;
use crate::record::outcome::Retry;
use crate::word::Word as _;

/// One rule. It matches a call if every field that is set matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name people know it by.
    pub id: String,
    /// Tools, by name; all if empty.
    pub tools: Vec<NamePattern>,
    /// Actions; all if absent. A rule that allows needs every action of the call
    /// on it; a rule that asks or denies needs one.
    pub actions: Option<BTreeSet<Action>>,
    /// Categories of tools, in lower case; all if empty.
    pub categories: Vec<String>,
    /// Callers, by name; all if there are no callers and no groups.
    pub callers: Vec<NamePattern>,
    /// Groups of callers, in lower case.
    pub groups: Vec<String>,
    /// Risk levels; all if absent.
    pub risk: Option<RiskRange>,
    /// Hosts; all if empty. A rule that denies refuses connections to them, on
    /// every hop, and the call itself only if nothing else can be reached. A rule
    /// that asks is about calls that can reach one. A rule that allows is about
    /// calls that can reach one, and holds them to these hosts.
    pub hosts: Vec<HostPattern>,
    /// Its condition.
    pub when: Option<Condition>,
    /// Its effect.
    pub effect: Effect,
    /// Why, for people; there may be nothing to add.
    pub reason: Option<String>,
}

/// A range of risk levels, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RiskRange {
    /// The lowest.
    pub from: Level,
    /// The highest.
    pub to: Level,
}

impl RiskRange {
    /// Reads `L3`, `L3+` or `L1-L3`.
    #[must_use]
    pub fn parse(text: &str) -> Option<RiskRange> {
        let level = |word: &str| {
            Level::ALL
                .into_iter()
                .find(|level| level.badge() == word.trim())
        };
        if let Some(from) = text.strip_suffix('+') {
            return Some(RiskRange {
                from: level(from)?,
                to: Level::L5,
            });
        }
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        let range = RiskRange {
            from: level(from)?,
            to: level(to)?,
        };
        (range.from <= range.to).then_some(range)
    }

    /// As the file writes it.
    fn written(self) -> String {
        let (from, to) = (self.from.badge(), self.to.badge());
        match (self.from == self.to, self.to) {
            (true, _) => from.to_owned(),
            (false, Level::L5) => format!("{from}+"),
            (false, _) => format!("{from}-{to}"),
        }
    }

    fn contains(self, level: Level) -> bool {
        self.from <= level && level <= self.to
    }
}

impl std::fmt::Display for RiskRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.written())
    }
}

/// A call as rules see it; names in lower case, once for all rules.
pub(super) struct Facts<'a> {
    pub(super) tool: &'a str,
    pub(super) caller: &'a str,
    pub(super) category: &'a str,
    pub(super) actions: &'a [Action],
    pub(super) known: &'a Actions,
    pub(super) risk: Level,
    pub(super) policy: &'a EffectivePolicy,
    pub(super) scope: ConditionScope<'a>,
}

/// Whether a rule matches a call.
pub(super) enum Match {
    No,
    Yes,
    /// Not the call, but some of the hosts it may reach.
    ItsHosts,
    Unevaluable(Unevaluable),
}

impl Rule {
    pub(super) fn matches(&self, facts: &Facts<'_>) -> Match {
        let named = |patterns: &[NamePattern], name: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches_lowered(name))
        };
        let fits = named(&self.tools, facts.tool)
            && self.risk.is_none_or(|range| range.contains(facts.risk))
            && (self.categories.is_empty()
                || self.categories.iter().any(|name| name == facts.category))
            && self.is_about(facts)
            && self.does(facts);
        // Only for rules that fit so far: comparing hosts costs the most.
        let share = match fits && !self.hosts.is_empty() {
            true => facts.policy.share_of(&self.hosts),
            false => Share::All,
        };
        if !fits || share == Share::None {
            return Match::No;
        }
        // Last, so that a condition that cannot be evaluated denies only calls that the
        // rule is about.
        match self.when.as_ref().map(|when| when.holds(&facts.scope)) {
            None | Some(Ok(true)) => match (self.effect, share) {
                (Effect::Deny, Share::Some) => Match::ItsHosts,
                (Effect::Allow | Effect::Ask | Effect::Deny, _) => Match::Yes,
            },
            Some(Ok(false)) => Match::No,
            Some(Err(why)) => Match::Unevaluable(why),
        }
    }

    fn is_about(&self, facts: &Facts<'_>) -> bool {
        let mut callers = self.callers.iter();
        let mut groups = facts.scope.caller_groups.iter();
        self.callers.is_empty() && self.groups.is_empty()
            || callers.any(|pattern| pattern.matches_caller(facts.caller))
            || groups.any(|group| self.groups.contains(group))
    }

    /// An unknown action could be any of them: it is never among those a
    /// rule allows, and always among those it asks about or denies.
    fn does(&self, facts: &Facts<'_>) -> bool {
        let Some(named) = &self.actions else {
            return true;
        };
        let known = |action: &Action| facts.known.knows(action);
        match self.effect {
            Effect::Allow => facts.actions.iter().all(|action| named.contains(action)),
            Effect::Ask | Effect::Deny => {
                let mut actions = facts.actions.iter();
                actions.any(|action| named.contains(action) || !known(action))
            }
        }
    }

    /// Its decision for a matching call.
    pub(super) fn decision(&self) -> Decision {
        let reason = self.reason.clone().unwrap_or_else(|| match self.effect {
            Effect::Allow => "a rule allows it".to_owned(),
            Effect::Ask => "a rule asks about it".to_owned(),
            Effect::Deny => "a rule forbids it".to_owned(),
        });
        let decision = Decision {
            rule: Some(self.id.clone()),
            ..Decision::of(self.effect, reason)
        };
        if self.effect != Effect::Deny {
            return decision;
        }
        let depends = self.when.as_ref().filter(|when| when.looks_at_arguments());
        let (remedy, retry) = match depends {
            // A caller must not learn what a condition says about other callers.
            Some(when) if when.is_about_arguments_only() => {
                let remedy = format!("arguments for which `{}` does not hold", when.text());
                (remedy, Retry::Changed)
            }
            Some(when) => {
                let remedy = match when.arguments().as_slice() {
                    [] => "other arguments".to_owned(),
                    names => format!("other values of `{}`", names.join("`, `")),
                };
                (remedy, Retry::Changed)
            }
            None => (self.operator_remedy(), Retry::Never),
        };
        Decision {
            code: Some(Reason::RuleDenied),
            remedy: Some(remedy),
            retry,
            ..decision
        }
    }

    /// Its decision if it cannot be evaluated for a call.
    pub(super) fn undecided(&self, why: &Unevaluable) -> Decision {
        let id = &self.id;
        let when = self.when.as_ref();
        let wanted = when.map(Condition::arguments).unwrap_or_default();
        let on_arguments = when.is_some_and(Condition::looks_at_arguments);
        let (remedy, retry) = match (why, wanted.as_slice()) {
            (_, _) if !on_arguments => (self.operator_remedy(), Retry::Never),
            (Unevaluable::TooCostly, _) => ("shorter arguments".to_owned(), Retry::Changed),
            (_, []) => ("arguments of other kinds".to_owned(), Retry::Changed),
            (_, names) => {
                let names = names.join("`, `");
                let remedy = format!("give what the rule looks at: `{names}`");
                (remedy, Retry::Changed)
            }
        };
        Decision {
            rule: Some(id.clone()),
            code: Some(Reason::RuleUnevaluable),
            remedy: Some(remedy),
            retry,
            ..Decision::of(
                Effect::Deny,
                format!("the rule `{id}` cannot be decided: {why}"),
            )
        }
    }

    fn operator_remedy(&self) -> String {
        let effect = self.effect.word();
        format!(
            "a change of the {effect} rule `{}` by the operator",
            self.id
        )
    }
}
