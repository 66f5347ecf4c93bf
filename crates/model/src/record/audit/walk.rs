//! Walking the chain: every record in order, and the first one that is wrong.
//!
//! The walk trusts nothing in the stored records. It checks place, kind, hash,
//! predecessor, that an attempt opens once and closes once, and that whatever is
//! missing was removed by a checkpoint that says so.

use std::collections::HashMap;

use serde::Serialize;

use crate::record::audit::chain::{Body, BodyError, Checkpoint, Ending, Head, Record, RecordKind};
use crate::record::audit::chain::{Close, link};
use crate::record::audit::{Act, Notice};

/// The result of a whole walk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Records seen.
    pub records: u64,
    /// Attempts seen, open ones included.
    pub entries: u64,
    /// Attempts without an end.
    pub open: u64,
    /// Checkpoints seen.
    pub checkpoints: u64,
    /// Notices seen.
    pub notices: u64,
    /// Anchors seen: records with heads of other logs.
    pub anchors: u64,
    /// Times records were found to be missing from the end, acknowledged or not.
    pub cuts: u64,
    /// Heads that were signed over the log and kept beside it.
    pub heads: u64,
    /// The records that the newest of them covers.
    pub signed: u64,
    /// The last record that was in order.
    pub head: Head,
    /// The first that was not.
    pub broken: Option<Broken>,
}

/// The first record that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Broken {
    /// Its place; for a missing record the place where it should be.
    pub sequence: u64,
    /// The attempt, where the record still says it.
    pub call_id: Option<String>,
    /// What is wrong.
    pub what: String,
}

/// Verifies records that are all in memory, oldest first.
pub fn verify<'a, I>(records: I, expected_head: Option<&Head>) -> Verified
where
    I: IntoIterator<Item = &'a Record>,
    I::IntoIter: DoubleEndedIterator + Clone,
{
    let records = records.into_iter();
    let checkpoint = records
        .clone()
        .rfind(|record| record.kind == RecordKind::Checkpoint);
    let mut walk = Walk::new(checkpoint, expected_head.copied(), None);
    for record in records {
        if walk.step(record).is_err() {
            break;
        }
    }
    walk.finish()
}

/// A walk under way.
#[derive(Debug)]
pub struct Walk {
    found: Verified,
    /// The newest checkpoint, which says where the chain starts; it is valid only if
    /// the walk meets it.
    start: Option<(Head, Checkpoint)>,
    start_met: bool,
    /// Records that a checkpoint kept and that are yet to come.
    kept: Vec<Head>,
    open: HashMap<u64, String>,
    expected: Option<Head>,
    expected_met: bool,
    /// The last record that the store remembers elsewhere.
    remembered: Option<Head>,
    /// Notices about a cut end that are not acknowledged, by their ids.
    cuts: Vec<(String, Fault)>,
}

impl Walk {
    /// Starts a walk. `checkpoint` is the newest one the keeper has; without one
    /// the chain starts at the first record. `expected` must be part of the chain;
    /// `remembered` too, unless a checkpoint removed it.
    #[must_use]
    pub fn new(
        checkpoint: Option<&Record>,
        expected: Option<Head>,
        remembered: Option<Head>,
    ) -> Walk {
        let start = checkpoint.and_then(|record| match record.read::<Ending>() {
            // A checkpoint that cannot be read starts nothing. The walk then misses the
            // first record, and says so.
            Ok(Body::Checkpoint(checkpoint)) => Some((place(record), checkpoint)),
            Ok(Body::Open(_) | Body::Close(_) | Body::Notice(_) | Body::Anchor(_)) | Err(_) => None,
        });
        let head = start.as_ref().map_or(Head::START, |(_, it)| it.through);
        let mut kept = start.as_ref().map_or(Vec::new(), |(_, it)| it.kept.clone());
        // Taken from the end, so the oldest must be last.
        kept.reverse();
        Walk {
            found: Verified {
                records: 0,
                entries: 0,
                open: 0,
                checkpoints: 0,
                notices: 0,
                anchors: 0,
                cuts: 0,
                heads: 0,
                signed: 0,
                head,
                broken: None,
            },
            start,
            start_met: false,
            kept,
            open: HashMap::new(),
            expected,
            expected_met: expected.is_none_or(|expected| expected == head),
            remembered,
            cuts: Vec::new(),
        }
    }

