//! Reading entries back. The index says which; the log says what.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use model::record::audit::chain::{Body, Ending, Kind, Record};
use model::record::audit::{Closing, Status};
use rusqlite::types::Value as Column;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params_from_iter};

use crate::audit::tail::Tail;
use crate::audit::{Entry, Filter, Found, Item, Rows, notices};
use crate::error::StoreError;
use crate::index::{self, Place, Reach, number, place};
use crate::limit;
use crate::log::moment::Moment;

const DOING: &str = "read the audit";

/// One moment of the index, and the log as it was no earlier.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) index: Transaction<'a>,
    pub(crate) log: Moment,
    /// How far the index reaches.
    pub(crate) reach: Reach,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(index: &'a Connection, home: &Path) -> Result<Reader<'a>, StoreError> {
        let index = index
            .unchecked_transaction()
            .map_err(StoreError::database(DOING))?;
        // The first question of a transaction settles its moment.
        let reach = index::reach(&index)?;
        let log = Moment::take(&crate::log::folder(home))?;
        Ok(Reader { index, log, reach })
    }
}

/// An entry's two records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Places {
    pub(crate) opened: Place,
    pub(crate) closed: Option<Place>,
}

/// The columns [`places_of`] reads, in its order.
const PLACES: &str = "e.opened, e.opened_at, e.closed, e.closed_at";

fn places_of(row: &Row<'_>) -> rusqlite::Result<Places> {
    let closed: Option<i64> = row.get(2)?;
    let closed_at: Option<i64> = row.get(3)?;
    Ok(Places {
        opened: Place {
            sequence: place(row.get(0)?),
            position: place(row.get(1)?),
        },
        closed: closed.map(|closed| Place {
            sequence: place(closed),
            position: place(closed_at.unwrap_or(0)),
        }),
    })
}

pub(crate) fn list(reader: &Reader<'_>, filter: &Filter) -> Result<Vec<Entry>, StoreError> {
    let limit = filter.limit.unwrap_or(limit::LIST_MAX).min(limit::LIST_MAX);
    entries(&reader.log, &chosen(reader, filter, limit)?)
}

pub(crate) fn find(reader: &Reader<'_>, raw_id: &str) -> Result<Found, StoreError> {
    let start = raw_id.trim().to_lowercase();
    if start.is_empty() {
        return Ok(Found::None);
    }
    let tail = Tail::read(reader)?;
    let mut matches: Vec<(String, Places)> = tail.starting_with(&start);
    matches.extend(indexed_starting_with(reader, &start, &tail)?);
    let noticed = notices::starting_with(reader, &start)?;
    if let ([], [(_, place)]) = (matches.as_slice(), noticed.as_slice()) {
        let line = reader.log.record(place)?;
        return Ok(match line {
            Some(line) => Found::Notice(Box::new(notices::entry(&line.record)?)),
            None => Found::None,
        });
    }
    if !noticed.is_empty() {
        let ids = matches.into_iter().map(|(id, _)| id);
        let mut ids: Vec<_> = ids.chain(noticed.into_iter().map(|(id, _)| id)).collect();
        ids.sort();
        ids.truncate(limit::PREFIX_MATCHES_MAX);
        return Ok(Found::Several(ids));
    }
    let exact = matches.iter().filter(|(call_id, _)| *call_id == start);
    let (_, places) = match (exact.collect::<Vec<_>>().as_slice(), matches.as_slice()) {
        ([exact], _) => exact,
        ([], []) => return Ok(Found::None),
        ([], [one]) => one,
        ([..], [..]) => {
            matches.sort();
            let call_ids = matches.into_iter().map(|(call_id, _)| call_id);
            let call_ids = call_ids.take(limit::PREFIX_MATCHES_MAX);
            return Ok(Found::Several(call_ids.collect()));
        }
    };
    let entry = entries(&reader.log, std::slice::from_ref(places))?.pop();
    Ok(entry.map_or(Found::None, |entry| Found::One(Box::new(entry))))
}

fn indexed_starting_with(
    reader: &Reader<'_>,
    start: &str,
    tail: &Tail,
) -> Result<Vec<(String, Places)>, StoreError> {
    let fail = StoreError::database(DOING);
    // Beyond every text that starts so.
    let end = format!("{start}\u{10ffff}");
    let sql = format!(
        "SELECT {PLACES}, e.call_id FROM entries e
         WHERE e.call_id >= ?1 AND e.call_id < ?2 ORDER BY e.call_id LIMIT {}",
        limit::PREFIX_MATCHES_MAX
    );
    let mut statement = reader.index.prepare(&sql).map_err(&fail)?;
    let rows = statement
        .query_map([start, &end], |row| Ok((row.get(4)?, places_of(row)?)))
        .map_err(&fail)?;
    let rows = rows.map(|row| row.map(|(call_id, places)| (call_id, tail.closed(places))));
    rows.collect::<Result<_, _>>().map_err(&fail)
}

