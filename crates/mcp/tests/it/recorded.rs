//! Every attempt at a tool is in the audit, whatever stood in its way: also what the door
//! itself refuses, and never finds its way to a tool.

use engine::{AuditEntry, Filter};
use model::caller::Origin;
use model::record::audit::Status;
use serde_json::{Value, json};

use crate::ask_scene::{guarded, read, to, yes};
use crate::client::{Http, LEGACY, call, request};
use crate::lab::Lab;
use crate::world::{CALLER, Server, World};

const SETTINGS: &str = "[expected]\ntools = ['echo']\n[serve]\ncalls_per_caller_max = 1\n[approvals]\nwait_seconds = 1\n\
    [[rule]]\nid = 'no'\ntools = ['echo']\nwhen = \"args.text == 'bad'\"\neffect = 'deny'\n\
    reason = 'not that'\n";

fn attempts(world: &World) -> Vec<AuditEntry> {
    let filter = Filter {
        limit: Some(1_000),
        ..Filter::default()
    };
    let entries = world.engine().store().audit().list(&filter).unwrap();
    let is_call = |entry: &AuditEntry| entry.opening.origin == Origin::Mcp;
    entries.into_iter().filter(is_call).collect()
}

/// What the audit says about the newest attempt: the gate that stopped it, and why.
fn newest(world: &World) -> (String, String, String) {
    let entry = attempts(world).into_iter().next().expect("an attempt");
    let closing = entry.closing.expect("it has ended");
    assert_eq!(closing.status, Status::Refused);
    let stopped = closing.gates.iter().find(|auth| auth.verdict == "stop");
    let stopped = stopped.expect("a auth said no");
    (
        entry.opening.call_id,
        stopped.gate.to_string(),
        stopped.reason.as_deref().unwrap_or_default().to_owned(),
    )
}

/// A modern call of a client that can be asked.
async fn asks(client: &mut Http, message: &Value) -> Value {
    let capable = json!({"elicitation": {}});
    client.modern_with(message, capable).await.last().await
}

fn again(id: u64, whom: &str, state: &str) -> Value {
    let mut message = call(id, "asks", to(whom));
    message["params"]["requestState"] = json!(state);
    message["params"]["inputResponses"] = json!({"approval": yes()});
    message
}

/// What a refusal says: its code, whether as a result or as an error of the protocol.
fn said_code(said: &Value) -> &str {
    let result = said.pointer("/result/structuredContent/code");
    let error = said.pointer("/error/data/code");
    result.or(error).and_then(Value::as_str).unwrap_or_default()
}

fn said_id(said: &Value) -> &str {
    let result = said.pointer("/result/_meta/ringfence~1callId");
    let error = said.pointer("/error/data/callId");
    result.or(error).and_then(Value::as_str).unwrap_or_default()
}

async fn scene() -> (World, Server, Lab) {
    let world = World::with(SETTINGS).await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    world.publish(&guarded("asks", "one")).await;
    let server = world.serve().await;
    (world, server, lab)
}

#[tokio::test]
async fn calls_over_the_limit_are_recorded() {
    let (world, server, lab) = scene().await;
    let mut busy = server.client().await;
    let slow = tokio::spawn(async move {
        let message = call(1, "slow", json!({"go": true}));
        busy.modern(&message).await.last().await
    });
    let held = lab.arrived().await;
    let before = attempts(&world).len();
    let mut client = server.client().await;
    // In both eras, and what is no call at all just as well.
    let said = client.modern(&call(2, "echo", json!({"text": "x"}))).await;
    let said = said.last().await;
    let (id, auth, reason) = newest(&world);
    assert_eq!((auth.as_str(), reason.as_str()), ("limits", "call.busy"));
    assert_eq!(
        (said_code(&said), said_id(&said)),
        ("call.busy", id.as_str())
    );
    let mut legacy = server.client().await;
    legacy.begin(LEGACY, json!({})).await;
    let said = legacy
        .post(&call(3, "nothing", json!({})))
        .await
        .last()
        .await;
    assert_eq!(said_code(&said), "call.busy", "{said}");
    assert_eq!(said_id(&said), newest(&world).0);
    assert_eq!(attempts(&world).len(), before + 2);
    held.release().await;
    assert_eq!(slow.await.unwrap()["result"]["content"][0]["text"], "done");
    server.end().await;
}

#[tokio::test]
async fn foreign_answers_are_recorded() {
    let (world, server, _lab) = scene().await;
    let mut client = server.client().await;
    let asked = asks(&mut client, &call(1, "asks", to("ann"))).await;
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    read().await;
    let mut other = client.another().await;
    other.headers.push((CALLER.to_owned(), "bob".to_owned()));
    let mut seen = attempts(&world).len();
    let mut refused = async |client: &mut Http, message: Value, what: &str| {
        let said = asks(client, &message).await;
        let (id, auth, reason) = newest(&world);
        assert_eq!(said_code(&said), "approval.state", "{what}: {said}");
        assert_eq!(
            (auth.as_str(), reason.as_str()),
            ("approval", "approval.state")
        );
        assert_eq!(said_id(&said), id, "{what}: {said}");
        seen += 1;
        assert_eq!(attempts(&world).len(), seen, "{what}");
    };
    refused(&mut client, again(2, "ann", "made up"), "forged").await;
    refused(&mut client, again(3, "bob", &state), "another call's").await;
    refused(&mut other, again(4, "ann", &state), "another caller's").await;
    let ran = asks(&mut client, &again(5, "ann", &state)).await;
    assert_eq!(ran["result"]["isError"], false, "{ran}");
    seen += 1;
    let refused = async |client: &mut Http, message: Value, what: &str| {
        let said = asks(client, &message).await;
        assert_eq!(said_code(&said), "approval.state", "{what}: {said}");
        assert_eq!(said_id(&said), newest(&world).0, "{what}: {said}");
    };
    refused(&mut client, again(6, "ann", &state), "replayed").await;
    assert_eq!(attempts(&world).len(), seen + 1);
    server.end().await;
}

/// As many records as attempts, whatever becomes of them.
#[tokio::test]
async fn there_are_as_many_records_as_attempts() {
    let (world, server, _lab) = scene().await;
    let before = attempts(&world).len();
    let mut made = 0;
    let mut client = server.client().await;
    let mut legacy = server.client().await;
    legacy.begin(LEGACY, json!({})).await;
    let (mut pipe, _, _) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    let calls = [
        call(1, "echo", json!({"text": "fine"})),
        call(2, "echo", json!({"text": "bad"})),
        call(3, "echo", json!({"text": 5})),
        call(4, "echo", json!({})),
        call(5, "nothing", json!({})),
        call(6, "", json!({})),
        call(7, "asks", to("ann")),
        // Params that are none.
        call(8, "echo", json!(["text"])),
        request(9, "tools/call", json!({"arguments": {}})),
        request(10, "tools/call", json!({"name": 5})),
        again(11, "ann", "made up"),
    ];
    for message in &calls {
        // A name that is none cannot be in the header either, so the transport refuses it.
        if message["params"]["name"].is_string() {
            let _ = client.modern(message).await.text().await;
            made += 1;
        }
        let _ = legacy.post(message).await.text().await;
        let _ = pipe.ask(message).await;
        made += 2;
    }
    let all = attempts(&world);
    assert_eq!(all.len(), before + made);
    assert!(all.iter().all(|entry| entry.closing.is_some()));
    server.end().await;
}
