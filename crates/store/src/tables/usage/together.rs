//! Changes of many calls in one statement, where nodes share the rows. One thread makes
//! them: what came while the database worked goes together in the next statement. A change
//! starts from the state this process wrote last, or from one that is read, and the
//! statement names it. If another node was faster, the change is asked again with what is
//! there now.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::govern::access::quota::LimitUsage;
use model::sync::lock;
use tokio::sync::oneshot;
use tokio_postgres::types::ToSql;

use super::rows::{TallyRows, parse, room, spell};
use super::{Changed, DOING, UsageKey};
use crate::error::StoreError;
use crate::home::database::to_integer;
use crate::limit;
use crate::postgres::session::Session;
use crate::sql::{self, Executor, SqlError};

/// Queues changes for the thread that makes them together. The first change starts the
/// thread.
pub(super) struct Together {
    rows: Arc<TallyRows>,
    sender: Mutex<Option<SyncSender<Waiting>>>,
}

// A change has no words of its own.
impl fmt::Debug for Together {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Together").finish_non_exhaustive()
    }
}

impl Together {
    pub(super) fn new(rows: &Arc<TallyRows>) -> Together {
        Together {
            rows: Arc::clone(rows),
            sender: Mutex::default(),
        }
    }

    /// Has a change made. It is made even if nothing waits for the answer any more.
    pub(super) fn submit<T: Send + 'static>(
        &self,
        keys: &[UsageKey],
        now_ms: u64,
        change: impl FnMut(&mut Vec<LimitUsage>) -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<Changed<T>>, StoreError> {
        let unavailable = |why: String| StoreError::Unavailable { doing: DOING, why };
        let (reply, answer) = oneshot::channel();
        let mut waiting = Waiting {
            change: Box::new(Asked {
                keys: keys.to_vec(),
                now_ms,
                change,
                changed: None,
                reply,
            }),
            attempts: 0,
        };
        let mut sender = lock(&self.sender);
        for _ in 0..2 {
            let open = match &*sender {
                Some(open) => open,
                None => sender.insert(start(&self.rows)?),
            };
            match open.try_send(waiting) {
                Ok(()) => return Ok(answer),
                Err(TrySendError::Full(_)) => {
                    let most = limit::USAGE_QUEUE_MAX;
                    return Err(unavailable(format!("{most} calls wait to be counted")));
                }
                // The thread panicked with another change. A new one knows nothing, and so
                // nothing wrong.
                Err(TrySendError::Disconnected(back)) => {
                    waiting = back;
                    *sender = None;
                }
            }
        }
        Err(unavailable("the thread that counts calls ended".to_owned()))
    }
}

/// Starts the thread. It ends when the sender is gone and every change is made.
fn start(rows: &Arc<TallyRows>) -> Result<SyncSender<Waiting>, StoreError> {
    let (sender, receiver) = sync_channel(limit::USAGE_QUEUE_MAX);
    let mut counter = CallCounter {
        rows: Arc::clone(rows),
        known: HashMap::new(),
    };
    let thread = std::thread::Builder::new().name("store-usage".to_owned());
    thread
        .spawn(move || counter.run(&receiver))
        .map_err(|error| StoreError::file("start the thread of", "tallies", error))?;
    Ok(sender)
}

/// A change, whatever its answer is.
trait QueuedChange: Send {
    fn keys(&self) -> &[UsageKey];
    fn now_ms(&self) -> u64;
    fn apply(&mut self, tallies: &mut Vec<LimitUsage>);
    fn answer(self: Box<Self>, end: ChangeEnd);
    /// In a transaction of its own, under a lock.
    fn make_alone(self: Box<Self>, rows: &TallyRows);
}

/// How a change ended.
enum ChangeEnd {
    Written,
    NoRoom,
    Failed(StoreError),
}

