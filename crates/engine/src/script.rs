//! Code mode: one script that calls many tools. Every branch of a run is here.
//!
//! The guard reads the script, the sandbox runs it, and each tool it calls is a call
//! of the engine like any other. `report` is what comes back.

/// The calls of a script, and why it must stop.
mod calls;
/// The time of the script and of its tools, apart.
mod clock;
/// The error that a script gets for a failed call.
mod fault;
/// What a script can ask of its host.
mod host;
/// What a script has done, so that it can go on after an approval and repeat nothing.
mod journal;
/// The limits of each preset.
mod limit;
/// The answer to the sender of the script.
mod report;
/// Tools a script calls as `space.method(args)`.
mod space;
/// The journal in the store, while a script goes on.
mod stored_journal;
/// One tool called by a script.
mod tool_call;
/// Warnings about calls and promises that nothing awaited.
mod unawaited;
/// Messages of the JavaScript engine in plain words.
mod words;

use std::sync::Arc;
use std::time::Duration;

use guard::{Prepared, Preset};
use model::caller::{Caller, CallerKind, Origin};
use model::config::ScriptPreset;
use model::govern::pattern::NamePattern;
use model::reason::Reason;
use model::record::outcome::CallError;
use model::word::Word as _;
use model::{limits, text};
use sandbox::job::Job;
use sandbox::pool::{FinishedRun, RunError};
use serde_json::{Map, Value, json};
use store::{JournalSave, ScriptJournal};
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use crate::engine::Engine;
use crate::refusal::CallRefusal;
use crate::request::CallRequest;
use crate::run::RunResult;
use crate::waiting_script::RunningScript;
use crate::work::Work;

pub(crate) use self::stored_journal::note_begun;

use self::calls::Halt;
use self::clock::{ScriptClock, Spent};
use self::host::ScriptHost;
use self::journal::{Journal, JournalStep};
use self::limit::ScriptLimits;
use self::stored_journal::{StoredJournal, with_store};

/// The arguments of execute.
struct ScriptArguments {
    script: String,
    allowed: Option<Vec<NamePattern>>,
    context: Value,
}

/// How a run ended.
enum RunEnd {
    Ended(Result<FinishedRun, RunError>),
    Halted(Halt),
    OutOfTime(Spent),
}

impl Engine {
    /// Judges a script as execute would for the owner, without running it; under the
    /// operator's preset if none is named.
    #[must_use]
    pub fn check_script(&self, script: &str, preset: Option<ScriptPreset>) -> Value {
        let now = self.registry().current();
        let limits = ScriptLimits::of(preset.unwrap_or(now.config.codecall.preset));
        let mut preset = Preset::agent_script(limits.level);
        let request = CallRequest::new(Caller::owner(), Origin::Cli, "", Value::Null);
        let spaces = space::of(&now, &request, self.variable_source(), script, &preset);
        preset.extra_globals = spaces.into_keys().collect();
        let report = guard::check(script, &preset);
        let issues: Vec<_> = report.issues.iter().map(report::issue_json).collect();
        json!({"valid": report.valid, "issues": issues})
    }
}

/// Removes the text that was written down for a person.
async fn forget_script(work: &Work<'_>, running: Arc<RunningScript>) {
    if running.is_written() {
        // One that stays is removed when it is too old for any question.
        let _ = with_store(work.engine, move |store| running.forget(store)).await;
    }
}

