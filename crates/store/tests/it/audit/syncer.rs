//! What reaches the disk, and how often it is asked.

use std::time::{Duration, Instant};

use model::record::audit::Status;
use store::{Durability, Store, StoreSettings};

use crate::scratch::{Home, closing, opening, wait};

#[test]
fn sixty_four_callers_share_their_syncs() {
    let home = Home::new("share");
    let store = home.store();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut rows = Vec::new();
        for number in 0..64 {
            rows.push(store.audit().open(opening(number)).await.unwrap());
        }
        let before = store.status().syncs;
        let waiting: Vec<_> = rows
            .into_iter()
            .map(|row| {
                let store = store.clone();
                tokio::spawn(async move {
                    store.audit().secure(&row).await.unwrap();
                    row
                })
            })
            .collect();
        let mut rows = Vec::new();
        for one in waiting {
            rows.push(one.await.unwrap());
        }
        // One may be under way when they come, one takes them all; a third by the
        // clock.
        let syncs = store.status().syncs - before;
        assert!((1..=3).contains(&syncs), "{syncs} syncs for 64 callers");
        // What is on the disk is not asked for again.
        let before = store.status().syncs;
        for row in &rows {
            store.audit().secure(row).await.unwrap();
        }
        assert_eq!(store.status().syncs, before);
        for row in rows {
            store
                .audit()
                .close(row, closing(Status::Done))
                .await
                .unwrap();
        }
    });
}

/// 64 whole calls at once need far fewer transactions than records.
#[test]
fn many_callers_share_transactions() {
    let home = Home::new("group");
    let store = home.store();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let before = store.status().commits;
        let calls: Vec<_> = (0..64)
            .map(|caller| {
                let store = store.clone();
                tokio::spawn(async move {
                    for number in 0..10 {
                        let row = store
                            .audit()
                            .open(opening(caller * 100 + number))
                            .await
                            .unwrap();
                        // What a call does meanwhile.
                        tokio::task::yield_now().await;
                        store
                            .audit()
                            .close(row, closing(Status::Done))
                            .await
                            .unwrap();
                    }
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
        let commits = store.status().commits - before;
        assert!(
            commits < 1280 / 4,
            "{commits} transactions for 1280 records"
        );
    });
}

#[test]
fn an_unawaited_commit_reaches_the_disk() {
    let home = Home::new("clock");
    let store = home.store();
    let row = wait(store.audit().open(opening(1))).unwrap();
    let (before, start) = (store.status().syncs, Instant::now());
    while store.status().syncs == before {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "no sync by itself"
        );
        // Sleeps: looks again until the clock has asked the disk.
        std::thread::sleep(Duration::from_millis(5));
    }
    // It is there already, so nobody asks for it.
    let before = store.status().syncs;
    wait(store.audit().secure(&row)).unwrap();
    assert_eq!(store.status().syncs, before);
}

#[test]
fn full_durability_syncs_before_it_answers() {
    let home = Home::new("durable");
    let settings = StoreSettings {
        durability: Durability::Full,
        ..StoreSettings::standard()
    };
    let store = Store::open(&home.path, settings).unwrap();
    let before = store.status().syncs;
    let row = wait(store.audit().open(opening(1))).unwrap();
    assert_eq!(store.status().syncs, before + 1);
    wait(store.audit().secure(&row)).unwrap();
    wait(store.audit().close(row, closing(Status::Done))).unwrap();
    assert_eq!(store.status().syncs, before + 2);
}

#[test]
fn a_full_queue_refuses() {
    let home = Home::new("queue");
    let settings = StoreSettings {
        queue_max: 0,
        ..StoreSettings::standard()
    };
    let store = Store::open(&home.path, settings).unwrap();
    // A call that is alone does not queue; with others under way it must.
    let mut rows = Vec::new();
    let refusal = (0..4).find_map(|number| match wait(store.audit().open(opening(number))) {
        Ok(row) => {
            rows.push(row);
            None
        }
        Err(error) => Some(error),
    });
    let refusal = refusal.unwrap();
    assert!(
        matches!(refusal, store::StoreError::QueueFull { queue_max: 0 }),
        "{refusal}"
    );
}