struct Asked<T, F> {
    keys: Vec<UsageKey>,
    now_ms: u64,
    change: F,
    changed: Option<T>,
    reply: oneshot::Sender<Changed<T>>,
}

impl<T: Send, F: FnMut(&mut Vec<LimitUsage>) -> T + Send> QueuedChange for Asked<T, F> {
    fn keys(&self) -> &[UsageKey] {
        &self.keys
    }

    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn apply(&mut self, tallies: &mut Vec<LimitUsage>) {
        self.changed = Some((self.change)(tallies));
    }

    fn answer(self: Box<Self>, end: ChangeEnd) {
        let answer = match end {
            ChangeEnd::Written => Ok(self.changed),
            ChangeEnd::NoRoom => Ok(None),
            ChangeEnd::Failed(fault) => Err(fault),
        };
        let _ = self.reply.send(answer);
    }

    fn make_alone(self: Box<Self>, rows: &TallyRows) {
        let changed = rows.change_alone(&self.keys, self.now_ms, self.change);
        let _ = self.reply.send(changed);
    }
}

struct Waiting {
    change: Box<dyn QueuedChange>,
    /// How often another node was faster.
    attempts: usize,
}

/// Makes changes.
struct CallCounter {
    rows: Arc<TallyRows>,
    /// What this process wrote last, by key.
    known: HashMap<UsageKey, Known>,
}

struct Known {
    state: String,
    tally: LimitUsage,
}

/// A row while changes are made to it.
struct Slot {
    old: String,
    tally: LimitUsage,
    new: String,
    /// Rows of one part are written together or not at all.
    part: i64,
    is_changed: bool,
}

/// The rows of a statement.
#[derive(Default)]
struct Slots {
    found: BTreeMap<UsageKey, Slot>,
    /// Rows that cannot be read, and why. A key that is in neither had no room.
    damaged: HashMap<UsageKey, String>,
}

impl CallCounter {
    /// Body of the thread.
    fn run(&mut self, receiver: &Receiver<Waiting>) {
        let mut batch = Vec::new();
        let mut is_busy = false;
        loop {
            if batch.is_empty() {
                match receiver.recv() {
                    Ok(first) => batch.push(first),
                    Err(_) => return,
                }
            }
            // A statement costs much and a row little. A call that comes alone does not wait.
            if is_busy {
                std::thread::sleep(Duration::from_micros(limit::USAGE_GATHER_US));
            }
            while batch.len() < limit::USAGE_TOGETHER_MAX {
                match receiver.try_recv() {
                    Ok(next) => batch.push(next),
                    Err(_) => break,
                }
            }
            is_busy = batch.len() > 1;
            batch = self.make(batch);
        }
    }

    /// Makes changes and answers them. Returns those that another node overtook.
    fn make(&mut self, batch: Vec<Waiting>) -> Vec<Waiting> {
        let is_tired = |waiting: &Waiting| waiting.attempts >= limit::USAGE_ATTEMPTS_MAX;
        let (tired, mut batch): (Vec<_>, Vec<_>) = batch.into_iter().partition(is_tired);
        // Overtaken so often, a change goes alone, under locks: there no other node is faster.
        for waiting in tired {
            waiting.change.make_alone(&self.rows);
        }
        let mut overtaken = Vec::new();
        if batch.is_empty() {
            return overtaken;
        }
        match self.write(&mut batch) {
            Ok(ends) => {
                for (mut waiting, end) in batch.into_iter().zip(ends) {
                    match end {
                        Some(end) => waiting.change.answer(end),
                        None => {
                            waiting.attempts += 1;
                            overtaken.push(waiting);
                        }
                    }
                }
            }
            // One call's name must not fail the calls of others.
            Err(fault) if batch.len() > 1 && is_undone(&fault) => {
                for waiting in batch {
                    overtaken.append(&mut self.make(vec![waiting]));
                }
            }
            // A single change that the database refused, or a statement that may have been
            // written: neither is tried again.
            Err(fault) => {
                let fault = StoreError::sql(DOING)(fault);
                for waiting in batch {
                    let end = ChangeEnd::Failed(fault.clone());
                    waiting.change.answer(end);
                }
            }
        }
        overtaken
    }

