//! What scripts had done when they stopped for a person, so that going on repeats
//! nothing. A journal is taken by one transaction: of two processes that want it one
//! gets it. Whoever has it adds each step before the script hears of it, and ends it
//! with the script; if they die, the next one goes on from the last step.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::limits;
use rusqlite::{OptionalExtension as _, Transaction, TransactionBehavior, params};

use crate::database::Lazily;
use crate::error::StoreError;
use crate::process;
#[cfg(feature = "testing")]
use crate::testing::Failing;

/// A journal to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptScript {
    /// A digest of all it belongs to.
    pub key: String,
    /// Whose it is.
    pub caller: String,
    /// Milliseconds since 1970.
    pub kept_at_ms: i64,
    /// When it no longer counts.
    pub expires_at_ms: i64,
    /// The journal, as text of the engine's own.
    pub journal: String,
}

/// A journal that was taken, to go on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenScript {
    /// Which one, for what follows.
    pub id: i64,
    /// As it was kept.
    pub journal: String,
    /// What was added since, by whoever had it before.
    pub steps: Vec<String>,
}

/// What came of keeping a journal, or a step of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is on the disk.
    Yes,
    /// It is longer than a journal may be.
    TooLong,
    /// The caller, or all together, have as many as may be.
    TooMany,
    /// It is not ours any more: others took us for dead.
    Gone,
}

/// What changes. An operator reads which of them failed; each happens whole or not at
/// all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A script that stops is kept.
    Keep,
    /// One goes on.
    Take,
    /// Something it does is added.
    Add,
    /// It is over.
    End,
}

/// The journals of scripts that wait for a person, or go on after that.
#[derive(Debug)]
pub struct Scripts {
    home: PathBuf,
    process: Arc<str>,
    connection: Lazily,
    /// The journals this process goes on with. The table alone cannot tell: what
    /// it could not write down it let go of all the same.
    held: Mutex<BTreeSet<i64>>,
    #[cfg(feature = "testing")]
    failing: Failing<Step>,
}

impl Scripts {
    pub(crate) fn new(home: &Path, process: &Arc<str>) -> Scripts {
        Scripts {
            home: home.to_owned(),
            process: Arc::clone(process),
            // What was done must not be done again because the power failed.
            connection: Lazily::new(home, "FULL"),
            held: Mutex::default(),
            #[cfg(feature = "testing")]
            failing: Failing::default(),
        }
    }

    /// Keeps the journal of a script that stops, instead of one with the same key
    /// that waits. `held` is the one it went on with, which this replaces.
    pub fn keep(&self, script: &KeptScript, held: Option<i64>) -> Result<Kept, StoreError> {
        if script.journal.len() > limits::SCRIPT_JOURNAL_BYTES_MAX {
            return Ok(Kept::TooLong);
        }
        let living = self.held().clone();
        let kept = self.change(Step::Keep, |change| {
            if let Some(id) = held {
                let ours = params![id, &*self.process];
                let sql = "DELETE FROM script_journals WHERE id = ?1 AND process = ?2";
                if change.execute(sql, ours)? == 0 {
                    return Ok(Kept::Gone);
                }
            }
            change.execute(
                "DELETE FROM script_journals WHERE key = ?1 AND process IS NULL",
                [&script.key],
            )?;
            self.forget_expired(change, script.kept_at_ms, &living)?;
            let (all, own): (i64, i64) = change.query_row(
                "SELECT count(*), count(*) FILTER (WHERE caller = ?1) FROM script_journals",
                [&script.caller],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            let is_full =
                own >= limits::SCRIPT_JOURNALS_PER_CALLER_MAX || all >= limits::SCRIPT_JOURNALS_MAX;
            if is_full {
                return Ok(Kept::TooMany);
            }
            change.execute(
                "INSERT INTO script_journals (key, caller, kept_ms, expires_ms, bytes, journal)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    script.key,
                    script.caller,
                    script.kept_at_ms,
                    script.expires_at_ms,
                    bytes(&script.journal),
                    script.journal
                ],
            )?;
            Ok(Kept::Yes)
        })?;
        if let Some(id) = held {
            self.held().remove(&id);
        }
        Ok(kept)
    }

    /// Whether there is none, when that can be said without waiting for anybody.
    /// Nearly always there is none, and looking costs no write.
    pub fn is_absent(&self, key: &str) -> bool {
        let Some(connection) = self.connection.try_lock() else {
            return false;
        };
        let found = connection
            .prepare_cached("SELECT 1 FROM script_journals WHERE key = ?1")
            .and_then(|mut statement| statement.exists([key]));
        matches!(found, Ok(false))
    }

    /// Takes a journal to go on with, unless it expired. It is nobody else's until it
    /// is ended, kept again or let go of, or until this process is dead.
    pub fn take(&self, key: &str, now_ms: i64) -> Result<Option<TakenScript>, StoreError> {
        // Before the table: nobody else may take what is about to be ours.
        let mut held = self.held();
        let taken = self.change(Step::Take, |change| {
            self.forget_expired(change, now_ms, &held)?;
            let Some((id, journal)) = self.free(change, key, &held)? else {
                return Ok(None);
            };
            change.execute(
                "UPDATE script_journals SET process = ?2 WHERE id = ?1",
                params![id, &*self.process],
            )?;
            let mut steps = change
                .prepare("SELECT step FROM script_steps WHERE script = ?1 ORDER BY number")?;
            let steps = steps.query_map([id], |row| row.get(0))?;
            Ok(Some(TakenScript {
                id,
                journal,
                steps: steps.collect::<Result<_, _>>()?,
            }))
        })?;
        held.extend(taken.as_ref().map(|taken| taken.id));
        Ok(taken)
    }

