//! The rows of the table: reading one, changing some in a transaction that no other writer
//! overtakes, and making room.

use std::collections::HashMap;
use std::sync::Arc;

use model::govern::access::quota::LimitUsage;
use model::limits;

use super::{DOING, UsageKey};
use crate::error::StoreError;
use crate::home::database::to_integer;
use crate::postgres::Cluster;
use crate::sql::peers::Peers;
use crate::sql::tables::{Tables, Writers};
use crate::sql::{self, Executor, either, unknown, values};

/// The rows, and the process that counts.
#[derive(Debug)]
pub(super) struct TallyRows {
    process: Arc<str>,
    tables: Tables,
    peers: Peers,
}

impl TallyRows {
    pub(super) fn new(tables: Tables, peers: Peers, process: &Arc<str>) -> TallyRows {
        TallyRows {
            process: Arc::clone(process),
            tables,
            peers,
        }
    }

    pub(super) fn process(&self) -> &Arc<str> {
        &self.process
    }

    /// The database that nodes share, if they do.
    pub(super) fn cluster(&self) -> Option<&Cluster> {
        match &self.tables {
            Tables::Home(_) => None,
            Tables::Shared(cluster) => Some(cluster),
        }
    }

    /// In a transaction of its own, which no other writer overtakes: in a home, and where
    /// others were always first.
    pub(super) fn change_alone<T>(
        &self,
        keys: &[UsageKey],
        now_ms: u64,
        mut change: impl FnMut(&mut Vec<LimitUsage>) -> T,
    ) -> Result<Option<T>, StoreError> {
        let locks = Writers::OneOfKeys(keys.iter().map(lock_of).collect());
        self.tables.change(DOING, &locks, |executor| {
            // The order in which statements of others lock the rows.
            let mut ordered: Vec<usize> = (0..keys.len()).collect();
            ordered.sort_by_key(|place| keys.get(*place));
            let mut found: HashMap<usize, LimitUsage> = HashMap::new();
            for (place, key) in ordered.iter().filter_map(|at| Some((*at, keys.get(*at)?))) {
                if executor.is_shared() && read_state(executor, key, "")?.is_none() {
                    if room(executor, now_ms, 1)? == 0 {
                        return Ok(None);
                    }
                    // There from now on, so that its row can be locked.
                    let sql = "INSERT INTO tallies VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
                    let empty = spell(&LimitUsage::default())?;
                    executor.execute(sql, values![key.0, key.1, empty, Some(0_i64)])?;
                }
                let state = read_state(executor, key, FOR_UPDATE)?;
                let mut tally = match state {
                    Some(state) => parse(&state)?,
                    None if room(executor, now_ms, 1)? > 0 => LimitUsage::default(),
                    None => return Ok(None),
                };
                // A process that died holds places that no call gives back.
                self.drop_dead_processes(executor, &mut tally)?;
                found.insert(place, tally);
            }
            let mut tallies = Vec::with_capacity(keys.len());
            for place in 0..keys.len() {
                tallies.extend(found.remove(&place));
            }
            let changed = change(&mut tallies);
            for (key, tally) in keys.iter().zip(&tallies) {
                write(executor, key, tally)?;
            }
            Ok(Some(changed))
        })
    }

    pub(super) fn peek(&self, keys: &[UsageKey]) -> Result<Vec<LimitUsage>, StoreError> {
        self.tables.read_moment(DOING, |moment| {
            let mut tallies = Vec::with_capacity(keys.len());
            for key in keys {
                let state = read_state(moment, key, "")?;
                let mut tally = state
                    .map(|state| parse(&state))
                    .transpose()?
                    .unwrap_or_default();
                self.drop_dead_processes(moment, &mut tally)?;
                tallies.push(tally);
            }
            Ok(tallies)
        })
    }

    pub(super) fn drop_dead_processes(
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

/// Locks the row until the end of the transaction. SQLite has one writer anyway.
const FOR_UPDATE: &str = " FOR UPDATE";

fn read_state(
    executor: Executor<'_>,
    (limit, caller): &UsageKey,
    locking: &str,
) -> sql::Result<Option<String>> {
    let sqlite = "SELECT state FROM tallies WHERE limit_id = ?1 AND caller = ?2";
    let postgres = format!("{sqlite}{locking}");
    let sql = either(sqlite, &postgres);
    executor.query_first(sql, values![limit, caller], |row| row.get(0))
}

/// Invariant 8: what cannot be read is an error, not an empty tally.
pub(super) fn parse(state: &str) -> sql::Result<LimitUsage> {
    serde_json::from_str(state).map_err(unknown)
}

/// The text of a tally, as the table has it.
pub(super) fn spell(tally: &LimitUsage) -> sql::Result<String> {
    serde_json::to_string(tally).map_err(unknown)
}

fn write(
    executor: Executor<'_>,
    (limit, caller): &UsageKey,
    tally: &LimitUsage,
) -> sql::Result<()> {
    let state = spell(tally)?;
    let idle_from = tally.idle_from_ms().map(to_integer);
    let sql = "INSERT INTO tallies VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (limit_id, caller) DO UPDATE SET state = ?3, idle_from_ms = ?4";
    executor.execute(sql, values![limit, caller, state, idle_from])?;
    Ok(())
}

/// How many of so many new rows fit, after idle ones were deleted if that is needed.
pub(super) fn room(executor: Executor<'_>, now_ms: u64, wanted: usize) -> sql::Result<usize> {
    let left = || {
        let count = executor.number("SELECT count(*) FROM tallies", values![])?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok::<_, sql::SqlError>(limits::METER_TALLIES_MAX.saturating_sub(count))
    };
    if left()? >= wanted {
        return Ok(wanted);
    }
    let sql = "DELETE FROM tallies WHERE idle_from_ms <= ?1";
    executor.execute(sql, values![to_integer(now_ms)])?;
    Ok(left()?.min(wanted))
}
