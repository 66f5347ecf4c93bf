//! A first contact with a plain client.

use std::time::Duration;

use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::both_eras::Peer;
use crate::client::{LEGACY, MODERN, call, initialize, meta, request};
use crate::lab::Lab;
use crate::world::{Server, World};

/// A modern call, with these headers and no others.
async fn plain(server: &Server, path: &str, headers: &str, message: &Value) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let body = message.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         mcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\nmcp-name: echo\r\n{headers}\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    said
}

fn echo() -> Value {
    let mut message = call(1, "echo", json!({"text": "here"}));
    message["params"]["_meta"] = meta(json!({}));
    message
}

#[tokio::test]
async fn clients_that_accept_anything_are_answered() {
    let world = World::new().await;
    let server = world.serve().await;
    for accept in [
        "",
        "accept: */*\r\n",
        "accept: text/html, */*;q=0.8\r\n",
        "accept: application/json, text/event-stream\r\n",
    ] {
        let said = plain(&server, "/mcp", accept, &echo()).await;
        assert!(said.starts_with("HTTP/1.1 200"), "{accept}: {said}");
        assert!(said.contains("\"text\":\"here\""), "{accept}: {said}");
    }
    let said = plain(&server, "/mcp", "accept: image/png\r\n", &echo()).await;
    assert!(said.starts_with("HTTP/1.1 406"), "{said}");
    // A session too, and its stream of news.
    let mut client = server.client().await;
    client.begin(LEGACY, json!({})).await;
    client.headers.push(("accept".to_owned(), "*/*".to_owned()));
    let answer = client.send(Method::GET, "/mcp", Body::empty()).await;
    assert_eq!(answer.status, 200);
    drop(answer);
    server.end().await;
}

#[tokio::test]
async fn a_slash_at_the_end_does_no_harm() {
    let world = World::new().await;
    let server = world.serve().await;
    let said = plain(&server, "/mcp/", "", &echo()).await;
    assert!(said.contains("\"text\":\"here\""), "{said}");
    let mut client = server.client().await;
    let initialize = Body::from(initialize(LEGACY, json!({})).to_string());
    let answer = client.send(Method::POST, "/mcp/", initialize).await;
    assert!(answer.headers.contains_key("mcp-session-id"));
    server.end().await;
}

/// A model is told how things are here, in every era and over every transport, and only of
/// what its own list has.
#[tokio::test]
async fn instructions_describe_calls_and_approvals() {
    let cases = [
        (
            "",
            vec!["approval.pending", "codecall_execute"],
            vec!["load_tool"],
        ),
        (
            "[codecall]\nmode = \"off\"\n[progressive]\nenabled = true\n",
            vec!["approval.pending", "load_tool"],
            vec!["codecall"],
        ),
        (
            "[callers.ann]\ndeny = [\"codecall_*\"]\n[callers.stdio]\ndeny = [\"codecall_*\"]\n",
            vec!["approval.pending"],
            vec!["codecall", "load_tool"],
        ),
    ];
    for (settings, present, absent) in cases {
        let world = World::with(settings).await;
        let server = world.serve().await;
        let mut told = Vec::new();
        let mut http = server.client().await;
        told.push(http.begin(LEGACY, json!({})).await["result"]["instructions"].clone());
        let mut http = server.client().await;
        let discover = request(1, "server/discover", json!({}));
        let found = http.modern(&discover).await.last().await;
        told.push(found["result"]["instructions"].clone());
        let (mut pipe, _, _) = world.pipe();
        told.push(pipe.begin(LEGACY, json!({})).await["result"]["instructions"].clone());
        for told in told {
            let told = told.as_str().expect("instructions");
            for word in &present {
                assert!(told.contains(word), "{settings}: {word} in {told}");
            }
            for word in &absent {
                assert!(!told.contains(word), "{settings}: {word} in {told}");
            }
            assert!(told.len() < 1_500, "{}", told.len());
        }
        server.end().await;
    }
}

/// What is not declared is not there, rather than empty.
#[tokio::test]
async fn methods_that_are_not_declared_are_not_found() {
    let world = World::new().await;
    let server = world.serve().await;
    for mut peer in Peer::all(&world, &server, &json!({})).await {
        let reference = json!({"type": "ref/prompt", "name": "x"});
        let argument = json!({"name": "a", "value": "b"});
        let methods = [
            ("prompts/list", json!({})),
            ("prompts/get", json!({"name": "x"})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("resources/read", json!({"uri": "file:///x"})),
            (
                "completion/complete",
                json!({"ref": reference, "argument": argument}),
            ),
            ("logging/setLevel", json!({"level": "info"})),
            ("tasks/get", json!({"taskId": "x"})),
            ("made/up", json!({})),
        ];
        for (id, (method, params)) in (1..).zip(methods) {
            let said = peer.ask(&request(id, method, params)).await;
            assert_eq!(said["error"]["code"], -32601, "{method}: {said}");
        }
    }
    server.end().await;
}

/// A call of the newest revision that takes long begins its stream before it has an answer,
/// and its answer is the one message of it.
#[tokio::test]
async fn a_long_call_begins_its_stream_before_its_answer() {
    let world = World::new().await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    let soon = |bounds: &mut mcp::http::HttpBounds| bounds.stream_first = Duration::from_millis(20);
    let server = world.serve_within(soon).await;
    let mut client = server.client().await;
    let message = call(7, "slow", json!({"go": true}));
    let answering = tokio::spawn(async move { client.modern(&message).await });
    let held = lab.arrived().await;
    // The head is there although the call is not over.
    let answer = answering.await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.is_stream());
    held.release().await;
    let said = answer.messages().await;
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["id"], 7);
    assert_eq!(said[0]["result"]["content"][0]["text"], "done");
    // Progress, where it is wanted, goes along.
    let mut client = server.client().await;
    let mut message = call(8, "slow", json!({"go": true}));
    message["params"]["_meta"] = json!({"progressToken": "p"});
    let answering = tokio::spawn(async move { client.modern(&message).await });
    let held = lab.arrived().await;
    let mut events = answering.await.unwrap().events();
    assert_eq!(
        events.next().await.unwrap()["method"],
        "notifications/progress"
    );
    held.release().await;
    let said = loop {
        let said = events.next().await.unwrap();
        if said.get("method").is_none() {
            break said;
        }
    };
    assert_eq!(said["result"]["content"][0]["text"], "done");
    server.end().await;
}

/// A client that closes such a stream cancels the call, as on any other.
#[tokio::test]
async fn hanging_up_on_an_early_stream_cancels_the_call() {
    let world = World::new().await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    let soon = |bounds: &mut mcp::http::HttpBounds| bounds.stream_first = Duration::from_millis(20);
    let server = world.serve_within(soon).await;
    let mut client = server.client().await;
    let message = call(7, "slow", json!({"go": true}));
    let answering = tokio::spawn(async move { (client.modern(&message).await, client) });
    let held = lab.arrived().await;
    let (answer, client) = answering.await.unwrap();
    assert!(answer.is_stream());
    drop((answer, client));
    held.gone().await;
    world
        .ended_as("slow", model::record::audit::Status::Cancelled)
        .await;
    server.end().await;
}
