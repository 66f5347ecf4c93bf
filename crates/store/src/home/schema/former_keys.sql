-- Keys that were replaced or revoked, so that a client that still shows one can be told
-- by name what to change. Only the digest is kept, and only of the last ones.
CREATE TABLE former_keys (
    digest   BLOB PRIMARY KEY CHECK (length(digest) = 32),
    name     TEXT NOT NULL,
    ended_ms INTEGER NOT NULL,
    end      TEXT NOT NULL CHECK (end IN ('replaced', 'revoked'))
) STRICT, WITHOUT ROWID;
CREATE INDEX former_keys_ended ON former_keys (ended_ms);
