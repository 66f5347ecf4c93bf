//! MCP servers: what the owner accepted of each, what each offered last, and how often
//! the owner restarted it. They share the version of the publications, so every process
//! sees a change at its next call.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Change, Publications};
use crate::error::StoreError;
use crate::sql::{self, Executor, SqlRow, values};

/// What is remembered about a server. The texts are records of crate `upstream`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerRecord {
    /// What the owner accepted; empty before the first decision.
    pub pins: Arc<str>,
    /// What it offered last; empty before the first time.
    pub seen: Arc<str>,
    /// When it offered that, in milliseconds since 1970.
    pub seen_ms: i64,
    /// Restarts the owner asked for.
    pub restarts: i64,
}

/// What is remembered about all servers, by name.
pub type ServerRecords = BTreeMap<String, ServerRecord>;

impl Publications {
    /// Keeps what a server offers, if it is something else than before. Returns whether
    /// it is.
    pub fn save_seen(&self, server: &str, seen: &str, at_ms: i64) -> Result<bool, StoreError> {
        let change = self.change(|connection| {
            // The same again is no news, or every start of a server would
            // wake all processes.
            let changed = connection.execute(
                "INSERT INTO servers VALUES (?1, '', ?2, ?3, 0)
                 ON CONFLICT (name) DO UPDATE SET seen = ?2, seen_ms = ?3
                 WHERE servers.seen <> ?2",
                values![server, seen, at_ms],
            )?;
            Ok(Change::of(changed))
        })?;
        Ok(change == Change::Some)
    }

    /// Keeps what the owner decided, if what they decided on is still what is there.
    /// Returns whether it was.
    pub fn save_pins(
        &self,
        server: &str,
        before: &ServerRecord,
        pins: &str,
    ) -> Result<bool, StoreError> {
        let change = self.change(|connection| {
            connection.execute(
                "INSERT INTO servers VALUES (?1, '', '', 0, 0) ON CONFLICT (name) DO NOTHING",
                values![server],
            )?;
            // By both: the owner decided on what was shown, and nothing that came since.
            let changed = connection.execute(
                "UPDATE servers SET pins = ?2 WHERE name = ?1 AND pins = ?3 AND seen = ?4",
                values![server, pins, &*before.pins, &*before.seen],
            )?;
            Ok(Change::of(changed))
        })?;
        Ok(change == Change::Some)
    }

    /// Asks every process to restart a server.
    pub fn restart_server(&self, server: &str) -> Result<(), StoreError> {
        self.change(|connection| {
            let changed = connection.execute(
                "INSERT INTO servers VALUES (?1, '', '', 0, 1)
                 ON CONFLICT (name) DO UPDATE SET restarts = servers.restarts + 1",
                values![server],
            )?;
            Ok(Change::of(changed))
        })
        .map(|_| ())
    }

    /// Forgets a server. Returns whether anything was remembered.
    pub fn forget_server(&self, server: &str) -> Result<bool, StoreError> {
        let change = self.change(|connection| {
            let changed =
                connection.execute("DELETE FROM servers WHERE name = ?1", values![server])?;
            Ok(Change::of(changed))
        })?;
        Ok(change == Change::Some)
    }
}

pub(super) fn records_in(connection: Executor<'_>) -> sql::Result<ServerRecords> {
    let sql = "SELECT name, pins, seen, seen_ms, restarts FROM servers";
    let record = |row: &SqlRow<'_>| {
        let text = |index: usize| row.get::<String>(index).map(Arc::from);
        let record = ServerRecord {
            pins: text(1)?,
            seen: text(2)?,
            seen_ms: row.get(3)?,
            restarts: row.get(4)?,
        };
        Ok((row.get(0)?, record))
    };
    let records = connection.query(sql, values![], record)?;
    Ok(records.into_iter().collect())
}
