//! A disk that fails, power that goes, a writer that dies in the middle of a line:
//! what was promised is there, what was never acknowledged does no harm.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use model::record::audit::Status;
use store::{Durability, Filter, Retention, Store, StoreError, StoreSettings, testing};

use crate::scratch::{Home, closing, fill, opening, wait};

fn call_ids(store: &Store) -> BTreeSet<String> {
    let entries = store.audit().list(&Filter::default()).unwrap();
    let ids = entries.into_iter().map(|entry| entry.opening.call_id);
    ids.collect()
}

fn assert_in_order(store: &Store, what: &str) {
    let verified = store.audit().verify(None).unwrap();
    assert_eq!(verified.broken, None, "{what}");
    assert_eq!(verified.open, 0, "{what}");
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copy = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &copy);
        } else {
            fs::copy(&path, &copy).unwrap();
        }
    }
}

/// The last record cut at each of its bytes, with the index of before and without.
#[test]
fn a_line_torn_at_any_byte_is_ignored() {
    let home = Home::new("torn");
    fill(&home.store(), 0..4);
    // A writer that dies in the middle of a line has told neither index nor database.
    let before = Home::new("torn-before");
    copy_folder(&home.path, &before.path);
    fill(&home.store(), 4..5);
    let log = home.segments().pop().unwrap();
    let text = fs::read(&log).unwrap();
    let last = text[..text.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n');
    let last = last.unwrap() + 1;
    for length in last..=text.len() {
        let cut = Home::new("cut");
        copy_folder(&before.path, &cut.path);
        if length % 2 == 0 {
            for file in ["index.db", "index.db-wal", "index.db-shm"] {
                let _ = fs::remove_file(cut.path.join("audit").join(file));
            }
        }
        let copy = cut.segments().pop().unwrap();
        fs::write(&copy, &text[..length]).unwrap();
        let store = cut.store();
        // Without its end the last attempt was under way.
        let is_whole = length == text.len();
        assert_eq!(store.status().crashed, u64::from(!is_whole), "{length}");
        assert_in_order(&store, &length.to_string());
        assert_eq!(call_ids(&store).len(), 5, "{length}");
        fill(&store, 5..7);
        assert_in_order(&store, &length.to_string());
        let torn = fs::read_dir(cut.path.join("audit")).unwrap();
        let torn: Vec<_> = torn
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "torn"))
            .collect();
        // What was cut off is kept beside, for the owner alone.
        let is_torn = length > last && !is_whole;
        assert_eq!(torn.len(), usize::from(is_torn), "{length}");
        for path in torn {
            assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600);
        }
    }
}

/// A process that lives finds the half line of one that died beside it.
#[test]
fn a_live_process_sets_torn_lines_aside() {
    use std::io::Write as _;
    let home = Home::new("half");
    let store = home.store();
    fill(&store, 0..3);
    let log = home.segments().pop().unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all(b"7 open 00000000-dead 00").unwrap();
    // Readers look past it.
    assert_eq!(call_ids(&store).len(), 3);
    fill(&store, 3..6);
    assert_in_order(&store, "half a line");
    assert_eq!(call_ids(&store).len(), 6);
}

/// Power goes at many moments: what was secured is there, and with full durability
/// whatever was acknowledged. Bytes that were not asked for may have got there too.
#[test]
fn a_power_cut_loses_no_confirmed_record() {
    for durability in [Durability::Standard, Durability::Full] {
        let home = Home::new("power");
        let settings = StoreSettings {
            durability,
            ..StoreSettings::standard()
        };
        let store = Store::open(&home.path, settings).unwrap();
        let mut promised = BTreeSet::new();
        for round in 0..12 {
            wait(async {
                for number in round * 10..round * 10 + 10 {
                    let row = store.audit().open(opening(number)).await.unwrap();
                    if number % 4 == 0 {
                        store.audit().secure(&row).await.unwrap();
                        promised.insert(opening(number).call_id);
                    }
                    let end = closing(Status::Done);
                    store.audit().close(row, end).await.unwrap();
                    if durability == Durability::Full {
                        promised.insert(opening(number).call_id);
                    }
                }
            });
            if round == 6 {
                let rule = Retention {
                    bytes_max: Some(10_000),
                    ..Retention::default()
                };
                store.audit().retain(&rule).unwrap();
                promised = promised.intersection(&call_ids(&store)).cloned().collect();
            }
            for beyond in [0, 1, 300, 5_000] {
                let after = Home::new("after");
                testing::cut_power(&home.path, &after.path, beyond).unwrap();
                let store = after.store();
                let found = call_ids(&store);
                let lost: Vec<_> = promised.difference(&found).collect();
                assert!(lost.is_empty(), "{durability:?} {round}: {lost:?}");
                assert_in_order(&store, "after a power cut");
                fill(&store, 9_000..9_003);
                assert_in_order(&store, "and on");
            }
        }
    }
}

