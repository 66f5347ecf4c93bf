//! Servers that misbehave. Each ends in a named fault, within its time, and leaves no
//! process behind; the control is a server that behaves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bridge::{Server, ServerFault, ServerStatus};
use serde_json::json;

use crate::support::{Folder, Lists, call, processes, server, settings, text, tool_call, until};

type IsExpected = fn(&ServerFault) -> bool;

/// How a server misbehaves, and whether the fault is the expected one.
const CASES: &[(&str, IsExpected)] = &[
    ("same-cursor", |fault| list(fault, "twice")),
    ("endless-pages", |fault| list(fault, "pages")),
    ("many-tools", |fault| list(fault, "tools") || is_late(fault)),
    ("long-line", |fault| list(fault, "more than 8 MiB")),
    ("no-list", |fault| {
        matches!(fault, ServerFault::Refused { .. })
    }),
    (
        "exit-early",
        |fault| matches!(fault, ServerFault::Start(why) if why.contains("the disk is on fire")),
    ),
    ("slow-handshake", is_late),
    (
        "endless-noise",
        |fault| matches!(fault, ServerFault::Start(why) if why.contains("no message")),
    ),
];

fn list(fault: &ServerFault, word: &str) -> bool {
    matches!(fault, ServerFault::List(why) if why.contains(word))
}

fn is_late(fault: &ServerFault) -> bool {
    matches!(fault, ServerFault::StartTimeout(_) | ServerFault::List(_))
}

#[tokio::test]
async fn every_misbehaving_server_ends_in_its_fault_and_leaves_nothing() {
    for (behaviour, is_expected) in CASES {
        let folder = Folder::new(behaviour);
        let mark = folder.0.display().to_string();
        let mut settings = settings(&folder, &[behaviour]);
        if *behaviour == "slow-handshake" {
            settings.start_timeout = Duration::from_secs(2);
        }
        let server = Server::new(settings, Arc::new(Lists::default()));
        let started = Instant::now();
        let fault = call(&server, "echo", json!({"words": "x"})).await;
        let fault = fault.expect_err("no result");
        assert!(is_expected(&fault), "{behaviour}: {fault:?}");
        assert!(started.elapsed() < Duration::from_secs(45), "{behaviour}");
        drop(server);
        until("the process is gone", || processes(&mark).is_empty()).await;
    }
    let folder = Folder::new("control");
    let (server, _) = server(&folder, &["good"]);
    assert!(call(&server, "echo", json!({"words": "x"})).await.is_ok());
}

#[tokio::test]
async fn a_server_that_ignores_sigterm_is_killed_with_its_children() {
    let folder = Folder::new("stubborn");
    let mark = folder.0.display().to_string();
    let (server, _) = server(&folder, &["stubborn"]);
    call(&server, "echo", json!({"words": "x"}))
        .await
        .expect("a result");
    assert!(!processes(&mark).is_empty());
    drop(server);
    until("the process is gone", || processes(&mark).is_empty()).await;
}

#[tokio::test]
async fn noise_on_standard_output_does_not_reach_a_caller() {
    let folder = Folder::new("noise");
    let (server, _) = server(&folder, &["noise"]);
    let result = call(&server, "echo", json!({"words": "clean"})).await;
    assert_eq!(text(&result.expect("a result")), "clean");
}

#[tokio::test]
async fn a_flood_of_changes_is_one_list() {
    let folder = Folder::new("flood");
    let (server, lists) = server(&folder, &["list-flood"]);
    call(&server, "echo", json!({"words": "x"}))
        .await
        .expect("a result");
    until("the list is fetched again", || lists.count() == 2).await;
    let more = until("a third list", || lists.count() > 2);
    let more = tokio::time::timeout(Duration::from_secs(1), more).await;
    assert!(more.is_err(), "the flood is one list");
}

#[tokio::test]
async fn a_call_without_an_answer_ends_in_time() {
    let folder = Folder::new("late");
    let (server, _) = server(&folder, &["good"]);
    let mut slow = tool_call("slow", json!({"ms": 10_000}));
    slow.timeout = Duration::from_millis(500);
    let late = server.call::<ServerFault>(slow, |_| Ok(())).await;
    assert_eq!(late, Err(ServerFault::Timeout(Duration::from_millis(500))));
}

/// The library that reads lines passes over one that is too long, so nothing would come.
#[tokio::test]
async fn an_answer_that_is_too_long_ends_its_call_at_once() {
    let folder = Folder::new("long");
    let (server, _) = server(&folder, &["good"]);
    let began = Instant::now();
    let mut long = tool_call("long", json!({}));
    long.timeout = Duration::from_secs(300);
    let fault = server.call::<ServerFault>(long, |_| Ok(())).await;
    let is_told =
        matches!(&fault, Err(ServerFault::TooLarge(why)) if why.contains("more than 8 MiB"));
    assert!(is_told, "{fault:?}");
    assert!(began.elapsed() < Duration::from_secs(60));
    // The connection lives on.
    let next = call(&server, "echo", json!({"words": "next"})).await;
    assert_eq!(text(&next.expect("a result")), "next");
}

#[tokio::test]
async fn a_server_that_talks_nonsense_in_a_call_loses_its_connection_and_says_why() {
    let folder = Folder::new("babbles");
    let (server, _) = server(&folder, &["good"]);
    let fault = call(&server, "babble", json!({})).await;
    let is_told =
        matches!(&fault, Err(ServerFault::Closed(why)) if why.contains("what is no message"));
    assert!(is_told, "{fault:?}");
    until("the status says it too", || {
        matches!(server.status(), ServerStatus::Failed(fault)
            if fault.to_string().contains("what is no message"))
    })
    .await;
}

#[tokio::test]
async fn a_server_reads_neither_our_variables_nor_what_it_was_not_given() {
    let folder = Folder::new("secrets");
    let canary = Folder::new("canary");
    let secret = canary.0.join("secret.txt");
    std::fs::write(&secret, "the canary").expect("a canary");
    let (server, _) = server(&folder, &["good"]);
    let path = json!({"path": secret.display().to_string()});
    let read = call(&server, "read", path).await.expect("a result");
    assert!(read.is_error, "{read:?}");
    let own = folder.0.join("allowed.txt");
    std::fs::write(&own, "allowed").expect("a file");
    let path = json!({"path": own.display().to_string()});
    let read = call(&server, "read", path).await.expect("a result");
    assert_eq!(text(&read), "allowed", "the control");
    let variable = call(&server, "variable", json!({"name": "CARGO_MANIFEST_DIR"})).await;
    assert_eq!(text(&variable.expect("a result")), "unset");
}

#[tokio::test]
async fn a_server_that_failed_is_not_tried_again_at_once() {
    let folder = Folder::new("held");
    let (server, _) = server(&folder, &["exit-early"]);
    let first = call(&server, "echo", json!({})).await;
    assert!(matches!(first, Err(ServerFault::Start(_))), "{first:?}");
    assert!(server.next_attempt().is_some());
    let second = call(&server, "echo", json!({})).await;
    assert!(
        matches!(second, Err(ServerFault::Waiting { .. })),
        "{second:?}"
    );
    assert!(matches!(server.status(), ServerStatus::Failed(_)));
}
