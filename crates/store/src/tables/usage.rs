//! How much of their quotas callers used, for all processes of a home together.
//!
//! A change reads, updates and writes so that no two processes admit the same last call: in
//! one transaction in a home; on nodes that share a store by a statement that names the
//! state it starts from (`together`). It survives the death of the process; a power cut may
//! lose the last moments.

/// The rows of the table, in a home and in a shared store.
mod rows;
/// Changes of many calls in one statement.
mod together;

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::govern::access::quota::LimitUsage;
use tokio::sync::oneshot::Receiver;

use crate::error::StoreError;
use crate::limit;
use crate::postgres::park::wait_until;
use crate::sql::peers::Peers;
use crate::sql::tables::Tables;
use crate::tables::usage::rows::TallyRows;
use crate::tables::usage::together::Together;

const DOING: &str = "count calls";

/// A limit and a caller, in lower case.
pub type UsageKey = (String, String);

/// The answer to a change; nothing if there is no room for another key.
type Changed<T> = Result<Option<T>, StoreError>;

/// How much of their quotas callers used.
#[derive(Debug)]
pub struct QuotaUsage {
    rows: Arc<TallyRows>,
    /// Where nodes share the rows.
    together: Option<Together>,
}

impl QuotaUsage {
    pub(crate) fn new(tables: Tables, peers: Peers, process: &Arc<str>) -> QuotaUsage {
        let is_shared = matches!(tables, Tables::Shared(_));
        let rows = Arc::new(TallyRows::new(tables, peers, process));
        QuotaUsage {
            together: is_shared.then(|| Together::new(&rows)),
            rows,
        }
    }

    /// The id of this process in tallies.
    #[must_use]
    pub fn process(&self) -> &Arc<str> {
        self.rows.process()
    }

    /// Hands over the tally of each key, without the calls of dead processes, and saves it
    /// as changed. Returns nothing if there is no room for another key. `change` may be
    /// asked again with newer tallies; only its last answer counts. Blocks the thread.
    pub fn change<T: Send + 'static>(
        &self,
        keys: &[UsageKey],
        now_ms: u64,
        change: impl FnMut(&mut Vec<LimitUsage>) -> T + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let Some(together) = &self.together else {
            return self.rows.change_alone(keys, now_ms, change);
        };
        let answer = together.submit(keys, now_ms, change)?;
        let until = Instant::now() + Duration::from_millis(limit::USAGE_WAIT_MS_MAX);
        match wait_until(until, answer) {
            Some(answer) => answer.unwrap_or_else(|_| Err(lost())),
            None => Err(lost()),
        }
    }

    /// The same for a task. The change is made even if the task is given up meanwhile.
    pub async fn change_in_task<T: Send + 'static>(
        self: &Arc<Self>,
        keys: &[UsageKey],
        now_ms: u64,
        change: impl FnMut(&mut Vec<LimitUsage>) -> T + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let Some(together) = &self.together else {
            let (rows, keys) = (Arc::clone(&self.rows), keys.to_vec());
            let changing = move || rows.change_alone(&keys, now_ms, change);
            let panicked = |_| StoreError::Unknown {
                doing: DOING,
                what: "the task panicked".to_owned(),
            };
            let changed = tokio::task::spawn_blocking(changing).await;
            return changed.map_err(panicked)?;
        };
        let answer: Receiver<Changed<T>> = together.submit(keys, now_ms, change)?;
        answer.await.unwrap_or_else(|_| Err(lost()))
    }

    /// The tally of each key, without the calls of dead processes. Changes nothing.
    pub fn peek(&self, keys: &[UsageKey]) -> Result<Vec<LimitUsage>, StoreError> {
        self.rows.peek(keys)
    }
}

/// Whether the change was made is unknown.
fn lost() -> StoreError {
    StoreError::InDoubt {
        doing: DOING,
        why: "the thread that counts calls did not answer".to_owned(),
    }
}
