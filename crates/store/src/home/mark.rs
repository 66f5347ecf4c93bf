//! The mark: the last audit record, remembered in the database too. The log and its
//! index are in one folder and can be truncated together; the mark is elsewhere, and a
//! log that ends before it is reported as cut.

use std::path::Path;

use model::record::audit::chain::{ChainHash, Head};
use rusqlite::{Connection, OptionalExtension as _};

use crate::error::StoreError;
use crate::home::database::LazyConnection;
use crate::home::database::{from_integer, to_integer};

const DOING: &str = "remember the end of the audit";

/// Reads and moves the mark.
#[derive(Debug)]
pub(crate) struct AuditMark {
    connection: LazyConnection,
}

impl AuditMark {
    /// `home` is without links.
    pub(crate) fn new(home: &Path) -> AuditMark {
        AuditMark {
            // The log is synced before the mark moves, so the mark need not be synced
            // with every commit.
            connection: LazyConnection::new(home, "NORMAL"),
        }
    }

    /// The record the mark names, if there is one.
    pub(crate) fn get(&self) -> Result<Option<Head>, StoreError> {
        let connection = self.connection.lock()?;
        read(&connection)
    }

    /// Moves the mark forward, unless another process already moved it further.
    pub(crate) fn advance(&self, head: Head) -> Result<(), StoreError> {
        let sql = "INSERT INTO audit_mark VALUES (1, ?1, ?2)
                   ON CONFLICT (one) DO UPDATE SET sequence = ?1, hash = ?2
                   WHERE sequence < ?1";
        self.run(sql, head)
    }

    /// Moves the mark to where the chain ends now, once the chain itself says that records
    /// are missing.
    pub(crate) fn reset(&self, head: Head) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO audit_mark VALUES (1, ?1, ?2)";
        self.run(sql, head)
    }

    fn run(&self, sql: &str, head: Head) -> Result<(), StoreError> {
        let connection = self.connection.lock()?;
        let values = (to_integer(head.sequence), head.hash.bytes());
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
            sequence: from_integer(row.get(0)?),
            hash: ChainHash::from_bytes(row.get(1)?),
        })
    });
    head.optional().map_err(StoreError::database(DOING))
}
