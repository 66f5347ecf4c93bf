-- A script that goes on keeps its journal until it ends, and what it does then is
-- added step by step. `process` is who goes on with it: null while it waits for a
-- person, a dead one if nobody does. Of one key one may wait while others go on.
CREATE TABLE script_journals (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    key        TEXT NOT NULL CHECK (key <> ''),
    caller     TEXT NOT NULL,
    process    TEXT,
    kept_ms    INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    bytes      INTEGER NOT NULL CHECK (bytes >= 0),
    journal    TEXT NOT NULL
) STRICT;
INSERT INTO script_journals (key, caller, kept_ms, expires_ms, bytes, journal)
    SELECT key, caller, kept_ms, expires_ms, length(CAST(journal AS BLOB)), journal FROM scripts;
DROP TABLE scripts;
CREATE INDEX script_journals_key ON script_journals (key);
CREATE INDEX script_journals_caller ON script_journals (caller);
CREATE INDEX script_journals_expires ON script_journals (expires_ms);
CREATE TABLE script_steps (
    script INTEGER NOT NULL REFERENCES script_journals (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    step   TEXT NOT NULL,
    PRIMARY KEY (script, number)
) STRICT, WITHOUT ROWID;
