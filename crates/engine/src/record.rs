//! What one call leaves behind: the gates it passed, the events of its powers,
//! and from them the closing record and the answer, both masked.

use std::sync::Arc;
use std::time::Instant;

use model::assessment::Sound;
use model::audit::{Closing, Failure, GateRecord, Shadow, SharedFacts, Status, Timing};
use model::config::{AuditArguments, Config};
use model::digest;
use model::mask::{Masked, Masker};
use model::outcome::{CallError, Outcome};
use model::params::Arguments;
use model::policy::EffectivePolicy;
use model::reason::Reason;
use model::risk::Risk;
use model::rules::{Decision, Effect};
use model::safety::{self, Source};
use sandbox::job::Usage;
use serde_json::Value;

use crate::explain::REASON_CHARS_MAX;
use crate::limit::Admission;
use crate::powers::Powers;
use crate::run::Ran;
use crate::scratch::Scratch;
use crate::{Engine, Observer};

/// The gates of a call, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// May this caller call at all?
    Caller,
    /// Is there such a tool?
    Registry,
    /// May this caller use it?
    Access,
    /// Can its variables be read?
    Secrets,
    /// Can its secrets be masked?
    Masking,
    /// Are its variables set?
    Requirements,
    /// Do the arguments fit?
    Arguments,
    /// What is it held to?
    Policy,
    /// Allow, ask, deny?
    Rules,
    /// Is there anything left of its limits?
    Limits,
    /// Did a person agree?
    Approval,
    /// Is the attempt on the disk?
    Audit,
    /// Are its powers there?
    Powers,
}

impl Gate {
    /// Every gate.
    pub const ALL: [Gate; 13] = [
        Gate::Caller,
        Gate::Registry,
        Gate::Access,
        Gate::Secrets,
        Gate::Masking,
        Gate::Requirements,
        Gate::Arguments,
        Gate::Policy,
        Gate::Rules,
        Gate::Limits,
        Gate::Approval,
        Gate::Audit,
        Gate::Powers,
    ];

    /// The word in the audit.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Gate::Caller => "caller",
            Gate::Registry => "registry",
            Gate::Access => "access",
            Gate::Secrets => "secrets",
            Gate::Masking => "masking",
            Gate::Requirements => "requirements",
            Gate::Arguments => "arguments",
            Gate::Policy => "policy",
            Gate::Rules => "rules",
            Gate::Limits => "limits",
            Gate::Approval => "approval",
            Gate::Audit => "audit",
            Gate::Powers => "powers",
        }
    }
}

/// A call stops here. It has two faces: what the caller is told, and what the
/// operator reads.
#[derive(Debug)]
pub(crate) struct Stop {
    status: Status,
    error: CallError,
    /// The reason the operator reads, where it is another.
    reason: Option<Reason>,
    note: Option<String>,
}

impl Stop {
    /// A gate said no.
    pub(crate) fn refused(error: CallError) -> Stop {
        Stop::with_status(Status::Refused, error)
    }

    /// It stops for another reason than a gate.
    pub(crate) fn with_status(status: Status, error: CallError) -> Stop {
        Stop {
            status,
            error,
            reason: None,
            note: None,
        }
    }

    /// What the operator reads besides.
    pub(crate) fn note(self, note: String) -> Stop {
        Stop {
            note: Some(note),
            ..self
        }
    }

    /// The sentence the operator reads.
    pub(crate) fn why(&self) -> &str {
        self.note.as_deref().unwrap_or(&self.error.message)
    }

    /// The reason the operator reads.
    pub(crate) fn reason(&self) -> Reason {
        self.reason.unwrap_or(self.error.reason)
    }

    /// What the operator reads went before.
    pub(crate) fn after(self, before: &str) -> Stop {
        let note = self.note.as_deref().unwrap_or(&self.error.message);
        let note = format!("{note}; {before}");
        self.note(note)
    }

    /// More words for the caller.
    pub(crate) fn says(&mut self, more: &str) {
        self.error.message.push_str(more);
    }

    /// The true reason, for the operator.
    pub(crate) fn because(self, reason: Reason) -> Stop {
        Stop {
            reason: Some(reason),
            ..self
        }
    }
}

/// What one call leaves behind, while it is under way.
#[derive(Debug)]
pub(crate) struct Record {
    observer: Option<Observer>,
    /// Goes when the call is over and nothing can write to it any more.
    scratch: Option<Scratch>,
    /// The call's place among those its limits count.
    admission: Option<Admission>,
    call_id: String,
    started: Instant,
    gates: Vec<GateRecord>,
    masker: Option<Arc<Masker>>,
    keeps_arguments: bool,
    arguments: Option<Value>,
    facts: Option<SharedFacts>,
    powers: Option<Arc<Powers>>,
    run_started: Option<Instant>,
    usage: Option<Usage>,
    run_us: u64,
    shadow: Option<Shadow>,
}

impl Record {
    pub(crate) fn new(call_id: String, started: Instant, observer: Option<Observer>) -> Record {
        Record {
            observer,
            scratch: None,
            admission: None,
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
        }
    }

    pub(crate) fn call_id(&self) -> &str {
        &self.call_id
    }

    /// When the call began.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Notes what a gate said, and hands on what it let through.
    pub(crate) fn gate<T>(
        &mut self,
        gate: Gate,
        answer: Result<(T, String), Stop>,
    ) -> Result<T, Stop> {
        match answer {
            Ok((passed, note)) => {
                self.note(gate, "pass", None, Some(note));
                Ok(passed)
            }
            Err(stop) => {
                let reason = stop.reason.unwrap_or(stop.error.reason);
                let note = stop.note.clone();
                let note = note.unwrap_or_else(|| stop.error.message.clone());
                self.note(gate, "stop", Some(reason), Some(note));
                Err(stop)
            }
        }
    }

