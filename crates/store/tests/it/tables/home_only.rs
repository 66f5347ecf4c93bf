//! What only a home has: files beside its database, and databases of older versions.

use model::govern::access::AccessLevel;
use model::govern::key;
use store::Keys;
use store::callers::TrustSave;
use store::keys::Added;

use super::on_sqlite::Home;
use super::on_sqlite::callers::{paused, state};
use super::on_sqlite::keys::record;
use super::on_sqlite::publications::pass;

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
         DROP TABLE person_codes; DROP TABLE person_sessions; DROP TABLE published_texts; DROP TABLE waiting_scripts;
         DROP TRIGGER approvals_changed; ALTER TABLE approvals DROP COLUMN changed;
         ALTER TABLE approvals DROP COLUMN changed_binding;
         ALTER TABLE approvals DROP COLUMN why; PRAGMA user_version = 2",
    );
    let keys = Keys::open(&home.path).unwrap();
    assert_eq!(keys.add(&record("ada", 1)).unwrap(), Added::Yes);
    drop(home.store());
    assert_eq!(keys.all().unwrap().len(), 1);
}

/// Rows of a home in which subjects were folded: whoever was paused stays so under every
/// name it had, and what was earned in common is gone.
#[test]
fn folded_subjects_stay_paused_and_earn_again() {
    let home = Home::new("callers-folded");
    let store = home.store();
    for name in ["oauth:kim", "ann"] {
        let kept = store
            .callers()
            .keep_trust(name, None, &state(AccessLevel::Standard, 1), 5);
        assert_eq!(kept.unwrap(), TrustSave::Yes);
        let pause = |row: &mut store::callers::CallerRow| row.paused = Some(paused());
        store.callers().change(name, 5, pause).unwrap();
    }
    drop(store);
    home.sql(
        "UPDATE callers SET shown = 'oauth:KIM' WHERE name = 'oauth:kim';
         UPDATE callers SET shown = 'Ann' WHERE name = 'ann';
         DROP TABLE tool_grants; DROP TABLE servers; DROP TABLE former_keys;
         DROP TABLE audit_signed; DROP TABLE witnessed; DROP TABLE jobs;
         DROP TABLE person_codes; DROP TABLE person_sessions; DROP TABLE published_texts; DROP TABLE waiting_scripts;
         DROP TRIGGER approvals_changed; ALTER TABLE approvals DROP COLUMN changed;
         ALTER TABLE approvals DROP COLUMN changed_binding;
         ALTER TABLE approvals DROP COLUMN why; PRAGMA user_version = 7",
    );
    let store = home.store();
    let get = |name: &str| store.callers().get(name).unwrap();
    for name in ["oauth:kim", "oauth:KIM"] {
        let row = get(name).unwrap();
        assert_eq!((row.paused, row.trust), (Some(paused()), None), "{name}");
    }
    let ann = get("ann").unwrap();
    assert!(ann.paused.is_some() && ann.trust.is_some());
    assert_eq!(get("oauth:Kim"), None);
}

/// The file with the counter is removed by hand, or a process died before it was
/// written: nobody goes on with what is out of date.
#[test]
fn a_lost_counter_is_a_change() {
    let home = Home::new("counter");
    let (here, there) = (home.store(), home.store());
    here.publications()
        .record_pass(&pass("hello", "d1", true))
        .unwrap();
    let before = here.publications().version().unwrap();
    std::fs::remove_file(home.path.join("standing.version")).unwrap();
    there.publications().publish("hello", "d1", 1).unwrap();
    let after = here.publications().version().unwrap();
    assert_ne!(after, before);
    there.publications().unpublish("hello").unwrap();
    assert_ne!(here.publications().version().unwrap(), after);

    let before = here.publications().version().unwrap();
    home.sql("UPDATE standing SET version = version + 1");
    drop(home.store());
    assert_ne!(here.publications().version().unwrap(), before);
}
