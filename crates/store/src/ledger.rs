//! The chain on a connection: adding records inside a transaction, with the
//! statements prepared once. Who calls it decides when to begin and to commit.

use std::time::{SystemTime, UNIX_EPOCH};

use model::audit::chain::{self, ChainHash, Checkpoint, Head, Kind, link};
use model::audit::{Opening, Status};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Statement, params};

use crate::error::StoreError;

const DOING: &str = "write the audit";

/// What filters look at, beside the text of the record.
#[derive(Clone, Debug)]
pub(crate) struct NewEntry {
    pub(crate) call_id: String,
    pub(crate) at_ms: i64,
    pub(crate) origin: &'static str,
    pub(crate) caller: String,
    pub(crate) tool: String,
    /// The canonical opening.
    pub(crate) part: String,
}

impl NewEntry {
    pub(crate) fn new(opening: Opening) -> Result<NewEntry, StoreError> {
        let part = chain::open_part(&opening)?;
        Ok(NewEntry {
            call_id: opening.call_id,
            at_ms: opening.at_ms,
            origin: opening.origin.word(),
            caller: opening.caller,
            tool: opening.tool,
            part,
        })
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

/// The chain and the statements that extend it.
pub(crate) struct Ledger<'c> {
    connection: &'c Connection,
    process: i64,
    head: Head,
    /// The head to go back to if the transaction fails.
    committed: Head,
    data_version: Option<i64>,
    begin: Statement<'c>,
    commit: Statement<'c>,
    read_version: Statement<'c>,
    read_head: Statement<'c>,
    add_record: Statement<'c>,
    add_entry: Statement<'c>,
    end_entry: Statement<'c>,
}

impl<'c> Ledger<'c> {
    /// A ledger for entries of one process.
    pub(crate) fn new(connection: &'c Connection, process: i64) -> Result<Ledger<'c>, StoreError> {
        let prepare = |sql| {
            connection
                .prepare(sql)
                .map_err(StoreError::database("prepare the audit"))
        };
        Ok(Ledger {
            connection,
            process,
            head: Head::START,
            committed: Head::START,
            data_version: None,
            begin: prepare("BEGIN IMMEDIATE")?,
            commit: prepare("COMMIT")?,
            read_version: prepare("PRAGMA data_version")?,
            read_head: prepare(
                "SELECT sequence, hash FROM records ORDER BY sequence DESC LIMIT 1",
            )?,
            add_record: prepare("INSERT INTO records VALUES (?1, ?2, ?3, ?4, ?5)")?,
            add_entry: prepare(
                "INSERT INTO entries (opened, process, at_ms, call_id, origin, caller, tool)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?,
            end_entry: prepare(
                "UPDATE entries SET closed = ?2, status = ?3 WHERE opened = ?1 AND closed IS NULL",
            )?,
        })
    }

    /// Where the chain ends, as this transaction sees it.
    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// Begins to write. Another process may have written since.
    pub(crate) fn begin(&mut self) -> Result<(), StoreError> {
        let fail = StoreError::database(DOING);
        self.begin.execute([]).map_err(&fail)?;
        let version: i64 = self
            .read_version
            .query_row([], |row| row.get(0))
            .map_err(&fail)?;
        if self.data_version != Some(version) {
            self.head = self
                .read_head
                .query_row([], |row| Ok(head_of(row.get(0)?, row.get(1)?)))
                .optional()
                .map_err(&fail)?
                .unwrap_or(Head::START);
            self.data_version = Some(version);
        }
        self.committed = self.head;
        Ok(())
    }

    /// Commits. On failure nothing was written.
    pub(crate) fn commit(&mut self) -> Result<(), StoreError> {
        self.commit
            .execute([])
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

    /// Adds an open record. The inner error concerns this one alone.
    pub(crate) fn open(&mut self, new: &NewEntry) -> Result<Result<Head, StoreError>, StoreError> {
        let sequence = self.head.sequence + 1;
        let added = self.add_entry.execute(params![
            number(sequence),
            self.process,
            new.at_ms,
            new.call_id,
            new.origin,
            new.caller,
            new.tool,
        ]);
        match added {
            Ok(_) => {}
            Err(error) if is_constraint(&error) => {
                return Ok(Err(StoreError::CallIdUsed(new.call_id.clone())));
            }
            Err(error) => return Err(StoreError::database(DOING)(error)),
        }
        self.add(Kind::Open, &chain::open_body(sequence, &new.part))
            .map(Ok)
    }

    /// Adds a close record. The inner error concerns this one alone.
    pub(crate) fn close(&mut self, end: &NewEnd) -> Result<Result<Head, StoreError>, StoreError> {
        let sequence = self.head.sequence + 1;
        let changed = self
            .end_entry
            .execute(params![
                number(end.opened),
                number(sequence),
                end.status.word()
            ])
            .map_err(StoreError::database(DOING))?;
        if changed != 1 {
            return Ok(Err(StoreError::NotOpen(end.call_id.clone())));
        }
        let body = chain::close_body(sequence, end.opened, &end.call_id, &end.part);
        self.add(Kind::Close, &body).map(Ok)
    }

    /// Adds a checkpoint.
    pub(crate) fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<Head, StoreError> {
        let body = chain::checkpoint_body(self.head.sequence + 1, checkpoint)?;
        self.add(Kind::Checkpoint, &body)
    }

    fn add(&mut self, kind: Kind, body: &str) -> Result<Head, StoreError> {
        let previous = self.head.hash;
        let head = Head {
            sequence: self.head.sequence + 1,
            hash: link(&previous, body),
        };
        self.add_record
            .execute(params![
                number(head.sequence),
                kind.word(),
                previous.bytes(),
                head.hash.bytes(),
                body,
            ])
            .map_err(StoreError::database(DOING))?;
        self.head = head;
        Ok(head)
    }
}

fn is_constraint(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
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
