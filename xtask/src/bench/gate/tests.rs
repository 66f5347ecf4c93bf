//! What the gate makes of reports, against samples of what benches print.

use super::*;

/// What the benches of `sandbox` print: a table, then two reports.
fn sandbox(fresh: &str, worker_kb: &str) -> String {
    format!(
        "Timer precision: 20 ns\n\
         {{\"fresh_us\":38.00,\"fresh_ratio\":{fresh},\"compute_geomean_ratio\":1.87}}\n\
         some words {{ that are no report\n\
         {{\n  \"parked\": {{ \"worker_kb_each\": {worker_kb}, \"parent_kb_each\": 2.0 }},\n\
         \"kill\": {{ \"median_ms\": 100.8 }},\n\
         \"quickjs_emscripten\": {{ \"not_measured\": \"no node\" }}\n}}\n"
    )
}

#[test]
fn kept_promises_pass() {
    let judged = judge("sandbox", PromiseSet::All, &sandbox("0.305", "62"));
    assert!(judged.is_kept, "{judged:?}");
    assert_eq!(judged.lines.len(), 5);
    let lines = judged.lines.join("\n");
    assert!(
        lines.contains("sandbox.memory           64.00  at most 130"),
        "{lines}"
    );
    assert!(lines.contains("not measured here"), "{lines}");
}

#[test]
fn a_broken_promise_fails_and_is_named() {
    let judged = judge("sandbox", PromiseSet::Ci, &sandbox("0.51", "62"));
    assert!(!judged.is_kept);
    let broken: Vec<_> = judged
        .lines
        .iter()
        .filter(|line| line.contains("BROKEN"))
        .collect();
    assert_eq!(broken.len(), 1, "{judged:?}");
    let first = broken
        .first()
        .is_some_and(|line| line.starts_with("sandbox.fresh"));
    assert!(first, "{judged:?}");
    assert!(!judge("sandbox", PromiseSet::Ci, &sandbox("0.3", "129")).is_kept);
}

#[test]
fn what_was_not_measured_is_not_kept() {
    for printed in [
        "",
        "{}",
        "{\"verify_cpu_ms\": null, \"list_50_all_cpu_ms\": 1}",
        "{\"verify",
    ] {
        assert!(
            !judge("store", PromiseSet::Ci, printed).is_kept,
            "{printed}"
        );
    }
}

#[test]
fn ratios_and_items_of_lists_are_found() {
    let calls =
        "{\"cpu_us_per_call\": {\"sixty_four_at_a_time\": {\"governed\": 110, \"bare\": 55}}}";
    assert!(judge("engine", PromiseSet::All, calls).is_kept);
    let dearer = calls.replace("110", "111");
    assert!(!judge("engine", PromiseSet::All, &dearer).is_kept);
    let server = "{\"governed / echo, 2026-07-28\": [3.1, 3.7, 4.1], \"targets\": {\"p50 ms alone, 2026-07-28\": {\"measured\": 0.5}}}";
    assert!(!judge("mcp", PromiseSet::All, server).is_kept);
    assert!(judge("mcp", PromiseSet::All, &server.replace("4.1", "3.9")).is_kept);
}

/// A busy machine is asked for less.
#[test]
fn ci_judges_what_is_stable() {
    assert!(!has_promises("mcp", PromiseSet::Ci));
    assert!(has_promises("mcp", PromiseSet::All));
    assert!(has_promises("store", PromiseSet::Ci));
}

#[test]
fn nan_breaks_every_bound() {
    assert!(!Bound::AtMost(1.0).holds(f64::NAN));
    assert!(!Bound::AtLeast(1.0).holds(f64::NAN));
}
