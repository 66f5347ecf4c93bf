//! The journal of a script in the store. A script that stopped for a person has one. A
//! step is stored before each tool runs and before the script gets its result, so
//! that a process that dies at any moment repeats nothing.

use model::config::ApprovalsConfig;
use model::reason::Reason;
use model::record::outcome::CallError;
use store::{JournalSave, Store, StoreError};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::journal::{BegunCall, JournalStep};
use crate::approve::ApprovalScope;
use crate::approve::expiry;
use crate::engine::Engine;
use crate::error::causes;
use crate::refusal::CallRefusal;
use crate::request::Begins;

/// A stored journal that this run of the script holds. Dropped before the script ends,
/// it is free: the same call made again takes it, in any process.
#[derive(Debug)]
pub(crate) struct StoredJournal<'a> {
    engine: &'a Engine,
    pub(crate) id: i64,
    settings: ApprovalsConfig,
    is_released: bool,
}

impl<'a> StoredJournal<'a> {
    pub(crate) fn new(engine: &'a Engine, id: i64, settings: ApprovalsConfig) -> StoredJournal<'a> {
        StoredJournal {
            engine,
            id,
            settings,
            is_released: false,
        }
    }

    /// The step that goes with a call and is stored once every gate has passed it.
    pub(crate) fn begins(&self, call: BegunCall) -> Begins {
        Begins {
            script: self.id,
            step: JournalStep::Begun(call).write(),
            expires_at_ms: self.expires_at_ms(),
        }
    }

    /// Stores a step; if it cannot, why.
    pub(crate) async fn add(&self, step: &JournalStep) -> Result<(), &'static str> {
        let step = step.write();
        add(self.engine, self.id, step, self.expires_at_ms()).await?;
        self.engine.observe("journaled");
        Ok(())
    }

    /// Removes the journal of a script that ended. The script's answer leaves only after
    /// that: otherwise the same call, made again, would be answered with what this one
    /// did.
    pub(crate) async fn end(mut self) -> Result<(), CallRefusal> {
        let id = self.id;
        let ended = with_store(self.engine, move |store| store.scripts().end(id)).await;
        if ended.is_ok() {
            self.is_released = true;
            return Ok(());
        }
        let message = "the script ended, but its end could not be saved; make the same call again for \
                       its answer, finished calls are kept and not repeated";
        let error = CallError::passing(Reason::ScriptJournal, message);
        Err(CallRefusal::new(error))
    }

    /// The journal was kept for the next run, which released it in the same step.
    pub(crate) fn forget(mut self) {
        self.is_released = true;
    }

    fn expires_at_ms(&self) -> i64 {
        expires_at_ms(&self.settings, self.engine.now_ms())
    }
}

impl Drop for StoredJournal<'_> {
    fn drop(&mut self) {
        if self.is_released {
            return;
        }
        let (store, id) = (self.engine.store().clone(), self.id);
        store.scripts().let_go(id);
        // Other processes read in the table that it is free. Without a runtime nothing
        // writes that; then they wait until this process has ended.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn_blocking(move || store.scripts().offer(id));
        }
    }
}

/// Until when a journal counts: as long as the question can be answered, and then as
/// long as an answer given at the last moment does. If it expired before, a call that was
/// approved would repeat finished calls.
pub(crate) fn expires_at_ms(settings: &ApprovalsConfig, now_ms: i64) -> i64 {
    let answered_at_ms = expiry(ApprovalScope::Once, settings, now_ms);
    expiry(ApprovalScope::Once, settings, answered_at_ms)
}

/// Stores that a call of a script is about to run. If that fails, the call must not run.
pub(crate) async fn note_begun(engine: &Engine, begins: &Begins) -> Result<(), CallRefusal> {
    let step = begins.step.clone();
    if let Err(why) = add(engine, begins.script, step, begins.expires_at_ms).await {
        return Err(CallRefusal::new(CallError::passing(
            Reason::ScriptJournal,
            why,
        )));
    }
    engine.observe("begun");
    Ok(())
}

async fn add(
    engine: &Engine,
    id: i64,
    step: Option<String>,
    expires_at_ms: i64,
) -> Result<(), &'static str> {
    let Some(step) = step else {
        return Err("it cannot be written");
    };
    let added = with_store(engine, move |store| {
        store.scripts().add(id, &step, expires_at_ms)
    });
    match added.await {
        Ok(JournalSave::Yes) => Ok(()),
        Ok(JournalSave::TooLong | JournalSave::TooMany) => Err("it is too large"),
        Ok(JournalSave::Gone) => Err("another process runs the script"),
        Err(_) => Err("it could not be written to disk"),
    }
}

/// Runs work on the database on a thread that may block. A fault is raised as an alarm
/// and returned for the record.
pub(crate) async fn with_store<T: Send + 'static>(
    engine: &Engine,
    work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, String> {
    let store = engine.store().clone();
    let why = match spawn_blocking(move || work(&store)).await {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(fault)) => causes(&fault),
        Err(_) => "the script journal task panicked".to_owned(),
    };
    engine.alarm(&format!("script journals cannot be saved: {why}"));
    Err(why)
}
