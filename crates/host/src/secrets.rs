//! Values for the placeholders of static variables, beside the environment:
//! `<home>/secrets.env`, and above it the credentials of the service manager.
//!
//! The file is used only if no other user can read it or has put it there: a regular
//! file, no link, the user's own, mode 0600 or stricter. Anything else is a refusal
//! that names the mend, never a silent empty set. It is looked at again for each
//! call, so a variable set later works without a restart.

mod credential;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use model::Environment;
use model::sync::lock;
use model::text::shell_argument;
use rustix::fs::{Mode, OFlags};

pub use credential::{CREDENTIALS_MAX, Credentials, TOKEN_CREDENTIAL};

/// The whole file, in bytes.
pub const SECRETS_BYTES_MAX: u64 = 256 * 1024;

/// The only bits of the mode that may be set: reading and writing by the owner.
const MODE_MAX: u32 = 0o600;

/// A file changed less than this ago may change again without its times telling.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Why the file is not used. Each message is one sentence and names the mend.
#[derive(Debug, thiserror::Error)]
pub enum SecretsFault {
    /// The path is a link; what it leads to may belong to another user.
    #[error("`{0}` is a symbolic link; put the file itself there")]
    Link(String),
    /// A folder, a pipe or a device.
    #[error("`{0}` is not a regular file; put a file of NAME=value lines there")]
    NotRegular(String),
    /// It belongs to another user.
    #[error("`{0}` belongs to another user; run `chown \"$(id -un)\" {file}`", file = shell_argument(.0))]
    Owner(String),
    /// Others may read or change it.
    #[error("`{path}` has mode {mode:04o}, so others may use it; run `chmod 600 {file}`", file = shell_argument(.path))]
    Mode {
        /// The file.
        path: String,
        /// Its permissions.
        mode: u32,
    },
    /// It is larger than a file of secrets may be.
    #[error("`{0}` has more than {SECRETS_BYTES_MAX} bytes; keep only NAME=value lines in it")]
    TooLarge(String),
    /// It is not text.
    #[error("`{0}` is not UTF-8; keep only NAME=value lines in it")]
    NotText(String),
    /// A line is neither empty, nor a comment, nor `NAME=value`. The line itself
    /// is not shown: it may be half of a secret.
    #[error("line {line} of `{path}` is not NAME=value; write it so, or put `#` before it")]
    Line {
        /// The file.
        path: String,
        /// From 1.
        line: usize,
    },
    /// The credentials folder is no folder that only its owner can change.
    #[error(
        "`{0}` is no folder of credentials that only you and root can change; let the service manager make it"
    )]
    Folder(String),
    /// There are too many credentials.
    #[error("`{0}` holds more than {CREDENTIALS_MAX} credentials; load only those that tools need")]
    TooMany(String),
    /// A credential is named like no variable.
    #[error(
        "the credential `{0}` is named like no variable; use letters, digits and `_`, or `{TOKEN_CREDENTIAL}` for the token"
    )]
    Name(String),
    /// The system refuses.
    #[error("could not read `{path}`; see that you may read it")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

/// The file of secrets, read when it is asked for.
#[derive(Debug)]
pub struct Secrets {
    path: PathBuf,
    credentials: Option<Credentials>,
    kept: Mutex<Option<Kept>>,
}

/// What was read, and of which state of the file.
#[derive(Debug)]
struct Kept {
    state: State,
    values: Environment,
}

/// What changes when the file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Secrets {
    /// The file at this path, which need not exist. Nothing is read yet.
    #[must_use]
    pub fn open(path: impl Into<PathBuf>) -> Secrets {
        Secrets {
            path: path.into(),
            credentials: None,
            kept: Mutex::default(),
        }
    }

    /// The same, and above the file what the service manager handed over.
    #[must_use]
    pub fn with_credentials(self, credentials: Option<Credentials>) -> Secrets {
        Secrets {
            credentials,
            ..self
        }
    }

    /// What the credentials and the file hold now; nothing if there are none.
    pub fn read(&self) -> Result<Environment, SecretsFault> {
        let file = self.read_file()?;
        match &self.credentials {
            Some(credentials) => Ok(credentials.values()?.over(&file)),
            None => Ok(file),
        }
    }

    fn read_file(&self) -> Result<Environment, SecretsFault> {
        let mut kept = lock(&self.kept);
        let Some((file, state)) = checked(&self.path, Keeper::User)? else {
            *kept = None;
            return Ok(Environment::empty());
        };
        if let Some(kept) = kept.as_ref().filter(|kept| kept.state == state) {
            return Ok(kept.values.clone());
        }
        let values = parsed(file, &self.path)?;
        // Not kept while the file is young: it could change again within one
        // tick of the clock.
        *kept = is_settled(state).then(|| Kept {
            state,
            values: values.clone(),
        });
        Ok(values)
    }

    /// The one lookup order: what the environment has, then the credentials, then what
    /// the file has.
    pub fn below(&self, environment: &Environment) -> Result<Environment, SecretsFault> {
        Ok(environment.over(&self.read()?))
    }
}

