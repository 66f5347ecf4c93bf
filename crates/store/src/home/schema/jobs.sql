-- Background jobs of callers. `process` is the one that runs a job: if it is dead, so is
-- the job, and its state says so when it is next looked at.
CREATE TABLE jobs (
    id           TEXT PRIMARY KEY CHECK (id <> ''),
    caller       TEXT NOT NULL,
    process      TEXT NOT NULL,
    call_id      TEXT NOT NULL,
    command      TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN
        ('running', 'done', 'failed', 'timed_out', 'cancelled', 'orphaned')),
    started_ms   INTEGER NOT NULL,
    ended_ms     INTEGER,
    exit_code    INTEGER,
    stdout_bytes INTEGER NOT NULL DEFAULT 0,
    stderr_bytes INTEGER NOT NULL DEFAULT 0,
    why          TEXT,
    changes      TEXT,
    CHECK (state = 'running' OR ended_ms IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_caller ON jobs (caller, started_ms);
CREATE INDEX jobs_running ON jobs (caller) WHERE state = 'running';

-- A job ends once.
CREATE TRIGGER jobs_end BEFORE UPDATE OF state ON jobs
WHEN OLD.state <> 'running' AND NEW.state <> OLD.state
BEGIN SELECT RAISE(ABORT, 'ended already'); END;
