-- What scripts had done when they stopped for a person, one row for each call of
-- execute. `key` is a digest of caller, arguments and preset.
CREATE TABLE scripts (
    key        TEXT PRIMARY KEY CHECK (key <> ''),
    caller     TEXT NOT NULL,
    kept_ms    INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    journal    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX scripts_caller ON scripts (caller);
CREATE INDEX scripts_expires ON scripts (expires_ms);
