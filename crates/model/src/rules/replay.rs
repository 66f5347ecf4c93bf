//! What a candidate set of rules would have decided about calls that were made.
//! Decisions only: nothing runs.

use std::collections::BTreeMap;

use super::{Asked, Decision, Effect, Rules};
use crate::document::Word as _;

/// A call that was made, and what was decided about it then.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// The call.
    pub call_id: &'a str,
    /// What was asked.
    pub asked: Asked<'a>,
    /// What was decided.
    pub effect: Effect,
    /// By which rule.
    pub rule: Option<&'a str>,
}

/// A decision that comes out differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The call.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// Who called.
    pub caller: String,
    /// What was decided.
    pub before: Effect,
    /// By which rule.
    pub before_rule: Option<String>,
    /// What would be decided.
    pub after: Decision,
}

/// Decisions that come out differently, and how many were looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Calls looked at.
    pub calls: usize,
    /// Those with another effect, in the order they were made.
    pub changes: Vec<Change>,
}

impl Change {
    /// Whether the candidate lets through what was held back.
    #[must_use]
    pub fn loosens(&self) -> bool {
        self.after.effect < self.before
    }
}

impl Replay {
    /// Whether any change lets through what was held back.
    #[must_use]
    pub fn loosens(&self) -> bool {
        self.changes.iter().any(Change::loosens)
    }

    /// The changes by what they have in common: `deny → allow, web.fetch, rule x`,
    /// with how many there are.
    #[must_use]
    pub fn grouped(&self) -> BTreeMap<String, usize> {
        let mut groups = BTreeMap::new();
        for change in &self.changes {
            let rule = change
                .after
                .rule
                .as_deref()
                .or(change.before_rule.as_deref());
            let rule = rule.map_or("no rule".to_owned(), |rule| format!("rule {rule}"));
            let (before, after) = (change.before.word(), change.after.effect.word());
            let group = format!("{before} → {after}, {}, {rule}", change.tool);
            *groups.entry(group).or_default() += 1;
        }
        groups
    }
}

/// Decides recorded calls again.
#[must_use]
pub fn replay(candidate: &Rules, recorded: &[Recorded<'_>]) -> Replay {
    let change = |call: &Recorded<'_>| {
        let after = candidate.decide(&call.asked);
        (after.effect != call.effect).then(|| Change {
            call_id: call.call_id.to_owned(),
            tool: call.asked.document.name.clone(),
            caller: call.asked.caller.name.clone(),
            before: call.effect,
            before_rule: call.rule.map(str::to_owned),
            after,
        })
    };
    Replay {
        calls: recorded.len(),
        changes: recorded.iter().filter_map(change).collect(),
    }
}

/// One call as two sets of rules see it, for a candidate that runs beside the
/// live set and decides nothing.
#[must_use]
pub fn shadow(
    live: &Decision,
    candidate: &Rules,
    call_id: &str,
    asked: &Asked<'_>,
) -> Option<Change> {
    let recorded = Recorded {
        call_id,
        asked: *asked,
        effect: live.effect,
        rule: live.rule.as_deref(),
    };
    replay(candidate, &[recorded]).changes.pop()
}
