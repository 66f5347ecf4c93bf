-- What is remembered about callers, by name in lower case; `shown` is the name as
-- the audit has it. Denials count until a person looks.
CREATE TABLE callers (
    name         TEXT PRIMARY KEY,
    shown        TEXT NOT NULL,
    in_a_row     INTEGER NOT NULL DEFAULT 0 CHECK (in_a_row >= 0),
    in_all       INTEGER NOT NULL DEFAULT 0 CHECK (in_all >= 0),
    paused_ms    INTEGER,
    paused_by    TEXT,
    paused_why   TEXT,
    -- When trust was last reckoned.
    evaluated_ms INTEGER,
    changed_ms   INTEGER NOT NULL,
    CHECK ((paused_ms IS NULL) = (paused_by IS NULL))
) STRICT;

-- What a caller has earned; the category '' is all tools.
CREATE TABLE trust (
    caller      TEXT NOT NULL REFERENCES callers (name) ON DELETE CASCADE,
    category    TEXT NOT NULL,
    level       TEXT NOT NULL CHECK (level IN
        ('sandboxed', 'restricted', 'standard', 'elevated', 'custom')),
    since_ms    INTEGER NOT NULL,
    verified_ms INTEGER NOT NULL,
    -- Who opened the last door: a person, or the settings if they begin there.
    agreed_by   TEXT,
    PRIMARY KEY (caller, category),
    -- Whatever code asks, nobody gets there alone.
    CHECK (level <> 'elevated' OR agreed_by IS NOT NULL)
) STRICT;

-- What people said about a caller's work.
CREATE TABLE feedback (
    caller   TEXT NOT NULL REFERENCES callers (name) ON DELETE CASCADE,
    at_ms    INTEGER NOT NULL,
    score    INTEGER NOT NULL CHECK (score BETWEEN 0 AND 10),
    category TEXT,
    note     TEXT,
    by       TEXT NOT NULL
) STRICT;
CREATE INDEX feedback_caller ON feedback (caller, at_ms);

-- What callers used of limits. From `idle_from_ms` on a row says nothing.
CREATE TABLE tallies (
    limit_id     TEXT NOT NULL,
    caller       TEXT NOT NULL,
    state        TEXT NOT NULL,
    idle_from_ms INTEGER,
    PRIMARY KEY (limit_id, caller)
) STRICT;

-- Counts changes that every process must know of before its next call.
CREATE TABLE callers_version (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL
) STRICT;
INSERT INTO callers_version VALUES (1, 1);
