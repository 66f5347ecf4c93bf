//! Every bound is hit once, and answered clearly.

use std::time::Instant;

use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{Http, LEGACY, call, initialize, request};
use crate::lab::Lab;
use crate::world::{CALLER, World, document};

#[tokio::test]
async fn bodies_are_bounded() {
    let world = World::with("[serve]\nbody_bytes_max = 2048\n").await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let long = call(1, "echo", json!({"text": "x".repeat(4_000)}));
    let answer = client.modern(&long).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.last().await["error"]["code"], -32000);
    // A line of a pipe that is too long is answered, and the next one is read.
    let (mut pipe, _, _) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    let said = pipe.ask(&long).await;
    assert_eq!(said["error"]["code"], -32600, "{said}");
    // Of whom it cannot be told is answered too.
    pipe.line(&"x".repeat(1 << 20)).await;
    let said = pipe.next().await.unwrap();
    assert_eq!(
        (&said["id"], &said["error"]["code"]),
        (&Value::Null, &json!(-32600))
    );
    let answer = pipe.ask(&call(2, "echo", json!({"text": "short"}))).await;
    assert_eq!(answer["result"]["content"][0]["text"], "short");
    let alarms = world.alarms.lock().unwrap().join("\n");
    assert_eq!(
        alarms.matches("longer than 2048 bytes").count(),
        2,
        "{alarms}"
    );
    server.end().await;
}

/// The official client for Python takes no event beyond 1 MiB.
#[tokio::test]
async fn a_large_answer_of_a_session_is_no_event() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut client = server.client().await;
    client.begin(LEGACY, json!({})).await;
    for (id, name, count) in [(1, "short", 1_000), (2, "long", 1_200_000)] {
        let code = format!("return {{text: 'x'.repeat({count})}}");
        world.publish(&document(name, &code, json!({}))).await;
        let answer = client.post(&call(id, name, json!({}))).await;
        assert_eq!(answer.is_stream(), name == "short", "{name}");
        let said = answer.last().await;
        assert_eq!(said["id"], id);
        let text = said["result"]["structuredContent"]["text"].as_str();
        assert_eq!(text.map(str::len), Some(count), "{name}");
    }
    // The session goes on.
    let said = client.post(&call(3, "short", json!({}))).await.last().await;
    assert_eq!(said["result"]["isError"], false, "{said}");
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
        .push(("x-long".to_owned(), "y".repeat(128 << 10)));
    let answer = long.send(Method::GET, "/healthz", Body::empty()).await;
    assert_eq!(answer.status, 431);
    // To the byte: the first line and the headers.
    let head = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-long: ";
    for (bytes, status) in [
        (32 << 10, "200"),
        ((32 << 10) + 1, "431"),
        (48 << 10, "431"),
    ] {
        let long = "y".repeat(bytes - head.len() - "\r\n\r\n".len());
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!("{head}{long}\r\n\r\n");
        assert_eq!(head.len(), bytes);
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        assert!(
            said.starts_with(&format!("HTTP/1.1 {status} ")),
            "{bytes}: {said}"
        );
    }
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

/// Whether the session of a client is still there.
async fn is_there(client: &mut Http) -> bool {
    let answer = client.post(&request(9, "ping", json!({}))).await;
    let status = answer.status;
    let _ = answer.text().await;
    assert!(status == 200 || status == 404, "{status}");
    status == 200
}

#[tokio::test]
async fn sessions_are_bounded_and_the_longest_idle_gives_way() {
    let world = World::with("[serve]\nsessions_max = 3\nsessions_per_caller_max = 2\n").await;
    let server = world.serve().await;
    let mut first = server.client().await;
    first.begin(LEGACY, json!({})).await;
    let mut second = server.client().await;
    second.begin(LEGACY, json!({})).await;
    assert!(is_there(&mut first).await);
    // The second was idle for longer.
    let mut third = server.client().await;
    third.begin(LEGACY, json!({})).await;
    assert!(!is_there(&mut second).await);
    assert!(is_there(&mut first).await && is_there(&mut third).await);
    // Of another caller, as long as there is room for all.
    let mut bob = server.client().await;
    bob.headers.push((CALLER.to_owned(), "bob".to_owned()));
    bob.begin(LEGACY, json!({})).await;
    assert!(is_there(&mut first).await && is_there(&mut third).await);
    // A newcomer, where all places are taken.
    let mut carol = server.client().await;
    carol.headers.push((CALLER.to_owned(), "carol".to_owned()));
    carol.begin(LEGACY, json!({})).await;
    assert!(!is_there(&mut bob).await);
    // Modern requests need no session.
    let mut modern = server.client().await;
    let answer = modern.modern(&call(1, "echo", json!({"text": "x"}))).await;
    assert_eq!(answer.status, 200);
    server.end().await;
}

#[tokio::test]
async fn a_session_with_a_call_under_way_does_not_give_way() {
    let settings = "[serve]\nsessions_max = 2\ncall_seconds_max = 40\n";
    let world = World::with(settings).await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    let server = world.serve().await;
    let mut held = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = server.client().await;
        client.begin(LEGACY, json!({})).await;
        // No client listens at the second; its call continues all the same.
        let answer = client.post(&call(1, "slow", json!({"go": true}))).await;
        held.push(lab.arrived().await);
        clients.push((client, answer));
    }
    let (lost, answer) = clients.pop().unwrap();
    let headers = lost.headers.clone();
    drop((lost, answer));
    let mut third = server.client().await;
    let answer = third.post(&initialize(LEGACY, json!({}))).await;
    assert_eq!(answer.status, 429);
    // By then the calls are over, whatever they do.
    let wait: u64 = answer.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=41).contains(&wait), "{wait}");
    let said = answer.last().await;
    assert_eq!(
        said["error"]["data"]["reason"], "gate.session_limit",
        "{said}"
    );
    // The one whose call has ended does.
    held.pop().unwrap().release().await;
    world.ended("slow").await;
    loop {
        let answer = third.post(&initialize(LEGACY, json!({}))).await;
        let status = answer.status;
        let _ = answer.text().await;
        match status.as_u16() {
            200 => break,
            status => assert_eq!(status, 429),
        }
    }
    let mut lost = server.client().await;
    lost.headers = headers;
    assert!(!is_there(&mut lost).await);
    held.pop().unwrap().release().await;
    let (_, answer) = clients.pop().unwrap();
    assert_eq!(answer.last().await["result"]["content"][0]["text"], "done");
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
    while world.door.calls_under_way() > 0 {
        tokio::task::yield_now().await;
    }
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
async fn call_bounds_take_effect_at_the_next_request() {
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
