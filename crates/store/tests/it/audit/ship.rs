//! Shipping to a real Postgres: nothing twice, nothing lost, nothing removed before it was
//! acknowledged, and a database that lies is found out.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, OnceLock};

use model::record::audit::Status;
use model::record::audit::anchor::{AnchorPace, AnchorPlan, WitnessedLogs};
use model::record::note::{NoteKey, SignedNote};
use store::{
    Filter, HeadExchange, NodePath, Retention, Rows, ShipDatabase, Shipper, Store, StoreError,
    is_signature_sound, verify_nodes,
};

use tokio::runtime::{Builder, Runtime};

use super::database::{new_database, run_sql};
use super::nodes::copy_folder;
use crate::scratch::{Home, cut, fill, opening};

fn open(url: &str) -> Arc<ShipDatabase> {
    Arc::new(ShipDatabase::new(url, None, None).unwrap())
}

fn key(store: &Store) -> NoteKey {
    store.audit().sign().unwrap();
    store.audit().public_key().unwrap().unwrap()
}

/// A home with calls, all indexed and signed.
fn filled(name: &str, calls: usize) -> Home {
    let home = Home::new(name);
    fill(&home.store(), 0..calls);
    home
}

/// Waits for a future; what it spawns runs meanwhile.
fn wait<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).enable_all().build().unwrap()
    });
    runtime.block_on(future)
}

fn ship_all(shipper: &mut Shipper) {
    while wait(shipper.step()).unwrap() {}
}

fn count(url: &str) -> String {
    run_sql(
        url,
        "SELECT count(*), count(DISTINCT (node, sequence)) FROM audit_records",
    )
}

#[test]
fn records_of_all_nodes_are_in_one_list() {
    let url = new_database();
    let (one, other) = (filled("ship-one", 10), filled("ship-other", 5));
    for home in [&one, &other] {
        let store = home.store();
        let mut shipper = Shipper::new(&store, open(&url)).unwrap();
        ship_all(&mut shipper);
        let status = store.audit().shipping();
        let end = store.audit().head().unwrap().sequence;
        assert_eq!((status.shipped, status.waiting), (end, 0));
        assert_eq!((status.lag_ms, status.fault), (0, None));
    }
    assert_eq!(count(&url), "30|30");
    let database = open(&url);
    let list = wait(database.list(&Filter::default())).unwrap();
    assert_eq!(list.len(), 15);
    let times: Vec<i64> = list
        .iter()
        .map(|it| match &it.item {
            store::AuditItem::Call(entry) => entry.opening.at_ms,
            store::AuditItem::Notice(notice) => notice.notice.at_ms,
        })
        .collect();
    assert!(times.iter().rev().is_sorted(), "newest first: {times:?}");
    let filter = |tool: &str, status| Filter {
        rows: Rows::Calls,
        tool: Some(tool.to_owned()),
        status: Some(status),
        ..Filter::default()
    };
    let found = wait(database.list(&filter("tool-3", Status::Done))).unwrap();
    let nodes: Vec<_> = found.iter().map(|it| it.node.clone()).collect();
    let mut expected = [key(&one.store()), key(&other.store())].map(|it| it.name().to_owned());
    expected.sort();
    assert_eq!(nodes, expected, "one call of each node");
    let none = wait(database.list(&filter("tool-3", Status::Crashed))).unwrap();
    assert!(none.is_empty());
    // What was shipped is the log, byte for byte.
    let shipped = wait(database.records(&expected[0], 0)).unwrap();
    let walked = model::record::audit::walk::verify(&shipped, None);
    assert_eq!(walked.broken, None);
    // Attack: a row is changed in the database.
    run_sql(
        &url,
        "UPDATE audit_records SET body = replace(body, 'tool-4', 'tool-5')",
    );
    let fault = wait(database.list(&Filter::default())).unwrap_err();
    assert!(fault.to_string().contains("in the database"), "{fault}");
}

#[test]
fn nothing_is_removed_before_it_was_acknowledged() {
    let url = new_database();
    let home = filled("ship-prune", 10);
    let store = home.store();
    let everything = Retention {
        older_than_ms: Some(i64::MAX),
        bytes_max: None,
    };
    let mut shipper = Shipper::new(&store, open(&url)).unwrap();
    let removed = store.audit().retain(&everything).unwrap();
    assert_eq!(removed.through, None, "nothing was acknowledged");
    ship_all(&mut shipper);
    fill(&store, 10..15);
    let removed = store.audit().retain(&everything).unwrap();
    assert_eq!(removed.through, Some(20), "what came later stays");
    // The next process goes on behind what was removed, and repeats nothing.
    drop((shipper, store));
    let store = home.store();
    let mut shipper = Shipper::new(&store, open(&url)).unwrap();
    ship_all(&mut shipper);
    let end = store.audit().head().unwrap().sequence;
    assert_eq!(count(&url), format!("{end}|{end}"));
    assert_eq!(store.audit().verify(None).unwrap().broken, None);
    // A log that is not shipped any more is removed as before.
    store.audit().end_shipping().unwrap();
    fill(&store, 20..22);
    let removed = store.audit().retain(&everything).unwrap();
    assert!(removed.through > Some(20), "{removed:?}");
}

