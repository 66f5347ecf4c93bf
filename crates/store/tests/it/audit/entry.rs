//! Entries: written, read back, filtered, verified.

use model::caller::Origin;
use model::record::audit::{Act, Notice, Status};
use store::{AuditEntry, AuditItem, Filter, FoundEntry};

use crate::scratch::{BODY, Home, closing, fill, line, opening, wait};

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
    fill(&store, 2..3);
    // Nobody waits for that end; it is written by the time the store is closed.
    drop(store);
    let store = home.store();
    let FoundEntry::One(entry) = store.audit().find(&opening(1).call_id).unwrap() else {
        panic!("one entry");
    };
    let closing = entry.closing.unwrap();
    assert_eq!(closing.status, Status::Cancelled);
    assert_eq!(closing.error.unwrap().code, "call.cancelled");
}

#[test]
fn filters_select_entries() {
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
    home.edit(|lines| {
        let body = &mut line(lines, 7)[BODY];
        *body = body.replace("tool-3", "tool-4");
    });
    let broken = store.audit().verify(None).unwrap().broken.unwrap();
    assert_eq!(broken.sequence, 7);
    assert_eq!(broken.call_id, Some(opening(3).call_id));
}

/// Every filter against every entry, once with the last records not indexed yet,
/// once with all of them indexed, against the plainest way to choose.
#[test]
fn filters_agree_with_a_full_scan() {
    let home = Home::new("oracle");
    let mut open = Vec::new();
    for is_indexed in [false, true, false] {
        let store = home.store();
        let start = 200 * open.len();
        fill(&store, start..start + 150);
        // One stays open, and spans what is indexed and what is not.
        open.push(wait(store.audit().open(opening(start + 150))).unwrap());
        fill(&store, start + 151..start + 160);
        if is_indexed {
            wait_until_indexed(&home);
        }
        if open.len() == 3 {
            wait(
                store
                    .audit()
                    .close(open.remove(2), closing(Status::Refused)),
            )
            .unwrap();
        }
        let all = store.audit().list(&Filter::default()).unwrap();
        assert!(
            all.windows(2)
                .all(|pair| pair[0].sequence > pair[1].sequence)
        );
        for filter in filters() {
            let expected: Vec<_> = all
                .iter()
                .filter(|entry| fits(entry, &filter))
                .cloned()
                .collect();
            let limit = filter.limit.unwrap_or(usize::MAX);
            let expected: Vec<_> = expected.into_iter().take(limit).collect();
            assert_eq!(store.audit().list(&filter).unwrap(), expected, "{filter:?}");
            let mut exported = Vec::new();
            let count = store.audit().export(&filter, &mut |record| {
                exported.push(record.sequence);
                Ok(())
            });
            let mut places: Vec<_> = expected
                .iter()
                .flat_map(|entry| std::iter::once(entry.sequence).chain(entry.closed_sequence))
                .collect();
            places.sort_unstable();
            assert_eq!(exported, places, "{filter:?}");
            assert_eq!(count.unwrap(), u64::try_from(places.len()).unwrap());
        }
        for entry in &all {
            let found = store.audit().find(&entry.opening.call_id).unwrap();
            assert_eq!(found, FoundEntry::One(Box::new(entry.clone())));
        }
        assert_eq!(store.audit().verify(None).unwrap().broken, None);
    }
}

