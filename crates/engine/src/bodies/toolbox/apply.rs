//! `applyChanges`: copies what an earlier call changed beside the operator's folder into it.
//! It is a tool of its own, so that rules, approvals and the audit hold for the copy as for
//! any call, and the person who is asked sees the changes.

use std::sync::Arc;

use host::files::changes::{self, ChangeRule, ChangesFault, CopyStop};
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::CallError;
use model::text;
use serde_json::{Map, Value, json};

use crate::bodies::toolbox::ToolboxWork;
use crate::changes::{KeptSet, TooManyToName, note_copied, note_left_out};
use crate::refusal::CallRefusal;
use crate::request::{CallPurpose, CallRequest, CallTarget};
use crate::run::RunResult;
use crate::toolbox::ToolboxTool;

/// `applyChanges`.
pub(super) async fn apply(work: &ToolboxWork<'_>) -> Result<RunResult, CallRefusal> {
    let id = work.text("changes").unwrap_or_default();
    // Looked for before a person was asked as well; it may be gone since.
    let folder = work.policy.fs_base_path.clone();
    let caller = &work.request.caller.name;
    let kept = work.engine.changes().find(id, caller, folder.as_deref())?;
    let folder = kept.record.folder.clone();
    let home = work.settings.home.clone();
    let listed = kept.record.collected.changes.clone();
    let (tree, changes) = (kept.tree(), listed.clone());
    let copying = move || {
        changes::apply(
            &folder,
            home.as_ref(),
            &tree,
            &changes,
            &ChangeRule::Program,
        )
    };
    let copied = tokio::task::spawn_blocking(copying).await;
    let copied = match copied {
        Ok(Ok(copied)) => copied,
        Ok(Err(stop)) => {
            let copied = listed.get(..stop.copied).unwrap_or_default();
            note_copied(&work.powers, ToolboxTool::ApplyChanges.name(), copied);
            return Err(refuse(&stop));
        }
        Err(_) => return Err(failed("the changes could not be copied")),
    };
    note_copied(&work.powers, ToolboxTool::ApplyChanges.name(), &listed);
    let files = kept.files();
    kept.remove();
    Ok(RunResult::done(json!({"applied": copied, "files": files})))
}

fn refuse(stop: &CopyStop) -> CallRefusal {
    let reason = match &stop.fault {
        ChangesFault::Stale { .. } | ChangesFault::Altered { .. } => Reason::ChangesStale,
        ChangesFault::TooMany(_) | ChangesFault::Io { .. } | ChangesFault::Refused { .. } => {
            Reason::PowerUnavailable
        }
    };
    CallRefusal::with_status(Status::Failed, CallError::new(reason, stop.to_string()))
}

pub(super) fn failed(message: &str) -> CallRefusal {
    let error = CallError::new(Reason::PowerUnavailable, message);
    CallRefusal::with_status(Status::Failed, error)
}

/// What a result says of changes that could not be kept. The program ran all the same, and
/// what it wrote is the caller's.
pub(super) fn lost(work: &ToolboxWork<'_>, why: &str) -> Value {
    let message = format!("what the program changed is lost: {why}");
    work.powers.note(json!({
        "kind": "file", "function": work.request.target.name(), "path": null, "refusal": message,
    }));
    json!({
        "files": [], "diff": "", "leftOut": {}, "applied": false,
        "why": {"code": Reason::PowerUnavailable.code(), "message": message},
    })
}

/// Asks for a set of changes to be copied, by a call of its own, and says in the result what
/// came of it. Its caller can ask again later.
pub(super) async fn offer(work: &ToolboxWork<'_>, kept: KeptSet) -> Value {
    let lower = work.powers.folder().unwrap_or_default();
    let mut shown = Map::new();
    shown.insert("id".to_owned(), kept.id.clone().into());
    shown.insert("files".to_owned(), kept.files().into());
    let kept = Arc::new(kept);
    let read = Arc::clone(&kept);
    // It reads and compares every file that changed.
    let described = tokio::task::spawn_blocking(move || read.describe(&lower)).await;
    let diff = match described {
        Ok(Ok(text)) => text.patch.join("\n"),
        Ok(Err(TooManyToName { count })) => {
            format!("[… {} not shown …]", text::count(count, "change"))
        }
        Err(_) => "[… not shown: it could not be made …]".to_owned(),
    };
    shown.insert("diff".to_owned(), diff.into());
    let left_out = &kept.record.collected.left_out;
    // On record even if nothing is copied: a program tried to plant something.
    note_left_out(&work.powers, work.request.target.name(), left_out);
    let left_out = serde_json::to_value(left_out);
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
