//! What scripts had done when they stopped for a person, so that going on repeats
//! nothing. A journal is taken by one transaction and is gone then: of two processes
//! that want it one gets it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use model::limits;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use crate::error::StoreError;

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

/// What came of keeping a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is on the disk.
    Yes,
    /// It is longer than a journal may be.
    TooLong,
    /// The caller, or all together, have as many as may be.
    TooMany,
}

/// The journals of scripts that wait for a person.
#[derive(Debug)]
pub struct Scripts {
    connection: Mutex<Connection>,
}

impl Scripts {
    pub(crate) fn open(connection: Connection) -> Result<Scripts, StoreError> {
        // What was done must not be done again because the power failed.
        connection
            .pragma_update(None, "synchronous", "FULL")
            .map_err(StoreError::database("set up the scripts"))?;
        Ok(Scripts {
            connection: Mutex::new(connection),
        })
    }

    /// Keeps a journal, instead of one with the same key.
    pub fn keep(&self, script: &KeptScript) -> Result<Kept, StoreError> {
        if script.journal.len() > limits::SCRIPT_JOURNAL_BYTES_MAX {
            return Ok(Kept::TooLong);
        }
        self.change(|change| {
            change.execute(
                "DELETE FROM scripts WHERE expires_ms <= ?1 OR key = ?2",
                params![script.kept_at_ms, script.key],
            )?;
            let (all, own): (i64, i64) = change.query_row(
                "SELECT count(*), count(*) FILTER (WHERE caller = ?1) FROM scripts",
                [&script.caller],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            let is_full =
                own >= limits::SCRIPT_JOURNALS_PER_CALLER_MAX || all >= limits::SCRIPT_JOURNALS_MAX;
            if is_full {
                return Ok(Kept::TooMany);
            }
            change.execute(
                "INSERT INTO scripts (key, caller, kept_ms, expires_ms, journal)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    script.key,
                    script.caller,
                    script.kept_at_ms,
                    script.expires_at_ms,
                    script.journal
                ],
            )?;
            Ok(Kept::Yes)
        })
    }

    /// Whether there is none, when that can be said without waiting for anybody.
    /// Nearly always there is none, and looking costs no write.
    pub fn is_absent(&self, key: &str) -> bool {
        let Ok(connection) = self.connection.try_lock() else {
            return false;
        };
        let found = connection
            .prepare_cached("SELECT 1 FROM scripts WHERE key = ?1")
            .and_then(|mut statement| statement.exists([key]));
        matches!(found, Ok(false))
    }

    /// Takes a journal: it is there once, and not after it expired.
    pub fn take(&self, key: &str, now_ms: i64) -> Result<Option<String>, StoreError> {
        self.change(|change| {
            let found: Option<(i64, String)> = change
                .query_row(
                    "DELETE FROM scripts WHERE key = ?1 RETURNING expires_ms, journal",
                    [key],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()?;
            let live = found.filter(|(expires_ms, _)| *expires_ms > now_ms);
            Ok(live.map(|(_, journal)| journal))
        })
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let fail = StoreError::database("change the scripts");
        let mut connection = self.connection();
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&fail)?;
        let changed = change(&transaction).map_err(&fail)?;
        transaction.commit().map_err(&fail)?;
        Ok(changed)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