    /// Checks the next record and returns its body. After a fault the walk is over.
    pub fn step(&mut self, record: &Record) -> Result<Body<Ending>, Broken> {
        let body = record.read::<Ending>();
        let call_id = match &body {
            Ok(Body::Open(opening)) => Some(opening.call_id.clone()),
            Ok(Body::Close(close)) => Some(close.call_id.clone()),
            Ok(Body::Checkpoint(_) | Body::Notice(_) | Body::Anchor(_)) | Err(_) => None,
        };
        let checked = match self.check(record, body) {
            Ok(body) => body,
            Err(fault) => return Err(self.fail(fault, call_id)),
        };
        self.found.records += 1;
        Ok(checked)
    }

    /// Notes how many heads there are and the records they cover.
    pub fn note_heads(&mut self, heads: u64, signed: u64) {
        self.found.heads = heads;
        self.found.signed = signed;
    }

    /// The last record that was in order.
    #[must_use]
    pub fn head(&self) -> Head {
        self.found.head
    }

    /// Notes a fault that only the store can see, such as an index that contradicts a
    /// body.
    pub fn fault(&mut self, sequence: u64, call_id: Option<String>, what: String) -> Broken {
        self.fail(Fault { sequence, what }, call_id)
    }

    /// The result of the walk.
    #[must_use]
    pub fn finish(mut self) -> Verified {
        if self.found.broken.is_none()
            && let Some(fault) = self.missing_end()
        {
            self.fail(fault, None);
        }
        self.found.open = count(self.open.len());
        self.found
    }

    fn check(
        &mut self,
        record: &Record,
        body: Result<Body<Ending>, BodyError>,
    ) -> Result<Body<Ending>, Fault> {
        let fault = |what: String| Fault {
            sequence: record.sequence,
            what,
        };
        // The place before the hash: a gap is reported as the missing record, not as a
        // wrong hash of the next.
        let is_kept = self.place_in_order(record)?;
        if link(&record.previous, &record.body) != record.hash {
            return Err(fault("its hash does not fit its body".to_owned()));
        }
        let body = body.map_err(|error| fault(error.to_string()))?;
        match &body {
            Body::Open(opening) => {
                self.open.insert(record.sequence, opening.call_id.clone());
                self.found.entries += 1;
            }
            Body::Close(close) => self.close(close).map_err(fault)?,
            Body::Checkpoint(_) => self.found.checkpoints += 1,
            Body::Notice(notice) => self.note(record.sequence, notice),
            Body::Anchor(_) => self.found.anchors += 1,
        }
        let here = place(record);
        let is_other = |known: Head| known.sequence == here.sequence && known != here;
        if self.remembered.is_some_and(is_other) {
            return Err(fault(
                "its hash is not the one the database remembers".to_owned(),
            ));
        }
        if self.expected.is_some_and(is_other) {
            return Err(fault("its hash is not the expected one".to_owned()));
        }
        self.expected_met |= self.expected == Some(here);
        self.start_met |= self.start.as_ref().is_some_and(|(head, _)| *head == here);
        // A kept record stands among removed ones and does not move the end of the chain.
        if !is_kept {
            self.found.head = here;
        }
        Ok(body)
    }

    /// Checks that the record is in its place. Returns whether a checkpoint kept it.
    fn place_in_order(&mut self, record: &Record) -> Result<bool, Fault> {
        if let Some(kept) = self.kept.pop() {
            let fits = record.sequence == kept.sequence
                && record.hash == kept.hash
                && record.kind == RecordKind::Open;
            return match fits {
                true => Ok(true),
                false if record.sequence > kept.sequence => Err(missing(kept.sequence)),
                false => Err(Fault {
                    sequence: record.sequence,
                    what: "the checkpoint does not name it among the records that stay".to_owned(),
                }),
            };
        }
        let head = self.found.head;
        let next = head.sequence.saturating_add(1);
        if record.sequence > next {
            return Err(missing(next));
        }
        if record.sequence < next {
            return Err(Fault {
                sequence: record.sequence,
                what: format!("it is in the place of record {next}"),
            });
        }
        if record.previous != head.hash {
            return Err(Fault {
                sequence: record.sequence,
                what: format!("it does not follow record {}", head.sequence),
            });
        }
        Ok(false)
    }

