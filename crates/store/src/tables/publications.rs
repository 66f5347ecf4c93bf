//! Documents: which digest passed its test, which digest of a tool is published, and
//! what the owner granted to a tool. And MCP servers: what the owner accepted of them.
//!
//! Every call checks whether any of it changed, so a small file beside the database
//! holds a version number that all processes see. The database holds the same number
//! and is right when they differ.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use model::record::audit::Failure;
use model::sync::lock;
use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, params};

use crate::error::StoreError;
use crate::home::counter::Counter;

mod servers;

pub use servers::{ServerRecord, ServerRecords};

const DOING: &str = "read the publications";
const READ_VERSION: &str = "SELECT version FROM standing";

/// The result of a document's test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The document.
    pub digest: String,
    /// The tool's name.
    pub name: String,
    /// Whether it passed.
    pub ok: bool,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// Why it did not.
    pub error: Option<Failure>,
    /// How long it took.
    pub elapsed_ms: u64,
}

/// Test results, publications and grants at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicationSnapshot {
    /// The published digest of each published name.
    pub published: HashMap<String, String>,
    /// The last result of each digest.
    pub passes: HashMap<String, Pass>,
    /// What was granted, by tool and place.
    pub grants: ToolGrants,
    /// What is remembered about MCP servers.
    pub servers: ServerRecords,
}

/// What the owner granted to tools. The place is the file of a document that is not
/// in the tools folder; it is empty for those that are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolGrants {
    granted: HashMap<String, HashMap<String, Arc<BTreeSet<String>>>>,
}

impl ToolGrants {
    /// What one tool was granted.
    #[must_use]
    pub fn of(&self, tool: &str, place: &str) -> Arc<BTreeSet<String>> {
        let places = self.granted.get(tool);
        let needs = places.and_then(|places| places.get(place));
        needs.cloned().unwrap_or_default()
    }
}

/// Test results, published documents and grants of tools.
#[derive(Debug)]
pub struct Publications {
    connection: Mutex<Connection>,
    counter: Counter,
}

impl Publications {
    pub(crate) fn open(home: &Path, connection: Connection) -> Result<Publications, StoreError> {
        let publications = Publications {
            counter: Counter::open(home.join("standing.version"))?,
            connection: Mutex::new(connection),
        };
        // A process may have died after the database changed and before the file did.
        let version = {
            let connection = publications.connection();
            connection.query_row(READ_VERSION, [], |row| row.get::<_, i64>(0))
        };
        let version = version.map_err(StoreError::database(DOING))?;
        publications.counter.raise(version)?;
        Ok(publications)
    }