/// A disk that does not confirm: who asked for it is refused, and so is everybody
/// after, until somebody starts anew.
#[test]
fn a_failed_sync_refuses_from_then_on() {
    for durability in [Durability::Standard, Durability::Full] {
        let home = Home::new("sync-fails");
        let settings = StoreSettings {
            durability,
            ..StoreSettings::standard()
        };
        let store = Store::open(&home.path, settings).unwrap();
        fill(&store, 0..3);
        testing::fail_syncs(&home.path);
        let is_unconfirmed = |error: StoreError| matches!(error, StoreError::Unconfirmed { .. });
        wait(async {
            match store.audit().open(opening(3)).await {
                Ok(row) => {
                    assert_eq!(durability, Durability::Standard);
                    let error = store.audit().secure(&row).await.unwrap_err();
                    assert!(is_unconfirmed(error));
                    let end = closing(Status::Done);
                    assert!(is_unconfirmed(
                        store.audit().close(row, end).await.unwrap_err()
                    ));
                }
                Err(error) => assert!(is_unconfirmed(error)),
            }
            let error = store.audit().open(opening(4)).await.unwrap_err();
            assert!(is_unconfirmed(error));
        });
        drop(store);
        testing::mend(&home.path);
        let store = home.store();
        assert_eq!(store.status().crashed, 1);
        assert_in_order(&store, "after a failed sync");
        fill(&store, 10..12);
    }
}

/// The steps of a removal, cut short after each: whoever comes next finishes it.
#[test]
fn an_interrupted_removal_is_finished() {
    let home = Home::new("removal");
    let store = home.store();
    let open = wait(store.audit().open(opening(0))).unwrap();
    fill(&store, 1..40);
    let before = Home::new("before");
    copy_folder(&home.path.join("audit"), &before.path.join("audit"));
    let rule = Retention {
        older_than_ms: Some(1_700_000_000_020),
        ..Retention::default()
    };
    assert_eq!(store.audit().retain(&rule).unwrap().entries, 19);
    let after = call_ids(&store);
    // The checkpoint is written, and nothing was removed yet: the old segment
    // stands beside the new one, with the old index and without.
    let old = before.segments().pop().unwrap();
    for with_index in [true, false] {
        let cut = Home::new("short");
        copy_folder(&home.path.join("audit"), &cut.path.join("audit"));
        for path in cut.segments() {
            let is_last = Some(&path) == cut.segments().last();
            if !is_last {
                fs::remove_file(path).unwrap();
            }
        }
        fs::remove_file(cut.path.join("audit/kept")).unwrap();
        let name = old.file_name().unwrap();
        fs::copy(&old, cut.path.join("audit").join(name)).unwrap();
        for file in ["index.db", "index.db-wal", "index.db-shm"] {
            let copy = cut.path.join("audit").join(file);
            let _ = fs::remove_file(&copy);
            if with_index {
                let _ = fs::copy(before.path.join("audit").join(file), &copy);
            }
        }
        let left = cut.store();
        assert_in_order(&left, "after it was finished");
        assert_eq!(call_ids(&left), after, "{with_index}");
        assert_eq!(cut.segments().len(), home.segments().len());
    }
    drop(open);
}

/// The log goes on in another file when one is full, for every process.
#[test]
fn segments_follow_each_other() {
    let home = Home::new("segments");
    let (here, there) = (home.store(), home.store());
    let long = || {
        let mut end = closing(Status::Done);
        end.arguments = Some(serde_json::json!("x".repeat(3_000_000)));
        end
    };
    for number in 0..8 {
        for (store, number) in [(&here, 2 * number), (&there, 2 * number + 1)] {
            let row = wait(store.audit().open(opening(number))).unwrap();
            wait(store.audit().close(row, long())).unwrap();
        }
    }
    assert!(home.segments().len() >= 3, "{:?}", home.segments());
    assert_in_order(&here, "several segments");
    assert_eq!(call_ids(&there).len(), 16);
    let bytes_before: u64 = bytes(&home);
    let rule = Retention {
        bytes_max: Some(7_000_000),
        ..Retention::default()
    };
    here.audit().retain(&rule).unwrap();
    let bytes_after: u64 = bytes(&home);
    assert!(
        bytes_after < bytes_before / 4,
        "{bytes_after} of {bytes_before}"
    );
    fill(&there, 100..103);
    assert_in_order(&there, "after a removal elsewhere");
}

fn bytes(home: &Home) -> u64 {
    let lengths = home
        .segments()
        .into_iter()
        .map(|path| fs::metadata(path).unwrap().len());
    lengths.sum()
}
