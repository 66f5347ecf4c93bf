//! The index of the log: an SQLite database that follows the log in batches and can
//! be rebuilt from it at any time. It is never the truth.
//!
//! The index covers only what is on the disk, so it is never ahead of the log unless
//! a person edited one of them or the disk lied. A writer that continues from the end
//! of the index therefore first checks that the log still holds the same record
//! there. If it does not, records are missing: the chain writer puts a notice about
//! that into the log, then the index is rebuilt.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::record::audit::chain::{Body, ChainHash, Ending, Head};
use model::record::audit::{Notice, Opening, Status};
use rusqlite::{Connection, ErrorCode, Params, Transaction, TransactionBehavior, params};

use crate::audit::log::snapshot::{LogSnapshot, believable};
use crate::error::StoreError;
use crate::gauge::LogReading;
use crate::home::database::{self, ConnectionMode, from_integer, to_integer};
use crate::limit;

const DOING: &str = "index the audit";

/// The schema; an index with another one is rebuilt.
const VERSION: i64 = 2;

/// Where a record is: its sequence in the chain, and the byte position of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RecordPlace {
    pub(crate) sequence: u64,
    pub(crate) position: u64,
}

/// Where the index ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexHead {
    /// The last record it covers.
    pub(crate) head: Head,
    /// The position of the next line.
    pub(crate) position: u64,
}

/// What records add to the index.
#[derive(Debug, Default)]
pub(crate) struct Additions {
    entries: Vec<(RecordPlace, Option<Arc<str>>, Arc<Opening>)>,
    /// By the sequence of the opening. Most belong to an entry above, and both become
    /// one row.
    ends: HashMap<u64, EntryEnd>,
    notices: Vec<(RecordPlace, Arc<Notice>)>,
}

/// How an entry ended, as far as filters use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryEnd {
    pub(crate) place: RecordPlace,
    pub(crate) status: Status,
    /// Whether the shadow rules decide differently.
    pub(crate) differs: bool,
}

impl Additions {
    pub(crate) fn open(&mut self, place: RecordPlace, process: &Arc<str>, opening: &Arc<Opening>) {
        let process = Some(Arc::clone(process));
        self.entries.push((place, process, Arc::clone(opening)));
    }

    pub(crate) fn close(&mut self, opened: u64, end: EntryEnd) {
        self.ends.insert(opened, end);
    }

    pub(crate) fn notice(&mut self, place: RecordPlace, notice: &Arc<Notice>) {
        self.notices.push((place, Arc::clone(notice)));
    }

    pub(crate) fn append(&mut self, mut later: Additions) {
        self.entries.append(&mut later.entries);
        self.ends.extend(later.ends);
        self.notices.append(&mut later.notices);
    }
}

/// Where additions to the index come from.
#[derive(Debug)]
pub(crate) enum IndexSource {
    /// This process wrote every record in between, and remembers them.
    Known {
        from: IndexHead,
        additions: Additions,
        to: IndexHead,
    },
    /// They are read from the log.
    Log(LogSnapshot),
}

/// The index, for writing.
#[derive(Debug)]
pub(crate) struct AuditIndex {
    connection: Connection,
}

fn path(home: &Path) -> PathBuf {
    crate::home::audit_folder(home).join("index.db")
}

/// A connection for reading.
pub(crate) fn connect_to_read(home: &Path) -> Result<Connection, StoreError> {
    database::connect_to(&path(home), ConnectionMode::Read)
}

impl AuditIndex {
    /// Opens the index of a home, or makes a new one if there is none that can be used.
    pub(crate) fn open(home: &Path) -> Result<AuditIndex, StoreError> {
        let path = path(home);
        match usable(&path) {
            Ok(Some(connection)) => return Ok(AuditIndex { connection }),
            Ok(None) => {}
            Err(error) if is_useless(&error) => {}
            Err(error) => return Err(error),
        }
        // With its write-ahead log: left behind, it would be replayed into the new file.
        for ending in ["", "-wal", "-shm"] {
            let mut name = path.clone().into_os_string();
            name.push(ending);
            let _ = fs::remove_file(name);
        }
        // Another process may have removed it just now and written another schema. Then
        // this one gives up.
        let connection = usable(&path)?.ok_or(StoreError::Closed)?;
        Ok(AuditIndex { connection })
    }

    /// The connection, for queries of the writer.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Makes the index cover everything a source knows. Returns nothing if the source
    /// does not continue where the index ends.
    pub(crate) fn follow(&mut self, source: IndexSource) -> Result<Option<IndexHead>, StoreError> {
        let (known_from, additions, to) = match source {
            IndexSource::Log(snapshot) => return self.read(&snapshot).map(Some),
            IndexSource::Known {
                from,
                additions,
                to,
            } => (from, additions, to),
        };
        let transaction = begin(&mut self.connection)?;
        // Compared inside the transaction: another process may have
        // indexed the same records.
        if reach(&transaction)? != known_from {
            return Ok(None);
        }
        add(&transaction, additions, &to).map_err(StoreError::database(DOING))?;
        transaction.commit().map_err(StoreError::database(DOING))?;
        Ok(Some(to))
    }