    /// Writes changes in one statement. Nothing is the end of one that was overtaken.
    fn write(&mut self, batch: &mut [Waiting]) -> sql::Result<Vec<Option<ChangeEnd>>> {
        let rows = Arc::clone(&self.rows);
        let cluster = rows.cluster();
        let cluster = cluster.ok_or_else(|| sql::unknown("no node shares these rows"))?;
        cluster.pool().with(|session| {
            let mut slots = self.load(session, batch)?;
            let mut ends: Vec<_> = batch
                .iter_mut()
                .map(|waiting| slots.apply(&mut *waiting.change))
                .collect();
            let written = slots.exchange(session)?;
            for (waiting, end) in batch.iter().zip(&mut ends) {
                let part = waiting.change.keys().first();
                let part = part.and_then(|key| slots.found.get(key));
                if end.is_none() && part.is_none_or(|slot| written.contains(&slot.part)) {
                    *end = Some(ChangeEnd::Written);
                }
            }
            self.keep(slots, &written);
            Ok(ends)
        })
    }

    /// The rows of all keys: as this process wrote them last, else as they are read; new
    /// keys get one if there is room.
    fn load(&mut self, session: &Session, batch: &[Waiting]) -> sql::Result<Slots> {
        let mut slots = Slots::default();
        let keys = batch.iter().flat_map(|waiting| waiting.change.keys());
        let keys: BTreeSet<&UsageKey> = keys.collect();
        let mut unknown = Vec::new();
        for key in keys {
            // Taken out, and put back only by `keep`: after a failure nothing is known here that
            // the database may not have.
            match self.known.remove(key) {
                Some(known) => slots.add(key.clone(), known.state, known.tally),
                None => unknown.push(key.clone()),
            }
        }
        if !unknown.is_empty() {
            for (key, state) in read(session, &unknown)? {
                match parse(&state) {
                    Ok(tally) => slots.add(key, state, tally),
                    // Invariant 8: never an empty tally.
                    Err(fault) => {
                        slots.damaged.insert(key, said(fault));
                    }
                }
            }
            unknown.retain(|key| !slots.has(key));
        }
        if !unknown.is_empty() {
            let now_ms = batch.iter().map(|waiting| waiting.change.now_ms()).min();
            let executor = Executor::Postgres(session);
            unknown.truncate(room(executor, now_ms.unwrap_or(0), unknown.len())?);
            let empty = spell(&LimitUsage::default())?;
            add_rows(session, &unknown, &empty)?;
            for key in unknown {
                slots.add(key, empty.clone(), LimitUsage::default());
            }
        }
        for slot in slots.found.values_mut() {
            // A process that died holds places that no call gives back.
            let executor = Executor::Postgres(session);
            self.rows.drop_dead_processes(executor, &mut slot.tally)?;
        }
        Ok(slots)
    }

    /// Remembers what was written; the rest is read again when it is needed.
    fn keep(&mut self, slots: Slots, written: &BTreeSet<i64>) {
        if self.known.len() + slots.found.len() > limit::USAGE_KNOWN_MAX {
            self.known.clear();
        }
        for (key, slot) in slots.found {
            if slot.is_changed && written.contains(&slot.part) {
                let known = Known {
                    state: slot.new,
                    tally: slot.tally,
                };
                self.known.insert(key, known);
            }
        }
    }
}

impl Slots {
    fn add(&mut self, key: UsageKey, old: String, tally: LimitUsage) {
        let slot = Slot {
            old,
            tally,
            new: String::new(),
            // Each alone, until a change has several keys.
            part: i64::try_from(self.found.len()).unwrap_or(i64::MAX),
            is_changed: false,
        };
        self.found.insert(key, slot);
    }