/// The places of the entries a filter names, newest first. What is not indexed
/// yet is looked at in the log itself.
fn chosen(reader: &Reader<'_>, filter: &Filter, limit: usize) -> Result<Vec<Places>, StoreError> {
    let tail = Tail::read(reader)?;
    let mut places = tail.matching(filter);
    // Entries that ended in the tail are judged there.
    let (condition, columns) = condition(filter);
    let count = limit.saturating_add(tail.spanning());
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let sql = format!(
        "SELECT {PLACES} FROM entries e WHERE {condition} ORDER BY e.opened DESC LIMIT {count}"
    );
    let found = indexed(&reader.index, &sql, columns)?;
    places.extend(found.into_iter().filter(|places| !tail.judges(places)));
    places.sort_by_key(|places| std::cmp::Reverse(places.opened.sequence));
    places.truncate(limit);
    Ok(places)
}

fn indexed(
    connection: &Connection,
    sql: &str,
    columns: Vec<Column>,
) -> Result<Vec<Places>, StoreError> {
    let fail = StoreError::database(DOING);
    let mut statement = connection.prepare(sql).map_err(&fail)?;
    let rows = statement
        .query_map(params_from_iter(columns), places_of)
        .map_err(&fail)?;
    rows.collect::<Result<_, _>>().map_err(&fail)
}

pub(crate) fn after(
    reader: &Reader<'_>,
    sequence: u64,
    limit: usize,
) -> Result<Vec<Item>, StoreError> {
    let limit = limit.min(limit::LIST_MAX);
    // Not every line before the record need be looked at: one that begins an entry
    // no later will do.
    let sql = "SELECT opened_at FROM entries WHERE opened <= ?1 ORDER BY opened DESC LIMIT 1";
    let from = position(reader, sql, sequence)?.unwrap_or(0);
    let mut seen = HashMap::new();
    let mut items = Vec::new();
    for placed in reader.log.lines(from) {
        if items.len() >= limit {
            break;
        }
        let (position, Some(line)) = placed? else {
            continue;
        };
        let here = Place {
            sequence: line.record.sequence,
            position,
        };
        if line.record.kind == Kind::Open {
            seen.insert(here.sequence, here);
        }
        if here.sequence <= sequence {
            continue;
        }
        match line.record.kind {
            Kind::Open | Kind::Checkpoint => continue,
            Kind::Notice => {
                items.push(Item::Notice(notices::entry(&line.record)?));
                continue;
            }
            Kind::Close => {}
        }
        let Ok(Body::Close(close)) = line.record.read::<Ending>() else {
            return Err(damaged(here.sequence, "its body is no end of an attempt"));
        };
        let opened = match seen.get(&close.opened) {
            Some(opened) => Some(*opened),
            None => indexed_opening(reader, close.opened)?,
        };
        let places = opened.map(|opened| Places {
            opened,
            closed: Some(here),
        });
        let ended = entries(&reader.log, places.as_slice())?;
        items.extend(ended.into_iter().map(|entry| Item::Call(Box::new(entry))));
    }
    Ok(items)
}

fn indexed_opening(reader: &Reader<'_>, opened: u64) -> Result<Option<Place>, StoreError> {
    let sql = "SELECT opened_at FROM entries WHERE opened = ?1";
    let position = position(reader, sql, opened)?;
    Ok(position.map(|position| Place {
        sequence: opened,
        position,
    }))
}

fn position(reader: &Reader<'_>, sql: &str, sequence: u64) -> Result<Option<u64>, StoreError> {
    let found = reader
        .index
        .prepare_cached(sql)
        .and_then(|mut statement| {
            let row = statement.query_row([number(sequence)], |row| row.get(0));
            row.optional()
        })
        .map_err(StoreError::database(DOING))?;
    Ok(found.map(place))
}

