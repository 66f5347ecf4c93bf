//! The one path of a call. Every door enters here, every branch is here, and
//! each step is a plain function below.
//!
//! No audit row, no run: the row is opened before anything is looked at and
//! closed before the answer leaves. If it cannot be closed, what came of the
//! call is not handed out.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::access::Standing;
use model::assessment::Sound;
use model::audit::{Opening, Status};
use model::caller::{CallerKind, Origin};
use model::consent::Granted;
use model::grant::Grant;
use model::mask::{Masked, Masker, is_maskable};
use model::outcome::{CallError, Outcome};
use model::params::{self, Arguments};
use model::policy::{self, EffectivePolicy};
use model::reason::Reason;
use model::risk::{self, Level, Risk};
use model::rules::{Asked, Decision, Effect};
use model::safety::Source;
use model::{Environment, consent, digest, exposure, lifecycle, text};
use store::{OpenRow, StoreError};

use crate::approve::agree::agreed;
use crate::callers::{not_paused, welcome};
use crate::limit::{self, Admission};
use crate::native::{self, Native, Work};
use crate::powers::{PowerSettings, Powers};
use crate::record::{Gate, Record, Stop};
use crate::registry::{Snapshot, Tool};
use crate::run::{self, Prepared, Ran, Variables};
use crate::{Engine, callers, causes, explain, script};

mod absent;
mod asking;
mod request;
mod trial;

use absent::{absent, even_out, hidden, unknown};

pub use request::{Begins, CallRequest, Progress, Purpose, Refused, Target, Waiting};
pub(crate) use trial::{base_path, unconsented, wanted};

/// Characters of a name kept in the record when it is not the name of a tool.
pub(crate) const NAME_SHOWN_CHARS_MAX: usize = 200;

/// What the first gate notes about a document that the owner brought.
pub(crate) const AS_IT_STANDS: &str = "a document as it stands";

impl Engine {
    /// One call, from any door.
    pub async fn call(&self, request: CallRequest) -> Masked<Outcome> {
        let started = Instant::now();
        let began = tokio::time::Instant::now();
        let opening = opening(self, &request);
        let mut record = Record::new(opening.call_id.clone(), started, self.observer());
        let row = match self.open_row(opening).await {
            Ok(row) => row,
            Err(fault) => return self.unwritten(&record, &fault),
        };
        self.observe("opened");
        let walked = tokio::select! {
            biased;
            () = request.cancel.cancelled() => Err(cancelled()),
            () = passed(request.deadline) => Err(late()),
            walked = walk(self, &request, &row, &mut record) => walked,
        };
        self.observe("ran");
        let outcome = record.outcome(walked);
        record.leaves(self).await;
        callers::count(self, &request, outcome.get()).await;
        let closing = record.closing(&outcome, self.now_ms());
        let report = self.report_on(record.call_id(), &request, &closing);
        match self.store().audit().close(row, closing).await {
            Ok(_) => {
                self.observe("closed");
                self.tell(report);
                even_out(&request, outcome.get(), began).await;
                outcome
            }
            Err(fault) => self.unwritten(&record, &fault),
        }
    }

    /// Opens the audit row. Without room for it, the settings are looked at: they may
    /// allow more than when the last call was made.
    async fn open_row(&self, opening: Opening) -> Result<OpenRow, StoreError> {
        match self.store().audit().open(opening.clone()).await {
            Err(StoreError::Full { .. }) => {
                self.registry().current();
                self.store().audit().open(opening).await
            }
            opened => opened,
        }
    }

    fn unwritten(&self, record: &Record, fault: &StoreError) -> Masked<Outcome> {
        self.alarm(&format!(
            "call {} could not be written down: {}",
            record.call_id(),
            causes(fault)
        ));
        record.unwritten()
    }
}

