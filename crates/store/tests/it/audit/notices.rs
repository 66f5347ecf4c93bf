//! What is done beside calls: in the chain, in lists, in exports, and when it goes.

use model::record::audit::chain::Record;
use model::record::audit::{Act, Notice, Shadow, Status, walk};
use store::{AuditItem, Filter, FoundEntry, Retention, Rows, Store, StoreError, StoreSettings};

use crate::scratch::{BODY, Home, KIND, closing, fill, line, opening, wait};

fn notice(act: Act, about: &str) -> Notice {
    let notice = Notice::new(act, "ann", "cli", "it was done");
    notice.about(about).detail("digest", "00ff")
}

fn rows(rows: Rows) -> Filter {
    Filter {
        rows,
        ..Filter::default()
    }
}

fn exported(store: &Store, filter: &Filter) -> Vec<Record> {
    let mut records = Vec::new();
    let each = &mut |record: &Record| {
        records.push(record.clone());
        Ok(())
    };
    store.audit().export(filter, each).unwrap();
    records
}

/// Three calls with notices between them, and whoever reads after the index
/// followed and before.
fn world(home: &Home) -> Store {
    let store = home.store();
    store
        .audit()
        .notice(notice(Act::ToolPublished, "hello"))
        .unwrap();
    fill(&store, 0..2);
    store.audit().notice(notice(Act::KeyMade, "bob")).unwrap();
    drop(store);
    // Whoever opens next finds it indexed.
    let store = home.store();
    fill(&store, 2..3);
    store
        .audit()
        .notice(notice(Act::KeyRevoked, "bob"))
        .unwrap();
    store
}

#[test]
fn notices_are_links_of_the_chain() {
    let home = Home::new("notices");
    let store = world(&home);
    let verified = store.audit().verify(None).unwrap();
    assert_eq!(verified.broken, None);
    assert_eq!(
        (verified.records, verified.entries, verified.notices),
        (9, 3, 3)
    );
    let records = exported(&store, &Filter::default());
    let elsewhere = walk::verify(&records, Some(&store.audit().head().unwrap()));
    assert_eq!((elsewhere.broken, elsewhere.notices), (None, 3));
}

#[test]
fn lists_show_calls_notices_or_both() {
    let home = Home::new("notices-listed");
    let store = world(&home);
    let shown = |filter: &Filter| -> Vec<String> {
        let items = store.audit().items(filter).unwrap();
        let word = |item: AuditItem| match item {
            AuditItem::Call(entry) => entry.opening.tool,
            AuditItem::Notice(entry) => entry.notice.act.word().to_owned(),
        };
        items.into_iter().map(word).collect()
    };
    let all = [
        "key.revoked",
        "tool-2",
        "key.made",
        "tool-1",
        "tool-0",
        "tool.published",
    ];
    assert_eq!(shown(&rows(Rows::All)), all);
    assert_eq!(shown(&rows(Rows::Calls)), ["tool-2", "tool-1", "tool-0"]);
    assert_eq!(
        shown(&rows(Rows::Notices)),
        ["key.revoked", "key.made", "tool.published"]
    );
    let with = |change: &dyn Fn(&mut Filter)| {
        let mut filter = rows(Rows::All);
        change(&mut filter);
        shown(&filter)
    };
    assert_eq!(
        with(&|filter| filter.tool = Some("hello".to_owned())),
        ["tool.published"]
    );
    assert_eq!(with(&|filter| filter.limit = Some(2)), all[..2]);
    assert_eq!(
        with(&|filter| filter.before = Some(6)),
        ["tool-1", "tool-0", "tool.published"]
    );
    let bob = with(&|filter| filter.caller = Some("bob".to_owned()));
    assert_eq!(bob, ["key.revoked", "key.made"]);
    let made = with(&|filter| {
        filter.rows = Rows::Notices;
        filter.act = Some(Act::KeyMade);
    });
    assert_eq!(made, ["key.made"]);
    let done = with(&|filter| filter.status = Some(Status::Done));
    assert_eq!(done, ["tool-2", "tool-1"]);
}

#[test]
fn a_notice_is_found_by_its_id() {
    let home = Home::new("notices-found");
    let store = world(&home);
    for entry in store.audit().notices(&Filter::default()).unwrap() {
        let found = store.audit().find(&entry.notice.id).unwrap();
        assert_eq!(found, FoundEntry::Notice(Box::new(entry)));
    }
    // All of them were made in one moment.
    let ids = store.audit().notices(&Filter::default()).unwrap();
    let start: String = ids[0].notice.id.chars().take(6).collect();
    assert!(matches!(
        store.audit().find(&start).unwrap(),
        FoundEntry::Several(_)
    ));
}

#[test]
fn an_export_with_a_filter_has_the_notices_it_names() {
    let home = Home::new("notices-export");
    let store = world(&home);
    let places = |filter: &Filter| -> Vec<u64> {
        let records = exported(&store, filter).into_iter();
        records.map(|record| record.sequence).collect()
    };
    assert_eq!(places(&rows(Rows::Notices)), [1, 6, 9]);
    assert_eq!(places(&rows(Rows::Calls)), [2, 3, 4, 5, 7, 8]);
}

