//! `applyChanges`: copies what an earlier call changed beside the operator's folder into it.
//! It is a tool of its own, so that rules, approvals and the audit hold for the copy as for
//! any call, and the person who is asked sees the changes.

use host::files::changes::{self, ChangeRule, ChangesFault};
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::CallError;
use serde_json::{Map, Value, json};

use crate::bodies::toolbox::ToolboxWork;
use crate::changes::KeptSet;
use crate::refusal::CallRefusal;
use crate::request::{CallPurpose, CallRequest, CallTarget};
use crate::run::RunResult;
use crate::toolbox::ToolboxTool;

/// `applyChanges`.
pub(super) async fn apply(work: &ToolboxWork<'_>) -> Result<RunResult, CallRefusal> {
    let id = work.text("changes").unwrap_or_default();
    let unknown = || {
        let message = "you have no such changes";
        let error = CallError::new(Reason::ChangesUnknown, message);
        CallRefusal::with_status(Status::Failed, error)
    };
    let kept = work.engine.changes().get(id, &work.request.caller.name);
    let kept = kept.ok_or_else(unknown)?;
    let folder = work.policy.fs_base_path.clone();
    // The settings name another folder since.
    let folder = folder.filter(|folder| *folder == kept.record.folder);
    let folder = folder.ok_or_else(unknown)?;
    let home = work.settings.home.clone();
    let (tree, listed) = (kept.tree(), kept.record.collected.changes.clone());
    let copying =
        move || changes::apply(&folder, home.as_ref(), &tree, &listed, &ChangeRule::Program);
    let applied = tokio::task::spawn_blocking(copying).await;
    let applied = match applied {
        Ok(Ok(applied)) => applied,
        Ok(Err(fault)) => return Err(refuse(&fault)),
        Err(_) => return Err(failed("the changes could not be copied")),
    };
    for change in &kept.record.collected.changes {
        work.powers.note(json!({
            "kind": "file", "function": "applyChanges", "path": change.path,
            "change": change.kind.word(), "bytes": change.bytes, "refusal": null,
        }));
    }
    let files = kept.files();
    kept.remove();
    Ok(RunResult::done(json!({"applied": applied, "files": files})))
}

fn refuse(fault: &ChangesFault) -> CallRefusal {
    let reason = match fault {
        ChangesFault::Stale { .. } | ChangesFault::Altered { .. } => Reason::ChangesStale,
        ChangesFault::TooMany(_) | ChangesFault::Io { .. } | ChangesFault::Refused { .. } => {
            Reason::PowerUnavailable
        }
    };
    let message = format!("nothing more was copied: {fault}");
    CallRefusal::with_status(Status::Failed, CallError::new(reason, message))
}

pub(super) fn failed(message: &str) -> CallRefusal {
    let error = CallError::new(Reason::PowerUnavailable, message);
    CallRefusal::with_status(Status::Failed, error)
}

/// Asks for a set of changes to be copied, by a call of its own, and says in the result what
/// came of it. Its caller can ask again later.
pub(super) async fn offer(work: &ToolboxWork<'_>, kept: KeptSet) -> Value {
    let lower = work.powers.folder().unwrap_or_default();
    let mut shown = Map::new();
    shown.insert("id".to_owned(), kept.id.clone().into());
    shown.insert("files".to_owned(), kept.files().into());
    let patch = kept.patch(&lower).join("\n");
    shown.insert("diff".to_owned(), patch.into());
    let left_out = serde_json::to_value(&kept.record.collected.left_out);
    shown.insert("leftOut".to_owned(), left_out.unwrap_or_default());
    if kept.record.collected.changes.is_empty() {
        shown.insert("applied".to_owned(), false.into());
        kept.remove();
        return Value::Object(shown);
    }
    let request = CallRequest {
        target: CallTarget::Name(ToolboxTool::ApplyChanges.name().to_owned()),
        arguments: json!({"changes": kept.id}),
        purpose: CallPurpose::Call,
        parent: Some(work.request.as_parent(&work.call_id)),
        cancel: work.request.cancel.child_token(),
        ..work.request.clone()
    };
    // A call within a call: the compiler cannot size it otherwise.
    let outcome = Box::pin(work.engine.call(request)).await.into_inner();
    let applied = outcome.status == Status::Done;
    shown.insert("applied".to_owned(), applied.into());
    if let Some(error) = outcome.error {
        let told = json!({"code": error.reason.code(), "message": error.message});
        shown.insert("why".to_owned(), told);
    }
    Value::Object(shown)
}
