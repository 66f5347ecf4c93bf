//! Unread answers are work in flight: they hold a place among the calls of their
//! caller, and their bytes are counted, of each caller and of all together.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::client::{LEGACY, MODERN, call, meta, request};
use crate::world::{CALLER, Server, World, document};

/// What a tool of these tests returns. It leaves twice: as text and as structure.
const BYTES: usize = 6 << 20;
const LONG: Duration = Duration::from_secs(60);

async fn scene(settings: &str) -> (World, Server) {
    let world = World::with(settings).await;
    let code = format!("return 'x'.repeat({BYTES})");
    world.publish(&document("long", &code, json!({}))).await;
    let server = world.serve().await;
    (world, server)
}

/// A client with little room of its own calls the tool, and reads the first byte.
async fn unread(server: &Server, caller: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    let mut message = call(1, "long", json!({}));
    message["params"]["_meta"] = meta(json!({}));
    let body = message.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         {CALLER}: {caller}\r\nmcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\n\
         mcp-name: long\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.read_exact(&mut [0]).await.unwrap();
    stream
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LONG, "never: {what}");
        // Sleeps: looks again until it is so.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn unread_bytes_are_bounded_per_caller() {
    let (world, server) = scene("").await;
    let mut streams = Vec::new();
    for count in 1..=3 {
        streams.push(unread(&server, "eve").await);
        // Both copies of each are there, and counted.
        let least = count * 2 * BYTES - (1 << 20);
        assert!(world.door.unsent_bytes() > least, "{count}");
    }
    // More than half of what one caller may have: nothing further runs for that caller.
    let mut client = server.client().await;
    client.headers.push((CALLER.to_owned(), "eve".to_owned()));
    let message = call(2, "echo", json!({"text": "x"}));
    let said = client.modern(&message).await.last().await;
    let told = &said["result"]["structuredContent"];
    assert_eq!(
        (&told["code"], &told["retryable"]),
        (&json!("call.busy"), &json!(true)),
        "{said}"
    );
    assert!(
        told["message"].as_str().unwrap().contains("not read"),
        "{said}"
    );
    assert!(said["result"]["_meta"]["ringfence/callId"].is_string());
    world
        .ended_as("echo", model::record::audit::Status::Refused)
        .await;
    let said = client.modern(&request(3, "tools/list", json!({}))).await;
    assert_eq!(said.last().await["error"]["code"], -32000);
    // Another caller is not concerned.
    client.headers.clear();
    let said = client.modern(&message).await.last().await;
    assert_eq!(said["result"]["isError"], false, "{said}");
    // A client that reads gets it whole, and has room again.
    let mut whole = Vec::new();
    streams
        .pop()
        .unwrap()
        .read_to_end(&mut whole)
        .await
        .unwrap();
    assert!(whole.len() > 2 * BYTES, "{}", whole.len());
    client.headers.push((CALLER.to_owned(), "eve".to_owned()));
    let said = client.modern(&message).await.last().await;
    assert_eq!(said["result"]["isError"], false, "{said}");
    // A client that disconnects leaves nothing behind.
    drop(streams);
    until("the bytes are gone", || world.door.unsent_bytes() == 0).await;
    server.end().await;
}

#[tokio::test]
async fn an_unread_answer_keeps_its_slot() {
    let (world, server) = scene("[serve]\ncalls_per_caller_max = 2\n").await;
    let first = unread(&server, "ann").await;
    let second = unread(&server, "ann").await;
    assert_eq!(world.door.calls_under_way(), 2);
    let mut client = server.client().await;
    let message = call(2, "echo", json!({"text": "x"}));
    let said = client.modern(&message).await.last().await;
    assert_eq!(
        said["result"]["structuredContent"]["code"], "call.busy",
        "{said}"
    );
    drop(first);
    until("a place is free", || world.door.calls_under_way() == 1).await;
    let said = client.modern(&message).await.last().await;
    assert_eq!(said["result"]["isError"], false, "{said}");
    drop(second);
    server.end().await;
}

/// A client that took an answer can call again at once: its place is free before its stream ends.
#[tokio::test]
async fn a_read_answer_frees_its_slot() {
    let (_world, server) = scene("[serve]\ncalls_per_caller_max = 1\n").await;
    let mut legacy = server.client().await;
    legacy.begin(LEGACY, json!({})).await;
    let mut modern = server.client().await;
    for id in 1..40 {
        let message = call(id, "echo", json!({"text": "x"}));
        let said = match id % 2 {
            0 => modern.modern(&message).await.last().await,
            _ => legacy.post(&message).await.events().next().await.unwrap(),
        };
        assert_eq!(said["result"]["isError"], false, "{id}: {said}");
    }
    server.end().await;
}

/// Answers that are made at the same time and do not fit are not kept: who asked is told
/// that the call ran.
#[tokio::test]
async fn answers_that_do_not_fit_are_withheld() {
    let (world, server) = scene("").await;
    let many: Vec<_> = (0..12).map(|_| unread(&server, "eve")).collect();
    let mut streams = futures_util::future::join_all(many).await;
    let most = 64 << 20;
    assert!(world.door.unsent_bytes() <= most + (1 << 20));
    let mut told = Vec::new();
    for stream in &mut streams {
        let mut whole = Vec::new();
        stream.read_to_end(&mut whole).await.unwrap();
        told.push(match whole.len() {
            length if length > 2 * BYTES => "whole".to_owned(),
            _ => {
                let text = String::from_utf8_lossy(&whole).into_owned();
                let code = text.split("\"code\":\"").nth(1).expect(&text);
                code.split('"').next().unwrap().to_owned()
            }
        });
    }
    let count = |word: &str| told.iter().filter(|told| *told == word).count();
    assert!(count("whole") >= 4, "{told:?}");
    let refused = count("answer.withheld") + count("call.busy");
    assert_eq!(count("whole") + refused, 12, "{told:?}");
    assert!(refused > 0, "{told:?}");
    server.end().await;
}
