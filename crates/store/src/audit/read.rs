//! Reading entries back. The columns say which; the bodies say what.

use std::io;
use std::sync::Arc;

use model::audit::chain::{Body, ChainHash, Ending, Head, Kind, Record};
use model::audit::{Closing, Status};
use rusqlite::types::Value as Column;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params_from_iter};

use crate::audit::tail::{self, Tail};
use crate::audit::{Entry, Filter, Found};
use crate::error::StoreError;
use crate::ledger::{head_of, number, place};
use crate::limit;

const DOING: &str = "read the audit";

/// The columns [`record_of`] reads, in its order.
pub(crate) const RECORD: &str = "r.sequence, r.kind, r.previous, r.hash, r.body";

pub(crate) fn list(connection: &Connection, filter: &Filter) -> Result<Vec<Entry>, StoreError> {
    let limit = filter.limit.unwrap_or(limit::LIST_MAX).min(limit::LIST_MAX);
    let moment = moment(connection)?;
    entries(&moment, &chosen(&moment, filter, limit)?)
}

pub(crate) fn find(connection: &Connection, raw_id: &str) -> Result<Found, StoreError> {
    let start = raw_id.trim().to_lowercase();
    if start.is_empty() {
        return Ok(Found::None);
    }
    let moment = moment(connection)?;
    let tail = tail::read(&moment)?;
    let mut matches: Vec<(String, Places)> = tail.starting_with(&start);
    matches.extend(indexed_starting_with(&moment, &start, &tail)?);
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
    let entry = entries(&moment, std::slice::from_ref(places))?.pop();
    Ok(entry.map_or(Found::None, |entry| Found::One(Box::new(entry))))
}

fn indexed_starting_with(
    connection: &Connection,
    start: &str,
    tail: &Tail,
) -> Result<Vec<(String, Places)>, StoreError> {
    let fail = StoreError::database(DOING);
    // Beyond every text that starts so.
    let end = format!("{start}\u{10ffff}");
    let sql = format!(
        "SELECT call_id, opened, closed FROM entries
         WHERE call_id >= ?1 AND call_id < ?2 ORDER BY call_id LIMIT {}",
        limit::PREFIX_MATCHES_MAX
    );
    let mut statement = connection.prepare(&sql).map_err(&fail)?;
    let rows = statement
        .query_map([start, &end], |row| {
            Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))
        })
        .map_err(&fail)?;
    let rows = rows.map(|row| row.map(|(call_id, places)| (call_id, tail.closed(places))));
    rows.collect::<Result<_, _>>().map_err(&fail)
}

