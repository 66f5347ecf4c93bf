//! The last records, which the index does not cover yet. There are few, so they
//! are looked at one by one.

use std::collections::HashMap;

use model::record::audit::chain::{Body, Ending};
use model::record::audit::{Notice, Opening};
use rusqlite::OptionalExtension as _;

use crate::audit::Filter;
use crate::audit::read::{Places, Reader};
use crate::error::StoreError;
use crate::index::{End, Place, number, place};

const DOING: &str = "read the end of the audit";

/// Entries that began or ended after the last indexed record.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    entries: HashMap<u64, TailEntry>,
    notices: Vec<(Place, Notice)>,
    /// How many of them began before.
    spanning: usize,
    /// The last indexed record.
    indexed: u64,
}

#[derive(Debug)]
struct TailEntry {
    opened: Place,
    opening: Opening,
    end: Option<End>,
}

impl Tail {
    /// Reads what the index of a reader does not cover.
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Tail, StoreError> {
        let mut tail = Tail {
            indexed: reader.reach.head.sequence,
            ..Tail::default()
        };
        for placed in reader.log.lines(reader.reach.position) {
            // One that cannot be read is for `verify` to name.
            let (position, Some(line)) = placed? else {
                continue;
            };
            let here = Place {
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
                    let end = End {
                        place: here,
                        status: close.closing.status,
                        differs: close.closing.differs,
                    };
                    tail.end(reader, close.opened, end)?;
                }
                Ok(Body::Notice(notice)) => tail.notices.push((here, notice)),
                Ok(Body::Checkpoint(_)) | Err(_) => {}
            }
        }
        Ok(tail)
    }

    fn end(&mut self, reader: &Reader<'_>, opened: u64, end: End) -> Result<(), StoreError> {
        if let Some(entry) = self.entries.get_mut(&opened) {
            entry.end = Some(end);
            return Ok(());
        }
        let sql = "SELECT opened_at FROM entries WHERE opened = ?1";
        let position = reader
            .index
            .query_row(sql, [number(opened)], |row| row.get(0))
            .optional()
            .map_err(StoreError::database(DOING))?;
        let Some(position) = position.map(place) else {
            return Ok(());
        };
        let opened = Place {
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

    /// How many entries are both in the index and here.
    pub(crate) fn spanning(&self) -> usize {
        self.spanning
    }

    /// Whether what the index says about an entry is out of date.
    pub(crate) fn judges(&self, places: &Places) -> bool {
        self.entries.contains_key(&places.opened.sequence)
    }

    /// The places of an indexed entry, with its end if it is here.
    pub(crate) fn closed(&self, places: Places) -> Places {
        match self.entries.get(&places.opened.sequence) {
            Some(entry) => entry.places(),
            None => places,
        }
    }

    /// Entries of the tail alone whose call id starts so.
    pub(crate) fn starting_with(&self, start: &str) -> Vec<(String, Places)> {
        let entries = self.entries.iter().filter(|(opened, entry)| {
            **opened > self.indexed && entry.opening.call_id.starts_with(start)
        });
        entries
            .map(|(_, entry)| (entry.opening.call_id.clone(), entry.places()))
            .collect()
    }

    /// The places of notices here that fit.
    pub(crate) fn notices(&self, fits: impl Fn(Place, &Notice) -> bool) -> Vec<Place> {
        let fitting = self.notices.iter().filter(|(place, it)| fits(*place, it));
        fitting.map(|(place, _)| *place).collect()
    }

    /// Notices here whose id starts so.
    pub(crate) fn notice_ids(&self, start: &str) -> Vec<(String, Place)> {
        let found = self
            .notices
            .iter()
            .filter(|(_, it)| it.id.starts_with(start));
        found.map(|(place, it)| (it.id.clone(), *place)).collect()
    }

    /// Entries here that a filter names.
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

    /// The same question as the SQL of `read::condition`; a test holds them
    /// against each other.
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