/// Runs a script.
pub(crate) async fn execute(work: Work<'_>) -> Result<RunResult, CallRefusal> {
    let given = check_arguments(&work.arguments)?;
    let preset = preset(&work);
    let mut limits = ScriptLimits::of(preset);
    if let Some(less) = work.engine.tools_ms_max() {
        limits.tools_ms_max = limits.tools_ms_max.min(less);
    }
    let prepared = match prepare(&work, &given.script, &limits) {
        Ok(prepared) => prepared,
        // The guard's findings are the answer of `execute`, not a refusal of the call.
        Err(refused) => return Ok(*refused),
    };
    // After the guard: a script that is refused takes no turn.
    let _turn = take_turn(work.engine).await?;
    let pool = work.engine.pool_for_call().await?;
    // The journal is taken last: a call that is refused before has lost nothing.
    let key = journal::key(&work.request.caller, &work.arguments, preset);
    let (journal, stored) = open_journal(&work, key.clone()).await?;
    let people_ms_max = people_ms_max(&work, &limits);
    let job = job(&prepared, given.context, &limits, people_ms_max, &journal);
    let clock = Arc::new(ScriptClock::start(
        work.engine.stopwatch(),
        limits.script_ms_max,
        limits.tools_ms_max,
    ));
    let bounds = (limits.tool_calls_max, job.limits.payload_bytes_max);
    let journal = (journal, stored.as_ref());
    let allowed = given.allowed.as_deref();
    let running = Arc::new(running_script(&work, &given.script, &prepared));
    let host = ScriptHost::new(&work, allowed, bounds, &clock, journal, &running);
    let calls = host.calls();
    // Biased: a script that has ended keeps its result even if its time ran out in the
    // same poll.
    let end = tokio::select! {
        biased;
        ended = pool.run(&work.request.caller.name, job, &host) => RunEnd::Ended(ended),
        halt = calls.wait_for_halt() => RunEnd::Halted(halt),
        spent = clock.wait_until_spent() => RunEnd::OutOfTime(spent),
    };
    let (count, repeated) = host.counts();
    work.powers.note(json!({
        "kind": "script", "preset": preset.word(), "calls": count, "fromJournal": repeated,
    }));
    let result = match end {
        RunEnd::Ended(Ok(FinishedRun { report, console })) => {
            let result = report::ran(report, &console, &host, &prepared, &limits);
            let stopped = unawaited::stopped(&calls.unanswered(), &prepared.calls);
            let result = report::with_warnings(result, stopped);
            Ok(report::warn(result, calls.take_notes()))
        }
        // The sandbox broke, not the script. A stored journal stays: the same call, made
        // again, goes on from it.
        RunEnd::Ended(Err(error)) => return Ok(RunResult::from_run(Err(error))),
        RunEnd::OutOfTime(spent) => {
            let result = report::spent(spent, &limits);
            Ok(report::with_logs(result, &calls.take_console()))
        }
        RunEnd::Halted(Halt::TooManyCalls) => {
            let result = report::too_many_calls(&limits);
            Ok(report::with_logs(result, &calls.take_console()))
        }
        // Its journal is removed below: it is of no use to a script that takes another
        // path.
        RunEnd::Halted(Halt::Diverged { tool }) => Err(diverged(&tool)),
        RunEnd::Halted(Halt::NotJournaled { tool, ran, why }) => {
            return Err(not_journaled(&tool, ran, &why));
        }
        RunEnd::Halted(Halt::Pending { tool, message }) => {
            let journal = (calls.journal(), stored);
            return Err(stop_for_approval(&work, key, journal, &tool, &message).await);
        }
    };
    forget_script(&work, running).await;
    if let Some(stored) = stored {
        stored.end().await?;
    }
    result
}

/// Checks what the params of execute cannot say.
fn check_arguments(arguments: &Map<String, Value>) -> Result<ScriptArguments, CallRefusal> {
    let wrong = |message: String| {
        let error = CallError::new(Reason::ArgumentType, message);
        Err(CallRefusal::new(error))
    };
    let script = arguments.get("script").and_then(Value::as_str);
    let script = script.unwrap_or_default();
    let most = limits::SCRIPT_CHARS_MAX;
    // Bytes first: they are counted already, and no text has more characters than bytes.
    if script.len() > most && script.chars().count() > most {
        return wrong(format!(
            "the argument `script` has more than {most} characters"
        ));
    }
    let allowed = match arguments.get("allowedTools").and_then(Value::as_array) {
        None => None,
        Some(names) if names.len() > limits::SCRIPT_ALLOWED_TOOLS_MAX => {
            let most = limits::SCRIPT_ALLOWED_TOOLS_MAX;
            return wrong(format!(
                "the argument `allowedTools` has more than {most} names"
            ));
        }
        Some(names) => match names.iter().map(pattern).collect::<Option<Vec<_>>>() {
            None => {
                return wrong("the argument `allowedTools` must hold names of tools".to_owned());
            }
            some => some,
        },
    };
    let context = arguments.get("context").cloned();
    Ok(ScriptArguments {
        script: script.to_owned(),
        allowed,
        context: context.unwrap_or_else(|| json!({})),
    })
}

