//! The index of the log: a database of its own that follows it, in batches, and
//! can be made anew from it at any time. It is never the truth.
//!
//! The index covers only what is on the disk, so it is never ahead of the log, unless a
//! hand changed either or the disk lied. So every writer that goes on from where the index ends first looks whether
//! the log still says what it said there. If it does not, records that were there are
//! gone: the ledger writes that down before the index is made from the start.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::record::audit::chain::{Body, ChainHash, Ending, Head};
use model::record::audit::{Notice, Opening, Status};
use rusqlite::{Connection, ErrorCode, Params, Transaction, TransactionBehavior, params};

use crate::database::{self, Access};
use crate::error::StoreError;
use crate::limit;
use crate::log::moment::{Moment, believable};

const DOING: &str = "index the audit";

/// The schema; a file with another one is made anew.
const VERSION: i64 = 2;

/// A record: its place in the chain, and where its line stands in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) sequence: u64,
    pub(crate) position: u64,
}

/// How far the index reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The last record it covers.
    pub(crate) head: Head,
    /// Where the next line stands.
    pub(crate) position: u64,
}

/// What records add to the index.
#[derive(Debug, Default)]
pub(crate) struct Additions {
    entries: Vec<(Place, Option<Arc<str>>, Arc<Opening>)>,
    /// By the place of the beginning. Most find theirs above, and both are one row.
    ends: HashMap<u64, End>,
    notices: Vec<(Place, Arc<Notice>)>,
}

/// How an entry ended, as filters see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) place: Place,
    pub(crate) status: Status,
    /// Whether rules that are only tried say something else.
    pub(crate) differs: bool,
}

impl Additions {
    pub(crate) fn open(&mut self, place: Place, process: &Arc<str>, opening: &Arc<Opening>) {
        let process = Some(Arc::clone(process));
        self.entries.push((place, process, Arc::clone(opening)));
    }

    pub(crate) fn close(&mut self, opened: u64, end: End) {
        self.ends.insert(opened, end);
    }

    pub(crate) fn notice(&mut self, place: Place, notice: &Arc<Notice>) {
        self.notices.push((place, Arc::clone(notice)));
    }

    pub(crate) fn append(&mut self, mut later: Additions) {
        self.entries.append(&mut later.entries);
        self.ends.extend(later.ends);
        self.notices.append(&mut later.notices);
    }
}

/// Where additions come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// We wrote all records from one place to another.
    Known {
        from: Reach,
        additions: Additions,
        to: Reach,
    },
    /// They are read.
    Log(Moment),
}

/// The connection that makes the index.
#[derive(Debug)]
pub(crate) struct Index {
    connection: Connection,
}

fn path(home: &Path) -> PathBuf {
    crate::log::folder(home).join("index.db")
}

/// A connection to read with.
pub(crate) fn connect_to_read(home: &Path) -> Result<Connection, StoreError> {
    database::connect_to(&path(home), Access::Read)
}

impl Index {
    /// Opens the index of a home, making it if there is none that can be used.
    pub(crate) fn open(home: &Path) -> Result<Index, StoreError> {
        let path = path(home);
        match usable(&path) {
            Ok(Some(connection)) => return Ok(Index { connection }),
            Ok(None) => {}
            Err(error) if is_useless(&error) => {}
            Err(error) => return Err(error),
        }
        for ending in ["", "-wal", "-shm"] {
            let mut name = path.clone().into_os_string();
            name.push(ending);
            let _ = fs::remove_file(name);
        }
        let connection = usable(&path)?.ok_or(StoreError::Closed)?;
        Ok(Index { connection })
    }

    /// The connection, for questions within the writer.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Makes the index cover everything a source knows. Nothing if it does not go
    /// on from where the index ends.
    pub(crate) fn follow(&mut self, source: Source) -> Result<Option<Reach>, StoreError> {
        let (known_from, additions, to) = match source {
            Source::Log(moment) => return self.read(&moment).map(Some),
            Source::Known {
                from,
                additions,
                to,
            } => (from, additions, to),
        };
        let transaction = begin(&mut self.connection)?;
        if reach(&transaction)? != known_from {
            return Ok(None);
        }
        add(&transaction, additions, &to).map_err(StoreError::database(DOING))?;
        transaction.commit().map_err(StoreError::database(DOING))?;
        Ok(Some(to))
    }

