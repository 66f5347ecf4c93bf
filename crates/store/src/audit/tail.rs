//! The last records, which the index does not cover yet. There are few, so they
//! are looked at one by one.

use std::collections::HashMap;

use model::audit::chain::{Body, Ending, Record};
use model::audit::{Opening, Status};
use rusqlite::{Connection, OptionalExtension as _};

use crate::audit::Filter;
use crate::audit::read::{Places, RECORD, record_of};
use crate::error::StoreError;
use crate::ledger::{indexed, number};

const DOING: &str = "read the end of the audit";

/// Entries that began or ended after the last indexed record.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    entries: HashMap<u64, TailEntry>,
    /// How many of them began before.
    spanning: usize,
    /// The last indexed record.
    indexed: u64,
}

#[derive(Debug)]
struct TailEntry {
    opening: Opening,
    end: Option<(u64, Status)>,
}

/// Reads the tail as the connection's transaction sees it.
pub(crate) fn read(connection: &Connection) -> Result<Tail, StoreError> {
    let fail = StoreError::database(DOING);
    let sql = format!("SELECT {RECORD} FROM records r WHERE r.sequence > ?1 ORDER BY r.sequence");
    let mut statement = connection.prepare(&sql).map_err(&fail)?;
    let indexed = indexed(connection)?;
    let rows = statement
        .query_map([number(indexed)], record_of)
        .map_err(&fail)?;
    let mut tail = Tail {
        indexed,
        ..Tail::default()
    };
    for record in rows {
        let record = record.map_err(&fail)?;
        match record.read::<Ending>() {
            Ok(Body::Open(opening)) => {
                let entry = TailEntry { opening, end: None };
                tail.entries.insert(record.sequence, entry);
            }
            Ok(Body::Close(close)) => {
                let end = (record.sequence, close.closing.status);
                tail.end(connection, close.opened, end)?;
            }
            // One that cannot be read is for `verify` to name.
            Ok(Body::Checkpoint(_)) | Err(_) => {}
        }
    }
    Ok(tail)
}

impl Tail {
    fn end(
        &mut self,
        connection: &Connection,
        opened: u64,
        end: (u64, Status),
    ) -> Result<(), StoreError> {
        if let Some(entry) = self.entries.get_mut(&opened) {
            entry.end = Some(end);
            return Ok(());
        }
        let sql = format!("SELECT {RECORD} FROM records r WHERE r.sequence = ?1");
        let record: Option<Record> = connection
            .query_row(&sql, [number(opened)], record_of)
            .optional()
            .map_err(StoreError::database(DOING))?;
        if let Some(Ok(Body::Open(opening))) = record.as_ref().map(Record::read::<Ending>) {
            self.spanning += 1;
            let end = Some(end);
            self.entries.insert(opened, TailEntry { opening, end });
        }
        Ok(())
    }

    /// How many entries are both in the index and here.
    pub(crate) fn spanning(&self) -> usize {
        self.spanning
    }

    /// Whether what the index says about an entry is out of date.
    pub(crate) fn judges(&self, opened: i64) -> bool {
        u64::try_from(opened).is_ok_and(|opened| self.entries.contains_key(&opened))
    }

    /// The places of an indexed entry, with its end if it is here.
    pub(crate) fn closed(&self, (opened, closed): Places) -> Places {
        let entry = u64::try_from(opened).ok();
        let entry = entry.and_then(|opened| self.entries.get(&opened));
        match entry {
            Some(entry) => (opened, entry.closed()),
            None => (opened, closed),
        }
    }

    /// Entries of the tail alone whose call id starts so.
    pub(crate) fn starting_with(&self, start: &str) -> Vec<(String, Places)> {
        let entries = self.entries.iter().filter(|(opened, entry)| {
            **opened > self.indexed && entry.opening.call_id.starts_with(start)
        });
        entries
            .map(|(opened, entry)| {
                let places = (number(*opened), entry.closed());
                (entry.opening.call_id.clone(), places)
            })
            .collect()
    }

    /// Entries here that a filter names.
    pub(crate) fn matching(&self, filter: &Filter) -> Vec<Places> {
        let entries = self
            .entries
            .iter()
            .filter(|(opened, entry)| entry.fits(**opened, filter));
        entries
            .map(|(opened, entry)| (number(*opened), entry.closed()))
            .collect()
    }
}

impl TailEntry {
    fn closed(&self) -> Option<i64> {
        self.end.map(|(closed, _)| number(closed))
    }

    /// The same question as the SQL of `read::condition`; a test holds them
    /// against each other.
    fn fits(&self, opened: u64, filter: &Filter) -> bool {
        let Filter {
            tool,
            caller,
            status,
            origin,
            since_ms,
            until_ms,
            limit: _,
            before,
        } = filter;
        let opening = &self.opening;
        let ended = self.end.map(|(_, status)| status);
        tool.as_ref().is_none_or(|tool| *tool == opening.tool)
            && caller.as_ref().is_none_or(|it| *it == opening.caller)
            && status.is_none_or(|status| ended == Some(status))
            && origin.is_none_or(|origin| origin == opening.origin)
            && since_ms.is_none_or(|since_ms| opening.at_ms >= since_ms)
            && until_ms.is_none_or(|until_ms| opening.at_ms < until_ms)
            && before.is_none_or(|before| opened < before)
    }
}
