//! `<home>/server-tokens/<server>.json`: the tokens of one server.
//!
//! The folder is 0700 and the file 0600, both the user's own and no links; anything
//! else is a refusal. A change replaces the file whole. A process that changes it
//! holds the lock beside it.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, flock, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::oauth::text::TokenText;

/// The folder in the home.
const FOLDER: &str = "server-tokens";
/// The whole file, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Sets of tokens in one file: one for each caller, where callers do not share.
const TOKENS_MAX: usize = 1_000;
/// Time between two attempts at the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// How long signing out waits for a process that renews a token.
const REMOVE_WAIT: Duration = Duration::from_secs(60);

/// Why the file is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFileFault {
    /// It, or its folder, is a link, another user's, or open to others.
    #[error("`{0}` is not yours alone; remove it, and sign in again")]
    Foreign(String),
    /// It holds something else.
    #[error("`{0}` holds no tokens; remove it, and sign in again")]
    Spoilt(String),
    /// The system refuses.
    #[error("could not {doing} `{path}`: {what}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: String,
        /// What the system said.
        what: String,
    },
}

/// Whose tokens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct TokenKey {
    /// The server's address, as the settings say it.
    pub(crate) server: String,
    /// The caller, where callers do not share.
    pub(crate) caller: Option<String>,
}

/// One set of tokens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct KeptTokens {
    #[serde(flatten)]
    pub(crate) key: TokenKey,
    /// Who issued them. A refresh token goes to no other.
    pub(crate) issuer: String,
    /// What they are for (RFC 8707).
    pub(crate) resource: String,
    /// Grows with every change, so that two that renew see each other.
    pub(crate) generation: u64,
    pub(crate) token_endpoint: String,
    pub(crate) client: KeptClient,
    pub(crate) scope: Option<String>,
    /// Nothing once the issuer has refused to renew it.
    pub(crate) access: Option<TokenText>,
    pub(crate) refresh: Option<TokenText>,
    /// Seconds since 1970; nothing: not said.
    pub(crate) expires_at: Option<u64>,
}

/// Who we are to the issuer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct KeptClient {
    pub(crate) id: String,
    pub(crate) secret: Option<TokenText>,
    pub(crate) authentication: ClientAuthentication,
}

/// How we show who we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClientAuthentication {
    /// By the id alone.
    None,
    /// In a header.
    ClientSecretBasic,
    /// In the body.
    ClientSecretPost,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TokensFile {
    version: u32,
    tokens: Vec<KeptTokens>,
}

const VERSION: u32 = 1;

/// The file of one server.
#[derive(Clone, Debug)]
pub struct TokenFile {
    folder: PathBuf,
    name: String,
}

/// Which file of tokens there is, if any. With another content it is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenStamp(Option<[u128; 7]>);

/// Held while the file is changed. Dropped, it lets the next one in.
#[derive(Debug)]
pub(crate) struct TokenLock {
    _file: File,
}

impl TokenFile {
    /// The file of a server, which need not exist. The name is one of the settings:
    /// small letters, digits and `-`.
    #[must_use]
    pub fn new(home: &Path, server: &str) -> TokenFile {
        TokenFile {
            folder: home.join(FOLDER),
            name: format!("{server}.json"),
        }
    }