    /// Makes the index cover everything the log holds.
    pub(crate) fn read(&mut self, moment: &Moment) -> Result<Reach, StoreError> {
        let transaction = begin(&mut self.connection)?;
        let from = reach(&transaction)?;
        let from = match still_holds(moment, &from)? {
            true => from,
            false => forget(&transaction)?,
        };
        if from.position > 0 && from.position == moment.end() {
            return Ok(from);
        }
        let to = read(moment, from, &mut |additions, to| {
            add(&transaction, additions, to).map_err(StoreError::database(DOING))
        })?;
        transaction.commit().map_err(StoreError::database(DOING))?;
        Ok(to)
    }

    /// Begins from the start, when the log is not what the index remembers.
    pub(crate) fn forget(&mut self) -> Result<(), StoreError> {
        let transaction = begin(&mut self.connection)?;
        let from = forget(&transaction)?;
        add(&transaction, Additions::default(), &from).map_err(StoreError::database(DOING))?;
        transaction.commit().map_err(StoreError::database(DOING))
    }

    /// Removes the notices up to a record and the entries that began and ended up
    /// to it. The answer is how many entries.
    pub(crate) fn remove_through(&self, last: u64) -> Result<u64, StoreError> {
        let fail = StoreError::database("remove old entries");
        let sql = "DELETE FROM notices WHERE sequence <= ?1";
        self.connection
            .execute(sql, [number(last)])
            .map_err(&fail)?;
        let sql = "DELETE FROM entries WHERE opened <= ?1 AND closed <= ?1";
        let removed = self
            .connection
            .execute(sql, [number(last)])
            .map_err(&fail)?;
        Ok(u64::try_from(removed).unwrap_or(u64::MAX))
    }
}

/// How far the index reaches, as a connection sees it.
pub(crate) fn reach(connection: &Connection) -> Result<Reach, StoreError> {
    let sql = "SELECT through, hash, position FROM indexed";
    let reach = connection.query_row(sql, [], |row| {
        Ok(Reach {
            head: Head {
                sequence: place(row.get(0)?),
                hash: ChainHash::from_bytes(row.get(1)?),
            },
            position: place(row.get(2)?),
        })
    });
    reach.map_err(StoreError::database("read the audit"))
}

/// A connection to a file with our schema; nothing if it has another.
fn usable(path: &Path) -> Result<Option<Connection>, StoreError> {
    let fail = StoreError::database(DOING);
    database::make_file(path)?;
    let mut connection = database::connect_to(path, Access::Write)?;
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
            // Another process may have been faster.
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
    // It need not reach the disk before the log does.
    connection
        .pragma_update(None, "synchronous", "NORMAL")
        .map_err(&fail)?;
    connection.set_prepared_statement_cache_capacity(16);
    Ok(Some(connection))
}

