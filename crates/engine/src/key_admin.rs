//! The keys of callers, for the owner: created, replaced, revoked. What grants something is
//! in the audit before it holds.

use std::fmt;
use std::path::Path;

use model::govern::key::{self, KeyRecord, Role, Secret};
use model::govern::person::Actor;
use model::nearest::nearest;
use model::record::audit::{Act, Notice};
use model::text;
use model::time::DAY_MS;
use store::keys::Added;
use store::{Keys, StoreError};

use crate::engine::Engine;

/// Why a key is not made or changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    /// The name cannot be a caller's.
    #[error("{0}")]
    Name(String),
    /// The caller has one.
    #[error("`{0}` has a key already; `ringfence keys rotate {0}` replaces it")]
    Taken(String),
    /// No caller of that name has one.
    #[error("there is no key of `{name}`{}", hint(.nearest.as_deref()))]
    Unknown {
        /// The name.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// Another process took it back meanwhile.
    #[error("`{0}` was revoked just now")]
    JustRevoked(String),
    /// Its id is another one's.
    #[error("the id of the key is taken; try again")]
    IdTaken,
    /// It could not be written down, so no key was created.
    #[error("no key was created: it could not be recorded in the audit")]
    Unrecorded(#[source] StoreError),
    /// There are too many.
    #[error("there are too many keys; revoke some")]
    Full,
    /// The machine gives no random numbers.
    #[error("this machine gives no random numbers")]
    Random,
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn hint(nearest: Option<&str>) -> String {
    nearest
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}

/// Writes a notice into the audit.
pub type WriteNotice<'a> = &'a dyn Fn(Notice) -> Result<(), StoreError>;

/// Changes the keys of a home. It needs no settings: a key can be revoked even if they are
/// broken.
#[derive(Clone, Copy)]
pub struct KeyAdmin<'a> {
    /// The home folder.
    pub home: &'a Path,
    /// Writes a notice into the audit.
    pub write: WriteNotice<'a>,
    /// Who changes them.
    pub actor: Actor<'a>,
    /// What time it is.
    pub now_ms: i64,
}

impl fmt::Debug for KeyAdmin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyAdmin").finish_non_exhaustive()
    }
}

impl KeyAdmin<'_> {
    /// Makes a key for a caller that has none. Its text is shown once.
    ///
    /// # Errors
    /// The name is odd or has a key, or it could not be written down.
    pub fn make(
        &self,
        name: &str,
        role: Role,
        days: Option<u32>,
    ) -> Result<(KeyRecord, Secret), KeyFault> {
        let (record, secret) = self.mint(name, role, days)?;
        self.keep(&record)?;
        Ok((record, secret))
    }

    /// A key that is not kept yet.
    ///
    /// # Errors
    /// The name is odd or has a key.
    pub fn mint(
        &self,
        name: &str,
        role: Role,
        days: Option<u32>,
    ) -> Result<(KeyRecord, Secret), KeyFault> {
        key::check_name(name).map_err(KeyFault::Name)?;
        let is_it = |record: &KeyRecord| record.name.eq_ignore_ascii_case(name);
        // Asked early for a better answer. The store refuses a second key of a name in
        // any case.
        if Keys::open(self.home)?.all()?.iter().any(is_it) {
            return Err(KeyFault::Taken(name.to_owned()));
        }
        let id = key::id(random()?);
        let secret = key::key(&id, random()?);
        let record = KeyRecord {
            id,
            name: name.to_owned(),
            role,
            digest: secret.digest(),
            created_ms: self.now_ms,
            expires_ms: days.map(|days| after(self.now_ms, days)),
        };
        Ok((record, secret))
    }

    /// Keeps a key, after the audit has a notice about it.
    ///
    /// # Errors
    /// It could not be written down, or there is no room.
    pub fn keep(&self, record: &KeyRecord) -> Result<(), KeyFault> {
        let keys = Keys::open(self.home)?;
        let made = self.notice(Act::KeyMade, record, "a key was created");
        (self.write)(made.clone()).map_err(KeyFault::Unrecorded)?;
        let why = match keys.add(record) {
            Ok(Added::Yes) => return Ok(()),
            // Ids have forty random bits, so this practically never happens.
            Ok(Added::IdTaken) => KeyFault::IdTaken,
            Ok(Added::TooMany) => KeyFault::Full,
            Ok(Added::NameTaken) => KeyFault::Taken(record.name.clone()),
            Err(fault) => KeyFault::Store(fault),
        };
        (self.write)(made.undone(&why.to_string()))?;
        Err(why)
    }

    /// Puts another key in the place of a caller's. Its text is shown once.
    ///
    /// # Errors
    /// There is none, or it could not be written down.
    pub fn rotate(&self, name: &str, days: Option<u32>) -> Result<(KeyRecord, Secret), KeyFault> {
        let keys = Keys::open(self.home)?;
        let mut record = find(&keys, name)?;
        let secret = key::key(&record.id, random()?);
        // Without a number of days it lasts as long as the one before was made for.
        let lasted = |expires_ms: i64| expires_ms.saturating_sub(record.created_ms);
        record.expires_ms = match days {
            Some(days) => Some(after(self.now_ms, days)),
            None => record
                .expires_ms
                .map(|expires| self.now_ms.saturating_add(lasted(expires))),
        };
        record.created_ms = self.now_ms;
        record.digest = secret.digest();
        let message = "a key was put in the place of another";
        let made = self.notice(Act::KeyReplaced, &record, message);
        (self.write)(made.clone()).map_err(KeyFault::Unrecorded)?;
        if !keys.replace(&record.name, &record.digest, self.now_ms, record.expires_ms)? {
            let why = KeyFault::JustRevoked(record.name);
            (self.write)(made.undone(&why.to_string()))?;
            return Err(why);
        }
        Ok((record, secret))
    }

    /// Takes a key back. It is gone whether or not that can be written down, which the second
    /// part of the answer says.
    ///
    /// # Errors
    /// There is none.
    pub fn revoke(&self, name: &str) -> Result<(KeyRecord, Result<(), StoreError>), KeyFault> {
        let keys = Keys::open(self.home)?;
        let record = find(&keys, name)?;
        keys.revoke(&record.name)?;
        let taken = self.notice(Act::KeyRevoked, &record, "a key was revoked");
        let written = (self.write)(taken);
        Ok((record, written))
    }

    fn notice(&self, act: Act, record: &KeyRecord, message: &str) -> Notice {
        let Actor { by, through } = self.actor;
        let notice = Notice::new(act, by, through, message).about(&record.name);
        let notice = notice.detail("id", &record.id);
        let notice = notice.detail("role", record.role.word());
        match record.expires_ms {
            Some(expires_ms) => notice.detail("expires", &day(expires_ms)),
            None => notice,
        }
    }
}

