//! One connection and its prepared statements. A session that was given up on, or that
//! failed, is closed and never used again: what it still does is unknown.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use crate::error::{SqlError, SqlResult, causes};
use crate::limit;
use crate::postgres::park::wait_until;

/// One connection, used by one thread at a time.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    driver: AbortHandle,
    statements: RefCell<HashMap<String, Statement>>,
    until: Cell<Instant>,
    is_broken: Cell<bool>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Session {
    pub(super) fn new(client: Client, driver: AbortHandle) -> Session {
        Session {
            client,
            driver,
            statements: RefCell::default(),
            until: Cell::new(Instant::now()),
            is_broken: Cell::new(false),
        }
    }

    /// Whether it can be used again.
    pub(super) fn is_sound(&self) -> bool {
        !self.is_broken.get() && !self.client.is_closed()
    }

    /// From now on there is this much time for everything.
    pub(super) fn start_clock(&self) {
        let wait = Duration::from_millis(limit::SHARED_WAIT_MS_MAX);
        self.until.set(Instant::now() + wait);
    }

    pub(crate) fn execute(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> SqlResult<usize> {
        let statement = self.prepared(sql)?;
        let changed = self.wait(self.client.execute(&statement, values))?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    /// A change of its own that says what it did: if no answer comes, it may have been made.
    pub(crate) fn query_change(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> SqlResult<Vec<Row>> {
        let statement = self.prepared(sql)?;
        match self.wait(self.client.query(&statement, values)) {
            Err(SqlError::Unavailable(why)) => Err(SqlError::InDoubt(why)),
            answered => answered,
        }
    }

    pub(crate) fn query(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> SqlResult<Vec<Row>> {
        let statement = self.prepared(sql)?;
        self.wait(self.client.query(&statement, values))
    }

    /// A single number, such as a count.
    pub(crate) fn number(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> SqlResult<i64> {
        let rows = self.query(sql, values)?;
        let missing = || SqlError::Unknown("a row is missing".to_owned());
        let row = rows.first().ok_or_else(missing)?;
        row.try_get(0).map_err(SqlError::Postgres)
    }

    /// Several statements without parameters.
    pub(crate) fn run_script(&self, script: &str) -> SqlResult<()> {
        self.wait(self.client.batch_execute(script))
    }

    /// Does the work between `begin` and a commit; an error rolls it back. If the commit is
    /// not confirmed, the result is unknown and an error.
    pub(crate) fn in_transaction<T>(
        &self,
        begin: &str,
        work: impl FnOnce(&Session) -> SqlResult<T>,
    ) -> SqlResult<T> {
        let begun = self.run_script(begin);
        let done = begun.and_then(|()| work(self));
        match done {
            Ok(done) => match self.run_script("COMMIT") {
                Ok(()) => Ok(done),
                Err(SqlError::Unavailable(why)) => Err(SqlError::InDoubt(why)),
                Err(error) => Err(error),
            },
            Err(error) => {
                if self.is_sound() && self.run_script("ROLLBACK").is_err() {
                    self.is_broken.set(true);
                }
                Err(error)
            }
        }
    }

    /// A statement is prepared once for each connection.
    fn prepared(&self, sql: &str) -> SqlResult<Statement> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.wait(self.client.prepare(&sql.replace('?', "$")))?;
        let mut kept = self.statements.borrow_mut();
        if kept.len() >= limit::SHARED_STATEMENTS_MAX {
            kept.clear();
        }
        kept.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> SqlResult<T> {
        #[cfg(feature = "testing")]
        crate::testing::step_shared();
        match wait_until(self.until.get(), answer) {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) if error.as_db_error().is_some() && !self.client.is_closed() => {
                Err(SqlError::Postgres(error))
            }
            Some(Err(error)) => {
                self.is_broken.set(true);
                Err(SqlError::Unavailable(causes(&error)))
            }
            None => {
                self.is_broken.set(true);
                let wait = limit::SHARED_WAIT_MS_MAX;
                Err(SqlError::Unavailable(format!("no answer within {wait} ms")))
            }
        }
    }
}
