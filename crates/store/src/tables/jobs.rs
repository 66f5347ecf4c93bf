//! Background jobs of callers, for all processes of a home. A row is written before the
//! job starts. A job whose process is dead is `orphaned`: the jail ends it with its
//! process, and the next look at the row says so, once, to whoever looks.

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
/// What is said of a job whose process died.
const ORPHANED: &str = "the server ended under it";

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

/// An answer, and the jobs that were found dead on the way to it. Each is found once, in all
/// processes, so their end is put on record by whoever gets this.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct WithOrphans<T> {
    /// The answer.
    pub found: T,
    /// Jobs whose process died, which are `orphaned` from now on.
    pub orphans: Vec<JobRow>,
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
    pub fn start(&self, job: &NewJob, running_max: u64) -> Result<WithOrphans<bool>, StoreError> {
        // The orphans first, or the jobs of a dead process would keep its caller from
        // starting others.
        self.look(Some(&job.caller), job.started_at_ms, |change| {
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
    pub fn get(
        &self,
        id: &str,
        caller: &str,
        now_ms: i64,
    ) -> Result<WithOrphans<Option<JobRow>>, StoreError> {
        self.look(Some(caller), now_ms, |change| {
            let sql = format!("SELECT {COLUMNS} FROM jobs WHERE id = ?1 AND caller = ?2");
            // By caller too: the id of another caller's job finds nothing.
            change.query_first(&sql, values![id, caller], read)
        })
    }

    /// The jobs of a caller, newest first.
    pub fn of(&self, caller: &str, now_ms: i64) -> Result<WithOrphans<Vec<JobRow>>, StoreError> {
        self.look(Some(caller), now_ms, |change| {
            let sql = format!(
                "SELECT {COLUMNS} FROM jobs WHERE caller = ?1
                 ORDER BY started_ms DESC, id LIMIT {}",
                limit::JOBS_PER_CALLER_MAX
            );
            change.query(&sql, values![caller], read)
        })
    }

    /// The jobs of all callers whose process is dead, and which nothing has found before.
    pub fn find_orphans(&self, now_ms: i64) -> Result<WithOrphans<()>, StoreError> {
        let sql = "SELECT count(*) FROM jobs WHERE state = 'running' AND process <> ?1";
        let others = self.tables.read(DOING, |executor| {
            executor.number(sql, values![&*self.process])
        })?;
        // Mostly there are none, and then nothing is written.
        if others == 0 {
            return Ok(WithOrphans {
                found: (),
                orphans: Vec::new(),
            });
        }
        self.look(None, now_ms, |_| Ok(()))
    }

    /// Looks at the jobs of one caller, or of all, after those whose process is dead ended
    /// with it.
    fn look<T>(
        &self,
        caller: Option<&str>,
        now_ms: i64,
        look: impl FnOnce(Executor<'_>) -> sql::Result<T>,
    ) -> Result<WithOrphans<T>, StoreError> {
        self.change(|change| {
            let orphans = self.mark_orphans(change, caller, now_ms)?;
            let found = look(change)?;
            Ok(WithOrphans { found, orphans })
        })
    }

    fn mark_orphans(
        &self,
        change: Executor<'_>,
        caller: Option<&str>,
        now_ms: i64,
    ) -> sql::Result<Vec<JobRow>> {
        let all = format!("SELECT {COLUMNS}, process FROM jobs WHERE state = 'running'");
        let read = |row: &SqlRow<'_>| Ok((read(row)?, row.get::<String>(12)?));
        let running = match caller {
            Some(caller) => {
                change.query(&format!("{all} AND caller = ?1"), values![caller], read)?
            }
            None => change.query(&all, values![], read)?,
        };
        let mut orphans = Vec::new();
        for (mut row, process) in running {
            if process == *self.process || !self.peers.is_dead(change, &process)? {
                continue;
            }
            change.execute(
                "UPDATE jobs SET state = 'orphaned', ended_ms = ?2, why = ?3 WHERE id = ?1",
                values![row.job.id, now_ms, ORPHANED],
            )?;
            row.end = Some(JobEnd {
                state: JobState::Orphaned,
                ended_at_ms: now_ms,
                exit_code: None,
                stdout_bytes: 0,
                stderr_bytes: 0,
                why: Some(ORPHANED.to_owned()),
                changes: None,
            });
            orphans.push(row);
        }
        Ok(orphans)
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
    // SQLite takes no OFFSET without a LIMIT. This one is none, in both databases.
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
