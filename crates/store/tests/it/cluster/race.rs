//! Many takers on two nodes: exactly one gets it.

use std::sync::atomic::{AtomicUsize, Ordering};

use model::govern::access::AccessLevel;
use model::govern::access::quota::{self, LimitedCall, RateLimit};
use model::govern::approval::{ApprovalScope, ApprovalState};
use model::govern::trust::{Track, TrustState};
use model::policy::risk::Level;
use store::approvals::{Claim, GivenAnswer, WaitingPlace};
use store::{Approval, Store};

use crate::lab::{SharedHome, open, until};

pub(super) const NOW: i64 = 1_000_000;
pub(super) const LATER: i64 = NOW + 600_000;

pub(super) fn question(id: &str, binding: &str) -> Approval {
    Approval {
        id: id.to_owned(),
        state: ApprovalState::Pending,
        place: WaitingPlace::Inbox,
        asked_at_ms: NOW,
        expires_at_ms: LATER,
        binding: binding.to_owned(),
        tool_binding: "tool".to_owned(),
        session: None,
        call_id: "call".to_owned(),
        tool: "tool".to_owned(),
        caller: "ann".to_owned(),
        caller_is_owner: false,
        level: Level::L3,
        reasons: Vec::new(),
        why: String::new(),
        prompt: "May it?".to_owned(),
        arguments: "{}".to_owned(),
        answer: None,
        used_by_call: None,
        used_at_ms: None,
        uses: 0,
    }
}

pub(super) fn yes() -> GivenAnswer {
    GivenAnswer {
        scope: Some(ApprovalScope::Once),
        at_ms: NOW + 1,
        by: "owner".to_owned(),
        channel: "inbox".to_owned(),
        own_client: false,
        note: None,
        changed: None,
    }
}

fn claim(binding: &str, call: usize) -> Claim {
    claim_of(binding, &call.to_string())
}

pub(super) fn claim_of(binding: &str, call: &str) -> Claim {
    Claim {
        call_id: format!("call-{call}"),
        binding: binding.to_owned(),
        tool_binding: "tool".to_owned(),
        session: None,
        separate: false,
        own_client: true,
    }
}

/// What so many threads on both nodes get.
fn race<T: Send>(
    stores: &[Store],
    count: usize,
    work: impl Fn(&Store, usize) -> Option<T> + Sync,
) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..count)
            .map(|number| {
                let store = &stores[number % stores.len()];
                scope.spawn(move || work(store, number))
            })
            .collect();
        let ended = threads.into_iter();
        ended.filter_map(|thread| thread.join().unwrap()).collect()
    })
}

/// Asked on one node, approved on the other, used by one of fifty.
#[test]
fn an_approval_is_used_once_by_fifty_takers_on_two_nodes() {
    let home = SharedHome::new("race-approval");
    let stores = [home.store(), home.store()];
    stores[0].approvals().ask(&question("a", "b"), NOW).unwrap();
    let approvals = stores[1].approvals();
    let state = ApprovalState::Approved;
    assert!(approvals.answer("a", state, &yes(), Some(LATER)).unwrap());
    let used = race(&stores, 50, |store, number| {
        store
            .approvals()
            .claim(&claim("b", number), NOW + 2)
            .unwrap()
    });
    assert_eq!(used.len(), 1);
    assert_eq!((used[0].state, used[0].uses), (ApprovalState::Used, 1));
    // As many approvals as takers: each gets one.
    for number in 0..10 {
        let id = format!("a{number}");
        // Shown to a client each, so that none joins another.
        let mut asked = question(&id, "many");
        asked.place = WaitingPlace::Client;
        stores[0].approvals().ask(&asked, NOW).unwrap();
        assert!(approvals.answer(&id, state, &yes(), Some(LATER)).unwrap());
    }
    let used = race(&stores, 10, |store, number| {
        store
            .approvals()
            .claim(&claim("many", number), NOW + 2)
            .unwrap()
    });
    assert_eq!(used.len(), 10);
}

