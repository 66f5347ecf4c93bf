//! What must hold when the load is over.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::node::{Cluster, Node, call, run};
use crate::{CONCURRENT, Sample, Seen, lock};

/// How long a lease lasts, and a little more.
const LEASE: Duration = Duration::from_secs(25);

pub(crate) fn whole(cluster: &Cluster, nodes: [Node; 3], seen: &Seen, curve: &[Sample]) {
    flat(curve);
    let number = |sql: &str| cluster.sql("load", sql).parse::<u64>().unwrap();
    // Everything is under way as it should: there were kills, calls and approvals.
    assert!(seen.kills.load(Ordering::SeqCst) > 0, "no node was killed");
    assert!(seen.ran.load(Ordering::SeqCst) > 0, "no call ran");
    assert!(
        seen.approved.load(Ordering::SeqCst) > 0,
        "no approval was used"
    );
    // The database was away: calls were refused, none hung, and they run again.
    let refused = seen.refused.load(Ordering::SeqCst);
    assert!(
        refused > 0,
        "no call was refused while the database was away"
    );
    let before = seen.ran_before_outage.load(Ordering::SeqCst);
    let ran = seen.ran.load(Ordering::SeqCst);
    assert!(
        before > 0 && ran > before,
        "{ran} ran, {before} of them before"
    );
    for node in nodes {
        node.stop();
    }
    // No approval was used twice.
    let most = number("SELECT coalesce(max(uses), 0) FROM approvals WHERE scope = 'once'");
    assert!(most <= 1, "an approval was used {most} times");
    let used = number("SELECT count(*) FROM approvals WHERE uses > 0");
    let calls = number("SELECT count(DISTINCT used_by_call) FROM approvals WHERE uses > 0");
    assert_eq!(used, calls, "two approvals for one call");
    let ran = seen.approved.load(Ordering::SeqCst);
    assert!(ran <= used, "{ran} calls ran by {used} approvals");
    // No lease is left, and no place in the limit: as many as are allowed run at one time.
    let began = Instant::now();
    let living = "SELECT count(*) FROM processes WHERE expires > clock_timestamp()";
    while number(living) > 0 {
        assert!(began.elapsed() < LEASE, "a lease is left");
        std::thread::park_timeout(Duration::from_millis(200));
    }
    let node = cluster.serve("a");
    for round in 0..CONCURRENT * 3 {
        let answer = call(
            &node.address,
            "countWords",
            &format!("{{\"text\":\"last {round}\"}}"),
        );
        let answer = answer.unwrap();
        assert!(answer.contains("\"words\":2"), "{answer}");
    }
    let running =
        number("SELECT count(*) FROM tallies WHERE state::jsonb -> 'running' <> '{}'::jsonb");
    assert_eq!(running, 0, "a place is left");
    node.stop();
    records(cluster, seen);
    let _ = fs::remove_dir_all(&cluster.folder);
}

/// Every acknowledged call has its opening and its end in the log of a node, and every log is
/// whole.
fn records(cluster: &Cluster, seen: &Seen) {
    let mut found: BTreeMap<String, u32> = BTreeMap::new();
    for name in ["a", "b", "c"] {
        let home = cluster.home(name);
        let verified = run(&home, &["audit", "verify"]);
        assert!(verified.contains("whole  "), "{name}: {verified}");
        count_records(&home, &mut found);
    }
    let acknowledged = lock(&seen.acknowledged);
    for id in acknowledged.iter() {
        let count = found.get(id).copied().unwrap_or(0);
        assert!(count >= 2, "call {id} has {count} records");
    }
}

/// How many lines of the log name each call.
fn count_records(home: &Path, found: &mut BTreeMap<String, u32>) {
    for entry in fs::read_dir(home.join("audit")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "log") {
            continue;
        }
        for line in fs::read_to_string(&path).unwrap().lines() {
            let Some((_, rest)) = line.split_once("\"callId\":\"") else {
                continue;
            };
            if let Some((id, _)) = rest.split_once('"') {
                *found.entry(id.to_owned()).or_default() += 1;
            }
        }
    }
}

/// The last third of the curve is not above the second one by more than a bound; in the first
/// one the program warms up.
fn flat(curve: &[Sample]) {
    let third = curve.len() / 3;
    let middle = |samples: &[Sample], of: fn(&Sample) -> u64| {
        let mut all: Vec<u64> = samples.iter().map(of).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or(0)
    };
    let second = curve.get(third..2 * third).unwrap_or_default();
    let last = curve.get(2 * third..).unwrap_or_default();
    let memory = |samples| middle(samples, |sample| sample.kilobytes);
    let descriptors = |samples| middle(samples, |sample| sample.descriptors);
    let (before, after) = (memory(second), memory(last));
    assert!(before > 0, "there is no curve");
    assert!(
        after <= before + before / 10 + 8_192,
        "memory grew from {before} to {after} KB"
    );
    let (before, after) = (descriptors(second), descriptors(last));
    assert!(
        after <= before + 12,
        "descriptors grew from {before} to {after}"
    );
}
