//! Journals of scripts: what a script had done when it stopped for a person, so that
//! resuming it repeats nothing. A journal is taken in one transaction: of two processes
//! that want it one gets it. The process that has it adds each step before the script
//! sees the result, and deletes it when the script ends. If the process dies, the next
//! one resumes from the last step.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use model::limits;
use model::sync::lock;

use crate::error::StoreError;
use crate::sql::peers::Peers;
use crate::sql::tables::{LockedTable, Tables, Writers};
use crate::sql::{self, Executor, SqlRow, unknown, values};
#[cfg(feature = "testing")]
use crate::testing::Failing;

/// A journal to be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptJournal {
    /// A digest of everything it belongs to.
    pub key: String,
    /// The caller whose script it is.
    pub caller: String,
    /// Milliseconds since 1970.
    pub kept_at_ms: i64,
    /// When it is deleted.
    pub expires_at_ms: i64,
    /// The journal, in a text format of the engine.
    pub journal: String,
}

/// A journal that was taken to resume its script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenJournal {
    /// Its id, for adding steps and ending it.
    pub id: i64,
    /// The journal as it was saved.
    pub journal: String,
    /// The steps that were added since.
    pub steps: Vec<String>,
}

/// The result of saving a journal, or a step of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalSave {
    /// It is on the disk.
    Yes,
    /// The journal would be too long.
    TooLong,
    /// The caller, or all callers together, have as many as allowed.
    TooMany,
    /// Another process took this one for dead and has the journal now.
    Gone,
}

/// The kinds of change, each one transaction. An error names the one that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalChange {
    /// The journal of a stopped script is saved.
    Keep,
    /// A script is resumed.
    Take,
    /// A step is added.
    Add,
    /// The script ends.
    End,
}

/// The journals of scripts that wait for a person or were resumed.
#[derive(Debug)]
pub struct Scripts {
    process: Arc<str>,
    tables: Tables,
    peers: Peers,
    /// The journals whose scripts run in this process. The table alone cannot tell: a
    /// journal is released here even if that could not be written.
    held: Mutex<BTreeSet<i64>>,
    #[cfg(feature = "testing")]
    failing: Failing<JournalChange>,
}

impl Scripts {
    pub(crate) fn new(tables: Tables, peers: Peers, process: &Arc<str>) -> Scripts {
        Scripts {
            process: Arc::clone(process),
            tables,
            peers,
            held: Mutex::default(),
            #[cfg(feature = "testing")]
            failing: Failing::default(),
        }
    }

