-- The newest head that was signed over the audit's log, and the key that signed it.
-- The heads themselves are beside the log; this tells when they are missing.
CREATE TABLE audit_signed (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    size INTEGER NOT NULL,
    root BLOB NOT NULL CHECK (length(root) = 32),
    key  TEXT NOT NULL
) STRICT;

-- The newest head of each log that this home is a witness of.
CREATE TABLE witnessed (
    origin  TEXT PRIMARY KEY,
    size    INTEGER NOT NULL,
    root    BLOB NOT NULL CHECK (length(root) = 32),
    seen_at INTEGER NOT NULL,
    note    TEXT NOT NULL
) STRICT;