    /// Removes every token of the server: signs out, on this machine. Waits for a process
    /// that changes it, on this thread.
    ///
    /// # Errors
    /// The file cannot be removed, or another process keeps it.
    pub fn remove(&self) -> Result<(), TokenFileFault> {
        let Some(folder) = self.open_folder()? else {
            return Ok(());
        };
        // Attack: a process that renews a token meanwhile would write the file again after
        // the person signed out.
        let end = std::time::Instant::now() + REMOVE_WAIT;
        let _lock = loop {
            match self.try_lock()? {
                Some(lock) => break lock,
                None if std::time::Instant::now() < end => std::thread::sleep(LOCK_PAUSE),
                None => return Err(self.system("lock", io::ErrorKind::TimedOut.into())),
            }
        };
        // By the handle of the folder that was checked, not by its path.
        match unlinkat(&folder, self.name.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.system("remove", error.into())),
        }
    }

    pub(crate) fn find(&self, key: &TokenKey) -> Result<Option<KeptTokens>, TokenFileFault> {
        let all = self.read()?.tokens;
        Ok(all.into_iter().find(|kept| kept.key == *key))
    }

    /// Which file it is now: a change makes another one.
    pub(crate) fn stamp(&self) -> Result<TokenStamp, TokenFileFault> {
        let Some(folder) = self.open_folder()? else {
            return Ok(TokenStamp(None));
        };
        match statat(&folder, self.name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(TokenStamp(Some([
                u128::from(stat.st_dev),
                u128::from(stat.st_ino),
                u128::from(stat.st_size.cast_unsigned()),
                u128::from(stat.st_mtime.cast_unsigned()),
                u128::from(stat.st_mtime_nsec),
                u128::from(stat.st_ctime.cast_unsigned()),
                u128::from(stat.st_ctime_nsec),
            ]))),
            Err(Errno::NOENT) => Ok(TokenStamp(None)),
            Err(error) => Err(self.system("look at", error.into())),
        }
    }

    /// Replaces the tokens of a key. Only for the holder of the lock.
    pub(crate) fn save(&self, tokens: &KeptTokens, _: &TokenLock) -> Result<(), TokenFileFault> {
        let mut file = self.read()?;
        file.version = VERSION;
        file.tokens.retain(|kept| kept.key != tokens.key);
        if file.tokens.len() >= TOKENS_MAX {
            // The oldest goes. Its caller signs in again, and the file stays bounded.
            file.tokens.remove(0);
        }
        file.tokens.push(tokens.clone());
        self.write(&file)
    }

    /// Waits for the lock, no longer than this.
    pub(crate) async fn lock(&self, wait: Duration) -> Result<Option<TokenLock>, TokenFileFault> {
        let end = Instant::now() + wait;
        loop {
            match self.try_lock()? {
                Some(lock) => return Ok(Some(lock)),
                // Polled, because waiting in the kernel would block a thread of the runtime
                // without bound.
                None if Instant::now() < end => sleep(LOCK_PAUSE).await,
                None => return Ok(None),
            }
        }
    }

    /// The lock, if it is free.
    fn try_lock(&self) -> Result<Option<TokenLock>, TokenFileFault> {
        let folder = self.make_folder()?;
        // Attack: a lock that is a link could lock, or make, a file elsewhere.
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = format!("{}.lock", self.name);
        let file = openat(&folder, name.as_str(), flags, Mode::from_raw_mode(0o600));
        let file = file.map_err(|error| self.system("lock", error.into()))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                let _file = File::from(file);
                Ok(Some(TokenLock { _file }))
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(error) => Err(self.system("lock", error.into())),
        }
    }

    fn read(&self) -> Result<TokensFile, TokenFileFault> {
        let Some(folder) = self.open_folder()? else {
            return Ok(TokensFile::default());
        };
        // Attack: a pipe without a writer would be waited for, a link followed.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&folder, self.name.as_str(), flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(TokensFile::default()),
            Err(Errno::LOOP | Errno::NXIO) => return Err(TokenFileFault::Foreign(self.shown())),
            Err(error) => return Err(self.system("read", error.into())),
        };
        let about = file
            .metadata()
            .map_err(|error| self.system("read", error))?;
        if !about.is_file() || !is_own(about.uid(), about.mode()) {
            return Err(TokenFileFault::Foreign(self.shown()));
        }
        let mut bytes = Vec::new();
        let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.system("read", error))?;
        let spoilt = || TokenFileFault::Spoilt(self.shown());
        if u64::try_from(bytes.len()).is_ok_and(|count| count > FILE_BYTES_MAX) {
            return Err(spoilt());
        }
        // The words of the parser may quote what is secret.
        let file: TokensFile = serde_json::from_slice(&bytes).map_err(|_| spoilt())?;
        match file.version {
            VERSION => Ok(file),
            _ => Err(spoilt()),
        }
    }

    fn write(&self, tokens: &TokensFile) -> Result<(), TokenFileFault> {
        let folder = self.make_folder()?;
        let failed = |error: io::Error| self.system("write", error);
        let text = serde_json::to_vec(tokens).map_err(|error| failed(error.into()))?;
        let unfinished = format!("{}.unfinished", self.name);
        // The holder of the lock is the only one that writes, so what is there is the
        // rest of one that died.
        match unlinkat(&folder, unfinished.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error.into())),
        }
        // `EXCL`: a file, or a link, that appears here in between is refused.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let made = openat(&folder, unfinished.as_str(), flags, mode);
        let mut file = File::from(made.map_err(|error| failed(error.into()))?);
        file.write_all(&text).map_err(failed)?;
        // A refresh token that is lost in a power cut cannot be had again.
        file.sync_all().map_err(failed)?;
        let renamed = renameat(&folder, unfinished.as_str(), &folder, self.name.as_str());
        renamed.map_err(|error| failed(error.into()))?;
        // The name as well: until it is on the disk, a power cut brings
        // the old tokens back.
        folder.sync_all().map_err(failed)
    }

    /// The folder, if it is there.
    fn open_folder(&self) -> Result<Option<File>, TokenFileFault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let foreign = || TokenFileFault::Foreign(self.folder.display().to_string());
        let folder = match rustix::fs::open(&self.folder, flags, Mode::empty()) {
            Ok(folder) => File::from(folder),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(foreign()),
            Err(error) => return Err(self.system("open the folder of", error.into())),
        };
        let about = folder.metadata();
        let about = about.map_err(|error| self.system("open the folder of", error))?;
        match is_own(about.uid(), about.mode()) {
            true => Ok(Some(folder)),
            false => Err(foreign()),
        }
    }

    fn make_folder(&self) -> Result<File, TokenFileFault> {
        if let Some(folder) = self.open_folder()? {
            return Ok(folder);
        }
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder);
        made.map_err(|error| self.system("make the folder of", error))?;
        let gone = || self.system("make the folder of", io::ErrorKind::NotFound.into());
        self.open_folder()?.ok_or_else(gone)
    }

    fn shown(&self) -> String {
        self.folder.join(&self.name).display().to_string()
    }

    fn system(&self, doing: &'static str, error: io::Error) -> TokenFileFault {
        TokenFileFault::System {
            doing,
            path: self.shown(),
            what: error.to_string(),
        }
    }
}

