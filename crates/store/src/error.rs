//! What can go wrong between us and the disk, for an operator. Nothing here goes
//! to whoever called a tool: the engine says only that the audit is unavailable.

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
    /// Another user of the machine could change what is obeyed.
    #[error(
        "{who} can write to `{}`, and could set rules or publish tools; run `chmod go-w` on it{}",
        .path.display(),
        match .who { Others::Owner(_) => ", or make it yours with `chown`", Others::Anyone => "" }
    )]
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// Who can.
        who: Others,
    },
    /// The file is some other database.
    #[error("`{}` is a database of another program", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The database said no.
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
        /// What the system said, if it was asked.
        source: Option<Arc<dyn Error + Send + Sync>>,
    },
    /// Another process holds the lock of the audit.
    #[error("another process has kept the audit locked for too long; is one stopped?")]
    Busy,
    /// The database holds an audit, which is kept elsewhere now.
    #[error(
        "`{}` holds the audit of a version before the first release; move it away to begin anew",
        .path.display()
    )]
    Older {
        /// The file.
        path: PathBuf,
    },
    /// More requests wait than may.
    #[error("more than {queue_max} audit records are waiting to be written")]
    QueueFull {
        /// How many may.
        queue_max: usize,
    },
    /// The thread that writes has ended.
    #[error("the audit is closed")]
    Closed,
    /// The disk did not confirm what it was given; what it holds is not known.
    #[error("the disk did not confirm the audit; restart once the disk is sound")]
    Unconfirmed {
        /// Why.
        source: Arc<io::Error>,
    },
    /// Our lock file vanished and another process closed what we had open.
    #[error("another process took this one for dead and closed its calls; restart it")]
    TakenForDead,
    /// A record longer than may be.
    #[error("an audit record of {bytes} bytes; at most {bytes_max}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// A record without canonical form.
    #[error("the audit record cannot be written")]
    Canonical(#[source] Arc<CanonicalError>),
    /// A kept row is not what we wrote.
    #[error("record {sequence} of the audit is damaged: {what}; run `ringfence audit verify`")]
    Damaged {
        /// The record.
        sequence: u64,
        /// What is wrong.
        what: String,
    },
    /// Publishing without a pass.
    #[error("`{name}` has no passed test for exactly this document")]
    NoPass {
        /// The tool.
        name: String,
        /// Its digest.
        digest: String,
    },
    /// A name that cannot be a file's.
    #[error("`{stem}` cannot be a file name: {why}")]
    BadStem {
        /// The name.
        stem: String,
        /// Why not.
        why: &'static str,
    },
    /// A file is in the way.
    #[error("`{}` exists already", .path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// No such file.
    #[error("`{}` does not exist", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Whoever took the records could not.
    #[error("cannot hand the records over")]
    Export(#[source] Arc<io::Error>),
    /// More attempts are open than a checkpoint can name.
    #[error("{open} attempts are open, too many to remove what is older")]
    TooManyOpen {
        /// How many.
        open: usize,
    },
}

/// Who else can write to a file of the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Its group, or everybody.
    Anyone,
    /// It belongs to another user, by number.
    Owner(u32),
}

impl std::fmt::Display for Others {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Others::Anyone => formatter.write_str("other users"),
            Others::Owner(user) => write!(formatter, "user {user}"),
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
}

impl From<CanonicalError> for StoreError {
    fn from(error: CanonicalError) -> StoreError {
        StoreError::Canonical(Arc::new(error))
    }
}
