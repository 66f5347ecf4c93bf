//! The journal of a script that goes on, on the disk. A step is written before each
//! tool runs and before the script hears what came of it, so that a process that dies
//! at any moment repeats nothing.

use model::config::ApprovalsConfig;
use model::reason::Reason;
use model::record::outcome::CallError;
use store::{JournalSave, Store, StoreError};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::journal::{BegunCall, JournalStep};
use crate::approve::Scope;
use crate::approve::expiry;
use crate::engine::Engine;
use crate::error::causes;
use crate::refusal::Refusal;
use crate::request::Begins;

/// A journal this script goes on with. Dropped before its end, anybody may take it.
#[derive(Debug)]
pub(crate) struct JournalOnDisk<'a> {
    engine: &'a Engine,
    pub(crate) id: i64,
    settings: ApprovalsConfig,
    is_over: bool,
}

impl<'a> JournalOnDisk<'a> {
    pub(crate) fn new(engine: &'a Engine, id: i64, settings: ApprovalsConfig) -> JournalOnDisk<'a> {
        JournalOnDisk {
            engine,
            id,
            settings,
            is_over: false,
        }
    }

    /// Goes with a call, and is written when every gate has said yes to it.
    pub(crate) fn begins(&self, call: BegunCall) -> Begins {
        Begins {
            script: self.id,
            step: JournalStep::Begun(call).write(),
            expires_at_ms: self.expires_at_ms(),
        }
    }

    /// Adds a step; if it is not on the disk, why.
    pub(crate) async fn add(&self, step: &JournalStep) -> Result<(), &'static str> {
        let step = step.write();
        add(self.engine, self.id, step, self.expires_at_ms()).await?;
        self.engine.observe("journaled");
        Ok(())
    }

    /// The script is over. Its answer leaves when nobody can go on with it any more:
    /// a new call of the same must not be answered with what this one did.
    pub(crate) async fn end(mut self) -> Result<(), Refusal> {
        let id = self.id;
        let ended = on_disk(self.engine, move |store| store.scripts().end(id)).await;
        if ended.is_ok() {
            self.is_over = true;
            return Ok(());
        }
        let message = "the script ended, and the disk did not take that; make the same call again for \
                       its answer, finished calls are kept and not repeated";
        let error = CallError::passing(Reason::ScriptJournal, message);
        Err(Refusal::new(error))
    }

    /// It was kept again, and is nobody's.
    pub(crate) fn was_kept(mut self) {
        self.is_over = true;
    }

    fn expires_at_ms(&self) -> i64 {
        expires_at_ms(&self.settings, self.engine.now_ms())
    }
}

impl Drop for JournalOnDisk<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (store, id) = (self.engine.store().clone(), self.id);
        store.scripts().let_go(id);
        // Other processes read it in the table. If it cannot be written, or nobody is
        // left to do it, they wait until this process is dead.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn_blocking(move || store.scripts().offer(id));
        }
    }
}

/// Until when a journal counts: as long as the question can be answered, and then as
/// long as an answer of the last moment does. Gone before, a call that was approved
/// would do again what was finished.
pub(crate) fn expires_at_ms(settings: &ApprovalsConfig, now_ms: i64) -> i64 {
    let answered_at_ms = expiry(Scope::Once, settings, now_ms);
    expiry(Scope::Once, settings, answered_at_ms)
}

/// Writes down that a call of a script is about to run. If it cannot be, it does not.
pub(crate) async fn note_begun(engine: &Engine, begins: &Begins) -> Result<(), Refusal> {
    let step = begins.step.clone();
    if let Err(why) = add(engine, begins.script, step, begins.expires_at_ms).await {
        return Err(Refusal::new(CallError::passing(Reason::ScriptJournal, why)));
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
    let added = on_disk(engine, move |store| {
        store.scripts().add(id, &step, expires_at_ms)
    });
    match added.await {
        Ok(JournalSave::Yes) => Ok(()),
        Ok(JournalSave::TooLong | JournalSave::TooMany) => Err("it is too much"),
        Ok(JournalSave::Gone) => Err("another process goes on with it"),
        Err(_) => Err("the disk did not take it"),
    }
}

/// Work on the database waits for the disk, and so on a thread that may. What goes
/// wrong the operator hears; it comes back for the record.
pub(crate) async fn on_disk<T: Send + 'static>(
    engine: &Engine,
    work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, String> {
    let store = engine.store().clone();
    let why = match spawn_blocking(move || work(&store)).await {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(fault)) => causes(&fault),
        Err(_) => "the thread that keeps scripts died".to_owned(),
    };
    engine.alarm(&format!("the scripts that wait cannot be kept: {why}"));
    Err(why)
}
