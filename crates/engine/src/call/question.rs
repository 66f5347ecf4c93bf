//! What step 8 of a call asks a person: the question in words, why it is asked, who may
//! answer, and what the answer binds to. Whether it is asked, and what an answer counts
//! for, is decided elsewhere.

use std::borrow::Cow;

use model::document::Document;
use model::document::environment::Environment;
use model::document::params::Arguments;
use model::govern::consent::Granted;
use model::govern::rules::Decision;
use model::policy::risk::{Level, Risk, Signal};
use model::{govern::approval, limits, text};
use serde_json::{Map, Value};

use crate::approve::{ApprovalScope, Asking, Question, expiry, session_digest};
use crate::engine::Engine;
use crate::gates::{CheckedCall, DecidedCall, FoundTool, HeldTool};
use crate::limit::NAME_SHOWN_CHARS_MAX;
use crate::record::CallRecord;
use crate::request::CallRequest;
use crate::snapshot::Snapshot;
use crate::toolbox::ToolboxTool;

/// What a person is to be asked, and what the answer binds to.
pub(crate) fn asking<'a>(
    engine: &Engine,
    now: &Snapshot,
    request: &'a CallRequest,
    record: &CallRecord,
    checked: &CheckedCall,
) -> Asking<'a> {
    let CheckedCall {
        decided, masker, ..
    } = checked;
    let DecidedCall {
        held,
        arguments,
        decision,
        ..
    } = decided;
    let HeldTool {
        found,
        policy,
        risk,
        ..
    } = held;
    let document = &found.usable.document;
    let files = engine.powers().for_call(&now.config, &request.caller);
    let binding = approval::BindingInput {
        document: &found.usable.facts.digest.to_string(),
        safety: &record.safety(),
        policy,
        level: risk.level,
        // The folders are part of the binding: a yes for one workspace is none for
        // another.
        files: &format!("{:?} {:?}", files.workspace, files.sub_workspace),
        caller: &request.caller,
        arguments: arguments.values(),
    };
    // Without a binding the field below stays empty, and `obtain` refuses such a call.
    let binding = binding.binding().ok();
    let session = request.session.as_deref().and_then(session_digest);
    let settings = now.config.approvals.clone();
    // All of them: nothing of an argument is unreadable before a yes. The bound on
    // arguments, and that on what may wait, keep it finite.
    let shown = shown_arguments(engine, request, found, arguments);
    let shown = approval::arguments(&shown, masker, usize::MAX).into_inner();
    let question = Question {
        call_id: record.call_id().to_owned(),
        tool: text::elided(&document.name, NAME_SHOWN_CHARS_MAX),
        caller: text::elided(&approval::shown(&request.caller.name), NAME_SHOWN_CHARS_MAX),
        risk: with_variables(document, risk),
        prompt: approval::prompt(document, arguments.values(), masker).into_inner(),
        arguments: shown,
        // Random: a caller that knows ids of calls must not be able to guess it.
        id: uuid::Uuid::new_v4().simple().to_string(),
        expires_at_ms: expiry(ApprovalScope::Once, &settings, engine.now_ms()),
        scopes: approval::scopes_of_call(risk.level, session.is_some()),
        why: why(decision),
        may_answer: approval::authority::told(&request.caller, risk.level, &settings),
        binding: binding
            .as_ref()
            .map(|both| both.call.clone())
            .unwrap_or_default(),
    };
    Asking {
        request,
        question,
        tool_binding: binding.map(|both| both.tool).unwrap_or_default(),
        session,
        settings,
        started: record.started(),
    }
}

/// The arguments as a person sees them: those that name changes, with the changes.
fn shown_arguments<'a>(
    engine: &Engine,
    request: &CallRequest,
    found: &FoundTool,
    arguments: &'a Arguments,
) -> Cow<'a, Map<String, Value>> {
    let values = arguments.values();
    // An id alone tells a person nothing. They read what would be written.
    let is_copy = found.body.toolbox() == Some(ToolboxTool::ApplyChanges);
    let id = values.get("changes").and_then(Value::as_str);
    let Some(id) = id.filter(|_| is_copy) else {
        return Cow::Borrowed(values);
    };
    let mut shown = values.clone();
    // Looked up by caller, so that a question shows no other caller's changes.
    if let Some(kept) = engine.changes().get(id, &request.caller.name) {
        let home = engine.powers().home.as_ref();
        // If it cannot be opened, the patch shows sizes where it cannot show lines.
        let lower = host::files::Files::base(&kept.record.folder, home);
        let patch = kept.patch(&lower.unwrap_or_default());
        shown.insert("folder".to_owned(), kept.record.folder.clone().into());
        shown.insert("diff".to_owned(), patch.into());
    }
    Cow::Owned(shown)
}

/// The rule that wants a person, and its reason; else what wants one.
fn why(decision: &Decision) -> String {
    let why = match &decision.rule {
        Some(rule) => format!("rule `{rule}`: {}", decision.reason),
        None => decision.reason.clone(),
    };
    approval::shown(&text::elided(&why, limits::APPROVAL_WHY_CHARS_MAX))
}

/// The risk of a call as a person is told it, the variables it gets included.
fn with_variables(document: &Document, risk: &Risk) -> Risk {
    let mut risk = risk.clone();
    let granted = Granted::Ours.variables(document, &Environment::empty());
    let names: Vec<_> = granted.into_iter().map(|one| one.name).collect();
    let is_told = |signal: &Signal| signal.words.starts_with("variables: ");
    if !names.is_empty() && !risk.signals.iter().any(is_told) {
        let names = text::elided(&names.join(", "), 200);
        risk.signals.push(Signal {
            level: Level::L0,
            words: format!("variables: it gets the value of {names}"),
        });
    }
    risk
}