/// Whether a file is no database, or a broken one. What it held can be made again.
fn is_useless(error: &StoreError) -> bool {
    let StoreError::Database { source, .. } = error else {
        return false;
    };
    matches!(
        source.sqlite_error_code(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
    )
}

/// The last record of the index, if the log does not hold it although nothing
/// removed it.
pub(crate) fn lost(moment: &Moment, reach: &Reach) -> Result<Option<Head>, StoreError> {
    if reach.head == Head::START || still_holds(moment, reach)? {
        return Ok(None);
    }
    let checkpoint = moment.newest_checkpoint()?;
    let removed = checkpoint.as_ref().and_then(believable);
    let is_removed = removed.is_some_and(|it| reach.head.sequence <= it.through.sequence);
    Ok((!is_removed).then_some(reach.head))
}

/// Whether the log still is what it was when the index got that far.
fn still_holds(moment: &Moment, reach: &Reach) -> Result<bool, StoreError> {
    if reach.position > moment.end() {
        return Ok(false);
    }
    match moment.at(reach.position)? {
        Some((_, Some(next))) => Ok(next.record.previous == reach.head.hash),
        // A line that does not say what it follows. If the place is in the middle of a
        // line, another log stands there.
        Some((_, None)) => moment.is_line_start(reach.position),
        None if reach.position == moment.end() => Ok(moment.head()?.hash == reach.head.hash),
        // What it covers was removed, and more.
        None => Ok(false),
    }
}

/// Begins from the start.
fn forget(connection: &Connection) -> Result<Reach, StoreError> {
    connection
        .execute_batch("DELETE FROM entries; DELETE FROM notices")
        .map_err(StoreError::database(DOING))?;
    Ok(Reach {
        head: Head::START,
        position: 0,
    })
}

/// Hands over what the log adds from a place on, piece by piece; the answer is how
/// far that is. A record that cannot be read adds nothing; `verify` names it.
fn read(
    moment: &Moment,
    from: Reach,
    each: &mut dyn FnMut(Additions, &Reach) -> Result<(), StoreError>,
) -> Result<Reach, StoreError> {
    let mut additions = Additions::default();
    let mut to = from;
    let kept = match from.position {
        0 => moment.kept(),
        _ => &[],
    };
    let kept = kept.iter().cloned().map(|line| Ok((0, Some(line))));
    for placed in kept.chain(moment.lines(from.position)) {
        let (position, Some(line)) = placed? else {
            continue;
        };
        let place = Place {
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
                let end = End {
                    place,
                    status: close.closing.status,
                    differs: close.closing.differs,
                };
                additions.ends.insert(close.opened, end);
            }
            Ok(Body::Notice(notice)) => additions.notices.push((place, Arc::new(notice))),
            Ok(Body::Checkpoint(_)) | Err(_) => {}
        }
        to.head = line.head();
        let held = additions.entries.len() + additions.notices.len();
        if held >= limit::INDEX_PIECE_ENTRIES_MAX {
            each(std::mem::take(&mut additions), &to)?;
        }
    }
    to.position = moment.end();
    each(additions, &to)?;
    Ok(to)
}

fn begin(connection: &mut Connection) -> Result<Transaction<'_>, StoreError> {
    connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(StoreError::database(DOING))
}

fn add(connection: &Connection, additions: Additions, to: &Reach) -> rusqlite::Result<()> {
    let Additions {
        entries,
        mut ends,
        notices,
    } = additions;
    for (opened, process, opening) in &entries {
        let end = ends.remove(&opened.sequence);
        // Replaces what somebody else may have put there.
        let sql = "INSERT OR REPLACE INTO entries
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        let values = params![
            number(opened.sequence),
            number(opened.position),
            end.map(|end| number(end.place.sequence)),
            end.map(|end| number(end.place.position)),
            // Only who has not ended can be left behind.
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
            number(opened),
            number(end.place.sequence),
            number(end.place.position),
            end.status.word(),
            end.differs,
        ];
        run(connection, sql, values)?;
    }
    for (place, notice) in &notices {
        let sql = "INSERT OR REPLACE INTO notices VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let values = params![
            number(place.sequence),
            number(place.position),
            notice.at_ms,
            notice.id,
            notice.act.word(),
            notice.by,
            notice.about,
        ];
        run(connection, sql, values)?;
    }
    let reached = params![
        number(to.head.sequence),
        to.head.hash.bytes(),
        number(to.position)
    ];
    let sql = "UPDATE indexed SET through = ?1, hash = ?2, position = ?3";
    run(connection, sql, reached).map(|_| ())
}

fn run(connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<usize> {
    connection.prepare_cached(sql)?.execute(values)
}

/// A sequence as SQLite keeps it.
pub(crate) fn number(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

/// A sequence as we count it. Rows below zero do not come from us; they count as
/// the place before the first, where nothing can stand.
pub(crate) fn place(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