    /// Stores a test result, replacing an earlier one of the same digest.
    pub fn record_pass(&self, pass: &Pass) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute(
                "INSERT INTO passes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (digest) DO UPDATE SET name = ?2, ok = ?3, at_ms = ?4,
                 elapsed_ms = ?5, error_code = ?6, error_message = ?7",
                params![
                    pass.digest,
                    pass.name,
                    pass.ok,
                    pass.at_ms,
                    i64::try_from(pass.elapsed_ms).unwrap_or(i64::MAX),
                    pass.error.as_ref().map(|error| &error.code),
                    pass.error.as_ref().map(|error| &error.message),
                ],
            )?;
            Ok(Change::Some)
        })
        .map(|_| ())
    }

    /// The last result of a digest.
    pub fn pass(&self, digest: &str) -> Result<Option<Pass>, StoreError> {
        self.connection()
            .query_row("SELECT * FROM passes WHERE digest = ?1", [digest], pass_of)
            .optional()
            .map_err(StoreError::database(DOING))
    }

    /// Publishes a document, if exactly this digest has passed.
    pub fn publish(&self, name: &str, digest: &str, at_ms: i64) -> Result<(), StoreError> {
        let change = self.change(|connection| {
            let changed = connection.execute(
                "INSERT INTO published SELECT ?1, ?2, ?3
                 WHERE EXISTS (SELECT 1 FROM passes WHERE digest = ?2 AND name = ?1 AND ok = 1)
                 ON CONFLICT (name) DO UPDATE SET digest = ?2, at_ms = ?3",
                params![name, digest, at_ms],
            )?;
            Ok(Change::of(changed))
        })?;
        match change {
            Change::Some => Ok(()),
            Change::Nothing => Err(StoreError::NoPass {
                name: name.to_owned(),
                digest: digest.to_owned(),
            }),
        }
    }

    /// Keeps the text of a tool as it was published.
    pub fn keep_text(&self, name: &str, digest: &str, text: &str) -> Result<(), StoreError> {
        let sql = "INSERT INTO published_texts VALUES (?1, ?2, ?3)
            ON CONFLICT (name) DO UPDATE SET digest = ?2, text = ?3";
        let kept = self.connection().execute(sql, params![name, digest, text]);
        kept.map(drop).map_err(StoreError::database(DOING))
    }

    /// The digest and the text of a tool as it was last published.
    pub fn text(&self, name: &str) -> Result<Option<(String, String)>, StoreError> {
        let sql = "SELECT digest, text FROM published_texts WHERE name = ?1";
        let found = self
            .connection()
            .query_row(sql, [name], |row| Ok((row.get(0)?, row.get(1)?)));
        found.optional().map_err(StoreError::database(DOING))
    }

    /// Unpublishes a tool. Returns whether it was published.
    pub fn unpublish(&self, name: &str) -> Result<bool, StoreError> {
        let change = self.change(|connection| {
            let changed = connection.execute("DELETE FROM published WHERE name = ?1", [name])?;
            Ok(Change::of(changed))
        })?;
        Ok(change == Change::Some)
    }

    /// Grants needs to a tool. Returns whether any of them is new.
    pub fn grant(
        &self,
        (tool, place): (&str, &str),
        needs: &[String],
        how: &str,
        at_ms: i64,
    ) -> Result<bool, StoreError> {
        let change = self.change(|connection| {
            let mut changed = 0;
            for need in needs {
                changed += connection.execute(
                    "INSERT INTO tool_grants VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (tool, place, need) DO NOTHING",
                    params![tool, place, need, at_ms, how],
                )?;
            }
            Ok(Change::of(changed))
        })?;
        Ok(change == Change::Some)
    }

    /// Revokes one grant of a tool, or all. Returns whether there was any.
    pub fn revoke(
        &self,
        (tool, place): (&str, &str),
        need: Option<&str>,
    ) -> Result<bool, StoreError> {
        let change = self.change(|connection| {
            let changed = connection.execute(
                "DELETE FROM tool_grants
                 WHERE tool = ?1 AND place = ?2 AND (?3 IS NULL OR need = ?3)",
                params![tool, place, need],
            )?;
            Ok(Change::of(changed))
        })?;
        Ok(change == Change::Some)
    }

    /// Everything at one moment.
    pub fn all(&self) -> Result<PublicationSnapshot, StoreError> {
        let fail = StoreError::database(DOING);
        let connection = self.connection();
        let moment = connection.unchecked_transaction().map_err(&fail)?;
        let mut statement = moment
            .prepare_cached("SELECT name, digest FROM published")
            .map_err(&fail)?;
        let published = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(&fail)?
            .collect::<Result<_, _>>()
            .map_err(&fail)?;
        let mut statement = moment
            .prepare_cached("SELECT * FROM passes")
            .map_err(&fail)?;
        let passes = statement
            .query_map([], |row| {
                pass_of(row).map(|pass| (pass.digest.clone(), pass))
            })
            .map_err(&fail)?
            .collect::<Result<_, _>>()
            .map_err(&fail)?;
        let grants = grants_in(&moment).map_err(&fail)?;
        let servers = servers::records_in(&moment).map_err(&fail)?;
        Ok(PublicationSnapshot {
            published,
            passes,
            grants,
            servers,
        })
    }

    /// A number that changes whenever any process changes any of this. Read it
    /// before [`Publications::all`], never after.
    pub fn version(&self) -> Result<u64, StoreError> {
        if self.counter.find()? {
            // Another process may have missed a change with the old file.
            self.change(|_| Ok(Change::Some))?;
        }
        self.counter.read()
    }

    /// Makes a change in a transaction, and raises the version if anything changed.
    fn change(
        &self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<Change>,
    ) -> Result<Change, StoreError> {
        let fail = StoreError::database("change a publication");
        let mut connection = self.connection();
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&fail)?;
        let changed = change(&transaction).map_err(&fail)?;
        if changed == Change::Some {
            transaction
                .execute("UPDATE standing SET version = version + 1", [])
                .map_err(&fail)?;
        }
        let version: i64 = transaction
            .query_row(READ_VERSION, [], |row| row.get(0))
            .map_err(&fail)?;
        transaction.commit().map_err(&fail)?;
        self.counter.raise(version)?;
        Ok(changed)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        lock(&self.connection)
    }
}

fn grants_in(connection: &Connection) -> rusqlite::Result<ToolGrants> {
    let mut statement = connection.prepare_cached("SELECT tool, place, need FROM tool_grants")?;
    let mut rows = statement.query([])?;
    let mut granted: HashMap<String, HashMap<String, BTreeSet<String>>> = HashMap::new();
    while let Some(row) = rows.next()? {
        let places = granted.entry(row.get(0)?).or_default();
        places.entry(row.get(1)?).or_default().insert(row.get(2)?);
    }
    let shared = |places: HashMap<_, _>| {
        let places = places.into_iter();
        places
            .map(|(place, needs)| (place, Arc::new(needs)))
            .collect()
    };
    let granted = granted.into_iter();
    Ok(ToolGrants {
        granted: granted
            .map(|(tool, places)| (tool, shared(places)))
            .collect(),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Some,
    Nothing,
}

impl Change {
    fn of(changed: usize) -> Change {
        if changed == 0 {
            Change::Nothing
        } else {
            Change::Some
        }
    }
}

fn pass_of(row: &Row<'_>) -> rusqlite::Result<Pass> {
    let code: Option<String> = row.get(5)?;
    let message: Option<String> = row.get(6)?;
    Ok(Pass {
        digest: row.get(0)?,
        name: row.get(1)?,
        ok: row.get(2)?,
        at_ms: row.get(3)?,
        elapsed_ms: row.get::<_, i64>(4)?.try_into().unwrap_or(0),
        error: code.map(|code| Failure {
            code,
            message: message.unwrap_or_default(),
        }),
    })
}
