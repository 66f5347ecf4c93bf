-- Settings, rules and tool documents that nodes share: each file with the revision of its
-- last change. A file that was deleted has no text. `files_version` has the newest revision;
-- a writer holds its row until it commits, so revisions become visible in their order.
CREATE TABLE shared_files (
    path       TEXT COLLATE "C" PRIMARY KEY CHECK (path <> ''),
    text       TEXT,
    revision   BIGINT NOT NULL CHECK (revision > 0),
    updated_by TEXT NOT NULL,
    updated_ms BIGINT NOT NULL
);
CREATE INDEX shared_files_revision ON shared_files (revision);
CREATE TABLE files_version (
    one     BIGINT PRIMARY KEY CHECK (one = 1),
    id      TEXT NOT NULL,
    version BIGINT NOT NULL
);
INSERT INTO files_version VALUES (1, gen_random_uuid()::TEXT, 0);
CREATE TRIGGER files_version_told AFTER UPDATE ON files_version
FOR EACH STATEMENT EXECUTE FUNCTION ringfence_tell();

-- The texts of scripts whose calls ask a person: `call_id` is the call that asks, `script_call`
-- the call of execute. Every node can show them. They decide nothing.
CREATE TABLE waiting_scripts (
    call_id     TEXT COLLATE "C" PRIMARY KEY CHECK (call_id <> ''),
    script_call TEXT COLLATE "C" NOT NULL,
    kept_ms     BIGINT NOT NULL,
    script      TEXT NOT NULL
);
CREATE INDEX waiting_scripts_script ON waiting_scripts (script_call);
CREATE INDEX waiting_scripts_kept ON waiting_scripts (kept_ms);
