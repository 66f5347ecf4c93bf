-- Why a question is asked: the rule or setting that wants a person.
ALTER TABLE approvals ADD COLUMN why TEXT NOT NULL DEFAULT '';

-- An issuer's subjects are told apart by every letter. Rows under a folded name may be
-- of several of them: whoever was paused stays so under both names, and what was earned
-- in common is earned again.
INSERT OR IGNORE INTO callers (name, shown, in_a_row, in_all, paused_ms, paused_by,
    paused_why, evaluated_ms, changed_ms)
SELECT shown, shown, in_a_row, in_all, paused_ms, paused_by, paused_why, NULL, changed_ms
FROM callers WHERE shown GLOB 'oauth:*' AND name <> shown;
DELETE FROM trust WHERE caller IN
    (SELECT name FROM callers WHERE shown GLOB 'oauth:*' AND name <> shown);
UPDATE callers_version SET version = version + 1;
