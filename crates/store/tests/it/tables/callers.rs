//! What is remembered about callers, across processes and past clumsy hands.

use model::govern::access::AccessLevel;
use model::govern::trust::{Feedback, Track, TrustState};
use model::limits;
use store::callers::{FeedbackRow, Paused, Raise, TrustSave};

use super::Home;

fn track(level: AccessLevel, since_ms: i64) -> Track {
    Track {
        level,
        since_ms,
        verified_ms: since_ms,
    }
}

pub(crate) fn state(level: AccessLevel, since_ms: i64) -> TrustState {
    TrustState {
        all: track(level, since_ms),
        categories: [("WEB".to_owned(), track(AccessLevel::Sandboxed, 1))].into(),
    }
}

pub(crate) fn paused() -> Paused {
    Paused {
        at_ms: 7,
        by: "owner".to_owned(),
        why: None,
    }
}

#[test]
fn every_process_sees_a_change_and_it_stays() {
    let home = Home::new("callers");
    let (one, two) = (home.store(), home.store());
    let before = two.callers().version().unwrap();
    let nothing = one.callers().change("Ann", 5, |row| row.denials.in_a_row);
    assert_eq!(nothing.unwrap(), Some(0));
    assert_eq!(two.callers().version().unwrap(), before, "nothing changed");
    assert_eq!(two.callers().all().unwrap(), []);
    let denied = one.callers().change("Ann", 5, |row| {
        row.denials = row.denials.denied();
        row.paused = Some(paused());
    });
    assert_eq!(denied.unwrap(), Some(()));
    assert_ne!(two.callers().version().unwrap(), before);
    let row = two.callers().get("ANN").unwrap().unwrap();
    assert_eq!((row.name.as_str(), row.shown.as_str()), ("ann", "Ann"));
    assert_eq!((row.denials.in_all, &row.paused), (1, &Some(paused())));
    drop((one, two));
    assert_eq!(home.store().callers().all().unwrap(), [row]);
}

/// Two processes that reckon at the same time: what one kept, the other does not
/// overwrite.
#[test]
fn trust_is_saved_once() {
    let home = Home::new("callers-trust");
    let store = home.store();
    let callers = store.callers();
    let (low, high) = (
        state(AccessLevel::Restricted, 1),
        state(AccessLevel::Standard, 2),
    );
    let version = callers.version().unwrap();
    assert_eq!(
        callers.keep_trust("ann", None, &low, 1).unwrap(),
        TrustSave::Yes
    );
    assert_eq!(
        callers.version().unwrap(),
        version,
        "what all start with is no news"
    );
    assert_eq!(
        callers.keep_trust("ann", None, &high, 2).unwrap(),
        TrustSave::Changed
    );
    let keep = |before, after| callers.keep_trust("ANN", Some(before), after, 3).unwrap();
    assert_eq!(keep(&low, &high), TrustSave::Yes);
    assert_ne!(callers.version().unwrap(), version);
    assert_eq!(keep(&low, &low), TrustSave::Changed);
    let row = callers.get("ann").unwrap().unwrap();
    assert_eq!((row.trust, row.evaluated_ms), (Some(high), Some(3)));
}