fn pattern(name: &Value) -> Option<NamePattern> {
    NamePattern::parse(name.as_str()?).ok()
}

/// The operator's preset. The owner at a terminal may choose another for one run.
fn preset(work: &Work<'_>) -> ScriptPreset {
    let chosen = work.request.preset;
    let is_owner = work.request.caller.kind == CallerKind::Owner;
    // Looser limits are the operator's to give, not a caller's to take.
    let chosen = chosen.filter(|_| is_owner);
    chosen.unwrap_or(work.now.config.codecall.preset)
}

/// The script as it runs, or the answer that says why the guard refuses it.
fn prepare(
    work: &Work<'_>,
    script: &str,
    limits: &ScriptLimits,
) -> Result<Prepared, Box<RunResult>> {
    let mut preset = Preset::agent_script(limits.level);
    let spaces = space::of(
        work.now,
        work.request,
        work.engine.variable_source(),
        script,
        &preset,
    );
    preset.extra_globals = spaces.keys().cloned().collect();
    let prepared = guard::prepare(script, &preset)
        .map_err(|report| Box::new(report::refused(&report, script)))?;
    // The prelude is ours and one line long, so this cannot fail; if it did, the script
    // must not run without it.
    prepared
        .with_prelude(&space::prelude(&spaces))
        .map_err(|fault| {
            Box::new(RunResult::from_run(Err(RunError::Broken(
                fault.to_string(),
            ))))
        })
}

/// The script, for a person who is asked about one of its calls.
fn running_script(work: &Work<'_>, script: &str, prepared: &Prepared) -> RunningScript {
    let target = |name: &str| work.now.script_target(name);
    RunningScript::new(work.call_id, script, &prepared.calls, target)
}

/// Opens the journal: a new one, or the stored one of a script that stopped for a person.
async fn open_journal<'a>(
    work: &Work<'a>,
    key: Option<String>,
) -> Result<(Journal, Option<StoredJournal<'a>>), CallRefusal> {
    let engine = work.engine;
    let now_ms = engine.now_ms();
    let taken = match key {
        None => None,
        Some(key) if engine.store().scripts().is_absent(&key) => None,
        Some(key) => with_store(engine, move |store| store.scripts().take(&key, now_ms))
            .await
            .map_err(|why| {
                let message = "the script's journal cannot be read; the script did not run";
                let error = CallError::passing(Reason::ScriptJournal, message);
                CallRefusal::new(error).noted(why)
            })?,
    };
    let Some(taken) = taken else {
        return Ok((Journal::begin(engine.run_start()), None));
    };
    let stored = StoredJournal::new(engine, taken.id, work.now.config.approvals.clone());
    let mut journal = Journal::read(&taken.journal);
    let begun = journal
        .as_mut()
        .and_then(|journal| journal.extend(&taken.steps));
    let (Some(mut journal), Some(begun)) = (journal, begun) else {
        // It would stand in the way of every later call with these arguments.
        stored.end().await?;
        return Err(unreadable());
    };
    // The results of these calls are not known. They count as finished, so that they are
    // not made twice.
    for call in begun {
        let call = tool_call::interrupted(call, journal.clock_ms());
        let added = stored.add(&JournalStep::Finished(call.clone())).await;
        added.map_err(|why| not_journaled(&call.tool, true, why))?;
        journal.done.push(call);
    }
    Ok((journal, Some(stored)))
}

/// Waits for the turn of this script. A script holds a place in the sandbox while its
/// tools need others, so without this bound scripts could leave none for tools.
async fn take_turn(engine: &Engine) -> Result<SemaphorePermit<'_>, CallRefusal> {
    let wait = Duration::from_millis(limits::SCRIPT_WAIT_MS_MAX);
    match timeout(wait, engine.scripts().acquire()).await {
        Ok(Ok(turn)) => Ok(turn),
        Ok(Err(_)) | Err(_) => {
            let message = "too many scripts are running; try again later";
            Err(CallRefusal::new(CallError::passing(
                Reason::SandboxBusy,
                message,
            )))
        }
    }
}

