//! A policy in Rust, for programs that embed Ringfence.
//!
//! It is a list of rules: the same `Rule`s that `[[rule]]` in `ringfence.toml`
//! makes, decided by the same `Rules::decide`. It
//! has no evaluator of its own, so a policy in code and the same policy in
//! configuration cannot drift apart.
//!
//! A policy only narrows. It denies calls or has a person asked about them; it
//! allows nothing that settings, levels or documents deny.

use std::sync::Arc;

use super::pattern::NamePattern;
use super::rules::condition::Predicate;
use super::rules::{Condition, ConditionScope, Effect, Rule};

/// Rules of an embedding program, beside the configured ones.
///
/// ```
/// use model::govern::tool_policy::ToolPolicy;
///
/// let policy = ToolPolicy::allow_list(["web.search", "payment.transfer"])
///     .and(ToolPolicy::ask_when(
///         |call| call.args.get("amount").and_then(|sum| sum.as_f64()) > Some(1000.0),
///         "amounts above 1000 need a person",
///     ))
///     .and(ToolPolicy::deny_list(["*.delete"]));
/// let rules: Vec<_> = policy.rules().iter().map(|rule| rule.words()).collect();
/// assert_eq!(rules.len(), 3);
/// assert!(rules[0].contains(r#"when `!(tool.name in ["web.search", "payment.transfer"])`"#));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPolicy {
    /// Without ids: a rule's place gives it one.
    rules: Vec<Rule>,
}

impl ToolPolicy {
    /// Adds no rule.
    pub const ALLOW_ALL: ToolPolicy = ToolPolicy { rules: Vec::new() };

    /// Denies every call.
    #[must_use]
    pub fn deny_all() -> ToolPolicy {
        ToolPolicy::of(Effect::Deny, "every tool is denied")
    }

    /// Denies every tool but these. Names are case-sensitive here. An empty list denies
    /// everything.
    #[must_use]
    pub fn allow_list(names: impl IntoIterator<Item = impl AsRef<str>>) -> ToolPolicy {
        let names: Vec<_> = names.into_iter().map(|it| it.as_ref().to_owned()).collect();
        let policy = ToolPolicy::of(Effect::Deny, "it is not on the list of allowed tools");
        policy.on_condition(Condition::tool_is_none_of(&names))
    }

    /// Denies these tools: names in either case of letters, `*` for any run of
    /// characters, as `tools` of a rule.
    #[must_use]
    pub fn deny_list(names: impl IntoIterator<Item = impl AsRef<str>>) -> ToolPolicy {
        ToolPolicy::of(Effect::Deny, "it is on the list of denied tools").on_tools(names)
    }

    /// Has a person asked before each call of these tools; names as in
    /// [`ToolPolicy::deny_list`].
    #[must_use]
    pub fn ask_list(names: impl IntoIterator<Item = impl AsRef<str>>) -> ToolPolicy {
        ToolPolicy::of(Effect::Ask, "a person is asked about this tool").on_tools(names)
    }

    /// Denies calls for which the predicate is **false**. Arguments were checked
    /// against the tool's parameters before. A predicate that panics denies.
    #[must_use]
    pub fn when(
        allowed: impl Fn(&ConditionScope<'_>) -> bool + Send + Sync + 'static,
        reason: &str,
    ) -> ToolPolicy {
        ToolPolicy::deny_when(move |call| !allowed(call), reason)
    }

    /// Denies calls for which the predicate is **true**.
    #[must_use]
    pub fn deny_when(
        denied: impl Fn(&ConditionScope<'_>) -> bool + Send + Sync + 'static,
        reason: &str,
    ) -> ToolPolicy {
        ToolPolicy::of(Effect::Deny, reason).on_predicate(Arc::new(denied), reason)
    }

    /// Has a person asked about calls for which the predicate is **true**. A
    /// predicate that panics denies.
    #[must_use]
    pub fn ask_when(
        asked: impl Fn(&ConditionScope<'_>) -> bool + Send + Sync + 'static,
        reason: &str,
    ) -> ToolPolicy {
        ToolPolicy::of(Effect::Ask, reason).on_predicate(Arc::new(asked), reason)
    }

    /// Both policies: the strongest matching rule of the two decides.
    #[must_use]
    pub fn and(mut self, other: ToolPolicy) -> ToolPolicy {
        self.rules.extend(other.rules);
        self
    }

    /// Whether it adds nothing.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.rules.is_empty()
    }

    /// Its rules. Their ids, `policy:0001` and so on, are none that configuration can
    /// give, so the two never clash; they are in the audit.
    #[must_use]
    pub fn rules(&self) -> Vec<Rule> {
        let numbered = self.rules.iter().zip(1..);
        numbered
            .map(|(rule, number): (_, usize)| Rule {
                id: format!("policy:{number:04}"),
                ..rule.clone()
            })
            .collect()
    }

    /// One rule about every call.
    fn of(effect: Effect, reason: &str) -> ToolPolicy {
        ToolPolicy {
            rules: vec![Rule {
                id: String::new(),
                tools: Vec::new(),
                actions: None,
                categories: Vec::new(),
                callers: Vec::new(),
                groups: Vec::new(),
                risk: None,
                hosts: Vec::new(),
                when: None,
                effect,
                reason: Some(reason.to_owned()),
            }],
        }
    }

    fn on_tools(mut self, names: impl IntoIterator<Item = impl AsRef<str>>) -> ToolPolicy {
        let patterns = names.into_iter();
        let patterns: Vec<_> = patterns.map(|it| NamePattern::of(it.as_ref())).collect();
        // A rule without tools matches all of them, but a list without names must match
        // none.
        if patterns.is_empty() {
            return ToolPolicy::ALLOW_ALL;
        }
        for rule in &mut self.rules {
            rule.tools.clone_from(&patterns);
        }
        self
    }

    fn on_predicate(self, predicate: Predicate, reason: &str) -> ToolPolicy {
        self.on_condition(Condition::predicate(predicate, reason))
    }

    fn on_condition(mut self, condition: Condition) -> ToolPolicy {
        for rule in &mut self.rules {
            rule.when = Some(condition.clone());
        }
        self
    }
}

impl Default for ToolPolicy {
    fn default() -> ToolPolicy {
        ToolPolicy::ALLOW_ALL
    }
}
