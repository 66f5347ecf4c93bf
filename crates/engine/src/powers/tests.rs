//! The engine does not believe the guest: what was not granted is refused here,
//! whatever a sandbox asks for.

use sandbox::job::{HostCallId, HostCallKind};
use serde_json::Value;

use super::*;

fn ask(operation: &str, json: &str) -> HostAnswer {
    let request = HostRequest {
        id: HostCallId(1),
        kind: HostCallKind::Direct,
        operation: operation.to_owned(),
        payload: Payload {
            json: json.to_owned(),
            bytes: Vec::new(),
        },
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(Powers::none().call(request))
}

#[track_caller]
fn refused(operation: &str, json: &str, kind: &str, reason: &str) {
    let HostAnswer::Error(text) = ask(operation, json) else {
        panic!("`{operation}` was answered");
    };
    let fault: Value = serde_json::from_str(&text).expect("a fault is JSON");
    assert_eq!(fault["kind"], kind, "{operation}");
    assert_eq!(fault["reason"], reason, "{operation}");
}

#[test]
fn what_was_not_granted_is_refused() {
    for operation in [
        "fetch",
        "fs.readText",
        "fs.writeText",
        "fs.",
        "",
        "probe",
        "FETCH",
        "parser.htm",
    ] {
        refused(operation, "[]", "SECURITY", "not-granted");
    }
}

#[test]
fn arguments_that_are_not_json_are_refused() {
    refused(
        "crypto.randomUUID",
        "{",
        "INVALID_INPUT",
        "invalid-arguments",
    );
}

#[test]
fn computing_needs_no_grant() {
    let HostAnswer::Value(answer) = ask("parser.yaml", r#"{"text": "a: 1"}"#) else {
        panic!("no answer");
    };
    assert!(answer.json.contains(r#""a":1"#), "{}", answer.json);
}

#[test]
fn no_power_shows_no_face() {
    assert!(Powers::none().faces().is_empty());
}
