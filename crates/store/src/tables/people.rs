//! Codes and sessions of people at the Studio, for all processes of a home: one process
//! prints a code, another takes it.
//!
//! A code is taken by a transaction that removes it, so of two who type the same one gets
//! in. Sessions are looked up at every request and never cached: one that was ended by any
//! process is gone at the next request of every other.

use model::govern::key::KeyDigest;
use model::govern::person::PersonRole;
use model::word::Word as _;

use crate::error::StoreError;
use crate::limit;
use crate::sql::tables::{LockedTable, Tables, Writers};
use crate::sql::{self, Executor, SqlRow, unknown, values};

const COLUMNS: &str = "digest, id, person, role, address, browser, started_ms, seen_ms, expires_ms";

/// A session as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonSession {
    /// The digest of its secret.
    pub digest: KeyDigest,
    /// A short name for lists, which opens nothing.
    pub id: String,
    /// The person's name.
    pub person: String,
    /// What they may do.
    pub role: PersonRole,
    /// The address it was begun at.
    pub address: String,
    /// The browser, as it described itself.
    pub browser: String,
    /// Milliseconds since 1970.
    pub started_ms: i64,
    /// When it was last used, to about a minute.
    pub seen_ms: i64,
    /// When it ends, however much it is used.
    pub expires_ms: i64,
}

/// Codes and sessions of people.
#[derive(Debug)]
pub struct People {
    tables: Tables,
}

impl People {
    pub(crate) fn new(tables: Tables) -> People {
        People { tables }
    }

    /// Keeps a code until `expires_ms`. The oldest give way beyond the bound.
    pub fn add_code(
        &self,
        digest: &KeyDigest,
        now_ms: i64,
        expires_ms: i64,
    ) -> Result<(), StoreError> {
        self.change("keep a code", |change| {
            let sql = "DELETE FROM person_codes WHERE expires_ms <= ?1";
            change.execute(sql, values![now_ms])?;
            change.execute(
                "INSERT INTO person_codes (digest, made_ms, expires_ms) VALUES (?1, ?2, ?3)
                 ON CONFLICT (digest) DO UPDATE SET made_ms = ?2, expires_ms = ?3",
                values![digest.as_slice(), now_ms, expires_ms],
            )?;
            let most = i64::try_from(limit::PERSON_CODES_MAX).unwrap_or(i64::MAX);
            change.execute(
                "DELETE FROM person_codes WHERE digest IN (SELECT digest FROM person_codes
                 ORDER BY made_ms DESC, rowid DESC LIMIT 9223372036854775807 OFFSET ?1)",
                values![most],
            )?;
            Ok(())
        })
    }

    /// Uses a code up: the one that `is_it` says yes to. Every live code is shown to it, so
    /// that the time this takes does not depend on which.
    pub fn take_code(
        &self,
        now_ms: i64,
        is_it: &dyn Fn(&KeyDigest) -> bool,
    ) -> Result<bool, StoreError> {
        self.change("take a code", |change| {
            let sql = "SELECT digest FROM person_codes WHERE expires_ms > ?1";
            let codes: Vec<KeyDigest> = change.query(sql, values![now_ms], |row| row.digest(0))?;
            let mut found = None;
            for code in &codes {
                if is_it(code) {
                    found = Some(*code);
                }
            }
            match found {
                None => Ok(false),
                Some(code) => {
                    let sql = "DELETE FROM person_codes WHERE digest = ?1";
                    // In the same transaction as the look: of two who type
                    // it, one removes it.
                    Ok(change.execute(sql, values![code.as_slice()])? == 1)
                }
            }
        })
    }

    /// Begins a session. Those that are over are forgotten, and the longest unused beyond
    /// the bound.
    pub fn begin(&self, session: &PersonSession, now_ms: i64) -> Result<(), StoreError> {
        self.change("begin a session", |change| {
            let sql = "DELETE FROM person_sessions WHERE expires_ms <= ?1";
            change.execute(sql, values![now_ms])?;
            let most = i64::try_from(limit::PERSON_SESSIONS_MAX).unwrap_or(i64::MAX);
            change.execute(
                "DELETE FROM person_sessions WHERE digest IN (SELECT digest FROM person_sessions
                 ORDER BY seen_ms DESC LIMIT 9223372036854775807 OFFSET ?1)",
                values![most.saturating_sub(1)],
            )?;
            change.execute(
                &format!(
                    "INSERT INTO person_sessions ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
                ),
                values![
                    session.digest.as_slice(),
                    session.id,
                    session.person,
                    session.role.word(),
                    session.address,
                    session.browser,
                    session.started_ms,
                    session.seen_ms,
                    session.expires_ms,
                ],
            )?;
            Ok(())
        })
    }

    /// The session with this digest, over or not.
    pub fn find(&self, digest: &KeyDigest) -> Result<Option<PersonSession>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM person_sessions WHERE digest = ?1");
        self.tables.read("look up a session", |tables| {
            tables.query_first(&sql, values![digest.as_slice()], session_of)
        })
    }

    /// All sessions, the newest first.
    pub fn all(&self) -> Result<Vec<PersonSession>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM person_sessions ORDER BY started_ms DESC");
        self.tables.read("list the sessions", |tables| {
            tables.query(&sql, values![], session_of)
        })
    }

    /// Notes that a session was used.
    pub fn touch(&self, digest: &KeyDigest, now_ms: i64) -> Result<(), StoreError> {
        self.change("note the use of a session", |change| {
            // Never backwards: requests of one session may overtake each other.
            let sql = "UPDATE person_sessions SET seen_ms = ?2 WHERE digest = ?1 AND seen_ms < ?2";
            change
                .execute(sql, values![digest.as_slice(), now_ms])
                .map(drop)
        })
    }

    /// Ends a session, and says whether there was one.
    pub fn end(&self, digest: &KeyDigest) -> Result<bool, StoreError> {
        self.change("end a session", |change| {
            let sql = "DELETE FROM person_sessions WHERE digest = ?1";
            let gone = change.execute(sql, values![digest.as_slice()]);
            gone.map(|gone| gone > 0)
        })
    }

    /// Ends every session, and with them the codes that could begin another. Returns how
    /// many sessions there were.
    pub fn end_all(&self) -> Result<usize, StoreError> {
        self.change("end all sessions", |change| {
            // Otherwise a code that was printed before would open a session again.
            change.execute("DELETE FROM person_codes", values![])?;
            change.execute("DELETE FROM person_sessions", values![])
        })
    }

    fn change<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(Executor<'_>) -> sql::Result<T>,
    ) -> Result<T, StoreError> {
        let writers = Writers::OneOf(LockedTable::People);
        self.tables.change(doing, &writers, work)
    }
}

fn session_of(row: &SqlRow<'_>) -> sql::Result<PersonSession> {
    let role: String = row.get(3)?;
    // Invariant 8: an unknown word grants nothing.
    let role = PersonRole::from_word(&role).ok_or_else(|| unknown("the role of a person"))?;
    Ok(PersonSession {
        digest: row.digest(0)?,
        id: row.get(1)?,
        person: row.get(2)?,
        role,
        address: row.get(4)?,
        browser: row.get(5)?,
        started_ms: row.get(6)?,
        seen_ms: row.get(7)?,
        expires_ms: row.get(8)?,
    })
}
