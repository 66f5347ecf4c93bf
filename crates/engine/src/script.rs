//! Code mode: one script that calls many tools. Every branch of a run is here.
//!
//! The guard reads the script, the sandbox runs it, and each tool it calls is a call
//! of the engine like any other (`host`). `clock` keeps the time of the script and of
//! its tools apart; `journal` lets a script that met an approval go on without
//! repeating what it did, and `held` keeps that on the disk while it does; `report` is
//! what comes back.

mod clock;
mod fault;
mod held;
mod host;
mod journal;
mod limit;
mod report;
mod space;
mod unheard;
mod words;

use std::sync::Arc;
use std::time::Duration;

use guard::{Prepared, Preset};
use model::caller::{Caller, CallerKind, Origin};
use model::config::ScriptPreset;
use model::document::Word as _;
use model::govern::pattern::NamePattern;
use model::reason::Reason;
use model::record::outcome::CallError;
use model::{limits, text};
use sandbox::job::Job;
use sandbox::pool::{Run, RunError};
use serde_json::{Map, Value, json};
use store::{JournalSave, ScriptJournal};
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use crate::engine::Engine;
use crate::refusal::Refusal;
use crate::request::CallRequest;
use crate::run::RunResult;
use crate::work::Work;

pub(crate) use self::held::note_begun;

use self::clock::{ScriptClock, Spent};
use self::held::{JournalOnDisk, on_disk};
use self::host::{Halt, ScriptHost};
use self::journal::{Journal, JournalStep};
use self::limit::ScriptLimits;

/// What execute was asked for.
struct Asked {
    script: String,
    allowed: Option<Vec<NamePattern>>,
    context: Value,
}