    fn has(&self, key: &UsageKey) -> bool {
        self.found.contains_key(key) || self.damaged.contains_key(key)
    }

    /// Asks for a change. Changes of one key build on each other. Returns how it ended, if it
    /// cannot be made.
    fn apply(&mut self, change: &mut dyn QueuedChange) -> Option<ChangeEnd> {
        let keys = change.keys().to_vec();
        let mut tallies = Vec::with_capacity(keys.len());
        for key in &keys {
            match (self.found.get(key), self.damaged.get(key)) {
                (Some(slot), _) => tallies.push(slot.tally.clone()),
                (None, Some(why)) => {
                    let (doing, what) = (DOING, why.clone());
                    return Some(ChangeEnd::Failed(StoreError::Unknown { doing, what }));
                }
                (None, None) => return Some(ChangeEnd::NoRoom),
            }
        }
        change.apply(&mut tallies);
        let parts = keys
            .iter()
            .filter_map(|key| Some(self.found.get(key)?.part));
        let parts: BTreeSet<i64> = parts.collect();
        for (key, tally) in keys.iter().zip(tallies) {
            if let Some(slot) = self.found.get_mut(key) {
                (slot.tally, slot.is_changed) = (tally, true);
            }
        }
        self.join(&parts);
        None
    }

    /// Merges the parts that one change touches, so that they are written together or not at
    /// all.
    fn join(&mut self, parts: &BTreeSet<i64>) {
        let (Some(first), true) = (parts.first(), parts.len() > 1) else {
            return;
        };
        for slot in self.found.values_mut() {
            if parts.contains(&slot.part) {
                slot.part = *first;
            }
        }
    }

    /// Writes the new states of all parts whose old states are still there. Returns these
    /// parts.
    fn exchange(&mut self, session: &Session) -> sql::Result<BTreeSet<i64>> {
        let mut sizes: BTreeMap<i64, i64> = BTreeMap::new();
        for slot in self.found.values_mut().filter(|slot| slot.is_changed) {
            slot.new = spell(&slot.tally)?;
            *sizes.entry(slot.part).or_default() += 1;
        }
        if sizes.is_empty() {
            return Ok(BTreeSet::new());
        }
        let changed = || self.found.iter().filter(|(_, slot)| slot.is_changed);
        let limits: Vec<&str> = changed().map(|((limit, _), _)| limit.as_str()).collect();
        let callers: Vec<&str> = changed().map(|((_, caller), _)| caller.as_str()).collect();
        let old: Vec<&str> = changed().map(|(_, slot)| slot.old.as_str()).collect();
        let new: Vec<&str> = changed().map(|(_, slot)| slot.new.as_str()).collect();
        let idle = changed().map(|(_, slot)| slot.tally.idle_from_ms());
        let idle: Vec<Option<i64>> = idle.map(|ms| ms.map(to_integer)).collect();
        let parts: Vec<i64> = changed().map(|(_, slot)| slot.part).collect();
        let size = |part: &i64| sizes.get(part).copied().unwrap_or(0);
        let sizes: Vec<i64> = parts.iter().map(size).collect();
        let values: [&(dyn ToSql + Sync); 7] =
            [&limits, &callers, &old, &new, &idle, &parts, &sizes];
        let written = session.query_change(EXCHANGE, &values)?;
        let written = written.iter().map(|row| row.try_get(0));
        // What was written cannot be read: it may be all of it.
        let doubt = |fault: tokio_postgres::Error| SqlError::InDoubt(fault.to_string());
        written.collect::<Result<_, _>>().map_err(doubt)
    }
}

