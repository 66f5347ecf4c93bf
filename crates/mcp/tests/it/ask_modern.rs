//! Asking the person at a modern client: the call ends with the question, and comes
//! again with the answer and a sealed state.

use std::time::Duration;

use engine::Filter;
use model::audit::Status;
use serde_json::{Value, json};

use crate::client::{Http, call};
use crate::world::{CALLER, Server, World, document};

/// Longer than nobody needs to read.
const READ: Duration = Duration::from_millis(160);

fn guarded(name: &str, code: &str) -> Value {
    let more = json!({
        "humanInTheLoop": {"mode": "REQUIRED"},
        "params": [{"name": "to", "type": "STRING", "required": false}],
    });
    document(name, code, more)
}

async fn world(settings: &str) -> (World, Server) {
    let world = World::with(&format!("[approvals]\nwait_seconds = 1\n{settings}")).await;
    world.publish(&guarded("guarded", "return 'ran'")).await;
    let server = world.serve().await;
    (world, server)
}

fn capable() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn message() -> Value {
    call(1, "guarded", json!({"to": "ann"}))
}

/// The call with an answer.
fn retry(state: &Value, response: &Value) -> Value {
    let mut message = message();
    message["id"] = json!(2);
    message["params"]["requestState"] = state.clone();
    message["params"]["inputResponses"] = json!({"approval": response});
    message
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"answer": "once"}})
}

/// Makes the call and returns the state its question came with.
async fn asked(client: &mut Http) -> Value {
    let said = client.modern_with(&message(), capable()).await.last().await;
    state_of(&said)
}

