//! A caller's attempts as trust reads them: the newest in the audit, and older ones
//! that went wrong.
//!
//! Attack: many easy calls that push an error out of sight. So what went wrong is
//! kept apart from what went well, and outlives it.
//!
//! Reading ten thousand entries takes a while, so what was read is kept for the
//! callers of the moment, and the next look reads on from there. The audit only
//! grows, so what was read stays true; whatever other processes add is read too.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use model::govern::trust::{TrustOutcome, TrustRecord};
use model::limits;
use model::record::audit::Status;
use model::sync::lock;
use store::{AuditEntry, Filter, Store, StoreError};

use crate::limit;

/// The attempts of the callers of the moment.
#[derive(Debug, Default)]
pub(crate) struct Histories {
    callers: Mutex<HashMap<String, History>>,
}

#[derive(Debug, Default)]
struct History {
    /// It reaches back to here, in milliseconds since 1970.
    since_ms: i64,
    /// Everything up to this place in the audit has been read.
    through: u64,
    /// By place in the audit.
    records: BTreeMap<u64, TrustRecord>,
}

impl Histories {
    /// The attempts of a caller since a time, and perhaps earlier ones.
    pub(crate) fn of(
        &self,
        store: &Store,
        caller: &str,
        since_ms: i64,
    ) -> Result<Vec<TrustRecord>, StoreError> {
        // Taken out while it is read on. If that fails, the next look reads from the
        // start.
        let kept = self.lock().remove(caller);
        let kept = kept.filter(|history| history.since_ms <= since_ms);
        let grown = match kept {
            Some(history) => grown(history, store, caller)?,
            None => None,
        };
        let history = match grown {
            Some(history) => history,
            None => read(store, caller, since_ms)?,
        };
        let records = history.records.values().cloned().collect();
        let mut callers = self.lock();
        // What is dropped here is only read again.
        if callers.len() >= limit::TRUST_HISTORIES_MAX {
            callers.clear();
        }
        callers.insert(caller.to_owned(), history);
        Ok(records)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, History>> {
        lock(&self.callers)
    }
}

/// Reads on; nothing if there is too much of it.
fn grown(mut history: History, store: &Store, caller: &str) -> Result<Option<History>, StoreError> {
    let newer = Filter {
        caller: Some(caller.to_owned()),
        after: Some(history.through),
        limit: Some(limits::TRUST_RECORDS_MAX),
        ..Filter::default()
    };
    let entries = store.audit().list(&newer)?;
    // A full page: entries between it and what is known are missing.
    if entries.len() >= limits::TRUST_RECORDS_MAX {
        return Ok(None);
    }
    history.add(&entries);
    history.trim();
    Ok(Some(history))
}

/// Reads from the start.
fn read(store: &Store, caller: &str, since_ms: i64) -> Result<History, StoreError> {
    let mut history = History {
        since_ms,
        ..History::default()
    };
    let all = Filter {
        caller: Some(caller.to_owned()),
        since_ms: Some(since_ms),
        limit: Some(limits::TRUST_RECORDS_MAX),
        ..Filter::default()
    };
    let entries = store.audit().list(&all)?;
    history.add(&entries);
    if entries.len() >= limits::TRUST_RECORDS_MAX {
        let before = entries.last().map(|oldest| oldest.sequence);
        // Slips are refused, too, and must not take the place of denials.
        for status in [Status::Failed, Status::Crashed, Status::Refused] {
            let older = Filter {
                status: Some(status),
                before,
                ..all.clone()
            };
            let entries = store.audit().list(&older)?;
            history.records.extend(entries.iter().filter_map(record));
        }
    }
    history.trim();
    Ok(history)
}

impl History {
    fn add(&mut self, entries: &[AuditEntry]) {
        self.records.extend(entries.iter().filter_map(record));
        let last = entries.iter().map(|entry| entry.sequence).max();
        // What is still under way is read again when it is over.
        let open = entries.iter().filter(|entry| entry.closing.is_none());
        let open = open.map(|entry| entry.sequence.saturating_sub(1)).min();
        let reached = open.or(last).unwrap_or(self.through);
        self.through = self.through.max(reached);
    }

    /// Drops the oldest of what went well, and of what went wrong.
    fn trim(&mut self) {
        let is_done = |record: &TrustRecord| record.outcome == TrustOutcome::Done;
        let places = |wanted: bool| -> Vec<u64> {
            let records = self.records.iter();
            let records = records.filter(|(_, record)| is_done(record) == wanted);
            records.map(|(place, _)| *place).collect()
        };
        let (done, wrong) = (places(true), places(false));
        let done_max = limits::TRUST_RECORDS_MAX;
        let wrong_max = limits::TRUST_OLDER_ERRORS_MAX;
        let excess = |places: &[u64], most: usize| places.len().saturating_sub(most);
        let (done_excess, wrong_excess) = (excess(&done, done_max), excess(&wrong, wrong_max));
        let gone = done.into_iter().take(done_excess);
        for place in gone.chain(wrong.into_iter().take(wrong_excess)) {
            self.records.remove(&place);
        }
    }
}

fn record(entry: &AuditEntry) -> Option<(u64, TrustRecord)> {
    let closing = entry.closing.as_ref()?;
    let record = TrustRecord::from_audit(&entry.opening, closing)?;
    Some((entry.sequence, record))
}

#[cfg(test)]
mod tests {
    use model::policy::risk::Level;

    use super::*;

    #[test]
    fn failures_are_kept_longer_than_successes() {
        let record = |outcome| TrustRecord {
            at_ms: 0,
            tool: "tool".to_owned(),
            category: None,
            risk: Level::L0,
            outcome,
        };
        let mut history = History::default();
        let (done_max, wrong_max) = (limits::TRUST_RECORDS_MAX, limits::TRUST_OLDER_ERRORS_MAX);
        let wrong = (0_u64..).zip(vec![record(TrustOutcome::Failed); wrong_max + 2]);
        history.records.extend(wrong);
        let done = (100_000_u64..).zip(vec![record(TrustOutcome::Done); done_max + 3]);
        history.records.extend(done);
        history.trim();
        let places: Vec<u64> = history.records.keys().copied().collect();
        assert_eq!(places.len(), done_max + wrong_max);
        assert_eq!(places.first(), Some(&2), "the oldest went");
        assert_eq!(places.get(wrong_max), Some(&100_003));
    }
}
