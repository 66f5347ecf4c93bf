//! What is remembered about documents, across processes.

use model::record::audit::Failure;
use store::{Pass, StoreError};

use super::Home;
use crate::scratch::fill;

pub(crate) fn pass(name: &str, digest: &str, ok: bool) -> Pass {
    Pass {
        digest: digest.to_owned(),
        name: name.to_owned(),
        ok,
        at_ms: 5,
        error: (!ok).then(|| Failure {
            code: "tool.threw".to_owned(),
            message: "no".to_owned(),
        }),
        elapsed_ms: 7,
    }
}

#[test]
fn only_what_passed_is_published() {
    let home = Home::new("publish");
    let store = home.store();
    let publications = store.publications();
    let is_refused = |name, digest| {
        let refused = publications.publish(name, digest, 1);
        matches!(refused, Err(StoreError::NoPass { .. }))
    };
    assert!(is_refused("hello", "d1"));
    publications
        .record_pass(&pass("hello", "d1", false))
        .unwrap();
    assert!(is_refused("hello", "d1"));
    assert_eq!(
        publications.pass("d1").unwrap(),
        Some(pass("hello", "d1", false))
    );
    publications
        .record_pass(&pass("hello", "d1", true))
        .unwrap();
    assert!(is_refused("another", "d1"));
    assert!(is_refused("hello", "d2"));
    publications.publish("hello", "d1", 1).unwrap();
    let all = publications.all().unwrap();
    assert_eq!(all.published["hello"], "d1");
    assert_eq!(all.passes["d1"], pass("hello", "d1", true));
    // A new digest takes the place of the old, once it has passed.
    publications
        .record_pass(&pass("hello", "d2", true))
        .unwrap();
    publications.publish("hello", "d2", 2).unwrap();
    assert_eq!(publications.all().unwrap().published["hello"], "d2");
    assert!(publications.unpublish("hello").unwrap());
    assert!(!publications.unpublish("hello").unwrap());
    assert_eq!(publications.pass("absent").unwrap(), None);
}

/// The rule is the database's, whoever writes to it.
#[test]
fn sql_cannot_publish_what_has_not_passed() {
    let home = Home::new("trigger");
    let store = home.store();
    store
        .publications()
        .record_pass(&pass("hello", "d1", true))
        .unwrap();
    store
        .publications()
        .record_pass(&pass("hello", "d2", false))
        .unwrap();
    store.publications().publish("hello", "d1", 1).unwrap();
    for sql in [
        "INSERT INTO published VALUES ('x', 'd2', 1)",
        "INSERT INTO published VALUES ('x', 'd3', 1)",
        "INSERT INTO published VALUES ('hello', 'd2', 1) ON CONFLICT (name) \
         DO UPDATE SET digest = 'd2'",
        "UPDATE published SET digest = 'd2'",
        "DELETE FROM passes WHERE digest = 'd1'",
    ] {
        assert!(home.try_sql(sql).is_err(), "{sql}");
    }
}

#[test]
fn a_change_by_any_process_changes_the_version() {
    let home = Home::new("version");
    let (here, there) = (home.store(), home.store());
    let mut last = here.publications().version().unwrap();
    let mut assert_moved = |what: &str, is_moved: bool| {
        let now = here.publications().version().unwrap();
        assert_eq!(there.publications().version().unwrap(), now);
        assert_eq!(now != last, is_moved, "{what}");
        last = now;
    };
    there
        .publications()
        .record_pass(&pass("hello", "d1", true))
        .unwrap();
    assert_moved("a pass there", true);
    here.publications().publish("hello", "d1", 1).unwrap();
    assert_moved("publishing here", true);
    there.publications().unpublish("hello").unwrap();
    assert_moved("unpublishing there", true);
    there.publications().unpublish("hello").unwrap();
    here.publications()
        .publish("hello", "absent", 1)
        .unwrap_err();
    assert_moved("nothing", false);
    fill(&here, 0..20);
    assert_moved("calls", false);
}

/// What one tool was granted is no other's, not even of the same name elsewhere.
#[test]
fn grants_belong_to_a_tool_and_a_place() {
    let home = Home::new("grants");
    let store = home.store();
    let publications = store.publications();
    let words = |needs: &[&str]| needs.iter().map(|need| (*need).to_owned()).collect();
    let granted = |tool: &str, place: &str| -> Vec<String> {
        let all = publications.all().unwrap();
        all.grants.of(tool, place).iter().cloned().collect()
    };
    let both: Vec<String> = words(&["host a.example", "variable KEY"]);
    let before = publications.version().unwrap();
    assert!(publications.grant(("one", ""), &both, "flag", 1).unwrap());
    assert_ne!(publications.version().unwrap(), before, "others are told");
    assert!(!publications.grant(("one", ""), &both, "flag", 2).unwrap());
    let file: Vec<String> = words(&["write"]);
    assert!(
        publications
            .grant(("one", "/f.json"), &file, "terminal", 1)
            .unwrap()
    );
    assert_eq!(granted("one", ""), ["host a.example", "variable KEY"]);
    assert_eq!(granted("one", "/f.json"), ["write"]);
    assert_eq!(granted("two", ""), [""; 0]);
    assert!(
        publications
            .revoke(("one", ""), Some("variable KEY"))
            .unwrap()
    );
    assert!(
        !publications
            .revoke(("one", ""), Some("variable KEY"))
            .unwrap()
    );
    assert_eq!(granted("one", ""), ["host a.example"]);
    assert!(publications.revoke(("one", ""), None).unwrap());
    assert_eq!(granted("one", ""), [""; 0]);
    assert_eq!(granted("one", "/f.json"), ["write"]);
}

/// Of two decisions about what a server offered, only one on the list that is there counts.
#[test]
fn a_decision_about_a_server_is_on_what_it_offered() {
    let home = Home::new("servers");
    let store = home.store();
    let publications = store.publications();
    let record = || publications.all().unwrap().servers["git"].clone();
    let before = publications.version().unwrap();
    assert!(publications.save_seen("git", "list one", 5).unwrap());
    assert!(
        !publications.save_seen("git", "list one", 6).unwrap(),
        "the same list"
    );
    assert_ne!(publications.version().unwrap(), before, "others are told");
    let reviewed = record();
    assert_eq!(
        (&*reviewed.pins, &*reviewed.seen, reviewed.seen_ms),
        ("", "list one", 5)
    );
    assert!(publications.save_seen("git", "list two", 7).unwrap());
    assert!(
        !publications
            .save_pins("git", &reviewed, "all of it")
            .unwrap()
    );
    assert_eq!(&*record().pins, "");
    assert!(
        publications
            .save_pins("git", &record(), "all of it")
            .unwrap()
    );
    assert_eq!((&*record().pins, record().restarts), ("all of it", 0));
    publications.restart_server("git").unwrap();
    assert_eq!(record().restarts, 1);
    assert!(publications.forget_server("git").unwrap());
    assert!(!publications.forget_server("git").unwrap());
}
