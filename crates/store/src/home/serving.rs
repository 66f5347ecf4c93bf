//! Where the servers of a home listen. A server holds the lock of a small file that names its
//! addresses, and removes the file when it ends; other commands read it instead of guessing
//! from the settings.
//!
//! Attack: another program listens where a server is expected, and a person types a sign-in
//! code into its page. So an address counts only while the server that wrote it is alive: the
//! kernel releases the lock however a process ends. It is a lock of the open file (`flock`), not
//! of the process as in `home::process`: what a dying server was starting may hold it for a
//! moment longer, which does no harm here.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use model::text::is_hidden;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::StoreError;
use crate::limit;

/// Bits that let anyone but the owner do something with a file.
const OPEN_TO_OTHERS: u32 = 0o077;

/// Where a server can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedAddress {
    /// What it is bound to.
    pub listen: SocketAddr,
    /// What people and clients know it by, without a path.
    pub url: String,
}

/// The addresses of a server that runs, told until this is dropped.
#[derive(Debug)]
pub struct ServedLock {
    path: PathBuf,
    file: File,
}

impl Drop for ServedLock {
    fn drop(&mut self) {
        // While it is still locked: after that the name may belong to another server, as it may
        // if a person removed the file by hand.
        if is_at(&self.path, &self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Tells the other processes of a home where this one serves. Nothing is told beyond
/// [`limit::SERVING_FILES_MAX`] servers of one home.
pub fn tell(home: &Path, served: &ServedAddress) -> Result<Option<ServedLock>, StoreError> {
    for path in paths(home) {
        let Some(file) = take(&path)? else {
            continue;
        };
        // Made before the rest can fail, so that a half-written file is removed.
        let lock = ServedLock {
            path: path.clone(),
            file,
        };
        let text = format!("{}\n{}\n", served.listen, served.url);
        let written = lock.file.set_len(0);
        let written = written.and_then(|()| (&lock.file).write_all(text.as_bytes()));
        written.map_err(|error| StoreError::file("write", &path, error))?;
        return Ok(Some(lock));
    }
    Ok(None)
}

/// The servers of a home that run now.
pub fn running(home: &Path) -> Result<Vec<ServedAddress>, StoreError> {
    let mut found = Vec::new();
    for path in paths(home) {
        let Some(file) = open(&path, OpenOptions::new().read(true))? else {
            continue;
        };
        // Shared: another command that looks at the same moment must not look like a server.
        match file.try_lock_shared() {
            // The server that wrote it is dead.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => found.extend(read(file)),
            Err(TryLockError::Error(error)) => {
                return Err(StoreError::file("look at", &path, error));
            }
        }
    }
    Ok(found)
}

/// The files of a home that servers may take, first come, first served.
fn paths(home: &Path) -> impl Iterator<Item = PathBuf> {
    (1..=limit::SERVING_FILES_MAX).map(move |number| home.join(format!("serving-{number}")))
}

/// Locks a file, making it if it is not there. Nothing if another server has it.
fn take(path: &Path) -> Result<Option<File>, StoreError> {
    for _ in 0..limit::SERVING_ATTEMPTS_MAX {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        options.truncate(false).mode(0o600);
        let Some(file) = open(path, &mut options)? else {
            continue;
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(StoreError::file("lock", path, error)),
        }
        // A server that ended may have removed it before we locked it.
        if is_at(path, &file) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// Opens a file that is this user's alone. Nothing if it is not there.
fn open(path: &Path, options: &mut OpenOptions) -> Result<Option<File>, StoreError> {
    let refused = || {
        let why = "it is a link, or not a file of yours alone; remove it";
        Err(StoreError::file("use", path, io::Error::other(why)))
    };
    // Attack: a link in its place leads a write to another file, and a pipe waits for its
    // other end.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match options.custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => return refused(),
        Err(error) => return Err(StoreError::file("open", path, error)),
    };
    let about = file.metadata();
    let about = about.map_err(|error| StoreError::file("look at", path, error))?;
    let user = rustix::process::geteuid().as_raw();
    let is_ours = about.is_file() && about.uid() == user && about.mode() & OPEN_TO_OTHERS == 0;
    match is_ours {
        true => Ok(Some(file)),
        false => refused(),
    }
}

/// Whether a path still leads to an open file.
fn is_at(path: &Path, file: &File) -> bool {
    let identity = |about: fs::Metadata| (about.dev(), about.ino());
    match (fs::symlink_metadata(path), file.metadata()) {
        (Ok(there), Ok(held)) => identity(there) == identity(held),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// The addresses in a file; nothing if it is not whole, as that of a server that only begins.
fn read(file: File) -> Option<ServedAddress> {
    let mut text = String::new();
    let mut file = file.take(limit::SERVING_BYTES_MAX);
    file.read_to_string(&mut text).ok()?;
    let (listen, url) = text.strip_suffix('\n')?.split_once('\n')?;
    let is_url = url.starts_with("http://") || url.starts_with("https://");
    let is_plain = !url
        .chars()
        .any(|letter| letter.is_whitespace() || is_hidden(letter));
    (is_url && is_plain).then_some(ServedAddress {
        listen: listen.parse().ok()?,
        url: url.to_owned(),
    })
}