/// The places of the entries a filter names, newest first. What is not indexed
/// yet is looked at in the records themselves.
fn chosen(
    connection: &Connection,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<Places>, StoreError> {
    let fail = StoreError::database(DOING);
    let tail = tail::read(connection)?;
    let mut places = tail.matching(filter);
    // Entries that ended in the tail are judged there.
    let spanning = tail.spanning();
    let (condition, columns) = condition(filter);
    let count = limit.saturating_add(spanning);
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let sql = format!(
        "SELECT e.opened, e.closed FROM entries e WHERE {condition}
         ORDER BY e.opened DESC LIMIT {count}"
    );
    let mut statement = connection.prepare(&sql).map_err(&fail)?;
    let rows = statement
        .query_map(params_from_iter(columns), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .map_err(&fail)?;
    for row in rows {
        let found: Places = row.map_err(&fail)?;
        if !tail.judges(found.0) {
            places.push(found);
        }
    }
    places.sort_by_key(|(opened, _)| std::cmp::Reverse(*opened));
    places.truncate(limit);
    Ok(places)
}

/// One moment of the database for several questions.
fn moment(connection: &Connection) -> Result<Transaction<'_>, StoreError> {
    connection
        .unchecked_transaction()
        .map_err(StoreError::database(DOING))
}

pub(crate) fn after(
    connection: &Connection,
    sequence: u64,
    limit: usize,
) -> Result<Vec<Entry>, StoreError> {
    let fail = StoreError::database(DOING);
    let sql = format!(
        "SELECT {RECORD} FROM records r WHERE r.sequence > ?1 AND r.kind = 'close'
         ORDER BY r.sequence LIMIT {}",
        limit.min(limit::LIST_MAX)
    );
    let mut statement = connection.prepare(&sql).map_err(&fail)?;
    let rows = statement
        .query_map([number(sequence)], record_of)
        .map_err(&fail)?;
    let mut places = Vec::new();
    for record in rows {
        let record = record.map_err(&fail)?;
        let Ok(Body::Close(close)) = record.read::<Ending>() else {
            return Err(damaged(record.sequence, "its body is no end of an attempt"));
        };
        places.push((number(close.opened), Some(number(record.sequence))));
    }
    entries(connection, &places)
}

pub(crate) fn head(connection: &Connection) -> Result<Head, StoreError> {
    let head = connection
        .query_row(
            "SELECT sequence, hash FROM records ORDER BY sequence DESC LIMIT 1",
            [],
            |row| Ok(head_of(row.get(0)?, row.get(1)?)),
        )
        .optional()
        .map_err(StoreError::database(DOING))?;
    Ok(head.unwrap_or(Head::START))
}

pub(crate) fn newest_checkpoint(connection: &Connection) -> Result<Option<Record>, StoreError> {
    let sql = format!(
        "SELECT {RECORD} FROM records r WHERE r.kind = 'checkpoint'
         ORDER BY r.sequence DESC LIMIT 1"
    );
    connection
        .query_row(&sql, [], record_of)
        .optional()
        .map_err(StoreError::database(DOING))
}

pub(crate) fn export(
    connection: &Connection,
    filter: &Filter,
    each: &mut dyn FnMut(&Record) -> io::Result<()>,
) -> Result<u64, StoreError> {
    let moment = moment(connection)?;
    let mut each = |record: rusqlite::Result<Record>| {
        let record = record.map_err(StoreError::database(DOING))?;
        each(&record).map_err(|error| StoreError::Export(Arc::new(error)))
    };
    if *filter == Filter::default() {
        let sql = format!("SELECT {RECORD} FROM records r ORDER BY r.sequence");
        return hand_over(&moment, &sql, &mut each);
    }
    let limit = filter.limit.unwrap_or(usize::MAX);
    let mut wanted: Vec<i64> = chosen(&moment, filter, limit)?
        .into_iter()
        .flat_map(|(opened, closed)| std::iter::once(opened).chain(closed))
        .collect();
    wanted.extend(checkpoint_places(&moment)?);
    wanted.sort_unstable();
    let fail = StoreError::database(DOING);
    let sql = format!("SELECT {RECORD} FROM records r WHERE r.sequence = ?1");
    let mut statement = moment.prepare(&sql).map_err(&fail)?;
    let mut count = 0;
    for place in wanted {
        each(statement.query_row([place], record_of))?;
        count += 1;
    }
    Ok(count)
}

fn hand_over(
    connection: &Connection,
    sql: &str,
    each: &mut dyn FnMut(rusqlite::Result<Record>) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    let fail = StoreError::database(DOING);
    let mut statement = connection.prepare(sql).map_err(&fail)?;
    let mut rows = statement.query_map([], record_of).map_err(&fail)?;
    rows.try_fold(0, |count, record| each(record).map(|()| count + 1))
}

fn checkpoint_places(connection: &Connection) -> Result<Vec<i64>, StoreError> {
    let fail = StoreError::database(DOING);
    let mut statement = connection
        .prepare("SELECT sequence FROM records WHERE kind = 'checkpoint'")
        .map_err(&fail)?;
    let rows = statement.query_map([], |row| row.get(0)).map_err(&fail)?;
    rows.collect::<Result<_, _>>().map_err(&fail)
}

/// A record from the columns of [`RECORD`].
pub(crate) fn record_of(row: &Row<'_>) -> rusqlite::Result<Record> {
    let word: String = row.get(1)?;
    let kind = Kind::of_word(&word).ok_or_else(|| {
        let error = format!("`{word}` is no kind of record");
        rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, error.into())
    })?;
    Ok(Record {
        sequence: place(row.get(0)?),
        kind,
        previous: ChainHash::from_bytes(row.get(2)?),
        hash: ChainHash::from_bytes(row.get(3)?),
        body: row.get(4)?,
    })
}

/// An entry's two places as SQLite keeps them.
pub(crate) type Places = (i64, Option<i64>);

/// The entries at those places, in that order. One that was removed in between is
/// left out.
fn entries(connection: &Connection, places: &[Places]) -> Result<Vec<Entry>, StoreError> {
    let fail = StoreError::database(DOING);
    let sql = format!("SELECT {RECORD} FROM records r WHERE r.sequence = ?1");
    let mut statement = connection.prepare(&sql).map_err(&fail)?;
    let mut record = |place: i64| statement.query_row([place], record_of).optional();
    let mut entries = Vec::with_capacity(places.len());
    for (opened, closed) in places {
        let open = record(*opened).map_err(&fail)?;
        let close = match closed {
            Some(closed) => record(*closed).map_err(&fail)?,
            None => None,
        };
        if let Some(open) = open {
            entries.push(entry(&open, close.as_ref())?);
        }
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
    let before = filter.before.map(|before| Column::Integer(number(before)));
    add("e.opened < ?", before);
    (terms.join(" AND "), columns)
}
