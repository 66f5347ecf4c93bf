//! What one call leaves behind: the gates it passed, the events of its powers,
//! and from them the closing record and the answer, both masked.

use std::sync::Arc;
use std::time::Instant;

use model::config::{ArgumentRetention, Config};
use model::document::digest;
use model::document::params::Arguments;
use model::document::safety::Source;
use model::govern::rules::{Decision, Effect};
use model::policy::EffectivePolicy;
use model::policy::assessment::UsableDocument;
use model::policy::risk::Risk;
use model::reason::Reason;
use model::record::audit::{Closing, Failure, GateRecord, Shadow, SharedFacts, Status, Timing};
use model::record::mask::{Masked, Masker};
use model::record::outcome::{CallError, CallUsage, Outcome};
use sandbox::job::RunUsage;
use serde_json::Value;

use crate::limit;
use crate::powers::Powers;
use crate::refusal::{CallRefusal, Gate, GateResult, Notes};
use crate::report::{CallStep, StepWithin};
use crate::run::RunResult;
use crate::services::Observer;

/// What one call leaves behind, while it is under way.
#[derive(Debug)]
pub(crate) struct CallRecord {
    observer: Option<Observer>,
    call_id: String,
    started: Instant,
    gates: Vec<GateRecord>,
    masker: Option<Arc<Masker>>,
    keeps_arguments: bool,
    arguments: Option<Value>,
    facts: Option<SharedFacts>,
    powers: Option<Arc<Powers>>,
    run_started: Option<Instant>,
    usage: Option<RunUsage>,
    run_us: u64,
    shadow: Option<Shadow>,
    /// When each gate had answered, and the run ended.
    steps: Vec<CallStep>,
    notes: Vec<String>,
}

impl CallRecord {
    pub(crate) fn new(call_id: String, started: Instant, observer: Option<Observer>) -> CallRecord {
        CallRecord {
            observer,
            call_id,
            started,
            gates: Vec::with_capacity(Gate::ALL.len()),
            masker: None,
            keeps_arguments: false,
            arguments: None,
            facts: None,
            powers: None,
            run_started: None,
            usage: None,
            run_us: 0,
            shadow: None,
            steps: Vec::with_capacity(Gate::ALL.len()),
            notes: Vec::new(),
        }
    }

    /// What the call did, one after the other.
    pub(crate) fn take_steps(&mut self) -> Vec<CallStep> {
        std::mem::take(&mut self.steps)
    }

    /// Notes that a step ended now. It began when the one before it ended.
    fn note_step(&mut self, name: &'static str) {
        let begin_us = self.steps.last().map_or(0, |step| step.end_us);
        self.steps.push(CallStep {
            name: name.into(),
            within: StepWithin::Call,
            begin_us,
            end_us: micros(self.started),
        });
    }

    /// Notes what the run asked its host for.
    fn note_host_steps(&mut self) {
        let Some(powers) = &self.powers else {
            return;
        };
        let since = |at: Instant| {
            let us = at.saturating_duration_since(self.started).as_micros();
            u64::try_from(us).unwrap_or(u64::MAX)
        };
        let steps = powers.take_steps().into_iter().map(|step| CallStep {
            name: step.name.into(),
            within: StepWithin::Run,
            begin_us: since(step.begin),
            end_us: since(step.end),
        });
        self.steps.extend(steps);
    }

    /// Something the caller must know besides its result.
    pub(crate) fn tell_caller(&mut self, note: String) {
        self.notes.push(note);
    }

    pub(crate) fn call_id(&self) -> &str {
        &self.call_id
    }

    /// When the call began.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Notes what the rules said.
    pub(crate) fn decision(&mut self, decision: Decision) -> Result<Decision, CallRefusal> {
        let note = match &decision.rule {
            Some(rule) => format!("{rule}: {}", decision.reason),
            None => decision.reason.clone(),
        };
        let note = match decision.bounds.words() {
            None => note,
            Some(bounds) => format!("{note}; {bounds}"),
        };
        let verdict = match decision.effect {
            Effect::Allow => "pass",
            Effect::Ask => "ask",
            Effect::Deny => "stop",
        };
        let denied =
            (decision.effect == Effect::Deny).then(|| decision.code.unwrap_or(Reason::RuleDenied));
        self.note(Gate::Rules, verdict, denied, Some(note.clone()));
        // Set afterwards: `note` is shared with gates that know no rules.
        if let Some(gate) = self.gates.last_mut() {
            gate.rule.clone_from(&decision.rule);
        }
        match denied {
            None => Ok(decision),
            Some(code) => {
                let error = CallError::new(code, decision.told()).advised(decision.advice());
                Err(CallRefusal::new(error).noted(note))
            }
        }
    }

