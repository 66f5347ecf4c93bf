//! May this caller use this tool at all, and how far? Denied list, then allowed
//! list, then what the caller's level has, then no.

use std::collections::BTreeMap;

use crate::autonomy::Autonomy;
use crate::caller::{Caller, CallerKind, folded};
use crate::document::{Document, Word as _};
use crate::pattern::{NamePattern, first};
use crate::text::elided;

pub mod level;
pub mod quota;

pub use level::{AccessLevel, ConstraintChanges, Constraints, narrow};

/// Who may use what.
///
/// Defaults: nobody is denied anything that is on offer, and nobody has a level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// For everybody.
    pub everyone: Lists,
    /// For one caller, by name as [`folded`] has it, besides.
    pub callers: BTreeMap<String, Lists>,
    /// Several callers at once, by the group's name.
    pub groups: BTreeMap<String, Group>,
    /// The terms of everybody who has none of their own.
    pub everyone_terms: Terms,
    /// The terms of one caller, by name as [`folded`] has it.
    pub terms: BTreeMap<String, Terms>,
    /// What trust leaves of a caller's level, by name as [`folded`] has it. It can only
    /// take.
    pub earned: BTreeMap<String, Earned>,
    /// What it leaves of the level of callers who are not there: what everybody
    /// starts with. Nothing while trust is off.
    pub unproven: Option<Earned>,
}

/// Tools by pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Without a level: the only ones, all if absent. With one: besides what the
    /// level has.
    pub allow: Option<Vec<NamePattern>>,
    /// Never these.
    pub deny: Vec<NamePattern>,
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
    /// What is different from the level.
    pub constraints: ConstraintChanges,
    /// How much runs without a question.
    pub autonomy: Option<Autonomy>,
}

/// The level a caller has earned, for all tools and for those of a category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earned {
    /// For all tools.
    pub level: AccessLevel,
    /// For the tools of one category, in capitals, where it is another.
    pub categories: BTreeMap<String, AccessLevel>,
}

/// What holds for one caller and tools of one category, from all of the above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The level, if the caller has one.
    pub level: Option<AccessLevel>,
    /// The categories of tools; nothing means all.
    pub categories: Option<Vec<String>>,
    /// The constraints, if the caller has any.
    pub constraints: Option<Constraints>,
    /// How much runs without a question.
    pub autonomy: Autonomy,
    /// The groups the caller is in.
    pub groups: Vec<String>,
}

/// Why a caller may not use a tool. For the operator; the caller is told that
/// there is no such tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The list and the pattern.
    pub note: String,
}

