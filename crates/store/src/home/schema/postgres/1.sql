-- The tables that several homes share: the same as those of a home, in the words of
-- Postgres. Texts compare by bytes, as in SQLite. Triggers hold whatever code asks.
CREATE FUNCTION ringfence_refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0]; END $$;
CREATE FUNCTION ringfence_tell() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_notify('ringfence_change', TG_TABLE_NAME); RETURN NULL; END $$;

CREATE TABLE passes (
    digest        TEXT COLLATE "C" PRIMARY KEY,
    name          TEXT NOT NULL,
    ok            BOOLEAN NOT NULL,
    at_ms         BIGINT NOT NULL,
    elapsed_ms    BIGINT NOT NULL,
    error_code    TEXT,
    error_message TEXT
);
CREATE TABLE published (
    name   TEXT COLLATE "C" PRIMARY KEY,
    digest TEXT COLLATE "C" NOT NULL REFERENCES passes (digest),
    at_ms  BIGINT NOT NULL
);
-- No document is published that has not passed.
CREATE FUNCTION ringfence_passed() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM passes WHERE digest = NEW.digest AND ok) THEN
        RAISE EXCEPTION 'not passed';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER published_passed BEFORE INSERT OR UPDATE ON published
FOR EACH ROW EXECUTE FUNCTION ringfence_passed();
CREATE TABLE published_texts (
    name   TEXT COLLATE "C" PRIMARY KEY,
    digest TEXT NOT NULL,
    text   TEXT NOT NULL
);
CREATE TABLE tool_grants (
    tool  TEXT COLLATE "C" NOT NULL CHECK (tool <> ''),
    place TEXT COLLATE "C" NOT NULL,
    need  TEXT COLLATE "C" NOT NULL CHECK (need <> ''),
    at_ms BIGINT NOT NULL,
    how   TEXT NOT NULL,
    PRIMARY KEY (tool, place, need)
);
CREATE TABLE servers (
    name     TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (name <> ''),
    pins     TEXT NOT NULL,
    seen     TEXT NOT NULL,
    seen_ms  BIGINT NOT NULL,
    restarts BIGINT NOT NULL
);
CREATE TABLE standing (
    one     BIGINT PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL
);
INSERT INTO standing VALUES (1, 1);
CREATE TRIGGER standing_told AFTER UPDATE ON standing
FOR EACH STATEMENT EXECUTE FUNCTION ringfence_tell();

CREATE TABLE approvals (
    id           TEXT COLLATE "C" PRIMARY KEY,
    state        TEXT NOT NULL CHECK (state IN
        ('pending', 'approved', 'used', 'declined', 'dismissed', 'malformed', 'revoked')),
    place        TEXT NOT NULL CHECK (place IN ('client', 'deferred', 'inbox')),
    asked_ms     BIGINT NOT NULL,
    expires_ms   BIGINT NOT NULL,
    binding      TEXT COLLATE "C" NOT NULL CHECK (binding <> ''),
    tool_binding TEXT COLLATE "C" NOT NULL CHECK (tool_binding <> ''),
    session      TEXT COLLATE "C",
    call_id      TEXT NOT NULL,
    tool         TEXT NOT NULL,
    caller       TEXT COLLATE "C" NOT NULL,
    caller_owner BOOLEAN NOT NULL,
    risk         TEXT NOT NULL,
    reasons      TEXT NOT NULL,
    prompt       TEXT NOT NULL,
    arguments    TEXT NOT NULL,
    scope        TEXT CHECK (scope IN ('once', 'same-arguments', 'session', 'until-changed')),
    answered_ms  BIGINT,
    answered_by  TEXT COLLATE "C",
    channel      TEXT,
    own_client   BOOLEAN,
    note         TEXT,
    used_ms      BIGINT,
    used_by_call TEXT,
    uses         BIGINT NOT NULL DEFAULT 0,
    why          TEXT NOT NULL DEFAULT '',
    changed      TEXT,
    changed_binding TEXT,
    CHECK (state NOT IN ('approved', 'used', 'revoked')
        OR (scope IS NOT NULL AND answered_by IS NOT NULL AND answered_ms IS NOT NULL))
);
CREATE INDEX approvals_binding ON approvals (binding);
CREATE INDEX approvals_tool ON approvals (tool_binding) WHERE state = 'approved';
CREATE INDEX approvals_pending ON approvals (expires_ms) WHERE state = 'pending';
CREATE INDEX approvals_asked ON approvals (asked_ms);
CREATE TRIGGER approvals_state BEFORE UPDATE ON approvals FOR EACH ROW
WHEN (NEW.state <> OLD.state AND OLD.state <> 'pending'
    AND NOT (OLD.state = 'approved' AND NEW.state IN ('used', 'revoked')))
