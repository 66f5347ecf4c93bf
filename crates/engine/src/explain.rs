//! Why: what every gate says about a call that is not made, and what rules that are
//! only tried say about one that is. Both ask the functions a call goes through.

use std::sync::Arc;
use std::time::Instant;

use model::approval::authority;
use model::audit::{self, Closing};
use model::document::Word as _;
use model::host_bound::HostBounds;
use model::outcome::CallError;
use model::reason::Reason;
use model::rules::{Decision, Effect, Retry};
use model::text;

use crate::Engine;
use crate::call::{self, CallRequest};
use crate::callers::would_welcome;
use crate::record::{Gate, Record, Stop};
use crate::registry::Snapshot;

/// Characters of a reason kept in the audit.
pub(crate) const REASON_CHARS_MAX: usize = 400;

/// What would become of a call.
#[derive(Clone, Debug)]
pub struct Explained {
    /// What is to happen.
    pub effect: Effect,
    /// What the caller would be told, where it is refused.
    pub told: Option<CallError>,
    /// What the audit would say: each gate in order, the tool, its badge. Nothing
    /// ran, so its status and times mean nothing.
    pub closing: Closing,
}

impl Engine {
    /// Walks a call through its gates without making it: no record, no question, no
    /// sandbox.
    #[must_use]
    pub fn explain(&self, request: &CallRequest) -> Explained {
        let now = self.registry().current();
        let mut record = Record::new(String::new(), Instant::now(), None);
        record.keeps_arguments(&now.config);
        record.shadows(shadow(&now, request, self.now_ms()));
        let walked = self.walk_dry(&now, request, &mut record);
        let (effect, stop) = match walked {
            Ok(effect) => (effect, None),
            Err(stop) => (Effect::Deny, Some(stop)),
        };
        let (closing, told) = record.dry(stop, self.now_ms());
        Explained {
            effect,
            told,
            closing,
        }
    }

    fn walk_dry(
        &self,
        now: &Arc<Snapshot>,
        request: &CallRequest,
        record: &mut Record,
    ) -> Result<Effect, Stop> {
        let now = &record.gate(Gate::Caller, would_welcome(self, now, request))?;
        let found = record.gate(Gate::Registry, call::find(now, request))?;
        let judged = call::judge(self, now, request, &found, record)?;
        let effect = judged.decision.effect;
        let told = call::limits_told(self, now, request, &found);
        record.gate(Gate::Limits, told)?;
        let base = call::base_path(self, now, request, &judged);
        if let Err(stop) = base {
            return record.gate(Gate::Powers, Err(stop));
        }
        if effect == Effect::Ask {
            let settings = &now.config.approvals;
            let may_answer = authority::told(&request.caller, judged.risk.level, settings);
            let note = format!(
                "a person would be asked, unless an approval covers the call; may answer: {may_answer}"
            );
            record.would(Gate::Approval, "ask", &note);
        }
        let told = call::powers_told(self, now, request, &judged);
        record.gate(Gate::Powers, told)?;
        Ok(effect)
    }
}

/// What the candidate beside the live rules says about a call, if there is one and
/// it says something else. It has no part in what happens.
pub(crate) fn shadow(now: &Snapshot, request: &CallRequest, at_ms: i64) -> Option<audit::Shadow> {
    let shadow = now.shadow.as_deref()?;
    let live = verdict(now, request, at_ms);
    let tried = verdict(&shadow.snapshot, request, at_ms);
    (live.effect != tried.effect).then(|| audit::Shadow {
        candidate: text::elided(&shadow.file, REASON_CHARS_MAX),
        live: live.effect.word().to_owned(),
        verdict: tried.effect.word().to_owned(),
        // Cut when it is masked.
        reason: tried.reason,
        rule: tried.rule,
    })
}

/// What settings and rules alone say about a call.
pub(crate) fn verdict(now: &Snapshot, request: &CallRequest, at_ms: i64) -> Decision {
    let ruled =
        call::find(now, request).and_then(|(found, _)| call::ruled(now, request, &found, at_ms));
    ruled.unwrap_or_else(|stop| denied(&stop))
}

/// A gate's no as a decision.
pub(crate) fn denied(stop: &Stop) -> Decision {
    Decision {
        effect: Effect::Deny,
        reason: stop.why().to_owned(),
        rule: None,
        code: Some(stop.reason()),
        remedy: None,
        retry: Retry::Never,
        bounds: HostBounds::default(),
    }
}

/// Whether a gate's no is for settings and rules to change.
pub(crate) fn is_ruled(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::AccessDenied | Reason::LevelDenied | Reason::ToolNotExposed
    )
}
