//! The one path of a call. Every door enters here, and each step is named in `walk`.
//! `gates` decides, `approve` asks a person, `body` runs.
//!
//! No audit entry, no run: it is opened before anything is looked at and closed
//! before the answer leaves. If it cannot be closed, the result is withheld.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use model::policy::risk::Level;
use model::reason::Reason;
use model::record::audit::{Opening, Status};
use model::record::mask::Masked;
use model::record::outcome::{CallError, Outcome};
use model::{document::digest, text};
use store::approvals::ChangedArguments;
use store::{OpenRow, StoreError};

use crate::approve::obtain;
use crate::body;
use crate::engine::Engine;
use crate::error::causes;
use crate::gates::{self, CheckedCall, DecidedCall, HeldTool};
use crate::hold::CallHold;
use crate::limit::NAME_SHOWN_CHARS_MAX;
use crate::record::CallRecord;
use crate::refusal::{CallRefusal, Gate, GatePass, GateResult, Notes as _};
use crate::report::CallReport;
use crate::run::RunResult;
use crate::scratch::Scratch;
use crate::snapshot::Snapshot;

mod changed;
mod even;
pub(crate) mod question;

pub use bridge::{ElicitAnswer, ElicitQuestion, Elicitor};

pub use crate::request::{
    CallPurpose, CallRequest, CallTarget, ParentCall, Progress, Refused, Trial,
};

impl Engine {
    /// One call, from any door.
    pub fn call(&self, request: CallRequest) -> BoxFuture<'_, Masked<Outcome>> {
        // Boxed here because rustc compiles a future again in every crate that awaits it,
        // and this one holds most of the program.
        Box::pin(self.record_call(request))
    }

    async fn record_call(&self, mut request: CallRequest) -> Masked<Outcome> {
        let started = Instant::now();
        // The timer's clock: `even_out` sleeps to a moment counted from here.
        let began = tokio::time::Instant::now();
        let opening = opening(self, &request);
        // `record` and `hold` live outside of `walk`. A cancelled walk is dropped in the
        // middle; its notes must still reach the audit, and its place must be given back
        // before the answer.
        let mut record = CallRecord::new(opening.call_id.clone(), started, self.observer());
        let mut hold = CallHold::default();
        // Invariant 4. Nothing is looked at before the entry is there, so that an attempt
        // at a tool that does not exist leaves a trace as well.
        let row = match open_row(self, opening).await {
            Ok(row) => row,
            Err(fault) => return withhold(self, &record, &fault),
        };
        self.observe("opened");
        // One snapshot for the call, taken by its door or here.
        let seen = request.snapshot.take();
        let now = seen.unwrap_or_else(|| self.registry().current());
        // Biased, so that a cancelled call does not start its body in the same poll.
        let walked = tokio::select! {
            biased;
            () = request.cancel.cancelled() => Err(cancelled()),
            () = sleep_until(request.deadline) => Err(late()),
            walked = walk(self, now, &request, &row, &mut record, &mut hold) => walked,
        };
        self.observe("ran");
        let outcome = record.outcome(walked);
        // Everything a call changes is written before its row is closed: a caller that
        // has its answer finds its place free, its denial counted and its row complete.
        hold.release_quota(self.alarm_of()).await;
        self.callers_book().count(&request, outcome.get()).await;
        self.count_for_trust(&request, outcome.get());
        let closing = record.closing(&outcome, self.now_ms());
        // Most servers have none, and a report copies strings.
        let has_reporters = self.has_reporters();
        let steps = record.take_steps();
        let report =
            has_reporters.then(|| CallReport::new(record.call_id(), &request, &closing, steps));
        match self.store().audit().close(row, closing).await {
            Ok(_) => {
                self.observe("closed");
                self.report(report);
                // Last, so that the delay also covers the writes above: how long they
                // take may depend on whether the tool exists.
                even::even_out(&request, outcome.get(), began).await;
                outcome
            }
            Err(fault) => withhold(self, &record, &fault),
        }
    }
}

/// Opens the audit entry. If the log has no room, the settings are read again: they may
/// allow more than when the last call was made.
async fn open_row(engine: &Engine, opening: Opening) -> Result<OpenRow, StoreError> {
    match engine.store().audit().open(opening.clone()).await {
        Err(StoreError::Full { .. }) => {
            engine.registry().current();
            engine.store().audit().open(opening).await
        }
        opened => opened,
    }
}

/// The answer to a call that could not be written down.
fn withhold(engine: &Engine, record: &CallRecord, fault: &StoreError) -> Masked<Outcome> {
    engine.alarm(&format!(
        "call {} could not be recorded: {}",
        record.call_id(),
        causes(fault)
    ));
    record.unwritten()
}

