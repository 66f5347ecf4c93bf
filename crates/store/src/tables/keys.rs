//! The keys of callers: their digests, who they stand for, and until when.
//!
//! A key is looked up at every request and the answer is not cached, so a
//! key that was revoked by any process is gone at the next request of every other.
//! Keys that several homes share are read again whenever any node changed one.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use model::govern::key::{FormerKey, KeyDigest, KeyEnd, KeyRecord, Role};
use model::sync::lock;

use crate::clock::now_ms;
use crate::error::StoreError;
use crate::home::database::{self, LazyConnection};
use crate::postgres::Cluster;
use crate::postgres::watch::NewsKind;
use crate::sql::tables::{LockedTable, Tables, Writers};
use crate::sql::{self, Executor, SqlRow, unknown, values};

const COLUMNS: &str = "id, name, role, digest, created_ms, expires_ms";

/// The keys of one home.
#[derive(Debug)]
pub struct Keys {
    tables: Tables,
    shared: Option<SharedKeys>,
}

/// The keys that several homes share, as of a version of them.
#[derive(Debug)]
struct SharedKeys {
    cluster: Arc<Cluster>,
    read: Mutex<(u64, HashMap<String, KeyRecord>)>,
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
        let connection = database::prepare(home)?;
        let cluster = Cluster::of(home)?;
        Ok(Keys {
            tables: Tables::new(cluster.as_ref(), LazyConnection::made_of(connection)),
            shared: cluster.map(|cluster| SharedKeys {
                cluster,
                read: Mutex::default(),
            }),
        })
    }

    /// The key with this id.
    pub fn find(&self, id: &str) -> Result<Option<KeyRecord>, StoreError> {
        let Some(shared) = &self.shared else {
            let sql = format!("SELECT {COLUMNS} FROM keys WHERE id = ?1");
            return self.tables.read("look up a key", |tables| {
                tables.query_first(&sql, values![id], record_of)
            });
        };
        let version = shared.version()?;
        {
            let read = lock(&shared.read);
            // The version was asked before, so what is kept is at least as
            // new as the question.
            if read.0 == version {
                return Ok(read.1.get(id).cloned());
            }
        }
        let all = self.all()?.into_iter();
        let all: HashMap<_, _> = all.map(|record| (record.id.clone(), record)).collect();
        let found = all.get(id).cloned();
        let mut read = lock(&shared.read);
        if read.0 < version {
            *read = (version, all);
        }
        Ok(found)
    }

    /// All of them, by name.
    pub fn all(&self) -> Result<Vec<KeyRecord>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM keys ORDER BY name");
        self.tables.read("list the keys", |tables| {
            tables.query(&sql, values![], record_of)
        })
    }

    /// Adds a key, unless its name or id is taken.
    pub fn add(&self, record: &KeyRecord) -> Result<Added, StoreError> {
        self.change("add a key", |change| {
            let sql = sql::either(
                "SELECT count(*) FROM keys WHERE name = ?1",
                "SELECT count(*) FROM keys WHERE lower(name) = lower(?1)",
            );
            if change.number(sql, values![record.name])? > 0 {
                return Ok(Added::NameTaken);
            }
            let count = |sql: &str| change.number(sql, values![record.id]);
            if count("SELECT count(*) FROM keys WHERE id = ?1")? > 0 {
                return Ok(Added::IdTaken);
            }
            if count("SELECT count(*) FROM keys WHERE id <> ?1")? >= crate::limit::KEYS_MAX {
                return Ok(Added::TooMany);
            }
            change.execute(
                &format!("INSERT INTO keys ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"),
                values![
                    record.id,
                    record.name,
                    record.role.word(),
                    record.digest.as_slice(),
                    record.created_ms,
                    record.expires_ms,
                ],
            )?;
            Ok(Added::Yes)
        })
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
        self.change("replace a key", |change| {
            remember(change, name, KeyEnd::Replaced)?;
            let sql = sql::either(
                "UPDATE keys SET digest = ?2, created_ms = ?3, expires_ms = ?4 WHERE name = ?1",
                "UPDATE keys SET digest = ?2, created_ms = ?3, expires_ms = ?4 \
                 WHERE lower(name) = lower(?1)",
            );
            let digest = digest.as_slice();
            let changed = change.execute(sql, values![name, digest, created_ms, expires_ms])?;
            Ok(changed > 0)
        })
    }

    /// Removes a key. The answer is whether there was one.
    pub fn revoke(&self, name: &str) -> Result<bool, StoreError> {
        self.change("revoke a key", |change| {
            // In the same transaction, so that no key ends without a trace.
            remember(change, name, KeyEnd::Revoked)?;
            let sql = sql::either(
                "DELETE FROM keys WHERE name = ?1",
                "DELETE FROM keys WHERE lower(name) = lower(?1)",
            );
            Ok(change.execute(sql, values![name])? > 0)
        })
    }

    /// The key that had this digest before it was replaced or revoked.
    pub fn former(&self, digest: &KeyDigest) -> Result<Option<FormerKey>, StoreError> {
        let sql = "SELECT name, ended_ms, \"end\" FROM former_keys WHERE digest = ?1";
        self.tables.read("look up a former key", |tables| {
            tables.query_first(sql, values![digest.as_slice()], |row| {
                let end: String = row.get(2)?;
                Ok(FormerKey {
                    name: row.get(0)?,
                    ended_ms: row.get(1)?,
                    end: KeyEnd::from_word(&end).ok_or_else(|| unknown("the end of a key"))?,
                })
            })
        })
    }

    fn change<T>(
        &self,
        doing: &'static str,
        change: impl FnOnce(Executor<'_>) -> sql::Result<T>,
    ) -> Result<T, StoreError> {
        let writers = Writers::OneOf(LockedTable::Keys);
        let (version, done) = self.tables.change(doing, &writers, |executor| {
            let done = change(executor)?;
            let version = match executor.is_shared() {
                false => 0,
                true => executor.number(
                    "UPDATE keys_version SET version = version + 1 RETURNING version",
                    values![],
                )?,
            };
            Ok((version, done))
        })?;
        if let Some(shared) = &self.shared {
            shared.cluster.news().raise(NewsKind::Keys, version);
        }
        Ok(done)
    }
}

