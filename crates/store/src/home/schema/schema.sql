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
