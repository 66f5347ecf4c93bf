//! What other settings would have decided about calls that were made. Decisions
//! only: nothing runs, and no person is asked.
//!
//! A call can be decided again if its tool is still the same document and the audit
//! kept its arguments. The others are counted by what is missing.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::caller::Caller;
use model::document::digest;
use model::govern::rules::{Decision, Effect};
use model::record::audit::{Closing, GateRecord};
use model::record::mask::MASK;
use serde::Serialize;
use serde_json::{Map, Value};
use store::{AuditEntry, Filter, StoreError};

use crate::engine::Engine;
use crate::gates::{self, AS_IT_STANDS, FoundTool, denied, is_ruled};
use crate::limit;
use crate::refusal::{Gate, Unrecorded};
use crate::request::{CallRequest, CallTarget};
use crate::snapshot::Snapshot;

/// A decision that comes out differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The id of the recorded call.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// Who called.
    pub caller: String,
    /// The decision that was recorded.
    pub before: Effect,
    /// By which rule.
    pub before_rule: Option<String>,
    /// What the settings in force decide now.
    pub live: Effect,
    /// What would be decided.
    pub after: Effect,
    /// By which rule.
    pub after_rule: Option<String>,
    /// The reason of the new decision.
    pub reason: String,
}

impl Change {
    /// Whether something gets through that was held back then.
    #[must_use]
    pub fn loosens(&self) -> bool {
        self.after < self.before
    }

    /// Whether something would get through that the settings in force hold back. What
    /// they let through already the candidate does not loosen.
    #[must_use]
    pub fn loosens_live(&self) -> bool {
        self.after < self.live
    }
}

/// Why a call could not be decided again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Missing {
    /// Only the digest of its arguments was kept.
    OnlyDigest,
    /// A secret is masked in its arguments.
    Masked,
    /// Its tool is gone.
    ToolGone,
    /// Its tool is another document now.
    ToolChanged,
    /// It ended before anything was decided about it, or has not ended.
    Undecided,
}

impl Missing {
    /// The reason as a clause about several calls.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Missing::OnlyDigest => "only digests of their arguments were kept",
            Missing::Masked => "a secret is masked in their arguments",
            Missing::ToolGone => "their tool no longer exists",
            Missing::ToolChanged => "their tool changed since",
            Missing::Undecided => "no decision was recorded for them",
        }
    }
}

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// How many calls the filter named.
    pub calls: u64,
    /// Those that were decided again.
    pub decided: u64,
    /// Those that came out differently, newest first.
    pub changes: Vec<Change>,
    /// Those that could not be decided again.
    pub missing: BTreeMap<Missing, u64>,
}

impl Engine {
    /// Decides every recorded call that a filter names again, as `candidate` would and
    /// as the settings in force do.
    pub fn replay(&self, candidate: &Snapshot, filter: &Filter) -> Result<Replayed, StoreError> {
        let now = self.registry().current();
        let mut found = Replayed::default();
        let mut filter = Filter {
            limit: Some(limit::REPLAY_PAGE_RECORDS),
            ..filter.clone()
        };
        loop {
            let page = self.store().audit().list(&filter)?;
            let Some(last) = page.last() else {
                return Ok(found);
            };
            // Page by page: a log may have millions of records.
            filter.before = Some(last.sequence);
            for entry in &page {
                found.calls += 1;
                match again((candidate, &now), entry) {
                    Ok(change) => {
                        found.decided += 1;
                        found.changes.extend(change);
                    }
                    Err(missing) => *found.missing.entry(missing).or_default() += 1,
                }
            }
        }
    }
}

/// Decides one call again.
fn again(
    (candidate, now): (&Snapshot, &Snapshot),
    entry: &AuditEntry,
) -> Result<Option<Change>, Missing> {
    let closing = entry.closing.as_ref().ok_or(Missing::Undecided)?;
    let facts = closing.tool.as_ref().ok_or(Missing::Undecided)?;
    let (before, before_rule) = decided(closing).ok_or(Missing::Undecided)?;
    let after = judged(candidate, entry, closing)?;
    let live = judged(now, entry, closing)?;
    let is_same = after.effect == before && after.effect == live.effect;
    Ok((!is_same).then(|| Change {
        call_id: entry.opening.call_id.clone(),
        tool: facts.name.clone(),
        caller: entry.opening.caller.clone(),
        before,
        before_rule,
        live: live.effect,
        after: after.effect,
        after_rule: after.rule,
        reason: after.reason,
    }))
}

