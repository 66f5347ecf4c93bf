//! One run in the sandbox: from a granted call to its result.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::document::params::Arguments;
use model::policy::EffectivePolicy;
use model::policy::assessment::UsableDocument;
use model::policy::grant::Grant;
use model::reason::Reason;
use model::record::audit::Status;
use model::record::mask::Masker;
use model::record::outcome::{CallError, ConsoleLine, RelayedResult};
use model::{Environment, document::placeholder};
use sandbox::job::{Ended, Job, JobLimits, RunReport, RunUsage, StopPlace, Thrown};
use sandbox::pool::{FinishedRun, RunError};
use serde_json::{Map, Value};

use crate::powers::{PowerSettings, Powers, PowersError};
use crate::refusal::CallRefusal;
use crate::services::RunStart;

/// The result of a run.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub(crate) status: Status,
    pub(crate) value: Option<Value>,
    pub(crate) relayed: Option<RelayedResult>,
    pub(crate) error: Option<CallError>,
    pub(crate) console: Vec<ConsoleLine>,
    pub(crate) usage: Option<RunUsage>,
}

/// The values of a document's static variables, and the secrets among them.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    values: Vec<(String, String)>,
    pub(crate) secrets: Vec<String>,
}

impl Variables {
    /// Fills a document's templates. A template that lacks a variable stays
    /// unfilled: the requirements gate stops such a call before it runs.
    pub(crate) fn resolve(usable: &UsableDocument, environment: &Environment) -> Variables {
        let mut variables = Variables::default();
        for variable in &usable.document.static_variables {
            if let Ok(resolved) = placeholder::resolve(&variable.template, environment) {
                variables
                    .values
                    .push((variable.name.clone(), resolved.text));
                variables.secrets.extend(resolved.secrets);
            }
        }
        variables
    }

    /// The values by the names of the variables.
    pub(crate) fn environment(&self) -> Environment {
        self.values.iter().cloned().collect()
    }
}

/// The job of a call and the powers it runs with.
#[derive(Debug)]
pub(crate) struct PreparedRun {
    pub(crate) job: Job,
    pub(crate) powers: Arc<Powers>,
}

/// Makes a call ready to run.
pub(crate) fn prepare(
    usable: &UsableDocument,
    policy: &EffectivePolicy,
    arguments: Arguments,
    variables: Variables,
    settings: &PowerSettings,
    masker: Arc<Masker>,
    start: RunStart,
) -> Result<PreparedRun, PowersError> {
    let document = &usable.document;
    let names = document.params.iter().map(|param| &param.name);
    let variable_names = document.static_variables.iter().map(|known| &known.name);
    // Also those without a value: code that looks at an optional param reads `undefined`
    // and does not fail.
    let declared = names.chain(variable_names).cloned().collect();
    let limits = JobLimits::for_policy(policy);
    // What the host does for a run ends with the run's own time.
    let deadline = Instant::now() + Duration::from_millis(u64::from(limits.wall_ms_max));
    let grant = Grant::from_policy(policy);
    let powers = Powers::from_grant(&grant, settings, masker, deadline)?;
    let job = Job {
        body: document.code.clone(),
        globals: Value::Object(globals(arguments, variables)).to_string(),
        declared,
        powers: powers.faces(),
        limits,
        seed: start.seed,
        now_ms: start.now_ms,
    };
    let powers = Arc::new(powers);
    Ok(PreparedRun { job, powers })
}

/// Params and static variables as the script sees them; a static variable wins.
fn globals(arguments: Arguments, variables: Variables) -> Map<String, Value> {
    let mut globals = arguments.into_values();
    // Attack: an argument must not replace the operator's value of the same name.
    for (name, text) in variables.values {
        globals.insert(name, Value::String(text));
    }
    globals
}

impl RunResult {
    /// Nothing was run and nothing is wrong.
    pub(crate) fn nothing() -> RunResult {
        RunResult {
            status: Status::Done,
            value: None,
            relayed: None,
            error: None,
            console: Vec::new(),
            usage: None,
        }
    }

    /// A gate refused the call, or its body failed.
    pub(crate) fn refused(refusal: CallRefusal) -> RunResult {
        RunResult {
            status: refusal.status,
            error: Some(refusal.error),
            ..RunResult::nothing()
        }
    }

    /// A body of ours came to its end.
    pub(crate) fn done(value: Value) -> RunResult {
        RunResult {
            value: Some(value),
            ..RunResult::nothing()
        }
    }

    /// What a run came to.
    pub(crate) fn from_run(run: Result<FinishedRun, RunError>) -> RunResult {
        match run {
            Ok(run) => {
                let line = |line: sandbox::job::GuestLine| ConsoleLine {
                    level: line.level.word(),
                    text: line.text,
                };
                let mut console: Vec<_> = run.console.into_iter().map(line).collect();
                // What the sandbox has to say about the result stands behind what the
                // tool itself said.
                let remarks = run.report.remarks().into_iter();
                console.extend(remarks.map(|text| ConsoleLine {
                    level: sandbox::job::ConsoleLevel::Warn.word(),
                    text,
                }));
                let (status, value, error) = ended(run.report.ended, run.report.stopped_at);
                RunResult {
                    status,
                    value,
                    relayed: None,
                    error,
                    console,
                    usage: Some(run.report.usage),
                }
            }
            Err(error) => RunResult {
                status: Status::Failed,
                value: None,
                relayed: None,
                error: Some(CallError {
                    retryable: error.retryable(),
                    ..CallError::new(error.reason(), error.to_string())
                }),
                console: Vec::new(),
                usage: None,
            },
        }
    }
}

fn ended(
    ended: Ended,
    stopped_at: Option<StopPlace>,
) -> (Status, Option<Value>, Option<CallError>) {
    let failed = |error| (Status::Failed, None, Some(error));
    let broken = |message: &str| failed(CallError::new(Reason::SandboxBroken, message));
    match ended {
        Ended::Value(json) => match serde_json::from_str(&json) {
            Ok(value) => (Status::Done, Some(value), None),
            // The guest serializes its result. Other text comes from a guest that was
            // taken over.
            Err(_) => broken("the result is not JSON"),
        },
        Ended::Undefined => (Status::Done, None, None),
        Ended::Threw(thrown) => failed(threw(thrown)),
        Ended::Breached(breach) => failed(CallError {
            place: stopped_at.map(|at| (at.line, at.column)),
            ..CallError::new(breach.reason(), RunReport::breach_words(breach, stopped_at))
        }),
        Ended::Cancelled => {
            let error = CallError::new(Reason::CallCancelled, "the call was cancelled");
            (Status::Cancelled, None, Some(error))
        }
        Ended::Broken(_) => broken("the sandbox broke"),
    }
}

fn threw(thrown: Thrown) -> CallError {
    let Thrown {
        name,
        message,
        line,
        column,
        ..
    } = thrown;
    let message = if message.is_empty() {
        name
    } else {
        format!("{name}: {message}")
    };
    CallError {
        place: (line > 0).then_some((line, column)),
        ..CallError::new(Reason::ToolThrew, message)
    }
}
