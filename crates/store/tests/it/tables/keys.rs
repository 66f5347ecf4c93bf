//! Keys of callers, across processes.

use model::govern::key::{self, KeyEnd, KeyRecord, Role};
use store::Keys;
use store::keys::Added;

use super::Home;

pub(crate) fn record(name: &str, number: u8) -> KeyRecord {
    let id = key::id([number; key::ID_BYTES]);
    let secret = key::key(&id, [number; key::SECRET_BYTES]);
    KeyRecord {
        id,
        name: name.to_owned(),
        role: Role::Agent,
        digest: secret.digest(),
        created_ms: 5,
        expires_ms: Some(7),
    }
}

#[test]
fn a_key_is_found_until_it_is_revoked() {
    let home = Home::new("keys");
    // Two handles stand for two processes.
    let (one, two) = (
        Keys::open(&home.path).unwrap(),
        Keys::open(&home.path).unwrap(),
    );
    let ada = record("ada", 1);
    assert_eq!(one.add(&ada).unwrap(), Added::Yes);
    assert_eq!(two.find(&ada.id).unwrap(), Some(ada.clone()));
    assert_eq!(two.find("nobody00").unwrap(), None);
    assert_eq!(two.all().unwrap(), std::slice::from_ref(&ada));
    let other = [9; 32];
    assert!(one.replace("ADA", &other, 8, None).unwrap());
    let replaced = two.find(&ada.id).unwrap().unwrap();
    assert_eq!(replaced.digest, other);
    assert_eq!((replaced.created_ms, replaced.expires_ms), (8, None));
    assert!(one.revoke("Ada").unwrap());
    assert_eq!(two.find(&ada.id).unwrap(), None);
    assert!(!one.revoke("ada").unwrap());
    assert!(!one.replace("ada", &other, 8, None).unwrap());
}

#[test]
fn a_former_key_is_known_by_its_digest() {
    let home = Home::new("keys-former");
    let keys = Keys::open(&home.path).unwrap();
    let ada = record("ada", 1);
    keys.add(&ada).unwrap();
    assert_eq!(keys.former(&ada.digest).unwrap(), None);
    let other = [9; 32];
    keys.replace("ADA", &other, 8, None).unwrap();
    let former = keys.former(&ada.digest).unwrap().unwrap();
    assert_eq!(
        (former.name.as_str(), former.end),
        ("ada", KeyEnd::Replaced)
    );
    assert_eq!(keys.former(&other).unwrap(), None);
    keys.revoke("ada").unwrap();
    let former = keys.former(&other).unwrap().unwrap();
    assert_eq!((former.name.as_str(), former.end), ("ada", KeyEnd::Revoked));
    // Only so many are remembered, and the oldest go first.
    home.sql_of_both(
        "UPDATE former_keys SET ended_ms = 1;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
         INSERT INTO former_keys SELECT CAST(printf('%032d', i) AS BLOB), 'eve', 5, 'revoked' FROM n",
        "UPDATE former_keys SET ended_ms = 1;
         INSERT INTO former_keys SELECT convert_to(lpad(i::text, 32, '0'), 'UTF8'), 'eve', 5,
         'revoked' FROM generate_series(1, 1000) i",
    );
    keys.add(&record("bob", 2)).unwrap();
    keys.revoke("bob").unwrap();
    assert_eq!(keys.former(&ada.digest).unwrap(), None);
    assert!(keys.former(&record("bob", 2).digest).unwrap().is_some());
}

#[test]
fn names_and_ids_are_taken_once() {
    let home = Home::new("keys-taken");
    let keys = Keys::open(&home.path).unwrap();
    let ada = record("ada", 1);
    assert_eq!(keys.add(&ada).unwrap(), Added::Yes);
    assert_eq!(keys.add(&record("Ada", 2)).unwrap(), Added::NameTaken);
    assert_eq!(keys.add(&record("eve", 1)).unwrap(), Added::IdTaken);
    assert_eq!(keys.all().unwrap(), [ada]);
}

#[test]
fn an_unknown_role_is_refused() {
    let home = Home::new("keys-role");
    let keys = Keys::open(&home.path).unwrap();
    let ada = record("ada", 1);
    keys.add(&ada).unwrap();
    home.sql_of_both(
        "PRAGMA ignore_check_constraints = ON; UPDATE keys SET role = 'root'",
        "ALTER TABLE keys DROP CONSTRAINT keys_role_check; UPDATE keys SET role = 'root'; \
         UPDATE keys_version SET version = version + 1",
    );
    assert!(keys.find(&ada.id).is_err());
}
