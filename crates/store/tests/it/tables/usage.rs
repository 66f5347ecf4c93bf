//! What callers used of limits, across processes and their deaths.

use std::process::Command;

use model::govern::access::quota::{self, LimitExceeded, LimitedCall, RateLimit};
use model::limits;
use store::Store;

use super::Home;

fn limit(concurrent: Option<u64>, units_per_day: Option<u64>) -> RateLimit {
    RateLimit {
        id: "few".to_owned(),
        callers: Vec::new(),
        groups: Vec::new(),
        tools: Vec::new(),
        calls_per_minute: None,
        concurrent,
        units_per_day,
    }
}

fn key(caller: &str) -> [(String, String); 1] {
    [("few".to_owned(), caller.to_owned())]
}

fn enter(store: &Store, limit: &RateLimit, caller: &str) -> Option<Result<(), LimitExceeded>> {
    let (process, limit) = (store.usage().process().clone(), limit.clone());
    let name = caller.to_owned();
    let entered = store.usage().change(&key(caller), 0, move |tallies| {
        let visit = LimitedCall {
            caller: &name,
            groups: &[],
            tool: "tool",
            units: 1,
            at_ms: 0,
        };
        let mut held = vec![(&limit, tallies.remove(0))];
        let entered = quota::enter(&mut held, &visit, &process);
        tallies.extend(held.into_iter().map(|(_, tally)| tally));
        entered
    });
    entered.unwrap()
}

/// A process that is killed with a call under way gives its place back, not its unit.
#[test]
fn usage_of_a_killed_process_is_released() {
    let home = Home::new("usage-killed");
    let store = home.store();
    let one = limit(Some(1), None);
    for _ in 0..2 {
        let child = Command::new(env!("CARGO_BIN_EXE_store-test-child"))
            .arg("enter")
            .arg(&home.path)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&child.stdout), "entered Ok(())\n");
        assert!(!child.status.success(), "it was killed");
        home.bury_the_dead();
    }
    assert!(enter(&store, &one, "ann").unwrap().is_ok());
    assert!(enter(&store, &one, "ann").unwrap().is_err(), "it is taken");
    let other = home.store();
    assert!(enter(&other, &one, "ann").unwrap().is_err(), "we live");
    drop(store);
    assert!(enter(&other, &one, "ann").unwrap().is_ok(), "left");
    let units = other
        .usage()
        .change(&key("ann"), 0, |tallies| tallies[0].units());
    assert_eq!(units.unwrap(), Some(4));
}

/// Sixteen threads of two processes want ten units: ten get one.
#[test]
fn the_last_unit_is_given_once() {
    let home = Home::new("usage-race");
    let stores = [home.store(), home.store()];
    let ten = limit(None, Some(10));
    let count = std::thread::scope(|scope| {
        let work = |store| {
            let ten = &ten;
            move || {
                (0..4)
                    .filter(|_| enter(store, ten, "ann").unwrap().is_ok())
                    .count()
            }
        };
        let threads: Vec<_> = (0..16).map(|n| scope.spawn(work(&stores[n % 2]))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum::<usize>()
    });
    assert_eq!(count, 10);
}

/// What cannot be read is an error, never an empty tally.
#[test]
fn a_damaged_tally_is_an_error() {
    let home = Home::new("usage-broken");
    let store = home.store();
    assert!(enter(&store, &limit(None, Some(9)), "ann").unwrap().is_ok());
    for broken in ["", "{}", "{\"units\": -1}", "null"] {
        home.sql(&format!("UPDATE tallies SET state = '{broken}'"));
        let read = store.usage().change(&key("ann"), 0, |_| ());
        assert!(read.is_err(), "{broken}");
    }
}

/// There is room for so many; what says nothing any more makes some.
#[test]
fn tallies_are_bounded() {
    let home = Home::new("usage-full");
    let store = home.store();
    let most = limits::METER_TALLIES_MAX;
    home.sql(&format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {most})
         INSERT INTO tallies SELECT 'few', 'caller-' || i, '-', 5 FROM n"
    ));
    let used = |now_ms| store.usage().change(&key("new"), now_ms, |_| ()).unwrap();
    assert_eq!(used(4), None, "full");
    assert_eq!(used(5), Some(()));
}