/// How long people may take, all questions of the script together.
fn people_ms_max(work: &Work<'_>, limits: &ScriptLimits) -> u64 {
    let one = work.now.config.approvals.wait_seconds.saturating_mul(1_000);
    let all = one.saturating_mul(u64::from(limits.tool_calls_max));
    all.min(limits::APPROVAL_SECONDS_MAX * 1_000)
}

fn job(
    prepared: &Prepared,
    context: Value,
    limits: &ScriptLimits,
    people_ms_max: u64,
    journal: &Journal,
) -> Job {
    let start = journal.run_start();
    let globals = json!({
        "__ag_now": start.now_ms, "__ag_context": context,
        guard::runtime::TURNS: limits.iterations_max,
    });
    Job {
        body: prepared.code.clone(),
        globals: globals.to_string(),
        declared: Vec::new(),
        powers: vec!["guard".to_owned(), "script".to_owned()],
        limits: limits.sandbox(people_ms_max),
        // From the journal: a script that goes on must take the same path as before.
        seed: start.seed,
        now_ms: start.now_ms,
    }
}

/// Ends a script that waits for a person. If its journal cannot be kept, the script is
/// stopped for good: without a journal, going on would repeat every call.
async fn stop_for_approval(
    work: &Work<'_>,
    key: Option<String>,
    (journal, stored): (Journal, Option<StoredJournal<'_>>),
    tool: &str,
    message: &str,
) -> CallRefusal {
    let count = text::count(journal.done.len(), "finished call");
    let tool = text::elided(tool, 200);
    let why = match keep_journal(work, key, &journal, stored.as_ref()).await {
        Ok(JournalSave::Yes) => {
            if let Some(stored) = stored {
                stored.forget();
            }
            let are = match journal.done.len() {
                1 => "is",
                _ => "are",
            };
            let words = format!(
                "the script stopped at `{tool}`: {message}; {count} {are} kept and not repeated"
            );
            let error = CallError::passing(Reason::ApprovalPending, words);
            return CallRefusal::new(error);
        }
        Ok(JournalSave::TooLong) => "it is too large",
        Ok(JournalSave::TooMany) => "too many scripts are waiting",
        Ok(JournalSave::Gone) => "another process runs the script",
        Err(_) => "it could not be written to disk",
    };
    let words = format!(
        "a person must approve the call of `{tool}`, and the script's journal could not be saved: {why}; \
         the script stopped after {count}"
    );
    CallRefusal::new(CallError::new(Reason::ScriptJournal, words))
}

/// Keeps the journal as long as the question can be answered and its answer counts.
async fn keep_journal(
    work: &Work<'_>,
    key: Option<String>,
    journal: &Journal,
    stored: Option<&StoredJournal<'_>>,
) -> Result<JournalSave, String> {
    let (Some(key), Some(journal)) = (key, journal.write()) else {
        return Ok(JournalSave::TooLong);
    };
    let kept_at_ms = work.engine.now_ms();
    let script = ScriptJournal {
        key,
        caller: work.request.caller.name.clone(),
        kept_at_ms,
        expires_at_ms: stored_journal::expires_at_ms(&work.now.config.approvals, kept_at_ms),
        journal,
    };
    let stored = stored.map(|stored| stored.id);
    with_store(work.engine, move |store| {
        store.scripts().keep(&script, stored)
    })
    .await
}

fn diverged(tool: &str) -> CallRefusal {
    let tool = text::elided(tool, 200);
    let words = format!(
        "the script took another path than before it stopped, at its call of `{tool}`; nothing more ran, \
         make the call again to start over"
    );
    CallRefusal::new(CallError::new(Reason::ScriptDiverged, words))
}

/// What is stored stays stored: the same call, made again, goes on from it.
fn not_journaled(tool: &str, ran: bool, why: &str) -> CallRefusal {
    let tool = text::elided(tool, 200);
    let what = match ran {
        true => format!("after `{tool}`: its result could not be saved"),
        false => format!("before `{tool}` ran: the journal could not be saved"),
    };
    let words = format!(
        "the script stopped {what}: {why}; make the same call again, finished calls are kept and not \
         repeated"
    );
    CallRefusal::new(CallError::passing(Reason::ScriptJournal, words))
}

fn unreadable() -> CallRefusal {
    let words =
        "the journal of the script cannot be read; nothing ran, make the call again to start over";
    CallRefusal::new(CallError::new(Reason::ScriptJournal, words))
}
