//! How much of their quotas callers used, for all processes of a home together.
//!
//! A change reads, updates and writes in one transaction, so that no two processes
//! admit the same last call. It survives the death of the process; a power cut may
//! lose the last moments.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::govern::access::quota::LimitUsage;
use model::limits;
use rusqlite::{OptionalExtension as _, Transaction, TransactionBehavior, params};

use crate::error::StoreError;
use crate::home::database::LazyConnection;
use crate::home::process;

const DOING: &str = "count calls";

/// How much of their quotas callers used.
#[derive(Debug)]
pub struct QuotaUsage {
    home: PathBuf,
    process: Arc<str>,
    connection: LazyConnection,
}

/// A limit and a caller, in lower case.
pub type UsageKey = (String, String);

impl QuotaUsage {
    pub(crate) fn new(home: &Path, process: &Arc<str>) -> QuotaUsage {
        QuotaUsage {
            home: home.to_owned(),
            process: Arc::clone(process),
            connection: LazyConnection::new(home, "NORMAL"),
        }
    }

    /// The id of this process in tallies.
    #[must_use]
    pub fn process(&self) -> &str {
        &self.process
    }

    /// Hands over the tally of each key, without the calls of dead processes, and saves it
    /// as changed. Returns nothing if there is no room for another key.
    pub fn change<T>(
        &self,
        keys: &[UsageKey],
        now_ms: u64,
        change: impl FnOnce(&mut Vec<LimitUsage>) -> T,
    ) -> Result<Option<T>, StoreError> {
        let fail = StoreError::database(DOING);
        let mut connection = self.connection.lock()?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&fail)?;
        let mut tallies = Vec::with_capacity(keys.len());
        for key in keys {
            let mut tally = match read(&transaction, key).map_err(&fail)? {
                Some(tally) => tally,
                None if has_room(&transaction, now_ms).map_err(&fail)? => LimitUsage::default(),
                None => return Ok(None),
            };
            self.drop_dead_processes(&mut tally);
            tallies.push(tally);
        }
        let changed = change(&mut tallies);
        for (key, tally) in keys.iter().zip(&tallies) {
            write(&transaction, key, tally).map_err(&fail)?;
        }
        transaction.commit().map_err(&fail)?;
        Ok(Some(changed))
    }

    /// The tally of each key, without the calls of dead processes. Changes nothing.
    pub fn peek(&self, keys: &[UsageKey]) -> Result<Vec<LimitUsage>, StoreError> {
        let fail = StoreError::database(DOING);
        let mut connection = self.connection.lock()?;
        let transaction = connection.transaction().map_err(&fail)?;
        let mut tallies = Vec::with_capacity(keys.len());
        for key in keys {
            let mut tally = read(&transaction, key).map_err(&fail)?.unwrap_or_default();
            self.drop_dead_processes(&mut tally);
            tallies.push(tally);
        }
        Ok(tallies)
    }

    fn drop_dead_processes(&self, tally: &mut LimitUsage) {
        let others = tally
            .processes()
            .filter(|process| **process != *self.process);
        let dead = others.filter(|process| process::is_dead(&self.home, process));
        let dead: Vec<_> = dead.map(str::to_owned).collect();
        for process in dead {
            tally.forget_process(&process);
        }
    }
}

fn read(
    transaction: &Transaction<'_>,
    (limit, caller): &UsageKey,
) -> rusqlite::Result<Option<LimitUsage>> {
    let sql = "SELECT state FROM tallies WHERE limit_id = ?1 AND caller = ?2";
    let mut statement = transaction.prepare_cached(sql)?;
    let state: Option<String> = statement
        .query_row([limit, caller], |row| row.get(0))
        .optional()?;
    // Invariant 8: what cannot be read is an error, not an empty tally.
    let tally = state.map(|state| serde_json::from_str(&state));
    tally
        .transpose()
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn write(
    transaction: &Transaction<'_>,
    (limit, caller): &UsageKey,
    tally: &LimitUsage,
) -> rusqlite::Result<()> {
    let state = serde_json::to_string(tally)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let idle_from = tally.idle_from_ms();
    let idle_from = idle_from.map(|at_ms| i64::try_from(at_ms).unwrap_or(i64::MAX));
    let sql = "INSERT INTO tallies VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (limit_id, caller) DO UPDATE SET state = ?3, idle_from_ms = ?4";
    let mut statement = transaction.prepare_cached(sql)?;
    statement.execute(params![limit, caller, state, idle_from])?;
    Ok(())
}

/// Whether another row fits, after idle ones were deleted.
fn has_room(transaction: &Transaction<'_>, now_ms: u64) -> rusqlite::Result<bool> {
    let count = || {
        let count = transaction.query_row("SELECT count(*) FROM tallies", [], |row| row.get(0));
        count.map(|count: i64| usize::try_from(count).unwrap_or(usize::MAX))
    };
    if count()? < limits::METER_TALLIES_MAX {
        return Ok(true);
    }
    let now_ms = i64::try_from(now_ms).unwrap_or(i64::MAX);
    transaction.execute("DELETE FROM tallies WHERE idle_from_ms <= ?1", [now_ms])?;
    Ok(count()? < limits::METER_TALLIES_MAX)
}