/// Steps 2 to 9: find, access, arguments, policy, risk, rules, approval, run.
async fn walk(
    engine: &Engine,
    request: &CallRequest,
    row: &OpenRow,
    record: &mut Record,
) -> Result<Ran, Stop> {
    let now = engine.registry().current();
    record.keeps_arguments(&now.config);
    if let Some(refused) = &request.refused {
        return record.gate(refused.gate, Err(refused.stop()));
    }
    record.shadows(explain::shadow(&now, request, engine.now_ms()));
    let now = record.gate(Gate::Caller, welcome(engine, now, request).await)?;
    let found = record.gate(Gate::Registry, find(&now, request))?;
    let judged = judge(engine, &now, request, &found, record)?;
    if trial::is_trial(request, &found) && judged.reaches_out() {
        record.gate(Gate::Approval, trial::consented(&judged))?;
    }
    let admission = admitted(engine, &now, request, &found).await;
    let admission = record.gate(Gate::Limits, admission)?;
    record.holds(admission);
    if judged.asks {
        let asking = asking::asking(engine, &now, request, record, &judged);
        let answer = agreed(engine, asking).await;
        let answer = still_welcome(engine, request, answer).await;
        record.gate(Gate::Approval, unchanged(engine, request, &judged, answer))?;
    }
    if is_grave(&judged.policy, &judged.risk) {
        record.gate(Gate::Audit, secured(engine, row).await)?;
    }
    if let Some(native) = found.native {
        let powers = Arc::new(Powers::none());
        record.runs_with(&powers);
        let work = Work {
            engine,
            now: &now,
            request,
            call_id: record.call_id(),
            arguments: judged.arguments.into_values(),
            powers,
            started: record.started(),
        };
        return native::run(native, work).await;
    }
    let staged = trial::staged(engine, &now, request, record, &judged.policy).await;
    let settings = match staged {
        Ok(settings) => settings,
        Err(stop) => return record.gate(Gate::Powers, Err(stop)),
    };
    let prepared = prepare(engine, request, judged, &settings);
    let prepared = record.gate(Gate::Powers, prepared)?;
    record.runs_with(&prepared.powers);
    if let Some(begins) = &request.begins {
        script::begun(engine, begins).await?;
    }
    run(engine, request, prepared).await
}

/// Steps 3 to 7, which ask nobody and start nothing: what a call goes through and
/// what `explain` tells about one that was not made are the same lines.
pub(crate) fn judge<'a>(
    engine: &Engine,
    now: &Snapshot,
    request: &CallRequest,
    found: &'a Found,
    record: &mut Record,
) -> Result<Judged<'a>, Stop> {
    record.found(&found.sound);
    record.gate(Gate::Access, access(now, request, found))?;
    let environment = record.gate(Gate::Secrets, environment(engine, request, found))?;
    let visible = found.granted.visible(&found.sound.document, &environment);
    let variables = Variables::resolve(&found.sound, &visible);
    let masker = record.gate(Gate::Masking, masker(&variables))?;
    record.masks_with(&masker);
    record.gate(Gate::Requirements, required(request, found, &environment))?;
    let arguments = record.gate(Gate::Arguments, arguments(request, found))?;
    record.keeps(&arguments);
    let policy = record.gate(Gate::Policy, effective(now, request, found))?;
    let risk = rated(now, found, &policy);
    record.enforces(&found.sound, &policy, &risk, found.source);
    let at_ms = engine.now_ms();
    let decision = decide(now, request, found, &arguments, (&policy, &risk), at_ms);
    let decision = record.decision(decision)?;
    let asks = decision.effect == Effect::Ask
        && match request.purpose {
            Purpose::Call => true,
            // Its author is asked once for what it reaches for, not for each try. What
            // the operator wants asked is asked.
            Purpose::LocalPass => {
                operator_asks(now, request, found, &arguments, (&policy, &risk), at_ms)
            }
        };
    let policy = bounded(policy, &decision);
    Ok(Judged {
        asks,
        found,
        variables,
        masker,
        arguments,
        policy,
        risk,
        decision,
    })
}

/// What settings and rules alone say about a call of a tool that was found: the
/// gates of a call that they decide, at some moment.
pub(crate) fn ruled(
    now: &Snapshot,
    request: &CallRequest,
    found: &Found,
    at_ms: i64,
) -> Result<Decision, Stop> {
    access(now, request, found)?;
    let (arguments, _) = arguments(request, found)?;
    let (policy, _) = effective(now, request, found)?;
    let risk = rated(now, found, &policy);
    let judged = (&*policy, &*risk);
    Ok(decide(now, request, found, &arguments, judged, at_ms))
}

/// A tool that was found.
pub(crate) struct Found {
    pub(crate) sound: Arc<Sound>,
    /// Where it came from; a document brought by the owner has no registry entry.
    pub(crate) source: Source,
    registered: bool,
    /// What its owner granted to it.
    granted: Granted,
    /// The body of ours that runs instead of the document's code.
    pub(crate) native: Option<Native>,
}

impl Found {
    /// A tool of the registry, published or not.
    pub(crate) fn registered(tool: &Tool) -> Found {
        Found {
            sound: Arc::clone(&tool.sound),
            source: tool.source,
            registered: true,
            granted: tool.granted.clone(),
            native: tool.native,
        }
    }
}

