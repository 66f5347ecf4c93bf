//! Background jobs: a command like that of `shell`, in the jail, that goes on after the call
//! that started it. A job is its caller's own: for everyone else it is not there.

use std::sync::Arc;
use std::time::Duration;

use host::files::changes::CollectedChanges;
use model::reason::Reason;
use model::record::audit::Status;
use model::record::outcome::CallError;
use model::text;
use model::word::Word as _;
use serde_json::{Value, json};
use store::{JobRow, NewJob, StoreError};

use crate::bodies::toolbox::ToolboxWork;
use crate::bodies::toolbox::command::environment;
use crate::changes::ChangeRecord;
use crate::jailed::{JailedCommand, OutputStream};
use crate::jobs::{JobOrder, log_bytes, read_log};
use crate::limit;
use crate::refusal::CallRefusal;
use crate::run::RunResult;

/// `jobStart`.
pub(super) async fn start(work: &ToolboxWork<'_>) -> Result<RunResult, CallRefusal> {
    let toolbox = &work.now.config.toolbox;
    let jailer = work.engine.jailer();
    let sh = jailer.find("sh")?;
    let staged = work.stage().await?;
    let start = work.start("workingDirectory", staged.folder.path())?;
    let network = work.network()?;
    let line = work.text("command").unwrap_or_default();
    // Random: no caller guesses another's.
    let id = uuid::Uuid::new_v4().simple().to_string();
    let shown = work.masker.text(&text::one_line(line));
    let job = NewJob {
        id: id.clone(),
        caller: work.request.caller.name.clone(),
        call_id: work.call_id.clone(),
        command: shown.elided(limit::JOB_COMMAND_CHARS_MAX).into_inner(),
        started_at_ms: work.engine.now_ms(),
    };
    // The row comes first. It takes the place among the caller's jobs, counted over all
    // processes.
    let store = work.engine.store();
    let admitted = store.jobs().start(&job, toolbox.jobs_per_caller_max);
    let admitted = admitted.map_err(|fault| unavailable(&fault))?;
    if !work.engine.jobs().tell(admitted) {
        let most = toolbox.jobs_per_caller_max;
        let message = format!("{most} background jobs run already; cancel one or wait for its end");
        let error = CallError::passing(Reason::JobTooMany, message);
        return Err(CallRefusal::new(error));
    }
    let asked = work.number("seconds").unwrap_or(toolbox.job_seconds_max);
    let jobs = work.engine.jobs();
    jobs.start(JobOrder {
        id: id.clone(),
        caller: job.caller,
        call_id: job.call_id,
        masker: Arc::clone(&work.masker),
        origin: work.request.origin.word(),
        command: JailedCommand {
            command: vec![sh, "-c".to_owned(), line.to_owned()],
            environment: environment(work),
            stdin: Vec::new(),
            own_folder: jobs.folder(&id).join("home"),
            folder: staged.folder,
            start,
            network,
            time: Duration::from_secs(asked.min(toolbox.job_seconds_max)),
            stop: None,
        },
        jailer,
        limits: toolbox.clone(),
        aside: staged.staging.map(|staging| {
            let record = ChangeRecord {
                caller: work.request.caller.name.clone(),
                call_id: work.call_id.clone(),
                folder: work.policy.fs_base_path.clone().unwrap_or_default(),
                collected: CollectedChanges::default(),
            };
            (work.engine.changes().clone(), staging, record)
        }),
    });
    work.powers
        .note(json!({"kind": "job", "job": id, "state": "running"}));
    Ok(RunResult::done(json!({"job": id, "state": "running"})))
}

/// `jobStatus`.
pub(super) fn status(work: &ToolboxWork<'_>) -> Result<RunResult, CallRefusal> {
    Ok(RunResult::done(shown(work, &find(work)?)))
}

