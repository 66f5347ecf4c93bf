//! Background jobs of callers, for all processes of a home. A row is written before the
//! job starts. A job whose process is dead is `orphaned`: the jail ends it with its
//! process, and the next look at the row says so.

use std::sync::Arc;

use model::record::job::JobState;
use model::word::Word as _;

use crate::error::StoreError;
use crate::home::database::{from_integer, to_integer};
use crate::limit;
use crate::sql::peers::Peers;
use crate::sql::tables::{LockedTable, Tables, Writers};
use crate::sql::{self, Executor, SqlRow, unknown, values};

const DOING: &str = "keep the background jobs";

/// A job that is about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// Its id, which cannot be guessed.
    pub id: String,
    /// The caller it belongs to.
    pub caller: String,
    /// The call that starts it.
    pub call_id: String,
    /// Its command, masked and shortened.
    pub command: String,
    /// Milliseconds since 1970.
    pub started_at_ms: i64,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEnd {
    /// Any state but `running`.
    pub state: JobState,
    /// Milliseconds since 1970.
    pub ended_at_ms: i64,
    /// The exit code, if it had one.
    pub exit_code: Option<i32>,
    /// Bytes it wrote.
    pub stdout_bytes: u64,
    /// Bytes it wrote to its standard error.
    pub stderr_bytes: u64,
    /// What is to be said besides.
    pub why: Option<String>,
    /// The id of its changes, where they were kept aside.
    pub changes: Option<String>,
}

/// A job as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRow {
    /// How it started.
    pub job: NewJob,
    /// How it ended; nothing while it runs.
    pub end: Option<JobEnd>,
}

/// Background jobs of callers.
#[derive(Debug)]
pub struct Jobs {
    process: Arc<str>,
    tables: Tables,
    peers: Peers,
}

impl Jobs {
    pub(crate) fn new(tables: Tables, peers: Peers, process: &Arc<str>) -> Jobs {
        Jobs {
            process: Arc::clone(process),
            tables,
            peers,
        }
    }

    /// Writes down a job that is about to start. `false` if its caller has as many running
    /// as allowed; then it must not start.
    pub fn start(&self, job: &NewJob, running_max: u64) -> Result<bool, StoreError> {
        self.change(|change| {
            // First, or the jobs of a dead process would keep its caller
            // from starting others.
            self.mark_orphans(change, &job.caller, job.started_at_ms)?;
            let sql = "SELECT count(*) FROM jobs WHERE caller = ?1 AND state = 'running'";
            let running = change.number(sql, values![job.caller])?;
            if from_integer(running) >= running_max {
                return Ok(false);
            }
            change.execute(
                "INSERT INTO jobs (id, caller, process, call_id, command, state, started_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, 'running', ?6)",
                values![
                    job.id,
                    job.caller,
                    &*self.process,
                    job.call_id,
                    job.command,
                    job.started_at_ms
                ],
            )?;
            forget_old(change, &job.caller)?;
            Ok(true)
        })
    }

    /// Writes down the end of a job of this process. `false` if it had ended already.
    pub fn end(&self, id: &str, end: &JobEnd) -> Result<bool, StoreError> {
        self.change(|change| {
            // Only its own process ends a job: another one may have declared it orphaned.
            let changed = change.execute(
                "UPDATE jobs SET state = ?3, ended_ms = ?4, exit_code = ?5, stdout_bytes = ?6,
                     stderr_bytes = ?7, why = ?8, changes = ?9
                 WHERE id = ?1 AND process = ?2 AND state = 'running'",
                values![
                    id,
                    &*self.process,
                    end.state.word(),
                    end.ended_at_ms,
                    end.exit_code.map(i64::from),
                    to_integer(end.stdout_bytes),
                    to_integer(end.stderr_bytes),
                    end.why,
                    end.changes
                ],
            )?;
            Ok(changed > 0)
        })
    }

