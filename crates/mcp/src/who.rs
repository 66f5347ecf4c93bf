//! Who is at the other end of a pipe: a client that shows a key, or one that shows
//! nothing and is known as [`CALLER`].
//!
//! A key is looked up at every request, as at the gate: one that was revoked opens
//! nothing from the next request on. Whatever started this process chose what it shows;
//! what keeps another program from showing the same key is that it cannot read it.

use std::sync::Arc;

use model::caller::Caller;
use model::govern::key::{self, KeyDigest, Presented, Role};
use subtle::ConstantTimeEq as _;

use crate::gate::{Clock, KeyBook};

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
        book: Arc<dyn KeyBook>,
        clock: Clock,
    },
}

impl PipeClient {
    /// One that shows nothing.
    #[must_use]
    pub fn unnamed() -> PipeClient {
        PipeClient(Shows::Nothing)
    }

    /// One that shows a key. Nothing if what it shows is not spelt like one.
    #[must_use]
    pub fn keyed(text: &str, book: Arc<dyn KeyBook>, clock: Clock) -> Option<PipeClient> {
        let Some(Presented::Key(id)) = key::read(text) else {
            return None;
        };
        Some(PipeClient(Shows::Key {
            id: id.to_owned(),
            digest: key::digest(text),
            book,
            clock,
        }))
    }

    /// Who it is at this moment, or why it is nobody.
    pub fn caller(&self) -> Result<Caller, &'static str> {
        let Shows::Key {
            id,
            digest,
            book,
            clock,
        } = &self.0
        else {
            return Ok(Caller::named(CALLER));
        };
        // Invariant 13: keys that cannot be looked up open nothing, and say so.
        let found = book.find(id);
        let found = found.map_err(|_| "the keys cannot be looked up just now; try again later")?;
        let is_right = |expected: &KeyDigest| bool::from(expected.ct_eq(digest));
        let record = found
            .filter(|record| is_right(&record.digest))
            .ok_or("the key of this client is wrong or was revoked")?;
        if record.is_expired(clock.now().unix_ms) {
            return Err("the key of this client has expired");
        }
        match record.role {
            Role::Agent => Ok(Caller::named(record.name)),
            Role::Operator => Err("an operator's key answers questions and calls no tools"),
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

    impl KeyBook for Book {
        fn find(&self, _: &str) -> Result<Option<KeyRecord>, String> {
            self.0.lock().expect("a lock").clone()
        }
    }

    #[test]
    fn a_key_counts_while_it_is_kept() {
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
        let client = |text: &str| PipeClient::keyed(text, book.clone(), Clock::system());
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
