//! What native tools do. Each gets a `ToolboxWork`: a call that passed every gate, with the
//! powers its grant made. What it starts runs in the jail and nowhere else.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use host::egress::EgressSettings;
use host::fetch::TlsError;
use host::files::changes::ChangeLayer;
use model::policy::EffectivePolicy;
use model::policy::grant::Grant;
use model::reason::Reason;
use model::record::mask::Masker;
use model::record::outcome::CallError;
use model::text;
use serde_json::{Map, Value};

use crate::changes::Staging;
use crate::engine::Engine;
use crate::jailed::{JailedNetwork, WorkFolder};
use crate::powers::{PowerSettings, Powers};
use crate::refusal::CallRefusal;
use crate::request::CallRequest;
use crate::run::RunResult;
use crate::snapshot::Snapshot;
use crate::toolbox::{JailStanding, ToolboxTool};

mod apply;
mod command;
mod git;
mod http;
mod job;
mod sql;

/// A call of a native tool that passed every gate.
#[derive(Debug)]
pub(crate) struct ToolboxWork<'a> {
    pub(crate) engine: &'a Engine,
    /// The settings and tools the gates looked at.
    pub(crate) now: &'a Snapshot,
    pub(crate) request: &'a CallRequest,
    /// The groups the caller is in.
    pub(crate) groups: Vec<String>,
    /// The call, as the audit knows it.
    pub(crate) call_id: String,
    /// As the schema says.
    pub(crate) arguments: Map<String, Value>,
    /// What the call is held to.
    pub(crate) policy: EffectivePolicy,
    pub(crate) masker: Arc<Masker>,
    /// The files and the network of its grant, and the events of its record.
    pub(crate) powers: Arc<Powers>,
    /// Where the powers reach, for this caller.
    pub(crate) settings: PowerSettings,
}

/// The folder of a call, and where its changes go if it is the operator's.
#[derive(Debug)]
pub(crate) struct StagedFolder {
    pub(crate) folder: WorkFolder,
    pub(crate) staging: Option<Staging>,
}

/// A staged folder as the jail gets it.
pub(crate) fn folder_of(staging: &Staging) -> WorkFolder {
    match staging.layer() {
        ChangeLayer::Overlay => WorkFolder::Overlay {
            folder: staging.lower().to_owned(),
            upper: staging.tree(),
            work: staging.work(),
        },
        ChangeLayer::Copy => WorkFolder::Workspace(staging.tree()),
    }
}

/// Runs a native tool.
pub(crate) async fn run(
    tool: ToolboxTool,
    work: ToolboxWork<'_>,
) -> Result<RunResult, CallRefusal> {
    match tool {
        ToolboxTool::Shell => command::shell(&work).await,
        ToolboxTool::RunCode => command::run_code(&work).await,
        ToolboxTool::JobStart => job::start(&work).await,
        ToolboxTool::JobStatus => job::status(&work),
        ToolboxTool::JobOutput => job::output(&work),
        ToolboxTool::JobCancel => job::cancel(&work).await,
        ToolboxTool::JobList => job::list(&work),
        ToolboxTool::SqlQuery => sql::query(&work).await,
        ToolboxTool::SqlSchema => sql::schema(&work).await,
        ToolboxTool::SqlExecute => sql::execute(&work).await,
        ToolboxTool::HttpRequest => http::request(&work).await,
        ToolboxTool::ReadPage => http::read(&work).await,
        ToolboxTool::GitStatus => git::plain(git::status(&work).await),
        ToolboxTool::GitLog => git::plain(git::log(&work).await),
        ToolboxTool::GitDiff => git::plain(git::diff(&work).await),
        ToolboxTool::GitShow => git::plain(git::show(&work).await),
        ToolboxTool::GitBranch => git::plain(git::branch(&work).await),
        ToolboxTool::GitAdd => git::plain(git::add(&work).await),
        ToolboxTool::GitCommit => git::plain(git::commit(&work).await),
        ToolboxTool::GitClone => git::plain(git::clone(&work).await),
        ToolboxTool::GitFetch => git::plain(git::fetch(&work).await),
        ToolboxTool::GitPush => git::plain(git::push(&work).await),
        ToolboxTool::ApplyChanges => apply::apply(&work).await,
    }
}

