//! Asking the person at the client, while the call is open.

use std::time::Duration;

use model::audit::Status;
use serde_json::{Value, json};

use crate::client::{Events, Http, LEGACY, Pipe, call};
use crate::world::{World, document};

/// Longer than nobody needs to read.
const READ: Duration = Duration::from_millis(160);

fn guarded() -> Value {
    let more = json!({"humanInTheLoop": {"mode": "REQUIRED", "promptTemplate": "Do {toolName}?"}});
    document("guarded", "return 'ran'", more)
}

/// The message and the form a client is shown.
fn shown(asked: &Value) -> &Value {
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    assert_eq!(asked["params"]["mode"], "form");
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("Do guarded?") && message.contains("L0"),
        "{message}"
    );
    let schema = &asked["params"]["requestedSchema"];
    assert_eq!(schema["required"], json!(["answer"]));
    assert_eq!(schema["properties"]["answer"]["oneOf"][0]["const"], "once");
    &asked["id"]
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"answer": "once"}})
}

/// A session whose call waits for an answer.
async fn asked(client: &mut Http) -> (Events, Value) {
    let mut events = client.post(&call(1, "guarded", json!({}))).await.events();
    let question = events.next().await.unwrap();
    let id = shown(&question).clone();
    (events, id)
}

async fn asked_over_pipe(pipe: &mut Pipe) -> Value {
    pipe.say(&call(1, "guarded", json!({}))).await;
    let question = pipe.next().await.unwrap();
    shown(&question).clone()
}

fn answer(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

async fn pause(read: bool) {
    if read {
        // Sleeps: an answer counts only if somebody could have read the question.
        tokio::time::sleep(READ).await;
    }
}

/// What the client answers, whether it takes its time, and whether the call runs.
fn answers() -> Vec<(Value, bool, bool)> {
    vec![
        (yes(), true, true),
        (yes(), false, false),
        (json!({"action": "decline"}), true, false),
        (json!({"action": "cancel"}), true, false),
        (json!({"action": "accept"}), true, false),
        (
            json!({"action": "accept", "content": {"answer": "always"}}),
            true,
            false,
        ),
        (
            json!({"action": "sure", "content": {"answer": "once"}}),
            true,
            false,
        ),
    ]
}

fn ran(answer: &Value) -> bool {
    let result = &answer["result"];
    let ran = result["content"][0]["text"] == "ran";
    assert_eq!(result["isError"], !ran, "{answer}");
    if !ran {
        let code = result["structuredContent"]["code"].as_str().unwrap();
        assert!(code.starts_with("approval."), "{answer}");
    }
    ran
}

#[tokio::test]
async fn answers_in_a_session() {
    let world = World::with("[approvals]\nwait_seconds = 1\n").await;
    world.publish(&guarded()).await;
    let server = world.serve().await;
    for (result, read, runs) in answers() {
        let mut client = server.client().await;
        client
            .begin(LEGACY, json!({"elicitation": {"form": {}}}))
            .await;
        let mut other = client.another().await;
        let (mut events, id) = asked(&mut client).await;
        pause(read).await;
        let _ = other.post(&answer(&id, &result)).await.text().await;
        let said = events.next().await.unwrap();
        assert_eq!(ran(&said), runs, "{result}");
        let status = if runs { Status::Done } else { Status::Refused };
        world.ended_as("guarded", status).await;
    }
    server.end().await;
}

#[tokio::test]
async fn answers_over_pipes() {
    let world = World::with("[approvals]\nwait_seconds = 1\n").await;
    world.publish(&guarded()).await;
    for (result, read, runs) in answers() {
        let (mut pipe, _, _) = world.pipe();
        pipe.begin(LEGACY, json!({"elicitation": {}})).await;
        let id = asked_over_pipe(&mut pipe).await;
        pause(read).await;
        pipe.say(&answer(&id, &result)).await;
        let said = loop {
            let said = pipe.next().await.unwrap();
            if said["id"] == 1 {
                break said;
            }
        };
        assert_eq!(ran(&said), runs, "{result}");
    }
}

#[tokio::test]
async fn who_does_not_answer_has_not_agreed() {
    let world = World::with("[approvals]\nwait_seconds = 1\n").await;
    world.publish(&guarded()).await;
    let server = world.serve().await;
    let mut client = server.client().await;
    client.begin(LEGACY, json!({"elicitation": {}})).await;
    let (mut events, _) = asked(&mut client).await;
    let said = loop {
        let said = events.next().await.unwrap();
        if said["id"] == 1 {
            break said;
        }
    };
    assert!(!ran(&said));
    // A client that says it cannot ask after all.
    let mut other = client.another().await;
    let (mut events, id) = asked(&mut client.another().await).await;
    let cannot = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}});
    let _ = other.post(&cannot).await.text().await;
    assert!(!ran(&events.next().await.unwrap()));
    server.end().await;
}

/// A client that vanishes while it is asked: the call ends with the pipe.
#[tokio::test]
async fn who_vanishes_has_not_agreed() {
    let world = World::with("[approvals]\nwait_seconds = 60\n").await;
    world.publish(&guarded()).await;
    let (mut pipe, serving, _) = world.pipe();
    pipe.begin(LEGACY, json!({"elicitation": {}})).await;
    asked_over_pipe(&mut pipe).await;
    pipe.hang_up();
    serving.await.unwrap();
    let entry = world.ended("guarded").await;
    let status = entry.closing.unwrap().status;
    assert!(
        matches!(status, Status::Cancelled | Status::Refused),
        "{status:?}"
    );
}

/// A call that is taken back takes its question along.
#[tokio::test]
async fn a_cancelled_call_takes_its_question_back() {
    let world = World::with("[approvals]\nwait_seconds = 60\n").await;
    world.publish(&guarded()).await;
    let (mut pipe, _, _) = world.pipe();
    pipe.begin(LEGACY, json!({"elicitation": {}})).await;
    let id = asked_over_pipe(&mut pipe).await;
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    pipe.say(&cancelled).await;
    let said = pipe.next().await.unwrap();
    assert_eq!(said["method"], "notifications/cancelled");
    assert_eq!(said["params"]["requestId"], id);
    world.ended_as("guarded", Status::Cancelled).await;
}

/// Without the capability nobody is asked through the client, in either era.
#[tokio::test]
async fn clients_that_cannot_ask_are_not_asked() {
    let world = World::with("[approvals]\nwait_seconds = 1\n").await;
    world.publish(&guarded()).await;
    let server = world.serve().await;
    for capabilities in [
        json!({}),
        json!({"elicitation": {"url": {}}}),
        json!({"sampling": {}}),
    ] {
        let mut client = server.client().await;
        let message = call(1, "guarded", json!({}));
        let said = client
            .modern_with(&message, capabilities.clone())
            .await
            .last()
            .await;
        assert!(!ran(&said));
        client.begin(LEGACY, capabilities).await;
        assert!(!ran(&client.post(&message).await.last().await));
    }
    server.end().await;
}
