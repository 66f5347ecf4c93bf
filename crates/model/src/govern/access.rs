//! May this caller use this tool at all, and how far? The deny list decides first, then
//! the allow list, then the caller's level; otherwise no.

use std::collections::BTreeMap;

use crate::caller::{Caller, CallerKind, folded};
use crate::document::{Document, NetworkMode};
use crate::govern::autonomy::Autonomy;
use crate::govern::pattern::{NamePattern, first};
use crate::network::host_pattern::HostPattern;
use crate::policy::host_bound::{HostList, ListedBy};
use crate::text::elided;
use crate::word::Word as _;

pub mod command;
pub mod level;
pub mod quota;

pub use level::{AccessLevel, ConstraintChanges, Constraints, narrow};

/// Who may use what.
///
/// Defaults: no caller is denied an exposed tool, and none has a level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// For all callers.
    pub everyone: Lists,
    /// Additional lists of one caller, by its [`folded`] name.
    pub callers: BTreeMap<String, Lists>,
    /// Several callers at once, by the group's name.
    pub groups: BTreeMap<String, Group>,
    /// The terms of callers who have none of their own.
    pub everyone_terms: Terms,
    /// The terms of one caller, by name as [`folded`] has it.
    pub terms: BTreeMap<String, Terms>,
    /// The level that trust leaves a caller, by [`folded`] name. Trust can only lower
    /// it.
    pub earned: BTreeMap<String, EarnedLevels>,
    /// The level of callers without an entry: the initial level. `None` while trust is
    /// off.
    pub unproven: Option<EarnedLevels>,
    /// Whose level trust may lower.
    pub trust_scope: TrustScope,
}

/// Whose level trust may lower: every caller's if none is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustScope {
    /// Callers, by name.
    pub callers: Vec<NamePattern>,
    /// Groups of callers, in lower case.
    pub groups: Vec<String>,
}

/// Tools by pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Without a level: the only allowed tools, all if absent. With a level: tools in
    /// addition to those of the level.
    pub allow: Option<Vec<NamePattern>>,
    /// Never these.
    pub deny: Vec<NamePattern>,
    /// The hosts any tool may reach for them; all if absent. It removes hosts from a
    /// tool's policy and never adds any.
    pub hosts: Option<Vec<HostPattern>>,
}

/// Several callers at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Who is in it.
    pub members: Vec<NamePattern>,
    /// Their lists.
    pub lists: Lists,
    /// Their terms.
    pub terms: Terms,
}

/// How far a caller may go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The level.
    pub level: Option<AccessLevel>,
    /// The categories of tools, instead of the level's; in capitals.
    pub categories: Option<Vec<String>>,
    /// Changes to the level's constraints.
    pub constraints: ConstraintChanges,
    /// How much runs without a question.
    pub autonomy: Option<Autonomy>,
}

/// The level a caller has earned, for all tools and for those of a category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarnedLevels {
    /// For all tools.
    pub level: AccessLevel,
    /// For the tools of one category, in capitals, where it is another.
    pub categories: BTreeMap<String, AccessLevel>,
}

/// The rights of one caller for tools of one category, from all of the above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerRights {
    /// The level, if the caller has one.
    pub level: Option<AccessLevel>,
    /// The level the settings give, if they give one.
    pub given: Option<AccessLevel>,
    /// The level trust leaves, where trust holds for the caller.
    pub earned: Option<AccessLevel>,
    /// The categories of tools; nothing means all.
    pub categories: Option<Vec<String>>,
    /// The constraints, if the caller has any.
    pub constraints: Option<Constraints>,
    /// How much runs without a question.
    pub autonomy: Autonomy,
    /// The groups the caller is in.
    pub groups: Vec<String>,
    /// The host lists that apply to the caller; a host must be on each.
    pub hosts: Vec<HostList>,
}

/// Why a caller may not use a tool. For the operator; the caller is told that
/// there is no such tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessDenied {
    /// The list and the pattern.
    pub note: String,
}

