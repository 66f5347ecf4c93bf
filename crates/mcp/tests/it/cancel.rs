//! A cancelled call stops: the request of its tool hangs up, and its audit
//! row says so.

use std::time::Instant;

use axum::body::Body;
use axum::http::Method;
use model::record::audit::Status;
use serde_json::json;

use crate::client::{LEGACY, call};
use crate::lab::Lab;
use crate::world::World;

#[tokio::test]
async fn a_modern_client_that_hangs_up_cancels() {
    let world = World::new().await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let started = Instant::now();
    let calling = tokio::spawn(async move {
        client
            .modern(&call(1, "slow", json!({"go": true})))
            .await
            .last()
            .await
    });
    let held = lab.arrived().await;
    calling.abort();
    held.gone().await;
    world.ended_as("slow", Status::Cancelled).await;
    assert!(started.elapsed().as_secs() < 5);
    server.end().await;
}

#[tokio::test]
async fn a_cancelled_notification_cancels() {
    let world = World::new().await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    let server = world.serve().await;
    let mut client = server.client().await;
    client.begin(LEGACY, json!({})).await;
    let mut other = client.another().await;
    let calling = tokio::spawn(async move {
        client
            .post(&call(7, "slow", json!({"go": true})))
            .await
            .messages()
            .await
    });
    let held = lab.arrived().await;
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    other.post(&cancelled).await.text().await;
    held.gone().await;
    world.ended_as("slow", Status::Cancelled).await;
    // No answer comes after a cancellation, but the stream ends with the session.
    calling.abort();
    server.end().await;
}

#[tokio::test]
async fn a_cancelled_notification_cancels_over_pipes() {
    for modern in [false, true] {
        let world = World::new().await;
        let lab = Lab::new().await;
        world.publish(&lab.tool()).await;
        let (mut pipe, _, _) = world.pipe();
        let mut message = call(7, "slow", json!({"go": true}));
        if modern {
            message["params"]["_meta"] = crate::client::meta(json!({}));
        } else {
            pipe.begin(LEGACY, json!({})).await;
        }
        pipe.say(&message).await;
        let held = lab.arrived().await;
        pipe.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}))
            .await;
        held.gone().await;
        world.ended_as("slow", Status::Cancelled).await;
    }
}

/// A legacy stream can be taken up again, so losing it is no cancellation: before the
/// answer has come, and after.
#[tokio::test]
async fn a_legacy_client_that_hangs_up_can_come_back() {
    let world = World::new().await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    let server = world.serve().await;
    for is_late in [false, true] {
        let mut client = server.client().await;
        client.begin(LEGACY, json!({})).await;
        let mut back = client.another().await;
        let mut events = client
            .post(&call(7, "slow", json!({"go": true})))
            .await
            .events();
        let held = lab.arrived().await;
        let last = events.first_id().await;
        drop((events, client));
        let resume = ("last-event-id".to_owned(), last);
        back.headers.push(resume.clone());
        let answer = if is_late {
            held.release().await;
            world.ended_as("slow", Status::Done).await;
            back.send(Method::GET, "/mcp", Body::empty()).await
        } else {
            let answer = back.send(Method::GET, "/mcp", Body::empty()).await;
            held.release().await;
            answer
        };
        let mut events = answer.events();
        let said = events.next().await.unwrap();
        assert_eq!(said["result"]["content"][0]["text"], "done");
        assert_eq!(events.next().await, None);
        // What was read is not kept.
        let again = back.send(Method::GET, "/mcp", Body::empty()).await;
        assert_eq!(again.messages().await, Vec::<serde_json::Value>::new());
    }
    server.end().await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_ends() {
    let world = World::with("[serve]\ncall_seconds_max = 1\n").await;
    let lab = Lab::new().await;
    world.publish(&lab.tool()).await;
    let server = world.serve().await;
    let mut client = server.client().await;
    client.begin(LEGACY, json!({})).await;
    let answer = client.post(&call(7, "slow", json!({"go": true}))).await;
    let held = lab.arrived().await;
    let answer = answer.last().await;
    assert_eq!(
        answer["result"]["structuredContent"]["code"], "call.deadline",
        "{answer}"
    );
    held.gone().await;
    world.ended_as("slow", Status::Failed).await;
    server.end().await;
}
