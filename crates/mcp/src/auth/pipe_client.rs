//! The client at the other end of a pipe: the caller of the key it shows, or `CALLER`
//! without one.
//!
//! A key is looked up at every request, as over HTTP. Whatever started this process
//! chose what it shows; what keeps another program from showing the same key is that
//! it cannot read it.

use std::sync::Arc;

use model::caller::Caller;
use model::govern::key::{self, KeyDigest, KeyForm, Role};

use crate::auth::clock::AuthClock;
use crate::auth::key_lookup::{KeyFault, KeyLookup, find_holder};

/// The name the rules and the audit know a client by that shows no key.
pub const CALLER: &str = "stdio";

/// The client at a pipe.
#[derive(Clone, Debug)]
pub struct PipeClient(Shows);

#[derive(Clone, Debug)]
enum Shows {
    Nothing,
    Key {
        id: String,
        digest: KeyDigest,
        keys: Arc<dyn KeyLookup>,
        clock: AuthClock,
    },
}

impl PipeClient {
    /// A client without a key.
    #[must_use]
    pub fn unnamed() -> PipeClient {
        PipeClient(Shows::Nothing)
    }

    /// A client with a key. `None` if the text is not spelt like a key.
    #[must_use]
    pub fn keyed(text: &str, keys: Arc<dyn KeyLookup>, clock: AuthClock) -> Option<PipeClient> {
        let Some(KeyForm::Key(id)) = key::read(text) else {
            return None;
        };
        Some(PipeClient(Shows::Key {
            id: id.to_owned(),
            // The key itself is not kept.
            digest: key::digest(text),
            keys,
            clock,
        }))
    }

    /// Its caller now, or why its key is refused.
    pub fn caller(&self) -> Result<Caller, String> {
        let Shows::Key {
            id,
            digest,
            keys,
            clock,
        } = &self.0
        else {
            return Ok(Caller::named(CALLER));
        };
        let found = find_holder(keys.as_ref(), id, digest, clock.now().unix_ms);
        let record = found.map_err(|fault| match fault {
            KeyFault::Unavailable => {
                "the keys cannot be looked up just now; try again later".to_owned()
            }
            KeyFault::Wrong => "the key of this client is wrong or was revoked".to_owned(),
            KeyFault::Former(former) => former.sentence(),
            KeyFault::Expired => "the key of this client has expired".to_owned(),
        })?;
        match record.role {
            Role::Agent => Ok(Caller::named(record.name)),
            Role::Operator => {
                Err("an operator's key answers questions and cannot call tools".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use model::govern::key::KeyRecord;

    use super::*;

    #[derive(Debug)]
    struct Book(Mutex<Result<Option<KeyRecord>, String>>);

    impl KeyLookup for Book {
        fn find(&self, _: &str) -> Result<Option<KeyRecord>, String> {
            self.0.lock().expect("a lock").clone()
        }
    }

    #[test]
    fn a_key_is_valid_while_it_is_stored() {
        let id = key::id([1; key::ID_BYTES]);
        let (secret, other) = (key::key(&id, [2; 32]), key::key(&id, [3; 32]));
        let record = KeyRecord {
            id: id.clone(),
            name: "cursor".to_owned(),
            role: Role::Agent,
            digest: secret.digest(),
            created_ms: 0,
            expires_ms: None,
        };
        let book = Arc::new(Book(Mutex::new(Ok(Some(record.clone())))));
        let set = |found| *book.0.lock().expect("a lock") = found;
        let client = |text: &str| PipeClient::keyed(text, book.clone(), AuthClock::system());
        let keyed = client(secret.reveal()).expect("a key");
        assert_eq!(keyed.caller(), Ok(Caller::named("cursor")));
        assert!(client(other.reveal()).expect("a key").caller().is_err());
        for odd in ["", "rf_", "cursor", key::local_token([4; 32]).reveal()] {
            assert!(client(odd).is_none(), "{odd}");
        }
        let expired = KeyRecord {
            expires_ms: Some(1),
            ..record.clone()
        };
        let operator = KeyRecord {
            role: Role::Operator,
            ..record
        };
        for found in [
            Ok(None),
            Ok(Some(expired)),
            Ok(Some(operator)),
            Err("the disk is gone".to_owned()),
        ] {
            set(found);
            assert!(keyed.caller().is_err());
        }
        assert_eq!(PipeClient::unnamed().caller(), Ok(Caller::named(CALLER)));
    }
}
