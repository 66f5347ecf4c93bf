//! What the shared tables look like. Changes of them are numbered. Each says from which
//! number on a program can still work with the tables after it, so that two versions run
//! side by side while nodes are upgraded one by one. Whoever is too old is refused.

use tokio_postgres::Row;

use crate::error::{SqlError, SqlResult, StoreError};
use crate::postgres::pool::SessionPool;
use crate::postgres::session::Session;

/// One change of the tables.
struct SchemaStep {
    /// What to do.
    sql: &'static str,
    /// Programs that know this many steps can go on working.
    usable_from: i64,
}

/// Each step from one schema to the next.
const STEPS: &[SchemaStep] = &[
    SchemaStep {
        sql: include_str!("../home/schema/postgres/1.sql"),
        usable_from: 1,
    },
    // Older programs would not follow the rules of other nodes, and count under a lock that
    // newer ones do not take.
    SchemaStep {
        sql: include_str!("../home/schema/postgres/2.sql"),
        usable_from: 2,
    },
];

/// One at a time; all versions use this lock.
const BEGIN: &str = "BEGIN; SELECT pg_advisory_xact_lock(21062, 0); \
    CREATE TABLE IF NOT EXISTS schema_version (\
    one BIGINT PRIMARY KEY CHECK (one = 1), version BIGINT NOT NULL, usable_from BIGINT NOT NULL)";

/// The schema of a shared database, and what this program knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaStatus {
    /// The number of steps that were made; 0 in an empty database.
    pub found: i64,
    /// The oldest program that can use it.
    pub usable_from: i64,
    /// The number of steps this program knows.
    pub known: i64,
}

impl SchemaStatus {
    /// Whether this program can use it as it is.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        !self.is_newer() && (self.found == 0 || !self.cuts_off())
    }

    /// Whether it was made by a newer program that this one is too old for.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        self.usable_from > self.known
    }

    /// Whether the missing steps would stop programs that work with it now.
    pub(crate) fn cuts_off(&self) -> bool {
        let done = usize::try_from(self.found).unwrap_or(0);
        let mut missing = STEPS.iter().skip(done);
        missing.any(|step| step.usable_from > self.found)
    }
}

fn known() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

const PREPARING: &str = "prepare the shared store";

/// Brings the schema up to date, unless that would stop other nodes that run now.
pub(super) fn prepare(pool: &SessionPool) -> Result<(), StoreError> {
    let status = step_up(pool, false)?;
    match (status.is_newer(), status.found < status.known) {
        (true, _) => Err(newer(pool, status)),
        (false, true) => Err(StoreError::Address {
            why: format!(
                "`{}` has schema {}; with schema {} older nodes stop: upgrade them, then run \
                 `ringfence store migrate`",
                pool.address().shown(),
                status.found,
                status.known
            ),
        }),
        (false, false) => Ok(()),
    }
}

/// Brings the schema up to date even if older programs can no longer use it. That none of
/// them runs is what the caller looks at.
pub(crate) fn migrate(pool: &SessionPool) -> Result<(), StoreError> {
    let after = step_up(pool, true)?;
    match after.is_newer() {
        true => Err(newer(pool, after)),
        false => Ok(()),
    }
}

/// What is there; nothing is changed.
pub(crate) fn look(pool: &SessionPool) -> Result<SchemaStatus, StoreError> {
    let looked = pool.with(|session| {
        let sql = "SELECT count(*) FROM pg_catalog.pg_tables \
                   WHERE tablename = 'schema_version' AND schemaname = current_schema()";
        match session.number(sql, &[])? {
            0 => Ok(status(None)),
            _ => read(session),
        }
    });
    looked.map_err(StoreError::sql(PREPARING))
}

fn newer(pool: &SessionPool, status: SchemaStatus) -> StoreError {
    StoreError::Newer {
        path: pool.address().shown().into(),
        found: status.found,
        known: status.known,
    }
}

/// Makes the missing steps. Without `force` not those that would stop others.
fn step_up(pool: &SessionPool, force: bool) -> Result<SchemaStatus, StoreError> {
    let stepped = pool.with(|session| {
        session.in_transaction(BEGIN, |session| {
            let found = read(session)?;
            let may = force || found.found == 0 || !found.cuts_off();
            if found.found >= found.known || !may {
                return Ok(found);
            }
            let done = usize::try_from(found.found).unwrap_or(0);
            let mut usable_from = found.usable_from;
            for step in STEPS.iter().skip(done) {
                session.run_script(step.sql)?;
                usable_from = usable_from.max(step.usable_from);
            }
            session.execute(
                "INSERT INTO schema_version VALUES (1, ?1, ?2)
                 ON CONFLICT (one) DO UPDATE SET version = ?1, usable_from = ?2",
                &[&found.known, &usable_from],
            )?;
            read(session)
        })
    });
    stepped.map_err(StoreError::sql(PREPARING))
}

fn read(session: &Session) -> SqlResult<SchemaStatus> {
    let rows = session.query("SELECT version, usable_from FROM schema_version", &[])?;
    let both = |row: &Row| -> Result<(i64, i64), tokio_postgres::Error> {
        Ok((row.try_get(0)?, row.try_get(1)?))
    };
    let found = rows.first().map(both).transpose();
    Ok(status(found.map_err(SqlError::Postgres)?))
}

fn status(found: Option<(i64, i64)>) -> SchemaStatus {
    let (found, usable_from) = found.unwrap_or((0, 0));
    SchemaStatus {
        found,
        usable_from,
        known: known(),
    }
}