    /// Saves the journal of a script that stops, replacing a waiting one with the same
    /// key. `held` is the journal it was resumed from, which this replaces too.
    pub fn keep(
        &self,
        script: &ScriptJournal,
        held: Option<i64>,
    ) -> Result<JournalSave, StoreError> {
        if script.journal.len() > limits::SCRIPT_JOURNAL_BYTES_MAX {
            return Ok(JournalSave::TooLong);
        }
        // Copied, because the change below may wait for another process.
        let living = self.held().clone();
        let kept = self.change(JournalChange::Keep, |change| {
            if let Some(id) = held {
                let sql = "DELETE FROM script_journals WHERE id = ?1 AND process = ?2";
                if change.execute(sql, values![id, &*self.process])? == 0 {
                    // Another process took the journal. This one must not write a second.
                    return Ok(JournalSave::Gone);
                }
            }
            change.execute(
                "DELETE FROM script_journals WHERE key = ?1 AND process IS NULL",
                values![script.key],
            )?;
            self.forget_expired(change, script.kept_at_ms, &living)?;
            let sql = "SELECT count(*), count(*) FILTER (WHERE caller = ?1) FROM script_journals";
            let both = |row: &SqlRow<'_>| Ok((row.get(0)?, row.get(1)?));
            let counted = change.query_first(sql, values![script.caller], both)?;
            let (all, own): (i64, i64) = counted.ok_or_else(|| unknown("a row is missing"))?;
            let is_full =
                own >= limits::SCRIPT_JOURNALS_PER_CALLER_MAX || all >= limits::SCRIPT_JOURNALS_MAX;
            if is_full {
                return Ok(JournalSave::TooMany);
            }
            change.execute(
                "INSERT INTO script_journals (key, caller, kept_ms, expires_ms, bytes, journal)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                values![
                    script.key,
                    script.caller,
                    script.kept_at_ms,
                    script.expires_at_ms,
                    bytes(&script.journal),
                    script.journal
                ],
            )?;
            Ok(JournalSave::Yes)
        })?;
        if let Some(id) = held {
            self.held().remove(&id);
        }
        Ok(kept)
    }

    /// Whether there is no journal of a key, if that is known without waiting. Nearly
    /// always there is none, and this check needs no write.
    pub fn is_absent(&self, key: &str) -> bool {
        let sql = "SELECT count(*) FROM script_journals WHERE key = ?1";
        let count = |tables: Executor<'_>| tables.number(sql, values![key]);
        self.tables.try_read(count) == Some(0)
    }

    /// Takes a journal to resume its script, unless it expired. No other process can take
    /// it until it is ended, saved again or released, or until this process dies.
    pub fn take(&self, key: &str, now_ms: i64) -> Result<Option<TakenJournal>, StoreError> {
        // Locked before the table is read, so that no other thread takes the same one.
        let mut held = self.held();
        let taken = self.change(JournalChange::Take, |change| {
            self.forget_expired(change, now_ms, &held)?;
            let Some((id, journal)) = self.free(change, key, &held)? else {
                return Ok(None);
            };
            change.execute(
                "UPDATE script_journals SET process = ?2 WHERE id = ?1",
                values![id, &*self.process],
            )?;
            let sql = "SELECT step FROM script_steps WHERE script = ?1 ORDER BY number";
            let steps = change.query(sql, values![id], |row| row.get(0))?;
            Ok(Some(TakenJournal { id, journal, steps }))
        })?;
        // Still under the lock, so that no thread sees it free in between.
        held.extend(taken.as_ref().map(|taken| taken.id));
        Ok(taken)
    }

    /// Adds a step to a taken journal, and extends its expiry.
    pub fn add(&self, id: i64, step: &str, expires_at_ms: i64) -> Result<JournalSave, StoreError> {
        let bytes_max = i64::try_from(limits::SCRIPT_JOURNAL_BYTES_MAX).unwrap_or(i64::MAX);
        self.change(JournalChange::Add, |change| {
            let grown: Option<i64> = change.query_first(
                "UPDATE script_journals SET bytes = bytes + ?3,
                 expires_ms = CASE WHEN expires_ms < ?4 THEN ?4 ELSE expires_ms END
                 WHERE id = ?1 AND process = ?2 RETURNING bytes",
                values![id, &*self.process, bytes(step), expires_at_ms],
                |row| row.get(0),
            )?;
            match grown {
                None => return Ok(JournalSave::Gone),
                Some(grown) if grown > bytes_max => {
                    // Taken back, so that the stored size stays right.
                    let sql = "UPDATE script_journals SET bytes = bytes - ?2 WHERE id = ?1";
                    change.execute(sql, values![id, bytes(step)])?;
                    return Ok(JournalSave::TooLong);
                }
                Some(_) => {}
            }
            change.execute(
                "INSERT INTO script_steps (script, number, step) VALUES
                 (?1, (SELECT coalesce(max(number), 0) + 1 FROM script_steps WHERE script = ?1), ?2)",
                values![id, step],
            )?;
            Ok(JournalSave::Yes)
        })
    }

    /// Deletes the journal of a script that ended.
    pub fn end(&self, id: i64) -> Result<(), StoreError> {
        self.change(JournalChange::End, |change| {
            let sql = "DELETE FROM script_journals WHERE id = ?1 AND process = ?2";
            change.execute(sql, values![id, &*self.process])
        })?;
        self.held().remove(&id);
        Ok(())
    }

    /// Releases a journal within this process, which may then take it again.
    pub fn let_go(&self, id: i64) {
        self.held().remove(&id);
    }

    /// Lets other processes take a journal that this one released.
    pub fn offer(&self, id: i64) -> Result<(), StoreError> {
        let held = self.held();
        if held.contains(&id) {
            return Ok(());
        }
        let offered = self.change(JournalChange::Keep, |change| {
            let sql = "UPDATE script_journals SET process = NULL WHERE id = ?1 AND process = ?2";
            change.execute(sql, values![id, &*self.process])
        });
        // Held to here, so that it is not taken while it is being offered.
        drop(held);
        offered.map(|_| ())
    }

    /// For tests: from now on this change fails just before it commits, or none does.
    #[cfg(feature = "testing")]
    pub fn fail(&self, step: Option<JournalChange>) {
        self.failing.set(step);
    }

    /// The oldest journal of a key that no live process has taken.
    fn free(
        &self,
        change: Executor<'_>,
        key: &str,
        held: &BTreeSet<i64>,
    ) -> sql::Result<Option<(i64, String)>> {
        let sql = "SELECT id, process, journal FROM script_journals WHERE key = ?1 ORDER BY id";
        let found: Vec<(i64, Option<String>, String)> = change.query(sql, values![key], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
        for (id, process, journal) in found {
            if !self.is_held(change, id, process.as_deref(), held)? {
                return Ok(Some((id, journal)));
            }
        }
        Ok(None)
    }

    /// Deletes expired journals, except those that a live process has taken.
    fn forget_expired(
        &self,
        change: Executor<'_>,
        now_ms: i64,
        held: &BTreeSet<i64>,
    ) -> sql::Result<()> {
        let sql = "SELECT id, process FROM script_journals WHERE expires_ms <= ?1";
        let expired: Vec<(i64, Option<String>)> =
            change.query(sql, values![now_ms], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (id, process) in expired {
            if !self.is_held(change, id, process.as_deref(), held)? {
                change.execute("DELETE FROM script_journals WHERE id = ?1", values![id])?;
            }
        }
        Ok(())
    }

    fn is_held(
        &self,
        change: Executor<'_>,
        id: i64,
        process: Option<&str>,
        held: &BTreeSet<i64>,
    ) -> sql::Result<bool> {
        Ok(match process {
            None => false,
            Some(process) if *process == *self.process => held.contains(&id),
            Some(process) => !self.peers.is_dead(change, process)?,
        })
    }

    fn change<T>(
        &self,
        step: JournalChange,
        change: impl FnOnce(Executor<'_>) -> sql::Result<T>,
    ) -> Result<T, StoreError> {
        self.tables
            .change(step.doing(), &step.writers(), |executor| {
                let changed = change(executor)?;
                #[cfg(feature = "testing")]
                self.failing.at(step)?;
                Ok(changed)
            })
    }

    fn held(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        lock(&self.held)
    }
}

impl JournalChange {
    /// Those that look before they write need the table for themselves.
    fn writers(self) -> Writers {
        match self {
            JournalChange::Keep | JournalChange::Take => Writers::OneOf(LockedTable::Scripts),
            JournalChange::Add | JournalChange::End => Writers::Any,
        }
    }

    fn doing(self) -> &'static str {
        match self {
            JournalChange::Keep => "save the journal of a script",
            JournalChange::Take => "resume a script",
            JournalChange::Add => "save a step of a script",
            JournalChange::End => "end a script",
        }
    }
}

fn bytes(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}