impl Engine {
    /// The keys of this home.
    pub fn keys(&self) -> Result<Keys, StoreError> {
        Keys::open(self.home())
    }

    /// Makes a key for a caller that has none. Its text is shown once.
    pub fn make_key(
        &self,
        name: &str,
        role: Role,
        days: Option<u32>,
        actor: Actor<'_>,
    ) -> Result<(KeyRecord, Secret), KeyFault> {
        self.with_keys(actor, |admin| admin.make(name, role, days))
    }

    /// Puts another key in the place of a caller's. Its text is shown once.
    pub fn rotate_key(
        &self,
        name: &str,
        days: Option<u32>,
        actor: Actor<'_>,
    ) -> Result<(KeyRecord, Secret), KeyFault> {
        self.with_keys(actor, |admin| admin.rotate(name, days))
    }

    /// Takes a key back. It is gone whether or not that can be written down.
    pub fn revoke_key(&self, name: &str, actor: Actor<'_>) -> Result<(), KeyFault> {
        let (record, written) = self.with_keys(actor, |admin| admin.revoke(name))?;
        if let Err(fault) = written {
            let name = &record.name;
            self.alarm(&format!(
                "the key of `{name}` was revoked, but the audit log does not say so: {fault}"
            ));
        }
        Ok(())
    }

    fn with_keys<T>(&self, actor: Actor<'_>, work: impl FnOnce(KeyAdmin<'_>) -> T) -> T {
        work(KeyAdmin {
            home: self.home(),
            write: &|notice| self.notice(notice),
            actor,
            now_ms: self.now_ms(),
        })
    }
}

fn find(keys: &Keys, name: &str) -> Result<KeyRecord, KeyFault> {
    let records = keys.all()?;
    let mut found = records
        .iter()
        .filter(|record| record.name.eq_ignore_ascii_case(name));
    found.next().cloned().ok_or_else(|| {
        let known = records.iter().map(|record| record.name.as_str());
        KeyFault::Unknown {
            name: text::elided(name, key::NAME_CHARS_MAX),
            nearest: nearest(name, known).map(str::to_owned),
        }
    })
}

/// `2026-01-31` of a moment, UTC.
fn day(at_ms: i64) -> String {
    let moment = model::time::date(at_ms);
    moment.unwrap_or_else(|| "-".to_owned())
}

fn after(now_ms: i64, days: u32) -> i64 {
    now_ms.saturating_add(i64::from(days).saturating_mul(DAY_MS))
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], KeyFault> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| KeyFault::Random)?;
    Ok(bytes)
}
