//! What a door asks for, and who is told how it goes on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bridge::Elicitor;
use model::caller::{Caller, CallerKind, Origin};
use model::config::ScriptPreset;
use model::policy::assessment::UsableDocument;
use model::record::outcome::CallError;
use model::text;
use model::trace::TraceParent;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::limit;
use crate::question::Approver;
use crate::refusal::{CallRefusal, Gate};
use crate::snapshot::Snapshot;
use crate::waiting_script::RunningScript;

/// The name a caller is remembered by, as the audit has it.
pub(crate) fn shown(caller: &Caller) -> String {
    text::elided(&caller.name, limit::NAME_SHOWN_CHARS_MAX)
}

/// What a door asks for.
#[derive(Clone, Debug)]
pub struct CallRequest {
    /// The caller: an agent, a person or a script.
    pub caller: Caller,
    /// The door the call came through.
    pub origin: Origin,
    /// What is to be called.
    pub target: CallTarget,
    /// With what, as it came.
    pub arguments: Value,
    /// Whether it is a use of the tool or a test of it.
    pub purpose: CallPurpose,
    /// The call that makes this one; none for a call from a door.
    pub parent: Option<ParentCall>,
    /// How long the whole call may take, approval included; the tool's own time
    /// limit holds as well.
    pub deadline: Option<Duration>,
    /// Stops the call wherever it is.
    pub cancel: CancellationToken,
    /// The conversation it is part of, if the door knows one.
    pub session: Option<String>,
    /// How this door asks its own user.
    pub approver: Option<Arc<dyn Approver>>,
    /// Who is told how it goes on.
    pub progress: Option<Progress>,
    /// How this door puts a server's question to its own user.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// The trace it is part of, as W3C's `traceparent`.
    pub trace: Option<String>,
    /// The preset of a script, instead of the operator's. Only the owner may choose.
    pub preset: Option<ScriptPreset>,
    /// It is the owner's own, typed at a terminal, or part of such a one.
    pub typed: bool,
    /// Where a document that the request holds comes from, and what it starts with.
    pub trial: Trial,
    /// Why its door cannot make it, if it cannot. The attempt is written down like any
    /// other, and nothing runs.
    pub refused: Option<Refused>,
    /// What its door has just looked at for it, so that door and engine go by the same
    /// settings; otherwise the call looks itself. It is not kept while the call waits.
    pub snapshot: Option<Arc<Snapshot>>,
}

/// A call that its door cannot make: a bound of the door itself, or an answer that came
/// with it and is not its own.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The gate the audit names.
    pub gate: Gate,
    /// What the caller is told.
    pub error: CallError,
}

impl Refused {
    pub(crate) fn refusal(&self) -> CallRefusal {
        CallRefusal::new(self.error.clone())
    }
}

/// What a document is tried with.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// The file it was read from, if it is not in the tools folder; absolute. What the owner
    /// agreed to for it is kept by name and file; without a file, by name alone.
    pub place: Option<PathBuf>,
    /// A folder whose files it starts with, as a copy; absolute. Without one, a Local Pass
    /// takes the folder `NAME.files` beside its document, if there is one.
    pub files: Option<PathBuf>,
}

/// The call that makes another one: a script, `codecall_invoke`, or a tool that has its
/// changes copied.
#[derive(Clone, Debug)]
pub struct ParentCall {
    pub(crate) id: String,
    /// The script whose step it is, however deep it lies in it.
    pub(crate) script: Option<ScriptStep>,
}

impl ParentCall {
    /// The parent of a call that is no step of a script.
    pub(crate) fn new(id: &str) -> ParentCall {
        ParentCall {
            id: id.to_owned(),
            script: None,
        }
    }
}

/// What a script keeps for a call that it makes.
#[derive(Clone, Debug)]
pub(crate) struct ScriptStep {
    pub(crate) script: Arc<RunningScript>,
    /// Stops the clock of the script while a person is waited for.
    pub(crate) waiting: Waiting,
    /// What is written down before the call runs; only scripts that go on set it.
    pub(crate) begins: Option<Begins>,
}

/// The step of a script's journal that says a call is about to run.
#[derive(Clone, Debug)]
pub(crate) struct Begins {
    pub(crate) script: i64,
    pub(crate) step: Option<String>,
    pub(crate) expires_at_ms: i64,
}

