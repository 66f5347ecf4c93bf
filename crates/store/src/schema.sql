-- The audit. Rows are only ever added, and removed from the front by retention.
CREATE TABLE records (
    sequence INTEGER PRIMARY KEY,
    kind     TEXT NOT NULL CHECK (kind IN ('open', 'close', 'checkpoint')),
    process  INTEGER,
    previous BLOB NOT NULL CHECK (length(previous) = 32),
    hash     BLOB NOT NULL CHECK (length(hash) = 32),
    body     TEXT NOT NULL
) STRICT;
CREATE INDEX records_checkpoint ON records (sequence) WHERE kind = 'checkpoint';

-- What filters look at, made from the records up to `indexed`, many at a time.
-- Everything here but `process` stands in a body too, and `verify` compares.
CREATE TABLE entries (
    opened  INTEGER PRIMARY KEY,
    closed  INTEGER,
    process INTEGER,
    at_ms   INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    origin  TEXT NOT NULL,
    caller  TEXT NOT NULL,
    tool    TEXT NOT NULL,
    status  TEXT
) STRICT;
CREATE INDEX entries_call ON entries (call_id);
CREATE INDEX entries_tool ON entries (tool);
CREATE INDEX entries_caller ON entries (caller);
-- Most attempts get there; the others are what people look for.
CREATE INDEX entries_status ON entries (status) WHERE status <> 'done';
CREATE TABLE indexed (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    through INTEGER NOT NULL
) STRICT;
INSERT INTO indexed VALUES (1, 0);

-- Who has the database open, and from which record on it may own open entries.
CREATE TABLE processes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id     TEXT NOT NULL UNIQUE,
    first  INTEGER NOT NULL
) STRICT;

-- What is remembered about documents: the last result of each digest's test, and
-- which digest of a tool is published.
CREATE TABLE passes (
    digest        TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    ok            INTEGER NOT NULL CHECK (ok IN (0, 1)),
    at_ms         INTEGER NOT NULL,
    elapsed_ms    INTEGER NOT NULL,
    error_code    TEXT,
    error_message TEXT
) STRICT;
CREATE TABLE published (
    name   TEXT PRIMARY KEY,
    digest TEXT NOT NULL REFERENCES passes (digest),
    at_ms  INTEGER NOT NULL
) STRICT;
-- Nobody publishes what has not passed, whatever code asks.
CREATE TRIGGER published_insert BEFORE INSERT ON published
WHEN NOT EXISTS (SELECT 1 FROM passes WHERE digest = NEW.digest AND ok = 1)
BEGIN SELECT RAISE(ABORT, 'not passed'); END;
CREATE TRIGGER published_update BEFORE UPDATE ON published
WHEN NOT EXISTS (SELECT 1 FROM passes WHERE digest = NEW.digest AND ok = 1)
BEGIN SELECT RAISE(ABORT, 'not passed'); END;

-- Counts changes of the two tables above.
CREATE TABLE standing (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL
) STRICT;
INSERT INTO standing VALUES (1, 1);
