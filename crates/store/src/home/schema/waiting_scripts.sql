-- The texts of scripts whose calls ask a person: `call_id` is the call that asks, `script_call`
-- the call of execute. They are shown and decide nothing.
CREATE TABLE waiting_scripts (
    call_id     TEXT PRIMARY KEY CHECK (call_id <> ''),
    script_call TEXT NOT NULL,
    kept_ms     INTEGER NOT NULL,
    script      TEXT NOT NULL
) STRICT;
CREATE INDEX waiting_scripts_script ON waiting_scripts (script_call);
CREATE INDEX waiting_scripts_kept ON waiting_scripts (kept_ms);