    /// Notes what the rules said.
    pub(crate) fn decision(&mut self, decision: Decision) -> Result<Decision, Stop> {
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
        if let Some(gate) = self.gates.last_mut() {
            gate.rule.clone_from(&decision.rule);
        }
        match denied {
            None => Ok(decision),
            Some(code) => {
                let error = CallError::new(code, decision.told()).advised(decision.advice());
                Err(Stop::refused(error).note(note))
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
        if let Some(Observer(see)) = &self.observer {
            see(gate.word());
        }
        self.gates.push(GateRecord {
            gate: gate.word().into(),
            verdict: verdict.into(),
            reason: reason.map(|reason| reason.code().into()),
            note: note.filter(|note| !note.is_empty()),
            rule: None,
        });
    }

    /// What a candidate says that the live rules do not.
    pub(crate) fn shadows(&mut self, shadow: Option<Shadow>) {
        self.shadow = shadow;
    }

    /// From here on, what leaves goes through this.
    pub(crate) fn masks_with(&mut self, masker: &Arc<Masker>) {
        self.masker = Some(Arc::clone(masker));
    }

    /// Whether the operator wants arguments kept, or only their digest.
    pub(crate) fn keeps_arguments(&mut self, config: &Config) {
        self.keeps_arguments = config.audit.arguments == AuditArguments::Masked;
    }

    pub(crate) fn keeps(&mut self, arguments: &Arguments) {
        let kept = || Value::Object(arguments.values().clone());
        self.arguments = self.keeps_arguments.then(kept);
    }

    /// What the document declares; what is enforced is noted when it is known.
    pub(crate) fn found(&mut self, sound: &Sound) {
        self.facts = Some(sound.facts());
    }

    /// What is in force for this call.
    pub(crate) fn enforces(
        &mut self,
        sound: &Sound,
        policy: &EffectivePolicy,
        risk: &Risk,
        source: Source,
    ) {
        let judged = &sound.judged.policy;
        if !std::ptr::eq(policy, judged) && policy != judged {
            let safety = safety::record(&sound.document, policy, source);
            self.facts = Some(sound.facts_under(risk, &safety));
        }
    }

    /// The safety record in force.
    pub(crate) fn safety(&self) -> Value {
        self.facts
            .as_ref()
            .map(|facts| facts.tool_safety.clone())
            .unwrap_or_default()
    }

    pub(crate) fn keeps_until_closed(&mut self, scratch: Scratch) {
        self.scratch = Some(scratch);
    }

    /// It holds its place from here until it ends.
    pub(crate) fn holds(&mut self, admission: Option<Admission>) {
        self.admission = admission;
    }

    /// The place is free again.
    pub(crate) async fn leaves(&mut self, engine: &Engine) {
        if let Some(admission) = self.admission.take() {
            admission.leave(engine).await;
        }
    }

    pub(crate) fn runs_with(&mut self, powers: &Arc<Powers>) {
        if let Some(admission) = &mut self.admission {
            admission.runs();
        }
        self.powers = Some(Arc::clone(powers));
        self.run_started = Some(Instant::now());
    }

    /// The answer. Masked, whatever it is.
    pub(crate) fn outcome(&mut self, walked: Result<Ran, Stop>) -> Masked<Outcome> {
        self.run_us = self.run_started.map(micros).unwrap_or(0);
        let (status, value, error, console) = match walked {
            Ok(ran) => {
                self.usage = ran.usage;
                (ran.status, ran.value, ran.error, ran.console)
            }
            Err(stop) => (stop.status, None, Some(stop.error), Vec::new()),
        };
        let outcome = Outcome {
            call_id: self.call_id.clone(),
            status,
            value,
            error,
            console,
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
    pub(crate) fn dry(mut self, stop: Option<Stop>, at_ms: i64) -> (Closing, Option<CallError>) {
        let walked = match stop {
            Some(stop) => Err(stop),
            None => Ok(Ran::nothing()),
        };
        let outcome = self.outcome(walked);
        let closing = self.closing(&outcome, at_ms);
        (closing, outcome.into_inner().error)
    }

    /// A gate that is not asked in earnest.
    pub(crate) fn would(&mut self, gate: Gate, verdict: &'static str, note: &str) {
        self.note(gate, verdict, None, Some(note.to_owned()));
    }

    /// The closing record.
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
            let reason = std::mem::take(&mut shadow.reason);
            let reason = masker.own_text(reason).elided(REASON_CHARS_MAX);
            shadow.reason = reason.into_inner();
        }
        let mut gates = std::mem::take(&mut self.gates);
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

    /// The answer when the attempt could not be written down. What came of it
    /// does not leave.
    pub(crate) fn unwritten(&self) -> Masked<Outcome> {
        let ran = self.run_started.is_some();
        let message = if ran {
            "the call ran, but what came of it could not be written down and is withheld"
        } else {
            "the attempt could not be written down, so nothing ran"
        };
        self.mask_outcome(Outcome {
            call_id: self.call_id.clone(),
            status: if ran { Status::Failed } else { Status::Refused },
            value: None,
            error: Some(CallError {
                retryable: !ran,
                ..CallError::new(Reason::AuditUnavailable, message)
            }),
            console: Vec::new(),
            elapsed_us: micros(self.started),
        })
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