EXECUTE FUNCTION ringfence_refuse('answered already');
CREATE TRIGGER approvals_unasked BEFORE UPDATE ON approvals FOR EACH ROW
WHEN (OLD.state = 'pending' AND NEW.state IN ('used', 'revoked'))
EXECUTE FUNCTION ringfence_refuse('not approved');
CREATE TRIGGER approvals_bound BEFORE UPDATE OF
    id, binding, tool_binding, session, caller, caller_owner, tool, risk ON approvals
FOR EACH ROW EXECUTE FUNCTION ringfence_refuse('bound');
CREATE TRIGGER approvals_scope BEFORE UPDATE OF scope, changed, changed_binding ON approvals
FOR EACH ROW WHEN (OLD.state <> 'pending')
EXECUTE FUNCTION ringfence_refuse('answered already');

CREATE TABLE callers (
    name         TEXT COLLATE "C" PRIMARY KEY,
    shown        TEXT COLLATE "C" NOT NULL,
    in_a_row     BIGINT NOT NULL DEFAULT 0 CHECK (in_a_row >= 0),
    in_all       BIGINT NOT NULL DEFAULT 0 CHECK (in_all >= 0),
    paused_ms    BIGINT,
    paused_by    TEXT,
    paused_why   TEXT,
    evaluated_ms BIGINT,
    changed_ms   BIGINT NOT NULL,
    CHECK ((paused_ms IS NULL) = (paused_by IS NULL))
);
CREATE TABLE trust (
    caller      TEXT COLLATE "C" NOT NULL REFERENCES callers (name) ON DELETE CASCADE,
    category    TEXT COLLATE "C" NOT NULL,
    level       TEXT NOT NULL CHECK (level IN
        ('sandboxed', 'restricted', 'standard', 'elevated', 'custom')),
    since_ms    BIGINT NOT NULL,
    verified_ms BIGINT NOT NULL,
    agreed_by   TEXT,
    PRIMARY KEY (caller, category),
    CHECK (level <> 'elevated' OR agreed_by IS NOT NULL)
);
CREATE TABLE feedback (
    caller   TEXT COLLATE "C" NOT NULL REFERENCES callers (name) ON DELETE CASCADE,
    at_ms    BIGINT NOT NULL,
    score    BIGINT NOT NULL CHECK (score BETWEEN 0 AND 10),
    category TEXT,
    note     TEXT,
    by       TEXT NOT NULL,
    rowid    BIGINT GENERATED ALWAYS AS IDENTITY
);
CREATE INDEX feedback_caller ON feedback (caller, at_ms);
CREATE TABLE callers_version (
    one     BIGINT PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL
);
INSERT INTO callers_version VALUES (1, 1);
CREATE TRIGGER callers_told AFTER UPDATE ON callers_version
FOR EACH STATEMENT EXECUTE FUNCTION ringfence_tell();
CREATE TABLE tallies (
    limit_id     TEXT COLLATE "C" NOT NULL,
    caller       TEXT COLLATE "C" NOT NULL,
    state        TEXT NOT NULL,
    idle_from_ms BIGINT,
    PRIMARY KEY (limit_id, caller)
);

