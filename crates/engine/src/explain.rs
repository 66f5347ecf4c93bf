//! Why: what every gate says about a call that is not made. It walks the chain that a
//! call walks, and stops where a person would be asked.

use std::sync::Arc;
use std::time::Instant;

use model::govern::approval::authority;
use model::govern::rules::Effect;
use model::network::host_pattern::HostPattern;
use model::policy::EffectivePolicy;
use model::policy::grant::{Grant, NetworkGrant};
use model::record::audit::Closing;
use model::record::outcome::CallError;
use model::text;
use serde_json::{Map, Value};
use url::Url;

use crate::engine::Engine;
use crate::gates;
use crate::limit;
use crate::record::CallRecord;
use crate::refusal::{CallRefusal, Gate, GatePass, GateResult, Notes as _};
use crate::request::CallRequest;
use crate::snapshot::Snapshot;
use crate::stage;
use crate::tool::ToolBody;

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
        let (now, caller) = preview_caller(self, request);
        let mut record = CallRecord::new(String::new(), Instant::now(), None);
        record.follow(&now.config);
        record.note_shadow(gates::shadow(&now, request, self.now_ms()));
        let walked = preview(self, &now, request, caller, &mut record);
        let (effect, refusal) = match walked {
            Ok(effect) => (effect, None),
            Err(refusal) => (Effect::Deny, Some(refusal)),
        };
        let (closing, told) = record.dry(refusal, self.now_ms());
        Explained {
            effect,
            told,
            closing,
        }
    }
}

/// What step 2 would say, and the snapshot the rest would be checked by.
fn preview_caller(engine: &Engine, request: &CallRequest) -> (Arc<Snapshot>, GateResult<()>) {
    let now = engine.registry().current();
    let book = engine.callers_book();
    let passed = match book.preview(&now, request) {
        Ok(passed) => passed,
        refused => return (now, refused),
    };
    match engine.trust_schedule().preview(&now, &request.caller) {
        Ok(now) => (now, Ok(passed)),
        Err(why) => (now, Err(book.unavailable(&why))),
    }
}

fn preview(
    engine: &Engine,
    now: &Snapshot,
    request: &CallRequest,
    caller: GateResult<()>,
    record: &mut CallRecord,
) -> Result<Effect, CallRefusal> {
    record.gate(Gate::Caller, caller)?;
    let judged = gates::judge(
        now,
        request,
        engine.variable_source(),
        engine.now_ms(),
        record,
    )?;
    let decided = &judged.decided;
    let (held, effect) = (&decided.held, decided.decision.effect);
    let tool = &held.found.usable.document.name;
    let quotas = engine.quotas();
    let limits = quotas.preview(&now.config, request, tool, held.groups());
    record.gate(Gate::Limits, limits)?;
    let settings = engine.powers().for_call(&now.config, &request.caller);
    // A call finds this out after the approval. Here it comes first: the answer of a person
    // would not help a call that cannot run.
    if let Err(refusal) = stage::check_base_path(&settings, request, &held.policy) {
        return record.gate(Gate::Powers, Err(refusal));
    }
    if effect == Effect::Ask {
        let settings = &now.config.approvals;
        let may_answer = authority::told(&request.caller, held.risk.level, settings);
        let note = format!(
            "a person would be asked, unless an approval covers the call; may answer: {may_answer}"
        );
        record.would(Gate::Approval, "ask", &note);
    }
    let powers = match &held.found.body {
        ToolBody::Native(_) | ToolBody::Server(_) => Ok(GatePass::new((), "none needed")),
        ToolBody::Code | ToolBody::Toolbox(_) => {
            let checked = stage::check_powers(&settings, request, &held.policy);
            checked.map(|functions| {
                let given = match &held.found.body {
                    ToolBody::Toolbox(tool) => tool.powers().to_owned(),
                    ToolBody::Code | ToolBody::Native(_) | ToolBody::Server(_) => functions.note,
                };
                let reach = reach(decided.arguments.values(), &held.policy);
                let words = [given, reach].into_iter().filter(|words| !words.is_empty());
                GatePass::new((), words.collect::<Vec<_>>().join("; "))
            })
        }
    };
    record.gate(Gate::Powers, powers)?;
    Ok(effect)
}

/// The hosts that the code, the programs or the requests of a call have left, and whether the one it
/// names is among them. The call itself finds out only when it connects.
fn reach(arguments: &Map<String, Value>, policy: &EffectivePolicy) -> String {
    let grant = Grant::from_policy(policy).network;
    let mut words = match &grant {
        NetworkGrant::Blocked => return "no network".to_owned(),
        NetworkGrant::Open => "any host".to_owned(),
        NetworkGrant::Strict => "any public host".to_owned(),
        NetworkGrant::Allowlist(patterns) => {
            let hosts: Vec<_> = patterns.iter().map(HostPattern::shown).collect();
            format!(
                "hosts: {}",
                text::elided(&hosts.join(", "), limit::EXPLAINED_HOSTS_CHARS_MAX)
            )
        }
    };
    if let Some(bounds) = policy.bounds.words() {
        words.push_str(&format!(
            "; {}",
            text::elided(&bounds, limit::EXPLAINED_HOSTS_CHARS_MAX)
        ));
    }
    // The one argument that is known to name a host.
    let url = arguments.get("url").and_then(Value::as_str);
    let url = url.and_then(|url| Url::parse(url).ok());
    let named = url
        .as_ref()
        .and_then(|url| Some((url.host()?.to_owned(), url.port_or_known_default()?)));
    let Some((host, port)) = named else {
        return words;
    };
    let is_granted = match &grant {
        NetworkGrant::Blocked => false,
        NetworkGrant::Open | NetworkGrant::Strict => true,
        NetworkGrant::Allowlist(patterns) => patterns.iter().any(|one| one.matches(&host, port)),
    };
    if !is_granted || policy.bounds.check(&host, port).is_err() {
        let host = text::one_line(&host.to_string());
        words.push_str(&format!(
            "; `{host}:{port}` is not among them, so it would not be reached"
        ));
    }
    words
}
