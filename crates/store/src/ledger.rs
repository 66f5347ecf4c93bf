//! The chain on a connection: adding records inside a transaction, with the
//! statements kept. Who calls it decides when to begin and to commit.
//!
//! A call waits for two records and nothing else. What filters look at is made
//! from the records afterwards, many at a time; readers look at the few records
//! that are not indexed yet themselves.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use model::audit::chain::{self, Body, ChainHash, Checkpoint, Ending, Head, Kind, link};
use model::audit::{Opening, Status, spell};
use rusqlite::{Connection, Params, params};

use crate::audit::read::{self, RECORD, record_of};
use crate::error::StoreError;

const DOING: &str = "write the audit";

/// The beginning of an entry.
#[derive(Debug)]
pub(crate) struct NewEntry {
    pub(crate) opening: Opening,
    /// The canonical opening.
    pub(crate) part: String,
}

impl NewEntry {
    pub(crate) fn new(opening: Opening) -> Result<NewEntry, StoreError> {
        let part = spell::opening(&opening)?;
        Ok(NewEntry { opening, part })
    }
}

/// The end of an entry.
#[derive(Clone, Debug)]
pub(crate) struct NewEnd {
    pub(crate) opened: u64,
    pub(crate) call_id: String,
    pub(crate) status: Status,
    /// The canonical closing.
    pub(crate) part: String,
}

/// What records add to the index.
#[derive(Debug, Default)]
struct Additions {
    entries: Vec<(u64, Option<i64>, Opening)>,
    /// By the place of the beginning. Most find theirs above, and both are one row.
    ends: HashMap<u64, (u64, Status)>,
}

/// The chain, and the connection that extends it.
#[derive(Debug)]
pub(crate) struct Ledger {
    connection: Connection,
    process: i64,
    head: Head,
    indexed: u64,
    /// What the records after `pending_after` add to the index, so that it need
    /// not be read back.
    pending: Additions,
    pending_after: u64,
    /// The head to go back to if the transaction fails.
    committed: Head,
    data_version: Option<i64>,
}

impl Ledger {
    /// A ledger for entries of one process.
    pub(crate) fn new(connection: Connection, process: i64) -> Ledger {
        connection.set_prepared_statement_cache_capacity(32);
        Ledger {
            connection,
            process,
            head: Head::START,
            indexed: 0,
            pending: Additions::default(),
            pending_after: 0,
            committed: Head::START,
            data_version: None,
        }
    }

    /// The connection, for what is no record.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The process whose entries are written.
    pub(crate) fn process(&self) -> i64 {
        self.process
    }

    /// Writes for another process, which must be listed.
    pub(crate) fn act_for(&mut self, process: i64) {
        self.process = process;
        self.data_version = None;
    }

    fn run(&self, sql: &str, values: impl Params) -> rusqlite::Result<usize> {
        self.connection.prepare_cached(sql)?.execute(values)
    }

    /// Where the chain ends, as this transaction sees it.
    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// Records that filters do not know yet, as far as we know.
    pub(crate) fn unindexed(&self) -> u64 {
        self.head.sequence.saturating_sub(self.indexed)
    }

    /// Begins to write. Another process may have written since.
    pub(crate) fn begin(&mut self) -> Result<(), StoreError> {
        let fail = StoreError::database(DOING);
        self.run("BEGIN IMMEDIATE", []).map_err(&fail)?;
        let version: i64 = self
            .connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(&fail)?;
        if self.data_version != Some(version) {
            self.catch_up()?;
            self.data_version = Some(version);
        }
        self.committed = self.head;
        Ok(())
    }

    fn catch_up(&mut self) -> Result<(), StoreError> {
        let fail = StoreError::database(DOING);
        let is_listed: bool = self
            .connection
            .query_row(
                "SELECT EXISTS (SELECT 1 FROM processes WHERE number = ?1)",
                [self.process],
                |row| row.get(0),
            )
            .map_err(&fail)?;
        if !is_listed {
            return Err(StoreError::TakenForDead);
        }
        self.head = read::head(&self.connection)?;
        self.indexed = indexed(&self.connection)?;
        self.pending = Additions::default();
        self.pending_after = self.head.sequence;
        Ok(())
    }

    /// Commits. On failure nothing was written.
    pub(crate) fn commit(&mut self) -> Result<(), StoreError> {
        self.run("COMMIT", [])
            .map_err(StoreError::database(DOING))?;
        self.committed = self.head;
        Ok(())
    }

