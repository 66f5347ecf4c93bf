//! The tables of records and heads in a Postgres that all nodes share. Records are written
//! by COPY; a head only ever gives way to a larger one.

use std::error::Error;
use std::fmt;
use std::io::Cursor;
use std::path::PathBuf;
use std::pin::pin;

use futures_util::SinkExt as _;
use model::record::audit::chain::{ChainHash, Head};
use model::record::note::{NoteKey, SignedNote};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::rows::ShippedRows;
use super::{PATIENCE, check_published};
use crate::audit::evidence::key::is_sound;
use crate::error::{StoreError, causes};
use crate::limit;
use crate::postgres::address::Address;

/// The tables. A newer version only adds to them.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS audit_records (
        node text NOT NULL,
        sequence bigint NOT NULL,
        kind text NOT NULL,
        previous bytea NOT NULL,
        hash bytea NOT NULL,
        body text NOT NULL,
        at_ms bigint,
        id text,
        caller text,
        tool text,
        status text,
        differs boolean,
        opened bigint,
        PRIMARY KEY (node, sequence));
    CREATE INDEX IF NOT EXISTS audit_records_at ON audit_records (at_ms);
    CREATE INDEX IF NOT EXISTS audit_records_opened ON audit_records (node, opened)
        WHERE kind = 'close';
    CREATE INDEX IF NOT EXISTS audit_records_tool ON audit_records (tool, at_ms)
        WHERE kind = 'open';
    CREATE TABLE IF NOT EXISTS audit_heads (
        node text PRIMARY KEY,
        sequence bigint NOT NULL,
        note text NOT NULL);";

/// Keeps two nodes from making the tables at the same time.
const TABLES_LOCK: i64 = 0x52_69_6e_67_66_65_6e;

const COPY: &str = "COPY audit_records (node, sequence, kind, previous, hash, body, at_ms, id, \
     caller, tool, status, differs, opened) FROM STDIN (FORMAT binary)";

/// A Postgres that records are shipped to.
pub struct ShipDatabase {
    address: Address,
    client: Mutex<Option<Client>>,
}

// Without the password.
impl fmt::Debug for ShipDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShipDatabase").finish_non_exhaustive()
    }
}

impl ShipDatabase {
    /// A database by its address, its password and who may vouch for its certificate. Nothing
    /// is connected yet. Over a network the connection is encrypted, unless the address says
    /// `sslmode=disable`.
    pub fn new(
        url: &str,
        password: Option<&str>,
        ca_file: Option<PathBuf>,
    ) -> Result<ShipDatabase, StoreError> {
        Ok(ShipDatabase {
            address: Address::new(url, password, ca_file)?,
            client: Mutex::const_new(None),
        })
    }

    /// The last record of a node that is there.
    pub(crate) async fn last(&self, node: &str) -> Result<Option<Head>, StoreError> {
        let client = self.client().await?;
        let sql = "SELECT sequence, hash FROM audit_records WHERE node = $1
                   ORDER BY sequence DESC LIMIT 1";
        let row = wait_for(
            "read what was shipped",
            client.get()?.query_opt(sql, &[&node]),
        )
        .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let hash: Vec<u8> = column(&row, 1)?;
        Ok(Some(Head {
            sequence: number(column(&row, 0)?),
            hash: hash_of(&hash)?,
        }))
    }

    /// Writes records of a node, all of them or none.
    pub(super) async fn ship(&self, rows: ShippedRows) -> Result<(), StoreError> {
        let client = self.client().await?;
        wait_for("ship the audit", copy(client.get()?, rows)).await
    }

    /// Leaves the newest head of a log; an older one never replaces a newer. Whether the one
    /// that is there is of this log's past is what `Audit::check_published` says before.
    pub(crate) async fn publish(&self, note: &SignedNote, key: &NoteKey) -> Result<(), StoreError> {
        let head = note.head().map_err(|_| StoreError::Unsigned {
            what: "the newest head cannot be read".to_owned(),
        })?;
        let client = self.client().await?;
        // By size: a node that was set back cannot replace what the others have seen.
        let sql = "INSERT INTO audit_heads AS known (node, sequence, note) VALUES ($1, $2, $3)
                   ON CONFLICT (node) DO UPDATE SET sequence = $2, note = $3
                   WHERE known.sequence < $2";
        let text = note.to_string();
        let values: [&(dyn ToSql + Sync); 3] = [&head.origin, &integer(head.size), &text];
        let written = wait_for("publish the head", client.get()?.execute(sql, &values)).await?;
        if written > 0 {
            return Ok(());
        }
        // One that is not older is there: it must be of this log's past.
        let sql = "SELECT note FROM audit_heads WHERE node = $1";
        let values: [&(dyn ToSql + Sync); 1] = [&head.origin];
        let row = wait_for("read the head", client.get()?.query_opt(sql, &values)).await?;
        let Some(row) = row else {
            return Ok(());
        };
        let there: Option<SignedNote> = column::<String>(&row, 0)?.parse().ok();
        let there = there.filter(|there| key.has_signed(there, &is_sound));
        match there.and_then(|there| there.head().ok()) {
            Some(there) => check_published(&there, &head, "audit_heads"),
            None => Err(StoreError::Contradicted {
                what: "`audit_heads` holds a head of this log that it did not sign".to_owned(),
            }),
        }
    }

