//! What to do about an error that a newcomer meets: a home that cannot be written, a
//! kernel that lacks a layer of the sandbox, a clock that is wrong. The error says what
//! went wrong; this says what helps.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use engine::EngineError;
use engine::health::layer_fix;
use sandbox::pool::StartError;
use store::StoreError;

/// What helps, if that is known.
pub(crate) fn of(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        // The engine passes errors of the store on as its own.
        let engine = cause.downcast_ref::<EngineError>();
        let store = match engine {
            Some(EngineError::Store(fault)) => Some(fault),
            Some(_) | None => cause.downcast_ref::<StoreError>(),
        };
        if let Some(StoreError::File { path, source, .. }) = store {
            return of_home(path, source.kind());
        }
        if let Some(HomeUnwritable { path, source }) = cause.downcast_ref() {
            return of_home(path, source.kind());
        }
        match cause.downcast_ref::<StartError>()? {
            StartError::Layer { layer, .. } => Some(format!(
                "{}; `ringfence doctor` checks every layer",
                layer_fix(*layer)
            )),
            StartError::Spawn(_) | StartError::Ended | StartError::Late => Some(
                "`ringfence doctor` tries a worker and says what the system refuses".to_owned(),
            ),
            StartError::Hello(_) | StartError::Guest(_) => {
                Some("the program was replaced while it ran: start it again".to_owned())
            }
            StartError::Closed => None,
        }
    })
}

/// A file of the home that a command could not write itself.
#[derive(Debug)]
pub(crate) struct HomeUnwritable {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

impl fmt::Display for HomeUnwritable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "could not write {}", self.path.display())
    }
}

impl Error for HomeUnwritable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

/// The same for an error of the store alone.
pub(crate) fn of_store(fault: &StoreError) -> Option<String> {
    match fault {
        StoreError::File { path, source, .. } => of_home(path, source.kind()),
        _ => None,
    }
}

fn of_home(path: &Path, kind: ErrorKind) -> Option<String> {
    let path = path.display();
    match kind {
        ErrorKind::PermissionDenied => {
            let user = rustix::process::geteuid().as_raw();
            Some(format!(
                "user {user} may not write there: make it theirs with `chown {user}` and `chmod u+rwx`, or choose another home with `--home DIR` or RINGFENCE_HOME"
            ))
        }
        ErrorKind::ReadOnlyFilesystem => Some(format!(
            "`{path}` is on a read-only file system: choose another home with `--home DIR` or RINGFENCE_HOME, or mount it writable"
        )),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some(
            "the disk is full: free some space, or choose another home with `--home DIR`"
                .to_owned(),
        ),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => Some(
            "a file is in the place of a folder: choose another home with `--home DIR`".to_owned(),
        ),
        _ => None,
    }
}
