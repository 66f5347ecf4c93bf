//! The gates a call passes before a person is asked and anything runs.
//!
//! They are typed stages. Each stage is made only by its gate, so code that holds one
//! knows what was checked:
//!
//! ```text
//! find ─▶ FoundTool ─admit─▶ VisibleTool ─hold─▶ HeldTool ─decide─▶ DecidedCall
//! ```
//!
//! A call walks the whole chain (`judge`), and so does `explain`. Lists and search
//! stop at `HeldTool`; shadow rules, `policy test` and replays leave out the variables,
//! which settings do not decide. A call is checked by one `Snapshot`; after a person
//! answered, the chain is walked again with the newest (`is_unchanged`).

use std::ops::Deref;
use std::sync::Arc;

use model::caller::{CallerKind, Origin};
use model::document::params::Arguments;
use model::document::safety::Source;
use model::govern::access::CallerRights;
use model::govern::action::Action;
use model::govern::consent::{self, Granted};
use model::govern::rules::{BodyFacts, Decision, Effect, RuleInput};
use model::policy::assessment::UsableDocument;
use model::policy::risk::{self, Risk};
use model::policy::{self, EffectivePolicy};
use model::reason::Reason;
use model::record::mask::{Masker, is_maskable};
use model::record::outcome::CallError;
use model::{Environment, document::lifecycle, govern::exposure, text};

use crate::connections;
use crate::native::{self, Native};
use crate::record::CallRecord;
use crate::refusal::{CallRefusal, Gate, GatePass, GateResult, Notes, Unrecorded};
use crate::request::{CallPurpose, CallRequest, CallTarget};
use crate::run::Variables;
use crate::services::VariableSource;
use crate::snapshot::Snapshot;
use crate::tool::{Tool, ToolBody};
use crate::toolbox::JailStanding;

mod absent;
mod shadow;
mod trial;

use absent::{absent, hidden, unknown};

pub(crate) use shadow::{denied, is_ruled, shadow};
pub(crate) use trial::{check_consent, is_trial, unconsented, wanted};

/// What the gate `registry` notes about a document that the owner brought.
pub(crate) const AS_IT_STANDS: &str = "a document as it stands";

/// A tool that was found. Made by [`find()`].
#[derive(Debug)]
pub(crate) struct FoundTool {
    pub(crate) usable: Arc<UsableDocument>,
    /// Where it came from; a document brought by the owner has no registry entry.
    pub(crate) source: Source,
    /// What runs.
    pub(crate) body: ToolBody,
    registered: bool,
    /// What its owner granted to it.
    granted: Granted,
}

/// A tool this caller may use through this door. Made by [`FoundTool::admit`].
#[derive(Debug)]
pub(crate) struct VisibleTool {
    found: FoundTool,
    /// What holds for this caller and tools of this kind.
    rights: CallerRights,
}

/// A tool with what a call of it is held to. Made by [`VisibleTool::hold`].
#[derive(Debug)]
pub(crate) struct HeldTool {
    pub(crate) found: FoundTool,
    rights: CallerRights,
    pub(crate) policy: HeldPolicy,
    pub(crate) risk: HeldRisk,
}

/// A call that the rules did not deny. Made by [`HeldTool::decide`].
#[derive(Debug)]
pub(crate) struct DecidedCall {
    pub(crate) held: HeldTool,
    pub(crate) arguments: Arguments,
    pub(crate) decision: Decision,
    /// Whether a person is to be asked.
    pub(crate) asks: bool,
}

/// A decided call with the values of its variables, ready for everything that comes
/// after the gates. Made by [`judge`].
#[derive(Debug)]
pub(crate) struct CheckedCall {
    pub(crate) decided: DecidedCall,
    pub(crate) variables: Variables,
    pub(crate) masker: Arc<Masker>,
}

/// The policy a call is held to. Most calls are held to the one that was resolved when
/// the tool was read, which is shared, not copied.
#[derive(Clone, Debug)]
pub(crate) enum HeldPolicy {
    AsRegistered(Arc<UsableDocument>),
    Own(Box<EffectivePolicy>),
}

