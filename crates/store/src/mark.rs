//! The last record of the audit, remembered in the database of the home as well. The
//! log and its index lie in one folder and can be cut together; this is the third place,
//! and an end that is behind it is told.

use std::path::Path;

use model::record::audit::chain::{ChainHash, Head};
use rusqlite::{Connection, OptionalExtension as _};

use crate::database::Lazily;
use crate::error::StoreError;
use crate::index::{number, place};

const DOING: &str = "remember the end of the audit";

/// Reads and moves the mark.
#[derive(Debug)]
pub(crate) struct Mark {
    connection: Lazily,
}

impl Mark {
    /// `home` is without links.
    pub(crate) fn new(home: &Path) -> Mark {
        Mark {
            // After a power cut it must not be ahead of the log by more than the log lost.
            connection: Lazily::new(home, "NORMAL"),
        }
    }

    /// The record the database remembers, if it remembers one.
    pub(crate) fn get(&self) -> Result<Option<Head>, StoreError> {
        let connection = self.connection.lock()?;
        read(&connection)
    }

    /// Moves the mark forward. Another process may have been further.
    pub(crate) fn advance(&self, head: Head) -> Result<(), StoreError> {
        let sql = "INSERT INTO audit_mark VALUES (1, ?1, ?2)
                   ON CONFLICT (one) DO UPDATE SET sequence = ?1, hash = ?2
                   WHERE sequence < ?1";
        self.run(sql, head)
    }

    /// Puts the mark where the chain ends now, when what it remembered is gone and
    /// the chain says so.
    pub(crate) fn reset(&self, head: Head) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO audit_mark VALUES (1, ?1, ?2)";
        self.run(sql, head)
    }

    fn run(&self, sql: &str, head: Head) -> Result<(), StoreError> {
        let connection = self.connection.lock()?;
        let values = (number(head.sequence), head.hash.bytes());
        let run = connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values));
        run.map(|_| ()).map_err(StoreError::database(DOING))
    }
}

fn read(connection: &Connection) -> Result<Option<Head>, StoreError> {
    let sql = "SELECT sequence, hash FROM audit_mark";
    let head = connection.query_row(sql, [], |row| {
        Ok(Head {
            sequence: place(row.get(0)?),
            hash: ChainHash::from_bytes(row.get(1)?),
        })
    });
    head.optional().map_err(StoreError::database(DOING))
}