/// A refusal is delivered to one call, and a question is answered once.
#[test]
fn a_question_is_answered_once_and_its_refusal_delivered_once() {
    let home = SharedHome::new("race-answer");
    let stores = [home.store(), home.store()];
    stores[0].approvals().ask(&question("a", "b"), NOW).unwrap();
    let answered = race(&stores, 20, |store, _| {
        let no = GivenAnswer {
            scope: None,
            ..yes()
        };
        let answered = store
            .approvals()
            .answer("a", ApprovalState::Declined, &no, None);
        answered.unwrap().then_some(())
    });
    assert_eq!(answered.len(), 1);
    let got = race(&stores, 20, |store, number| {
        store
            .approvals()
            .claim(&claim("b", number), NOW + 2)
            .unwrap()
    });
    assert_eq!(got.len(), 1);
}

/// The same question from many calls is one row, and the bound of a caller holds.
#[test]
fn the_same_question_is_asked_once() {
    let home = SharedHome::new("race-ask");
    let stores = [home.store(), home.store()];
    let written = race(&stores, 20, |store, number| {
        let asked = store
            .approvals()
            .ask(&question(&format!("q{number}"), "b"), NOW);
        (asked.unwrap() == store::approvals::AskResult::Written).then_some(())
    });
    assert_eq!(written.len(), 1);
    assert_eq!(home.ask("SELECT count(*) FROM approvals"), "1");
}

