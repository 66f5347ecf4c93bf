//! Plain calls: made without rmcp, and answered as if it had made them.

use axum::body::Body;
use axum::http::Method;
use engine::{AuditEntry, Filter};
use model::caller::Origin;
use serde_json::{Value, json};

use crate::client::{Http, call, meta};
use crate::world::{World, document};

/// What differs between two answers to the same call, removed.
fn without_ids(mut said: Value) -> Value {
    let result = &mut said["result"];
    for pointer in ["/_meta", "/structuredContent", "/requestState"] {
        match result.pointer_mut(pointer) {
            Some(Value::Object(members)) => {
                members.remove("ringfence/callId");
                members.remove("callId");
            }
            Some(sealed) => *sealed = Value::Null,
            None => {}
        }
    }
    said
}

/// A wish for progress makes a call go through rmcp. Everything else about it is the same, so
/// the answers must be.
#[tokio::test]
async fn a_plain_call_is_answered_like_any_other() {
    let world = World::with("[approvals]\nwait_seconds = 1\n").await;
    let throws = document("throws", "throw new Error('no')", json!({"draft": false}));
    world.write(&throws);
    let asks = json!({"humanInTheLoop": {"mode": "REQUIRED"}});
    world.publish(&document("asks", "return 'ran'", asks)).await;
    let values = document(
        "values",
        "return {deep: [1, {a: null}], text: 'é'}",
        json!({}),
    );
    world.publish(&values).await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let able = json!({"elicitation": {}});
    for (tool, arguments, capabilities, expected) in [
        (
            "echo",
            json!({"text": "hi"}),
            json!({}),
            "/result/content/0/text",
        ),
        ("echo", json!({"text": 5}), json!({}), "/result/isError"),
        ("echo", json!({}), json!({}), "/result/isError"),
        (
            "echo",
            json!({"text": "x", "more": 1}),
            json!({}),
            "/result/isError",
        ),
        (
            "values",
            json!({}),
            json!({}),
            "/result/structuredContent/deep",
        ),
        ("throws", json!({}), json!({}), "/error"),
        ("unknown", json!({}), json!({}), "/error/message"),
        (
            "codecall:search",
            json!({"queries": ["say"]}),
            json!({}),
            "/result/content",
        ),
        ("asks", json!({}), json!({}), "/result/isError"),
        ("asks", json!({}), able, "/result/inputRequests/approval"),
    ] {
        let plain = call(1, tool, arguments);
        let mut told = plain.clone();
        told["params"]["_meta"] = json!({"progressToken": "p"});
        let answer = client.modern_with(&plain, capabilities.clone()).await;
        let (status, kind) = (answer.status, answer.headers["content-type"].clone());
        let said = without_ids(answer.last().await);
        let other = client.modern_with(&told, capabilities).await;
        assert_eq!(other.status, status, "{plain}");
        assert_eq!(kind, "application/json", "{plain}");
        assert_eq!(without_ids(other.last().await), said, "{plain}");
        assert!(said.pointer(expected).is_some(), "{plain}: {said}");
    }
    server.end().await;
}

/// Attack: a request that says one thing in its head and another in its body. What rmcp
/// refuses stays refused, and nothing runs.
#[tokio::test]
async fn what_is_not_plain_is_refused_as_before() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut body = call(1, "echo", json!({"text": "x"}));
    body["params"]["_meta"] = meta(json!({}));
    let regular = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ];
    for (name, value, status) in [
        ("mcp-name", "other", 400),
        ("mcp-method", "tools/list", 400),
        ("mcp-protocol-version", "2025-11-25", 400),
        ("mcp-protocol-version", "2027-01-01", 400),
    ] {
        let swapped = regular.map(|(known, old)| (known, if known == name { value } else { old }));
        assert_eq!(
            status_of(&server.client().await, &swapped, &body).await,
            status,
            "{name}"
        );
        let twice: Vec<_> = regular.into_iter().chain([(name, value)]).collect();
        assert_eq!(
            status_of(&server.client().await, &twice, &body).await,
            status,
            "two {name}"
        );
        let left = regular.into_iter().filter(|(known, _)| *known != name);
        let left: Vec<_> = left.collect();
        assert_eq!(
            status_of(&server.client().await, &left, &body).await,
            status,
            "no {name}"
        );
    }
    let mut lacking = body.clone();
    lacking["params"]["_meta"] = json!({});
    assert_eq!(
        status_of(&server.client().await, &regular, &lacking).await,
        400
    );
    // A reader that takes a list for a structure would run this one.
    let listed = json!(["2.0", "tools/call", 1, body["params"]]);
    let all = [listed, json!([body.clone()])];
    for listed in all {
        let status = status_of(&server.client().await, &regular, &listed).await;
        assert!((400..500).contains(&status), "{status}: {listed}");
    }
    let attempts = || {
        let entries = world.engine().store().audit().list(&Filter::default());
        let of_clients = |entry: &&AuditEntry| entry.opening.origin == Origin::Mcp;
        entries.unwrap().iter().filter(of_clients).count()
    };
    assert_eq!(attempts(), 0);
    // The control: as it should be, it runs.
    assert_eq!(
        status_of(&server.client().await, &regular, &body).await,
        200
    );
    assert_eq!(attempts(), 1);
    server.end().await;
}

async fn status_of(client: &Http, headers: &[(&str, &str)], body: &Value) -> u16 {
    let mut client = client.another().await;
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    client.headers = headers.iter().map(owned).collect();
    let answer = client.send(Method::POST, "/mcp", Body::from(body.to_string()));
    answer.await.status.as_u16()
}