    fn note(
        &mut self,
        gate: Gate,
        verdict: &'static str,
        reason: Option<Reason>,
        note: Option<String>,
    ) {
        if let Some(observer) = &self.observer {
            observer.see(gate.word());
        }
        self.note_step(gate.word());
        self.gates.push(GateRecord {
            gate: gate.word().into(),
            verdict: verdict.into(),
            reason: reason.map(|reason| reason.code().into()),
            note: note.filter(|note| !note.is_empty()),
            rule: None,
            us: self.steps.last().map(CallStep::took_us),
        });
    }

    /// Notes what a candidate says that the live rules do not.
    pub(crate) fn note_shadow(&mut self, shadow: Option<Shadow>) {
        self.shadow = shadow;
    }

    /// From here on, what leaves goes through this masker.
    pub(crate) fn mask_with(&mut self, masker: &Arc<Masker>) {
        self.masker = Some(Arc::clone(masker));
    }

    /// Follows the settings: whether arguments are kept, or only their digest.
    pub(crate) fn follow(&mut self, config: &Config) {
        self.keeps_arguments = config.audit.arguments == ArgumentRetention::Masked;
    }

    /// Keeps the arguments, if the operator wants them kept.
    pub(crate) fn keep_arguments(&mut self, arguments: &Arguments) {
        let kept = || Value::Object(arguments.values().clone());
        self.arguments = self.keeps_arguments.then(kept);
    }

    /// What is in force for this call.
    pub(crate) fn note_enforced(
        &mut self,
        usable: &UsableDocument,
        policy: &EffectivePolicy,
        risk: &Risk,
        source: Source,
    ) {
        let judged = &usable.facts.policy;
        // Most calls share the policy of the snapshot. The pointer then saves the
        // comparison.
        if !std::ptr::eq(policy, judged) && policy != judged {
            let safety = usable.safety_under(policy, source);
            self.facts = Some(usable.audit_facts_under(risk, &safety));
        }
    }

    /// The safety record in force.
    pub(crate) fn safety(&self) -> Value {
        self.facts
            .as_ref()
            .map(|facts| facts.tool_safety.clone())
            .unwrap_or_default()
    }

    /// The body begins, with these powers.
    pub(crate) fn run_with(&mut self, powers: &Arc<Powers>) {
        self.powers = Some(Arc::clone(powers));
        self.run_started = Some(Instant::now());
    }

    /// The answer. Masked, whatever it is.
    pub(crate) fn outcome(&mut self, walked: Result<RunResult, CallRefusal>) -> Masked<Outcome> {
        self.run_us = self.run_started.map(micros).unwrap_or(0);
        if self.run_started.is_some() {
            self.note_step("run");
            self.note_host_steps();
        }
        let ran = walked.unwrap_or_else(RunResult::refused);
        self.usage = ran.usage;
        let outcome = Outcome {
            call_id: self.call_id.clone(),
            status: ran.status,
            value: ran.value,
            relayed: ran.relayed,
            error: ran.error,
            console: ran.console,
            notes: std::mem::take(&mut self.notes),
            usage: self.usage.map(|usage| CallUsage {
                work: usage.work,
                cpu_us: usage.cpu_us,
                wall_us: usage.wall_us,
                memory_bytes: usage.memory_bytes,
                host_calls: usage.host_calls,
            }),
            elapsed_us: micros(self.started),
        };
        self.mask_outcome(outcome)
    }

    fn mask_outcome(&self, outcome: Outcome) -> Masked<Outcome> {
        match &self.masker {
            Some(masker) => masker.outcome(outcome),
            // No document was found, so there are no secrets of its to mask.
            None => Masker::none().outcome(outcome),
        }
    }