fn state_of(said: &Value) -> Value {
    let result = &said["result"];
    assert_eq!(result["resultType"], "input_required", "{said}");
    let asked = &result["inputRequests"]["approval"];
    assert_eq!(asked["method"], "elicitation/create");
    let words = asked["params"]["message"].as_str().unwrap();
    assert!(
        words.contains("guarded") && words.contains(r#""to":"ann""#),
        "{words}"
    );
    assert_eq!(
        asked["params"]["requestedSchema"]["required"],
        json!(["answer"])
    );
    result["requestState"].clone()
}

async fn read() {
    // Sleeps: an answer counts only if somebody could have read the question.
    tokio::time::sleep(READ).await;
}

async fn answer(client: &mut Http, message: &Value) -> String {
    let said = client.modern_with(message, capable()).await.last().await;
    outcome(&said)
}

/// `ran`, or the code of the error.
fn outcome(said: &Value) -> String {
    let result = &said["result"];
    if result["content"][0]["text"] == "ran" {
        return "ran".to_owned();
    }
    if result["resultType"] == "input_required" {
        return "asked".to_owned();
    }
    assert_eq!(result["isError"], true, "{said}");
    result["structuredContent"]["code"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn runs(world: &World) -> usize {
    let filter = Filter {
        caller: Some("ann".to_owned()),
        ..Filter::default()
    };
    let entries = world.engine().store().audit().list(&filter).unwrap();
    let done = entries.iter().filter_map(|entry| entry.closing.as_ref());
    done.filter(|closing| closing.status == Status::Done)
        .count()
}

#[tokio::test]
async fn a_yes_runs_the_call_once() {
    let (world, server) = world("").await;
    let mut client = server.client().await;
    let state = asked(&mut client).await;
    assert_eq!(runs(&world), 0);
    read().await;
    let message = retry(&state, &yes());
    assert_eq!(answer(&mut client, &message).await, "ran");
    // Once more is once too often.
    assert_eq!(answer(&mut client, &message).await, "approval.state");
    assert_eq!(runs(&world), 1);
    // And the next call asks again.
    assert_eq!(answer(&mut client, &self::message()).await, "asked");
    server.end().await;
}

#[tokio::test]
async fn two_at_once_run_once() {
    let (world, server) = world("").await;
    let mut first = server.client().await;
    let mut second = server.client().await;
    let state = asked(&mut first).await;
    read().await;
    let message = retry(&state, &yes());
    let both = tokio::join!(answer(&mut first, &message), answer(&mut second, &message));
    assert_eq!(runs(&world), 1, "{both:?}");
    server.end().await;
}

#[tokio::test]
async fn anything_else_than_a_yes_runs_nothing() {
    let (world, server) = world("").await;
    let rows = [
        (json!({"action": "decline"}), "approval.declined"),
        (json!({"action": "cancel"}), "approval.dismissed"),
        (json!({"action": "accept"}), "approval.malformed"),
        (
            json!({"action": "accept", "content": {"answer": "always"}}),
            "approval.malformed",
        ),
        (json!({"action": "sure"}), "approval.malformed"),
        (json!("yes"), "approval.malformed"),
    ];
    for (response, code) in rows {
        let mut client = server.client().await;
        let state = asked(&mut client).await;
        read().await;
        let said = answer(&mut client, &retry(&state, &response)).await;
        assert_eq!(said, code, "{response}");
    }
    // Faster than anybody reads: somebody else is asked, and nobody is there.
    let mut client = server.client().await;
    let state = asked(&mut client).await;
    let said = answer(&mut client, &retry(&state, &yes())).await;
    assert_eq!(said, "approval.pending");
    assert_eq!(runs(&world), 0);
    server.end().await;
}

#[tokio::test]
async fn a_state_opens_nothing_else() {
    let (world, server) = world("").await;
    world.publish(&guarded("other", "return 'ran'")).await;
    let mut client = server.client().await;
    let state = asked(&mut client).await;
    read().await;
    let good = retry(&state, &yes());
    let mut other_tool = good.clone();
    other_tool["params"]["name"] = json!("other");
    let mut other_arguments = good.clone();
    other_arguments["params"]["arguments"] = json!({"to": "mallory"});
    let mut no_arguments = good.clone();
    no_arguments["params"]
        .as_object_mut()
        .unwrap()
        .remove("arguments");
    let mut tampered = good.clone();
    tampered["params"]["requestState"] = json!(format!("{}A", state.as_str().unwrap()));
    let mut made_up = good.clone();
    made_up["params"]["requestState"] = json!("made up");
    for wrong in [other_tool, other_arguments, no_arguments, tampered, made_up] {
        assert_eq!(
            answer(&mut client, &wrong).await,
            "approval.state",
            "{wrong}"
        );
    }
    let mut thief = server.client().await;
    thief
        .headers
        .push((CALLER.to_owned(), "mallory".to_owned()));
    assert_eq!(answer(&mut thief, &good).await, "approval.state");
    assert_eq!(runs(&world), 0);
    // All that did not use it up.
    assert_eq!(answer(&mut client, &good).await, "ran");
    server.end().await;
}

/// What was agreed to must be what runs.
#[tokio::test]
async fn a_changed_tool_is_asked_about_again() {
    let (world, server) = world("").await;
    let mut client = server.client().await;
    let state = asked(&mut client).await;
    world
        .publish(&guarded("guarded", "return 'ran' + ''"))
        .await;
    read().await;
    assert_eq!(answer(&mut client, &retry(&state, &yes())).await, "asked");
    assert_eq!(runs(&world), 0);
    server.end().await;
}

#[tokio::test]
async fn an_old_state_is_refused() {
    let (world, server) = world("expire_seconds = 1\n").await;
    let mut client = server.client().await;
    let state = asked(&mut client).await;
    // Sleeps: the question must expire, and seconds are the shortest there are.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let said = answer(&mut client, &retry(&state, &yes())).await;
    assert_eq!(said, "approval.state");
    assert_eq!(runs(&world), 0);
    server.end().await;
}

/// Where somebody else must approve, the caller's client is not asked.
#[tokio::test]
async fn somebody_else_is_asked_elsewhere() {
    let (world, server) = world("separate = true\n").await;
    let mut client = server.client().await;
    assert_eq!(answer(&mut client, &message()).await, "approval.pending");
    assert_eq!(runs(&world), 0);
    server.end().await;
}

#[tokio::test]
async fn pipes_ask_the_same_way() {
    let (world, server) = world("[callers.stdio]\n").await;
    let (mut pipe, _, _) = world.pipe();
    let said = pipe.modern(&message(), capable()).await;
    let state = state_of(&said);
    read().await;
    let said = pipe.modern(&retry(&state, &yes()), capable()).await;
    assert_eq!(outcome(&said), "ran");
    let said = pipe.modern(&retry(&state, &yes()), capable()).await;
    assert_eq!(outcome(&said), "approval.state");
    let state = state_of(&pipe.modern(&message(), capable()).await);
    read().await;
    let said = pipe
        .modern(&retry(&state, &json!({"action": "decline"})), capable())
        .await;
    assert_eq!(outcome(&said), "approval.declined");
    server.end().await;
}