impl Access {
    /// Whether the lists alone let a caller use a tool, whatever the caller's level.
    pub fn check_lists(&self, caller: &Caller, tool: &Document) -> Result<String, AccessDenied> {
        let layers = self.layers(caller);
        denied_by_none(&layers, &tool.name)?;
        allowed_by_all(&layers, &tool.name)
    }

    /// Whether a caller may use a tool. The answer says which line decided.
    pub fn check(&self, caller: &Caller, tool: &Document) -> Result<String, AccessDenied> {
        let deny = |note: String| Err(AccessDenied { note });
        let layers = self.layers(caller);
        denied_by_none(&layers, &tool.name)?;
        let rights = self.rights(caller, tool.category.as_deref());
        // Without a level the allow lists are closed: each that exists must name the
        // tool.
        if rights.level.is_none() && rights.categories.is_none() {
            return allowed_by_all(&layers, &tool.name);
        }
        // The lists for all callers apply to a caller with a level too.
        let (everyone, own) = layers.split_at(1);
        allowed_by_all(everyone, &tool.name)?;
        for (whose, lists) in own {
            let allow = lists.allow.as_deref().unwrap_or_default();
            if let Some(pattern) = first(allow, &tool.name) {
                return Ok(format!("allowed to {whose} by `{pattern}`"));
            }
        }
        let level = rights.level.map_or("none", |level| level.word());
        let category = tool.category.as_deref().unwrap_or("");
        let shown = elided(category, 40);
        match &rights.categories {
            None => Ok(format!("level {level} has every category")),
            Some(has) if has.iter().any(|has| has.eq_ignore_ascii_case(category)) => {
                Ok(format!("level {level} has category {shown}"))
            }
            Some(_) if category.is_empty() => deny(format!(
                "without a category, and level {level} has only some"
            )),
            Some(_) => deny(format!(
                "in category {shown}, which level {level} does not have"
            )),
        }
    }

    /// The rights of a caller for the tools of a category.
    #[must_use]
    pub fn rights(&self, caller: &Caller, category: Option<&str>) -> CallerRights {
        let name = folded(&caller.name);
        let groups: Vec<_> = self.groups_of(&name).collect();
        let own = self.terms.get(&name);
        let shared = groups
            .iter()
            .map(|(_, group)| &group.terms)
            .fold(Terms::default(), |all, terms| all.with(terms));
        let everyone = &self.everyone_terms;
        let own = own.cloned().unwrap_or_default();
        // The caller's own level replaces that of its groups, also where it is higher.
        let given = own.level.or(shared.level).or(everyone.level);
        let earned = self.earned_level(caller, category);
        let level = kept(given, earned);
        let is_lowered = level != given;
        let changes = [&everyone.constraints, &shared.constraints, &own.constraints];
        let constrained = changes
            .iter()
            .any(|changes| **changes != ConstraintChanges::default());
        // Constraints without a level start from a level that has none.
        let base = level.or(constrained.then_some(AccessLevel::Elevated));
        let constraints = base.map(|level| {
            let over = |under, changes: &&ConstraintChanges| changes.over(under);
            let asked = changes.iter().fold(level.constraints(), over);
            // The operator's changes to the higher level must not raise a level that
            // trust lowered.
            if is_lowered {
                asked.at_most(&level.constraints())
            } else {
                asked
            }
        });
        let named = own
            .categories
            .or(shared.categories)
            .or(everyone.categories.clone());
        let of_level = level.and_then(|level| level.categories());
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let categories = match (named, is_lowered) {
            (Some(named), false) => Some(named),
            // Trust lowered the level, so the operator's categories are cut to those of
            // the lower one.
            (Some(mut named), true) => {
                let has = |name: &String| of_level.is_none_or(|of| of.contains(&name.as_str()));
                named.retain(has);
                Some(named)
            }
            (None, _) => of_level.map(words),
        };
        CallerRights {
            level,
            given,
            earned,
            categories,
            constraints,
            autonomy: own
                .autonomy
                .or(shared.autonomy)
                .or(everyone.autonomy)
                .unwrap_or(Autonomy::Full),
            groups: groups.iter().map(|(name, _)| (*name).clone()).collect(),
            hosts: self.hosts_of(caller),
        }
    }

