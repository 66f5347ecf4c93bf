//! Keys of callers, across processes.

use model::govern::key::{self, KeyEnd, KeyRecord, Role};
use store::Keys;
use store::keys::Added;

use crate::scratch::Home;

fn record(name: &str, number: u8) -> KeyRecord {
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
    home.sql(
        "UPDATE former_keys SET ended_ms = 1;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
         INSERT INTO former_keys SELECT CAST(printf('%032d', i) AS BLOB), 'eve', 5, 'revoked' FROM n",
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
fn only_the_digest_is_in_the_home() {
    let home = Home::new("keys-digest");
    let keys = Keys::open(&home.path).unwrap();
    let ada = record("ada", 1);
    keys.add(&ada).unwrap();
    let secret = key::key(&ada.id, [1; key::SECRET_BYTES]);
    drop(keys);
    for entry in std::fs::read_dir(&home.path).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(secret.reveal().split_at(12).1));
    }
}

#[test]
fn a_home_from_before_keys_gets_them() {
    let home = Home::new("keys-older");
    drop(home.store());
    home.sql(
        "DROP TABLE trust; DROP TABLE feedback; DROP TABLE callers; DROP TABLE tallies;
         DROP TABLE callers_version; DROP TABLE script_steps; DROP TABLE script_journals;
         DROP TABLE keys; DROP TABLE audit_mark; DROP TABLE tool_grants; DROP TABLE servers;
         DROP TABLE former_keys;
         DROP TABLE audit_signed; DROP TABLE witnessed; DROP TABLE jobs;
         DROP TABLE person_codes; DROP TABLE person_sessions; DROP TABLE published_texts;
         DROP TRIGGER approvals_changed; ALTER TABLE approvals DROP COLUMN changed;
         ALTER TABLE approvals DROP COLUMN changed_binding;
         ALTER TABLE approvals DROP COLUMN why; PRAGMA user_version = 2",
    );
    let keys = Keys::open(&home.path).unwrap();
    assert_eq!(keys.add(&record("ada", 1)).unwrap(), Added::Yes);
    drop(home.store());
    assert_eq!(keys.all().unwrap().len(), 1);
}

#[test]
fn an_unknown_role_is_refused() {
    let home = Home::new("keys-role");
    let keys = Keys::open(&home.path).unwrap();
    let ada = record("ada", 1);
    keys.add(&ada).unwrap();
    home.sql("PRAGMA ignore_check_constraints = ON; UPDATE keys SET role = 'root'");
    assert!(keys.find(&ada.id).is_err());
}