/// The risk of what a call is held to.
#[derive(Clone, Debug)]
pub(crate) enum HeldRisk {
    AsRegistered(Arc<UsableDocument>),
    Own(Box<Risk>),
}

impl Deref for HeldPolicy {
    type Target = EffectivePolicy;

    fn deref(&self) -> &EffectivePolicy {
        match self {
            HeldPolicy::AsRegistered(usable) => &usable.facts.policy,
            HeldPolicy::Own(policy) => policy,
        }
    }
}

impl HeldPolicy {
    pub(crate) fn into_owned(self) -> EffectivePolicy {
        match self {
            HeldPolicy::AsRegistered(usable) => usable.facts.policy.clone(),
            HeldPolicy::Own(policy) => *policy,
        }
    }
}

impl Deref for HeldRisk {
    type Target = Risk;

    fn deref(&self) -> &Risk {
        match self {
            HeldRisk::AsRegistered(usable) => &usable.facts.risk,
            HeldRisk::Own(risk) => risk,
        }
    }
}

/// The whole chain, for a call and for `explain` alike.
pub(crate) fn judge(
    now: &Snapshot,
    request: &CallRequest,
    variables: &VariableSource,
    at_ms: i64,
    record: &mut CallRecord,
) -> Result<CheckedCall, CallRefusal> {
    let visible = see(now, request, record)?;
    let environment = visible.read_variables(request, variables, record)?;
    // Masking comes before every gate that can quote an argument or a variable in its
    // note, so that no note leaves with a secret in it.
    let connected = visible.connected_secrets(now, variables);
    let (variables, masker) = visible.fill_variables(&environment, connected, record)?;
    visible.require_variables(request, &environment, record)?;
    let arguments = visible.check_arguments(request, record)?;
    // Only now: what the params do not take may be anything, and a refusal needs no
    // copy of it in the audit.
    record.keep_arguments(&arguments);
    let held = visible.hold(now, record)?;
    record.note_enforced(
        &held.found.usable,
        &held.policy,
        &held.risk,
        held.found.source,
    );
    let decided = held.decide(now, request, arguments, at_ms, record)?;
    Ok(CheckedCall {
        decided,
        variables,
        masker,
    })
}

/// What settings and rules alone decide about a call, at some moment.
pub(crate) fn rule(
    now: &Snapshot,
    request: &CallRequest,
    at_ms: i64,
) -> Result<Decision, CallRefusal> {
    see(now, request, &mut Unrecorded)?.rule(now, request, at_ms)
}

/// The gates a call passes before its arguments are checked: what lists show.
pub(crate) fn reach(
    now: &Snapshot,
    request: &CallRequest,
    variables: &VariableSource,
) -> Result<HeldTool, CallRefusal> {
    let visible = see(now, request, &mut Unrecorded)?;
    let environment = visible.read_variables(request, variables, &mut Unrecorded)?;
    visible.require_variables(request, &environment, &mut Unrecorded)?;
    visible.hold(now, &mut Unrecorded)
}

/// The gates that the settings decide. Variables are another question, and change
/// without the settings.
pub(crate) fn settle(now: &Snapshot, request: &CallRequest) -> Result<HeldTool, CallRefusal> {
    see(now, request, &mut Unrecorded)?.hold(now, &mut Unrecorded)
}

/// Whether every gate still says what it said. A person may take long to answer, and
/// what they agreed to may be gone by then.
pub(crate) fn is_unchanged(
    now: &Snapshot,
    request: &CallRequest,
    before: &DecidedCall,
    at_ms: i64,
) -> Result<bool, CallRefusal> {
    let held = settle(now, request)?;
    // The arguments are those the person saw; the rest is what holds now.
    let decision = held.ask_rules(now, request, &before.arguments, at_ms);
    let held = held.bounded_by(&decision);
    let was = &before.held;
    Ok(
        held.found.usable.facts.digest == was.found.usable.facts.digest
            && *held.policy == *was.policy
            && held.risk.level == was.risk.level
            && decision.effect != Effect::Deny,
    )
}