pub(crate) fn export(
    reader: &Reader<'_>,
    filter: &Filter,
    each: &mut dyn FnMut(&Record) -> io::Result<()>,
) -> Result<u64, StoreError> {
    // Which places are wanted; all of them without a filter.
    let wanted = match *filter == Filter::default() {
        true => None,
        false => {
            let limit = filter.limit.unwrap_or(usize::MAX);
            let calls = match filter.rows {
                Rows::Notices => Vec::new(),
                Rows::All | Rows::Calls => chosen(reader, filter, limit)?,
            };
            let places = calls.into_iter().flat_map(|places| {
                let opened = places.opened.sequence;
                std::iter::once(opened).chain(places.closed.map(|closed| closed.sequence))
            });
            let noticed = notices::chosen(reader, filter, limit)?;
            let noticed = noticed.into_iter().map(|place| place.sequence);
            Some(
                places
                    .chain(noticed)
                    .collect::<std::collections::BTreeSet<u64>>(),
            )
        }
    };
    let mut count = 0;
    let kept = reader.log.kept().iter().cloned();
    let kept = kept.map(|line| Ok((0, Some(line))));
    for placed in kept.chain(reader.log.lines(0)) {
        let (position, line) = placed?;
        let Some(line) = line else {
            return Err(damaged(
                count + 1,
                &format!("its line at {position} cannot be read"),
            ));
        };
        let record = line.record;
        let is_wanted = wanted.as_ref().is_none_or(|wanted| {
            record.kind == Kind::Checkpoint || wanted.contains(&record.sequence)
        });
        if is_wanted {
            each(&record).map_err(|error| StoreError::Export(Arc::new(error)))?;
            count += 1;
        }
    }
    Ok(count)
}

/// The entries at those places, in that order. One that was removed in between is
/// left out.
fn entries(log: &Moment, places: &[Places]) -> Result<Vec<Entry>, StoreError> {
    let mut entries = Vec::with_capacity(places.len());
    for places in places {
        let Some(open) = log.record(&places.opened)? else {
            continue;
        };
        let close = match &places.closed {
            Some(closed) => log.record(closed)?.map(|line| line.record),
            None => None,
        };
        entries.push(entry(&open.record, close.as_ref())?);
    }
    Ok(entries)
}

fn entry(open: &Record, close: Option<&Record>) -> Result<Entry, StoreError> {
    let Ok(Body::<Closing>::Open(opening)) = open.read() else {
        return Err(damaged(
            open.sequence,
            "its body is no beginning of an attempt",
        ));
    };
    let Some(close) = close else {
        return Ok(Entry {
            opening,
            closing: None,
            sequence: open.sequence,
            closed_sequence: None,
            hash: open.hash.hex(),
        });
    };
    match close.read::<Closing>() {
        Ok(Body::Close(end)) if end.opened == open.sequence && end.call_id == opening.call_id => {
            Ok(Entry {
                opening,
                closing: Some(end.closing),
                sequence: open.sequence,
                closed_sequence: Some(close.sequence),
                hash: close.hash.hex(),
            })
        }
        Ok(_) | Err(_) => Err(damaged(close.sequence, "it is no end of that attempt")),
    }
}

fn damaged(sequence: u64, what: &str) -> StoreError {
    StoreError::Damaged {
        sequence,
        what: what.to_owned(),
    }
}

/// The filter as SQL with its values beside it.
fn condition(filter: &Filter) -> (String, Vec<Column>) {
    let mut terms = vec!["1 = 1"];
    let mut columns = Vec::new();
    let mut add = |term, column: Option<Column>| {
        if let Some(column) = column {
            terms.push(term);
            columns.push(column);
        }
    };
    add("e.tool = ?", filter.tool.clone().map(Column::Text));
    add("e.caller = ?", filter.caller.clone().map(Column::Text));
    let word = |word: &str| Column::Text(word.to_owned());
    let status = filter.status.map(|status| word(status.word()));
    match filter.status {
        None => {}
        Some(Status::Done) => add("e.status = ?", status),
        // The second half lets SQLite use the index of what did not get there.
        Some(Status::Refused | Status::Failed | Status::Cancelled | Status::Crashed) => {
            add("e.status = ? AND e.status <> 'done'", status);
        }
    }
    add(
        "e.origin = ?",
        filter.origin.map(|origin| word(origin.word())),
    );
    add("e.at_ms >= ?", filter.since_ms.map(Column::Integer));
    add("e.at_ms < ?", filter.until_ms.map(Column::Integer));
    if filter.differs {
        add("e.differs AND ?", Some(Column::Integer(1)));
    }
    let before = filter.before.map(|before| Column::Integer(number(before)));
    add("e.opened < ?", before);
    let after = filter.after.map(|after| Column::Integer(number(after)));
    add("e.opened > ?", after);
    (terms.join(" AND "), columns)
}
