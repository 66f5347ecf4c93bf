//! The keys of callers: their digests, who they stand for, and until when.
//!
//! A key is looked up at every request and the answer is not cached, so a
//! key that was revoked by any process is gone at the next request of every other.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use model::govern::key::{FormerKey, KeyDigest, KeyEnd, KeyRecord, Role};
use model::sync::lock;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, TransactionBehavior, params};

use crate::clock::now_ms;
use crate::error::StoreError;
use crate::home::database::{self, ConnectionMode};

const COLUMNS: &str = "id, name, role, digest, created_ms, expires_ms";

/// The keys of one home.
#[derive(Debug)]
pub struct Keys {
    connection: Mutex<Connection>,
}

/// The result of adding a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is there.
    Yes,
    /// The name is taken; names are case-insensitive.
    NameTaken,
    /// Another key has that id; try another.
    IdTaken,
    /// There are [`crate::limit::KEYS_MAX`] keys already.
    TooMany,
}

impl Keys {
    /// Opens the keys of a home, making it if absent.
    pub fn open(home: &Path) -> Result<Keys, StoreError> {
        drop(database::prepare(home)?);
        Ok(Keys {
            connection: Mutex::new(database::connect(home, ConnectionMode::Write)?),
        })
    }

    /// The key with this id.
    pub fn find(&self, id: &str) -> Result<Option<KeyRecord>, StoreError> {
        let fail = StoreError::database("look up a key");
        let connection = self.connection();
        let mut statement = connection
            .prepare_cached(&format!("SELECT {COLUMNS} FROM keys WHERE id = ?1"))
            .map_err(&fail)?;
        statement
            .query_row([id], record_of)
            .optional()
            .map_err(&fail)
    }

    /// All of them, by name.
    pub fn all(&self) -> Result<Vec<KeyRecord>, StoreError> {
        let fail = StoreError::database("list the keys");
        let connection = self.connection();
        let mut statement = connection
            .prepare(&format!("SELECT {COLUMNS} FROM keys ORDER BY name"))
            .map_err(&fail)?;
        statement
            .query_map([], record_of)
            .map_err(&fail)?
            .collect::<Result<_, _>>()
            .map_err(&fail)
    }

    /// Adds a key, unless its name or id is taken.
    pub fn add(&self, record: &KeyRecord) -> Result<Added, StoreError> {
        let fail = StoreError::database("add a key");
        let mut connection = self.connection();
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&fail)?;
        let count = |condition: &str, value: &str| {
            let question = format!("SELECT count(*) FROM keys WHERE {condition}");
            transaction.query_row(&question, [value], |row| row.get::<_, i64>(0))
        };
        if count("name = ?1", &record.name).map_err(&fail)? > 0 {
            return Ok(Added::NameTaken);
        }
        if count("id = ?1", &record.id).map_err(&fail)? > 0 {
            return Ok(Added::IdTaken);
        }
        if count("id <> ?1", &record.id).map_err(&fail)? >= crate::limit::KEYS_MAX {
            return Ok(Added::TooMany);
        }
        transaction
            .execute(
                &format!("INSERT INTO keys ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"),
                params![
                    record.id,
                    record.name,
                    record.role.word(),
                    record.digest,
                    record.created_ms,
                    record.expires_ms,
                ],
            )
            .map_err(&fail)?;
        transaction.commit().map_err(&fail)?;
        Ok(Added::Yes)
    }

    /// Puts another secret in the place of a key's; the old one is dead. Its
    /// expiry, if given, starts again. The answer is whether there was such a key.
    pub fn replace(
        &self,
        name: &str,
        digest: &KeyDigest,
        created_ms: i64,
        expires_ms: Option<i64>,
    ) -> Result<bool, StoreError> {
        let fail = StoreError::database("replace a key");
        let mut connection = self.connection();
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&fail)?;
        remember(&transaction, name, KeyEnd::Replaced).map_err(&fail)?;
        let changed = transaction
            .execute(
                "UPDATE keys SET digest = ?2, created_ms = ?3, expires_ms = ?4 WHERE name = ?1",
                params![name, digest, created_ms, expires_ms],
            )
            .map_err(&fail)?;
        transaction.commit().map_err(&fail)?;
        Ok(changed > 0)
    }

    /// Removes a key. The answer is whether there was one.
    pub fn revoke(&self, name: &str) -> Result<bool, StoreError> {
        let fail = StoreError::database("revoke a key");
        let mut connection = self.connection();
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&fail)?;
        remember(&transaction, name, KeyEnd::Revoked).map_err(&fail)?;
        let changed = transaction
            .execute("DELETE FROM keys WHERE name = ?1", [name])
            .map_err(&fail)?;
        transaction.commit().map_err(&fail)?;
        Ok(changed > 0)
    }

    /// The key that had this digest before it was replaced or revoked.
    pub fn former(&self, digest: &KeyDigest) -> Result<Option<FormerKey>, StoreError> {
        let fail = StoreError::database("look up a former key");
        let sql = "SELECT name, ended_ms, end FROM former_keys WHERE digest = ?1";
        let found = self.connection().query_row(sql, [digest], |row| {
            let end: String = row.get(2)?;
            Ok(FormerKey {
                name: row.get(0)?,
                ended_ms: row.get(1)?,
                end: KeyEnd::from_word(&end).ok_or(rusqlite::Error::InvalidQuery)?,
            })
        });
        found.optional().map_err(&fail)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        lock(&self.connection)
    }
}

/// Remembers a key that ends, and forgets the oldest ones beyond the bound.
fn remember(transaction: &Transaction<'_>, name: &str, end: KeyEnd) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT OR REPLACE INTO former_keys (digest, name, ended_ms, end)
         SELECT digest, name, ?2, ?3 FROM keys WHERE name = ?1",
        params![name, now_ms(), end.word()],
    )?;
    transaction.execute(
        "DELETE FROM former_keys WHERE digest IN
         (SELECT digest FROM former_keys ORDER BY ended_ms DESC LIMIT -1 OFFSET ?1)",
        [crate::limit::FORMER_KEYS_MAX],
    )?;
    Ok(())
}

fn record_of(row: &Row<'_>) -> rusqlite::Result<KeyRecord> {
    let role: String = row.get(2)?;
    // Invariant 8: an unknown word grants nothing.
    let role = Role::from_word(&role).ok_or(rusqlite::Error::InvalidQuery)?;
    Ok(KeyRecord {
        id: row.get(0)?,
        name: row.get(1)?,
        role,
        digest: row.get(3)?,
        created_ms: row.get(4)?,
        expires_ms: row.get(5)?,
    })
}
