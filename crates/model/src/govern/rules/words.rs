//! A rule in words, for people.

use super::{Effect, Rule};
use crate::network::host_pattern::HostPattern;

impl Rule {
    /// Its effect and its calls, in one sentence.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = match self.effect {
            Effect::Allow => "allows".to_owned(),
            Effect::Ask => "asks about".to_owned(),
            Effect::Deny => "denies".to_owned(),
        };
        let list = |names: Vec<String>| format!("`{}`", names.join("`, `"));
        match self.tools.is_empty() {
            true => words.push_str(" calls of every tool"),
            false => {
                let names = self.tools.iter().map(ToString::to_string).collect();
                words.push_str(&format!(" calls of {}", list(names)));
            }
        }
        if !self.categories.is_empty() {
            words.push_str(&format!(" in {}", list(self.categories.clone())));
        }
        let groups = self.groups.iter().map(|group| format!("@{group}"));
        let callers = self.callers.iter().map(ToString::to_string);
        let who: Vec<_> = callers.chain(groups).collect();
        match who.is_empty() {
            true => words.push_str(" by every caller"),
            false => words.push_str(&format!(" by {}", list(who))),
        }
        if let Some(actions) = &self.actions {
            let names: Vec<_> = actions.iter().map(|it| it.word().to_owned()).collect();
            let every = match self.effect {
                Effect::Allow => "that do nothing but",
                Effect::Ask | Effect::Deny => "that do any of",
            };
            words.push_str(&format!(", {every} {}", list(names)));
        }
        if let Some(risk) = self.risk {
            let (from, to) = (risk.from.badge(), risk.to.badge());
            match from == to {
                true => words.push_str(&format!(", rated {from}")),
                false => words.push_str(&format!(", rated {from} to {to}")),
            }
        }
        if !self.hosts.is_empty() {
            let hosts = list(self.hosts.iter().map(HostPattern::shown).collect());
            words.push_str(&match self.effect {
                Effect::Allow => format!(", held to the hosts {hosts}"),
                Effect::Ask => format!(", that can reach {hosts}"),
                Effect::Deny => format!(", as far as they reach {hosts}"),
            });
        }
        if let Some(when) = &self.when {
            words.push_str(&format!(", when `{}`", when.text()));
        }
        if let Some(reason) = &self.reason {
            words.push_str(&format!(": {reason}"));
        }
        words
    }

    /// Whether it can match calls of a caller in these groups.
    #[must_use]
    pub fn concerns(&self, caller: &str, groups: &[String]) -> bool {
        let caller = crate::caller::folded(caller);
        let mut callers = self.callers.iter();
        self.callers.is_empty() && self.groups.is_empty()
            || callers.any(|pattern| pattern.matches_caller(&caller))
            || groups.iter().any(|group| self.groups.contains(group))
    }
}
