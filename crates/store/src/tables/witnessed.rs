//! The newest heads of other people's logs, which this home saw and cosigned. A head is
//! remembered before the cosignature leaves, so no second one can contradict it.

use std::path::{Path, PathBuf};

use model::record::note::{NoteKey, NoteSignature};
use model::record::tree::TreeHash;
use model::record::witness::{WitnessRefusal, WitnessRequest};
use rusqlite::{OptionalExtension as _, TransactionBehavior};

use crate::audit::evidence::key::{HomeKey, is_sound};
use crate::error::StoreError;
use crate::home::database::{LazyConnection, from_integer, to_integer};

const DOING: &str = "remember the head of another log";

/// The heads of other logs.
#[derive(Debug)]
pub struct WitnessedHeads {
    home: PathBuf,
    connection: LazyConnection,
}

/// The head of another log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessedHead {
    /// The name of the log.
    pub origin: String,
    /// The records it had.
    pub size: u64,
    /// When it was seen, in seconds since 1970.
    pub seen_at: u64,
    /// The head as it came.
    pub note: String,
}

impl WitnessedHeads {
    /// `home` is without links.
    pub(crate) fn new(home: &Path) -> WitnessedHeads {
        WitnessedHeads {
            home: home.to_owned(),
            // A cosignature must not outlive the memory of what it was given for.
            connection: LazyConnection::new(home, "FULL"),
        }
    }

    /// The public key of this home as a witness.
    pub fn key(&self) -> Result<NoteKey, StoreError> {
        let key = self.home_key()?;
        key.witness().ok_or(StoreError::Closed)
    }

    /// Cosigns a head that extends what was seen of its log, and remembers it.
    pub fn add(
        &self,
        request: &WitnessRequest,
        keys: &[NoteKey],
        seconds: u64,
    ) -> Result<Result<NoteSignature, WitnessRefusal>, StoreError> {
        let fail = StoreError::database(DOING);
        let key = self.home_key()?;
        let mut connection = self.connection.lock()?;
        let change = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&fail)?;
        let mut fault = None;
        let seen = |origin: &str| {
            let sql = "SELECT size, root FROM witnessed WHERE origin = ?1";
            let row = change.query_row(sql, [origin], |row| {
                let root: [u8; 32] = row.get(1)?;
                Ok((from_integer(row.get(0)?), TreeHash::from_bytes(root)))
            });
            row.optional().unwrap_or_else(|error| {
                fault = Some(error);
                None
            })
        };
        let judged = request.judge(keys, seen, &is_sound);
        if let Some(fault) = fault {
            return Err(fail(fault));
        }
        let head = match judged {
            Ok(head) => head,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let sql = "INSERT OR REPLACE INTO witnessed VALUES (?1, ?2, ?3, ?4, ?5)";
        let values = (
            &head.origin,
            to_integer(head.size),
            head.root.bytes(),
            to_integer(seconds),
            request.note.to_string(),
        );
        change.execute(sql, values).map_err(&fail)?;
        change.commit().map_err(&fail)?;
        let signature = key.cosign(seconds, request.note.text());
        signature.ok_or(StoreError::Closed).map(Ok)
    }

    /// All of them, by name.
    pub fn list(&self) -> Result<Vec<WitnessedHead>, StoreError> {
        let fail = StoreError::database("read the heads of other logs");
        let connection = self.connection.lock()?;
        let sql = "SELECT origin, size, seen_at, note FROM witnessed ORDER BY origin";
        let mut statement = connection.prepare(sql).map_err(&fail)?;
        let rows = statement.query_map([], |row| {
            Ok(WitnessedHead {
                origin: row.get(0)?,
                size: from_integer(row.get(1)?),
                seen_at: from_integer(row.get(2)?),
                note: row.get(3)?,
            })
        });
        rows.map_err(&fail)?
            .collect::<Result<_, _>>()
            .map_err(&fail)
    }

    fn home_key(&self) -> Result<HomeKey, StoreError> {
        match HomeKey::find(&self.home)? {
            Some(key) => Ok(key),
            None => HomeKey::make(&self.home),
        }
    }
}
