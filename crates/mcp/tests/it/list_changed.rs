//! Tools come and go while clients are connected.

use axum::body::Body;
use axum::http::Method;
use serde_json::json;

use crate::client::{Events, LEGACY, request};
use crate::world::{CALLER, Server, World, document};

pub(crate) const CHANGED: &str = "notifications/tools/list_changed";

pub(crate) async fn legacy(server: &Server, caller: &str) -> Events {
    let mut client = server.client().await;
    client.headers.push((CALLER.to_owned(), caller.to_owned()));
    client.begin(LEGACY, json!({})).await;
    let mut stream = client.another().await;
    stream
        .send(Method::GET, "/mcp", Body::empty())
        .await
        .events()
}

pub(crate) async fn modern(server: &Server, caller: &str) -> Events {
    let mut client = server.client().await;
    client.headers.push((CALLER.to_owned(), caller.to_owned()));
    let listen = request(
        5,
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}}),
    );
    let mut events = client.modern(&listen).await.events();
    let first = events.next().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        first["params"]["notifications"],
        json!({"toolsListChanged": true})
    );
    events
}

pub(crate) async fn registered(world: &World, count: usize) {
    while world.door.listeners() < count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn every_listener_is_told_once() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut old = legacy(&server, "ann").await;
    let mut new = modern(&server, "ann").await;
    let (mut pipe, _, _) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    registered(&world, 3).await;
    // A burst of changes is one piece of news.
    world.publish(&document("one", "return 1", json!({}))).await;
    world.publish(&document("two", "return 1", json!({}))).await;
    assert_eq!(old.next().await.unwrap()["method"], CHANGED);
    let told = new.next().await.unwrap();
    assert_eq!(told["method"], CHANGED);
    assert_eq!(
        told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        5
    );
    assert_eq!(pipe.next().await.unwrap()["method"], CHANGED);
    // So is a setting.
    world.home.file(
        "ringfence.toml",
        "[exposure]\npreset = \"none\"\nauto = false\n",
    );
    assert_eq!(old.next().await.unwrap()["method"], CHANGED);
    assert_eq!(new.next().await.unwrap()["method"], CHANGED);
    server.end().await;
}

/// What is hidden from a caller makes no noise for that caller.
#[tokio::test]
async fn only_callers_that_see_a_tool_are_told() {
    let world =
        World::with("[callers.bob]\ndeny = [\"private*\"]\n[expected]\ntools = [\"private*\"]\n")
            .await;
    let server = world.serve().await;
    let mut ann = modern(&server, "ann").await;
    let mut bob = modern(&server, "bob").await;
    registered(&world, 2).await;
    world
        .publish(&document("privateOne", "return 1", json!({})))
        .await;
    assert_eq!(ann.next().await.unwrap()["method"], CHANGED);
    world
        .publish(&document("publicOne", "return 1", json!({})))
        .await;
    assert_eq!(ann.next().await.unwrap()["method"], CHANGED);
    assert_eq!(bob.next().await.unwrap()["method"], CHANGED);
    server.end().await;
    // Nothing was left to say to him: one piece of news, then the end.
    let rest = bob.next().await.unwrap();
    assert!(rest.get("result").is_some(), "{rest}");
}

#[tokio::test]
async fn listeners_that_leave_are_forgotten() {
    let world = World::new().await;
    let server = world.serve().await;
    let stream = modern(&server, "ann").await;
    registered(&world, 1).await;
    drop(stream);
    while world.door.listeners() > 0 {
        tokio::task::yield_now().await;
    }
    let (mut pipe, serving, _) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    registered(&world, 1).await;
    server.end().await;
    pipe.hang_up();
    serving.await.unwrap();
}

/// A secret that is set brings its tools.
#[tokio::test]
async fn a_new_secret_changes_the_list() {
    let world = World::new().await;
    world.home.file("secrets.env", "A_KEY=abcdefgh\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(world.home.path.join("secrets.env"), mode).unwrap();
    let needs = json!({"staticVariables": [{"key": "${A_KEY}"}]});
    world.publish(&document("keyed", "return 1", needs)).await;
    let server = world.serve().await;
    let mut ann = modern(&server, "ann").await;
    registered(&world, 1).await;
    std::fs::remove_file(world.home.path.join("secrets.env")).unwrap();
    assert_eq!(ann.next().await.unwrap()["method"], CHANGED);
    server.end().await;
}
