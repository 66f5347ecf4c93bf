//! The token of the owner's own machine: a file in the home folder that only its
//! owner can read. Made at the first start, so that a server on loopback is not open to
//! every web page and program there.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use model::govern::key::{self, Secret};
use ring::rand::{SecureRandom as _, SystemRandom};

/// The file in the home folder.
pub const TOKEN_FILE: &str = "token";
/// Longer than any token with its line break.
const FILE_BYTES_MAX: u64 = 256;

/// A token, and whether it is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalToken {
    /// The token.
    pub secret: Secret,
    /// The file that holds it.
    pub path: PathBuf,
    /// Whether this is the one time to show it.
    pub is_new: bool,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be used.
    #[error("cannot {doing} `{}`", .path.display())]
    File {
        /// The failed action.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Others can read it, so it is no secret any more.
    #[error(
        "others can read `{}`, so it is no secret any more; remove it, and a new one is made at the next start",
        .path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// It is a link, a folder or another user's.
    #[error("`{}` is not a file of yours; remove it, and a new one is made at the next start", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Its content is not a token.
    #[error("`{}` holds no token; remove it, and a new one is made at the next start", .path.display())]
    Spoilt {
        /// The file.
        path: PathBuf,
    },
    /// The service manager's credential is not a token.
    #[error(
        "`{}` holds no token; load the file `token` that a first start without it makes in the home folder",
        .path.display()
    )]
    Credential {
        /// The file.
        path: PathBuf,
    },
    /// The machine gives no random numbers.
    #[error("the system provides no random bytes")]
    Random,
}

/// Random bytes from the machine.
pub fn random<const N: usize>() -> Result<[u8; N], TokenError> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| TokenError::Random)?;
    Ok(bytes)
}

/// The token of a home, made if there is none. Two servers that start at once get the
/// same token.
pub fn open(home: &Path) -> Result<LocalToken, TokenError> {
    let path = home.join(TOKEN_FILE);
    if let Some(secret) = read(&path)? {
        return Ok(LocalToken {
            secret,
            path,
            is_new: false,
        });
    }
    make_folder(home)?;
    let secret = key::local_token(random()?);
    if write(home, &path, &secret)? {
        return Ok(LocalToken {
            secret,
            path,
            is_new: true,
        });
    }
    // Another process was faster.
    match read(&path)? {
        Some(secret) => Ok(LocalToken {
            secret,
            path,
            is_new: false,
        }),
        None => Err(TokenError::Spoilt { path }),
    }
}

/// The token a service manager handed over: `text`, read from `path`. It is never
/// created here, so anything else than a token is an error.
pub fn handed_over(text: &str, path: PathBuf) -> Result<LocalToken, TokenError> {
    match key::read_local_token(text) {
        Some(secret) => Ok(LocalToken {
            secret,
            path,
            is_new: false,
        }),
        None => Err(TokenError::Credential { path }),
    }
}

/// A home that is not there yet, for its owner alone. One that is stays as it is.
fn make_folder(home: &Path) -> Result<(), TokenError> {
    if home.is_dir() {
        return Ok(());
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(home);
    made.map_err(|source| TokenError::File {
        doing: "create",
        path: home.to_owned(),
        source,
    })
}

fn read(path: &Path) -> Result<Option<Secret>, TokenError> {
    let fail = |source| TokenError::File {
        doing: "read",
        path: path.to_owned(),
        source,
    };
    // Looked at before it is opened: opening a pipe would wait for its writer.
    let about = match fs::symlink_metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    if !about.is_file() {
        return Err(TokenError::Foreign {
            path: path.to_owned(),
        });
    }
    let file = File::open(path).map_err(fail)?;
    // Asked of the open file: the path may name another file by now.
    let about = file.metadata().map_err(fail)?;
    if !about.is_file() {
        return Err(TokenError::Foreign {
            path: path.to_owned(),
        });
    }
    if about.mode() & 0o077 != 0 {
        return Err(TokenError::Open {
            path: path.to_owned(),
        });
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(fail)?;
    let secret = key::read_local_token(&text).ok_or_else(|| TokenError::Spoilt {
        path: path.to_owned(),
    })?;
    Ok(Some(secret))
}

/// Writes the token whole or not at all. Returns whether our file got the name.
fn write(home: &Path, path: &Path, secret: &Secret) -> Result<bool, TokenError> {
    let fail = |source| TokenError::File {
        doing: "write",
        path: path.to_owned(),
        source,
    };
    let unfinished = home.join(format!(".{TOKEN_FILE}.{}.tmp", key::id(random()?)));
    let written = write_whole(&unfinished, secret);
    // A link takes the name only if it is free.
    let named = written.and_then(|()| fs::hard_link(&unfinished, path));
    let _ = fs::remove_file(&unfinished);
    match named {
        Ok(()) => {
            // The name must be on the disk: clients use the token from now on.
            let folder = File::open(home).and_then(|folder| folder.sync_all());
            folder.map_err(fail)?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(fail(error)),
    }
}

fn write_whole(path: &Path, secret: &Secret) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        // Readable by its owner alone from the first moment.
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{}", secret.reveal())?;
    file.sync_all()
}
