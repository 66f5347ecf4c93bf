//! What is different when a document is tried: by its Local Pass, or as it stands.
//!
//! Such a document may come from anybody. What it reaches for is what its owner
//! granted, and a Local Pass works on files of its own, which go with it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::files::{Files, FilesError, copy_tree};
use model::caller::CallerKind;
use model::consent::{self, Granted, Need};
use model::document::Document;
use model::environment::Environment;
use model::outcome::CallError;
use model::policy::EffectivePolicy;
use model::reason::Reason;
use model::risk::{Level, Risk, Signal};
use model::text;

use super::{CallRequest, Found, Judged, Purpose};
use crate::powers::{PowerSettings, PowersError};
use crate::record::{Record, Stop};
use crate::registry::Snapshot;
use crate::run::Ran;
use crate::scratch::Scratch;
use crate::{Engine, causes};

/// How long copying the files of a Local Pass may take.
const COPY_TIME_MAX: Duration = Duration::from_secs(20);
/// Characters of what is not granted yet in a refusal.
const WANTED_CHARS_MAX: usize = 600;

/// Whether its owner must have agreed to what a call reaches for: a document that was
/// not published, or one that is to earn its publication.
pub(super) fn is_trial(request: &CallRequest, found: &Found) -> bool {
    request.purpose == Purpose::LocalPass || !found.registered
}

/// What a document reaches for that its owner has not granted.
pub(crate) fn wanted(found: &Found, policy: &EffectivePolicy, risk: &Risk) -> Vec<Need> {
    let needs = consent::needs(&found.sound.document, policy, risk);
    found.granted.lacks(needs)
}

/// Whether the owner agreed to everything a document reaches for.
pub(super) fn consented(judged: &Judged<'_>) -> Result<((), String), Stop> {
    let wanted = wanted(judged.found, &judged.policy, &judged.risk);
    if wanted.is_empty() {
        return Ok(((), "the owner agreed to what it reaches for".to_owned()));
    }
    Err(Stop::refused(unconsented(&wanted)))
}

/// The refusal of a document whose owner has not agreed.
pub(crate) fn unconsented(wanted: &[Need]) -> CallError {
    let words: Vec<_> = wanted.iter().map(Need::words).collect();
    let words = text::elided(&words.join(", "), WANTED_CHARS_MAX);
    let message = format!(
        "it would {words}, and you have not agreed to that yet; say yes at a terminal, or with `--yes`"
    );
    CallError::new(Reason::ConsentRequired, message)
}

/// Where the powers of a call reach. A Local Pass has files of its own: an empty
/// workspace, or a copy of the files it starts with, or of the folder it names.
pub(super) async fn staged(
    engine: &Engine,
    now: &Snapshot,
    request: &CallRequest,
    record: &mut Record,
    policy: &EffectivePolicy,
) -> Result<PowerSettings, Stop> {
    let mut settings = engine.power_settings(&now.config, &request.caller);
    if request.purpose != Purpose::LocalPass {
        return Ok(settings);
    }
    let scratch = Scratch::new(engine.home(), record.call_id());
    let own = scratch.path().to_path_buf();
    record.keeps_until_closed(scratch);
    settings.workspace = own.clone();
    settings.sub_workspace = None;
    if let Some(home) = &mut settings.home {
        home.workspaces.push(own.clone());
    }
    if !policy.file_read && !policy.file_write {
        return Ok(settings);
    }
    let base = policy.fs_base_path.as_deref();
    let from = match (&request.files, base) {
        (Some(files), _) => Some(checked(files, &settings)?),
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
    settings.stand_in = base.map(|_| own.clone());
    copied(from, own).await?;
    Ok(settings)
}

/// The folder a test starts with. One beside its document lies in the home, and is
/// meant to.
fn checked(files: &Path, settings: &PowerSettings) -> Result<PathBuf, Stop> {
    let mut home = settings.home.clone();
    let is_folder = std::fs::symlink_metadata(files).is_ok_and(|about| about.is_dir());
    if let Some(home) = &mut home
        && is_folder
        && files.parent() == Some(&home.path.join("tools"))
    {
        home.workspaces.push(files.to_owned());
    }
    let base = Files::base(&files.to_string_lossy(), home.as_ref());
    base.map_err(|fault| not_tried(&format!("its files: {}", causes(&fault))))
}

async fn copied(from: PathBuf, to: PathBuf) -> Result<(), Stop> {
    let deadline = Instant::now() + COPY_TIME_MAX;
    let copy = tokio::task::spawn_blocking(move || copy_tree(&from, &to, deadline));
    match copy.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(fault)) => Err(not_tried(&format!(
            "a test works on a copy of its files, and {}; bring smaller ones with `--files`",
            causes(&fault)
        ))),
        Err(_) => Err(not_tried("its files could not be copied")),
    }
}

/// It could not be tried, which says nothing about the tool.
fn not_tried(why: &str) -> Stop {
    Stop::refused(CallError::passing(Reason::LocalPassNotTried, why))
}

/// A grant could not be made into powers. The owner is told everything, anybody else
/// no more than that it is so.
pub(super) fn no_powers(request: &CallRequest, fault: &PowersError) -> Stop {
    match fault {
        PowersError::Files(files) => no_files(request, files),
        PowersError::Tls(_) | PowersError::Masking => {
            explained(request, Reason::PowerUnavailable, &causes(fault))
        }
    }
}

/// The folder of a call cannot be used.
fn no_files(request: &CallRequest, fault: &FilesError) -> Stop {
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

fn explained(request: &CallRequest, reason: Reason, why: &str) -> Stop {
    let message = match request.caller.kind {
        CallerKind::Owner => why.to_owned(),
        CallerKind::Named => {
            "something the tool needs cannot be had; its operator sees why".to_owned()
        }
    };
    Stop::refused(CallError::new(reason, message)).note(why.to_owned())
}

/// A Local Pass that failed after a host could not be reached says nothing about the
/// tool.
pub(super) fn weighed(request: &CallRequest, unreached: Option<String>, mut ran: Ran) -> Ran {
    let (Purpose::LocalPass, Some(host), Some(error)) =
        (request.purpose, unreached, ran.error.as_ref())
    else {
        return ran;
    };
    let may_follow = matches!(error.reason, Reason::ToolThrew | Reason::SandboxWall);
    if may_follow {
        let host = text::elided(&host, 100);
        let message = format!("{host} could not be reached from here ({})", error.message);
        ran.error = Some(CallError::passing(Reason::LocalPassNotTried, message));
    }
    ran
}

/// Whether the folder a call is to work in may be used, for a call that is not made.
pub(crate) fn base_path(
    engine: &Engine,
    now: &Snapshot,
    request: &CallRequest,
    judged: &Judged<'_>,
) -> Result<(), Stop> {
    let policy = &judged.policy;
    let base = policy.fs_base_path.as_deref();
    let Some(base) = base.filter(|_| policy.file_read || policy.file_write) else {
        return Ok(());
    };
    let settings = engine.power_settings(&now.config, &request.caller);
    let opened = Files::base(base, settings.home.as_ref());
    opened
        .map(|_| ())
        .map_err(|fault| no_files(request, &fault))
}

/// The risk of a call as a person is told it, the variables it gets included.
pub(super) fn with_variables(document: &Document, risk: &Risk) -> Risk {
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