/// Is told when a call begins to wait for a person, and when it ceases to.
#[derive(Clone)]
pub(crate) struct Waiting(Arc<dyn Fn(bool) + Send + Sync>);

impl Waiting {
    /// Calls `tell` with whether a wait begins.
    pub(crate) fn new(tell: impl Fn(bool) + Send + Sync + 'static) -> Waiting {
        Waiting(Arc::new(tell))
    }

    /// A wait, until this is dropped.
    pub(crate) fn begin(&self) -> Waits<'_> {
        (self.0)(true);
        Waits(self)
    }
}

/// A wait that has begun.
#[derive(Debug)]
pub(crate) struct Waits<'a>(&'a Waiting);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        (self.0.0)(false);
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waiting")
    }
}

/// Is told how a call goes on, in words a person may see.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(&str) + Send + Sync>);

impl Progress {
    /// Calls `tell` with each sentence.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Progress {
        Progress(Arc::new(tell))
    }

    pub(crate) fn tell(&self, sentence: &str) {
        (self.0)(sentence);
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Progress")
    }
}

impl CallRequest {
    /// A call of a tool by its name.
    #[must_use]
    pub fn new(caller: Caller, origin: Origin, tool: &str, arguments: Value) -> CallRequest {
        CallRequest {
            typed: origin == Origin::Cli && caller.kind == CallerKind::Owner,
            caller,
            origin,
            target: CallTarget::Name(tool.to_owned()),
            arguments,
            purpose: CallPurpose::Call,
            parent: None,
            deadline: None,
            cancel: CancellationToken::new(),
            session: None,
            approver: None,
            progress: None,
            elicitor: None,
            trace: None,
            preset: None,
            trial: Trial::default(),
            refused: None,
            snapshot: None,
        }
    }

    /// The call a script or invoke makes for its own caller: same caller, same session,
    /// same people to ask, and it ends when this one does.
    pub(crate) fn child(&self, tool: &str, arguments: Value) -> CallRequest {
        let caller = self.caller.clone();
        CallRequest {
            // A child token: a script may cancel one of its calls without ending itself.
            cancel: self.cancel.child_token(),
            session: self.session.clone(),
            approver: self.approver.clone(),
            progress: self.progress.clone(),
            elicitor: self.elicitor.clone(),
            trace: self.trace.clone(),
            typed: self.typed,
            ..CallRequest::new(caller, Origin::Script, tool, arguments)
        }
    }

    /// The script whose step it is.
    pub(crate) fn script_step(&self) -> Option<&ScriptStep> {
        self.parent.as_ref()?.script.as_ref()
    }

    /// The parent of a call that this one makes for itself, as a part of the same step.
    pub(crate) fn as_parent(&self, call_id: &str) -> ParentCall {
        let step = self.script_step().cloned();
        ParentCall {
            id: call_id.to_owned(),
            // The step of a script was written for the outer call.
            script: step.map(|step| ScriptStep {
                begins: None,
                ..step
            }),
        }
    }

    /// The trace of a call that this one makes: below this one, whose id is `call_id`.
    pub(crate) fn trace_below(&self, call_id: &str) -> Option<String> {
        let own = TraceParent::of_call(call_id, self.trace.as_deref());
        own.map(|own| own.to_string())
    }

    /// Whether the owner made it at a terminal: itself, or by a script run there. No
    /// door of an agent makes a call of the owner, whatever its callers are named.
    pub(crate) fn is_typed(&self) -> bool {
        let here = match self.origin {
            Origin::Cli | Origin::Script => true,
            Origin::Mcp | Origin::Studio => false,
        };
        self.typed && here && self.caller.kind == CallerKind::Owner
    }
}

/// What is to be called.
#[derive(Clone, Debug)]
pub enum CallTarget {
    /// A published tool.
    Name(String),
    /// The document itself, which only the owner brings.
    Document(Arc<UsableDocument>),
}

impl CallTarget {
    /// The name of what is called.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            CallTarget::Name(name) => name,
            CallTarget::Document(usable) => &usable.document.name,
        }
    }
}

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPurpose {
    /// An ordinary call.
    Call,
    /// To prove the tool to its author, with its own test values.
    LocalPass,
}