    /// A job of a caller. Another caller's is not there.
    pub fn get(&self, id: &str, caller: &str, now_ms: i64) -> Result<Option<JobRow>, StoreError> {
        self.change(|change| {
            self.mark_orphans(change, caller, now_ms)?;
            let sql = format!("SELECT {COLUMNS} FROM jobs WHERE id = ?1 AND caller = ?2");
            // By caller too: the id of another caller's job finds nothing.
            change.query_first(&sql, values![id, caller], read)
        })
    }

    /// The jobs of a caller, newest first.
    pub fn of(&self, caller: &str, now_ms: i64) -> Result<Vec<JobRow>, StoreError> {
        self.change(|change| {
            self.mark_orphans(change, caller, now_ms)?;
            let sql = format!(
                "SELECT {COLUMNS} FROM jobs WHERE caller = ?1
                 ORDER BY started_ms DESC, id LIMIT {}",
                limit::JOBS_PER_CALLER_MAX
            );
            change.query(&sql, values![caller], read)
        })
    }

    /// Jobs whose process is dead ended with it.
    fn mark_orphans(&self, change: Executor<'_>, caller: &str, now_ms: i64) -> sql::Result<()> {
        let sql = "SELECT id, process FROM jobs WHERE caller = ?1 AND state = 'running'";
        let running: Vec<(String, String)> =
            change.query(sql, values![caller], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (id, process) in running {
            if process != *self.process && self.peers.is_dead(change, &process)? {
                change.execute(
                    "UPDATE jobs SET state = 'orphaned', ended_ms = ?2,
                         why = 'the server ended under it' WHERE id = ?1",
                    values![id, now_ms],
                )?;
            }
        }
        Ok(())
    }

    fn change<T>(
        &self,
        change: impl FnOnce(Executor<'_>) -> sql::Result<T>,
    ) -> Result<T, StoreError> {
        let writers = Writers::OneOf(LockedTable::Jobs);
        self.tables.change(DOING, &writers, change)
    }
}

/// Of each caller, and of all, the newest are remembered. A running one is never forgotten.
fn forget_old(change: Executor<'_>, caller: &str) -> sql::Result<()> {
    change.execute(
        "DELETE FROM jobs WHERE state <> 'running' AND id IN
             (SELECT id FROM jobs WHERE caller = ?1 ORDER BY started_ms DESC, id
              LIMIT 9223372036854775807 OFFSET ?2)",
        values![caller, limit::JOBS_PER_CALLER_MAX],
    )?;
    change.execute(
        "DELETE FROM jobs WHERE state <> 'running' AND id IN
             (SELECT id FROM jobs ORDER BY started_ms DESC, id
              LIMIT 9223372036854775807 OFFSET ?1)",
        values![limit::JOBS_MAX],
    )?;
    Ok(())
}

const COLUMNS: &str = "id, caller, call_id, command, started_ms, state, ended_ms, exit_code, \
    stdout_bytes, stderr_bytes, why, changes";

fn read(row: &SqlRow<'_>) -> sql::Result<JobRow> {
    let word: String = row.get(5)?;
    let mut states = JobState::ALL.iter().copied();
    let state = states.find(|state| state.word() == word);
    let state = state.ok_or_else(|| unknown(format_args!("no state of a job: {word}")))?;
    let ended_at_ms: Option<i64> = row.get(6)?;
    let end = match (state, ended_at_ms) {
        (JobState::Running, _) | (_, None) => None,
        (state, Some(ended_at_ms)) => Some(JobEnd {
            state,
            ended_at_ms,
            exit_code: match row.get::<Option<i64>>(7)? {
                None => None,
                Some(code) => Some(code.try_into().map_err(|_| unknown("an exit code"))?),
            },
            stdout_bytes: from_integer(row.get(8)?),
            stderr_bytes: from_integer(row.get(9)?),
            why: row.get(10)?,
            changes: row.get(11)?,
        }),
    };
    Ok(JobRow {
        job: NewJob {
            id: row.get(0)?,
            caller: row.get(1)?,
            call_id: row.get(2)?,
            command: row.get(3)?,
            started_at_ms: row.get(4)?,
        },
        end,
    })
}
