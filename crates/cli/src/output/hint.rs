//! What to do about an error that a newcomer meets: a home that cannot be written, a
//! kernel that lacks a layer of the sandbox, a clock that is wrong. The error says what
//! went wrong; this says what helps.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use engine::EngineError;
use engine::health::layer_fix;
use model::text::shell_argument;
use sandbox::pool::StartError;
use store::{OtherUsers, StoreError};

/// The users that systemd gives to units with `DynamicUser=`.
const UNIT_USERS: RangeInclusive<u32> = 61_184..=65_519;
/// Where the folders of such units are; only root and the unit itself can enter it.
const UNIT_FOLDERS: &str = "/var/lib/private";
/// How an operator runs a command on the home of the unit of our package. The guide
/// `install.md` shows the same line.
const BESIDE_THE_UNIT: &str = "that is the home of a systemd unit: as root, run the command beside it with \
    `systemd-run --quiet --pty --pipe --wait --collect -p DynamicUser=yes -p User=ringfence -p StateDirectory=ringfence -E RINGFENCE_HOME=/var/lib/ringfence ringfence …`";

/// What helps, if that is known.
pub(crate) fn of(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        // The engine passes errors of the store on as its own.
        let engine = cause.downcast_ref::<EngineError>();
        let store = match engine {
            Some(EngineError::Store(fault)) => Some(fault),
            Some(_) | None => cause.downcast_ref::<StoreError>(),
        };
        if let Some(store) = store {
            return of_store(store);
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
        StoreError::Writable { path, who } => Some(of_writable(path, *who)),
        _ => None,
    }
}

/// A home that other users can write to.
fn of_writable(path: &Path, who: OtherUsers) -> String {
    let shown = shell_argument(&path.display().to_string());
    let is_root = rustix::process::geteuid().is_root();
    match who {
        OtherUsers::Anyone => format!("`chmod go-w {shown}`"),
        OtherUsers::Owner(user) if UNIT_USERS.contains(&user) || is_of_unit(path) => {
            BESIDE_THE_UNIT.to_owned()
        }
        // Root does not obey the settings of another user, but can become that user.
        OtherUsers::Owner(user) if is_root => {
            let group = std::fs::metadata(path).map_or(user, |about| about.gid());
            format!(
                "`setpriv --reuid={user} --regid={group} --clear-groups ringfence …` runs the command as that user"
            )
        }
        OtherUsers::Owner(_) => {
            let own = rustix::process::geteuid().as_raw();
            format!(
                "if it is yours, root can give it to you with `chown -R {own} {shown}`; else choose another home with `--home DIR` or RINGFENCE_HOME"
            )
        }
    }
}

/// Whether a path leads to the folder of a unit with a user of its own.
fn is_of_unit(path: &Path) -> bool {
    path.ancestors().any(|above| {
        // Beside the link `/var/lib/NAME` to `private/NAME`.
        let beside = above.parent().unwrap_or(above);
        let leads =
            std::fs::read_link(above).is_ok_and(|to| beside.join(to).starts_with(UNIT_FOLDERS));
        leads || above.starts_with(UNIT_FOLDERS)
    })
}

fn of_home(path: &Path, kind: ErrorKind) -> Option<String> {
    let shown = path.display();
    match kind {
        ErrorKind::PermissionDenied => {
            if is_of_unit(path) {
                return Some(BESIDE_THE_UNIT.to_owned());
            }
            let user = rustix::process::geteuid().as_raw();
            Some(format!(
                "user {user} may not use it: make it theirs with `chown {user}` and `chmod u+rwx`, or choose another home with `--home DIR` or RINGFENCE_HOME"
            ))
        }
        ErrorKind::ReadOnlyFilesystem => Some(format!(
            "`{shown}` is on a read-only file system: choose another home with `--home DIR` or RINGFENCE_HOME, or mount it writable"
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