/// What some settings decide about a call that was made.
fn judged(under: &Snapshot, entry: &AuditEntry, closing: &Closing) -> Result<Decision, Missing> {
    let facts = closing.tool.as_ref().ok_or(Missing::Undecided)?;
    let tool = under.tool(&facts.name).ok_or(Missing::ToolGone)?;
    if tool.usable.facts.digest.to_string() != facts.digest {
        return Err(Missing::ToolChanged);
    }
    let opening = &entry.opening;
    let caller = match Caller::owner() {
        owner if owner.name == opening.caller => owner,
        _ => Caller::named(&opening.caller),
    };
    let mut request = CallRequest::new(caller, opening.origin, &facts.name, Value::Null);
    let registry = gate(closing, Gate::Registry);
    let is_brought = registry.is_some_and(|gate| gate.note.as_deref() == Some(AS_IT_STANDS));
    let found = match is_brought {
        false => FoundTool::registered(tool),
        true => {
            request.target = CallTarget::Document(Arc::clone(&tool.usable));
            let found = gates::find_document(under, &request, &tool.usable);
            found.map_err(|_| Missing::Undecided)?.value
        }
    };
    let arguments = match arguments(entry, closing) {
        Ok(arguments) => arguments,
        // Whether the caller may use the tool does not depend on them.
        Err(missing) if is_access(closing) => {
            return match found.admit(under, &request, &mut Unrecorded) {
                Ok(_) => Ok(past_access()),
                Err(refusal) if is_ruled(refusal.reason()) => Ok(denied(&refusal)),
                Err(_) => Err(missing),
            };
        }
        Err(missing) => return Err(missing),
    };
    request.arguments = arguments;
    let visible = found.admit(under, &request, &mut Unrecorded);
    let ruled = visible.and_then(|visible| visible.rule(under, &request, opening.at_ms));
    Ok(ruled.unwrap_or_else(|refusal| denied(&refusal)))
}

/// What was decided then: by the rules, or before them whether the caller may use
/// the tool at all.
fn decided(closing: &Closing) -> Option<(Effect, Option<String>)> {
    if is_access(closing) {
        return Some((Effect::Deny, None));
    }
    let rules = gate(closing, Gate::Rules)?;
    let effect = match rules.verdict.as_ref() {
        "pass" => Effect::Allow,
        "ask" => Effect::Ask,
        "stop" => Effect::Deny,
        _ => return None,
    };
    Some((effect, rules.rule.clone()))
}

fn is_access(closing: &Closing) -> bool {
    gate(closing, Gate::Access).is_some_and(|gate| gate.verdict == "stop")
}

fn gate(closing: &Closing, gate: Gate) -> Option<&GateRecord> {
    closing.gates.iter().find(|it| it.gate == gate.word())
}

/// The caller would get to the rules; what they say depends on what was not kept.
fn past_access() -> Decision {
    Decision {
        effect: Effect::Allow,
        reason: "the caller may use the tool; its arguments were not kept".to_owned(),
        rule: None,
        code: None,
        remedy: None,
        retry: model::record::outcome::Retry::Never,
        bounds: model::policy::host_bound::HostBounds::default(),
    }
}

/// The arguments as they were, if they can be known.
fn arguments(entry: &AuditEntry, closing: &Closing) -> Result<Value, Missing> {
    let is_same = |value: &Value| {
        let digest = digest::of_value(value);
        digest.is_ok_and(|digest| digest == entry.opening.arguments_digest)
    };
    match &closing.arguments {
        // The caller itself may have written what looks like a mask. Then the digest is
        // the same.
        Some(kept) if !has_mask(kept) || is_same(kept) => Ok(kept.clone()),
        Some(_) => Err(Missing::Masked),
        None => {
            // The digest of no arguments is always the same.
            let none = Value::Object(Map::new());
            match is_same(&none) {
                true => Ok(none),
                false => Err(Missing::OnlyDigest),
            }
        }
    }
}

fn has_mask(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(MASK),
        Value::Array(items) => items.iter().any(has_mask),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| name.contains(MASK) || has_mask(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
