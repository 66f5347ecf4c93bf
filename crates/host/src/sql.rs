//! Databases: statements that callers write, executed where they can do least.
//!
//! `model::sql` reads a statement to decide who must agree; it is never what keeps the
//! data safe. That is done here, by the session: a SQLite file is opened in a process of
//! its own (`role`, which runs in the jail) with an authorizer for its mode, and
//! Postgres gets one statement of the extended protocol inside a transaction that we
//! begin and end (`postgres`). The third layer is the database's own rights.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The files of a SQLite database.
pub mod beside;
/// Every bound of databases, named.
pub mod limit;
/// Postgres, over a stream to an address that was checked.
pub mod postgres;
/// The part of this program that opens a SQLite file, in a process of its own.
pub mod role;
mod rows;
/// SQLite, inside that process.
pub mod sqlite;

/// What a statement may do, whatever it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SqlMode {
    /// Only read.
    Read,
    /// Also change rows.
    Write,
    /// Also change what tables there are.
    Admin,
}

/// What a statement came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SqlAnswer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, as far as they were read.
    pub rows: Vec<Vec<Value>>,
    /// Whether there are more rows than the bounds let through.
    pub truncated: bool,
    /// How many rows were changed, where the statement could.
    pub changed: Option<u64>,
}

/// How much of an answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqlBounds {
    /// Rows.
    pub rows_max: usize,
    /// Bytes of all values, as JSON.
    pub bytes_max: usize,
    /// Milliseconds for everything.
    pub time_ms: u64,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct SqlFault {
    /// What kind of no it is.
    pub kind: SqlFaultKind,
    /// One sentence for the caller, whole: it is masked before anything of it is cut. It may
    /// quote the statement and what the database said, never an address.
    pub message: String,
}

/// The ways a statement fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SqlFaultKind {
    /// The session does not let it.
    Refused,
    /// The database says that the statement or its values are wrong.
    Statement,
    /// It took too long and was stopped.
    Timeout,
    /// There is no such database, or it cannot be read as one.
    Database,
    /// The database cannot be reached, or its role may do more than data.
    Connection,
}

impl SqlFault {
    /// A fault with a sentence.
    #[must_use]
    pub fn new(kind: SqlFaultKind, message: impl Into<String>) -> SqlFault {
        SqlFault {
            kind,
            message: message.into(),
        }
    }

    pub(crate) fn late() -> SqlFault {
        let message = "the statement took too long and was stopped; nothing of it was kept";
        SqlFault::new(SqlFaultKind::Timeout, message)
    }
}

/// Whether a value can be bound: a scalar.
#[must_use]
pub fn is_parameter(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        Value::Array(_) | Value::Object(_) => false,
    }
}