#[test]
fn a_lost_connection_or_acknowledgement_loses_and_repeats_nothing() {
    let url = new_database();
    let home = filled("ship-lost", 10);
    let store = home.store();
    let mut shipper = Shipper::new(&store, open(&url)).unwrap();
    ship_all(&mut shipper);
    fill(&store, 10..20);
    drop((shipper, store));
    let store = home.store();
    let database = open(&url);
    let mut shipper = Shipper::new(&store, Arc::clone(&database)).unwrap();
    let heads = wait(database.list(&Filter::default())).unwrap();
    assert_eq!(heads.len(), 10);
    // The connection breaks: the step says so, and the next one is made again.
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()";
    run_sql(&url, ended);
    let mut faults = 0;
    loop {
        match wait(shipper.step()) {
            Ok(false) => break,
            Ok(true) => {}
            Err(_) => {
                faults += 1;
                assert!(store.audit().shipping().fault.is_some());
            }
        }
        assert!(faults < 10, "it does not recover");
    }
    assert_eq!(store.audit().shipping().fault, None);
    // The mark is lost: the database knows how far it is.
    fs::remove_file(home.path.join("audit/shipped")).unwrap();
    let mut again = Shipper::new(&store, open(&url)).unwrap();
    ship_all(&mut again);
    assert_eq!(count(&url), "40|40");
    // No database at all.
    let gone = open("postgres://ring@%2Fnonexistent/none");
    let mut nowhere = Shipper::new(&store, gone).unwrap();
    let fault = wait(nowhere.step()).unwrap_err();
    assert!(matches!(fault, StoreError::Unavailable { .. }), "{fault}");
}

