//! What step 8 of a call asks a person: the question in words, why it is asked, who may
//! answer, and what the answer binds to. Whether it is asked, and what an answer counts
//! for, is decided elsewhere.

use std::borrow::Cow;
use std::path::Path;

use model::document::Document;
use model::document::environment::Environment;
use model::govern::approval::ShownChanges;
use model::govern::consent::Granted;
use model::govern::rules::Decision;
use model::policy::risk::{Level, Risk, Signal};
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::CallError;
use model::{govern::approval, limits, text};
use serde_json::{Map, Value};

use crate::approve::{ApprovalScope, Asking, Question, expiry, session_digest};
use crate::changes::{ChangesText, TooManyToName};
use crate::engine::Engine;
use crate::gates::{CheckedCall, DecidedCall, HeldTool};
use crate::limit::NAME_SHOWN_CHARS_MAX;
use crate::powers::PowerSettings;
use crate::record::CallRecord;
use crate::refusal::CallRefusal;
use crate::request::CallRequest;
use crate::snapshot::Snapshot;
use crate::tool::ToolBody;
use crate::toolbox::ToolboxTool;

/// What a person is to be asked, and what the answer binds to.
pub(crate) fn asking<'a>(
    engine: &Engine,
    now: &Snapshot,
    request: &'a CallRequest,
    record: &CallRecord,
    checked: &CheckedCall,
    changes: Option<&AskedChanges>,
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
    // A document's own code has nothing but what its policy grants. Programs start in a
    // folder in any case.
    let has_files = !matches!(found.body, ToolBody::Code) || policy.file_read || policy.file_write;
    let files = match has_files {
        true => place_of_files(engine.home(), &files),
        false => String::new(),
    };
    let binding = approval::BindingInput {
        document: &found.usable.facts.digest.to_string(),
        safety: &record.safety(),
        policy,
        level: risk.level,
        // The folders are part of the binding: a yes for one workspace is none for
        // another.
        files: &files,
        caller: &request.caller,
        arguments: arguments.values(),
    };
    // Without a binding the field below stays empty, and `obtain` refuses such a call.
    let binding = binding.binding().ok();
    let session = request.session.as_deref().and_then(session_digest);
    let settings = now.config.approvals.clone();
    // All of them: nothing of an argument is unreadable before a yes. The bound on
    // arguments, and that on what may wait, keep it finite.
    let values = arguments.values();
    let (shown, told) = match changes {
        Some(changes) => (
            Cow::Owned(changes.shown(values)),
            Cow::Owned(changes.told()),
        ),
        None => (Cow::Borrowed(values), Cow::Borrowed(values)),
    };
    let shown = approval::arguments(&shown, masker, usize::MAX).into_inner();
    let question = Question {
        call_id: record.call_id().to_owned(),
        tool: text::elided(&document.name, NAME_SHOWN_CHARS_MAX),
        caller: text::elided(&approval::shown(&request.caller.name), NAME_SHOWN_CHARS_MAX),
        risk: with_variables(document, risk),
        prompt: approval::prompt(document, &told, masker).into_inner(),
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

/// Where a call finds files, in words that mean the same on all nodes: a workspace below the
/// home by its place there, for homes are in different places, and any other by its path.
fn place_of_files(home: &Path, files: &PowerSettings) -> String {
    let sub_workspace = &files.sub_workspace;
    match files.workspace.strip_prefix(home) {
        Ok(below) => format!("home {below:?} {sub_workspace:?}"),
        Err(_) => format!("path {:?} {sub_workspace:?}", files.workspace),
    }
}

/// The changes that a call would copy into the operator's folder, as a person is asked about
/// them.
#[derive(Debug)]
pub(crate) struct AskedChanges {
    folder: String,
    text: ChangesText,
}

/// Reads the changes that a call names, if it copies any. Refuses before a person is asked:
/// they could neither see what there is not nor what is too much to name.
pub(crate) async fn read_changes(
    engine: &Engine,
    request: &CallRequest,
    decided: &DecidedCall,
) -> Result<Option<AskedChanges>, CallRefusal> {
    let held = &decided.held;
    if held.found.body.toolbox() != Some(ToolboxTool::ApplyChanges) {
        return Ok(None);
    }
    let id = decided.arguments.values().get("changes");
    let id = id.and_then(Value::as_str).unwrap_or_default();
    let folder = held.policy.fs_base_path.as_deref();
    // By caller, so that a question shows no other caller's changes.
    let kept = engine.changes().find(id, &request.caller.name, folder)?;
    let home = engine.powers().home.clone();
    let reading = move || {
        // If it cannot be opened, the patch says so where it cannot show lines.
        let lower = host::files::Files::base(&kept.record.folder, home.as_ref());
        let text = kept.describe(&lower.unwrap_or_default());
        text.map(|text| AskedChanges {
            folder: kept.record.folder.clone(),
            text,
        })
    };
    match tokio::task::spawn_blocking(reading).await {
        Ok(Ok(asked)) => Ok(Some(asked)),
        Ok(Err(TooManyToName { count })) => {
            let message = format!(
                "a person must agree, and {} are more than one question can name; nothing was \
                 copied, change fewer files in one call",
                text::count(count, "change")
            );
            let error = CallError::new(Reason::ChangesTooMany, message);
            Err(CallRefusal::with_status(Status::Failed, error))
        }
        Err(_) => {
            let error = CallError::new(Reason::PowerUnavailable, "the changes cannot be read");
            Err(CallRefusal::with_status(Status::Failed, error))
        }
    }
}

impl AskedChanges {
    /// The arguments as a person sees them: an id alone tells them nothing.
    fn shown(&self, values: &Map<String, Value>) -> Map<String, Value> {
        let mut shown = values.clone();
        shown.insert("folder".to_owned(), self.folder.clone().into());
        let (files, left_out) = (self.text.files.clone(), self.text.left_out.clone());
        ShownChanges::add(&mut shown, files, left_out, self.text.patch.clone());
        shown
    }

    /// What the sentence of the question may fill in.
    fn told(&self) -> Map<String, Value> {
        let folder = ("folder".to_owned(), self.folder.clone().into());
        let what = ("what".to_owned(), self.text.summary.clone().into());
        Map::from_iter([folder, what])
    }
}

/// The arguments of a call without what was added to show them.
pub(crate) fn given_arguments(now: &Snapshot, tool: &str, shown: Value) -> Value {
    let tool = now.tool(tool);
    let is_copy = tool.is_some_and(|tool| tool.body.toolbox() == Some(ToolboxTool::ApplyChanges));
    match shown {
        Value::Object(mut members) if is_copy => {
            members.retain(|name, _| name == "changes");
            Value::Object(members)
        }
        shown => shown,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: a yes for a workspace of the home must not be one for a folder that is named
    /// alike, nor one caller's for another's.
    #[test]
    fn a_workspace_is_bound_by_what_it_means() {
        let place = |home: &str, workspace: &str, sub: Option<&str>| {
            let mut files = PowerSettings::new(workspace.into());
            files.sub_workspace = sub.map(str::to_owned);
            place_of_files(Path::new(home), &files)
        };
        let ours = place("/a", "/a/workspaces/default", None);
        assert_eq!(ours, place("/b", "/b/workspaces/default", None));
        for other in [
            place("/a", "/b/workspaces/default", None),
            place("/a", "/workspaces/default", None),
            place("/a", "/a/workspaces/other", None),
            place("/a", "/a/workspaces/default", Some("ada")),
            place("/a", "/a/workspaces", Some("default")),
        ] {
            assert_ne!(ours, other);
        }
    }
}