/// Finds the tool and checks that this caller may use it.
pub(crate) fn see(
    now: &Snapshot,
    request: &CallRequest,
    notes: &mut impl Notes,
) -> Result<VisibleTool, CallRefusal> {
    let found = match find(now, request) {
        Ok(found) => notes.gate(Gate::Registry, Ok(found))?,
        Err(refusal) => {
            do_the_work_of_a_hidden_tool(now, request);
            return notes.gate(Gate::Registry, Err(refusal));
        }
    };
    notes.note_tool(&found.usable);
    found.admit(now, request, notes)
}

/// Invariant 10, by the clock: refusing a hidden tool costs an access check that an
/// absent tool does not need. A caller that must not tell them apart waits for the same
/// work.
fn do_the_work_of_a_hidden_tool(now: &Snapshot, request: &CallRequest) {
    if request.caller.kind == CallerKind::Owner {
        return;
    }
    if let Some(tool) = now.any_tool() {
        let admitted = FoundTool::registered(tool).admit(now, request, &mut Unrecorded);
        std::hint::black_box(&admitted);
    }
}

/// Step 3. A tool that is not published does not exist, except for its owner.
fn find(now: &Snapshot, request: &CallRequest) -> GateResult<FoundTool> {
    let name = match &request.target {
        CallTarget::Document(usable) => return find_document(now, request, usable),
        CallTarget::Name(name) => name,
    };
    let Some(tool) = now.tool(name) else {
        return Err(absent(now, request, name));
    };
    if let Some(why) = tool.not_published() {
        let error = CallError::new(Reason::ToolDraft, format!("`{name}` {why}; publish it"));
        return Err(hidden(request, name, error));
    }
    let digest = tool.usable.facts.digest.to_string();
    Ok(GatePass::new(FoundTool::registered(tool), digest))
}

/// A document that the request itself holds; only the owner brings one.
pub(crate) fn find_document(
    now: &Snapshot,
    request: &CallRequest,
    usable: &Arc<UsableDocument>,
) -> GateResult<FoundTool> {
    if request.caller.kind != CallerKind::Owner {
        return Err(unknown(
            &usable.document.name,
            "only the owner may run a document that is not published",
        ));
    }
    // What was granted cannot be read either. To say that the owner has not agreed would
    // send them to agree once more.
    if let Some(why) = &now.unread {
        let message =
            "the tools and what they were granted cannot be read just now; it did not run";
        let error = CallError::passing(Reason::ToolUnavailable, message);
        return Err(CallRefusal::new(error).noted(why.clone()));
    }
    // A document from a file is never taken for a bundled one, even if it reads the
    // same: anyone may have written the file, and ours have grants that users' lack.
    let ours = match request.trial.place {
        Some(_) => None,
        None => now.ours(&usable.document),
    };
    let place = request.trial.place.as_deref();
    let found = FoundTool {
        usable: Arc::clone(usable),
        source: ours.map_or(Source::User, |tool| tool.source),
        registered: false,
        granted: match ours {
            Some(tool) => tool.granted.clone(),
            None => now.granted(&usable.document.name, place),
        },
        body: ours.map_or(ToolBody::Code, |tool| tool.body.clone()),
    };
    Ok(GatePass::new(found, AS_IT_STANDS))
}

impl FoundTool {
    /// A tool of the registry, published or not.
    pub(crate) fn registered(tool: &Tool) -> FoundTool {
        FoundTool {
            usable: Arc::clone(&tool.usable),
            source: tool.source,
            registered: true,
            granted: tool.granted.clone(),
            body: tool.body.clone(),
        }
    }