/// `jobOutput`.
pub(super) fn output(work: &ToolboxWork<'_>) -> Result<RunResult, CallRefusal> {
    let row = find(work)?;
    let stream = match work.text("stream") {
        Some("stderr") => OutputStream::Stderr,
        _ => OutputStream::Stdout,
    };
    let folder = work.engine.jobs().folder(&row.job.id);
    let from = work.number("from").unwrap_or(0);
    let bytes_max = work.now.config.toolbox.output_bytes_max;
    let part = read_log(&folder, stream, (from, bytes_max), &work.masker);
    Ok(RunResult::done(json!({
        "job": row.job.id, "state": state(&row), "stream": stream.word(), "text": part.text,
        "from": part.from, "next": part.next, "missing": part.missing,
    })))
}

/// `jobCancel`.
pub(super) async fn cancel(work: &ToolboxWork<'_>) -> Result<RunResult, CallRefusal> {
    let row = find(work)?;
    let ends_here = row.end.is_none() && work.engine.jobs().cancel(&row.job.id).await;
    // Read again: it may have ended in the meantime.
    let row = find(work)?;
    if row.end.is_none() && !ends_here {
        let message = "the job runs in another process of this home; cancel it there";
        let error = CallError::new(Reason::JobUnknown, message);
        return Err(CallRefusal::with_status(Status::Failed, error));
    }
    Ok(RunResult::done(json!({
        "job": row.job.id, "state": state(&row),
    })))
}

/// `jobList`.
pub(super) fn list(work: &ToolboxWork<'_>) -> Result<RunResult, CallRefusal> {
    let jobs = work.engine.store().jobs();
    let caller = &work.request.caller.name;
    let rows = jobs
        .of(caller, work.engine.now_ms())
        .map_err(|fault| unavailable(&fault))?;
    let rows = work.engine.jobs().tell(rows);
    let rows: Vec<_> = rows.iter().map(|row| shown(work, row)).collect();
    Ok(RunResult::done(json!({"jobs": rows})))
}

/// The job that the argument names, if it is the caller's.
fn find(work: &ToolboxWork<'_>) -> Result<JobRow, CallRefusal> {
    let id = work.text("job").unwrap_or_default();
    let jobs = work.engine.store().jobs();
    let found = jobs.get(id, &work.request.caller.name, work.engine.now_ms());
    let found = found.map_err(|fault| unavailable(&fault))?;
    work.engine.jobs().tell(found).ok_or_else(|| {
        let message = format!("you have no job `{id}`");
        CallRefusal::with_status(Status::Failed, CallError::new(Reason::JobUnknown, message))
    })
}

fn unavailable(fault: &StoreError) -> CallRefusal {
    let message = "background jobs cannot be looked up just now; the operator can see why";
    let error = CallError::passing(Reason::JobUnavailable, message);
    CallRefusal::with_status(Status::Failed, error).noted(crate::error::causes(fault))
}

fn state(row: &JobRow) -> &'static str {
    row.end.as_ref().map_or("running", |end| end.state.word())
}

fn shown(work: &ToolboxWork<'_>, row: &JobRow) -> Value {
    let end = row.end.as_ref();
    let folder = work.engine.jobs().folder(&row.job.id);
    // The row has the numbers once the job has ended; until then its files tell.
    let bytes = |stream: OutputStream| match (end, stream) {
        (Some(end), OutputStream::Stdout) => Some(end.stdout_bytes),
        (Some(end), OutputStream::Stderr) => Some(end.stderr_bytes),
        (None, stream) => log_bytes(&folder, stream),
    };
    json!({
        "job": row.job.id,
        "state": state(row),
        "command": row.job.command,
        "startedAtMs": row.job.started_at_ms,
        "endedAtMs": end.map(|end| end.ended_at_ms),
        "exitCode": end.and_then(|end| end.exit_code),
        "stdoutBytes": bytes(OutputStream::Stdout),
        "stderrBytes": bytes(OutputStream::Stderr),
        "why": end.and_then(|end| end.why.clone()),
        "changes": end.and_then(|end| end.changes.clone()).map(|id| json!({"id": id})),
    })
}