/// Steps 2 to 9 of a call, from the caller to the run. ARCHITECTURE.md numbers them; every
/// gate is noted in the record, so that the entry names the one that refused.
async fn walk(
    engine: &Engine,
    now: Arc<Snapshot>,
    request: &CallRequest,
    row: &OpenRow,
    record: &mut CallRecord,
    hold: &mut CallHold,
) -> Result<RunResult, CallRefusal> {
    // Before the first gate: whether arguments are kept holds for refusals, too.
    record.follow(&now.config);
    // A door that refuses does so here, behind the open row, so that the audit has the
    // attempt.
    if let Some(refused) = &request.refused {
        return record.gate(refused.gate, Err(refused.refusal()));
    }
    let (mut now, caller) = check_caller(engine, request, now).await;
    // One moment for all rules, so that none of them sees another day or hour.
    let at_ms = engine.now_ms();
    // Also for a caller that is refused next: a candidate is compared on every attempt.
    record.note_shadow(gates::shadow(&now, request, at_ms));
    record.gate(Gate::Caller, caller)?;
    let mut checked = gates::judge(&now, request, engine.variable_source(), at_ms, record)?;
    let CheckedCall { decided, .. } = &checked;
    let held = &decided.held;
    // Anyone may have written a document on trial. Its owner agrees to its reach
    // before it takes a place under the limits or a person's attention.
    if gates::is_trial(request, &held.found) && held.reaches_out() {
        record.gate(Gate::Approval, gates::check_consent(held))?;
    }
    // Before a person is asked: a caller over its limit must not be able to fill the
    // inbox.
    let tool = &held.found.usable.document.name;
    let quota = engine
        .quotas()
        .take(&now.config, request, tool, held.groups());
    hold.hold_quota(record.gate(Gate::Limits, quota.await)?);
    // Declared here, because `request` borrows it until the end.
    let mut instead = None;
    if decided.asks {
        let answer = Box::pin(ask(engine, &now, request, record, &checked)).await;
        let (changed, newest) = record.gate(Gate::Approval, answer)?;
        // The body runs by what holds now: a connection or a folder that was taken away
        // while the person thought must not serve this call any more.
        now = newest;
        if let Some(changed) = changed {
            let request = changed::request(request, &changed)?;
            // The approval covers the changed call only, so that call passes all gates
            // itself.
            checked = changed::judge_again(engine, &now, &request, &checked, &changed, record)?;
            instead = Some(request);
        }
    }
    let request = instead.as_ref().unwrap_or(request);
    // After the approval, which may take a day, and before the body: a crash during a
    // high-risk call must leave its entry.
    if is_grave(&checked.decided.held) {
        let ship = engine.registry().current().config.audit.ship.clone();
        let ships =
            ship.is_some_and(|ship| ship.sync) && checked.decided.held.risk.level >= Level::L4;
        record.gate(Gate::Audit, sync_opening(engine, row, ships).await)?;
    }
    if request.purpose == CallPurpose::LocalPass {
        hold.hold_scratch(Scratch::new(engine.home(), record.call_id()));
    }
    body::run(engine, &now, request, checked, record, hold).await
}

/// Step 2, and the one snapshot the rest of the call is checked by. Trust that is due is
/// recomputed, so that the snapshot has the level the caller has now. A paused caller is
/// refused before that: it must not be able to make work.
async fn check_caller(
    engine: &Engine,
    request: &CallRequest,
    now: Arc<Snapshot>,
) -> (Arc<Snapshot>, GateResult<()>) {
    // Pauses, limits and approvals are in this store. Without it no gate can answer, so
    // the call stops here (invariant 8).
    if let Err(fault) = engine.store().reach() {
        return (now, Err(unreached(engine, &fault)));
    }
    let book = engine.callers_book();
    let mut passed = match book.check(&now, request).await {
        // A Local Pass is the owner's own test. It neither earns nor loses trust.
        Ok(passed) if request.purpose == CallPurpose::Call => passed,
        checked => return (now, checked),
    };
    let schedule = engine.trust_schedule();
    match schedule
        .recompute_if_due(&now.config, &request.caller)
        .await
    {
        Ok(None) => (now, Ok(passed)),
        Ok(Some(recomputed)) => {
            passed.note = format!("{}; {recomputed}", passed.note);
            (engine.registry().current(), Ok(passed))
        }
        Err(why) => (now, Err(book.unavailable(&why))),
    }
}

/// The refusal of a call while the store that nodes share does not answer.
fn unreached(engine: &Engine, fault: &StoreError) -> CallRefusal {
    engine.alarm(&causes(fault));
    let message = "the shared store does not answer; the call did not run, try again later";
    let error = CallError::passing(Reason::StoreUnavailable, message);
    CallRefusal::new(error).noted(causes(fault))
}

