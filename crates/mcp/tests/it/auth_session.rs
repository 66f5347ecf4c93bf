//! Whose session is whose, on the wire.

use std::time::Duration;

use model::govern::key::Role;
use serde_json::json;

use crate::auth_world::{Reply, Setup, World};
use crate::client::{Http, LEGACY, MODERN, call, initialize, initialized};
use crate::inbox;

async fn begin(world: &World, token: &str) -> Reply {
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str()), ("X-Initialize", "1")];
    world.send("POST", "/mcp", &headers).await
}

async fn within(world: &World, method: &str, token: &str, id: &str) -> Reply {
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str()), ("Mcp-Session-Id", id)];
    world.send(method, "/mcp", &headers).await
}

#[tokio::test]
async fn a_foreign_session_looks_unknown() {
    let world = World::start(Setup::default()).await;
    let ada = world.book.add("ada", Role::Agent, None);
    let eve = world.book.add("eve", Role::Agent, None);
    let begun = begin(&world, ada.reveal()).await;
    let id = begun.header("mcp-session-id").unwrap().to_owned();
    for method in ["POST", "GET", "DELETE"] {
        let theirs = within(&world, method, eve.reveal(), &id).await;
        let none = within(&world, method, eve.reveal(), "never-was").await;
        theirs.is_refused(404, "gate.session");
        assert_eq!(theirs.status, none.status);
        assert_eq!(theirs.body, none.body);
        let names = |reply: &Reply| -> Vec<String> {
            let names = reply.headers.iter().map(|(name, _)| name.clone());
            names.collect()
        };
        assert_eq!(names(&theirs), names(&none));
        let local = within(&world, method, world.local.reveal(), &id).await;
        local.is_refused(404, "gate.session");
    }
    // None of it reached the session.
    assert_eq!(within(&world, "GET", ada.reveal(), &id).await.status, 200);
    assert_eq!(within(&world, "POST", ada.reveal(), &id).await.body, "ada");
    assert_eq!(world.inside.sessions.count(), 1);
}

#[tokio::test]
async fn a_replaced_key_keeps_the_session_and_a_new_one_of_the_same_name_does_not() {
    let world = World::start(Setup::default()).await;
    let old = world.book.add("ada", Role::Agent, None);
    let begun = begin(&world, old.reveal()).await;
    let id = begun.header("mcp-session-id").unwrap().to_owned();
    // What `keys rotate` does: the same id, another secret.
    let new = {
        let mut keys = world.book.keys.lock().unwrap();
        let record = keys.values_mut().next().unwrap();
        let new = model::govern::key::key(&record.id, [77; 32]);
        record.digest = new.digest();
        new
    };
    within(&world, "POST", old.reveal(), &id)
        .await
        .is_refused(401, "gate.token");
    assert_eq!(within(&world, "POST", new.reveal(), &id).await.status, 200);
    world.book.keys.lock().unwrap().clear();
    let other = world.book.add("ada", Role::Agent, None);
    within(&world, "POST", other.reveal(), &id)
        .await
        .is_refused(404, "gate.session");
}

#[tokio::test]
async fn an_ended_session_is_forgotten() {
    let world = World::start(Setup::default()).await;
    let local = world.local.reveal();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let begun = begin(&world, local).await;
        ids.push(begun.header("mcp-session-id").unwrap().to_owned());
    }
    assert_eq!(within(&world, "DELETE", local, &ids[0]).await.status, 202);
    within(&world, "POST", local, &ids[0])
        .await
        .is_refused(404, "gate.session");
    // The endpoint dropped one by itself; its answer is the news.
    world.inside.dropped.lock().unwrap().push(ids[1].clone());
    assert_eq!(within(&world, "GET", local, &ids[1]).await.status, 404);
    within(&world, "GET", local, &ids[1])
        .await
        .is_refused(404, "gate.session");
    // Or when rmcp reports its end.
    world.inside.sessions.end(&ids[2]);
    assert_eq!(world.inside.sessions.count(), 0);
}

#[tokio::test]
async fn the_newest_revision_reaches_no_session_however_it_is_asked() {
    let world = World::start(Setup::default()).await;
    let eve = world.book.add("eve", Role::Agent, None);
    let begun = begin(&world, world.local.reveal()).await;
    let id = begun.header("mcp-session-id").unwrap().to_owned();
    let bearer = format!("Bearer {}", eve.reveal());
    world.inside.seen.lock().unwrap().clear();
    for version in ["2026-07-28", "2027-01-01"] {
        let headers = [
            ("Authorization", bearer.as_str()),
            ("MCP-Protocol-Version", version),
            ("Mcp-Session-Id", &id),
        ];
        assert_eq!(world.send("POST", "/mcp", &headers).await.status, 200);
    }
    assert!(!world.inside.seen.lock().unwrap().contains(&id));
    for odd in ["2025-11-25", "9", "zzzz-zz-zz", "2026-07-28x", ""] {
        let headers = [
            ("Authorization", bearer.as_str()),
            ("MCP-Protocol-Version", odd),
            ("Mcp-Session-Id", &id),
        ];
        let reply = world.send("POST", "/mcp", &headers).await;
        reply.is_refused(404, "gate.session");
    }
    let twice = [
        ("Authorization", bearer.as_str()),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("MCP-Protocol-Version", "2025-11-25"),
        ("Mcp-Session-Id", &id),
    ];
    world
        .send("POST", "/mcp", &twice)
        .await
        .is_refused(404, "gate.session");
    let local = format!("Bearer {}", world.local.reveal());
    let ids = [
        ("Authorization", local.as_str()),
        ("Mcp-Session-Id", &id),
        ("Mcp-Session-Id", "another"),
    ];
    world
        .send("GET", "/mcp", &ids)
        .await
        .is_refused(404, "gate.session");
    assert!(!world.inside.seen.lock().unwrap().contains(&id));
    world.hands.forward(Duration::from_secs(1));
}

/// `initialize` is legacy whatever revision it names, also in the header.
#[tokio::test]
async fn a_handshake_that_names_a_modern_revision_gets_a_session_it_can_use() {
    let world = crate::world::World::new().await;
    let server = inbox::serve(&world).await;
    let bearer = (
        "authorization".to_owned(),
        format!("Bearer {}", server.agent),
    );
    let version = |version: &str| ("mcp-protocol-version".to_owned(), version.to_owned());
    let mut client = Http::connect(server.address).await;
    client.headers = vec![bearer.clone(), version(MODERN)];
    let answer = client.post(&initialize(MODERN, json!({}))).await;
    let id = answer.headers["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let begun = answer.last().await;
    assert_eq!(begun["result"]["protocolVersion"], LEGACY);
    client.headers = vec![bearer, version(LEGACY), ("mcp-session-id".to_owned(), id)];
    assert_eq!(client.post(&initialized()).await.status, 202);
    let answer = client.post(&call(1, "echo", json!({"text": "hi"}))).await;
    assert_eq!(answer.status, 200);
    let said = answer.last().await;
    assert_eq!(said["result"]["content"][0]["text"], "hi", "{said}");
}