/// A call that waits for the database goes on when its opening is there, and not when the
/// database fails.
#[test]
fn a_call_can_wait_until_its_opening_is_shipped() {
    let home = filled("ship-sync", 3);
    let store = home.store();
    key(&store);
    let url = new_database();
    let mut shipper = Shipper::new(&store, open(&url)).unwrap();
    ship_all(&mut shipper);
    let row = wait(store.audit().open(opening(7))).unwrap();
    wait(store.audit().secure(&row)).unwrap();
    let shipped = wait(async {
        let waiting = store.audit().await_shipped(&row);
        let shipping = async {
            loop {
                store.audit().shipping_wanted().await;
                shipper.step().await.unwrap();
            }
        };
        tokio::select! {
            shipped = waiting => shipped,
            () = shipping => Ok(()),
        }
    });
    shipped.unwrap();
    let gone = open("postgres://ring@%2Fnonexistent/none");
    let mut nowhere = Shipper::new(&store, gone).unwrap();
    let row = wait(store.audit().open(opening(8))).unwrap();
    wait(nowhere.step()).unwrap_err();
    let refused = wait(store.audit().await_shipped(&row));
    assert!(
        matches!(refused, Err(StoreError::Unavailable { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_log_or_a_database_that_was_changed_is_found_before_more_is_shipped() {
    let url = new_database();
    let home = filled("ship-changed", 10);
    let store = home.store();
    ship_all(&mut Shipper::new(&store, open(&url)).unwrap());
    drop(store);
    let says = |home: &Home| {
        let store = home.store();
        let mut shipper = Shipper::new(&store, open(&url)).unwrap();
        match wait(shipper.step()) {
            Ok(_) => String::new(),
            Err(fault) => fault.to_string(),
        }
    };
    assert_eq!(says(&home), "");
    run_sql(
        &url,
        "UPDATE audit_records SET hash = previous WHERE sequence = 20",
    );
    let said = says(&home);
    assert!(
        said.contains("record 20 in the database is not the one of this log"),
        "{said}"
    );
    run_sql(&url, "DELETE FROM audit_records WHERE sequence = 20");
    assert_eq!(says(&home), "", "it is shipped again");
    home.edit(|lines| cut(lines, 15..));
    for name in ["index.db", "index.db-wal", "index.db-shm"] {
        let _ = fs::remove_file(home.path.join("audit").join(name));
    }
    home.sql("DELETE FROM audit_mark");
    let said = says(&home);
    assert!(
        said.contains("record 20 was shipped: its end was cut off"),
        "{said}"
    );
    assert!(!said.contains("cannot be signed"), "{said}");
}

#[test]
fn nodes_find_each_others_heads_in_a_folder_and_in_the_database() {
    let url = new_database();
    let (one, other) = (filled("heads-one", 10), filled("heads-other", 5));
    let folder = one.path.with_extension("exchange");
    let _ = fs::remove_dir_all(&folder);
    let (store, second) = (one.store(), other.store());
    let keys = [key(&store), key(&second)];
    let pace = AnchorPace {
        every_ms: 10_000,
        records: 1_000,
    };
    let exchanges = [
        HeadExchange::Folder(folder.clone()),
        HeadExchange::Database(open(&url)),
    ];
    for (exchange, first) in exchanges.into_iter().zip([10, 20]) {
        let early = second.audit().signed_head().unwrap();
        wait(exchange.publish(&early, &keys[1])).unwrap();
        let own = store.audit().signed_head().unwrap();
        wait(exchange.publish(&own, &keys[0])).unwrap();
        fill(&second, first..first + 3);
        // What is not indexed yet is not signed yet.
        let end = second.audit().head().unwrap().sequence;
        while second.audit().sign().unwrap() < end {
            std::thread::yield_now();
        }
        let note = second.audit().signed_head().unwrap();
        wait(exchange.publish(&note, &keys[1])).unwrap();
        let seen = wait(exchange.heads(&store)).unwrap();
        assert_eq!(seen.len(), 2, "{exchange:?}");
        assert!(seen.contains(&note));
        // One node anchors the other, and not itself.
        let mut plan = AnchorPlan::default();
        let sighting = plan.look(
            &seen,
            &WitnessedLogs::default(),
            &keys[1..],
            &is_signature_sound,
        );
        assert_eq!(sighting.news.len(), 1);
        let end = store.audit().head().unwrap().sequence;
        let anchor = plan.due(&sighting, 1_000, end, pace).unwrap();
        let link = store.audit().anchor(&anchor).unwrap();
        plan.note(&anchor, link.sequence);
        let sighting = plan.look(
            &seen,
            &WitnessedLogs::default(),
            &keys[1..],
            &is_signature_sound,
        );
        assert!(sighting.news.is_empty());
        // An older head does not take the place of a newer one.
        let fault = wait(exchange.publish(&early, &keys[1])).unwrap_err();
        assert!(fault.to_string().contains("rolled back"), "{fault}");
        let seen = wait(exchange.heads(&store)).unwrap();
        assert!(seen.contains(&note) && !seen.contains(&early));
    }
    let _ = fs::remove_dir_all(&folder);
    drop(store);
    let verified = one.store().audit().verify(None).unwrap();
    assert_eq!((verified.broken, verified.anchors), (None, 2));
}

/// Signs until the head covers all records.
fn sign_all(store: &Store) {
    let end = store.audit().head().unwrap().sequence;
    while store.audit().sign().unwrap() < end {
        std::thread::yield_now();
    }
}

#[test]
fn a_log_that_went_on_differently_after_a_roll_back_is_held_against_its_published_head() {
    let database = open(&new_database());
    let home = filled("ship-fork", 5);
    let before = home.path.with_extension("before");
    copy_folder(&home.path, &before);
    let store = home.store();
    let key = key(&store);
    fill(&store, 5..10);
    sign_all(&store);
    let known = store.audit().signed_head().unwrap();
    let exchange = HeadExchange::Database(Arc::clone(&database));
    wait(exchange.publish(&known, &key)).unwrap();
    let there = wait(database.head_of(key.name())).unwrap().unwrap();
    assert_eq!(there, known);
    let check = |store: &Store| {
        let checked = store
            .audit()
            .check_published(std::slice::from_ref(&there), "audit_heads");
        checked.map_err(|error| error.to_string())
    };
    // Its own past.
    fill(&store, 10..12);
    sign_all(&store);
    assert_eq!(check(&store), Ok(()));
    drop(store);
    // Attack: the home of before, which is whole in itself.
    fs::remove_dir_all(&home.path).unwrap();
    copy_folder(&before, &home.path);
    let store = home.store();
    fill(&store, 20..21);
    sign_all(&store);
    let fault = check(&store).unwrap_err();
    assert!(fault.contains("was rolled back, or another"), "{fault}");
    // It becomes longer than it was.
    fill(&store, 21..40);
    sign_all(&store);
    assert_eq!(store.audit().verify(None).unwrap().broken, None);
    let fault = check(&store).unwrap_err();
    assert!(
        fault.contains("10 records that are not those") || fault.contains("went on differently"),
        "{fault}"
    );
    // A head of another log says nothing about this one.
    let other = filled("ship-fork-other", 50);
    let other = other.store();
    sign_all(&other);
    let foreign = other.audit().signed_head().unwrap();
    assert!(
        store
            .audit()
            .check_published(&[foreign], "audit_heads")
            .is_ok()
    );
    let _ = fs::remove_dir_all(&before);
}

/// Attack: write access to the database is enough to rewrite a log there and to remove its
/// head, which nothing would contradict then.
#[test]
fn a_shipped_log_that_was_rewritten_and_lost_its_head_is_found() {
    let url = new_database();
    let database = open(&url);
    let (home, forger) = (filled("ship-own", 5), Home::new("ship-forger"));
    fill(&forger.store(), 20..27);
    let store = home.store();
    let key = key(&store);
    sign_all(&store);
    for store in [&store, &forger.store()] {
        let mut shipper = Shipper::new(store, Arc::clone(&database)).unwrap();
        ship_all(&mut shipper);
    }
    let kept = store.audit().signed_head().unwrap();
    wait(HeadExchange::Database(Arc::clone(&database)).publish(&kept, &key)).unwrap();
    let name = key.name();
    let other = forger.store().audit().public_key().unwrap().unwrap();
    let folder = home.path.with_extension("logs");
    let found = |from: &Home, given: &[SignedNote]| {
        let _ = fs::remove_dir_all(&folder);
        let logs = wait(open(&url).write_logs(&folder, &from.path)).unwrap();
        let log = logs.into_iter().find(|log| log.node == name).unwrap();
        assert_eq!(log.fault, None);
        let key = Some(key.clone());
        let node = NodePath {
            path: log.path,
            key,
        };
        let verified = verify_nodes(&[node], given).unwrap();
        let broken = verified.nodes[0].verified.broken.clone();
        broken.map(|broken| format!("{}: {}", broken.sequence, broken.what))
    };
    let auditor = Home::new("ship-auditor");
    for from in [&home, &auditor] {
        assert_eq!(found(from, std::slice::from_ref(&kept)), None);
    }
    run_sql(&url, "DELETE FROM audit_heads");
    let headless = |records: u64| {
        Some(format!(
            "1: no signed head covers any of its {records} records: its heads were taken away, \
             or it has none yet; a server signs and publishes one within 10 seconds"
        ))
    };
    assert_eq!(found(&auditor, &[]), headless(10));
    // The records are those that the home signed.
    assert_eq!(found(&home, &[]), None);
    run_sql(
        &url,
        &format!(
            "DELETE FROM audit_records WHERE node = '{name}'; \
             UPDATE audit_records SET node = '{name}' WHERE node = '{}'",
            other.name()
        ),
    );
    assert_eq!(found(&auditor, &[]), headless(14));
    assert_eq!(
        found(&auditor, std::slice::from_ref(&kept)).as_deref(),
        Some("1: records 1 to 10 are not those of the given checkpoint")
    );
    let own = found(&home, &[]).unwrap();
    assert!(own.contains("are not those that were signed"), "{own}");
    let _ = fs::remove_dir_all(&folder);
}

#[test]
fn columns_that_no_hash_covers_are_held_against_the_records() {
    let url = new_database();
    let home = filled("ship-columns", 5);
    let store = home.store();
    let mut shipper = Shipper::new(&store, open(&url)).unwrap();
    ship_all(&mut shipper);
    let mark = fs::metadata(home.path.join("audit/shipped")).unwrap();
    assert_eq!(mark.permissions().mode() & 0o777, 0o600);
    let folder = home.path.with_extension("logs");
    let fault = || {
        let _ = fs::remove_dir_all(&folder);
        let logs = wait(open(&url).write_logs(&folder, &home.path)).unwrap();
        assert_eq!((logs.len(), logs[0].last), (1, 10));
        let fault = logs[0].fault.clone();
        fault.map(|fault| (fault.sequence, fault.what))
    };
    assert_eq!(fault(), None);
    let said = "the columns that lists use are not what its body says: ";
    for (set, sequence, columns) in [
        ("caller = 'carol', tool = 'other'", 3, "caller, tool"),
        ("status = 'refused'", 4, "status"),
        ("at_ms = at_ms + 1", 5, "at_ms"),
        ("opened = 1", 6, "opened"),
        ("id = 'x'", 7, "id"),
        ("differs = NULL", 8, "differs"),
    ] {
        run_sql(
            &url,
            &format!(
                "CREATE TABLE kept AS SELECT * FROM audit_records; \
                 UPDATE audit_records SET {set} WHERE sequence = {sequence}"
            ),
        );
        assert_eq!(
            fault(),
            Some((sequence, format!("{said}{columns}"))),
            "{set}"
        );
        run_sql(
            &url,
            "DELETE FROM audit_records; INSERT INTO audit_records SELECT * FROM kept; \
             DROP TABLE kept",
        );
    }
    let _ = fs::remove_dir_all(&folder);
}