#[test]
fn a_changed_notice_is_named() {
    for (what, column) in [("body", BODY), ("kind", KIND)] {
        let home = Home::new("notices-changed");
        drop(world(&home));
        home.edit(|lines| {
            let field = &mut line(lines, 6)[column];
            *field = field.replace("bob", "eve").replace("notice", "close");
        });
        let broken = home.store().audit().verify(None).unwrap().broken;
        assert_eq!(broken.map(|it| it.sequence), Some(6), "{what}");
    }
    for sql in [
        "UPDATE notices SET by_whom = 'eve' WHERE sequence = 6",
        "UPDATE notices SET act = 'key.revoked' WHERE sequence = 6",
        "DELETE FROM notices WHERE sequence = 6",
    ] {
        let home = Home::new("notices-index");
        drop(world(&home));
        home.index_sql(sql);
        let broken = home.store().audit().verify(None).unwrap().broken;
        assert_eq!(broken.map(|it| it.sequence), Some(6), "{sql}");
    }
    let home = Home::new("notices-more");
    drop(world(&home));
    home.index_sql("INSERT INTO notices SELECT 5, position, at_ms, id, act, by_whom, about FROM notices WHERE sequence = 6");
    let broken = home.store().audit().verify(None).unwrap().broken;
    assert_eq!(broken.map(|it| it.sequence), Some(5));
}

#[test]
fn old_notices_are_removed_and_the_chain_verifies() {
    let home = Home::new("notices-retained");
    let store = world(&home);
    let rule = Retention {
        bytes_max: Some(1),
        ..Retention::default()
    };
    // The calls are from long ago, the notices from now, and the first record is
    // one: by age nothing goes.
    let by_age = Retention {
        older_than_ms: Some(1_700_000_001_000),
        ..Retention::default()
    };
    assert_eq!(store.audit().retain(&by_age).unwrap().records, 0);
    let removed = store.audit().retain(&rule).unwrap();
    assert_eq!((removed.entries, removed.notices), (3, 3));
    assert_eq!(store.audit().notices(&Filter::default()).unwrap(), []);
    store
        .audit()
        .notice(notice(Act::ToolDeleted, "hello"))
        .unwrap();
    let verified = store.audit().verify(None).unwrap();
    assert_eq!((verified.broken, verified.notices), (None, 1));
    let records = exported(&store, &Filter::default());
    assert_eq!(walk::verify(&records, None).broken, None);
    // A home with nothing but a notice that is old forgets it too, once.
    assert_eq!(store.audit().retain(&rule).unwrap().notices, 1);
    assert_eq!(store.audit().retain(&rule).unwrap().records, 0);
    assert_eq!(store.audit().verify(None).unwrap().broken, None);
}

#[test]
fn a_log_without_notices_still_verifies() {
    let home = Home::new("notices-none");
    let store = home.store();
    fill(&store, 0..5);
    drop(store);
    // An index of the version before has no table for them.
    home.index_sql("DROP TABLE notices; PRAGMA user_version = 1");
    let store = home.store();
    let verified = store.audit().verify(None).unwrap();
    assert_eq!((verified.broken, verified.notices), (None, 0));
    assert_eq!(store.audit().list(&Filter::default()).unwrap().len(), 5);
}

#[test]
fn without_room_a_notice_is_refused() {
    let home = Home::new("notices-full");
    let settings = StoreSettings {
        audit_bytes_max: 1024,
        ..StoreSettings::standard()
    };
    let store = Store::open(&home.path, settings).unwrap();
    let refused = store.audit().notice(notice(Act::KeyMade, "bob"));
    assert!(
        matches!(refused, Err(StoreError::Full { .. })),
        "{refused:?}"
    );
    assert_eq!(store.audit().verify(None).unwrap().records, 0);
}

#[test]
fn a_failed_sync_refuses_a_notice() {
    let home = Home::new("notices-disk");
    let store = home.store();
    store::testing::fail_syncs(&home.path);
    let refused = store.audit().notice(notice(Act::KeyMade, "bob"));
    store::testing::mend(&home.path);
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn shadow_decisions_are_stored_and_can_be_filtered() {
    let home = Home::new("notices-differs");
    let store = home.store();
    fill(&store, 0..3);
    wait(async {
        let row = store.audit().open(opening(3)).await.unwrap();
        let mut closing = closing(Status::Done);
        closing.shadow = Some(Shadow {
            candidate: "next.toml".to_owned(),
            live: "allow".to_owned(),
            verdict: "deny".to_owned(),
            reason: "too much".to_owned(),
            rule: Some("big".to_owned()),
        });
        store.audit().close(row, closing).await.unwrap();
    });
    let differs = Filter {
        differs: true,
        ..Filter::default()
    };
    for _ in 0..2 {
        let store = home.store();
        let found = store.audit().list(&differs).unwrap();
        let ids: Vec<_> = found.iter().map(|it| it.opening.call_id.clone()).collect();
        assert_eq!(ids, [opening(3).call_id]);
        let closing = found[0].closing.clone().unwrap();
        assert_eq!(closing.shadow.unwrap().verdict, "deny");
        assert_eq!(store.audit().verify(None).unwrap().broken, None);
    }
}