    /// The lists of hosts for all callers, of the caller's groups and of the caller.
    fn hosts_of(&self, caller: &Caller) -> Vec<HostList> {
        let layers = self.layers(caller);
        // There is always the layer of everyone.
        let last = layers.len() - 1;
        let list = |(index, (whose, lists)): (usize, &(&str, &Lists))| {
            let is_own = index == last && self.callers.contains_key(&folded(&caller.name));
            let by = match (index, is_own) {
                (0, _) => (*whose).to_owned(),
                (_, true) => format!("caller `{}`", elided(whose, 60)),
                (_, false) => format!("group `{}`", elided(whose, 60)),
            };
            Some(HostList {
                by: ListedBy::Caller(by),
                hosts: lists.hosts.clone()?,
            })
        };
        layers.iter().enumerate().filter_map(list).collect()
    }

    /// The level trust leaves to a caller, where it holds for them.
    fn earned_level(&self, caller: &Caller, category: Option<&str>) -> Option<AccessLevel> {
        let name = folded(&caller.name);
        let earned = self.earned.get(&name).or(self.unproven.as_ref());
        let earned = earned.filter(|_| self.is_in_trust_scope(caller))?;
        let category = category.map(str::to_uppercase);
        let special = category.and_then(|category| earned.categories.get(&category));
        Some(*special.unwrap_or(&earned.level))
    }

    /// Whether trust may lower a caller's level. The owner sets the levels.
    #[must_use]
    pub fn is_in_trust_scope(&self, caller: &Caller) -> bool {
        let TrustScope { callers, groups } = &self.trust_scope;
        let name = folded(&caller.name);
        let is_named = || {
            let mut callers = callers.iter();
            callers.any(|pattern| pattern.matches_caller(&name))
                || self
                    .groups_of(&name)
                    .any(|(group, _)| groups.contains(group))
        };
        match caller.kind {
            // The owner writes the settings that trust would lower.
            CallerKind::Owner => false,
            CallerKind::Named => callers.is_empty() && groups.is_empty() || is_named(),
        }
    }

    fn groups_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a String, &'a Group)> {
        let within = |group: &Group| {
            let mut members = group.members.iter();
            members.any(|pattern| pattern.matches_caller(name))
        };
        self.groups.iter().filter(move |(_, group)| within(group))
    }

    /// The lists for all callers, then those of the caller's groups, then the caller's own.
    #[must_use]
    pub fn layers<'a>(&'a self, caller: &'a Caller) -> Vec<(&'a str, &'a Lists)> {
        let name = folded(&caller.name);
        let mut layers = vec![("everyone", &self.everyone)];
        // Collected and looked up again: the iterator borrows `name`, which does not live
        // long enough.
        let groups = self.groups_of(&name);
        let groups: Vec<_> = groups.map(|(name, _)| name.as_str()).collect();
        for group in groups {
            if let Some((name, group)) = self.groups.get_key_value(group) {
                layers.push((name, &group.lists));
            }
        }
        if let Some(own) = self.callers.get(&name) {
            layers.push((&caller.name, own));
        }
        layers
    }
}

/// The given level, or the earned one where that is lower. A caller that was given none
/// has the earned one; `custom` is not comparable with the others.
fn kept(given: Option<AccessLevel>, earned: Option<AccessLevel>) -> Option<AccessLevel> {
    match (given, earned) {
        (given, None) => given,
        (None, Some(earned)) => Some(earned),
        (Some(AccessLevel::Custom), _) | (_, Some(AccessLevel::Custom)) => given,
        (Some(given), Some(earned)) => Some(given.min(earned)),
    }
}