    /// The newest head of a node that is there.
    pub async fn head_of(&self, node: &str) -> Result<Option<SignedNote>, StoreError> {
        let client = self.client().await?;
        let sql = "SELECT note FROM audit_heads WHERE node = $1";
        let row = wait_for("read the head", client.get()?.query_opt(sql, &[&node])).await?;
        let note = row.map(|row| column::<String>(&row, 0)).transpose()?;
        Ok(note.and_then(|note| note.parse().ok()))
    }

    /// The newest heads of all nodes.
    pub(crate) async fn heads(&self) -> Result<Vec<SignedNote>, StoreError> {
        let client = self.client().await?;
        let sql = "SELECT note FROM audit_heads ORDER BY node LIMIT $1";
        let most = i64::try_from(model::limits::PEERS_MAX * 4).unwrap_or(i64::MAX);
        let rows = wait_for("read the heads", client.get()?.query(sql, &[&most])).await?;
        let mut notes = Vec::new();
        for row in rows {
            let note: String = column(&row, 0)?;
            notes.extend(note.parse::<SignedNote>());
        }
        Ok(notes)
    }

    /// The connection, made again if it broke.
    pub(super) async fn client(&self) -> Result<ShipClient<'_>, StoreError> {
        let mut client = self.client.lock().await;
        if client.as_ref().is_none_or(Client::is_closed) {
            *client = None;
            let connected = timeout(PATIENCE, connect(&self.address)).await;
            let connected = connected.map_err(|_| too_late("connect"))?;
            *client = Some(connected.map_err(|why| StoreError::Unavailable {
                doing: "connect",
                why,
            })?);
        }
        Ok(ShipClient(client))
    }
}

/// A connection in use.
pub(super) struct ShipClient<'a>(MutexGuard<'a, Option<Client>>);

impl ShipClient<'_> {
    pub(super) fn get(&self) -> Result<&Client, StoreError> {
        self.0.as_ref().ok_or(StoreError::Closed)
    }
}

async fn connect(address: &Address) -> Result<Client, String> {
    let (client, _) = address.connect(&Handle::current()).await?;
    // Within a transaction, so that the lock goes with it however this ends.
    let lock = format!("SELECT pg_advisory_xact_lock({TABLES_LOCK});");
    let script = format!("BEGIN; {lock} {TABLES} COMMIT;");
    let made = client.batch_execute(&script).await;
    made.map_err(|error| causes(&error))?;
    Ok(client)
}

async fn copy(client: &Client, rows: ShippedRows) -> Result<(), tokio_postgres::Error> {
    let sink = client.copy_in(COPY).await?;
    let mut sink = pin!(sink);
    for piece in rows.pieces {
        sink.send(Cursor::new(piece)).await?;
    }
    sink.finish().await?;
    Ok(())
}

/// Waits for an answer, with a bound.
pub(super) async fn wait_for<T>(
    doing: &'static str,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, StoreError> {
    match timeout(PATIENCE, work).await {
        Ok(done) => done.map_err(|error| failed(doing, &error)),
        Err(_) => Err(too_late(doing)),
    }
}

fn too_late(doing: &'static str) -> StoreError {
    StoreError::Unavailable {
        doing,
        why: format!("no answer within {} seconds", limit::SHIP_MS_MAX / 1_000),
    }
}

fn failed(doing: &'static str, error: &dyn Error) -> StoreError {
    let mut why = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        why = format!("{why}: {cause}");
        source = cause.source();
    }
    StoreError::Unavailable { doing, why }
}

/// A column of a row.
pub(super) fn column<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a tokio_postgres::Row,
    index: usize,
) -> Result<T, StoreError> {
    row.try_get(index)
        .map_err(|error| failed("read what was shipped", &error))
}

/// A hash of the chain, as the table keeps it.
pub(super) fn hash_of(bytes: &[u8]) -> Result<ChainHash, StoreError> {
    let bytes = bytes.try_into().map_err(|_| StoreError::Unavailable {
        doing: "read what was shipped",
        why: "a hash has the wrong length".to_owned(),
    })?;
    Ok(ChainHash::from_bytes(bytes))
}

pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn number(integer: i64) -> u64 {
    u64::try_from(integer).unwrap_or(0)
}