    /// Makes the index cover everything the log holds.
    pub(crate) fn read(&mut self, snapshot: &LogSnapshot) -> Result<IndexHead, StoreError> {
        let transaction = begin(&mut self.connection)?;
        let from = reach(&transaction)?;
        let from = match still_holds(snapshot, &from)? {
            true => from,
            false => forget(&transaction)?,
        };
        if from.position > 0 && from.position == snapshot.end() {
            return Ok(from);
        }
        let to = read(snapshot, from, &mut |additions, to| {
            add(&transaction, additions, to).map_err(StoreError::database(DOING))
        })?;
        transaction.commit().map_err(StoreError::database(DOING))?;
        Ok(to)
    }

    /// Empties the index, when the log is not the one it was made from.
    pub(crate) fn forget(&mut self) -> Result<(), StoreError> {
        let transaction = begin(&mut self.connection)?;
        let from = forget(&transaction)?;
        add(&transaction, Additions::default(), &from).map_err(StoreError::database(DOING))?;
        transaction.commit().map_err(StoreError::database(DOING))
    }

    /// Removes the notices up to a record, and the entries that began and ended up to
    /// it. Returns how many entries.
    pub(crate) fn remove_through(&self, last: u64) -> Result<u64, StoreError> {
        let fail = StoreError::database("remove old entries");
        let sql = "DELETE FROM notices WHERE sequence <= ?1";
        self.connection
            .execute(sql, [to_integer(last)])
            .map_err(&fail)?;
        let sql = "DELETE FROM entries WHERE opened <= ?1 AND closed <= ?1";
        let removed = self
            .connection
            .execute(sql, [to_integer(last)])
            .map_err(&fail)?;
        Ok(u64::try_from(removed).unwrap_or(u64::MAX))
    }
}

/// Where the index ends, as a connection sees it.
pub(crate) fn reach(connection: &Connection) -> Result<IndexHead, StoreError> {
    let sql = "SELECT through, hash, position FROM indexed";
    let reach = connection.query_row(sql, [], |row| {
        Ok(IndexHead {
            head: Head {
                sequence: from_integer(row.get(0)?),
                hash: ChainHash::from_bytes(row.get(1)?),
            },
            position: from_integer(row.get(2)?),
        })
    });
    reach.map_err(StoreError::database("read the audit"))
}

/// A connection to a file with our schema; nothing if its schema is another.
fn usable(path: &Path) -> Result<Option<Connection>, StoreError> {
    let fail = StoreError::database(DOING);
    database::make_file(path)?;
    let mut connection = database::connect_to(path, ConnectionMode::Write)?;
    let version = |connection: &Connection| {
        connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))
    };
    match version(&connection).map_err(&fail)? {
        VERSION => {}
        0 => {
            database::keep_a_log(&connection).map_err(&fail)?;
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(&fail)?;
            // Another process may have done it meanwhile.
            if version(&transaction).map_err(&fail)? == 0 {
                transaction
                    .execute_batch(include_str!("index.sql"))
                    .map_err(&fail)?;
                transaction
                    .pragma_update(None, "user_version", VERSION)
                    .map_err(&fail)?;
            }
            transaction.commit().map_err(&fail)?;
        }
        _ => return Ok(None),
    }
    // The index can be rebuilt, so it need not be synced with every commit.
    connection
        .pragma_update(None, "synchronous", "NORMAL")
        .map_err(&fail)?;
    connection.set_prepared_statement_cache_capacity(16);
    Ok(Some(connection))
}