/// Who may own a file of secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeper {
    /// The user alone.
    User,
    /// The user, or root for the user: a service manager leaves its credentials to root
    /// and lets the service's user read them by an access list, whose mask the mode shows
    /// as the group's bits.
    System,
}

impl Keeper {
    /// The bits of the mode that may be set on a file of this owner.
    fn mode_max(self, owner: u32) -> Option<u32> {
        let user = rustix::process::geteuid().as_raw();
        match self {
            _ if owner == user => Some(MODE_MAX),
            Keeper::System if owner == 0 => Some(MODE_MAX | 0o040),
            Keeper::User | Keeper::System => None,
        }
    }
}

/// Opens the file and asks the open file itself, so that nothing can be swapped in
/// between. Nothing if there is no file.
fn checked(path: &Path, keeper: Keeper) -> Result<Option<(File, State)>, SecretsFault> {
    let shown = || path.display().to_string();
    let failed = |source| SecretsFault::Read {
        path: shown(),
        source,
    };
    // Attack: opening a pipe without a writer waits forever unless it is non-blocking.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(rustix::io::Errno::LOOP) => return Err(SecretsFault::Link(shown())),
        // What opening a socket says.
        Err(rustix::io::Errno::NXIO) => return Err(SecretsFault::NotRegular(shown())),
        Err(error) => return Err(failed(error.into())),
    };
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(SecretsFault::NotRegular(shown()));
    }
    let Some(mode_max) = keeper.mode_max(metadata.uid()) else {
        return Err(SecretsFault::Owner(shown()));
    };
    // All twelve bits: a set-user bit on a file of secrets is a sign of a mistake too.
    let mode = metadata.mode() & 0o7777;
    if mode & !mode_max != 0 {
        let path = shown();
        return Err(SecretsFault::Mode { path, mode });
    }
    if metadata.len() > SECRETS_BYTES_MAX {
        return Err(SecretsFault::TooLarge(shown()));
    }
    let state = State {
        device: metadata.dev(),
        inode: metadata.ino(),
        bytes: metadata.len(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    };
    Ok(Some((file, state)))
}

fn parsed(file: File, path: &Path) -> Result<Environment, SecretsFault> {
    let text = text(file, path)?;
    let mut values = Environment::empty();
    let read = values.read_lines(&text);
    read.map_err(|line| SecretsFault::Line {
        path: path.display().to_string(),
        line,
    })?;
    Ok(values)
}

fn text(file: File, path: &Path) -> Result<String, SecretsFault> {
    let shown = || path.display().to_string();
    let mut bytes = Vec::new();
    let read = file.take(SECRETS_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|source| SecretsFault::Read {
        path: shown(),
        source,
    })?;
    // It may have grown since it was looked at.
    if u64::try_from(bytes.len()).is_ok_and(|count| count > SECRETS_BYTES_MAX) {
        return Err(SecretsFault::TooLarge(shown()));
    }
    String::from_utf8(bytes).map_err(|_| SecretsFault::NotText(shown()))
}

/// Whether the next change is sure to change the times too.
fn is_settled(state: State) -> bool {
    let (seconds, _) = state.changed.max(state.modified);
    let since_epoch = Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX));
    let changed = SystemTime::UNIX_EPOCH.checked_add(since_epoch);
    changed
        .and_then(|changed| SystemTime::now().duration_since(changed).ok())
        .is_some_and(|age| age > SETTLED_AFTER)
}
