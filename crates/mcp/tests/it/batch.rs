//! Batches of the revision 2025-03-26: each message goes the way of a single one.

use engine::Filter;
use serde_json::{Value, json};

use crate::client::{Http, LEGACY, call, initialize, request};
use crate::inbox;
use crate::world::{Server, World};

const BATCHES: &str = "2025-03-26";

/// How many attempts at `echo` are recorded.
fn recorded(world: &World) -> usize {
    let filter = Filter {
        tool: Some("echo".to_owned()),
        ..Filter::default()
    };
    let entries = world.engine().store().audit().list(&filter).unwrap();
    let calls = entries.iter().filter(|entry| entry.opening.caller == "ann");
    calls.count()
}

async fn begun(server: &Server, version: &str) -> Http {
    let mut client = server.client().await;
    client.begin(version, json!({})).await;
    client
}

fn echo(id: u64) -> Value {
    call(id, "echo", json!({"text": id.to_string()}))
}

#[tokio::test]
async fn every_message_of_a_batch_is_answered_and_recorded() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut client = begun(&server, BATCHES).await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 99}});
    let batch = json!([
        echo(1),
        note,
        request(2, "tools/list", json!({})),
        request(3, "no/such", json!({})),
        {"jsonrpc": "1.0", "id": 4},
        echo(5),
    ]);
    // Clients of that revision do not know the header, and some send it.
    for headers in [2, 1] {
        client.headers.truncate(headers);
        let before = recorded(&world);
        let answer = client.post(&batch).await;
        assert_eq!(answer.status, 200);
        let said = answer.last().await;
        let said = said.as_array().unwrap();
        let ids: Vec<_> = said.iter().map(|answer| answer["id"].clone()).collect();
        assert_eq!(json!(ids), json!([1, 2, 3, 4, 5]), "{said:?}");
        assert_eq!(said[0]["result"]["content"][0]["text"], "1");
        assert!(said[1]["result"]["tools"].is_array());
        assert_eq!(said[2]["error"]["code"], -32601);
        assert_eq!(said[3]["error"]["code"], -32600);
        assert_eq!(said[4]["result"]["content"][0]["text"], "5");
        assert_eq!(recorded(&world) - before, 2);
    }
    let answer = client.post(&json!([note])).await;
    assert_eq!(answer.status, 202);
    server.end().await;
}

#[tokio::test]
async fn batches_need_their_revision_and_are_bounded() {
    let world = World::new().await;
    let server = world.serve().await;
    let many: Vec<_> = (0..33).map(echo).collect();
    for (version, batch, sentence) in [
        (LEGACY, json!([echo(1)]), "batches are not supported"),
        ("2025-06-18", json!([echo(1)]), "batches are not supported"),
        ("2024-11-05", json!([echo(1)]), "batches are not supported"),
        (BATCHES, json!([]), "at least one"),
        (BATCHES, json!(many), "at most 32"),
        (
            BATCHES,
            json!([echo(1), initialize(BATCHES, json!({}))]),
            "`initialize`",
        ),
    ] {
        let mut client = begun(&server, version).await;
        let answer = client.post(&batch).await;
        assert_eq!(answer.status, 400, "{version} {sentence}");
        let said = answer.last().await;
        assert_eq!(said["error"]["code"], -32600, "{said}");
        let message = said["error"]["message"].as_str().unwrap();
        assert!(message.contains(sentence), "{message}");
    }
    // Without a session no batch is accepted.
    let mut stranger = server.client().await;
    let answer = stranger.post(&json!([echo(1)])).await;
    assert_eq!(answer.status, 400);
    let _ = answer.text().await;
    assert_eq!(recorded(&world), 0);
    server.end().await;
}

#[tokio::test]
async fn calls_of_a_batch_count_one_by_one() {
    let world = World::with("[serve]\ncalls_per_caller_max = 2\n").await;
    let server = world.serve().await;
    let mut client = begun(&server, BATCHES).await;
    let answer = client.post(&json!([echo(1), echo(2), echo(3)])).await;
    let said = answer.last().await;
    let busy = said.as_array().unwrap().iter().filter(|answer| {
        let error = &answer["result"]["structuredContent"];
        error["code"] == "call.busy"
    });
    assert_eq!(busy.count(), 1, "{said}");
    assert_eq!(recorded(&world), 3);
    // And their places are free again.
    let said = client.post(&echo(4)).await.last().await;
    assert_eq!(said["result"]["isError"], false, "{said}");
    server.end().await;
}

#[tokio::test]
async fn a_batch_counts_as_many_requests_as_it_has_messages() {
    let world = World::with("[serve]\ncalls_per_minute = 8\n").await;
    let server = inbox::serve(&world).await;
    let mut client = Http::connect(server.address).await;
    let bearer = format!("Bearer {}", server.agent);
    client.headers.push(("authorization".to_owned(), bearer));
    client.begin(BATCHES, json!({})).await;
    let batch: Vec<_> = (1..=4).map(echo).collect();
    let answer = client.post(&json!(batch)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.last().await.as_array().unwrap().len(), 4);
    let before = recorded(&world);
    let answer = client.post(&json!(batch)).await;
    assert_eq!(answer.status, 429);
    let said = answer.last().await;
    assert_eq!(
        said["error"]["data"]["reason"], "gate.caller_limit",
        "{said}"
    );
    assert_eq!(recorded(&world), before);
}
