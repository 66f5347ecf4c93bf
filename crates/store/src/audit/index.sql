-- What filters look at, made from the log, many records at a time. All of it can
-- be made again; what it says about a record stands in the record too, and
-- `verify` compares. `opened` and `closed` are places in the chain, `opened_at` and
-- `closed_at` where their lines stand in the log.
CREATE TABLE entries (
    opened    INTEGER PRIMARY KEY,
    opened_at INTEGER NOT NULL,
    closed    INTEGER,
    closed_at INTEGER,
    process   TEXT,
    at_ms     INTEGER NOT NULL,
    call_id   TEXT NOT NULL,
    origin    TEXT NOT NULL,
    caller    TEXT NOT NULL,
    tool      TEXT NOT NULL,
    status    TEXT,
    differs   INTEGER NOT NULL
) STRICT;
-- Whose process may have died.
CREATE INDEX entries_open ON entries (opened) WHERE closed IS NULL;
CREATE INDEX entries_call ON entries (call_id);
CREATE INDEX entries_tool ON entries (tool);
CREATE INDEX entries_caller ON entries (caller);
-- Most attempts get there; the others are what people look for.
CREATE INDEX entries_status ON entries (status) WHERE status <> 'done';
CREATE INDEX entries_differs ON entries (opened) WHERE differs;

-- What was done beside calls.
CREATE TABLE notices (
    sequence INTEGER PRIMARY KEY,
    position INTEGER NOT NULL,
    at_ms    INTEGER NOT NULL,
    id       TEXT NOT NULL,
    act      TEXT NOT NULL,
    by_whom  TEXT NOT NULL,
    about    TEXT
) STRICT;
CREATE INDEX notices_id ON notices (id);
CREATE INDEX notices_act ON notices (act);

-- The last record it covers, that record's hash, and where the next line stands.
CREATE TABLE indexed (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    through  INTEGER NOT NULL,
    hash     BLOB NOT NULL CHECK (length(hash) = 32),
    position INTEGER NOT NULL
) STRICT;
INSERT INTO indexed VALUES (1, 0, zeroblob(32), 0);