impl SharedKeys {
    fn version(&self) -> Result<u64, StoreError> {
        let cluster = &self.cluster;
        cluster.news().version(NewsKind::Keys, cluster.pool())
    }
}

/// Remembers a key that ends, and forgets the oldest ones beyond the bound.
fn remember(change: Executor<'_>, name: &str, end: KeyEnd) -> sql::Result<()> {
    let sql = sql::either(
        "INSERT OR REPLACE INTO former_keys (digest, name, ended_ms, \"end\")
         SELECT digest, name, ?2, ?3 FROM keys WHERE name = ?1",
        "INSERT INTO former_keys (digest, name, ended_ms, \"end\")
         SELECT digest, name, CAST(?2 AS BIGINT), CAST(?3 AS TEXT) FROM keys
         WHERE lower(name) = lower(?1)
         ON CONFLICT (digest) DO UPDATE SET name = excluded.name,
         ended_ms = excluded.ended_ms, \"end\" = excluded.\"end\"",
    );
    change.execute(sql, values![name, now_ms(), end.word()])?;
    change.execute(
        "DELETE FROM former_keys WHERE digest IN
         (SELECT digest FROM former_keys ORDER BY ended_ms DESC
          LIMIT 9223372036854775807 OFFSET ?1)",
        values![crate::limit::FORMER_KEYS_MAX],
    )?;
    Ok(())
}

fn record_of(row: &SqlRow<'_>) -> sql::Result<KeyRecord> {
    let role: String = row.get(2)?;
    // Invariant 8: an unknown word grants nothing.
    let role = Role::from_word(&role).ok_or_else(|| unknown("the role of a key"))?;
    Ok(KeyRecord {
        id: row.get(0)?,
        name: row.get(1)?,
        role,
        digest: row.digest(3)?,
        created_ms: row.get(4)?,
        expires_ms: row.get(5)?,
    })
}
