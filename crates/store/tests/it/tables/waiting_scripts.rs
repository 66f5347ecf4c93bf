//! Texts of scripts whose calls ask a person, across processes.

use super::Home;

/// Longer than any question and its answer take together.
const LONG_AFTER_MS: i64 = 10 * 24 * 3_600_000;

#[test]
fn a_text_kept_by_one_process_is_seen_by_all_until_its_script_ends() {
    let home = Home::new("waiting-scripts");
    let (here, there) = (home.store(), home.store());
    let keep = |of, text, at_ms| here.waiting_scripts().keep(of, text, at_ms).unwrap();
    let find = |id: &str| there.waiting_scripts().find(id).unwrap();
    assert_eq!(find("call-1"), None);
    keep(("script-1", "call-1"), "a key", 1);
    keep(("script-1", "call-2"), "a ***", 2);
    keep(("script-2", "call-3"), "other", 2);
    // What is masked for one question is masked for all of the script.
    assert_eq!(find("call-1").as_deref(), Some("a ***"));
    assert_eq!(find("call-2").as_deref(), Some("a ***"));
    there.waiting_scripts().forget("script-1").unwrap();
    assert_eq!((find("call-1"), find("call-2")), (None, None));
    assert_eq!(find("call-3").as_deref(), Some("other"));
    // Its process died: the text goes when no question can wait for it.
    keep(("script-4", "call-4"), "x", LONG_AFTER_MS);
    assert_eq!(find("call-3"), None);
}

/// Attack: texts and numbers of them beyond their bounds, and ids that are statements.
#[test]
fn no_more_texts_are_kept_than_are_allowed() {
    let home = Home::new("waiting-scripts-many");
    let store = home.store();
    let scripts = store.waiting_scripts();
    let long = "x".repeat((1 << 20) + 1);
    scripts.keep(("s", "long"), &long, 1).unwrap();
    assert_eq!(scripts.find("long").unwrap(), None);
    for at in 0..256 + 3 {
        let id = format!("{at:03}");
        scripts.keep((&id, &id), "x", at).unwrap();
    }
    assert_eq!(scripts.find("002").unwrap(), None, "the oldest give way");
    assert!(scripts.find("003").unwrap().is_some());
    let id = "' OR 1 = 1 --";
    assert_eq!(scripts.find(id).unwrap(), None);
    scripts.forget(id).unwrap();
    assert!(scripts.find("258").unwrap().is_some());
}
