//! The newest signed head, remembered in the database too, with the key that signed it:
//! heads that vanish from beside the log, or are signed by another key, are noticed.

use std::path::Path;

use model::record::note::TreeHead;
use model::record::tree::TreeHash;
use rusqlite::OptionalExtension as _;

use crate::error::StoreError;
use crate::home::database::{LazyConnection, from_integer, to_integer};

const DOING: &str = "remember the signed head of the audit";

/// What the database remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RememberedHead {
    pub(crate) size: u64,
    pub(crate) root: TreeHash,
    /// The public key, as text.
    pub(crate) key: String,
}

impl RememberedHead {
    pub(crate) fn is(&self, head: &TreeHead) -> bool {
        self.size == head.size && self.root == head.root
    }
}

/// Reads and writes what the database remembers.
#[derive(Debug)]
pub(crate) struct HeadMemory {
    connection: LazyConnection,
}

impl HeadMemory {
    /// `home` is without links.
    pub(crate) fn new(home: &Path) -> HeadMemory {
        HeadMemory {
            // The head is on the disk before it is remembered.
            connection: LazyConnection::new(home, "NORMAL"),
        }
    }

    pub(crate) fn get(&self) -> Result<Option<RememberedHead>, StoreError> {
        let connection = self.connection.lock()?;
        let sql = "SELECT size, root, key FROM audit_signed";
        let head = connection.query_row(sql, [], |row| {
            Ok(RememberedHead {
                size: from_integer(row.get(0)?),
                root: TreeHash::from_bytes(row.get(1)?),
                key: row.get(2)?,
            })
        });
        head.optional().map_err(StoreError::database(DOING))
    }

    pub(crate) fn set(&self, head: &TreeHead, key: &str) -> Result<(), StoreError> {
        let connection = self.connection.lock()?;
        let sql = "INSERT OR REPLACE INTO audit_signed VALUES (1, ?1, ?2, ?3)";
        let values = (to_integer(head.size), head.root.bytes(), key);
        let set = connection.execute(sql, values);
        set.map(|_| ()).map_err(StoreError::database(DOING))
    }
}
