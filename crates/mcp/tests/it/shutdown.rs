//! The server ends well: nothing new is taken, calls finish or are cancelled, audit
//! rows are closed, streams end.

use model::record::audit::Status;
use serde_json::json;
use tokio::net::TcpStream;

use crate::client::{LEGACY, call, request};
use crate::lab::Lab;
use crate::world::World;

#[tokio::test]
async fn calls_may_finish() {
    let world = World::new().await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let calling = tokio::spawn(async move {
        client
            .modern(&call(1, "slow", json!({"go": true})))
            .await
            .last()
            .await
    });
    let held = lab.arrived().await;
    server.shutdown.soft.cancel();
    // The socket is closed to newcomers before the call has ended.
    while TcpStream::connect(server.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    held.release().await;
    assert_eq!(
        calling.await.unwrap()["result"]["content"][0]["text"],
        "done"
    );
    server.ended.await.unwrap();
    world.ended_as("slow", Status::Done).await;
}

#[tokio::test]
async fn a_second_request_to_end_stops_at_once() {
    let world = World::new().await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    let server = world.serve().await;
    let mut client = server.client().await;
    client.begin(LEGACY, json!({})).await;
    let answer = client.post(&call(1, "slow", json!({"go": true}))).await;
    let held = lab.arrived().await;
    server.shutdown.soft.cancel();
    server.shutdown.hard.cancel();
    held.gone().await;
    server.ended.await.unwrap();
    // Closed before the server said that it ended.
    world.ended_as("slow", Status::Cancelled).await;
    // The client is told, or sees the stream end.
    let said = answer.messages().await;
    assert!(
        said.iter().all(|said| said["result"]["isError"] == true),
        "{said:?}"
    );
}

#[tokio::test]
async fn waiting_streams_end() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut legacy = server.client().await;
    legacy.begin(LEGACY, json!({})).await;
    let mut news = legacy.another().await;
    let get = news
        .send(axum::http::Method::GET, "/mcp", axum::body::Body::empty())
        .await;
    let mut modern = server.client().await;
    let listen = request(
        1,
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
    );
    let listening = modern.modern(&listen).await;
    server.end().await;
    assert_eq!(get.messages().await, Vec::<serde_json::Value>::new());
    let said = listening.messages().await;
    // Acknowledged first, ended with a result.
    assert_eq!(
        said.first().unwrap()["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert!(said.last().unwrap().get("result").is_some(), "{said:?}");
}

#[tokio::test]
async fn a_pipe_that_closes_ends_the_server() {
    let world = World::new().await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    let (mut pipe, serving, _) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    pipe.say(&call(1, "slow", json!({"go": true}))).await;
    let held = lab.arrived().await;
    pipe.hang_up();
    held.gone().await;
    serving.await.unwrap();
    world.ended_as("slow", Status::Cancelled).await;
}

/// Asked once, a call at a pipe may finish, and its answer arrives; nothing new is read.
#[tokio::test]
async fn calls_at_a_pipe_may_finish() {
    let world = World::new().await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    let (mut pipe, serving, shutdown) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    pipe.say(&call(1, "slow", json!({"go": true}))).await;
    let held = lab.arrived().await;
    shutdown.soft.cancel();
    pipe.say(&call(2, "echo", json!({"text": "late"}))).await;
    // Long after it was asked, as far as tasks are concerned.
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.door.calls_under_way(), 1);
    held.release().await;
    let said = pipe.next().await.unwrap();
    assert_eq!(said["result"]["content"][0]["text"], "done", "{said}");
    assert_eq!(pipe.next().await, None);
    serving.await.unwrap();
    world.ended_as("slow", Status::Done).await;
}

#[tokio::test]
async fn a_second_request_to_end_closes_a_pipe_at_once() {
    let world = World::new().await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    let (mut pipe, serving, shutdown) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    pipe.say(&call(1, "slow", json!({"go": true}))).await;
    let held = lab.arrived().await;
    shutdown.soft.cancel();
    shutdown.hard.cancel();
    held.gone().await;
    serving.await.unwrap();
    world.ended_as("slow", Status::Cancelled).await;
}

#[tokio::test]
async fn a_server_on_pipes_can_be_asked_to_end() {
    let world = World::new().await;
    let (mut pipe, serving, shutdown) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    shutdown.soft.cancel();
    serving.await.unwrap();
    assert_eq!(pipe.next().await, None);
}
