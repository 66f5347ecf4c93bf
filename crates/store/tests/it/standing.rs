//! What is remembered about documents.

use store::{Pass, StoreError};

use crate::home::Home;

fn pass(digest: &str, ok: bool) -> Pass {
    Pass {
        digest: digest.to_owned(),
        name: "hello".to_owned(),
        ok,
        at_ms: 5,
        error: None,
        elapsed_ms: 7,
    }
}

#[test]
fn only_what_passed_is_published() {
    let home = Home::new("publish");
    let store = home.store();
    let standing = store.standing();
    let refused = standing.publish("hello", "d1", 1);
    assert!(matches!(refused, Err(StoreError::NoPass { .. })));
    standing.record_pass(&pass("d1", false)).unwrap();
    let refused = standing.publish("hello", "d1", 1);
    assert!(matches!(refused, Err(StoreError::NoPass { .. })));
    standing.record_pass(&pass("d1", true)).unwrap();
    let refused = standing.publish("another", "d1", 1);
    assert!(matches!(refused, Err(StoreError::NoPass { .. })));
    let before = standing.version().unwrap();
    standing.publish("hello", "d1", 1).unwrap();
    assert_ne!(standing.version().unwrap(), before);
    let all = standing.all().unwrap();
    assert_eq!(all.published["hello"], "d1");
    assert_eq!(all.passes["d1"], pass("d1", true));
    assert!(standing.unpublish("hello").unwrap());
    assert!(!standing.unpublish("hello").unwrap());
}
