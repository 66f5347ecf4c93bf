//! The last records, which the index does not cover yet. There are few, so they are
//! scanned.

use std::collections::HashMap;

use model::record::audit::chain::{Body, Ending};
use model::record::audit::{Notice, Opening};
use rusqlite::OptionalExtension as _;

use crate::audit::entry::Filter;
use crate::audit::index::{EntryEnd, RecordPlace};
use crate::audit::read::{AuditReader, Places};
use crate::error::StoreError;
use crate::home::database::{from_integer, to_integer};

const DOING: &str = "read the end of the audit";

/// Entries that began or ended after the last indexed record.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    entries: HashMap<u64, TailEntry>,
    notices: Vec<(RecordPlace, Notice)>,
    /// How many of them began before it.
    spanning: usize,
    /// The last indexed record.
    indexed: u64,
}

#[derive(Debug)]
struct TailEntry {
    opened: RecordPlace,
    opening: Opening,
    end: Option<EntryEnd>,
}

impl Tail {
    /// Reads what the index of a reader does not cover.
    pub(crate) fn read(reader: &AuditReader<'_>) -> Result<Tail, StoreError> {
        let mut tail = Tail {
            indexed: reader.reach.head.sequence,
            ..Tail::default()
        };
        for placed in reader.log.lines(reader.reach.position) {
            // `verify` reports records that cannot be read.
            let (position, Some(line)) = placed? else {
                continue;
            };
            let here = RecordPlace {
                sequence: line.record.sequence,
                position,
            };
            match line.record.read::<Ending>() {
                Ok(Body::Open(opening)) => {
                    let entry = TailEntry {
                        opened: here,
                        opening,
                        end: None,
                    };
                    tail.entries.insert(here.sequence, entry);
                }
                Ok(Body::Close(close)) => {
                    let end = EntryEnd {
                        place: here,
                        status: close.closing.status,
                        differs: close.closing.differs,
                    };
                    tail.end(reader, close.opened, end)?;
                }
                Ok(Body::Notice(notice)) => tail.notices.push((here, notice)),
                Ok(Body::Checkpoint(_) | Body::Anchor(_)) | Err(_) => {}
            }
        }
        Ok(tail)
    }

    fn end(
        &mut self,
        reader: &AuditReader<'_>,
        opened: u64,
        end: EntryEnd,
    ) -> Result<(), StoreError> {
        if let Some(entry) = self.entries.get_mut(&opened) {
            entry.end = Some(end);
            return Ok(());
        }
        let sql = "SELECT opened_at FROM entries WHERE opened = ?1";
        let position = reader
            .index
            .query_row(sql, [to_integer(opened)], |row| row.get(0))
            .optional()
            .map_err(StoreError::database(DOING))?;
        let Some(position) = position.map(from_integer) else {
            return Ok(());
        };
        let opened = RecordPlace {
            sequence: opened,
            position,
        };
        let line = reader.log.record(&opened)?;
        if let Some(Ok(Body::Open(opening))) = line.map(|line| line.record.read::<Ending>()) {
            self.spanning += 1;
            let end = Some(end);
            let entry = TailEntry {
                opened,
                opening,
                end,
            };
            self.entries.insert(opened.sequence, entry);
        }
        Ok(())
    }

    /// How many entries are both in the index and in the tail.
    pub(crate) fn spanning(&self) -> usize {
        self.spanning
    }

    /// Whether what the index says about an entry is out of date.
    pub(crate) fn judges(&self, places: &Places) -> bool {
        self.entries.contains_key(&places.opened.sequence)
    }

    /// The places of an indexed entry, with its end if that is in the tail.
    pub(crate) fn closed(&self, places: Places) -> Places {
        match self.entries.get(&places.opened.sequence) {
            Some(entry) => entry.places(),
            None => places,
        }
    }

    /// Entries of the tail alone whose call id has a prefix.
    pub(crate) fn starting_with(&self, start: &str) -> Vec<(String, Places)> {
        let entries = self.entries.iter().filter(|(opened, entry)| {
            **opened > self.indexed && entry.opening.call_id.starts_with(start)
        });
        entries
            .map(|(_, entry)| (entry.opening.call_id.clone(), entry.places()))
            .collect()
    }

    /// The places of matching notices of the tail.
    pub(crate) fn notices(&self, fits: impl Fn(RecordPlace, &Notice) -> bool) -> Vec<RecordPlace> {
        let fitting = self.notices.iter().filter(|(place, it)| fits(*place, it));
        fitting.map(|(place, _)| *place).collect()
    }

    /// Notices of the tail whose id has a prefix.
    pub(crate) fn notice_ids(&self, start: &str) -> Vec<(String, RecordPlace)> {
        let found = self
            .notices
            .iter()
            .filter(|(_, it)| it.id.starts_with(start));
        found.map(|(place, it)| (it.id.clone(), *place)).collect()
    }

    /// Entries of the tail that a filter selects.
    pub(crate) fn matching(&self, filter: &Filter) -> Vec<Places> {
        let entries = self.entries.values().filter(|entry| entry.fits(filter));
        entries.map(TailEntry::places).collect()
    }
}

impl TailEntry {
    fn places(&self) -> Places {
        Places {
            opened: self.opened,
            closed: self.end.map(|end| end.place),
        }
    }

    /// The same condition as the SQL of `read::condition`; a test compares them.
    fn fits(&self, filter: &Filter) -> bool {
        let Filter {
            rows: _,
            tool,
            caller,
            status,
            origin,
            differs,
            act: _,
            since_ms,
            until_ms,
            limit: _,
            before,
            after,
        } = filter;
        let opening = &self.opening;
        let ended = self.end.map(|end| end.status);
        tool.as_ref().is_none_or(|tool| *tool == opening.tool)
            && caller.as_ref().is_none_or(|it| *it == opening.caller)
            && status.is_none_or(|status| ended == Some(status))
            && (!differs || self.end.is_some_and(|end| end.differs))
            && origin.is_none_or(|origin| origin == opening.origin)
            && since_ms.is_none_or(|since_ms| opening.at_ms >= since_ms)
            && until_ms.is_none_or(|until_ms| opening.at_ms < until_ms)
            && before.is_none_or(|before| self.opened.sequence < before)
            && after.is_none_or(|after| self.opened.sequence > after)
    }
}