CREATE TABLE keys (
    id         TEXT COLLATE "C" PRIMARY KEY,
    name       TEXT COLLATE "C" NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('agent', 'operator')),
    digest     BYTEA NOT NULL CHECK (length(digest) = 32),
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT
);
CREATE UNIQUE INDEX keys_name ON keys (lower(name));
CREATE TABLE former_keys (
    digest   BYTEA PRIMARY KEY CHECK (length(digest) = 32),
    name     TEXT NOT NULL,
    ended_ms BIGINT NOT NULL,
    "end"    TEXT NOT NULL CHECK ("end" IN ('replaced', 'revoked'))
);
CREATE INDEX former_keys_ended ON former_keys (ended_ms);
CREATE TABLE keys_version (
    one     BIGINT PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL
);
INSERT INTO keys_version VALUES (1, 1);
CREATE TRIGGER keys_told AFTER UPDATE ON keys_version
FOR EACH STATEMENT EXECUTE FUNCTION ringfence_tell();

CREATE TABLE person_codes (
    digest     BYTEA PRIMARY KEY CHECK (length(digest) = 32),
    made_ms    BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL,
    rowid      BIGINT GENERATED ALWAYS AS IDENTITY
);
CREATE TABLE person_sessions (
    digest     BYTEA PRIMARY KEY CHECK (length(digest) = 32),
    id         TEXT COLLATE "C" NOT NULL UNIQUE,
    person     TEXT NOT NULL CHECK (person <> ''),
    role       TEXT NOT NULL CHECK (role IN ('viewer', 'approver', 'owner')),
    address    TEXT NOT NULL,
    browser    TEXT NOT NULL,
    started_ms BIGINT NOT NULL,
    seen_ms    BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL
);
CREATE TRIGGER person_sessions_bound BEFORE UPDATE OF
    digest, id, person, role, address, started_ms, expires_ms ON person_sessions
FOR EACH ROW EXECUTE FUNCTION ringfence_refuse('bound');

CREATE TABLE script_journals (
    id         BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    key        TEXT COLLATE "C" NOT NULL CHECK (key <> ''),
    caller     TEXT COLLATE "C" NOT NULL,
    process    TEXT,
    kept_ms    BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL,
    bytes      BIGINT NOT NULL CHECK (bytes >= 0),
    journal    TEXT NOT NULL
);
CREATE INDEX script_journals_key ON script_journals (key);
CREATE INDEX script_journals_caller ON script_journals (caller);
CREATE INDEX script_journals_expires ON script_journals (expires_ms);
CREATE TABLE script_steps (
    script BIGINT NOT NULL REFERENCES script_journals (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    step   TEXT NOT NULL,
    PRIMARY KEY (script, number)
);

CREATE TABLE jobs (
    id           TEXT COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    caller       TEXT COLLATE "C" NOT NULL,
    process      TEXT NOT NULL,
    call_id      TEXT NOT NULL,
    command      TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN
        ('running', 'done', 'failed', 'timed_out', 'cancelled', 'orphaned')),
    started_ms   BIGINT NOT NULL,
    ended_ms     BIGINT,
    exit_code    BIGINT,
    stdout_bytes BIGINT NOT NULL DEFAULT 0,
    stderr_bytes BIGINT NOT NULL DEFAULT 0,
    why          TEXT,
    changes      TEXT,
    CHECK (state = 'running' OR ended_ms IS NOT NULL)
);
CREATE INDEX jobs_caller ON jobs (caller, started_ms);
CREATE INDEX jobs_running ON jobs (caller) WHERE state = 'running';
CREATE TRIGGER jobs_end BEFORE UPDATE ON jobs FOR EACH ROW
WHEN (OLD.state <> 'running' AND NEW.state <> OLD.state)
EXECUTE FUNCTION ringfence_refuse('ended already');

CREATE TABLE witnessed (
    origin  TEXT COLLATE "C" PRIMARY KEY,
    size    BIGINT NOT NULL,
    root    BYTEA NOT NULL CHECK (length(root) = 32),
    seen_at BIGINT NOT NULL,
    note    TEXT NOT NULL
);

-- Processes that take part, and until when they count as alive. Each renews its own.
CREATE TABLE processes (
    id      TEXT COLLATE "C" PRIMARY KEY,
    expires TIMESTAMPTZ NOT NULL
);
