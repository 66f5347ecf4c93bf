//! May this call, with these arguments, run now? Allow, ask a person, or deny.
//! Deny is stronger than ask, and ask than allow.

use crate::caller::{Caller, Origin};
use crate::document::{ApprovalMode, Document};
use crate::params::Arguments;
use crate::risk::{Level, Risk};

/// What the operator decides about calls.
///
/// Defaults ([`Rules::standard`]): documents that leave it to the rules
/// (`AUTO_APPROVE`) ask from L3 up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The badge from which a document that leaves it to the rules asks.
    pub ask_from: Level,
}

/// What a rule may look at.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Who calls.
    pub caller: &'a Caller,
    /// Through which door.
    pub origin: Origin,
    /// What is called.
    pub document: &'a Document,
    /// With what, checked.
    pub arguments: &'a Arguments,
    /// The badge of the call's policy.
    pub risk: &'a Risk,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
}

/// What is to happen, and the one thing that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What is to happen.
    pub effect: Effect,
    /// For people.
    pub reason: String,
    /// The rule that decided, if one did.
    pub rule: Option<String>,
}

/// What is to happen. Later is stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It runs.
    Allow,
    /// A person decides.
    Ask,
    /// It does not run.
    Deny,
}

impl Rules {
    /// The rules when the operator says nothing.
    #[must_use]
    pub fn standard() -> Rules {
        Rules {
            ask_from: Level::L3,
        }
    }

    /// Decides about one call.
    #[must_use]
    pub fn decide(&self, asked: &Asked<'_>) -> Decision {
        let (effect, reason) = match asked.document.approval() {
            ApprovalMode::Required => (Effect::Ask, "the tool asks before every call".to_owned()),
            ApprovalMode::AutoApprove if asked.risk.level >= self.ask_from => {
                let from = self.ask_from.badge();
                (Effect::Ask, format!("calls from {from} up are asked about"))
            }
            ApprovalMode::AutoApprove => {
                let from = self.ask_from.badge();
                let reason = format!("only calls from {from} up are asked about");
                (Effect::Allow, reason)
            }
            ApprovalMode::Disabled => (Effect::Allow, "no rule names it".to_owned()),
        };
        Decision {
            effect,
            reason,
            rule: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::document::parse;
    use crate::params;

    #[track_caller]
    fn check(mode: &str, level: Level, expected: Effect) {
        let text = format!(
            r#"{{"name":"a","code":"","codeType":"Javascript","humanInTheLoop":{{"mode":"{mode}"}}}}"#
        );
        let item = parse(&text).items.pop().expect("an item");
        let document = item.document.expect("a document");
        let risk = Risk {
            level,
            signals: Vec::new(),
        };
        let asked = Asked {
            caller: &Caller::owner(),
            origin: Origin::Mcp,
            document: &document,
            arguments: &params::check(&[], &Value::Null).expect("no arguments"),
            risk: &risk,
            at_ms: 0,
        };
        assert_eq!(Rules::standard().decide(&asked).effect, expected);
    }

    #[test]
    fn the_document_asks_or_leaves_it_to_the_rules() {
        for level in Level::ALL {
            check("DISABLED", level, Effect::Allow);
            check("REQUIRED", level, Effect::Ask);
        }
        check("AUTO_APPROVE", Level::L0, Effect::Allow);
        check("AUTO_APPROVE", Level::L2, Effect::Allow);
        check("AUTO_APPROVE", Level::L3, Effect::Ask);
        check("AUTO_APPROVE", Level::L5, Effect::Ask);
    }
}