    /// What the gates said, when nothing was to be run. Masked.
    pub(crate) fn dry(
        mut self,
        refusal: Option<CallRefusal>,
        at_ms: i64,
    ) -> (Closing, Option<CallError>) {
        let walked = match refusal {
            Some(refusal) => Err(refusal),
            None => Ok(RunResult::nothing()),
        };
        let outcome = self.outcome(walked);
        let closing = self.closing(&outcome, at_ms);
        (closing, outcome.into_inner().error)
    }

    /// A gate that is not asked in earnest.
    pub(crate) fn would(&mut self, gate: Gate, verdict: &'static str, note: &str) {
        self.note(gate, verdict, None, Some(note.to_owned()));
    }

    pub(crate) fn closing(&mut self, outcome: &Masked<Outcome>, at_ms: i64) -> Closing {
        let none = Masker::none();
        let masker = self.masker.as_deref().unwrap_or(&none);
        let masked = |value: Value| masker.value(value).into_inner();
        let (events, events_dropped) = match &self.powers {
            Some(powers) => powers.take_events(),
            None => (Vec::new(), 0),
        };
        let arguments = self.arguments.take();
        let outcome = outcome.get();
        if let Some(shadow) = &mut self.shadow {
            // Masked before it is cut: half a secret would not be recognized.
            let reason = std::mem::take(&mut shadow.reason);
            let reason = masker.own_text(reason).elided(limit::REASON_CHARS_MAX);
            shadow.reason = reason.into_inner();
        }
        let mut gates = std::mem::take(&mut self.gates);
        // Gates that ran before the masker was known are masked here as well.
        for gate in &mut gates {
            gate.note = gate
                .note
                .take()
                .map(|note| masker.own_text(note).into_inner());
        }
        Closing {
            at_ms,
            status: outcome.status,
            error: outcome.error.as_ref().map(|error| Failure {
                code: error.reason.code().to_owned(),
                message: error.message.clone(),
            }),
            tool: self.facts.take(),
            gates,
            arguments: arguments.map(masked),
            // Of the masked value: that is what the caller received and can compare.
            result_digest: outcome
                .value
                .as_ref()
                .and_then(|value| digest::of_value(value).ok()),
            events: events.into_iter().map(masked).collect(),
            events_dropped,
            shadow: self.shadow.take(),
            timing: Some(Timing {
                total_us: micros(self.started),
                run_us: self.run_us,
                cpu_us: self.usage.map_or(0, |usage| usage.cpu_us),
            }),
        }
    }

    /// The answer when the attempt could not be written down. Its result
    /// does not leave.
    pub(crate) fn unwritten(&self) -> Masked<Outcome> {
        let ran = self.run_started.is_some();
        let message = if ran {
            "the call ran, but its result could not be recorded and is withheld"
        } else {
            "the call could not be recorded, so it did not run"
        };
        self.mask_outcome(Outcome {
            call_id: self.call_id.clone(),
            status: if ran { Status::Failed } else { Status::Refused },
            value: None,
            relayed: None,
            error: Some(CallError {
                // A call that ran may have had its effect, so its caller is not told to
                // repeat it.
                retryable: !ran,
                ..CallError::new(Reason::AuditUnavailable, message)
            }),
            console: Vec::new(),
            notes: Vec::new(),
            usage: None,
            elapsed_us: micros(self.started),
        })
    }
}

impl Notes for CallRecord {
    fn gate<T>(&mut self, gate: Gate, said: GateResult<T>) -> Result<T, CallRefusal> {
        match said {
            Ok(passed) => {
                self.note(gate, "pass", None, Some(passed.note));
                Ok(passed.value)
            }
            Err(refusal) => {
                let (reason, note) = (refusal.reason(), refusal.why().to_owned());
                self.note(gate, "stop", Some(reason), Some(note));
                Err(refusal)
            }
        }
    }

    /// What the document declares; what is enforced is noted when it is known.
    fn note_tool(&mut self, usable: &UsableDocument) {
        self.facts = Some(usable.audit_facts());
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
