//! Verifying the audit: walking the chain in the log, and comparing the index with
//! the records.

use std::collections::HashMap;
use std::path::Path;

use model::record::audit::chain::{Body, Checkpoint, Ending, Head, Record};
use model::record::audit::heads::{HeadCheck, HeadSource};
use model::record::audit::walk::{Broken, Verified, Walk};
use model::record::audit::{Notice, Opening};
use model::record::note::TreeHead;
use model::record::tree::{TreeHash, root};
use rusqlite::{Row, Rows};

use crate::audit::evidence::head_file;
use crate::audit::evidence::offline::{self, Expectation};
use crate::audit::evidence::signer::{Signer, public_key};
use crate::audit::evidence::tree_file::{TreeHashes, removed};
use crate::audit::index::RecordPlace;
use crate::audit::log::snapshot::believable;
use crate::audit::read::AuditReader;
use crate::error::StoreError;
use crate::gauge::LogReading;
use crate::home::audit_folder;
use crate::home::database::from_integer;

const DOING: &str = "verify the audit";

/// What the index says about an entry.
struct Indexed {
    opened: RecordPlace,
    call_id: String,
    at_ms: i64,
    origin: String,
    caller: String,
    tool: String,
    end: End,
}

impl Indexed {
    fn says(&self, opening: &Opening) -> bool {
        self.call_id == opening.call_id
            && self.at_ms == opening.at_ms
            && self.origin == opening.origin.word()
            && self.caller == opening.caller
            && self.tool == opening.tool
    }
}

#[derive(PartialEq, Eq, Default)]
struct End {
    closed: Option<RecordPlace>,
    status: Option<String>,
    differs: bool,
}

/// What the index says about a notice.
struct IndexedNotice {
    place: RecordPlace,
    at_ms: i64,
    id: String,
    act: String,
    by: String,
    about: Option<String>,
}

impl IndexedNotice {
    fn says(&self, notice: &Notice) -> bool {
        self.at_ms == notice.at_ms
            && self.id == notice.id
            && self.act == notice.act.word()
            && self.by == notice.by
            && self.about == notice.about
    }
}

/// The heads that were signed over the log, read before the log itself, so that it
/// cannot look shorter than they say.
pub(crate) struct SignedHeads {
    heads: Vec<(TreeHead, HeadSource)>,
    /// The first that is not what it should be.
    fault: Option<(u64, String)>,
    tree: Option<TreeHashes>,
}

impl SignedHeads {
    /// Reads the heads of a home and what else is expected.
    pub(crate) fn read(
        home: &Path,
        signer: &Signer,
        expected: &Expectation,
    ) -> Result<SignedHeads, StoreError> {
        let folder = audit_folder(home);
        // Heads and tree are read as of one moment; the signer waits so long.
        let _lock = head_file::read_lock(&folder)?;
        let tree = TreeHashes::find(&folder)?;
        let own = public_key(home, signer.memory())?;
        // The key that the operator names goes first: a forger has the home's own key too.
        let Some(key) = expected.key.clone().or(own) else {
            let none = expected.checkpoints.is_empty();
            let missing = "this home has no key, and none is named".to_owned();
            return Ok(SignedHeads {
                heads: Vec::new(),
                fault: (!none).then_some((1, missing)),
                tree,
            });
        };
        let notes = head_file::read(&folder);
        let (notes, unreadable) = match notes {
            Ok(notes) => (notes, None),
            Err(StoreError::Unsigned { what }) => (Vec::new(), Some((1, what))),
            Err(error) => return Err(error),
        };
        let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
        let mut expected = expected.clone();
        let cosigned = head_file::read_cosigned(&folder)?;
        expected.checkpoints.extend(cosigned);
        if let Some(copy) = signer.copy() {
            expected.checkpoints.extend(head_file::read_file(&copy)?);
        }
        let (heads, fault) = offline::heads(&notes, &expected, &key);
        let remembered = signer.memory().get()?;
        let is_kept = |size| {
            let mut kept = heads
                .iter()
                .filter(|(_, source)| *source == HeadSource::Kept);
            kept.any(|(head, _)| head.size == size)
        };
        // A copy elsewhere does not make up for it: that it vanished from beside the log is
        // the finding.
        let missing = remembered.filter(|remembered| !is_kept(remembered.size));
        let missing = missing.map(|remembered| {
            let size = remembered.size;
            let what = format!(
                "the database remembers a signed head over {size} records, which is missing from \
                 `audit/heads`"
            );
            (size, what)
        });
        Ok(SignedHeads {
            heads,
            fault: unreadable.or(fault).or(missing),
            tree,
        })
    }

