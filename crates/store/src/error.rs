//! Errors of the store, for the operator. A caller never sees them: the engine only
//! says that the audit is unavailable.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use model::canonical::CanonicalError;

/// Why the store could not do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or folder of the home cannot be used.
    #[error("cannot {doing} `{}`", .path.display())]
    File {
        /// What was tried, as in "cannot … the file".
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
    /// The database was written by a later version.
    #[error(
        "`{}` has schema {found}, this version knows up to {known}; use the newer ringfence",
        .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// Another user of the machine can change settings, rules, tools or the store.
    #[error(
        "{who} can write to `{}`, and could set rules or publish tools; {}",
        .path.display(),
        match .who {
            OtherUsers::Owner(_) => "run the command as that user, or make the home yours with `chown`",
            OtherUsers::Anyone => "run `chmod go-w` on it",
        }
    )]
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// Who can.
        who: OtherUsers,
    },
    /// The file is a database of another program.
    #[error("`{}` is a database of another program", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The database failed.
    #[error("cannot {doing}")]
    Database {
        /// What was tried, as in "cannot … ".
        doing: &'static str,
        /// Why.
        source: Arc<rusqlite::Error>,
    },
    /// The disk, or the size the operator allows, is full.
    #[error("there is no room for the audit; remove old entries or allow more bytes")]
    Full {
        /// The system's error, if there was one.
        source: Option<Arc<dyn Error + Send + Sync>>,
    },
    /// Another process holds the lock of the audit.
    #[error("another process holds the audit's lock too long; look for a stopped process")]
    Busy,
    /// The database holds an audit from before the log.
    #[error(
        "`{}` holds the audit of a version before the first release; move it away to start over",
        .path.display()
    )]
    Older {
        /// The file.
        path: PathBuf,
    },
    /// The shared store does not answer.
    #[error("cannot {doing}: the shared store cannot be used now: {why}")]
    Unavailable {
        /// What was tried, as in "cannot … ".
        doing: &'static str,
        /// Why.
        why: String,
    },
    /// The shared store did not confirm a change: it may have been made.
    #[error("cannot {doing}: the shared store did not confirm it: {why}")]
    InDoubt {
        /// What was tried, as in "cannot … ".
        doing: &'static str,
        /// Why.
        why: String,
    },
    /// The shared store says no.
    #[error("cannot {doing}: the shared store says: {why}")]
    Shared {
        /// What was tried, as in "cannot … ".
        doing: &'static str,
        /// What it says.
        why: String,
    },
    /// The settings do not lead to a shared store that can be used.
    #[error("the shared store cannot be used: {why}")]
    Address {
        /// Why.
        why: String,
    },
    /// A process of the home uses another store than the settings name.
    #[error(
        "a process of this home uses another store ({used}) than the settings name ({named}), \
         and would not learn of this; stop `ringfence serve` first, or undo the change of `[store]`"
    )]
    OtherStore {
        /// What the process uses.
        used: String,
        /// What the settings name.
        named: String,
    },
    /// A row of the store holds what no version of this program writes.
    #[error("cannot {doing}: {what}")]
    Unknown {
        /// What was tried, as in "cannot … ".
        doing: &'static str,
        /// What it holds.
        what: String,
    },
    /// Too many requests wait.
    #[error("more than {queue_max} audit records are waiting to be written")]
    QueueFull {
        /// How many may wait.
        queue_max: usize,
    },
    /// The writer has ended.
    #[error("the audit is closed")]
    Closed,
    /// A sync failed; the content of the disk is unknown.
    #[error("the disk did not confirm the audit; restart once the disk is sound")]
    Unconfirmed {
        /// Why.
        source: Arc<io::Error>,
    },
    /// Our lock file vanished, and another process closed our calls.
    #[error("another process took this one for dead and closed its calls; restart it")]
    TakenForDead,
    /// A record is too long.
    #[error("an audit record of {bytes} bytes; at most {bytes_max}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// A record has no canonical form.
    #[error("the audit record cannot be written")]
    Canonical(#[source] Arc<CanonicalError>),
    /// A record is not what was written.
    #[error("record {sequence} of the audit is damaged: {what}; run `ringfence audit verify`")]
    Damaged {
        /// The record.
        sequence: u64,
        /// What is wrong.
        what: String,
    },
    /// No head can be signed over the log, or no proof given about it.
    #[error("the audit cannot be signed: {what}; run `ringfence audit verify`")]
    Unsigned {
        /// Why.
        what: String,
    },
    /// Others hold something of this log that is not what the log is.
    #[error("{what}; run `ringfence audit verify`")]
    Contradicted {
        /// What they hold.
        what: String,
    },
    /// What was given cannot be verified as it is.
    #[error("the audit cannot be verified: {what}")]
    Unchecked {
        /// Why.
        what: String,
    },
    /// A document without a passed test cannot be published.
    #[error("`{name}` has no passed test for this exact document")]
    NoPass {
        /// The tool.
        name: String,
        /// Its digest.
        digest: String,
    },
    /// A name cannot be a file name.
    #[error("`{stem}` cannot be a file name: {why}")]
    BadStem {
        /// The name.
        stem: String,
        /// Why not.
        why: &'static str,
    },
    /// A file exists already.
    #[error("`{}` exists already", .path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another node changed a file that nodes share.
    #[error(
        "another node changed `{}` first, and that holds; your version is in `trash`",
        .path.display()
    )]
    Overtaken {
        /// The file.
        path: PathBuf,
    },
    /// A file does not exist.
    #[error("`{}` does not exist", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The receiver of exported records failed.
    #[error("cannot export the records")]
    Export(#[source] Arc<io::Error>),
    /// More calls are open than a checkpoint can keep.
    #[error("{open} calls are open, too many to remove older entries")]
    TooManyOpen {
        /// How many.
        open: usize,
    },
}