    /// Step 4. Whether the tool is exposed, and to this caller.
    pub(crate) fn admit(
        self,
        now: &Snapshot,
        request: &CallRequest,
        notes: &mut impl Notes,
    ) -> Result<VisibleTool, CallRefusal> {
        let rights = rights(now, request, &self);
        let access = self.check_access(now, request, &rights);
        notes.gate(Gate::Access, access)?;
        Ok(VisibleTool {
            found: self,
            rights,
        })
    }

    fn check_access(
        &self,
        now: &Snapshot,
        request: &CallRequest,
        rights: &CallerRights,
    ) -> GateResult<()> {
        let document = &self.usable.document;
        let name = &document.name;
        let refuse = |reason, message| {
            let error = CallError::new(reason, message);
            hidden(request, name, error)
        };
        let access = &now.config.access;
        let checked = match request.purpose {
            // A proof of the document, not a use of it: what callers' levels leave is
            // not what is proved. Lists hold all the same.
            CallPurpose::LocalPass => access.check_lists(&request.caller, document),
            CallPurpose::Call => access.check(&request.caller, document),
        };
        let allowed = checked.map_err(|denied| {
            refuse(Reason::AccessDenied, format!("`{name}` is {}", denied.note))
        })?;
        if let Some(why) = rights.emptied(document, &self.usable.facts.policy) {
            let message = format!("`{name}` can do nothing here: {why}");
            return Err(refuse(Reason::LevelDenied, message));
        }
        // Exposure says which published tools doors show. The owner runs a document
        // without publishing it, so exposure has nothing to say about it.
        if !self.registered {
            return Ok(GatePass::new((), allowed));
        }
        if request.origin == Origin::Mcp && !exposure::is_client_name(name) {
            // Another name would have to be made up, and two tools could end up with it.
            let message = format!("`{name}` is not a valid tool name for MCP clients");
            return Err(refuse(Reason::ToolNotExposed, message));
        }
        let exposed = now.exposed(document, self.source);
        let reached = match exposed.is_yes() {
            true => self.check_code_mode(now, request.origin),
            false => Err(exposed.why().to_owned()),
        };
        match reached {
            Ok(()) => Ok(GatePass::new((), format!("{allowed}; {}", exposed.why()))),
            Err(why) => {
                let message = format!("`{name}` is not exposed: {why}");
                Err(refuse(Reason::ToolNotExposed, message))
            }
        }
    }

    /// Whether code mode lets the tool be reached through a door; if not, why.
    fn check_code_mode(&self, now: &Snapshot, origin: Origin) -> Result<(), String> {
        let codecall = &now.config.codecall;
        match (self.body.native(), origin) {
            (None, Origin::Script) if native::is_self_reference(&self.usable.document.name) => {
                Err("its name looks like that of a built-in tool".to_owned())
            }
            (None, _) => codecall.reaches(origin, &self.usable.document),
            (Some(native), Origin::Script) => {
                let feature = native.feature().words();
                Err(format!("scripts cannot call {feature} tools"))
            }
            (Some(Native::Invoke), _) if codecall.invoke.is_empty() => {
                Err("`codecall.invoke` is empty".to_owned())
            }
            (Some(_), _) => Ok(()),
        }
    }

    /// Part of step 5: what the operator and the document grant, less what the caller's level
    /// takes away. A registered tool was resolved on the baseline of this very
    /// snapshot.
    fn resolve_policy(&self, now: &Snapshot, rights: &CallerRights) -> GateResult<HeldPolicy> {
        let policy = match self.registered {
            true => HeldPolicy::AsRegistered(Arc::clone(&self.usable)),
            false => {
                let overrides = &self.usable.document.sandbox_overrides;
                let resolved = policy::resolve(&now.baseline, overrides).map_err(|conflict| {
                    let error = CallError::new(conflict.reason(), conflict.to_string());
                    CallRefusal::new(error)
                })?;
                HeldPolicy::Own(Box::new(resolved))
            }
        };
        let policy = match rights.narrows(&policy) {
            true if self.body.server().is_some() => {
                check_narrowed(&policy, &rights.narrow((*policy).clone()))?;
                policy
            }
            false => policy,
            true => HeldPolicy::Own(Box::new(rights.narrow(policy.into_owned()))),
        };
        let note = match policy.bounds.words() {
            None => "resolved".to_owned(),
            Some(bounds) => format!("resolved; {bounds}"),
        };
        Ok(GatePass::new(policy, note))
    }