fn wait_until_indexed(home: &Home) {
    let connection = rusqlite::Connection::open(home.path.join("audit/index.db")).unwrap();
    let reached = || -> i64 {
        let sql = "SELECT position FROM indexed";
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let last = home.segments().pop().unwrap();
    let start: u64 = last.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let end = start + std::fs::metadata(last).unwrap().len();
    while u64::try_from(reached()).unwrap() < end {
        // Sleeps: looks again until the idle writer has indexed.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn filters() -> Vec<Filter> {
    let none = Filter::default();
    let mut filters = vec![
        Filter {
            tool: Some("tool-3".to_owned()),
            ..none.clone()
        },
        Filter {
            tool: Some("absent".to_owned()),
            ..none.clone()
        },
        Filter {
            caller: Some("caller-2".to_owned()),
            ..none.clone()
        },
        Filter {
            origin: Some(Origin::Mcp),
            ..none.clone()
        },
        Filter {
            since_ms: Some(1_700_000_000_100),
            ..none.clone()
        },
        Filter {
            until_ms: Some(1_700_000_000_100),
            ..none.clone()
        },
        Filter {
            before: Some(300),
            ..none.clone()
        },
        Filter {
            after: Some(300),
            ..none.clone()
        },
        Filter {
            limit: Some(13),
            ..none.clone()
        },
        Filter {
            limit: Some(0),
            ..none.clone()
        },
    ];
    filters.extend(Status::ALL.map(|status| Filter {
        status: Some(status),
        ..none.clone()
    }));
    let failed = Filter {
        tool: Some("tool-0".to_owned()),
        caller: Some("caller-3".to_owned()),
        status: Some(Status::Done),
        since_ms: Some(1_700_000_000_020),
        limit: Some(4),
        ..none
    };
    filters.push(failed);
    filters
}

fn fits(entry: &AuditEntry, filter: &Filter) -> bool {
    let opening = &entry.opening;
    let status = entry.closing.as_ref().map(|closing| closing.status);
    let same = |wanted: &Option<String>, found: &String| match wanted {
        Some(wanted) => wanted == found,
        None => true,
    };
    same(&filter.tool, &opening.tool)
        && same(&filter.caller, &opening.caller)
        && (filter.status.is_none() || filter.status == status)
        && filter.origin.is_none_or(|origin| origin == opening.origin)
        && filter.since_ms.is_none_or(|since| since <= opening.at_ms)
        && filter.until_ms.is_none_or(|until| until > opening.at_ms)
        && filter.before.is_none_or(|before| before > entry.sequence)
        && filter.after.is_none_or(|after| after < entry.sequence)
}

#[test]
fn a_prefix_finds_one_several_or_none() {
    let home = Home::new("prefix");
    let store = home.store();
    fill(&store, 0x10..0x20);
    let find = |id: &str| store.audit().find(id).unwrap();
    assert!(matches!(find("00000011"), FoundEntry::One(_)));
    assert!(matches!(find("0000001A-0000"), FoundEntry::One(_)));
    let FoundEntry::Several(ids) = find("0000001") else {
        panic!("several");
    };
    assert_eq!(ids.len(), 10);
    for nothing in ["", "  ", "1", "%", "0000001_", "\u{10ffff}"] {
        assert_eq!(find(nothing), FoundEntry::None, "{nothing}");
    }
}

#[test]
fn following_shows_each_end_once() {
    let home = Home::new("follow");
    let store = home.store();
    let early = wait(store.audit().open(opening(500))).unwrap();
    let mut place = store.audit().head().unwrap().sequence;
    let mut seen = Vec::new();
    fill(&store, 0..25);
    wait(store.audit().close(early, closing(Status::Failed))).unwrap();
    let notice = Notice::new(Act::KeyMade, "owner", "cli", "a notice");
    store.audit().notice(notice).unwrap();
    fill(&store, 25..30);
    loop {
        let entries = store.audit().after(place, 7).unwrap();
        let Some(last) = entries.last() else {
            break;
        };
        place = last.last_sequence();
        seen.extend(entries.into_iter().map(|item| match item {
            AuditItem::Call(entry) => entry.opening.call_id,
            AuditItem::Notice(notice) => notice.notice.message,
        }));
    }
    let ids = |numbers: std::ops::Range<usize>| numbers.map(|number| opening(number).call_id);
    let mut expected: Vec<_> = ids(0..25).chain(ids(500..501)).collect();
    expected.push("a notice".to_owned());
    expected.extend(ids(25..30));
    assert_eq!(seen, expected);
}

/// An end is written in any case; what is too long is left out, and it says so.
#[test]
fn a_record_too_long_is_shortened_or_refused() {
    let home = Home::new("long");
    let store = home.store();
    let mut begin = opening(1);
    begin.tool = "x".repeat(5_000_000);
    let refused = wait(store.audit().open(begin));
    assert!(matches!(refused, Err(store::StoreError::TooLong { .. })));
    let mut end = closing(Status::Done);
    end.events = vec![serde_json::json!("x".repeat(5_000_000))];
    let row = wait(store.audit().open(opening(2))).unwrap();
    wait(store.audit().close(row, end)).unwrap();
    let FoundEntry::One(entry) = store.audit().find(&opening(2).call_id).unwrap() else {
        panic!("one entry");
    };
    let end = entry.closing.unwrap();
    assert_eq!((end.status, end.events_dropped), (Status::Done, 1));
    assert_eq!(end.error.unwrap().code, "audit.shortened");
}

/// What a call's future was dropped in the middle of is written down as such.
#[test]
fn an_abandoned_opening_ends_as_cancelled() {
    let home = Home::new("abandoned");
    let store = home.store();
    wait(async {
        let mut begin = Box::pin(store.audit().open(opening(1)));
        let _ = std::future::poll_fn(|context| {
            std::task::Poll::Ready(begin.as_mut().poll(context).is_ready())
        })
        .await;
    });
    drop(store);
    let store = home.store();
    let FoundEntry::One(entry) = store.audit().find(&opening(1).call_id).unwrap() else {
        panic!("one entry");
    };
    let status = entry.closing.unwrap().status;
    // Crashed if the store was gone before the row came back.
    assert!(
        [Status::Cancelled, Status::Crashed].contains(&status),
        "{status:?}"
    );
}