/// Who else can write to a file of the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherUsers {
    /// Its group, or all users.
    Anyone,
    /// It belongs to another user, by number.
    Owner(u32),
}

impl std::fmt::Display for OtherUsers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OtherUsers::Anyone => formatter.write_str("other users"),
            OtherUsers::Owner(user) => write!(formatter, "user {user}"),
        }
    }
}

impl StoreError {
    pub(crate) fn file(doing: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        StoreError::File {
            doing,
            path: path.into(),
            source: Arc::new(source),
        }
    }

    pub(crate) fn database(doing: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
        move |source| {
            let source = Arc::new(source);
            match source.sqlite_error_code() {
                Some(rusqlite::ErrorCode::DiskFull) => StoreError::Full {
                    source: Some(source),
                },
                Some(_) | None => StoreError::Database { doing, source },
            }
        }
    }

    pub(crate) fn sql(doing: &'static str) -> impl Fn(SqlError) -> StoreError + Copy {
        move |error| match error {
            SqlError::Sqlite(source) => StoreError::database(doing)(source),
            SqlError::Postgres(error) => StoreError::Shared {
                doing,
                why: causes(&error),
            },
            SqlError::Unavailable(why) => StoreError::Unavailable { doing, why },
            SqlError::InDoubt(why) => StoreError::InDoubt { doing, why },
            SqlError::Unknown(what) => StoreError::Unknown { doing, what },
        }
    }
}

impl From<CanonicalError> for StoreError {
    fn from(error: CanonicalError) -> StoreError {
        StoreError::Canonical(Arc::new(error))
    }
}

/// An error and what is behind it, in one line.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}

/// What became of a statement.
pub(crate) type SqlResult<T> = Result<T, SqlError>;

/// Why a statement failed.
#[derive(Debug)]
pub(crate) enum SqlError {
    /// SQLite says no.
    Sqlite(rusqlite::Error),
    /// Postgres says no.
    Postgres(tokio_postgres::Error),
    /// Postgres does not answer.
    Unavailable(String),
    /// Postgres did not confirm the change: it may have been made.
    InDoubt(String),
    /// A row holds what no version of this program writes.
    Unknown(String),
}

impl From<rusqlite::Error> for SqlError {
    fn from(error: rusqlite::Error) -> SqlError {
        SqlError::Sqlite(error)
    }
}
