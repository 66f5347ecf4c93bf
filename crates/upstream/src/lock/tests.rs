//! The lock comes back, and every difference has a sentence.

use serde_json::{Value, json};

use super::*;
use crate::definition::{ServerDefinition, ServerOrigin};
use crate::pin::AcceptScope;

fn seen(tools: &[Value]) -> SeenServer {
    let origin = ServerOrigin::Url("https://example.com/mcp?key=value".to_owned());
    let server = ServerDefinition::new("demo", "1", None, origin).unwrap();
    SeenServer::read(server, tools.iter().map(|tool| (ItemKind::Tool, tool))).unwrap()
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {}})
}

fn lock(tools: &[Value]) -> ServerLock {
    let seen = seen(tools);
    let mut pinned = PinnedServer::unknown();
    let all = seen.items.keys().cloned().collect();
    pinned.accept(&seen, AcceptScope::Items(&all), 1);
    let mut lock = ServerLock::default();
    lock.add_accepted("demo", &pinned);
    lock
}

#[test]
fn a_lock_comes_back_and_holds_no_text() {
    let lock = lock(&[tool("b", "Says b."), tool("a\u{202e}", "Says a.")]);
    let text = lock.to_json().unwrap();
    assert_eq!(ServerLock::from_json(&text).unwrap(), lock);
    assert!(!text.contains("example.com") && !text.contains("Says"));
    assert!(text.contains("a\\u202e"), "{text}");
}

#[test]
fn differences_are_sentences() {
    let locked = lock(&[tool("a", "x"), tool("b", "x"), tool("c", "x")]);
    let mut found = ServerLock::default();
    found.add_seen(
        "demo",
        &seen(&[tool("a", "x"), tool("b", "y"), tool("d", "x")]),
    );
    let sentences: Vec<_> = locked
        .verify(&found)
        .iter()
        .map(LockDifference::sentence)
        .collect();
    assert_eq!(
        sentences,
        [
            "tool `b` of server `demo` differs from the lock",
            "tool `c` of server `demo` is in the lock but does not exist",
            "tool `d` of server `demo` is not in the lock",
        ]
    );
    assert!(locked.verify(&locked).is_empty());
    let none = ServerLock::default();
    assert_eq!(
        none.verify(&locked).first().unwrap().sentence(),
        "server `demo` is not in the lock"
    );
}

#[test]
fn unaccepted_items_are_not_locked() {
    let seen = seen(&[tool("a", "x"), tool("b", "x")]);
    let mut pinned = PinnedServer::unknown();
    pinned.accept(&seen, AcceptScope::All, 1);
    pinned.block(&ItemKey::tool("b"));
    let mut lock = ServerLock::default();
    lock.add_accepted("demo", &pinned);
    assert!(lock.to_json().unwrap().contains("\"a\""));
    assert!(!lock.to_json().unwrap().contains("\"b\""));
    pinned.decision = PinDecision::Blocked;
    let mut empty = ServerLock::default();
    empty.add_accepted("demo", &pinned);
    assert_eq!(empty, ServerLock::default());
}

#[test]
fn a_lock_that_cannot_be_read_is_an_error() {
    let text = lock(&[tool("a", "x")]).to_json().unwrap();
    let broken = |from: &str, to: &str| {
        let broken = text.replacen(from, to, 1);
        assert_ne!(broken, text);
        ServerLock::from_json(&broken).unwrap_err().to_string()
    };
    assert_eq!(broken("{", ""), "the lock cannot be read");
    assert!(broken("\"version\": 1", "\"version\": 2").starts_with("the lock has version 2"));
    assert!(broken("\"tool\"", "\"thing\"").starts_with("the lock has the kind `thing`"));
}
