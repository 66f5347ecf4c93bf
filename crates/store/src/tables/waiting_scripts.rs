//! The texts of scripts whose calls ask a person: the person who answers sees which line
//! waits, at whatever node. They are shown and decide nothing; one that is lost leaves a
//! question without its lines.

use model::limits::APPROVAL_SECONDS_MAX;

use crate::error::StoreError;
use crate::limit;
use crate::sql::tables::{LockedTable, Tables, Writers};
use crate::sql::values;

/// A question and then its answer may each take as long as the operator allows.
const AGE_MS_MAX: u64 = 2 * APPROVAL_SECONDS_MAX * 1_000;

/// The texts of scripts that wait for a person.
#[derive(Debug)]
pub struct WaitingScripts {
    tables: Tables,
}

impl WaitingScripts {
    pub(crate) fn new(tables: Tables) -> WaitingScripts {
        WaitingScripts { tables }
    }

    /// Keeps the text of a script for a call of it that asks. It replaces the text for its
    /// earlier calls: secrets may be masked in it that were not known to be some. What no
    /// question can wait for any more gives way, and the oldest beyond the bound. A text
    /// that is too long is not kept.
    pub fn keep(
        &self,
        (script_call, call_id): (&str, &str),
        text: &str,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        if text.len() > limit::WAITING_SCRIPT_BYTES_MAX {
            return Ok(());
        }
        let writers = Writers::OneOf(LockedTable::WaitingScripts);
        self.tables.change("keep a script", &writers, |change| {
            let oldest = now_ms.saturating_sub_unsigned(AGE_MS_MAX);
            let sql = "DELETE FROM waiting_scripts WHERE kept_ms < ?1";
            change.execute(sql, values![oldest])?;
            let sql = "UPDATE waiting_scripts SET script = ?2 WHERE script_call = ?1";
            change.execute(sql, values![script_call, text])?;
            change.execute(
                "INSERT INTO waiting_scripts (call_id, script_call, kept_ms, script)
                 VALUES (?1, ?2, ?3, ?4) ON CONFLICT (call_id) DO NOTHING",
                values![call_id, script_call, now_ms, text],
            )?;
            let most = i64::try_from(limit::WAITING_SCRIPTS_MAX).unwrap_or(i64::MAX);
            change.execute(
                "DELETE FROM waiting_scripts WHERE call_id IN (SELECT call_id FROM waiting_scripts
                 ORDER BY kept_ms DESC, call_id DESC LIMIT 9223372036854775807 OFFSET ?1)",
                values![most],
            )?;
            Ok(())
        })
    }

    /// The text of the script that made a call, while it waits or after it stopped to wait.
    pub fn find(&self, call_id: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT script FROM waiting_scripts WHERE call_id = ?1";
        self.tables.read("read a script", |tables| {
            tables.query_first(sql, values![call_id], |row| row.get(0))
        })
    }

    /// Forgets the text of a script that ended.
    pub fn forget(&self, script_call: &str) -> Result<(), StoreError> {
        let sql = "DELETE FROM waiting_scripts WHERE script_call = ?1";
        self.tables
            .change("forget a script", &Writers::Any, |change| {
                change.execute(sql, values![script_call])
            })?;
        Ok(())
    }
}
