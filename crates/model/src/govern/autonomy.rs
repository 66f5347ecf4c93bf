//! How much a caller may do without approval: four presets from `full` to `locked`. A
//! preset only tightens what the rules say.

use std::collections::BTreeSet;

use crate::govern::action::{Action, ActionRisk, Actions};
use crate::govern::rules::Effect;

crate::words! {
    /// A preset. Later is tighter.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Autonomy {
        /// It adds no question.
        Full = "full",
        /// Calls that leave the organisation, spend or publish need approval.
        Semi = "semi",
        /// Calls that leave the workspace need approval.
        Supervised = "supervised",
        /// Every call needs approval; irreversible actions are refused.
        Locked = "locked",
    }
}

/// Actions that `supervised` allows: all stay in the workspace.
const IN_WORKSPACE: &[&str] = &[
    "code:read",
    "code:write",
    "code:create",
    "code:refactor",
    "test:write",
    "test:run",
    "docs:write",
    "vcs:read",
    "memory:read",
];

/// Further actions that `semi` allows.
const AT_HOME: &[&str] = &[
    "code:delete",
    "vcs:commit",
    "vcs:branch",
    "comms:internal",
    "db:query",
    "knowledge:reindex",
    "browser:screenshot",
    "browser:diff",
    "browser:accessibility_scan",
    "browser:spec",
];

impl Autonomy {
    /// The decision of the preset for a call with these actions.
    #[must_use]
    pub fn effect(self, actions: &[Action], known: &Actions) -> Effect {
        let effects = actions.iter().map(|action| self.of(action, known));
        // The worst of all actions decides.
        effects.max().unwrap_or(match self {
            // A call without any declared action.
            Autonomy::Full => Effect::Allow,
            Autonomy::Semi | Autonomy::Supervised | Autonomy::Locked => Effect::Ask,
        })
    }

    fn of(self, action: &Action, known: &Actions) -> Effect {
        let listed = |list: &[&str]| list.contains(&action.word());
        match self {
            Autonomy::Full => Effect::Allow,
            Autonomy::Semi if listed(IN_WORKSPACE) || listed(AT_HOME) => Effect::Allow,
            Autonomy::Supervised if listed(IN_WORKSPACE) => Effect::Allow,
            Autonomy::Semi | Autonomy::Supervised => Effect::Ask,
            Autonomy::Locked if known.risk(action) == ActionRisk::Critical => Effect::Deny,
            Autonomy::Locked => Effect::Ask,
        }
    }

    /// The actions that run without a question.
    #[must_use]
    pub fn runs(self, known: &Actions) -> BTreeSet<Action> {
        let all = crate::govern::action::TAXONOMY.iter();
        let all = all.filter_map(|(word, _)| Action::built_in(word));
        let all = all.chain(known.custom().map(|(action, _)| action.clone()));
        all.filter(|action| self.of(action, known) == Effect::Allow)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::Word as _;

    #[test]
    fn a_tighter_preset_never_allows_more() {
        let mut known = Actions::default();
        known
            .register("payments:transfer", ActionRisk::Low)
            .expect("an action");
        let all = Autonomy::Full.runs(&known);
        assert_eq!(all.len(), 42);
        for action in &all {
            let one = std::slice::from_ref(action);
            for pair in Autonomy::ALL.windows(2) {
                let [looser, tighter] = pair else { continue };
                assert!(
                    looser.effect(one, &known) <= tighter.effect(one, &known),
                    "{action:?} {looser:?}"
                );
            }
        }
        let sizes = Autonomy::ALL.iter().map(|preset| preset.runs(&known).len());
        assert_eq!(sizes.collect::<Vec<_>>(), [42, 19, 9, 0]);
    }

    #[test]
    fn the_worst_of_several_actions_decides() {
        let known = Actions::default();
        let of = |words: &[&str]| -> Vec<_> {
            words
                .iter()
                .filter_map(|word| Action::built_in(word))
                .collect()
        };
        let mixed = of(&["code:read", "deploy:production"]);
        assert_eq!(Autonomy::Full.effect(&mixed, &known), Effect::Allow);
        assert_eq!(Autonomy::Semi.effect(&mixed, &known), Effect::Ask);
        assert_eq!(Autonomy::Locked.effect(&mixed, &known), Effect::Deny);
        assert_eq!(
            Autonomy::Locked.effect(&of(&["code:read"]), &known),
            Effect::Ask
        );
        assert_eq!(Autonomy::Supervised.effect(&[], &known), Effect::Ask);
    }
}
