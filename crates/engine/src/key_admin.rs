//! The keys of callers, for the owner: made, replaced, taken back. What grants something is
//! in the audit before it holds.

use model::govern::key::{self, KeyRecord, Role, Secret};
use model::govern::person::Actor;
use model::nearest::nearest;
use model::record::audit::{Act, Notice};
use model::text;
use model::time::DAY_MS;
use store::keys::Added;
use store::{Keys, StoreError};

use crate::engine::Engine;
use crate::notice::loudly;

/// Why a key is not made or changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    /// The name cannot be a caller's.
    #[error("{0}")]
    Name(String),
    /// The caller has one.
    #[error("`{0}` has a key already; replace it instead")]
    Taken(String),
    /// No caller of that name has one.
    #[error("there is no key of `{0}`")]
    Unknown(String),
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
        key::check_name(name).map_err(KeyFault::Name)?;
        let keys = self.keys()?;
        let is_it = |record: &KeyRecord| record.name.eq_ignore_ascii_case(name);
        if keys.all()?.iter().any(is_it) {
            return Err(KeyFault::Taken(name.to_owned()));
        }
        let id = key::id(random()?);
        let secret = key::key(&id, random()?);
        let now_ms = self.now_ms();
        let record = KeyRecord {
            id,
            name: name.to_owned(),
            role,
            digest: secret.digest(),
            created_ms: now_ms,
            expires_ms: days.map(|days| after(now_ms, days)),
        };
        let made = notice(Act::KeyMade, &record, "a key was made", actor);
        self.notice(made.clone())?;
        let why = match keys.add(&record)? {
            Added::Yes => return Ok((record, secret)),
            Added::IdTaken | Added::TooMany => KeyFault::Full,
            Added::NameTaken => KeyFault::Taken(name.to_owned()),
        };
        loudly(self.store(), self.alarm_of(), made.undone(&why.to_string()));
        Err(why)
    }

    /// Puts another key in the place of a caller's. Its text is shown once.
    pub fn rotate_key(
        &self,
        name: &str,
        days: Option<u32>,
        actor: Actor<'_>,
    ) -> Result<(KeyRecord, Secret), KeyFault> {
        let keys = self.keys()?;
        let mut record = find(&keys, name)?;
        let secret = key::key(&record.id, random()?);
        let now_ms = self.now_ms();
        let lasted = |expires_ms: i64| expires_ms.saturating_sub(record.created_ms);
        record.expires_ms = match days {
            Some(days) => Some(after(now_ms, days)),
            None => record
                .expires_ms
                .map(|expires| now_ms.saturating_add(lasted(expires))),
        };
        record.created_ms = now_ms;
        record.digest = secret.digest();
        let message = "a key was put in the place of another";
        let made = notice(Act::KeyReplaced, &record, message, actor);
        self.notice(made.clone())?;
        if !keys.replace(&record.name, &record.digest, now_ms, record.expires_ms)? {
            let why = "the key was revoked just now";
            loudly(self.store(), self.alarm_of(), made.undone(why));
            return Err(KeyFault::Unknown(record.name));
        }
        Ok((record, secret))
    }

    /// Takes a key back. It is gone whether or not that can be written down.
    pub fn revoke_key(&self, name: &str, actor: Actor<'_>) -> Result<(), KeyFault> {
        let keys = self.keys()?;
        let record = find(&keys, name)?;
        keys.revoke(&record.name)?;
        let taken = notice(Act::KeyRevoked, &record, "a key was taken back", actor);
        loudly(self.store(), self.alarm_of(), taken);
        Ok(())
    }
}

fn find(keys: &Keys, name: &str) -> Result<KeyRecord, KeyFault> {
    let records = keys.all()?;
    let mut found = records
        .iter()
        .filter(|record| record.name.eq_ignore_ascii_case(name));
    found.next().cloned().ok_or_else(|| {
        let known = records.iter().map(|record| record.name.as_str());
        let near = nearest(name, known).map(|near| format!("; did you mean `{near}`?"));
        let shown = text::elided(name, key::NAME_CHARS_MAX);
        KeyFault::Unknown(format!("{shown}{}", near.unwrap_or_default()))
    })
}

fn notice(act: Act, record: &KeyRecord, message: &str, actor: Actor<'_>) -> Notice {
    let notice = Notice::new(act, actor.by, actor.through, message).about(&record.name);
    notice
        .detail("id", &record.id)
        .detail("role", record.role.word())
}

fn after(now_ms: i64, days: u32) -> i64 {
    now_ms.saturating_add(i64::from(days).saturating_mul(DAY_MS))
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], KeyFault> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| KeyFault::Random)?;
    Ok(bytes)
}