    /// Part of step 5: the risk. A level that takes something away may lower it.
    fn rate(&self, now: &Snapshot, policy: &HeldPolicy) -> HeldRisk {
        match policy {
            HeldPolicy::AsRegistered(usable) => HeldRisk::AsRegistered(Arc::clone(usable)),
            HeldPolicy::Own(policy) => {
                let mut risk = risk::of(&self.usable.document, &now.baseline, policy);
                if let Some(tool) = self.body.toolbox() {
                    let jail = now.config.sandbox.jail;
                    tool.raise(JailStanding::of_machine(), jail, &mut risk);
                }
                HeldRisk::Own(Box::new(risk))
            }
        }
    }
}

/// Ringfence holds a server's process to what the settings give the server, not to what
/// one caller may. So a caller whose level leaves less cannot use it.
fn check_narrowed(full: &EffectivePolicy, narrowed: &EffectivePolicy) -> Result<(), CallRefusal> {
    let same = full.network == narrowed.network
        && full.hosts == narrowed.hosts
        && full.bounds == narrowed.bounds
        && full.file_read == narrowed.file_read
        && full.file_write == narrowed.file_write;
    if same {
        return Ok(());
    }
    let message = "the server of this tool reaches further than the caller may";
    Err(CallRefusal::new(CallError::new(
        Reason::LevelDenied,
        message,
    )))
}

/// What holds for this caller and tools of this kind.
fn rights(now: &Snapshot, request: &CallRequest, found: &FoundTool) -> CallerRights {
    if request.purpose == CallPurpose::LocalPass {
        return CallerRights::open();
    }
    let category = found.usable.document.category.as_deref();
    now.config.access.rights(&request.caller, category)
}

impl VisibleTool {
    /// Reads the values of the call's variables, for every call: an operator who changes
    /// the secrets file expects the next call to see it.
    fn read_variables(
        &self,
        request: &CallRequest,
        variables: &VariableSource,
        notes: &mut impl Notes,
    ) -> Result<Environment, CallRefusal> {
        if self.found.usable.document.static_variables.is_empty() {
            let none = GatePass::new(Environment::empty(), "none needed");
            return notes.gate(Gate::Secrets, Ok(none));
        }
        let read = variables.read().map_err(|fault| {
            let message = "the secrets cannot be used";
            let error = CallError::new(Reason::SecretsUnavailable, message);
            let mut refusal = CallRefusal::new(error).noted(fault.to_string());
            if request.caller.kind == CallerKind::Owner {
                refusal.tell_more(&format!(": {fault}"));
            }
            refusal
        });
        notes.gate(
            Gate::Secrets,
            read.map(|environment| GatePass::new(environment, "read")),
        )
    }

    /// The credentials of the connections that a call may name. Where they cannot be read
    /// there is nothing to mask, and the body uses none that the call does not mask.
    fn connected_secrets(&self, now: &Snapshot, variables: &VariableSource) -> Vec<String> {
        let tool = self.found.body.toolbox();
        let kind = tool.and_then(|tool| tool.credentials());
        let is_connected = |kind| {
            now.config
                .connections
                .iter()
                .any(|known| known.kind == kind)
        };
        match kind.is_some_and(is_connected) {
            true => variables.read().map_or_else(
                |_| Vec::new(),
                |environment| connections::secrets(&now.config, &environment),
            ),
            false => Vec::new(),
        }
    }