    /// Forgets what was not committed.
    pub(crate) fn roll_back(&mut self) {
        self.head = self.committed;
        // Which failures end a transaction by themselves is SQLite's to say.
        self.data_version = None;
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    /// Adds an open record.
    pub(crate) fn open(&mut self, new: &NewEntry) -> Result<Head, StoreError> {
        let body = chain::open_body(self.head.sequence + 1, &new.part);
        let head = self.add(Kind::Open, Some(self.process), &body)?;
        let entry = (head.sequence, Some(self.process), new.opening.clone());
        self.pending.entries.push(entry);
        Ok(head)
    }

    /// Adds a close record.
    pub(crate) fn close(&mut self, end: &NewEnd) -> Result<Head, StoreError> {
        let body = chain::close_body(self.head.sequence + 1, end.opened, &end.call_id, &end.part);
        let head = self.add(Kind::Close, None, &body)?;
        let written = (head.sequence, end.status);
        self.pending.ends.insert(end.opened, written);
        Ok(head)
    }

    /// Adds a checkpoint.
    pub(crate) fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<Head, StoreError> {
        let body = chain::checkpoint_body(self.head.sequence + 1, checkpoint)?;
        self.add(Kind::Checkpoint, None, &body)
    }

    fn add(&mut self, kind: Kind, process: Option<i64>, body: &str) -> Result<Head, StoreError> {
        let previous = self.head.hash;
        let head = Head {
            sequence: self.head.sequence + 1,
            hash: link(&previous, body),
        };
        let record = params![
            number(head.sequence),
            kind.word(),
            process,
            previous.bytes(),
            head.hash.bytes(),
            body,
        ];
        self.run(
            "INSERT INTO records VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            record,
        )
        .map_err(StoreError::database(DOING))?;
        self.head = head;
        Ok(head)
    }

    /// Makes the index cover every record.
    pub(crate) fn index(&mut self) -> Result<(), StoreError> {
        let fail = StoreError::database("index the audit");
        let indexed = indexed(&self.connection)?;
        let additions = match self.pending_after == indexed {
            true => std::mem::take(&mut self.pending),
            false => self.additions(indexed)?,
        };
        let Additions { entries, mut ends } = additions;
        for (opened, process, opening) in &entries {
            let end = ends.remove(opened);
            self.index_entry(*opened, *process, opening, end)
                .map_err(&fail)?;
        }
        for (opened, (closed, status)) in ends {
            self.run(
                "UPDATE entries SET closed = ?2, status = ?3 WHERE opened = ?1",
                params![number(opened), number(closed), status.word()],
            )
            .map_err(&fail)?;
        }
        self.connection
            .execute(
                "UPDATE indexed SET through = ?1",
                [number(self.head.sequence)],
            )
            .map_err(&fail)?;
        self.indexed = self.head.sequence;
        self.pending = Additions::default();
        self.pending_after = self.head.sequence;
        Ok(())
    }

    fn index_entry(
        &self,
        opened: u64,
        process: Option<i64>,
        opening: &Opening,
        end: Option<(u64, Status)>,
    ) -> rusqlite::Result<usize> {
        // Replaces what somebody else may have put there.
        let sql = "INSERT OR REPLACE INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let values = params![
            number(opened),
            end.map(|(closed, _)| number(closed)),
            process,
            opening.at_ms,
            opening.call_id,
            opening.origin.word(),
            opening.caller,
            opening.tool,
            end.map(|(_, status)| status.word()),
        ];
        self.run(sql, values)
    }

    /// What the records after a place add to the index. A record that cannot be
    /// read adds nothing; `verify` names it.
    fn additions(&self, after: u64) -> Result<Additions, StoreError> {
        let fail = StoreError::database("index the audit");
        let sql = format!("SELECT {RECORD}, r.process FROM records r WHERE r.sequence > ?1");
        let mut statement = self.connection.prepare(&sql).map_err(&fail)?;
        let rows = statement
            .query_map([number(after)], |row| {
                Ok((record_of(row)?, row.get::<_, Option<i64>>(5)?))
            })
            .map_err(&fail)?;
        let mut additions = Additions::default();
        for row in rows {
            let (record, process) = row.map_err(&fail)?;
            match record.read::<Ending>() {
                Ok(Body::Open(opening)) => {
                    additions.entries.push((record.sequence, process, opening));
                }
                Ok(Body::Close(close)) => {
                    let end = (record.sequence, close.closing.status);
                    additions.ends.insert(close.opened, end);
                }
                Ok(Body::Checkpoint(_)) | Err(_) => {}
            }
        }
        Ok(additions)
    }
}

/// The last record that filters know.
pub(crate) fn indexed(connection: &Connection) -> Result<u64, StoreError> {
    connection
        .query_row("SELECT through FROM indexed", [], |row| row.get(0))
        .map(place)
        .map_err(StoreError::database("read the audit"))
}

/// A place in the chain from its columns.
pub(crate) fn head_of(sequence: i64, hash: [u8; 32]) -> Head {
    Head {
        sequence: place(sequence),
        hash: ChainHash::from_bytes(hash),
    }
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

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    elapsed.map_or(0, |elapsed| {
        i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
    })
}