/// Whatever code or hand asks: nobody is elevated without somebody who agreed.
#[test]
fn an_elevated_level_names_who_agreed() {
    let home = Home::new("callers-elevated");
    let store = home.store();
    let callers = store.callers();
    let standard = state(AccessLevel::Standard, 5);
    let elevated = state(AccessLevel::Elevated, 6);
    callers.keep_trust("ann", None, &standard, 1).unwrap();
    let alone = callers.keep_trust("ann", Some(&standard), &elevated, 2);
    assert!(alone.is_err(), "{alone:?}");
    assert!(
        home.try_sql("UPDATE trust SET level = 'elevated'").is_err(),
        "nobody agreed"
    );
    assert!(home.try_sql("UPDATE trust SET level = 'root'").is_err());
    let raise = |since_ms| {
        let raise = Raise {
            category: None,
            from: track(AccessLevel::Standard, since_ms),
            to: track(AccessLevel::Elevated, 9),
            by: "owner".to_owned(),
        };
        callers.raise("Ann", &raise).unwrap()
    };
    assert!(!raise(4), "another track than the one that was asked about");
    assert!(raise(5));
    assert!(!raise(5), "once");
    let raised = callers.get("ann").unwrap().unwrap().trust.unwrap();
    assert_eq!(raised.all, track(AccessLevel::Elevated, 9));
    // Saved as it is, it stays agreed to; lost, it takes another person.
    let again = callers.keep_trust("ann", Some(&raised), &raised, 3);
    assert_eq!(again.unwrap(), TrustSave::Yes);
    let lost = callers.keep_trust("ann", Some(&raised), &standard, 4);
    assert_eq!(lost.unwrap(), TrustSave::Yes);
    assert!(
        callers
            .keep_trust("ann", Some(&standard), &elevated, 5)
            .is_err()
    );
    // An operator who begins there said so.
    let begins = callers.keep_trust("bob", None, &elevated, 1);
    assert_eq!(begins.unwrap(), TrustSave::Yes);
}

/// So many are remembered. Whoever is paused or earned something makes no room.
#[test]
fn callers_are_bounded_and_the_paused_stay() {
    let home = Home::new("callers-full");
    let store = home.store();
    let callers = store.callers();
    callers
        .change("paused", 0, |row| row.paused = Some(paused()))
        .unwrap();
    callers
        .keep_trust("earned", None, &state(AccessLevel::Restricted, 1), 0)
        .unwrap();
    let most = limits::CALLERS_MAX;
    home.sql(&format!(
        "WITH RECURSIVE n (i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < {most})
         INSERT INTO callers (name, shown, in_all, changed_ms)
         SELECT 'caller-' || i, 'x', 1, i FROM n"
    ));
    let deny = |name: &str| {
        callers
            .change(name, 9, |row| row.denials = row.denials.denied())
            .unwrap()
    };
    assert_eq!(deny("new"), Some(()));
    let names: Vec<_> = callers
        .all()
        .unwrap()
        .into_iter()
        .map(|row| row.name)
        .collect();
    assert_eq!(u64::try_from(names.len()).unwrap(), most);
    let has = |name: &str| names.iter().any(|one| one == name);
    assert!(has("paused") && has("earned") && has("new"));
    assert!(!has("caller-3") && has("caller-4"), "the oldest went");
    home.sql("UPDATE callers SET paused_ms = 1, paused_by = 'owner'");
    assert_eq!(deny("newer"), None);
    let kept = callers.keep_trust("newer", None, &state(AccessLevel::Restricted, 1), 0);
    assert_eq!(kept.unwrap(), TrustSave::Full);
    let said = FeedbackRow {
        feedback: Feedback {
            at_ms: 1,
            score: 5,
            category: None,
        },
        note: None,
        by: "owner".to_owned(),
    };
    assert!(!callers.add_feedback("newer", &said).unwrap());
    assert!(callers.add_feedback("earned", &said).unwrap());
    assert_eq!(callers.feedback("EARNED").unwrap(), [said]);
}

/// An issuer's subjects are told apart to the letter; our own names are not.
#[test]
fn subjects_of_an_issuer_are_case_sensitive() {
    let home = Home::new("callers-subjects");
    let store = home.store();
    let callers = store.callers();
    let pause = |name: &str| callers.change(name, 5, |row| row.paused = Some(paused()));
    pause("oauth:kim").unwrap();
    for other in ["oauth:KIM", "oauth:\u{212a}im", "kim"] {
        assert_eq!(callers.get(other).unwrap(), None, "{other}");
    }
    pause("Ann").unwrap();
    assert!(callers.get("aNN").unwrap().unwrap().paused.is_some());
}