/// Whether the file is not a database, or a damaged one. It can be rebuilt.
fn is_useless(error: &StoreError) -> bool {
    let StoreError::Database { source, .. } = error else {
        return false;
    };
    matches!(
        source.sqlite_error_code(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
    )
}

/// The last record of the index, if the log does not hold it and no checkpoint says
/// that it was removed.
pub(crate) fn lost(snapshot: &LogSnapshot, reach: &IndexHead) -> Result<Option<Head>, StoreError> {
    if reach.head == Head::START || still_holds(snapshot, reach)? {
        return Ok(None);
    }
    let checkpoint = snapshot.newest_checkpoint()?;
    let removed = checkpoint.as_ref().and_then(believable);
    // A removal deletes what the index ends with, and says so in a
    // checkpoint. That is no loss.
    let is_removed = removed.is_some_and(|it| reach.head.sequence <= it.through.sequence);
    Ok((!is_removed).then_some(reach.head))
}

/// Whether the log still holds the last record of the index where it was.
fn still_holds(snapshot: &LogSnapshot, reach: &IndexHead) -> Result<bool, StoreError> {
    if reach.position > snapshot.end() {
        return Ok(false);
    }
    match snapshot.at(reach.position)? {
        // The next line names the hash of the record before it, so one line
        // proves where it stands.
        Some((_, Some(next))) => Ok(next.record.previous == reach.head.hash),
        // The line cannot be read, so it does not say which record it follows. If the
        // position is in the middle of a line, this is another log.
        Some((_, None)) => snapshot.is_line_start(reach.position),
        None if reach.position == snapshot.end() => Ok(snapshot.head()?.hash == reach.head.hash),
        // Everything the index covers was removed, and more.
        None => Ok(false),
    }
}

/// Empties the index.
fn forget(connection: &Connection) -> Result<IndexHead, StoreError> {
    connection
        .execute_batch("DELETE FROM entries; DELETE FROM notices")
        .map_err(StoreError::database(DOING))?;
    Ok(IndexHead {
        head: Head::START,
        position: 0,
    })
}

/// Hands over what the log adds after `from`, in pieces of bounded size. Returns where
/// the log ends. A record that cannot be read adds nothing; `verify` reports it.
fn read(
    snapshot: &LogSnapshot,
    from: IndexHead,
    each: &mut dyn FnMut(Additions, &IndexHead) -> Result<(), StoreError>,
) -> Result<IndexHead, StoreError> {
    let mut additions = Additions::default();
    let mut to = from;
    let reading = LogReading::begin(snapshot.end());
    // Records that a removal kept are in front of all others; an index that
    // continues has them.
    let kept = match from.position {
        0 => snapshot.kept(),
        _ => &[],
    };
    let kept = kept.iter().cloned().map(|line| Ok((0, Some(line))));
    for placed in kept.chain(snapshot.lines(from.position)) {
        let (position, Some(line)) = placed? else {
            continue;
        };
        reading.reach(position);
        let place = RecordPlace {
            sequence: line.record.sequence,
            position,
        };
        match line.record.read::<Ending>() {
            Ok(Body::Open(opening)) => {
                let process = line.process.as_deref().map(Arc::from);
                let opening = Arc::new(opening);
                additions.entries.push((place, process, opening));
            }
            Ok(Body::Close(close)) => {
                let end = EntryEnd {
                    place,
                    status: close.closing.status,
                    differs: close.closing.differs,
                };
                additions.ends.insert(close.opened, end);
            }
            Ok(Body::Notice(notice)) => additions.notices.push((place, Arc::new(notice))),
            Ok(Body::Checkpoint(_) | Body::Anchor(_)) | Err(_) => {}
        }
        to.head = line.head();
        let held = additions.entries.len() + additions.notices.len();
        // In pieces within one transaction: memory stays bounded, and readers
        // see all or nothing.
        if held >= limit::INDEX_PIECE_ENTRIES_MAX {
            each(std::mem::take(&mut additions), &to)?;
        }
    }
    to.position = snapshot.end();
    each(additions, &to)?;
    Ok(to)
}

fn begin(connection: &mut Connection) -> Result<Transaction<'_>, StoreError> {
    connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(StoreError::database(DOING))
}

fn add(connection: &Connection, additions: Additions, to: &IndexHead) -> rusqlite::Result<()> {
    let Additions {
        entries,
        mut ends,
        notices,
    } = additions;
    for (opened, process, opening) in &entries {
        let end = ends.remove(&opened.sequence);
        // A row may be there already, from an index that was edited by hand.
        let sql = "INSERT OR REPLACE INTO entries
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        let values = params![
            to_integer(opened.sequence),
            to_integer(opened.position),
            end.map(|end| to_integer(end.place.sequence)),
            end.map(|end| to_integer(end.place.position)),
            // Needed only to find the calls of dead processes.
            process.as_deref().filter(|_| end.is_none()),
            opening.at_ms,
            opening.call_id,
            opening.origin.word(),
            opening.caller,
            opening.tool,
            end.map(|end| end.status.word()),
            end.is_some_and(|end| end.differs),
        ];
        run(connection, sql, values)?;
    }
    for (opened, end) in ends {
        let sql = "UPDATE entries SET closed = ?2, closed_at = ?3, status = ?4, differs = ?5
                   WHERE opened = ?1";
        let values = params![
            to_integer(opened),
            to_integer(end.place.sequence),
            to_integer(end.place.position),
            end.status.word(),
            end.differs,
        ];
        run(connection, sql, values)?;
    }
    for (place, notice) in &notices {
        let sql = "INSERT OR REPLACE INTO notices VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let values = params![
            to_integer(place.sequence),
            to_integer(place.position),
            notice.at_ms,
            notice.id,
            notice.act.word(),
            notice.by,
            notice.about,
        ];
        run(connection, sql, values)?;
    }
    let reached = params![
        to_integer(to.head.sequence),
        to.head.hash.bytes(),
        to_integer(to.position)
    ];
    let sql = "UPDATE indexed SET through = ?1, hash = ?2, position = ?3";
    // In the same transaction as the rows, so that the index never claims more than it has.
    run(connection, sql, reached).map(|_| ())
}

fn run(connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<usize> {
    connection.prepare_cached(sql)?.execute(values)
}