/// Writes new states, each part of the rows as a whole: if every old state of it is still
/// there, and nothing otherwise. Rows are locked in one order for all, so that no two nodes
/// wait for each other. A power cut may lose the last moments, as in a home.
const EXCHANGE: &str = "WITH quick AS MATERIALIZED (\
        SELECT set_config('synchronous_commit', 'off', true)), \
    wanted AS MATERIALIZED (SELECT * FROM unnest(?1::TEXT[], ?2::TEXT[], ?3::TEXT[], \
        ?4::TEXT[], ?5::BIGINT[], ?6::BIGINT[], ?7::BIGINT[]) \
        AS wanted (limit_id, caller, old, new, idle, part, size)), \
    locked AS MATERIALIZED (SELECT wanted.part, wanted.size FROM tallies JOIN wanted \
        ON tallies.limit_id = wanted.limit_id AND tallies.caller = wanted.caller \
        WHERE tallies.state = wanted.old \
        ORDER BY tallies.limit_id, tallies.caller FOR UPDATE OF tallies), \
    whole AS MATERIALIZED (\
        SELECT part FROM locked GROUP BY part, size HAVING count(*) = size) \
    UPDATE tallies SET state = wanted.new, idle_from_ms = wanted.idle \
    FROM wanted JOIN whole ON whole.part = wanted.part CROSS JOIN quick \
    WHERE tallies.limit_id = wanted.limit_id AND tallies.caller = wanted.caller \
        AND tallies.state = wanted.old \
    RETURNING wanted.part";

/// The states of keys that have a row.
fn read(session: &Session, keys: &[UsageKey]) -> sql::Result<Vec<(UsageKey, String)>> {
    let sql = "SELECT tallies.limit_id, tallies.caller, tallies.state FROM tallies \
        JOIN unnest(?1::TEXT[], ?2::TEXT[]) AS wanted (limit_id, caller) \
        ON tallies.limit_id = wanted.limit_id AND tallies.caller = wanted.caller";
    let (limits, callers) = columns(keys);
    let rows = session.query(sql, &[&limits, &callers])?;
    let key = |row: &tokio_postgres::Row| Ok(((row.try_get(0)?, row.try_get(1)?), row.try_get(2)?));
    rows.iter()
        .map(key)
        .collect::<Result<_, _>>()
        .map_err(SqlError::Postgres)
}

/// Makes rows of new keys, so that they can be locked. One that another node made meanwhile
/// stays, and the exchange finds out.
fn add_rows(session: &Session, keys: &[UsageKey], empty: &str) -> sql::Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    // Idle from the start (0): until a change writes to it, `room` may delete the row.
    let sql = "WITH quick AS MATERIALIZED (\
            SELECT set_config('synchronous_commit', 'off', true)) \
        INSERT INTO tallies SELECT wanted.limit_id, wanted.caller, ?3::TEXT, 0 \
        FROM unnest(?1::TEXT[], ?2::TEXT[]) AS wanted (limit_id, caller) CROSS JOIN quick \
        ON CONFLICT DO NOTHING";
    let (limits, callers) = columns(keys);
    session.execute(sql, &[&limits, &callers, &empty])?;
    Ok(())
}

fn columns(keys: &[UsageKey]) -> (Vec<&str>, Vec<&str>) {
    let columns = keys
        .iter()
        .map(|(limit, caller)| (limit.as_str(), caller.as_str()));
    columns.unzip()
}

/// Whether the database refused the statement for its values or for a conflict, and wrote
/// nothing. Other errors may come with the end of the connection.
fn is_undone(fault: &SqlError) -> bool {
    let SqlError::Postgres(error) = fault else {
        return false;
    };
    let code = error.code().map(|state| state.code());
    code.is_some_and(|code| code.starts_with("22") || code.starts_with("40"))
}

fn said(fault: SqlError) -> String {
    match fault {
        SqlError::Unknown(what) => what,
        SqlError::Sqlite(_) | SqlError::Postgres(_) => "it cannot be read".to_owned(),
        SqlError::Unavailable(why) | SqlError::InDoubt(why) => why,
    }
}