impl Access {
    /// Whether a caller may use a tool. The answer says which line decided.
    pub fn check(&self, caller: &Caller, tool: &Document) -> Result<String, Denied> {
        let deny = |note: String| Err(Denied { note });
        let layers = self.layers(caller);
        for (whose, lists) in &layers {
            if let Some(pattern) = first(&lists.deny, &tool.name) {
                return deny(format!("denied to {whose} by `{pattern}`"));
            }
        }
        let standing = self.standing(caller, tool.category.as_deref());
        if standing.level.is_none() && standing.categories.is_none() {
            return allowed_by_all(&layers, &tool.name);
        }
        // What everybody is held to holds for a caller with a level too.
        let (everyone, own) = layers.split_at(1);
        allowed_by_all(everyone, &tool.name)?;
        for (whose, lists) in own {
            let allow = lists.allow.as_deref().unwrap_or_default();
            if let Some(pattern) = first(allow, &tool.name) {
                return Ok(format!("allowed to {whose} by `{pattern}`"));
            }
        }
        let level = standing.level.map_or("none", |level| level.word());
        let category = tool.category.as_deref().unwrap_or("");
        let shown = elided(category, 40);
        match &standing.categories {
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

    /// What holds for a caller and the tools of a category.
    #[must_use]
    pub fn standing(&self, caller: &Caller, category: Option<&str>) -> Standing {
        let name = folded(&caller.name);
        let groups: Vec<_> = self.groups_of(&name).collect();
        let own = self.terms.get(&name);
        let shared = groups
            .iter()
            .map(|(_, group)| &group.terms)
            .fold(Terms::default(), |all, terms| all.with(terms));
        let everyone = &self.everyone_terms;
        let own = own.cloned().unwrap_or_default();
        let given = own.level.or(shared.level).or(everyone.level);
        let level = self.kept(caller, &name, category, given);
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
            // A level that trust lowered is not raised again by what the operator
            // changed about the higher one.
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
            (Some(mut named), true) => {
                let has = |name: &String| of_level.is_none_or(|of| of.contains(&name.as_str()));
                named.retain(has);
                Some(named)
            }
            (None, _) => of_level.map(words),
        };
        Standing {
            level,
            categories,
            constraints,
            autonomy: own
                .autonomy
                .or(shared.autonomy)
                .or(everyone.autonomy)
                .unwrap_or(Autonomy::Full),
            groups: groups.iter().map(|(name, _)| (*name).clone()).collect(),
        }
    }

    /// The given level, or the earned one where that is lower. Whoever was given
    /// none has the earned one: trust that is on holds for everybody but the owner,
    /// who sets the levels.
    fn kept(
        &self,
        caller: &Caller,
        name: &str,
        category: Option<&str>,
        given: Option<AccessLevel>,
    ) -> Option<AccessLevel> {
        let earned = self.earned.get(name).or(self.unproven.as_ref());
        let (Some(earned), CallerKind::Named) = (earned, caller.kind) else {
            return given;
        };
        let category = category.map(str::to_uppercase);
        let special = category.and_then(|category| earned.categories.get(&category));
        let earned = *special.unwrap_or(&earned.level);
        match (given, earned) {
            (None, earned) => Some(earned),
            (Some(AccessLevel::Custom), _) | (_, AccessLevel::Custom) => given,
            (Some(given), earned) => Some(given.min(earned)),
        }
    }

    fn groups_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a String, &'a Group)> {
        let within = |group: &Group| {
            let mut members = group.members.iter();
            members.any(|pattern| pattern.matches_caller(name))
        };
        self.groups.iter().filter(move |(_, group)| within(group))
    }

    /// Everybody's lists, then those of the caller's groups, then the caller's own.
    fn layers<'a>(&'a self, caller: &'a Caller) -> Vec<(&'a str, &'a Lists)> {
        let name = folded(&caller.name);
        let mut layers = vec![("everyone", &self.everyone)];
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

/// Lists that are all closed: each that is there must name the tool.
fn allowed_by_all(layers: &[(&str, &Lists)], tool: &str) -> Result<String, Denied> {
    let mut note = "no list names it".to_owned();
    for (whose, lists) in layers {
        match lists.allow.as_deref().map(|allow| first(allow, tool)) {
            None => {}
            Some(Some(pattern)) => note = format!("allowed to {whose} by `{pattern}`"),
            Some(None) => {
                let note = format!("not among the tools allowed to {whose}");
                return Err(Denied { note });
            }
        }
    }
    Ok(note)
}

impl Terms {
    /// The terms of two groups for somebody who is in both: the tighter of each.
    fn with(&self, other: &Terms) -> Terms {
        let categories = match (&self.categories, &other.categories) {
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
            autonomy: self.autonomy.max(other.autonomy),
        }
    }
}

impl Standing {
    /// What holds for somebody about whom nothing was said.
    #[must_use]
    pub fn open() -> Standing {
        Access::default().standing(&Caller::owner(), None)
    }

    /// A policy as the caller's level leaves it.
    #[must_use]
    pub fn narrow(&self, policy: crate::EffectivePolicy) -> crate::EffectivePolicy {
        match &self.constraints {
            None => policy,
            Some(constraints) => constraints.narrow(&policy),
        }
    }
}

#[cfg(test)]
mod tests;
