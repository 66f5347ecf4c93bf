//! How much of their quotas callers used, for all processes of a home together.
//!
//! A change reads, updates and writes so that no two processes admit the same last call: in
//! one transaction in a home; on nodes that share a store by one statement that names the
//! state it starts from, which is usually the one this process wrote last. It survives the
//! death of the process; a power cut may lose the last moments.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use model::govern::access::quota::LimitUsage;
use model::limits;
use model::sync::lock;

use crate::error::StoreError;
use crate::home::database::to_integer;
use crate::limit;
use crate::postgres::Cluster;
use crate::sql::peers::Peers;
use crate::sql::tables::{Tables, Writers};
use crate::sql::{self, Executor, either, unknown, values};

const DOING: &str = "count calls";

/// Writes new states if every old one is still there, and nothing otherwise. The rows are
/// locked in one order for all, so that no two wait for each other. A power cut may lose the
/// last moments, as in a home.
const EXCHANGE: &str = "WITH quick AS MATERIALIZED (\
        SELECT set_config('synchronous_commit', 'off', true)), \
    wanted AS (SELECT * FROM unnest(?1::TEXT[], ?2::TEXT[], ?3::TEXT[], ?4::TEXT[], ?5::BIGINT[]) \
        AS wanted (limit_id, caller, old, new, idle)), \
    locked AS MATERIALIZED (SELECT tallies.limit_id FROM tallies JOIN wanted \
        ON tallies.limit_id = wanted.limit_id AND tallies.caller = wanted.caller \
        WHERE tallies.state = wanted.old \
        ORDER BY tallies.limit_id, tallies.caller FOR UPDATE OF tallies) \
    UPDATE tallies SET state = wanted.new, idle_from_ms = wanted.idle FROM wanted, quick \
    WHERE tallies.limit_id = wanted.limit_id AND tallies.caller = wanted.caller \
        AND tallies.state = wanted.old AND (SELECT count(*) FROM locked) = ?6";

/// How much of their quotas callers used.
#[derive(Debug)]
pub struct QuotaUsage {
    process: Arc<str>,
    tables: Tables,
    peers: Peers,
    /// What this process wrote last to a shared store, by key. Each part has its own lock,
    /// which is held during a change: our own calls need not try against each other.
    written: [Mutex<HashMap<UsageKey, String>>; limit::USAGE_PARTS],
}

/// A limit and a caller, in lower case.
pub type UsageKey = (String, String);

/// The parts that a change holds, by their number.
type HeldParts<'a> = Vec<(usize, MutexGuard<'a, HashMap<UsageKey, String>>)>;