    /// Begins to hold the log against the heads, behind the removed records.
    fn begin(&mut self, checkpoint: Option<&Checkpoint>) -> Result<Option<HeadCheck>, StoreError> {
        let through = checkpoint.map_or(0, |it| it.through.sequence);
        let Some(start) = removed(self.tree.as_ref(), through)? else {
            if !self.heads.is_empty() {
                let what = "the hashes of removed records are missing".to_owned();
                self.fault.get_or_insert((1, what));
            }
            return Ok(None);
        };
        let sealed = checkpoint.and_then(|checkpoint| checkpoint.root);
        if sealed.is_some_and(|sealed| sealed != start.root()) {
            let what = "the hashes of removed records were changed".to_owned();
            self.fault.get_or_insert((1, what));
        }
        let heads = std::mem::take(&mut self.heads);
        let root_of = |size| match &self.tree {
            Some(tree) => root(tree, size),
            None => Ok(TreeHash::empty()),
        };
        HeadCheck::new(heads, start, root_of).map(Some)
    }
}

/// Verifies the log, its index and the heads that were signed over it.
pub(crate) fn verify(
    reader: &AuditReader<'_>,
    expected_head: Option<&Head>,
    remembered: Option<Head>,
    mut signed: SignedHeads,
) -> Result<Verified, StoreError> {
    let checkpoint = reader.log.newest_checkpoint()?;
    let checkpoint = checkpoint.as_ref().and_then(believable);
    let count = u64::try_from(signed.heads.len()).unwrap_or(u64::MAX);
    let mut heads = signed.begin(checkpoint.as_ref())?;
    let mut verified = walk(reader, expected_head, remembered, heads.as_mut())?;
    verified.heads = count;
    verified.signed = heads.as_ref().map_or(0, HeadCheck::signed);
    if verified.broken.is_none() {
        let fault = match signed.fault {
            Some(fault) => Some(fault),
            None => heads
                .and_then(HeadCheck::finish)
                .map(|fault| (fault.sequence, fault.what)),
        };
        verified.broken = fault.map(|(sequence, what)| Broken {
            sequence,
            call_id: None,
            what,
        });
    }
    Ok(verified)
}

fn walk(
    reader: &AuditReader<'_>,
    expected_head: Option<&Head>,
    remembered: Option<Head>,
    mut heads: Option<&mut HeadCheck>,
) -> Result<Verified, StoreError> {
    let fail = StoreError::database(DOING);
    let mut statement = reader
        .index
        .prepare(
            "SELECT opened, opened_at, closed, closed_at, status,
                    call_id, at_ms, origin, caller, tool, differs
             FROM entries ORDER BY opened",
        )
        .map_err(&fail)?;
    let rows = statement.query([]).map_err(&fail)?;
    let mut notices = reader
        .index
        .prepare(
            "SELECT sequence, position, at_ms, id, act, by_whom, about
             FROM notices ORDER BY sequence",
        )
        .map_err(&fail)?;
    let notices = notices.query([]).map_err(&fail)?;
    let checkpoint = reader.log.newest_checkpoint()?;
    let removed = checkpoint.as_ref().and_then(believable);
    let removed = removed.map_or(0, |checkpoint| checkpoint.through.sequence);
    let mut comparison = Comparison {
        rows,
        next: None,
        notices,
        next_notice: None,
        indexed: reader.reach.head.sequence,
        removed,
        ends: HashMap::new(),
    };
    comparison.advance()?;
    comparison.advance_notice()?;
    let checkpoint = checkpoint.map(|line| line.record);
    let mut walk = Walk::new(checkpoint.as_ref(), expected_head.copied(), remembered);
    let mut last = 0;
    let reading = LogReading::begin(reader.log.end());
    let kept = reader.log.kept().iter().cloned();
    // Open records that a removal kept: older than everything left in the log, and without a
    // position in it.
    let kept = kept.map(|line| Ok((0, Some(line))));
    for placed in kept.chain(reader.log.lines(0)) {
        let (position, line) = placed?;
        reading.reach(position);
        let Some(line) = line else {
            // By the record before it: its own number is in the line that cannot be read.
            let what = format!("its line at {position} cannot be read");
            walk.fault(last + 1, None, what);
            return Ok(walk.finish());
        };
        let record = line.record;
        let Ok(body) = walk.step(&record) else {
            return Ok(walk.finish());
        };
        // The hashes of removed records are in the tree already, and a kept record is one of
        // them.
        if let Some(heads) = heads.as_deref_mut().filter(|_| record.sequence > removed) {
            heads.step(&record, &body);
        }
        last = record.sequence;
        let here = RecordPlace {
            sequence: record.sequence,
            position,
        };
        if let Err(fault) = comparison.compare(&record, here, body)? {
            walk.fault(fault.sequence, fault.call_id, fault.what.to_owned());
            return Ok(walk.finish());
        }
    }
    if let Some(fault) = comparison.left_over()? {
        walk.fault(fault.sequence, fault.call_id, fault.what.to_owned());
    }
    Ok(walk.finish())
}

