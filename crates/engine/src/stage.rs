//! Where the powers of a call reach. A Local Pass has files of its own, which go when
//! the call is over.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::files::{Files, FilesError, copy_tree};
use model::caller::CallerKind;
use model::policy::EffectivePolicy;
use model::policy::grant::Grant;
use model::reason::Reason;
use model::record::outcome::CallError;
use model::text;

use crate::error::causes;
use crate::limit;
use crate::powers::{PowerSettings, Powers, PowersError};
use crate::refusal::{CallRefusal, GatePass, GateResult};
use crate::request::{CallPurpose, CallRequest};
use crate::run::RunResult;
use crate::scratch::Scratch;

/// How long copying the files of a Local Pass may take.
const COPY_TIME_MAX: Duration = Duration::from_secs(limit::COPY_SECONDS_MAX);

/// Gives a Local Pass files of its own: an empty workspace, or a copy of the files it
/// starts with, or of the folder it names. Any other call works where its settings say.
pub(crate) async fn stage(
    mut settings: PowerSettings,
    request: &CallRequest,
    policy: &EffectivePolicy,
    scratch: Option<&Scratch>,
) -> Result<PowerSettings, CallRefusal> {
    let Some(scratch) = scratch else {
        return Ok(settings);
    };
    let own = scratch.path().to_path_buf();
    settings.workspace = own.clone();
    // The folder is this call's alone, so there are no callers to keep apart in it.
    settings.sub_workspace = None;
    if let Some(home) = &mut settings.home {
        // It lies in the home, which tools see nothing of but its workspaces.
        home.workspaces.push(own.clone());
    }
    // Nothing is copied for a tool without file access: a copy may take seconds.
    if !policy.file_read && !policy.file_write {
        return Ok(settings);
    }
    let base = policy.fs_base_path.as_deref();
    let from = match (&request.trial.files, base) {
        (Some(files), _) => Some(check_files(files, &settings)?),
        // Also for a tool that only reads: a stranger's document never holds a handle
        // into a real folder.
        (None, Some(base)) => Some(
            Files::base(base, settings.home.as_ref()).map_err(|fault| no_files(request, &fault))?,
        ),
        (None, None) => None,
    };
    let Some(from) = from else {
        return Ok(settings);
    };
    // Only where the document names a folder. Others find the copy as their workspace.
    settings.stand_in = base.map(|_| own.clone());
    copy(from, own).await?;
    Ok(settings)
}

/// The folder a test starts with. One beside its document lies in the home, and is
/// meant to.
fn check_files(files: &Path, settings: &PowerSettings) -> Result<PathBuf, CallRefusal> {
    let mut home = settings.home.clone();
    // Does not follow links: a link beside the documents could lead anywhere.
    let is_folder = std::fs::symlink_metadata(files).is_ok_and(|about| about.is_dir());
    if let Some(home) = &mut home
        && is_folder
        && files.parent() == Some(&home.path.join("tools"))
    {
        home.workspaces.push(files.to_owned());
    }
    let base = Files::base(&files.to_string_lossy(), home.as_ref());
    base.map_err(|fault| not_tried(&format!("its files cannot be used: {}", causes(&fault))))
}

async fn copy(from: PathBuf, to: PathBuf) -> Result<(), CallRefusal> {
    // A blocking thread cannot be cancelled, so the copy looks at the time itself.
    let deadline = Instant::now() + COPY_TIME_MAX;
    let copy = tokio::task::spawn_blocking(move || copy_tree(&from, &to, deadline));
    match copy.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(fault)) => Err(not_tried(&format!(
            "a test runs on a copy of its files: {}; pass smaller ones with `--files`",
            causes(&fault)
        ))),
        Err(_) => Err(not_tried("its files could not be copied")),
    }
}

/// It could not be tried, which says nothing about the tool.
fn not_tried(why: &str) -> CallRefusal {
    CallRefusal::new(CallError::passing(Reason::LocalPassNotTried, why))
}

/// Refuses a call whose grant could not be made into powers. The owner is told why; any
/// other caller only that it is so.
pub(crate) fn no_powers(request: &CallRequest, fault: &PowersError) -> CallRefusal {
    match fault {
        PowersError::Files(files) => no_files(request, files),
        PowersError::Tls(_) | PowersError::Masking => {
            explained(request, Reason::PowerUnavailable, &causes(fault))
        }
    }
}

/// The folder of a call cannot be used.
fn no_files(request: &CallRequest, fault: &FilesError) -> CallRefusal {
    let reason = match fault {
        FilesError::Home { .. } | FilesError::Upwards { .. } | FilesError::Relative { .. } => {
            Reason::PowerBasePath
        }
        FilesError::NotText { .. } | FilesError::Open { .. } | FilesError::Id { .. } => {
            Reason::PowerUnavailable
        }
    };
    explained(request, reason, &causes(fault))
}

fn explained(request: &CallRequest, reason: Reason, why: &str) -> CallRefusal {
    let message = match request.caller.kind {
        CallerKind::Owner => why.to_owned(),
        CallerKind::Named => {
            "something the tool needs is not available; the operator can see why".to_owned()
        }
    };
    CallRefusal::new(CallError::new(reason, message)).noted(why)
}

/// A Local Pass that failed after a host could not be reached says nothing about the
/// tool.
pub(crate) fn excuse_unreached(
    request: &CallRequest,
    unreached: Option<String>,
    mut result: RunResult,
) -> RunResult {
    let (CallPurpose::LocalPass, Some(host), Some(error)) =
        (request.purpose, unreached, result.error.as_ref())
    else {
        return result;
    };
    // Only failures that a missing reply can cause. A broken limit stays one.
    let may_follow = matches!(error.reason, Reason::ToolThrew | Reason::SandboxWall);
    if may_follow {
        let host = text::elided(&host, 100);
        let message = format!("{host} could not be reached from here ({})", error.message);
        result.error = Some(CallError::passing(Reason::LocalPassNotTried, message));
    }
    result
}

/// Whether the folder a call is to work in may be used, for a call that is not made.
pub(crate) fn check_base_path(
    settings: &PowerSettings,
    request: &CallRequest,
    policy: &EffectivePolicy,
) -> Result<(), CallRefusal> {
    let base = policy.fs_base_path.as_deref();
    let Some(base) = base.filter(|_| policy.file_read || policy.file_write) else {
        return Ok(());
    };
    let opened = Files::base(base, settings.home.as_ref());
    opened
        .map(|_| ())
        .map_err(|fault| no_files(request, &fault))
}

/// Whether the powers of a call that is not made could be made, with nothing made.
pub(crate) fn check_powers(
    settings: &PowerSettings,
    request: &CallRequest,
    policy: &EffectivePolicy,
) -> GateResult<()> {
    match Powers::check(&Grant::from_policy(policy), settings) {
        Ok(faces) => Ok(GatePass::new((), faces.join(", "))),
        Err(fault) => Err(no_powers(request, &fault)),
    }
}