fn opening(engine: &Engine, request: &CallRequest) -> Opening {
    let tool = match &request.target {
        Target::Name(name) => name,
        Target::Document(sound) => &sound.document.name,
    };
    let at_ms = engine.now_ms();
    Opening {
        call_id: engine.entropy().call_id(at_ms),
        parent_id: request.parent_id.clone(),
        at_ms,
        origin: request.origin,
        caller: text::elided(&request.caller.name, NAME_SHOWN_CHARS_MAX),
        tool: text::elided(tool, NAME_SHOWN_CHARS_MAX),
        arguments_digest: digest::of_value(&request.arguments).unwrap_or_default(),
    }
}

/// Step 2. A tool that is not published does not exist, except for its owner.
pub(crate) fn find(now: &Snapshot, request: &CallRequest) -> Result<(Found, String), Stop> {
    let name = match &request.target {
        Target::Document(sound) => {
            if request.caller.kind != CallerKind::Owner {
                return Err(unknown(
                    &sound.document.name,
                    "only the owner brings documents",
                ));
            }
            // A file may be anybody's, whatever it holds.
            let ours = match request.place {
                Some(_) => None,
                None => now.ours(&sound.document),
            };
            let place = request.place.as_deref();
            let found = Found {
                sound: Arc::clone(sound),
                source: ours.map_or(Source::User, |tool| tool.source),
                registered: false,
                granted: match ours {
                    Some(tool) => tool.granted.clone(),
                    None => now.granted(&sound.document.name, place),
                },
                native: ours.and_then(|tool| tool.native),
            };
            return Ok((found, AS_IT_STANDS.to_owned()));
        }
        Target::Name(name) => name,
    };
    let Some(tool) = now.tool(name) else {
        return Err(absent(now, request, name));
    };
    if let Some(why) = tool.not_published() {
        let error = CallError::new(Reason::ToolDraft, format!("`{name}` {why}; publish it"));
        return Err(hidden(request, name, error));
    }
    Ok((
        Found::registered(tool),
        tool.sound.judged.digest.to_string(),
    ))
}

/// Step 3. Whether the tool is on offer, and to this caller.
pub(crate) fn access(
    now: &Snapshot,
    request: &CallRequest,
    found: &Found,
) -> Result<((), String), Stop> {
    let name = &found.sound.document.name;
    let access = &now.config.access;
    let document = &found.sound.document;
    let checked = match request.purpose {
        // A proof of the document, not a use of it: what callers' levels leave is not
        // what is proved. Lists hold all the same.
        Purpose::LocalPass => access.check_lists(&request.caller, document),
        Purpose::Call => access.check(&request.caller, document),
    };
    let allowed = checked.map_err(|denied| {
        let error = CallError::new(Reason::AccessDenied, format!("`{name}` is {}", denied.note));
        hidden(request, name, error)
    })?;
    let standing = standing(now, request, found);
    if let Some(why) = standing.emptied(document, &found.sound.judged.policy) {
        let message = format!("`{name}` can do nothing here: {why}");
        let error = CallError::new(Reason::LevelDenied, message);
        return Err(hidden(request, name, error));
    }
    if !found.registered {
        return Ok(((), allowed));
    }
    if request.origin == Origin::Mcp && !exposure::is_client_name(name) {
        // Another name would have to be made up, and two tools could end up with it.
        let message = format!("`{name}` is not a name MCP clients take");
        let error = CallError::new(Reason::ToolNotExposed, message);
        return Err(hidden(request, name, error));
    }
    let exposed = now.exposed(&found.sound.document, found.source);
    let not_offered = |why: &str| {
        let message = format!("`{name}` is not on offer: {why}");
        let error = CallError::new(Reason::ToolNotExposed, message);
        Err(hidden(request, name, error))
    };
    if !exposed.is_yes() {
        return not_offered(exposed.why());
    }
    match native::reached(now, request.origin, found) {
        Ok(()) => Ok(((), format!("{allowed}; {}", exposed.why()))),
        Err(why) => not_offered(&why),
    }
}

