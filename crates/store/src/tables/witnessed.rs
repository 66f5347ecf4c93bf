//! The newest heads of other people's logs, which this home saw and cosigned. A head is
//! remembered before the cosignature leaves, so no second one can contradict it.

use std::path::{Path, PathBuf};

use model::record::note::{NoteKey, NoteSignature};
use model::record::tree::TreeHash;
use model::record::witness::{WitnessRefusal, WitnessRequest};

use crate::audit::evidence::key::{HomeKey, is_sound};
use crate::error::StoreError;
use crate::home::database::{from_integer, to_integer};
use crate::sql::tables::{LockedTable, Tables, Writers};
use crate::sql::values;

const DOING: &str = "remember the head of another log";

/// The heads of other logs.
#[derive(Debug)]
pub struct WitnessedHeads {
    home: PathBuf,
    tables: Tables,
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
    pub(crate) fn new(home: &Path, tables: Tables) -> WitnessedHeads {
        WitnessedHeads {
            home: home.to_owned(),
            tables,
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
        let key = self.home_key()?;
        let writers = Writers::OneOf(LockedTable::Witnessed);
        let judged = self.tables.change(DOING, &writers, |change| {
            let mut fault = None;
            let seen = |origin: &str| {
                let sql = "SELECT size, root FROM witnessed WHERE origin = ?1";
                let row = change.query_first(sql, values![origin], |row| {
                    let root = TreeHash::from_bytes(row.digest(1)?);
                    Ok((row.count(0)?, root))
                });
                row.unwrap_or_else(|error| {
                    fault = Some(error);
                    None
                })
            };
            let judged = request.judge(keys, seen, &is_sound);
            // A head that could not be looked up must not be judged as
            // the first of its log.
            if let Some(fault) = fault {
                return Err(fault);
            }
            if let Ok(head) = &judged {
                change.execute(
                    "INSERT INTO witnessed VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (origin) DO UPDATE
                     SET size = ?2, root = ?3, seen_at = ?4, note = ?5",
                    values![
                        head.origin,
                        to_integer(head.size),
                        head.root.bytes().as_slice(),
                        to_integer(seconds),
                        request.note.to_string(),
                    ],
                )?;
            }
            Ok(judged.map(drop))
        })?;
        if let Err(refusal) = judged {
            return Ok(Err(refusal));
        }
        // After the commit: a cosignature that left cannot be taken back.
        let signature = key.cosign(seconds, request.note.text());
        signature.ok_or(StoreError::Closed).map(Ok)
    }

    /// All of them, by name.
    pub fn list(&self) -> Result<Vec<WitnessedHead>, StoreError> {
        let sql = "SELECT origin, size, seen_at, note FROM witnessed ORDER BY origin";
        self.tables.read("read the heads of other logs", |tables| {
            tables.query(sql, values![], |row| {
                Ok(WitnessedHead {
                    origin: row.get(0)?,
                    size: from_integer(row.get(1)?),
                    seen_at: from_integer(row.get(2)?),
                    note: row.get(3)?,
                })
            })
        })
    }

    /// Forgets a log, so that its next head is taken as the first. What is lost is the
    /// memory of what it was before.
    pub fn forget(&self, origin: &str) -> Result<(), StoreError> {
        let writers = Writers::OneOf(LockedTable::Witnessed);
        self.tables
            .change("forget another log", &writers, |change| {
                let sql = "DELETE FROM witnessed WHERE origin = ?1";
                change.execute(sql, values![origin]).map(drop)
            })
    }

    fn home_key(&self) -> Result<HomeKey, StoreError> {
        match HomeKey::find(&self.home)? {
            Some(key) => Ok(key),
            None => HomeKey::make(&self.home),
        }
    }
}
