//! Reading entries. The index says which, the log says what.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use model::record::audit::chain::{Body, Ending, Record, RecordKind};
use model::record::audit::proof::{ExportedLine, ExportedLog};
use model::record::audit::seal::ExportSeal;
use model::record::audit::{Closing, Status};
use model::record::note::{NoteKey, SignedNote};
use rusqlite::types::Value as Column;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params_from_iter};

use crate::audit::entry::{AuditEntry, AuditItem, Filter, FoundEntry, Rows};
use crate::audit::evidence::prove::Prover;
use crate::audit::evidence::signer::unsigned;
use crate::audit::evidence::tree_file;
use crate::audit::index::{self, IndexHead, RecordPlace};
use crate::audit::log::line::Line;
use crate::audit::log::snapshot::{LogSnapshot, believable};
use crate::audit::notices;
use crate::audit::tail::Tail;
use crate::error::StoreError;
use crate::gauge::LogReading;
use crate::home::database::{from_integer, to_integer};
use crate::limit;

const DOING: &str = "read the audit";

/// The index at one moment, and the log at that moment or later.
#[derive(Debug)]
pub(crate) struct AuditReader<'a> {
    pub(crate) index: Transaction<'a>,
    pub(crate) log: LogSnapshot,
    /// Where the index ends.
    pub(crate) reach: IndexHead,
}

impl<'a> AuditReader<'a> {
    pub(crate) fn new(index: &'a Connection, home: &Path) -> Result<AuditReader<'a>, StoreError> {
        let index = index
            .unchecked_transaction()
            .map_err(StoreError::database(DOING))?;
        // The first query of a transaction fixes what it sees.
        let reach = index::reach(&index)?;
        // After the index, so that every place the index names is in the log already.
        let log = LogSnapshot::take(&crate::home::audit_folder(home))?;
        Ok(AuditReader { index, log, reach })
    }
}

/// An entry's two records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Places {
    pub(crate) opened: RecordPlace,
    pub(crate) closed: Option<RecordPlace>,
}

/// The columns [`places_of`] reads, in its order.
const PLACES: &str = "e.opened, e.opened_at, e.closed, e.closed_at";

fn places_of(row: &Row<'_>) -> rusqlite::Result<Places> {
    let closed: Option<i64> = row.get(2)?;
    let closed_at: Option<i64> = row.get(3)?;
    Ok(Places {
        opened: RecordPlace {
            sequence: from_integer(row.get(0)?),
            position: from_integer(row.get(1)?),
        },
        closed: closed.map(|closed| RecordPlace {
            sequence: from_integer(closed),
            position: from_integer(closed_at.unwrap_or(0)),
        }),
    })
}

pub(crate) fn list(
    reader: &AuditReader<'_>,
    filter: &Filter,
) -> Result<Vec<AuditEntry>, StoreError> {
    let limit = filter.limit.unwrap_or(limit::LIST_MAX).min(limit::LIST_MAX);
    entries(&reader.log, &chosen(reader, filter, limit)?)
}

pub(crate) fn find(reader: &AuditReader<'_>, raw_id: &str) -> Result<FoundEntry, StoreError> {
    let start = raw_id.trim().to_lowercase();
    if start.is_empty() {
        return Ok(FoundEntry::None);
    }
    let tail = Tail::read(reader)?;
    let mut matches: Vec<(String, Places)> = tail.starting_with(&start);
    matches.extend(indexed_starting_with(reader, &start, &tail)?);
    let noticed = notices::starting_with(reader, &start)?;
    if let ([], [(_, place)]) = (matches.as_slice(), noticed.as_slice()) {
        let line = reader.log.record(place)?;
        return Ok(match line {
            Some(line) => FoundEntry::Notice(Box::new(notices::entry(&line.record)?)),
            None => FoundEntry::None,
        });
    }
    if !noticed.is_empty() {
        let ids = matches.into_iter().map(|(id, _)| id);
        let mut ids: Vec<_> = ids.chain(noticed.into_iter().map(|(id, _)| id)).collect();
        ids.sort();
        ids.truncate(limit::PREFIX_MATCHES_MAX);
        return Ok(FoundEntry::Several(ids));
    }
    let exact = matches.iter().filter(|(call_id, _)| *call_id == start);
    let (_, places) = match (exact.collect::<Vec<_>>().as_slice(), matches.as_slice()) {
        ([exact], _) => exact,
        ([], []) => return Ok(FoundEntry::None),
        ([], [one]) => one,
        ([..], [..]) => {
            matches.sort();
            let call_ids = matches.into_iter().map(|(call_id, _)| call_id);
            let call_ids = call_ids.take(limit::PREFIX_MATCHES_MAX);
            return Ok(FoundEntry::Several(call_ids.collect()));
        }
    };
    let entry = entries(&reader.log, std::slice::from_ref(places))?.pop();
    Ok(entry.map_or(FoundEntry::None, |entry| FoundEntry::One(Box::new(entry))))
}