/// What the call's variables are filled from, read anew for every call.
pub(crate) fn environment(
    engine: &Engine,
    request: &CallRequest,
    found: &Found,
) -> Result<(Environment, String), Stop> {
    if found.sound.document.static_variables.is_empty() {
        return Ok((Environment::empty(), "none needed".to_owned()));
    }
    match engine.environment() {
        Ok(environment) => Ok((environment, "read".to_owned())),
        Err(fault) => {
            let message = "the file of secrets cannot be used";
            let error = CallError::new(Reason::SecretsUnavailable, message);
            let mut stop = Stop::refused(error).note(fault.to_string());
            if request.caller.kind == CallerKind::Owner {
                stop.says(&format!(": {fault}"));
            }
            Err(stop)
        }
    }
}

fn masker(variables: &Variables) -> Result<(Arc<Masker>, String), Stop> {
    let secrets = variables.secrets.iter().map(String::as_str);
    match Masker::new(secrets) {
        Ok(masker) => {
            let secrets = variables.secrets.iter();
            let short = secrets.filter(|secret| !is_maskable(secret)).count();
            let mut note = text::count(variables.secrets.len(), "secret");
            if short > 0 {
                note.push_str(&format!(", {short} too short to be masked"));
            }
            Ok((Arc::new(masker), note))
        }
        Err(fault) => {
            let error = CallError::new(Reason::MaskUnavailable, fault.to_string());
            Err(Stop::refused(error))
        }
    }
}

/// The variables a tool needs are there and granted to it, or it does not exist but for
/// its owner. What a document that is tried lacks of grants is asked for with the rest.
pub(crate) fn required(
    request: &CallRequest,
    found: &Found,
    environment: &Environment,
) -> Result<((), String), Stop> {
    let document = &found.sound.document;
    let missing = lifecycle::missing(document, environment);
    if !missing.is_empty() {
        let message = format!("not set: {}", missing.join(", "));
        let error = CallError::new(Reason::RequirementMissing, message);
        return Err(hidden(request, &document.name, error));
    }
    let ungranted = found.granted.ungranted(document);
    if ungranted.is_empty() {
        return Ok(((), "all set".to_owned()));
    }
    let names = ungranted.join(", ");
    if trial::is_trial(request, found) {
        return Ok(((), format!("not granted yet: {names}")));
    }
    let message = format!(
        "not granted: {names}; `ringfence secrets grant {} {}` does",
        document.name,
        ungranted.join(" ")
    );
    let error = CallError::new(Reason::RequirementNotGranted, message);
    Err(hidden(request, &document.name, error))
}

/// Step 4.
fn arguments(request: &CallRequest, found: &Found) -> Result<(Arguments, String), Stop> {
    let given = native::spelled(found.native, &request.arguments)?;
    match params::check(&found.sound.document.params, &given) {
        Ok(arguments) => {
            let count = text::count(arguments.values().len(), "argument");
            Ok((arguments, count))
        }
        Err(faults) => {
            let first = faults.first().map(|fault| fault.reason);
            let messages: Vec<_> = faults.into_iter().map(|fault| fault.message).collect();
            let reason = first.unwrap_or(Reason::ArgumentType);
            Err(Stop::refused(CallError::new(reason, messages.join("; "))))
        }
    }
}

/// Step 5. What the operator and the document grant, less what the caller's level
/// takes away. What is registered was resolved on this very ground: a snapshot holds
/// the settings and what follows from them together, and is taken anew when either
/// changed.
pub(crate) fn effective<'a>(
    now: &Snapshot,
    request: &CallRequest,
    found: &'a Found,
) -> Result<(Cow<'a, EffectivePolicy>, String), Stop> {
    let standing = standing(now, request, found);
    let narrowed = |policy: Cow<'a, EffectivePolicy>| match standing.narrows(&policy) {
        false => policy,
        true => Cow::Owned(standing.narrow(policy.into_owned())),
    };
    if found.registered {
        let policy = narrowed(Cow::Borrowed(&found.sound.judged.policy));
        let note = resolved(&policy);
        return Ok((policy, note));
    }
    let overrides = &found.sound.document.sandbox_overrides;
    match policy::resolve(&now.ground, overrides) {
        Ok(policy) => {
            let policy = narrowed(Cow::Owned(policy));
            let note = resolved(&policy);
            Ok((policy, note))
        }
        Err(conflict) => {
            let error = CallError::new(conflict.reason(), conflict.to_string());
            Err(Stop::refused(error))
        }
    }
}

/// What the operator reads about a policy: what is left of its hosts, if anything
/// was taken.
fn resolved(policy: &EffectivePolicy) -> String {
    match policy.bounds.words() {
        None => "resolved".to_owned(),
        Some(bounds) => format!("resolved; {bounds}"),
    }
}