/// Compares the index with the records, in order.
struct Comparison<'a> {
    rows: Rows<'a>,
    next: Option<Indexed>,
    notices: Rows<'a>,
    next_notice: Option<IndexedNotice>,
    /// The last record the index covers.
    indexed: u64,
    /// The last removed record. The index may still have rows up to it.
    removed: u64,
    /// The ends the index gives for entries whose close record is yet to come.
    ends: HashMap<u64, End>,
}

struct Fault {
    sequence: u64,
    call_id: Option<String>,
    what: &'static str,
}

const DIFFERS: &str = "the index disagrees with the record";
const NOT_THERE: &str = "the index names a record that does not exist";

impl Comparison<'_> {
    fn advance(&mut self) -> Result<(), StoreError> {
        let fail = StoreError::database(DOING);
        let row = self.rows.next().map_err(&fail)?;
        self.next = row.map(indexed_of).transpose().map_err(&fail)?;
        Ok(())
    }

    fn advance_notice(&mut self) -> Result<(), StoreError> {
        let fail = StoreError::database(DOING);
        let row = self.notices.next().map_err(&fail)?;
        self.next_notice = row.map(notice_of).transpose().map_err(&fail)?;
        Ok(())
    }

    fn compare(
        &mut self,
        record: &Record,
        here: RecordPlace,
        body: Body<Ending>,
    ) -> Result<Result<(), Fault>, StoreError> {
        let is_indexed = record.sequence <= self.indexed;
        let (agrees, call_id) = match body {
            Body::Open(opening) => {
                if let Some(fault) = self.skip_to(record.sequence)? {
                    return Ok(Err(fault));
                }
                (self.compare_open(here, &opening)?, opening.call_id)
            }
            Body::Close(close) => {
                let end = match is_indexed {
                    true => End {
                        closed: Some(here),
                        status: Some(close.closing.status.word().to_owned()),
                        differs: close.closing.differs,
                    },
                    false => End::default(),
                };
                let agrees = match self.ends.remove(&close.opened) {
                    Some(found) => found == end,
                    // Its opening is not indexed yet, so the index has no end to compare.
                    None => close.opened > self.indexed,
                };
                (agrees, close.call_id)
            }
            Body::Notice(notice) => {
                if let Some(fault) = self.skip_notices_to(record.sequence)? {
                    return Ok(Err(fault));
                }
                return Ok(match self.compare_notice(here, &notice)? {
                    true => Ok(()),
                    false => Err(Fault {
                        sequence: record.sequence,
                        call_id: None,
                        what: DIFFERS,
                    }),
                });
            }
            Body::Checkpoint(_) | Body::Anchor(_) => return Ok(Ok(())),
        };
        Ok(match agrees {
            true => Ok(()),
            false => Err(Fault {
                sequence: record.sequence,
                call_id: Some(call_id),
                what: DIFFERS,
            }),
        })
    }

    /// A record that is not indexed yet has no row; an indexed one has an equal row.
    fn compare_open(&mut self, here: RecordPlace, opening: &Opening) -> Result<bool, StoreError> {
        let is_indexed = here.sequence <= self.indexed;
        let Some(row) = self
            .next
            .take_if(|row| row.opened.sequence == here.sequence)
        else {
            return Ok(!is_indexed);
        };
        // A record that a removal kept has lost its position in the log.
        let is_there = row.opened.position == here.position || here.sequence <= self.removed;
        let agrees = is_indexed && is_there && row.says(opening);
        self.ends.insert(here.sequence, row.end);
        self.advance()?;
        Ok(agrees)
    }

    fn compare_notice(&mut self, here: RecordPlace, notice: &Notice) -> Result<bool, StoreError> {
        let is_indexed = here.sequence <= self.indexed;
        let Some(row) = self
            .next_notice
            .take_if(|row| row.place.sequence == here.sequence)
        else {
            return Ok(!is_indexed);
        };
        self.advance_notice()?;
        Ok(is_indexed && row.place == here && row.says(notice))
    }

    /// The same as [`Comparison::skip_to`], for notices.
    fn skip_notices_to(&mut self, sequence: u64) -> Result<Option<Fault>, StoreError> {
        while let Some(row) = self
            .next_notice
            .take_if(|row| row.place.sequence < sequence)
        {
            if row.place.sequence > self.removed {
                return Ok(Some(Fault {
                    sequence: row.place.sequence,
                    call_id: None,
                    what: NOT_THERE,
                }));
            }
            self.advance_notice()?;
        }
        Ok(None)
    }

    /// Skips rows before a record. Rows of removed records may be left; any other row
    /// has no record.
    fn skip_to(&mut self, sequence: u64) -> Result<Option<Fault>, StoreError> {
        while let Some(row) = self.next.take_if(|row| row.opened.sequence < sequence) {
            if row.opened.sequence > self.removed {
                return Ok(Some(Fault {
                    sequence: row.opened.sequence,
                    call_id: None,
                    what: NOT_THERE,
                }));
            }
            self.advance()?;
        }
        Ok(None)
    }

    /// Rows that remain after the last record.
    fn left_over(&mut self) -> Result<Option<Fault>, StoreError> {
        let false_end = self.ends.iter().find(|(_, end)| **end != End::default());
        if let Some((opened, _)) = false_end {
            return Ok(Some(Fault {
                sequence: *opened,
                call_id: None,
                what: "the index names an end that does not exist",
            }));
        }
        match self.skip_to(u64::MAX)? {
            Some(fault) => Ok(Some(fault)),
            None => self.skip_notices_to(u64::MAX),
        }
    }
}

fn indexed_of(row: &Row<'_>) -> rusqlite::Result<Indexed> {
    let closed: Option<i64> = row.get(2)?;
    let closed_at: Option<i64> = row.get(3)?;
    Ok(Indexed {
        opened: RecordPlace {
            sequence: from_integer(row.get(0)?),
            position: from_integer(row.get(1)?),
        },
        end: End {
            closed: closed.map(|closed| RecordPlace {
                sequence: from_integer(closed),
                position: from_integer(closed_at.unwrap_or(0)),
            }),
            status: row.get(4)?,
            differs: row.get(10)?,
        },
        call_id: row.get(5)?,
        at_ms: row.get(6)?,
        origin: row.get(7)?,
        caller: row.get(8)?,
        tool: row.get(9)?,
    })
}

fn notice_of(row: &Row<'_>) -> rusqlite::Result<IndexedNotice> {
    Ok(IndexedNotice {
        place: RecordPlace {
            sequence: from_integer(row.get(0)?),
            position: from_integer(row.get(1)?),
        },
        at_ms: row.get(2)?,
        id: row.get(3)?,
        act: row.get(4)?,
        by: row.get(5)?,
        about: row.get(6)?,
    })
}