/// How a run came to its end.
enum Over {
    Ended(Result<Run, RunError>),
    Halted(Halt),
    Spent(Spent),
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

/// Runs a script.
pub(crate) async fn execute(work: Work<'_>) -> Result<RunResult, Refusal> {
    let asked = asked(&work.arguments)?;
    let preset = preset(&work);
    let mut limits = ScriptLimits::of(preset);
    if let Some(less) = work.engine.tools_ms_max() {
        limits.tools_ms_max = limits.tools_ms_max.min(less);
    }
    let prepared = match prepared(&work, &asked.script, &limits) {
        Ok(prepared) => prepared,
        Err(refused) => return Ok(*refused),
    };
    let _turn = turn(work.engine).await?;
    let pool = work.engine.pool_for_call().await?;
    // Taken last: whoever is turned away before has lost nothing.
    let key = journal::key(&work.request.caller, &work.arguments, preset);
    let (journal, held) = started(&work, key.clone()).await?;
    let people_ms_max = people_ms_max(&work, &limits);
    let job = job(&prepared, asked.context, &limits, people_ms_max, &journal);
    let clock = Arc::new(ScriptClock::start(
        limits.script_ms_max,
        limits.tools_ms_max,
    ));
    let bounds = (limits.tool_calls_max, job.limits.payload_bytes_max);
    let journal = (journal, held.as_ref());
    let host = ScriptHost::new(&work, asked.allowed.as_deref(), bounds, &clock, journal);
    let over = tokio::select! {
        biased;
        ended = pool.run(&work.request.caller.name, job, &host) => Over::Ended(ended),
        halt = host.stopped() => Over::Halted(halt),
        spent = clock.spent() => Over::Spent(spent),
    };
    let (calls, repeated) = host.counts();
    work.powers.note(json!({
        "kind": "script", "preset": preset.word(), "calls": calls, "fromJournal": repeated,
    }));
    let ran = match over {
        Over::Ended(Ok(Run { report, console })) => {
            let ran = report::ran(report, &console, &host, &prepared, &limits);
            let unheard = unheard::stopped(&host.unfinished(), &prepared.calls);
            Ok(report::with_warnings(ran, unheard))
        }
        // What it did is kept, if it had stopped before: it may come again.
        Over::Ended(Err(error)) => return Ok(RunResult::from_run(Err(error))),
        Over::Spent(spent) => {
            let ran = report::spent(spent, &limits);
            Ok(report::with_logs(ran, &host.said()))
        }
        Over::Halted(Halt::TooManyCalls) => {
            let ran = report::too_many_calls(&limits);
            Ok(report::with_logs(ran, &host.said()))
        }
        Over::Halted(Halt::Diverged { tool }) => Err(diverged(&tool)),
        Over::Halted(Halt::Unkept { tool, ran, why }) => return Err(unkept(&tool, ran, &why)),
        Over::Halted(Halt::Pending { tool, message }) => {
            let journal = host.journal();
            return Err(waits(&work, key, (journal, held), &tool, &message).await);
        }
    };
    if let Some(held) = held {
        held.end().await?;
    }
    ran
}

/// What the params cannot say.
fn asked(arguments: &Map<String, Value>) -> Result<Asked, Refusal> {
    let wrong = |message: String| {
        let error = CallError::new(Reason::ArgumentType, message);
        Err(Refusal::new(error))
    };
    let script = arguments.get("script").and_then(Value::as_str);
    let script = script.unwrap_or_default();
    let most = limits::SCRIPT_CHARS_MAX;
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
    Ok(Asked {
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
    let chosen = chosen.filter(|_| is_owner);
    chosen.unwrap_or(work.now.config.codecall.preset)
}

/// The script as it runs, or what the guard says against it.
fn prepared(
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
    // Ours, and of one line; were it not, nothing would run.
    prepared
        .with_prelude(&space::prelude(&spaces))
        .map_err(|fault| {
            Box::new(RunResult::from_run(Err(RunError::Broken(
                fault.to_string(),
            ))))
        })
}

/// Where the script starts: from the beginning, or where it stopped for a person.
async fn started<'a>(
    work: &Work<'a>,
    key: Option<String>,
) -> Result<(Journal, Option<JournalOnDisk<'a>>), Refusal> {
    let engine = work.engine;
    let now_ms = engine.now_ms();
    let taken = match key {
        None => None,
        Some(key) if engine.store().scripts().is_absent(&key) => None,
        Some(key) => on_disk(engine, move |store| store.scripts().take(&key, now_ms))
            .await
            .map_err(|why| {
                let message = "what scripts have done cannot be read; it did not run";
                let error = CallError::passing(Reason::ScriptJournal, message);
                Refusal::new(error).noted(why)
            })?,
    };
    let Some(taken) = taken else {
        return Ok((Journal::begin(engine.moment()), None));
    };
    let held = JournalOnDisk::new(engine, taken.id, work.now.config.approvals.clone());
    let mut journal = Journal::read(&taken.journal);
    let begun = journal
        .as_mut()
        .and_then(|journal| journal.extend(&taken.steps));
    let (Some(mut journal), Some(begun)) = (journal, begun) else {
        held.end().await?;
        return Err(unreadable());
    };
    for call in begun {
        let done = host::interrupted(call, journal.clock_ms());
        let added = held.add(&JournalStep::Finished(done.clone())).await;
        added.map_err(|why| unkept(&done.tool, true, why))?;
        journal.done.push(done);
    }
    Ok((journal, Some(held)))
}

/// Scripts hold a place in the sandbox while their tools need others; some are left.
async fn turn(engine: &Engine) -> Result<SemaphorePermit<'_>, Refusal> {
    let wait = Duration::from_millis(limits::SCRIPT_WAIT_MS_MAX);
    match timeout(wait, engine.scripts().acquire()).await {
        Ok(Ok(turn)) => Ok(turn),
        Ok(Err(_)) | Err(_) => {
            let message = "too many scripts run at one time; try again later";
            Err(Refusal::new(CallError::passing(
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
    let moment = journal.moment();
    let globals = json!({
        "__ag_now": moment.now_ms, "__ag_context": context,
        guard::runtime::TURNS: limits.iterations_max,
    });
    Job {
        body: prepared.code.clone(),
        globals: globals.to_string(),
        declared: Vec::new(),
        powers: vec!["guard".to_owned(), "script".to_owned()],
        limits: limits.sandbox(people_ms_max),
        seed: moment.seed,
        now_ms: moment.now_ms,
    }
}

/// A person must answer first. What is done is kept, or the script counts as stopped
/// for good: going on without a journal would do it all again.
async fn waits(
    work: &Work<'_>,
    key: Option<String>,
    (journal, held): (Journal, Option<JournalOnDisk<'_>>),
    tool: &str,
    message: &str,
) -> Refusal {
    let count = text::count(journal.done.len(), "finished call");
    let tool = text::elided(tool, 200);
    let why = match kept(work, key, &journal, held.as_ref()).await {
        Ok(JournalSave::Yes) => {
            if let Some(held) = held {
                held.was_kept();
            }
            let are = match journal.done.len() {
                1 => "is",
                _ => "are",
            };
            let words = format!(
                "the script stopped at `{tool}`: {message}; {count} {are} kept and not repeated"
            );
            let error = CallError::passing(Reason::ApprovalPending, words);
            return Refusal::new(error);
        }
        Ok(JournalSave::TooLong) => "it is too much",
        Ok(JournalSave::TooMany) => "too many scripts wait already",
        Ok(JournalSave::Gone) => "another process goes on with it",
        Err(_) => "the disk did not take it",
    };
    let words = format!(
        "a person must approve the call of `{tool}`, and what the script had done could not be kept: {why}; \
         it was stopped after {count}"
    );
    Refusal::new(CallError::new(Reason::ScriptJournal, words))
}

/// Keeps what is done, as long as the question waits and its answer counts.
async fn kept(
    work: &Work<'_>,
    key: Option<String>,
    journal: &Journal,
    held: Option<&JournalOnDisk<'_>>,
) -> Result<JournalSave, String> {
    let (Some(key), Some(journal)) = (key, journal.write()) else {
        return Ok(JournalSave::TooLong);
    };
    let kept_at_ms = work.engine.now_ms();
    let script = ScriptJournal {
        key,
        caller: work.request.caller.name.clone(),
        kept_at_ms,
        expires_at_ms: held::expires_at_ms(&work.now.config.approvals, kept_at_ms),
        journal,
    };
    let held = held.map(|held| held.id);
    on_disk(work.engine, move |store| {
        store.scripts().keep(&script, held)
    })
    .await
}

fn diverged(tool: &str) -> Refusal {
    let tool = text::elided(tool, 200);
    let words = format!(
        "the script went another way than before it stopped, at its call of `{tool}`; nothing more ran, \
         make the call again to start over"
    );
    Refusal::new(CallError::new(Reason::ScriptDiverged, words))
}

/// What is on the disk stays there: whoever makes the call again goes on from it.
fn unkept(tool: &str, ran: bool, why: &str) -> Refusal {
    let tool = text::elided(tool, 200);
    let what = match ran {
        true => format!("after `{tool}`: what came of it could not be written down"),
        false => format!("before `{tool}` ran: that could not be written down"),
    };
    let words = format!(
        "the script was stopped {what}: {why}; make the same call again, finished calls are kept and not \
         repeated"
    );
    Refusal::new(CallError::passing(Reason::ScriptJournal, words))
}

fn unreadable() -> Refusal {
    let words = "what the script had done before it stopped cannot be read; nothing ran, make the call \
                 again to start over";
    Refusal::new(CallError::new(Reason::ScriptJournal, words))
}
