//! Reading notices, alone or in one list with calls.

use model::record::audit::Notice;
use model::record::audit::chain::{Body, Ending, Record};
use rusqlite::types::Value as Column;
use rusqlite::{Row, params_from_iter};

use crate::audit::entry::{AuditItem, Filter, NoticeEntry, Rows};
use crate::audit::index::RecordPlace;
use crate::audit::read;
use crate::audit::read::AuditReader;
use crate::audit::tail::Tail;
use crate::error::StoreError;
use crate::home::database::{from_integer, to_integer};
use crate::limit;

const DOING: &str = "read the notices";

/// Calls and notices that a filter selects, newest first.
pub(crate) fn items(
    reader: &AuditReader<'_>,
    filter: &Filter,
) -> Result<Vec<AuditItem>, StoreError> {
    let limit = filter.limit.unwrap_or(limit::LIST_MAX).min(limit::LIST_MAX);
    let mut items = Vec::new();
    if filter.rows != Rows::Notices {
        let calls = read::list(reader, filter)?;
        items.extend(
            calls
                .into_iter()
                .map(|entry| AuditItem::Call(Box::new(entry))),
        );
    }
    if filter.rows != Rows::Calls {
        let notices = list(reader, filter)?;
        items.extend(notices.into_iter().map(AuditItem::Notice));
    }
    items.sort_by_key(|item| std::cmp::Reverse(item.sequence()));
    items.truncate(limit);
    Ok(items)
}

/// Notices that a filter selects, newest first.
pub(crate) fn list(
    reader: &AuditReader<'_>,
    filter: &Filter,
) -> Result<Vec<NoticeEntry>, StoreError> {
    let limit = filter.limit.unwrap_or(limit::LIST_MAX).min(limit::LIST_MAX);
    let places = chosen(reader, filter, limit)?;
    let mut found = Vec::with_capacity(places.len());
    for place in &places {
        if let Some(line) = reader.log.record(place)? {
            found.push(entry(&line.record)?);
        }
    }
    Ok(found)
}

/// The places of the notices a filter selects, newest first.
pub(crate) fn chosen(
    reader: &AuditReader<'_>,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<RecordPlace>, StoreError> {
    if is_about_calls(filter) {
        return Ok(Vec::new());
    }
    let tail = Tail::read(reader)?;
    let mut places = tail.notices(|place, notice| fits(filter, place, notice));
    let (condition, columns) = condition(filter);
    let count = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = format!(
        "SELECT sequence, position FROM notices WHERE {condition}
         ORDER BY sequence DESC LIMIT {count}"
    );
    places.extend(places_of(reader, &sql, columns)?);
    places.sort_by_key(|place| std::cmp::Reverse(place.sequence));
    places.truncate(limit);
    Ok(places)
}

/// The ids and places of notices whose id has a prefix.
pub(crate) fn starting_with(
    reader: &AuditReader<'_>,
    start: &str,
) -> Result<Vec<(String, RecordPlace)>, StoreError> {
    let fail = StoreError::database(DOING);
    let tail = Tail::read(reader)?;
    let mut found = tail.notice_ids(start);
    let end = format!("{start}\u{10ffff}");
    let sql = format!(
        "SELECT sequence, position, id FROM notices WHERE id >= ?1 AND id < ?2
         ORDER BY id LIMIT {}",
        limit::PREFIX_MATCHES_MAX
    );
    let mut statement = reader.index.prepare(&sql).map_err(&fail)?;
    let rows = statement
        .query_map([start, &end], |row| Ok((row.get(2)?, place_of(row)?)))
        .map_err(&fail)?;
    for row in rows {
        found.push(row.map_err(&fail)?);
    }
    Ok(found)
}

/// The notice of a record.
pub(crate) fn entry(record: &Record) -> Result<NoticeEntry, StoreError> {
    match record.read::<Ending>() {
        Ok(Body::Notice(notice)) => Ok(NoticeEntry {
            notice,
            sequence: record.sequence,
            hash: record.hash.hex(),
        }),
        Ok(_) | Err(_) => Err(StoreError::Damaged {
            sequence: record.sequence,
            what: "its body is not a notice".to_owned(),
        }),
    }
}

fn places_of(
    reader: &AuditReader<'_>,
    sql: &str,
    columns: Vec<Column>,
) -> Result<Vec<RecordPlace>, StoreError> {
    let fail = StoreError::database(DOING);
    let mut statement = reader.index.prepare(sql).map_err(&fail)?;
    let rows = statement
        .query_map(params_from_iter(columns), place_of)
        .map_err(&fail)?;
    rows.collect::<Result<_, _>>().map_err(&fail)
}

fn place_of(row: &Row<'_>) -> rusqlite::Result<RecordPlace> {
    Ok(RecordPlace {
        sequence: from_integer(row.get(0)?),
        position: from_integer(row.get(1)?),
    })
}

/// Whether a filter asks for something only calls have.
fn is_about_calls(filter: &Filter) -> bool {
    filter.rows == Rows::Calls
        || filter.status.is_some()
        || filter.origin.is_some()
        || filter.differs
}

/// The filter as SQL. A tool is what a notice is about, a caller who did it or
/// whom it is about.
fn condition(filter: &Filter) -> (String, Vec<Column>) {
    let mut terms = vec!["1 = 1"];
    let mut columns = Vec::new();
    if let Some(tool) = &filter.tool {
        terms.push("about = ?");
        columns.push(Column::Text(tool.clone()));
    }
    if let Some(caller) = &filter.caller {
        terms.push("(by_whom = ? OR about = ?)");
        columns.extend([Column::Text(caller.clone()), Column::Text(caller.clone())]);
    }
    if let Some(act) = filter.act {
        terms.push("act = ?");
        columns.push(Column::Text(act.word().to_owned()));
    }
    if let Some(since_ms) = filter.since_ms {
        terms.push("at_ms >= ?");
        columns.push(Column::Integer(since_ms));
    }
    if let Some(until_ms) = filter.until_ms {
        terms.push("at_ms < ?");
        columns.push(Column::Integer(until_ms));
    }
    if let Some(before) = filter.before {
        terms.push("sequence < ?");
        columns.push(Column::Integer(to_integer(before)));
    }
    if let Some(after) = filter.after {
        terms.push("sequence > ?");
        columns.push(Column::Integer(to_integer(after)));
    }
    (terms.join(" AND "), columns)
}

/// The same condition as the SQL of [`condition`].
fn fits(filter: &Filter, place: RecordPlace, notice: &Notice) -> bool {
    // By name, so that a new field of the filter does not compile until this knows it.
    let Filter {
        rows: _,
        tool,
        caller,
        status: _,
        origin: _,
        differs: _,
        act,
        since_ms,
        until_ms,
        limit: _,
        before,
        after,
    } = filter;
    let is_about = |name: &String| notice.about.as_ref() == Some(name);
    tool.as_ref().is_none_or(is_about)
        && caller
            .as_ref()
            .is_none_or(|caller| *caller == notice.by || is_about(caller))
        && act.is_none_or(|act| act == notice.act)
        && since_ms.is_none_or(|since_ms| notice.at_ms >= since_ms)
        && until_ms.is_none_or(|until_ms| notice.at_ms < until_ms)
        && before.is_none_or(|before| place.sequence < before)
        && after.is_none_or(|after| place.sequence > after)
}
