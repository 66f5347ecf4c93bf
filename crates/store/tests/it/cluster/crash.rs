//! A node is killed at every step it makes with the shared store: between each answer and the
//! next statement. The other node goes on, nothing is used twice, and what the dead one held
//! is free when its lease ends. And a node whose clock is wrong by an hour.

use std::fs;
use std::process::Command;

use model::govern::access::quota::{self, LimitedCall, RateLimit};
use model::govern::approval::ApprovalState;
use model::record::job::JobState;
use store::Store;

use super::race::{LATER, NOW, claim_of, question, yes};
use crate::lab::{SharedHome, open, until};

const CHILD: &str = env!("CARGO_BIN_EXE_store-test-child");

/// More steps than a node makes in its life here.
const STEPS_MAX: u64 = 400;

fn enter(store: &Store, caller: &str) -> bool {
    let limit = RateLimit {
        id: "few".to_owned(),
        callers: Vec::new(),
        groups: Vec::new(),
        tools: Vec::new(),
        calls_per_minute: None,
        concurrent: Some(1),
        units_per_day: None,
    };
    let usage = store.usage();
    let (process, name) = (usage.process().clone(), caller.to_owned());
    let key = [("few".to_owned(), caller.to_owned())];
    let entered = usage.change(&key, 0, move |tallies| {
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
        entered.is_ok()
    });
    entered.unwrap().unwrap()
}

#[test]
fn a_node_killed_at_any_step_leaves_nothing_behind() {
    let shared = SharedHome::new("killed");
    let here = open(&shared.path);
    here.shared_files().unwrap().sync().unwrap();
    let node = shared.node("killed-node");
    // It has joined: what it writes from now on is shared.
    let joined = open(&node).shared_files().unwrap().sync();
    joined.unwrap();
    let mut ended = None;
    for step in 1..STEPS_MAX {
        let name = format!("n{step}");
        let binding = name.as_str();
        here.approvals()
            .ask(&question(&name, binding), NOW)
            .unwrap();
        let answered = here
            .approvals()
            .answer(&name, ApprovalState::Approved, &yes(), Some(LATER));
        assert!(answered.unwrap());
        fs::create_dir_all(node.join("tools")).unwrap();
        fs::write(node.join(format!("tools/{name}.json")), "{}").unwrap();
        let child = Command::new(CHILD)
            .arg("node")
            .arg(&node)
            .args([&name, &step.to_string()])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout).into_owned();
        let said = |word: &str| said.contains(&format!("{word} {name}\n"));
        check_after(&shared, &here, &name, step, said);
        if said("over") {
            ended = Some(step);
            break;
        }
        assert_eq!(child.status.code(), None, "{step}: {child:?}");
    }
    let steps = ended.expect("a node that is not killed comes to its end");
    assert!(steps > 40, "only {steps} steps");
}

/// What the other node finds after the death, at once and when the lease is over.
fn check_after(
    shared: &SharedHome,
    here: &Store,
    name: &str,
    step: u64,
    said: impl Fn(&str) -> bool,
) {
    let own = here.usage().process();
    // More than once: a statement that the dead node had sent may still be carried out, and
    // renew its lease.
    let end_leases = || {
        shared.sql(&format!(
            "UPDATE processes SET expires = clock_timestamp() - interval '1 second' WHERE id <> '{own}'"
        ));
    };
    // An approval that the dead node used is used; one it did not use can be used here, once.
    let uses = |at: i64| here.approvals().claim(&claim_of(name, "here"), at).unwrap();
    let here_too = uses(NOW + 2).is_some();
    assert!(
        !(said("claimed") && here_too),
        "{step}: an approval was used twice"
    );
    assert!(uses(NOW + 3).is_none(), "{step}");
    let used = shared.ask(&format!("SELECT uses FROM approvals WHERE id = '{name}'"));
    assert_eq!(used, "1", "{step}");
    // Its place is free, whatever it held.
    until(&format!("{step}: its place is free"), || {
        end_leases();
        enter(here, name)
    });
    // Its job runs no more.
    let job = || {
        here.jobs()
            .get(&format!("job-{name}"), "ann", 3)
            .unwrap()
            .found
    };
    if job().is_some() {
        let end = || job().and_then(|job| job.end);
        until(&format!("{step}: its job is over"), || {
            end_leases();
            end().is_some()
        });
        let state = end().map(|end| end.state);
        let expected = match (said("ended"), state) {
            (true, _) => Some(JobState::Done),
            // It may have been written, and the child did not live to say so.
            (false, Some(JobState::Done)) => Some(JobState::Done),
            (false, _) => Some(JobState::Orphaned),
        };
        assert_eq!(state, expected, "{step}");
    }
    // Its journal can be taken over, with the step that was written before the tool ran.
    let taken = here
        .scripts()
        .take(&format!("key-{name}"), NOW + 5)
        .unwrap();
    if said("stepped") {
        assert_eq!(taken.unwrap().steps, ["step"], "{step}");
    }
    // Its files are whole: there or not, and never half.
    let synced = here.shared_files().unwrap().sync().unwrap();
    assert!(synced.overtaken.is_empty(), "{step}: {synced:?}");
    if said("synced") {
        let file = shared.path.join(format!("tools/{name}.json"));
        assert_eq!(fs::read_to_string(file).unwrap(), "{}", "{step}");
    }
}

/// Every node goes by the clock of the database. Control: a home that stands alone goes by
/// its own.
#[test]
fn a_clock_that_is_wrong_by_an_hour_decides_nothing() {
    let shared = SharedHome::new("skew");
    drop(shared.store());
    let tell = |home: &std::path::Path, ahead: i64| {
        let child = Command::new(CHILD)
            .arg("clock")
            .arg(home)
            .arg(ahead.to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout).into_owned();
        let now: i64 = said.trim().strip_prefix("now ").unwrap().parse().unwrap();
        now - store::clock::now_ms()
    };
    let hour = 3_600_000;
    for ahead in [-hour, 0, hour] {
        let off = tell(&shared.node("skewed"), ahead);
        assert!(off.abs() < 60_000, "{ahead}: {off}");
    }
    let alone = crate::scratch::Home::new("skew-alone");
    let off = tell(&alone.path, hour);
    assert!((off - hour).abs() < 60_000, "{off}");
}
