-- People at the Studio: codes they sign in with once, and their sessions. Never the code
-- or the secret, only its digest.
CREATE TABLE person_codes (
    digest     BLOB PRIMARY KEY CHECK (length(digest) = 32),
    made_ms    INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE person_sessions (
    digest     BLOB PRIMARY KEY CHECK (length(digest) = 32),
    id         TEXT NOT NULL UNIQUE,
    person     TEXT NOT NULL CHECK (person <> ''),
    role       TEXT NOT NULL CHECK (role IN ('viewer', 'approver', 'owner')),
    -- The address it was begun at: a session counts there and nowhere else.
    address    TEXT NOT NULL,
    browser    TEXT NOT NULL,
    started_ms INTEGER NOT NULL,
    seen_ms    INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT;
-- Whatever code asks: a session never becomes another person's, and never lasts longer.
CREATE TRIGGER person_sessions_bound BEFORE UPDATE OF
    digest, id, person, role, address, started_ms, expires_ms ON person_sessions
BEGIN SELECT RAISE(ABORT, 'bound'); END;

-- A person may approve a call with other arguments: what is to run instead, and what that
-- binds to. Like the rest of an answer it is given once.
ALTER TABLE approvals ADD COLUMN changed TEXT;
ALTER TABLE approvals ADD COLUMN changed_binding TEXT;
CREATE TRIGGER approvals_changed BEFORE UPDATE OF changed, changed_binding ON approvals
WHEN OLD.state <> 'pending'
BEGIN SELECT RAISE(ABORT, 'answered already'); END;

-- The text of each tool as it was published, for its author to compare with.
CREATE TABLE published_texts (
    name   TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    text   TEXT NOT NULL
) STRICT;