fn denied_by_none(layers: &[(&str, &Lists)], tool: &str) -> Result<(), AccessDenied> {
    for (whose, lists) in layers {
        if let Some(pattern) = first(&lists.deny, tool) {
            let note = format!("denied to {whose} by `{pattern}`");
            return Err(AccessDenied { note });
        }
    }
    Ok(())
}

/// Every allow list must name the tool.
fn allowed_by_all(layers: &[(&str, &Lists)], tool: &str) -> Result<String, AccessDenied> {
    let mut note = "no list names it".to_owned();
    for (whose, lists) in layers {
        match lists.allow.as_deref().map(|allow| first(allow, tool)) {
            None => {}
            Some(Some(pattern)) => note = format!("allowed to {whose} by `{pattern}`"),
            Some(None) => {
                let note = format!("not among the tools allowed to {whose}");
                return Err(AccessDenied { note });
            }
        }
    }
    Ok(note)
}

impl Terms {
    /// The terms of a caller in two groups: the tighter of each.
    fn with(&self, other: &Terms) -> Terms {
        let categories = match (&self.categories, &other.categories) {
            // In both lists: a group takes away and never adds to another.
            (Some(one), Some(two)) => Some(
                one.iter()
                    .filter(|name| two.contains(name))
                    .cloned()
                    .collect(),
            ),
            (one, two) => one.clone().or_else(|| two.clone()),
        };
        Terms {
            level: level::tighter(self.level, other.level),
            categories,
            constraints: self.constraints.with(&other.constraints),
            // Later presets are the tighter ones.
            autonomy: self.autonomy.max(other.autonomy),
        }
    }
}

impl CallerRights {
    /// The rights of a caller for whom nothing is configured.
    #[must_use]
    pub fn open() -> CallerRights {
        Access::default().rights(&Caller::owner(), None)
    }

    /// Why a tool is useless for the caller: the level removes a whole power that its
    /// document asks for. A tool can do without an inherited power.
    #[must_use]
    pub fn emptied(&self, document: &Document, policy: &crate::EffectivePolicy) -> Option<String> {
        let left = self.constraints.as_ref()?.narrow(policy);
        let asked = &document.sandbox_overrides;
        let asks_network = asked
            .network_mode
            .is_some_and(|it| it != NetworkMode::Blocked)
            || !asked.hosts_allow.is_empty();
        let lost = |asks: bool, before: bool, after: bool| asks && before && !after;
        let network = lost(asks_network, policy.reaches_out(), left.reaches_out());
        let read = lost(
            asked.file_read == Some(true),
            policy.file_read,
            left.file_read,
        );
        let write = lost(
            asked.file_write == Some(true),
            policy.file_write,
            left.file_write,
        );
        let level = self.level.map_or("none", |level| level.word());
        match (network, read || write) {
            (false, false) => None,
            (true, _) => Some(format!(
                "level {level} leaves it no network, which it needs"
            )),
            (false, true) => Some(format!("level {level} leaves it no files, which it needs")),
        }
    }

    /// A policy narrowed by the caller's level.
    #[must_use]
    pub fn narrow(&self, policy: crate::EffectivePolicy) -> crate::EffectivePolicy {
        let mut policy = match &self.constraints {
            None => policy,
            Some(constraints) => constraints.narrow(&policy),
        };
        // Without a network there is nothing to bound, and a bound would make another
        // policy of it.
        if policy.network != NetworkMode::Blocked {
            policy.bounds.within.extend(self.hosts.iter().cloned());
        }
        policy
    }

    /// Whether it narrows a policy.
    #[must_use]
    pub fn narrows(&self, policy: &crate::EffectivePolicy) -> bool {
        let has_hosts = !self.hosts.is_empty() && policy.network != NetworkMode::Blocked;
        self.constraints.is_some() || has_hosts
    }
}

#[cfg(test)]
mod tests;
