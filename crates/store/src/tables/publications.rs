//! Documents: which digest passed its test, which digest of a tool is published, and
//! what the owner granted to a tool. And MCP servers: what the owner accepted of them.
//!
//! Every call checks whether any of it changed, so a small file beside the database
//! holds a version number that all processes see. The database holds the same number
//! and is right when they differ.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use model::record::audit::Failure;

use crate::error::StoreError;
use crate::sql::tables::{LockedTable, Tables, Writers};
use crate::sql::version::VersionCounter;
use crate::sql::{self, Executor, SqlRow, values};

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
    tables: Tables,
    counter: VersionCounter,
}

impl Publications {
    pub(crate) fn open(
        tables: Tables,
        counter: VersionCounter,
    ) -> Result<Publications, StoreError> {
        // A process may have died after the database changed and before the file did.
        let version = tables.read(DOING, |tables| tables.number(READ_VERSION, values![]))?;
        counter.raise(version)?;
        Ok(Publications { tables, counter })
    }

    /// Stores a test result, replacing an earlier one of the same digest.
    pub fn record_pass(&self, pass: &Pass) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute(
                "INSERT INTO passes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (digest) DO UPDATE SET name = ?2, ok = ?3, at_ms = ?4,
                 elapsed_ms = ?5, error_code = ?6, error_message = ?7",
                values![
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
        let sql = "SELECT * FROM passes WHERE digest = ?1";
        self.tables.read(DOING, |tables| {
            tables.query_first(sql, values![digest], pass_of)
        })
    }

    /// Publishes a document, if exactly this digest has passed.
    pub fn publish(&self, name: &str, digest: &str, at_ms: i64) -> Result<(), StoreError> {
        let change = self.change(|connection| {
            // Checked by the statement itself: between a look and a write
            // another test could fail.
            let changed = connection.execute(
                "INSERT INTO published
                 SELECT CAST(?1 AS TEXT), CAST(?2 AS TEXT), CAST(?3 AS BIGINT)
                 WHERE EXISTS (SELECT 1 FROM passes WHERE digest = ?2 AND name = ?1 AND ok)
                 ON CONFLICT (name) DO UPDATE SET digest = ?2, at_ms = ?3",
                values![name, digest, at_ms],
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
        let kept = self.tables.change(DOING, &Writers::Any, |change| {
            change.execute(sql, values![name, digest, text])
        });
        kept.map(drop)
    }

    /// The digest and the text of a tool as it was last published.
    pub fn text(&self, name: &str) -> Result<Option<(String, String)>, StoreError> {
        let sql = "SELECT digest, text FROM published_texts WHERE name = ?1";
        self.tables.read(DOING, |tables| {
            tables.query_first(sql, values![name], |row| Ok((row.get(0)?, row.get(1)?)))
        })
    }

    /// Unpublishes a tool. Returns whether it was published.
    pub fn unpublish(&self, name: &str) -> Result<bool, StoreError> {
        let change = self.change(|connection| {
            let changed =
                connection.execute("DELETE FROM published WHERE name = ?1", values![name])?;
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
                    values![tool, place, need, at_ms, how],
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
                 WHERE tool = ?1 AND place = ?2 AND (CAST(?3 AS TEXT) IS NULL OR need = ?3)",
                values![tool, place, need],
            )?;
            Ok(Change::of(changed))
        })?;
        Ok(change == Change::Some)
    }

    /// Everything at one moment.
    pub fn all(&self) -> Result<PublicationSnapshot, StoreError> {
        self.tables.read_moment(DOING, |moment| {
            let sql = "SELECT name, digest FROM published";
            let published: Vec<(String, String)> =
                moment.query(sql, values![], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let passes = moment.query("SELECT * FROM passes", values![], pass_of)?;
            let passes = passes.into_iter().map(|pass| (pass.digest.clone(), pass));
            Ok(PublicationSnapshot {
                published: published.into_iter().collect(),
                passes: passes.collect(),
                grants: grants_in(moment)?,
                servers: servers::records_in(moment)?,
            })
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
        change: impl FnOnce(Executor<'_>) -> sql::Result<Change>,
    ) -> Result<Change, StoreError> {
        let writers = Writers::OneOf(LockedTable::Publications);
        let doing = "change a publication";
        let (changed, version) = self.tables.change(doing, &writers, |executor| {
            let changed = change(executor)?;
            if changed == Change::Some {
                // In the same transaction: a version without its change, or the other way
                // round, cannot be seen.
                executor.execute("UPDATE standing SET version = version + 1", values![])?;
            }
            Ok((changed, executor.number(READ_VERSION, values![])?))
        })?;
        // After the commit. A process that dies in between is made up for at the next open.
        self.counter.raise(version)?;
        Ok(changed)
    }
}

fn grants_in(connection: Executor<'_>) -> sql::Result<ToolGrants> {
    let sql = "SELECT tool, place, need FROM tool_grants";
    let mut granted: HashMap<String, HashMap<String, BTreeSet<String>>> = HashMap::new();
    connection.query(sql, values![], |row| {
        let places = granted.entry(row.get(0)?).or_default();
        places.entry(row.get(1)?).or_default().insert(row.get(2)?);
        Ok(())
    })?;
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

fn pass_of(row: &SqlRow<'_>) -> sql::Result<Pass> {
    let code: Option<String> = row.get(5)?;
    let message: Option<String> = row.get(6)?;
    Ok(Pass {
        digest: row.get(0)?,
        name: row.get(1)?,
        ok: row.get(2)?,
        at_ms: row.get(3)?,
        elapsed_ms: row.count(4)?,
        error: code.map(|code| Failure {
            code,
            message: message.unwrap_or_default(),
        }),
    })
}