/// Step 6. A level that takes something away may lower the badge.
fn rated<'a>(now: &Snapshot, found: &'a Found, policy: &EffectivePolicy) -> Cow<'a, Risk> {
    // The very policy that was rated when the tool was read.
    if found.registered && std::ptr::eq(policy, &found.sound.judged.policy) {
        return Cow::Borrowed(&found.sound.judged.risk);
    }
    Cow::Owned(risk::of(&found.sound.document, &now.ground, policy))
}

/// The policy with what rules leave of its hosts.
fn bounded<'a>(policy: Cow<'a, EffectivePolicy>, decision: &Decision) -> Cow<'a, EffectivePolicy> {
    if decision.bounds.is_empty() {
        return policy;
    }
    let mut policy = policy.into_owned();
    policy.bounds = policy.bounds.and(&decision.bounds);
    Cow::Owned(policy)
}

/// What holds for this caller and tools of this kind.
fn standing(now: &Snapshot, request: &CallRequest, found: &Found) -> Standing {
    if request.purpose == Purpose::LocalPass {
        return Standing::open();
    }
    let category = found.sound.document.category.as_deref();
    now.config.access.standing(&request.caller, category)
}

/// Step 7.
fn decide(
    now: &Snapshot,
    request: &CallRequest,
    found: &Found,
    arguments: &Arguments,
    judged: (&EffectivePolicy, &Risk),
    at_ms: i64,
) -> Decision {
    let standing = standing(now, request, found);
    let asked = asked(request, found, &standing, arguments, judged, at_ms);
    now.config.rules.decide(&asked)
}

/// Whether the operator wants a person asked, whatever the document wants.
fn operator_asks(
    now: &Snapshot,
    request: &CallRequest,
    found: &Found,
    arguments: &Arguments,
    judged: (&EffectivePolicy, &Risk),
    at_ms: i64,
) -> bool {
    let standing = standing(now, request, found);
    let asked = asked(request, found, &standing, arguments, judged, at_ms);
    now.config.rules.operator_asks(&asked)
}

/// What the rules are asked about.
fn asked<'a>(
    request: &'a CallRequest,
    found: &'a Found,
    standing: &'a Standing,
    arguments: &'a Arguments,
    (policy, risk): (&'a EffectivePolicy, &'a Risk),
    at_ms: i64,
) -> Asked<'a> {
    Asked {
        caller: &request.caller,
        standing,
        origin: request.origin,
        document: &found.sound.document,
        arguments,
        policy,
        risk,
        at_ms,
    }
}

/// Whether its limits let the call in.
async fn admitted(
    engine: &Engine,
    now: &Snapshot,
    request: &CallRequest,
    found: &Found,
) -> Result<(Option<Admission>, String), Stop> {
    let groups = standing(now, request, found).groups;
    let tool = &found.sound.document.name;
    limit::admit(engine, &now.config, request, tool, &groups).await
}

/// Whether the powers of a call that is not made could be made, with nothing made.
pub(crate) fn powers_told(
    engine: &Engine,
    now: &Snapshot,
    request: &CallRequest,
    judged: &Judged<'_>,
) -> Result<((), String), Stop> {
    if judged.found.native.is_some() {
        return Ok(((), "none needed".to_owned()));
    }
    let settings = engine.power_settings(&now.config, &request.caller);
    match Powers::check(&Grant::from_policy(&judged.policy), &settings) {
        Ok(faces) => Ok(((), faces.join(", "))),
        Err(fault) => Err(trial::no_powers(request, &fault)),
    }
}

/// What the limits have to do with a call that is not made.
pub(crate) fn limits_told(
    engine: &Engine,
    now: &Snapshot,
    request: &CallRequest,
    found: &Found,
) -> Result<((), String), Stop> {
    let groups = standing(now, request, found).groups;
    let tool = &found.sound.document.name;
    limit::told(engine, &now.config, request, tool, &groups)
}

/// What the gates made of a call.
pub(crate) struct Judged<'a> {
    found: &'a Found,
    variables: Variables,
    masker: Arc<Masker>,
    arguments: Arguments,
    policy: Cow<'a, EffectivePolicy>,
    pub(crate) risk: Cow<'a, Risk>,
    pub(crate) decision: Decision,
    /// Whether a person is to be asked.
    pub(crate) asks: bool,
}

impl Judged<'_> {
    /// Whether it does more than compute and read its workspace.
    fn reaches_out(&self) -> bool {
        let document = &self.found.sound.document;
        !consent::needs(document, &self.policy, &self.risk).is_empty()
    }
}