    fn close(&mut self, close: &Close<Ending>) -> Result<(), String> {
        match self.open.remove(&close.opened) {
            None => Err(format!("no attempt is open at record {}", close.opened)),
            Some(call_id) if call_id != close.call_id => Err(format!(
                "it closes another attempt than record {} opened",
                close.opened
            )),
            Some(_) => Ok(()),
        }
    }

    /// Counts a notice. A notice about a cut is a fault until another acknowledges it.
    fn note(&mut self, sequence: u64, notice: &Notice) {
        self.found.notices += 1;
        match notice.act {
            Act::AuditCut => {
                self.found.cuts += 1;
                let what = format!("records before it are missing: {}", notice.message);
                let fault = Fault { sequence, what };
                self.cuts.push((notice.id.clone(), fault));
            }
            Act::AuditCutAcknowledged => {
                let is_about = |id: &String| notice.about.as_ref() == Some(id);
                self.cuts.retain(|(id, _)| !is_about(id));
            }
            Act::AuditContradicted
            | Act::AuditContradictionAcknowledged
            | Act::SettingsChanged
            | Act::SettingsRefused
            | Act::RulesChanged
            | Act::ShadowRefused
            | Act::ApprovalAnswered
            | Act::ApprovalUnread
            | Act::ApprovalRevoked
            | Act::KeyMade
            | Act::KeyReplaced
            | Act::KeyRevoked
            | Act::ToolPublished
            | Act::ToolUnpublished
            | Act::ToolDeleted
            | Act::ToolConsented
            | Act::ToolConsentWithdrawn
            | Act::CallerPaused
            | Act::CallerResumed
            | Act::TrustChanged
            | Act::ServerListed
            | Act::ServerConnected
            | Act::ServerAccepted
            | Act::ServerBlocked
            | Act::ServerAdded
            | Act::ServerTried
            | Act::ServerRemoved
            | Act::ServerRestarted
            | Act::PersonCodeMade
            | Act::PersonSignedIn
            | Act::PersonSignedOut
            | Act::SecretChanged
            | Act::JobEnded => {}
        }
    }

    fn missing_end(&mut self) -> Option<Fault> {
        if let Some(kept) = self.kept.last() {
            return Some(missing(kept.sequence));
        }
        let next = self.found.head.sequence.saturating_add(1);
        if let (Some((head, _)), false) = (&self.start, self.start_met) {
            return Some(Fault {
                sequence: head.sequence,
                what: "the checkpoint is not part of the chain".to_owned(),
            });
        }
        if let Some(remembered) = self.remembered
            && remembered.sequence >= next
        {
            return Some(Fault {
                sequence: next,
                what: format!(
                    "the chain ends here, but the database remembers record {}",
                    remembered.sequence
                ),
            });
        }
        match self.expected {
            Some(expected) if !self.expected_met => {
                let what = if expected.sequence < next {
                    format!(
                        "record {} was removed by a checkpoint, so there is nothing to compare",
                        expected.sequence
                    )
                } else {
                    format!(
                        "the chain ends before the expected record {}",
                        expected.sequence
                    )
                };
                Some(Fault {
                    sequence: next,
                    what,
                })
            }
            // The oldest that is not acknowledged.
            Some(_) | None => match self.cuts.is_empty() {
                true => None,
                false => Some(self.cuts.remove(0).1),
            },
        }
    }

    fn fail(&mut self, fault: Fault, call_id: Option<String>) -> Broken {
        let broken = Broken {
            sequence: fault.sequence,
            call_id,
            what: fault.what,
        };
        // The first fault counts. Later ones may follow from it.
        self.found.broken.get_or_insert(broken).clone()
    }
}

#[derive(Debug)]
struct Fault {
    sequence: u64,
    what: String,
}

fn missing(sequence: u64) -> Fault {
    Fault {
        sequence,
        what: "the record is missing".to_owned(),
    }
}

fn place(record: &Record) -> Head {
    Head {
        sequence: record.sequence,
        hash: record.hash,
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