fn indexed_starting_with(
    reader: &AuditReader<'_>,
    start: &str,
    tail: &Tail,
) -> Result<Vec<(String, Places)>, StoreError> {
    let fail = StoreError::database(DOING);
    // Greater than every text with this prefix.
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

/// The places of the entries a filter selects, newest first. Records that are not
/// indexed yet are scanned.
fn chosen(
    reader: &AuditReader<'_>,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<Places>, StoreError> {
    let tail = Tail::read(reader)?;
    let mut places = tail.matching(filter);
    // Entries that ended in the tail are matched there.
    let (condition, columns) = condition(filter);
    // Rows that the tail judges are dropped below, so as many more are asked for.
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
    reader: &AuditReader<'_>,
    sequence: u64,
    limit: usize,
) -> Result<Vec<AuditItem>, StoreError> {
    let limit = limit.min(limit::LIST_MAX);
    // Scanning starts at the last opening that is not later, not at the first line.
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
        let here = RecordPlace {
            sequence: line.record.sequence,
            position,
        };
        if line.record.kind == RecordKind::Open {
            seen.insert(here.sequence, here);
        }
        if here.sequence <= sequence {
            continue;
        }
        match line.record.kind {
            RecordKind::Open | RecordKind::Checkpoint | RecordKind::Anchor => continue,
            RecordKind::Notice => {
                items.push(AuditItem::Notice(notices::entry(&line.record)?));
                continue;
            }
            RecordKind::Close => {}
        }
        let Ok(Body::Close(close)) = line.record.read::<Ending>() else {
            return Err(damaged(here.sequence, "its body is not the end of a call"));
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
        items.extend(
            ended
                .into_iter()
                .map(|entry| AuditItem::Call(Box::new(entry))),
        );
    }
    Ok(items)
}

fn indexed_opening(
    reader: &AuditReader<'_>,
    opened: u64,
) -> Result<Option<RecordPlace>, StoreError> {
    let sql = "SELECT opened_at FROM entries WHERE opened = ?1";
    let position = position(reader, sql, opened)?;
    Ok(position.map(|position| RecordPlace {
        sequence: opened,
        position,
    }))
}

fn position(reader: &AuditReader<'_>, sql: &str, sequence: u64) -> Result<Option<u64>, StoreError> {
    let found = reader
        .index
        .prepare_cached(sql)
        .and_then(|mut statement| {
            let row = statement.query_row([to_integer(sequence)], |row| row.get(0));
            row.optional()
        })
        .map_err(StoreError::database(DOING))?;
    Ok(found.map(from_integer))
}

pub(crate) fn export(
    reader: &AuditReader<'_>,
    filter: &Filter,
    each: &mut dyn FnMut(&Record) -> io::Result<()>,
) -> Result<u64, StoreError> {
    export_through(reader, filter, u64::MAX, &mut |record| {
        each(record).map_err(exporting)
    })
}

/// The same with what it takes to check it elsewhere: the key and the newest head first,
/// then the records that head covers, each with its own proof unless all are exported,
/// then the history of heads. Returns how many records there are, and what the last line
/// has to seal.
pub(crate) fn export_proved(
    reader: &AuditReader<'_>,
    filter: &Filter,
    key: &NoteKey,
    prover: &Prover,
    heads: Vec<SignedNote>,
    each: &mut dyn FnMut(&ExportedLine) -> io::Result<()>,
) -> Result<(u64, ExportSeal), StoreError> {
    let mut seal = ExportSeal::default();
    let mut each = |line: ExportedLine| {
        seal.add(&line);
        each(&line).map_err(exporting)
    };
    let checkpoint = reader.log.newest_checkpoint()?;
    let is_covered = |line: &Line| line.record.sequence <= prover.size();
    // Behind an unsigned checkpoint the export could not be verified.
    if !checkpoint.as_ref().is_none_or(is_covered) {
        let what = "a removal is not signed yet; try again in some seconds";
        return Err(unsigned(what.to_owned()));
    }
    let checkpoint = checkpoint.as_ref().and_then(believable);
    let through = checkpoint.map_or(0, |it| it.through.sequence);
    let removed = tree_file::removed(Some(prover.tree()), through)?;
    let whole = *filter == Filter::default();
    let log = ExportedLog {
        key: key.to_string(),
        head: prover.note().to_string(),
        whole,
        removed: removed.unwrap_or_default(),
    };
    each(ExportedLine::Log(Box::new(log)))?;
    let count = export_through(reader, filter, prover.size(), &mut |record| {
        let hashes = match whole {
            true => Vec::new(),
            false => prover.hashes(record)?,
        };
        each(ExportedLine::Record(record.clone(), hashes))
    })?;
    if whole {
        for note in heads {
            each(ExportedLine::Head(note.to_string()))?;
        }
    }
    Ok((count, seal))
}

pub(crate) fn exporting(error: io::Error) -> StoreError {
    StoreError::Export(Arc::new(error))
}

/// Hands over the records a filter selects, up to a sequence.
fn export_through(
    reader: &AuditReader<'_>,
    filter: &Filter,
    through: u64,
    each: &mut dyn FnMut(&Record) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    // The sequences to export; all of them without a filter.
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
    let reading = LogReading::begin(reader.log.end());
    let kept = reader.log.kept().iter().cloned();
    let kept = kept.map(|line| Ok((0, Some(line))));
    for placed in kept.chain(reader.log.lines(0)) {
        let (position, line) = placed?;
        reading.reach(position);
        // Leaving a line out would look like a whole export that verifies elsewhere. It is
        // an error instead.
        let Some(line) = line else {
            return Err(damaged(
                count + 1,
                &format!("its line at {position} cannot be read"),
            ));
        };
        let record = line.record;
        let is_wanted = wanted.as_ref().is_none_or(|wanted| {
            // Always exported: without them no reader could tell where the chain begins.
            record.kind == RecordKind::Checkpoint || wanted.contains(&record.sequence)
        });
        if record.sequence > through {
            break;
        }
        if is_wanted {
            each(&record)?;
            count += 1;
        }
    }
    Ok(count)
}

/// The entries at some places, in their order. Entries that were removed meanwhile are
/// left out.
fn entries(log: &LogSnapshot, places: &[Places]) -> Result<Vec<AuditEntry>, StoreError> {
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

pub(crate) fn entry(open: &Record, close: Option<&Record>) -> Result<AuditEntry, StoreError> {
    let Ok(Body::<Closing>::Open(opening)) = open.read() else {
        return Err(damaged(
            open.sequence,
            "its body is not the opening of a call",
        ));
    };
    let Some(close) = close else {
        return Ok(AuditEntry {
            opening,
            closing: None,
            sequence: open.sequence,
            closed_sequence: None,
            hash: open.hash.hex(),
        });
    };
    match close.read::<Closing>() {
        // Both must fit. A close record under a wrong opening would tell
        // another call's result.
        Ok(Body::Close(end)) if end.opened == open.sequence && end.call_id == opening.call_id => {
            Ok(AuditEntry {
                opening,
                closing: Some(end.closing),
                sequence: open.sequence,
                closed_sequence: Some(close.sequence),
                hash: close.hash.hex(),
            })
        }
        Ok(_) | Err(_) => Err(damaged(close.sequence, "it does not end that call")),
    }
}

fn damaged(sequence: u64, what: &str) -> StoreError {
    StoreError::Damaged {
        sequence,
        what: what.to_owned(),
    }
}

/// The filter as SQL, and its values.
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
        // The second term lets SQLite use the partial index of calls that are not done.
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
    let before = filter
        .before
        .map(|before| Column::Integer(to_integer(before)));
    add("e.opened < ?", before);
    let after = filter.after.map(|after| Column::Integer(to_integer(after)));
    add("e.opened > ?", after);
    (terms.join(" AND "), columns)
}