fn limit(units_per_day: Option<u64>, concurrent: Option<u64>) -> RateLimit {
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

fn enter(store: &Store, limit: &RateLimit) -> bool {
    let visit = LimitedCall {
        caller: "ann",
        groups: &[],
        tool: "tool",
        units: 1,
        at_ms: 0,
    };
    let usage = store.usage();
    let (limit, process) = (limit.clone(), usage.process().clone());
    let key = [("few".to_owned(), "ann".to_owned())];
    let entered = usage.change(&key, 0, move |tallies| {
        let mut held = vec![(&limit, tallies.remove(0))];
        let entered = quota::enter(&mut held, &visit, &process);
        tallies.extend(held.into_iter().map(|(_, tally)| tally));
        entered.is_ok()
    });
    entered.unwrap().unwrap()
}

#[test]
fn a_limit_over_two_nodes_is_reached_and_never_exceeded() {
    let home = SharedHome::new("race-limit");
    let stores = [home.store(), home.store()];
    let thirty = limit(Some(30), None);
    let entered = race(&stores, 60, |store, _| enter(store, &thirty).then_some(()));
    assert_eq!(entered.len(), 30);
}

/// Fifty takers on two nodes, each call under two limits: it counts under both or under
/// neither, five run at one time, thirty in all, and what ends is free again.
#[test]
fn two_limits_hold_together_for_fifty_takers_on_two_nodes() {
    let home = SharedHome::new("race-limits");
    let stores = [home.store(), home.store()];
    let mut few = limit(Some(30), None);
    few.id = "day".to_owned();
    let five = limit(None, Some(5));
    let keys = [&five, &few].map(|limit| (limit.id.clone(), "ann".to_owned()));
    let visit = LimitedCall {
        caller: "ann",
        groups: &[],
        tool: "tool",
        units: 1,
        at_ms: 0,
    };
    let running = AtomicUsize::new(0);
    let most = AtomicUsize::new(0);
    let entered = race(&stores, 50, |store, _| {
        let usage = store.usage();
        let mut count = 0;
        // A place is free again when another call ends, so each tries until the day is over.
        for _ in 0..200 {
            let (five, few, process) = (five.clone(), few.clone(), usage.process().clone());
            let entered = usage.change(&keys, 0, move |tallies| {
                let taken = std::mem::take(tallies);
                let mut held: Vec<_> = [&five, &few].into_iter().zip(taken).collect();
                let entered = quota::enter(&mut held, &visit, &process);
                tallies.extend(held.into_iter().map(|(_, tally)| tally));
                entered.map_err(|exceeded| exceeded.id)
            });
            match entered.unwrap().unwrap() {
                Ok(()) => {}
                Err(id) if id == "day" => break,
                Err(_) => continue,
            }
            count += 1;
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            running.fetch_sub(1, Ordering::SeqCst);
            let process = usage.process().clone();
            let left = usage.change(&keys, 0, move |tallies| {
                for tally in tallies {
                    tally.leave(&process, 0, 0);
                }
            });
            left.unwrap();
        }
        (count > 0).then_some(count)
    });
    assert_eq!(entered.iter().sum::<usize>(), 30);
    assert!(most.load(Ordering::SeqCst) <= 5);
    let left = stores[0].usage().peek(&keys).unwrap();
    assert_eq!(left[0].processes().count(), 0, "every place is free");
    assert_eq!(left[1].units(), 30);
}

/// Tasks of two nodes count under limits that they share in part, so that one statement has
/// rows that belong together and rows that do not. Nothing is counted twice or lost.
#[test]
fn tasks_that_share_limits_in_part_are_counted_exactly() {
    let home = SharedHome::new("race-tasks");
    let stores = [home.store(), home.store()];
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let names = |number: usize| [number % 3, (number + 1) % 3].map(|at| format!("l{at}"));
    let tasks: Vec<_> = (0..120)
        .map(|number| {
            let usage = stores[number % 2].usage().clone();
            let keys = names(number).map(|limit| (limit, "ann".to_owned()));
            runtime.spawn(async move {
                let process = usage.process().clone();
                let entered = usage.change_in_task(&keys, 0, move |tallies| {
                    let visit = LimitedCall {
                        caller: "ann",
                        groups: &[],
                        tool: "tool",
                        units: 1,
                        at_ms: 0,
                    };
                    let limits = [limit(Some(50), None), limit(None, Some(1_000))];
                    let taken = std::mem::take(tallies);
                    let mut held: Vec<_> = limits.iter().zip(taken).collect();
                    let entered = quota::enter(&mut held, &visit, &process).is_ok();
                    tallies.extend(held.into_iter().map(|(_, tally)| tally));
                    entered
                });
                entered.await.unwrap().unwrap()
            })
        })
        .collect();
    let mut counted = [0_u64; 3];
    for (number, task) in tasks.into_iter().enumerate() {
        if runtime.block_on(task).unwrap() {
            counted[number % 3] += 1;
            counted[(number + 1) % 3] += 1;
        }
    }
    let keys = [0, 1, 2].map(|at| (format!("l{at}"), "ann".to_owned()));
    let found = stores[0].usage().peek(&keys).unwrap();
    let units: Vec<u64> = found.iter().map(|tally| tally.units()).collect();
    assert_eq!(units, counted);
    // The first limit of each call ends at fifty units, and each was asked for eighty.
    assert!(counted.iter().any(|counted| *counted >= 50), "{counted:?}");
}

/// A name that the database refuses fails its own call and none of those that are counted
/// with it.
#[test]
fn a_name_that_the_database_refuses_fails_its_call_alone() {
    let home = SharedHome::new("race-name");
    let store = home.store();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let tasks: Vec<_> = (0..64)
        .map(|number| {
            let usage = store.usage().clone();
            let name = match number % 8 {
                0 => format!("n\0{number}"),
                _ => format!("n{number}"),
            };
            let keys = [("few".to_owned(), name)];
            runtime.spawn(async move { usage.change_in_task(&keys, 0, |_| ()).await })
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        let changed = runtime.block_on(task).unwrap();
        assert_eq!(changed.is_err(), number % 8 == 0, "{number}: {changed:?}");
    }
}

/// The places of a node that is gone are free when its lease ends, and not before.
#[test]
fn places_of_a_dead_node_are_freed_with_its_lease() {
    let home = SharedHome::new("lease");
    let here = home.store();
    let two = limit(None, Some(2));
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_store-test-child"))
        .arg("enter")
        .arg(home.node("dies"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    assert_eq!(said, "entered Ok(())\n", "{child:?}");
    assert!(enter(&here, &two));
    assert!(!enter(&here, &two), "the dead node's lease still counts");
    home.bury_the_dead();
    assert!(enter(&here, &two));
    assert!(!enter(&here, &two));
}

/// Whatever one node changes, the other knows within a second, and at once where it was
/// changed. These nodes are not strict.
#[test]
fn changes_are_seen_by_other_nodes_within_a_second() {
    let home = SharedHome::new("news");
    let here = open(&home.node_with("here", ""));
    let there = open(&home.node_with("there", ""));
    let before = there.callers().version().unwrap();
    let own = here.callers().version().unwrap();
    let pause = |row: &mut store::callers::CallerRow| {
        row.paused = Some(store::callers::Paused {
            at_ms: 1,
            by: "owner".to_owned(),
            why: None,
        });
    };
    let began = std::time::Instant::now();
    here.callers().change("ann", 1, pause).unwrap();
    assert!(here.callers().version().unwrap() > own, "at once");
    until("the other node sees it", || {
        there.callers().version().unwrap() > before
    });
    assert!(
        began.elapsed() < std::time::Duration::from_millis(1_500),
        "{began:?}"
    );
    assert!(
        there
            .callers()
            .get("ann")
            .unwrap()
            .unwrap()
            .paused
            .is_some()
    );
}

/// A level that a caller loses on one node is lost on the other.
#[test]
fn trust_lost_on_one_node_is_lost_on_the_other() {
    let home = SharedHome::new("trust");
    let here = open(&home.node_with("trust-here", ""));
    let there = open(&home.node_with("trust-there", ""));
    let state = |level| TrustState {
        all: Track {
            level,
            since_ms: 1,
            verified_ms: 1,
        },
        categories: Default::default(),
    };
    // Known to both at the start: the levels a new caller begins with are no news.
    let mut known = Some(state(AccessLevel::Standard));
    here.callers()
        .keep_trust("Ann", None, &state(AccessLevel::Standard), 8)
        .unwrap();
    for level in [AccessLevel::Restricted, AccessLevel::Sandboxed] {
        let before = there.callers().version().unwrap();
        here.callers()
            .keep_trust("Ann", known.as_ref(), &state(level), 9)
            .unwrap();
        until("the other node sees it", || {
            there.callers().version().unwrap() > before
        });
        let row = there.callers().get("ann").unwrap().unwrap();
        assert_eq!(row.trust, Some(state(level)));
        known = Some(state(level));
    }
}

/// A key that was revoked on one node opens nothing on the other.
#[test]
fn a_revoked_key_is_dead_on_every_node() {
    use model::govern::key::{self, KeyRecord, Role};
    let home = SharedHome::new("revoke");
    let here = store::Keys::open(&home.node_with("here", "")).unwrap();
    let there = store::Keys::open(&home.node_with("there", "")).unwrap();
    let id = key::id([1; key::ID_BYTES]);
    let record = KeyRecord {
        digest: key::key(&id, [1; key::SECRET_BYTES]).digest(),
        id,
        name: "ada".to_owned(),
        role: Role::Agent,
        created_ms: 5,
        expires_ms: None,
    };
    assert_eq!(there.find(&record.id).unwrap(), None);
    here.add(&record).unwrap();
    assert_eq!(here.find(&record.id).unwrap(), Some(record.clone()));
    until("the key is known", || {
        there.find(&record.id).unwrap().is_some()
    });
    assert!(here.revoke("ADA").unwrap());
    assert_eq!(here.find(&record.id).unwrap(), None, "at once");
    until("the key is dead", || {
        there.find(&record.id).unwrap().is_none()
    });
}
