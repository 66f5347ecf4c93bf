//! Entries: written, read back, filtered, verified.

use model::audit::Status;
use store::{Filter, Found};

use crate::home::{Home, closing, fill, opening, wait};

#[test]
fn an_entry_is_read_back_as_it_was_written() {
    let home = Home::new("entry");
    let store = home.store();
    let (row_sequence, link) = wait(async {
        let row = store.audit().open(opening(1)).await.unwrap();
        store.audit().secure(&row).await.unwrap();
        let sequence = row.sequence();
        let link = store.audit().close(row, closing(Status::Done)).await;
        (sequence, link.unwrap())
    });
    let entries = store.audit().list(&Filter::default()).unwrap();
    assert_eq!(entries.len(), 1);
    let entry = &entries[0];
    assert_eq!(entry.opening, opening(1));
    assert_eq!(entry.closing, Some(closing(Status::Done)));
    assert_eq!(
        (entry.sequence, entry.closed_sequence),
        (row_sequence, Some(2))
    );
    assert_eq!((link.sequence, &link.hash), (2, &entry.hash));
    let verified = store.audit().verify(None).unwrap();
    assert_eq!(verified.broken, None);
    assert_eq!(
        (verified.records, verified.entries, verified.open),
        (2, 1, 0)
    );
}

#[test]
fn a_dropped_row_ends_as_cancelled() {
    let home = Home::new("dropped");
    let store = home.store();
    drop(wait(store.audit().open(opening(1))).unwrap());
    // The next row waits its turn behind the end of the first.
    fill(&store, 2..3);
    let Found::One(entry) = store.audit().find(&opening(1).call_id).unwrap() else {
        panic!("one entry");
    };
    let closing = entry.closing.unwrap();
    assert_eq!(closing.status, Status::Cancelled);
    assert_eq!(closing.error.unwrap().code, "call.cancelled");
}

#[test]
fn filters_choose() {
    let home = Home::new("filter");
    let store = home.store();
    fill(&store, 0..100);
    let count = |filter: Filter| store.audit().list(&filter).unwrap().len();
    assert_eq!(count(Filter::default()), 100);
    let tool = Some("tool-3".to_owned());
    assert_eq!(
        count(Filter {
            tool: tool.clone(),
            ..Filter::default()
        }),
        10
    );
    let failed = Some(Status::Failed);
    assert_eq!(
        count(Filter {
            status: failed,
            ..Filter::default()
        }),
        10
    );
    assert_eq!(
        count(Filter {
            tool,
            status: failed,
            ..Filter::default()
        }),
        1
    );
    let since_ms = Some(1_700_000_000_090);
    assert_eq!(
        count(Filter {
            since_ms,
            ..Filter::default()
        }),
        10
    );
    assert_eq!(
        count(Filter {
            until_ms: since_ms,
            limit: Some(7),
            ..Filter::default()
        }),
        7
    );
    let newest = store
        .audit()
        .list(&Filter {
            limit: Some(2),
            ..Filter::default()
        })
        .unwrap();
    assert_eq!(newest[0].opening, opening(99));
    let before = Some(newest[1].sequence);
    let next = store
        .audit()
        .list(&Filter {
            limit: Some(1),
            before,
            ..Filter::default()
        })
        .unwrap();
    assert_eq!(next[0].opening, opening(97));
}

#[test]
fn an_edit_by_hand_is_named() {
    let home = Home::new("edit");
    let store = home.store();
    fill(&store, 0..10);
    home.sql("UPDATE records SET body = replace(body, 'tool-3', 'tool-4') WHERE sequence = 7");
    let broken = store.audit().verify(None).unwrap().broken.unwrap();
    assert_eq!(broken.sequence, 7);
    assert_eq!(broken.call_id, Some(opening(3).call_id));
}