/// Step 8: has a person agreed, and does what they agreed to still hold? A person may
/// take long, so the newest snapshot is asked.
async fn ask(
    engine: &Engine,
    now: &Snapshot,
    request: &CallRequest,
    record: &CallRecord,
    checked: &CheckedCall,
) -> GateResult<(Option<ChangedArguments>, Arc<Snapshot>)> {
    let changes = question::read_changes(engine, request, &checked.decided).await?;
    let asking = question::asking(engine, now, request, record, checked, changes.as_ref());
    keep_script(engine, request, record, checked).await;
    let agreed = obtain(engine.questions(), asking).await?;
    // An operator may have paused the caller while the person was thinking.
    let paused = engine.callers_book().recheck(request).await;
    paused.map_err(|refusal| refusal.after(&agreed.note))?;
    check_unchanged(engine, request, &checked.decided, agreed)
}

/// Writes down the script that asks, before anyone is asked. Without it the question has no
/// lines, and says all the rest.
async fn keep_script(
    engine: &Engine,
    request: &CallRequest,
    record: &CallRecord,
    checked: &CheckedCall,
) {
    let Some(script) = request.script_step().map(|step| Arc::clone(&step.script)) else {
        return;
    };
    let (store, masker) = (engine.store().clone(), Arc::clone(&checked.masker));
    let (call_id, now_ms) = (record.call_id().to_owned(), engine.now_ms());
    let keep = move || script.keep(&store, &masker, &call_id, now_ms);
    let kept = tokio::task::spawn_blocking(keep).await;
    if let Ok(Err(fault)) = kept {
        engine.alarm(&format!(
            "the script of a question was not written down: {}",
            causes(&fault)
        ));
    }
}

fn check_unchanged(
    engine: &Engine,
    request: &CallRequest,
    before: &DecidedCall,
    agreed: GatePass<Option<ChangedArguments>>,
) -> GateResult<(Option<ChangedArguments>, Arc<Snapshot>)> {
    let newest = engine.registry().current();
    match gates::is_unchanged(&newest, request, before, engine.now_ms()) {
        Ok(true) => Ok(GatePass {
            value: (agreed.value, newest),
            note: agreed.note,
        }),
        Ok(false) => {
            let message = "the tool or its policy changed while the approval was pending; the call did not run, repeat it to ask again";
            let error = CallError::passing(Reason::ApprovalStale, message);
            let note = format!("changed while asking; {}", agreed.note);
            Err(CallRefusal::new(error).noted(note))
        }
        Err(refusal) => Err(refusal.after(&agreed.note)),
    }
}

/// High-risk calls: their opening record must be on the disk before they run.
fn is_grave(held: &HeldTool) -> bool {
    held.risk.level >= Level::L4 || held.policy.file_write
}

/// The opening is on the disk, and where the settings say so in the shared database too.
async fn sync_opening(engine: &Engine, row: &OpenRow, ships: bool) -> GateResult<()> {
    let audit = engine.store().audit();
    let synced = match audit.secure(row).await {
        Ok(()) if ships => audit.await_shipped(row).await,
        synced => synced,
    };
    match synced {
        Ok(()) if ships => Ok(GatePass::new((), "on disk, and shipped")),
        Ok(()) => Ok(GatePass::new((), "on disk")),
        Err(fault) => {
            let message = "the audit entry could not be written to disk; the call did not run";
            let error = CallError::passing(Reason::AuditUnavailable, message);
            Err(CallRefusal::new(error).noted(fault.to_string()))
        }
    }
}

fn opening(engine: &Engine, request: &CallRequest) -> Opening {
    let tool = request.target.name();
    let at_ms = engine.now_ms();
    Opening {
        call_id: engine.entropy().call_id(at_ms),
        parent_id: request.parent.as_ref().map(|parent| parent.id.clone()),
        at_ms,
        origin: request.origin,
        // Caller and tool come from outside. The row keeps a bounded part of each.
        caller: text::elided(&request.caller.name, NAME_SHOWN_CHARS_MAX),
        tool: text::elided(tool, NAME_SHOWN_CHARS_MAX),
        // Without a canonical form there is no digest. That must not keep the attempt out
        // of the audit.
        arguments_digest: digest::of_value(&request.arguments).unwrap_or_default(),
    }
}

fn cancelled() -> CallRefusal {
    let error = CallError::new(Reason::CallCancelled, "the call was cancelled");
    CallRefusal::with_status(Status::Cancelled, error)
}

fn late() -> CallRefusal {
    let error = CallError::passing(Reason::CallDeadline, "the call took too long");
    CallRefusal::with_status(Status::Failed, error)
}

async fn sleep_until(deadline: Option<Duration>) {
    match deadline {
        Some(deadline) => tokio::time::sleep(deadline).await,
        // No deadline of the door: the time limit of the tool still holds.
        None => std::future::pending().await,
    }
}
