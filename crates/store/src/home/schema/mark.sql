-- The last record of the audit that was indexed. The log is the truth; this tells
-- when it ends too early.
CREATE TABLE audit_mark (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    sequence INTEGER NOT NULL,
    hash     BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;
