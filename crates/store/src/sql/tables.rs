//! Where the rows of a table are. With SQLite a change takes the one lock for writers; with
//! Postgres it takes a lock of its table or of its keys, which ends with the transaction, so
//! that both count and then write without another writer in between.

use std::sync::Arc;

use rusqlite::TransactionBehavior;

use crate::error::StoreError;
use crate::home::database::LazyConnection;
use crate::postgres::Cluster;
use crate::sql::{self, Executor};

/// The rows of a table.
#[derive(Debug)]
pub(crate) enum Tables {
    /// In the home.
    Home(LazyConnection),
    /// In a Postgres that several homes share.
    Shared(Arc<Cluster>),
}

/// Who else must wait while a change is made. SQLite has one writer anyway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Writers {
    /// No other: each statement of the change holds by itself.
    Any,
    /// All that change the same table.
    OneOf(LockedTable),
    /// All that change one of the same keys. A power cut may lose the last moments.
    OneOfKeys(Vec<i64>),
}

/// A table with one writer at a time. The number is the lock's, in all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockedTable {
    Approvals = 1,
    Callers = 2,
    Keys = 3,
    Publications = 4,
    People = 5,
    Scripts = 6,
    Jobs = 7,
    Witnessed = 8,
    WaitingScripts = 9,
}

impl Tables {
    /// The rows of the home, or those of the cluster it belongs to.
    pub(crate) fn new(cluster: Option<&Arc<Cluster>>, home: LazyConnection) -> Tables {
        match cluster {
            None => Tables::Home(home),
            Some(cluster) => Tables::Shared(Arc::clone(cluster)),
        }
    }

    /// Runs a statement that only reads.
    pub(crate) fn read<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(Executor<'_>) -> sql::Result<T>,
    ) -> Result<T, StoreError> {
        let fail = StoreError::sql(doing);
        match self {
            Tables::Home(connection) => {
                let connection = connection.lock()?;
                work(Executor::Sqlite(&connection)).map_err(fail)
            }
            Tables::Shared(cluster) => {
                let pool = cluster.pool();
                let done = pool.with(|session| work(Executor::Postgres(session)));
                done.map_err(fail)
            }
        }
    }

    /// The same, if that needs no wait for another thread. Nothing if it does, or fails.
    pub(crate) fn try_read<T>(
        &self,
        work: impl FnOnce(Executor<'_>) -> sql::Result<T>,
    ) -> Option<T> {
        match self {
            Tables::Home(connection) => {
                let connection = connection.try_lock()?;
                work(Executor::Sqlite(&connection)).ok()
            }
            Tables::Shared(cluster) => {
                let pool = cluster.pool();
                pool.with(|session| work(Executor::Postgres(session))).ok()
            }
        }
    }

    /// Runs statements that only read, all of one moment.
    pub(crate) fn read_moment<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(Executor<'_>) -> sql::Result<T>,
    ) -> Result<T, StoreError> {
        let fail = StoreError::sql(doing);
        match self {
            Tables::Home(connection) => {
                let connection = connection.lock()?;
                let moment = connection.unchecked_transaction();
                let moment = moment.map_err(|error| fail(error.into()))?;
                work(Executor::Sqlite(&moment)).map_err(fail)
            }
            Tables::Shared(cluster) => {
                let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
                let pool = cluster.pool();
                let done = pool.with(|session| {
                    session.in_transaction(begin, |session| work(Executor::Postgres(session)))
                });
                done.map_err(fail)
            }
        }
    }

    /// Makes a change in a transaction. An error takes it back.
    pub(crate) fn change<T>(
        &self,
        doing: &'static str,
        writers: &Writers,
        work: impl FnOnce(Executor<'_>) -> sql::Result<T>,
    ) -> Result<T, StoreError> {
        let fail = StoreError::sql(doing);
        match self {
            Tables::Home(connection) => {
                let mut connection = connection.lock()?;
                let change = connection
                    .transaction_with_behavior(TransactionBehavior::Immediate)
                    .map_err(|error| fail(error.into()))?;
                let done = work(Executor::Sqlite(&change)).map_err(&fail)?;
                change.commit().map_err(|error| fail(error.into()))?;
                Ok(done)
            }
            Tables::Shared(cluster) => {
                let (pool, begin) = (cluster.pool(), writers.begin());
                let done = pool.with(|session| {
                    session.in_transaction(&begin, |session| work(Executor::Postgres(session)))
                });
                done.map_err(fail)
            }
        }
    }
}

impl Writers {
    /// How the transaction begins.
    fn begin(&self) -> String {
        match self {
            Writers::Any => "BEGIN".to_owned(),
            Writers::OneOf(table) => {
                let number = *table as i64;
                format!("BEGIN; SELECT pg_advisory_xact_lock({LOCKS}, {number})")
            }
            Writers::OneOfKeys(keys) => {
                // In one order for all, so that no two wait for each other.
                let mut keys = keys.clone();
                keys.sort_unstable();
                keys.dedup();
                let mut begin = "BEGIN; SET LOCAL synchronous_commit = off".to_owned();
                for key in keys {
                    begin.push_str(&format!("; SELECT pg_advisory_xact_lock({key})"));
                }
                begin
            }
        }
    }
}

/// The first half of the locks of tables: `RF`.
const LOCKS: i64 = 0x5246;
