//! Every bound is hit once, and answered clearly.

use std::time::Instant;

use axum::body::Body;
use axum::http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{LEGACY, call, initialize, request};
use crate::lab::Lab;
use crate::world::{CALLER, World};

#[tokio::test]
async fn bodies_are_bounded() {
    let world = World::with("[serve]\nbody_bytes_max = 2048\n").await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let long = call(1, "echo", json!({"text": "x".repeat(4_000)}));
    let answer = client.modern(&long).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.last().await["error"]["code"], -32000);
    // A line of a pipe that is too long is dropped; the next one is read.
    let (mut pipe, _, _) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    pipe.say(&long).await;
    let answer = pipe.ask(&call(2, "echo", json!({"text": "short"}))).await;
    assert_eq!(answer["result"]["content"][0]["text"], "short");
    server.end().await;
}

#[tokio::test]
async fn heads_are_bounded() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut many = server.client().await;
    many.headers = (0..100)
        .map(|number| (format!("x-{number}"), "y".to_owned()))
        .collect();
    let answer = many.send(Method::GET, "/healthz", Body::empty()).await;
    assert_eq!(answer.status, 431);
    let mut long = server.client().await;
    long.headers
        .push(("x-long".to_owned(), "y".repeat(64 << 10)));
    let answer = long.send(Method::GET, "/healthz", Body::empty()).await;
    assert_eq!(answer.status, 431);
    server.end().await;
}

#[tokio::test]
async fn connections_are_bounded() {
    let world = World::with("[serve]\nconnections_max = 2\n").await;
    let server = world.serve().await;
    let mut first = server.client().await;
    let second = server.client().await;
    // The server has counted both once the first was answered on each.
    first
        .send(Method::GET, "/healthz", Body::empty())
        .await
        .text()
        .await;
    let mut third = TcpStream::connect(server.address).await.unwrap();
    let mut said = String::new();
    third.read_to_string(&mut said).await.unwrap();
    assert!(
        said.starts_with("HTTP/1.1 503") && said.contains("retry-after"),
        "{said}"
    );
    drop(second);
    // Room again, as soon as the server has noticed.
    loop {
        let mut next = TcpStream::connect(server.address).await.unwrap();
        let asked = next
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let mut said = String::new();
        if asked.await.is_ok()
            && next.read_to_string(&mut said).await.is_ok()
            && said.contains("200 OK")
        {
            break;
        }
    }
    server.end().await;
}

#[tokio::test]
async fn sessions_are_bounded_together_and_for_each() {
    let world = World::with("[serve]\nsessions_max = 3\nsessions_per_caller_max = 2\n").await;
    let server = world.serve().await;
    let mut first = server.client().await;
    first.begin(LEGACY, json!({})).await;
    server.client().await.begin(LEGACY, json!({})).await;
    let mut third = server.client().await;
    let answer = third.post(&initialize(LEGACY, json!({}))).await;
    assert_eq!(answer.status, 503);
    assert!(answer.headers.contains_key("retry-after"));
    assert_eq!(answer.last().await["error"]["code"], -32000);
    third.headers.push((CALLER.to_owned(), "bob".to_owned()));
    third.begin(LEGACY, json!({})).await;
    let mut fourth = server.client().await;
    fourth.headers.push((CALLER.to_owned(), "carol".to_owned()));
    let answer = fourth.post(&initialize(LEGACY, json!({}))).await;
    assert_eq!(answer.status, 503);
    let _ = answer.text().await;
    // One that ends makes room.
    first
        .send(Method::DELETE, "/mcp", Body::empty())
        .await
        .text()
        .await;
    fourth.begin(LEGACY, json!({})).await;
    // Modern requests need no session.
    first.headers.clear();
    let answer = first.modern(&call(1, "echo", json!({"text": "x"}))).await;
    assert_eq!(answer.status, 200);
    server.end().await;
}

#[tokio::test]
async fn calls_of_one_caller_are_bounded() {
    let world = World::with("[serve]\ncalls_per_caller_max = 1\n").await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    let server = world.serve().await;
    let mut busy = server.client().await;
    let slow = tokio::spawn(async move {
        busy.modern(&call(1, "slow", json!({"go": true})))
            .await
            .last()
            .await
    });
    let held = lab.arrived().await;
    let mut client = server.client().await;
    let answer = client
        .modern(&call(2, "echo", json!({"text": "x"})))
        .await
        .last()
        .await;
    assert_eq!(
        answer["result"]["structuredContent"]["code"], "call.busy",
        "{answer}"
    );
    assert_eq!(answer["result"]["structuredContent"]["retryable"], true);
    client.headers.push((CALLER.to_owned(), "bob".to_owned()));
    let answer = client
        .modern(&call(3, "echo", json!({"text": "x"})))
        .await
        .last()
        .await;
    assert_eq!(answer["result"]["isError"], false);
    held.release().await;
    assert_eq!(slow.await.unwrap()["result"]["content"][0]["text"], "done");
    assert_eq!(world.door.calls_under_way(), 0);
    server.end().await;
}

#[tokio::test]
async fn listeners_are_bounded() {
    let world = World::with("[serve]\nlisteners_max = 1\n").await;
    let server = world.serve().await;
    let listen = request(
        1,
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
    );
    let mut first = server.client().await;
    let mut events = first.modern(&listen).await.events();
    assert_eq!(
        events.next().await.unwrap()["method"],
        "notifications/subscriptions/acknowledged"
    );
    while world.door.listeners() == 0 {
        tokio::task::yield_now().await;
    }
    let mut second = server.client().await;
    let said = second.modern(&listen).await.last().await;
    assert_eq!(said["error"]["code"], -32000, "{said}");
    server.end().await;
}

/// What a call may cost is looked up at every request.
#[tokio::test]
async fn bounds_of_calls_hold_from_the_next_request() {
    let world = World::new().await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    let server = world.serve().await;
    let mut busy = server.client().await;
    let slow = tokio::spawn(async move {
        let message = call(1, "slow", json!({"go": true}));
        busy.modern(&message).await.last().await
    });
    let held = lab.arrived().await;
    let mut client = server.client().await;
    let message = call(2, "echo", json!({"text": "x"}));
    let said = client.modern(&message).await.last().await;
    assert_eq!(said["result"]["isError"], false);
    let settings = "[exposure]\npreset = \"none\"\n[serve]\ncalls_per_caller_max = 1\n";
    world.home.file("ringfence.toml", settings);
    let said = client.modern(&message).await.last().await;
    assert_eq!(said["result"]["structuredContent"]["code"], "call.busy");
    held.release().await;
    assert_eq!(slow.await.unwrap()["result"]["content"][0]["text"], "done");
    server.end().await;
}

/// Without it each streamed answer waits for the other side's kernel, 44 ms.
#[tokio::test(flavor = "multi_thread")]
async fn streamed_answers_do_not_wait() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut client = server.client().await;
    client.begin(LEGACY, json!({})).await;
    let mut took = Vec::new();
    for id in 0..21 {
        let started = Instant::now();
        let answer = client.post(&request(id, "ping", json!({}))).await;
        assert!(answer.is_stream());
        let _ = answer.last().await;
        took.push(started.elapsed());
    }
    took.sort();
    assert!(took[10].as_millis() < 10, "{took:?}");
    server.end().await;
}