    /// The values of the variables, and what masks the secrets among them. From here
    /// on everything the record holds is masked.
    fn fill_variables(
        &self,
        environment: &Environment,
        connected: Vec<String>,
        record: &mut CallRecord,
    ) -> Result<(Variables, Arc<Masker>), CallRefusal> {
        let FoundTool {
            usable, granted, ..
        } = &self.found;
        let visible = granted.visible(&usable.document, environment);
        let mut variables = Variables::resolve(usable, &visible);
        variables.secrets.extend(connected);
        let masker = record.gate(Gate::Masking, make_masker(&variables))?;
        record.mask_with(&masker);
        Ok((variables, masker))
    }

    /// The variables a tool needs are set and granted to it, or it does not exist but
    /// for its owner. What a document on trial lacks of grants is asked for with
    /// the rest.
    fn require_variables(
        &self,
        request: &CallRequest,
        environment: &Environment,
        notes: &mut impl Notes,
    ) -> Result<(), CallRefusal> {
        notes.gate(
            Gate::Requirements,
            self.check_requirements(request, environment),
        )
    }

    fn check_requirements(
        &self,
        request: &CallRequest,
        environment: &Environment,
    ) -> GateResult<()> {
        let document = &self.found.usable.document;
        let missing = lifecycle::missing(document, environment);
        if !missing.is_empty() {
            let message = format!("not set: {}", missing.join(", "));
            let error = CallError::new(Reason::RequirementMissing, message);
            return Err(hidden(request, &document.name, error));
        }
        let ungranted = self.found.granted.ungranted(document);
        if ungranted.is_empty() {
            return Ok(GatePass::new((), "all set"));
        }
        let names = ungranted.join(", ");
        if is_trial(request, &self.found) {
            return Ok(GatePass::new((), format!("not granted yet: {names}")));
        }
        // Names of a document that its author chose, in a command that a person copies.
        let words: Vec<_> = ungranted
            .iter()
            .map(|name| text::shell_word(name))
            .collect();
        let message = format!(
            "not granted: {names}; run `ringfence secrets grant {} {}`",
            text::shell_argument(&document.name),
            words.join(" ")
        );
        let error = CallError::new(Reason::RequirementNotGranted, message);
        Err(hidden(request, &document.name, error))
    }

    /// Part of step 5: the arguments, against the declared params.
    fn check_arguments(
        &self,
        request: &CallRequest,
        notes: &mut impl Notes,
    ) -> Result<Arguments, CallRefusal> {
        let document = &self.found.usable.document;
        let checked = self
            .found
            .body
            .check_arguments(document, &request.arguments);
        let checked = checked.map(|arguments| {
            let note = text::count(arguments.values().len(), "argument");
            GatePass::new(arguments, note)
        });
        notes.gate(Gate::Arguments, checked)
    }

    /// The end of step 5: what a call is held to, and its risk.
    fn hold(self, now: &Snapshot, notes: &mut impl Notes) -> Result<HeldTool, CallRefusal> {
        let resolved = self.found.resolve_policy(now, &self.rights);
        let policy = notes.gate(Gate::Policy, resolved)?;
        let risk = self.found.rate(now, &policy);
        Ok(HeldTool {
            found: self.found,
            rights: self.rights,
            policy,
            risk,
        })
    }

    /// What settings and rules alone decide about a call of this tool.
    pub(crate) fn rule(
        self,
        now: &Snapshot,
        request: &CallRequest,
        at_ms: i64,
    ) -> Result<Decision, CallRefusal> {
        let arguments = self.check_arguments(request, &mut Unrecorded)?;
        let held = self.hold(now, &mut Unrecorded)?;
        Ok(held.ask_rules(now, request, &arguments, at_ms))
    }
}

impl HeldTool {
    /// What a test of a document is held to, whether or not any caller may use it: only
    /// its owner runs the test.
    pub(crate) fn for_test(now: &Snapshot, found: FoundTool) -> Result<HeldTool, CallRefusal> {
        let rights = CallerRights::open();
        let policy = found.resolve_policy(now, &rights)?.value;
        let risk = found.rate(now, &policy);
        Ok(HeldTool {
            found,
            rights,
            policy,
            risk,
        })
    }