/// Only its owner, who is the user, may read or change it.
fn is_own(owner: u32, mode: u32) -> bool {
    owner == rustix::process::geteuid().as_raw() && mode & 0o077 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: a process that renews a token while a person signs out.
    #[tokio::test]
    async fn signing_out_waits_for_one_who_writes() {
        let home = std::env::temp_dir().join(format!("ringfence-tokens-{}", std::process::id()));
        let file = TokenFile::new(&home, "lab");
        let lock = file.lock(Duration::ZERO).await.unwrap().unwrap();
        let other = file.clone();
        let removing = tokio::task::spawn_blocking(move || other.remove());
        let kept = KeptTokens {
            key: TokenKey {
                server: "https://a.example".to_owned(),
                caller: None,
            },
            issuer: String::new(),
            resource: String::new(),
            generation: 1,
            token_endpoint: String::new(),
            client: KeptClient {
                id: String::new(),
                secret: None,
                authentication: ClientAuthentication::None,
            },
            scope: None,
            access: None,
            refresh: None,
            expires_at: None,
        };
        // It has long begun to wait, or not begun at all; either way it comes later.
        sleep(LOCK_PAUSE * 3).await;
        assert!(!removing.is_finished());
        file.save(&kept, &lock).unwrap();
        assert!(file.find(&kept.key).unwrap().is_some());
        drop(lock);
        removing.await.unwrap().unwrap();
        assert!(file.find(&kept.key).unwrap().is_none());
        std::fs::remove_dir_all(home).unwrap();
    }
}