/// Somebody may have paused the caller while a person was asked.
async fn still_welcome(
    engine: &Engine,
    request: &CallRequest,
    answer: Result<((), String), Stop>,
) -> Result<((), String), Stop> {
    let (agreed, note) = answer?;
    match not_paused(engine, request).await {
        Ok(_) => Ok((agreed, note)),
        Err(stop) => Err(stop.after(&note)),
    }
}

/// A person may take long to answer, and what they agreed to may be gone by then:
/// every gate must still say what it said.
fn unchanged(
    engine: &Engine,
    request: &CallRequest,
    judged: &Judged<'_>,
    answer: Result<((), String), Stop>,
) -> Result<((), String), Stop> {
    let (agreed, note) = answer?;
    match is_same(engine, request, judged) {
        Ok(true) => Ok((agreed, note)),
        Ok(false) => {
            let message = "the tool or its policy changed while a person was asked; it did not run, repeat the call to ask again";
            let error = CallError::passing(Reason::ApprovalStale, message);
            Err(Stop::refused(error).note(format!("changed meanwhile; {note}")))
        }
        Err(stop) => Err(stop.after(&note)),
    }
}

fn is_same(engine: &Engine, request: &CallRequest, judged: &Judged<'_>) -> Result<bool, Stop> {
    let (now, at_ms) = (&*engine.registry().current(), engine.now_ms());
    let (found, _) = find(now, request)?;
    access(now, request, &found)?;
    let (policy, _) = effective(now, request, &found)?;
    let overrides = &found.sound.document.sandbox_overrides;
    let risk = risk::rate(&now.ground, overrides, &policy);
    let both = (&*policy, &risk);
    let decision = decide(now, request, &found, &judged.arguments, both, at_ms);
    let policy = bounded(policy, &decision);
    Ok(
        found.sound.judged.digest == judged.found.sound.judged.digest
            && policy == judged.policy
            && risk.level == judged.risk.level
            && decision.effect != Effect::Deny,
    )
}

/// Calls whose opening record must be on the disk before they run.
fn is_grave(policy: &EffectivePolicy, risk: &Risk) -> bool {
    risk.level >= Level::L4 || policy.file_write
}

async fn secured(engine: &Engine, row: &OpenRow) -> Result<((), String), Stop> {
    match engine.store().audit().secure(row).await {
        Ok(()) => Ok(((), "on the disk".to_owned())),
        Err(fault) => {
            let message = "the attempt could not be written to the disk; it did not run";
            let error = CallError::passing(Reason::AuditUnavailable, message);
            Err(Stop::refused(error).note(fault.to_string()))
        }
    }
}

fn prepare(
    engine: &Engine,
    request: &CallRequest,
    judged: Judged<'_>,
    settings: &PowerSettings,
) -> Result<(Prepared, String), Stop> {
    let moment = engine.moment();
    let Judged {
        found,
        variables,
        masker,
        arguments,
        policy,
        ..
    } = judged;
    match run::prepare(
        &found.sound,
        &policy,
        arguments,
        variables,
        settings,
        masker,
        moment,
    ) {
        Ok(prepared) => {
            let faces = prepared.job.powers.join(", ");
            Ok((prepared, faces))
        }
        Err(fault) => Err(trial::no_powers(request, &fault)),
    }
}

/// Step 9.
async fn run(engine: &Engine, request: &CallRequest, prepared: Prepared) -> Result<Ran, Stop> {
    let pool = match engine.pool().await {
        Ok(pool) => pool,
        Err(fault) => {
            let error = CallError::passing(fault.reason(), "the sandbox did not start");
            return Err(Stop::refused(error).note(causes(&fault)));
        }
    };
    let Prepared { job, powers } = prepared;
    let ran = pool.run(&request.caller.name, job, powers.as_ref()).await;
    Ok(trial::weighed(
        request,
        powers.unreached(),
        Ran::from_run(ran),
    ))
}

fn cancelled() -> Stop {
    let error = CallError::new(Reason::CallCancelled, "the call was cancelled");
    Stop::with_status(Status::Cancelled, error)
}

fn late() -> Stop {
    let error = CallError::passing(Reason::CallDeadline, "the call took too long");
    Stop::with_status(Status::Failed, error)
}

async fn passed(deadline: Option<Duration>) {
    match deadline {
        Some(deadline) => tokio::time::sleep(deadline).await,
        None => std::future::pending().await,
    }
}
