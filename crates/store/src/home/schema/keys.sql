-- Keys of callers: never the key, only its digest.
CREATE TABLE keys (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE COLLATE NOCASE,
    role       TEXT NOT NULL CHECK (role IN ('agent', 'operator')),
    digest     BLOB NOT NULL CHECK (length(digest) = 32),
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER
) STRICT;
