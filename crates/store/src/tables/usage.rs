//! How much of their quotas callers used, for all processes of a home together.
//!
//! A change reads, updates and writes in one transaction, so that no two processes
//! admit the same last call. It survives the death of the process; a power cut may
//! lose the last moments.

use std::sync::Arc;

use model::govern::access::quota::LimitUsage;
use model::limits;

use crate::error::StoreError;
use crate::home::database::to_integer;
use crate::sql::peers::Peers;
use crate::sql::tables::{Tables, Writers};
use crate::sql::{self, Executor, unknown, values};

const DOING: &str = "count calls";

/// How much of their quotas callers used.
#[derive(Debug)]
pub struct QuotaUsage {
    process: Arc<str>,
    tables: Tables,
    peers: Peers,
}

/// A limit and a caller, in lower case.
pub type UsageKey = (String, String);

impl QuotaUsage {
    pub(crate) fn new(tables: Tables, peers: Peers, process: &Arc<str>) -> QuotaUsage {
        QuotaUsage {
            process: Arc::clone(process),
            tables,
            peers,
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
        let locks = Writers::OneOfKeys(keys.iter().map(lock_of).collect());
        self.tables.change(DOING, &locks, |executor| {
            let mut tallies = Vec::with_capacity(keys.len());
            for key in keys {
                let mut tally = match read(executor, key)? {
                    Some(tally) => tally,
                    None if has_room(executor, now_ms)? => LimitUsage::default(),
                    None => return Ok(None),
                };
                self.drop_dead_processes(executor, &mut tally)?;
                tallies.push(tally);
            }
            let changed = change(&mut tallies);
            for (key, tally) in keys.iter().zip(&tallies) {
                write(executor, key, tally)?;
            }
            Ok(Some(changed))
        })
    }

    /// The tally of each key, without the calls of dead processes. Changes nothing.
    pub fn peek(&self, keys: &[UsageKey]) -> Result<Vec<LimitUsage>, StoreError> {
        self.tables.read_moment(DOING, |moment| {
            let mut tallies = Vec::with_capacity(keys.len());
            for key in keys {
                let mut tally = read(moment, key)?.unwrap_or_default();
                self.drop_dead_processes(moment, &mut tally)?;
                tallies.push(tally);
            }
            Ok(tallies)
        })
    }

    fn drop_dead_processes(
        &self,
        executor: Executor<'_>,
        tally: &mut LimitUsage,
    ) -> sql::Result<()> {
        let mut dead = Vec::new();
        for process in tally.processes() {
            if *process != *self.process && self.peers.is_dead(executor, process)? {
                dead.push(process.to_owned());
            }
        }
        for process in dead {
            tally.forget_process(&process);
        }
        Ok(())
    }
}

/// The lock of a key, the same on every node. Two keys with one lock only wait longer.
fn lock_of((limit, caller): &UsageKey) -> i64 {
    let digest = ring::digest::digest(
        &ring::digest::SHA256,
        format!("{}:{limit}{caller}", limit.len()).as_bytes(),
    );
    let first = digest.as_ref().first_chunk::<8>();
    first.map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

fn read(executor: Executor<'_>, (limit, caller): &UsageKey) -> sql::Result<Option<LimitUsage>> {
    let sql = "SELECT state FROM tallies WHERE limit_id = ?1 AND caller = ?2";
    let state: Option<String> =
        executor.query_first(sql, values![limit, caller], |row| row.get(0))?;
    // Invariant 8: what cannot be read is an error, not an empty tally.
    let tally = state.map(|state| serde_json::from_str(&state));
    tally.transpose().map_err(unknown)
}

fn write(
    executor: Executor<'_>,
    (limit, caller): &UsageKey,
    tally: &LimitUsage,
) -> sql::Result<()> {
    let state = serde_json::to_string(tally).map_err(unknown)?;
    let idle_from = tally.idle_from_ms().map(to_integer);
    let sql = "INSERT INTO tallies VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (limit_id, caller) DO UPDATE SET state = ?3, idle_from_ms = ?4";
    executor.execute(sql, values![limit, caller, state, idle_from])?;
    Ok(())
}

/// Whether another row fits, after idle ones were deleted.
fn has_room(executor: Executor<'_>, now_ms: u64) -> sql::Result<bool> {
    let count = || {
        let count = executor.number("SELECT count(*) FROM tallies", values![])?;
        Ok::<_, sql::SqlError>(usize::try_from(count).unwrap_or(usize::MAX))
    };
    if count()? < limits::METER_TALLIES_MAX {
        return Ok(true);
    }
    let sql = "DELETE FROM tallies WHERE idle_from_ms <= ?1";
    executor.execute(sql, values![to_integer(now_ms)])?;
    Ok(count()? < limits::METER_TALLIES_MAX)
}