impl ToolboxWork<'_> {
    /// A text among the arguments.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).and_then(Value::as_str)
    }

    /// A number among the arguments.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.arguments.get(name).and_then(Value::as_u64)
    }

    /// A yes among the arguments.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.arguments.get(name).and_then(Value::as_bool) == Some(true)
    }

    /// The folder of the call, absolute.
    pub(crate) fn folder_path(&self) -> Result<PathBuf, CallRefusal> {
        self.powers.folder().ok_or_else(|| {
            let message = "the caller's level leaves this tool no folder";
            CallRefusal::new(CallError::new(Reason::LevelDenied, message))
        })
    }

    /// Whether the folder of the call is the operator's own.
    pub(crate) fn is_operators(&self) -> bool {
        // A Local Pass works on a copy, which is not the operator's.
        self.policy.fs_base_path.is_some() && self.settings.stand_in.is_none()
    }

    /// The folder of the call for a program that may change it. The operator's own is not
    /// changed: what the program does there is kept beside it.
    pub(crate) async fn stage(&self) -> Result<StagedFolder, CallRefusal> {
        let path = self.folder_path()?;
        if !self.is_operators() {
            let folder = match self.policy.file_write {
                true => WorkFolder::Workspace(path),
                false => WorkFolder::ReadOnly(path),
            };
            return Ok(StagedFolder {
                folder,
                staging: None,
            });
        }
        let (home, call_id) = (self.engine.home().to_owned(), self.call_id.clone());
        let has_layers = JailStanding::of_machine().has_overlays();
        let staging = tokio::task::spawn_blocking(move || match has_layers {
            true => Staging::overlay(&home, &call_id, &path).map_err(|error| error.to_string()),
            false => {
                Staging::copy(&home, &call_id, &path).map_err(|error| crate::error::causes(&error))
            }
        });
        match staging.await {
            Ok(Ok(staging)) => Ok(StagedFolder {
                folder: folder_of(&staging),
                staging: Some(staging),
            }),
            Ok(Err(why)) => Err(apply::failed(&format!(
                "the folder cannot be given to a program: {why}"
            ))),
            Err(_) => Err(apply::failed("the folder cannot be given to a program")),
        }
    }

    /// The network of the call for its programs; nothing if it reaches no host.
    pub(crate) fn network(&self) -> Result<Option<JailedNetwork>, CallRefusal> {
        if !self.policy.reaches_out() {
            return Ok(None);
        }
        let unavailable = |fault: TlsError| {
            let error = CallError::new(Reason::PowerUnavailable, "the network cannot be set up");
            CallRefusal::new(error).noted(crate::error::causes(&fault))
        };
        let tls = self.settings.trust.tls().map_err(unavailable)?;
        let authorities = self.settings.trust.operator_pem().map_err(unavailable)?;
        let mut settings = EgressSettings::new(tls);
        settings.resolver = Arc::clone(&self.settings.resolver);
        settings.connector = Arc::clone(&self.settings.connector);
        settings.private_hosts = Arc::clone(&self.settings.private_hosts);
        settings.limits.bytes_max = self.now.config.toolbox.network_bytes_max;
        settings.tally = Arc::clone(self.engine.egress_tally());
        let grant = Grant::from_policy(&self.policy);
        Ok(Some(JailedNetwork {
            grant,
            settings,
            authorities,
        }))
    }

    /// A folder in the folder of the call that an argument names.
    pub(crate) fn start(&self, argument: &str, folder: &Path) -> Result<PathBuf, CallRefusal> {
        let Some(raw_path) = self.text(argument) else {
            return Ok(folder.to_owned());
        };
        let refuse = |why: &str| {
            let shown = text::elided(raw_path, 100);
            let message = format!("`{argument}` is `{shown}`, which {why}");
            CallRefusal::new(CallError::new(Reason::ArgumentSchema, message))
        };
        let relative = Path::new(raw_path);
        // By spelling first, so that the answer says nothing about what lies outside.
        let is_plain = |part: Component<'_>| match part {
            Component::Normal(_) | Component::CurDir => true,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => false,
        };
        if !relative.components().all(is_plain) {
            return Err(refuse("is not a path below the folder of the call"));
        }
        // Links are resolved before the comparison: one in the folder may lead out of it.
        let Ok(found) = folder.join(relative).canonicalize() else {
            return Err(refuse("is not there"));
        };
        if !found.starts_with(folder) {
            return Err(refuse("leads out of the folder of the call"));
        }
        match found.is_dir() {
            true => Ok(found),
            false => Err(refuse("is not a folder")),
        }
    }
}
