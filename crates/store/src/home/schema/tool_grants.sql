-- What the owner agreed to for a tool: a host, a variable, a folder, to write.
-- `place` is the file of a document that is not in the tools folder, else empty.
CREATE TABLE tool_grants (
    tool  TEXT NOT NULL CHECK (tool <> ''),
    place TEXT NOT NULL,
    need  TEXT NOT NULL CHECK (need <> ''),
    at_ms INTEGER NOT NULL,
    how   TEXT NOT NULL,
    PRIMARY KEY (tool, place, need)
) STRICT, WITHOUT ROWID;