    /// The groups the caller is in.
    pub(crate) fn groups(&self) -> &[String] {
        &self.rights.groups
    }

    /// Whether a call does more than compute and read its workspace.
    pub(crate) fn reaches_out(&self) -> bool {
        let document = &self.found.usable.document;
        !consent::needs(document, &self.policy, &self.risk).is_empty()
    }

    /// Step 6: what the rules say.
    fn decide(
        self,
        now: &Snapshot,
        request: &CallRequest,
        arguments: Arguments,
        at_ms: i64,
        record: &mut CallRecord,
    ) -> Result<DecidedCall, CallRefusal> {
        let decision = record.decision(self.ask_rules(now, request, &arguments, at_ms))?;
        let asks = decision.effect == Effect::Ask
            && match request.purpose {
                CallPurpose::Call => true,
                // Its author is asked once for what it reaches for, not for each try.
                // What the operator wants asked is asked.
                CallPurpose::LocalPass => {
                    let stated = self.stated_actions(&arguments);
                    let body = self.body_facts(now, stated.as_deref());
                    let asked = self.asked(request, &arguments, body, at_ms);
                    now.config.rules.operator_asks(&asked)
                }
            };
        Ok(DecidedCall {
            held: self.bounded_by(&decision),
            arguments,
            decision,
            asks,
        })
    }

    fn ask_rules(
        &self,
        now: &Snapshot,
        request: &CallRequest,
        arguments: &Arguments,
        at_ms: i64,
    ) -> Decision {
        let stated = self.stated_actions(arguments);
        let body = self.body_facts(now, stated.as_deref());
        let asked = self.asked(request, arguments, body, at_ms);
        now.config.rules.decide(&asked)
    }

    /// What the call does, where its body knows.
    fn stated_actions(&self, arguments: &Arguments) -> Option<Vec<Action>> {
        let body = &self.found.body;
        body.stated_actions(arguments.values(), &self.policy)
    }

    /// What the rules are asked about.
    fn asked<'a>(
        &'a self,
        request: &'a CallRequest,
        arguments: &'a Arguments,
        body: BodyFacts<'a>,
        at_ms: i64,
    ) -> RuleInput<'a> {
        RuleInput {
            caller: &request.caller,
            rights: &self.rights,
            origin: request.origin,
            document: &self.found.usable.document,
            arguments,
            policy: &self.policy,
            risk: &self.risk,
            body,
            at_ms,
        }
    }

    fn body_facts<'a>(&self, now: &Snapshot, actions: Option<&'a [Action]>) -> BodyFacts<'a> {
        BodyFacts {
            actions,
            contained: self.found.body.is_contained(now.config.sandbox.jail),
            only_reads: match (self.found.body.toolbox(), actions) {
                (Some(tool), Some(actions)) => tool.only_reads(actions),
                (None, _) | (_, None) => false,
            },
        }
    }

    /// With what the rules leave of the hosts.
    fn bounded_by(mut self, decision: &Decision) -> HeldTool {
        if !decision.bounds.is_empty() {
            let mut policy = self.policy.into_owned();
            policy.bounds = policy.bounds.and(&decision.bounds);
            self.policy = HeldPolicy::Own(Box::new(policy));
        }
        self
    }
}

fn make_masker(variables: &Variables) -> GateResult<Arc<Masker>> {
    let secrets = variables.secrets.iter().map(String::as_str);
    let masker = Masker::new(secrets).map_err(|fault| {
        let error = CallError::new(Reason::MaskUnavailable, fault.to_string());
        CallRefusal::new(error)
    })?;
    let secrets = variables.secrets.iter();
    let short = secrets.filter(|secret| !is_maskable(secret)).count();
    let mut note = text::count(variables.secrets.len(), "secret");
    if short > 0 {
        note.push_str(&format!(", {short} too short to mask"));
    }
    Ok(GatePass::new(Arc::new(masker), note))
}
