-- MCP servers: what the owner accepted of each, and what each offered last. Both texts
-- are records of the program; a record that cannot be read stops its server.
CREATE TABLE servers (
    name     TEXT NOT NULL PRIMARY KEY CHECK (name <> ''),
    pins     TEXT NOT NULL,
    seen     TEXT NOT NULL,
    seen_ms  INTEGER NOT NULL,
    restarts INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