impl QuotaUsage {
    pub(crate) fn new(tables: Tables, peers: Peers, process: &Arc<str>) -> QuotaUsage {
        QuotaUsage {
            process: Arc::clone(process),
            tables,
            peers,
            written: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// The id of this process in tallies.
    #[must_use]
    pub fn process(&self) -> &str {
        &self.process
    }

    /// Hands over the tally of each key, without the calls of dead processes, and saves it
    /// as changed. Returns nothing if there is no room for another key. `change` may be
    /// asked again with newer tallies; only its last answer counts.
    pub fn change<T>(
        &self,
        keys: &[UsageKey],
        now_ms: u64,
        mut change: impl FnMut(&mut Vec<LimitUsage>) -> T,
    ) -> Result<Option<T>, StoreError> {
        if let Tables::Shared(cluster) = &self.tables {
            let mut parts = self.hold_parts(keys);
            for attempt in 0..limit::USAGE_ATTEMPTS_MAX {
                let known = match attempt {
                    0 => written(&parts, keys),
                    _ => None,
                };
                match self.try_change(cluster, keys, known, &mut change) {
                    Ok(Attempt::Done(changed, states)) => {
                        keep(&mut parts, keys, Some(states));
                        return Ok(Some(changed));
                    }
                    Ok(Attempt::Overtaken) => keep(&mut parts, keys, None),
                    Ok(Attempt::New) => break,
                    Err(fault) => {
                        keep(&mut parts, keys, None);
                        return Err(fault);
                    }
                }
            }
        }
        self.change_alone(keys, now_ms, change)
    }

    /// One try in one statement, from the states that are known or else read.
    fn try_change<T>(
        &self,
        cluster: &Cluster,
        keys: &[UsageKey],
        known: Option<Vec<String>>,
        change: &mut impl FnMut(&mut Vec<LimitUsage>) -> T,
    ) -> Result<Attempt<T>, StoreError> {
        let tried = cluster.pool().with(|session| {
            let executor = Executor::Postgres(session);
            let known = match known {
                Some(known) => Some(known),
                None => {
                    let read = keys.iter().map(|key| read_state(executor, key, ""));
                    read.collect::<sql::Result<_>>()?
                }
            };
            let Some(old) = known else {
                return Ok(Attempt::New);
            };
            let parsed = old.iter().map(|state| parse(state));
            let mut tallies = parsed.collect::<sql::Result<Vec<_>>>()?;
            for tally in &mut tallies {
                self.drop_dead_processes(executor, tally)?;
            }
            let changed = change(&mut tallies);
            let new = tallies.iter().map(serde_json::to_string);
            let new: Vec<String> = new.collect::<Result<_, _>>().map_err(unknown)?;
            let limits: Vec<&str> = keys.iter().map(|(limit, _)| limit.as_str()).collect();
            let callers: Vec<&str> = keys.iter().map(|(_, caller)| caller.as_str()).collect();
            let idle = tallies.iter().map(|tally| tally.idle_from_ms());
            let idle: Vec<Option<i64>> = idle.map(|ms| ms.map(to_integer)).collect();
            let count = i64::try_from(keys.len()).unwrap_or(i64::MAX);
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
                [&limits, &callers, &old, &new, &idle, &count];
            let written = session.execute_alone(EXCHANGE, &values)?;
            Ok(match written == keys.len() {
                true => Attempt::Done(changed, new),
                false => Attempt::Overtaken,
            })
        });
        tried.map_err(StoreError::sql(DOING))
    }

    /// In a transaction of its own, which no other writer overtakes: in a home, for a new
    /// key, and where others were always first.
    fn change_alone<T>(
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
                    if !has_room(executor, now_ms)? {
                        return Ok(None);
                    }
                    // There from now on, so that its row can be locked.
                    let sql = "INSERT INTO tallies VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
                    let empty = serde_json::to_string(&LimitUsage::default()).map_err(unknown)?;
                    executor.execute(sql, values![key.0, key.1, empty, Some(0_i64)])?;
                }
                let state = read_state(executor, key, FOR_UPDATE)?;
                let mut tally = match state {
                    Some(state) => parse(&state)?,
                    None if has_room(executor, now_ms)? => LimitUsage::default(),
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

    /// Locks the parts of all keys, in one order for all.
    fn hold_parts(&self, keys: &[UsageKey]) -> HeldParts<'_> {
        let mut numbers: Vec<usize> = keys.iter().map(part_of).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let held = numbers.into_iter();
        held.filter_map(|number| Some((number, lock(self.written.get(number)?))))
            .collect()
    }

    /// The tally of each key, without the calls of dead processes. Changes nothing.
    pub fn peek(&self, keys: &[UsageKey]) -> Result<Vec<LimitUsage>, StoreError> {
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

/// How one try to change tallies ended.
enum Attempt<T> {
    /// Written, with the new states.
    Done(T, Vec<String>),
    /// Another process changed one of them in between.
    Overtaken,
    /// One of the keys has no row.
    New,
}

fn part_of(key: &UsageKey) -> usize {
    let lock = lock_of(key).unsigned_abs();
    usize::try_from(lock).unwrap_or(0) % limit::USAGE_PARTS
}

/// The states this process wrote last, if it wrote all of them.
fn written(parts: &HeldParts<'_>, keys: &[UsageKey]) -> Option<Vec<String>> {
    let known = keys.iter().map(|key| {
        let number = part_of(key);
        let (_, part) = parts.iter().find(|(held, _)| *held == number)?;
        part.get(key).cloned()
    });
    known.collect()
}

/// Remembers what was written, or forgets what was there.
fn keep(parts: &mut HeldParts<'_>, keys: &[UsageKey], states: Option<Vec<String>>) {
    let mut states = states.unwrap_or_default().into_iter();
    for key in keys {
        let number = part_of(key);
        let state = states.next();
        let Some((_, part)) = parts.iter_mut().find(|(held, _)| *held == number) else {
            continue;
        };
        match state {
            Some(state) => {
                if part.len() >= limit::USAGE_KNOWN_MAX / limit::USAGE_PARTS {
                    part.clear();
                }
                part.insert(key.clone(), state);
            }
            None => {
                part.remove(key);
            }
        }
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
fn parse(state: &str) -> sql::Result<LimitUsage> {
    serde_json::from_str(state).map_err(unknown)
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
