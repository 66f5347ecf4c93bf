-- Questions to people and what they answered. `binding` is a digest of all the
-- question is about, `tool_binding` of all but the arguments.
CREATE TABLE approvals (
    id           TEXT PRIMARY KEY,
    state        TEXT NOT NULL CHECK (state IN
        ('pending', 'approved', 'used', 'declined', 'dismissed', 'malformed', 'revoked')),
    place        TEXT NOT NULL CHECK (place IN ('client', 'deferred', 'inbox')),
    asked_ms     INTEGER NOT NULL,
    expires_ms   INTEGER NOT NULL,
    binding      TEXT NOT NULL CHECK (binding <> ''),
    tool_binding TEXT NOT NULL CHECK (tool_binding <> ''),
    session      TEXT,
    call_id      TEXT NOT NULL,
    tool         TEXT NOT NULL,
    caller       TEXT NOT NULL,
    caller_owner INTEGER NOT NULL CHECK (caller_owner IN (0, 1)),
    risk         TEXT NOT NULL,
    reasons      TEXT NOT NULL,
    prompt       TEXT NOT NULL,
    arguments    TEXT NOT NULL,
    scope        TEXT CHECK (scope IN ('once', 'same-arguments', 'session', 'until-changed')),
    answered_ms  INTEGER,
    answered_by  TEXT,
    channel      TEXT,
    own_client   INTEGER CHECK (own_client IN (0, 1)),
    note         TEXT,
    used_ms      INTEGER,
    used_by_call TEXT,
    uses         INTEGER NOT NULL DEFAULT 0,
    -- An approval says what it counts for and who gave it.
    CHECK (state NOT IN ('approved', 'used', 'revoked')
        OR (scope IS NOT NULL AND answered_by IS NOT NULL AND answered_ms IS NOT NULL))
) STRICT;
CREATE INDEX approvals_binding ON approvals (binding);
CREATE INDEX approvals_tool ON approvals (tool_binding) WHERE state = 'approved';
CREATE INDEX approvals_pending ON approvals (expires_ms) WHERE state = 'pending';
CREATE INDEX approvals_asked ON approvals (asked_ms);

-- Whatever code asks: an answer is given once, an approval that was used up or
-- taken back never counts again, and what it binds to never changes.
CREATE TRIGGER approvals_state BEFORE UPDATE OF state ON approvals
WHEN NEW.state <> OLD.state AND OLD.state <> 'pending'
    AND NOT (OLD.state = 'approved' AND NEW.state IN ('used', 'revoked'))
BEGIN SELECT RAISE(ABORT, 'answered already'); END;
CREATE TRIGGER approvals_unasked BEFORE UPDATE OF state ON approvals
WHEN OLD.state = 'pending' AND NEW.state IN ('used', 'revoked')
BEGIN SELECT RAISE(ABORT, 'not approved'); END;
CREATE TRIGGER approvals_bound BEFORE UPDATE OF
    id, binding, tool_binding, session, caller, caller_owner, tool, risk ON approvals
BEGIN SELECT RAISE(ABORT, 'bound'); END;
CREATE TRIGGER approvals_scope BEFORE UPDATE OF scope ON approvals
WHEN OLD.state <> 'pending'
BEGIN SELECT RAISE(ABORT, 'answered already'); END;