    /// Adds what a script does to the journal it goes on with, which lasts until then.
    pub fn add(&self, id: i64, step: &str, expires_at_ms: i64) -> Result<Kept, StoreError> {
        let bytes_max = i64::try_from(limits::SCRIPT_JOURNAL_BYTES_MAX).unwrap_or(i64::MAX);
        self.change(Step::Add, |change| {
            let grown: Option<i64> = change
                .query_row(
                    "UPDATE script_journals SET bytes = bytes + ?3, expires_ms = max(expires_ms, ?4)
                     WHERE id = ?1 AND process = ?2 RETURNING bytes",
                    params![id, &*self.process, bytes(step), expires_at_ms],
                    |row| row.get(0),
                )
                .optional()?;
            match grown {
                None => return Ok(Kept::Gone),
                Some(grown) if grown > bytes_max => {
                    // As it was, so that what is there stays within its bounds.
                    let sql = "UPDATE script_journals SET bytes = bytes - ?2 WHERE id = ?1";
                    change.execute(sql, params![id, bytes(step)])?;
                    return Ok(Kept::TooLong);
                }
                Some(_) => {}
            }
            change.execute(
                "INSERT INTO script_steps (script, number, step) VALUES
                 (?1, (SELECT coalesce(max(number), 0) + 1 FROM script_steps WHERE script = ?1), ?2)",
                params![id, step],
            )?;
            Ok(Kept::Yes)
        })
    }

    /// A script is over: its journal is gone.
    pub fn end(&self, id: i64) -> Result<(), StoreError> {
        self.change(Step::End, |change| {
            let ours = params![id, &*self.process];
            let sql = "DELETE FROM script_journals WHERE id = ?1 AND process = ?2";
            change.execute(sql, ours)
        })?;
        self.held().remove(&id);
        Ok(())
    }

    /// Nobody goes on with it here any more, and this process may take it again.
    pub fn let_go(&self, id: i64) {
        self.held().remove(&id);
    }

    /// Lets others take what this process let go of.
    pub fn offer(&self, id: i64) -> Result<(), StoreError> {
        let held = self.held();
        if held.contains(&id) {
            return Ok(());
        }
        let offered = self.change(Step::Keep, |change| {
            let ours = params![id, &*self.process];
            let sql = "UPDATE script_journals SET process = NULL WHERE id = ?1 AND process = ?2";
            change.execute(sql, ours)
        });
        drop(held);
        offered.map(|_| ())
    }

    /// For tests: from now on this step fails at its very end, or none does.
    #[cfg(feature = "testing")]
    pub fn fail(&self, step: Option<Step>) {
        self.failing.set(step);
    }

    /// The oldest journal of a key that nobody goes on with.
    fn free(
        &self,
        change: &Transaction<'_>,
        key: &str,
        held: &BTreeSet<i64>,
    ) -> rusqlite::Result<Option<(i64, String)>> {
        let mut found = change.prepare(
            "SELECT id, process, journal FROM script_journals WHERE key = ?1 ORDER BY id",
        )?;
        let found = found.query_map([key], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        for row in found {
            let (id, process, journal): (i64, Option<String>, String) = row?;
            if !self.is_held(id, process.as_deref(), held) {
                return Ok(Some((id, journal)));
            }
        }
        Ok(None)
    }

    /// Deletes what expired, but nothing somebody goes on with.
    fn forget_expired(
        &self,
        change: &Transaction<'_>,
        now_ms: i64,
        held: &BTreeSet<i64>,
    ) -> rusqlite::Result<()> {
        let mut expired = change
            .prepare_cached("SELECT id, process FROM script_journals WHERE expires_ms <= ?1")?;
        let expired = expired.query_map([now_ms], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for row in expired.collect::<Result<Vec<(i64, Option<String>)>, _>>()? {
            let (id, process) = row;
            if !self.is_held(id, process.as_deref(), held) {
                change.execute("DELETE FROM script_journals WHERE id = ?1", [id])?;
            }
        }
        Ok(())
    }

    fn is_held(&self, id: i64, process: Option<&str>, held: &BTreeSet<i64>) -> bool {
        match process {
            None => false,
            Some(process) if *process == *self.process => held.contains(&id),
            Some(process) => !process::is_dead(&self.home, process),
        }
    }

    fn change<T>(
        &self,
        step: Step,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let fail = StoreError::database(step.doing());
        let mut connection = self.connection.lock()?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&fail)?;
        let changed = change(&transaction).map_err(&fail)?;
        #[cfg(feature = "testing")]
        self.failing.at(step).map_err(&fail)?;
        transaction.commit().map_err(&fail)?;
        Ok(changed)
    }

    fn held(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Step {
    fn doing(self) -> &'static str {
        match self {
            Step::Keep => "keep a script that stops",
            Step::Take => "go on with a script",
            Step::Add => "write down what a script did",
            Step::End => "end a script",
        }
    }
}

fn bytes(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}
