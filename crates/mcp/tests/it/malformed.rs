//! The rim of the protocol: what is malformed, out of place or hostile gets one
//! clear answer, and the server goes on.

use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};

use crate::client::{LEGACY, MODERN, call, initialize, meta, request};
use crate::world::{CALLER, World};

#[tokio::test]
async fn malformed_bodies_are_errors_of_the_protocol() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let rows = [
        ("", 400, -32700, Value::Null),
        ("{", 400, -32700, Value::Null),
        ("\u{feff}{}", 400, -32700, Value::Null),
        ("[]", 400, -32600, Value::Null),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            400,
            -32600,
            Value::Null,
        ),
        ("5", 400, -32600, Value::Null),
        ("null", 400, -32600, Value::Null),
        (r#"{"id":7,"method":"ping"}"#, 400, -32600, json!(7)),
        (
            r#"{"jsonrpc":"1.0","id":"x","method":"ping"}"#,
            400,
            -32600,
            json!("x"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
            400,
            -32600,
            Value::Null,
        ),
    ];
    for (body, status, code, id) in rows {
        let answer = client.send(Method::POST, "/mcp", Body::from(body)).await;
        assert_eq!(answer.status, status, "{body}");
        let said = answer.last().await;
        assert_eq!(said["error"]["code"], code, "{body}: {said}");
        assert_eq!(said["id"], id, "{body}");
        assert_eq!(said["jsonrpc"], "2.0");
    }
    // The same connection still works.
    let answer = client
        .modern(&call(1, "echo", json!({"text": "hi"})))
        .await
        .last()
        .await;
    assert_eq!(answer["result"]["content"][0]["text"], "hi");
    server.end().await;
}

/// As a client in JavaScript writes a text that it cut inside an emoji.
fn halved(message: &Value) -> String {
    message.to_string().replace("HALF", "\\ud83d")
}

#[tokio::test]
async fn half_a_character_in_an_argument_is_read_as_the_sign_for_one() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut said = Vec::new();
    let mut message = call(5, "echo", json!({"text": "xHALF"}));
    let mut client = server.client().await;
    client.begin(LEGACY, json!({})).await;
    let answer = client.send(Method::POST, "/mcp", Body::from(halved(&message)));
    said.push(answer.await.last().await);
    let (mut pipe, _, _) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    pipe.line(&halved(&message)).await;
    said.push(pipe.next().await.unwrap());
    message["params"]["_meta"] = meta(json!({}));
    let (mut pipe, _, _) = world.pipe();
    pipe.line(&halved(&message)).await;
    said.push(pipe.next().await.unwrap());
    let mut client = server.client().await;
    for (name, value) in [
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ] {
        client.headers.push((name.to_owned(), value.to_owned()));
    }
    let answer = client.send(Method::POST, "/mcp", Body::from(halved(&message)));
    said.push(answer.await.last().await);
    for answer in said {
        assert_eq!(answer["id"], 5, "{answer}");
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!(text, "x\u{fffd}", "{answer}");
    }
    server.end().await;
}

/// A client waits for an answer by its id.
#[tokio::test]
async fn a_line_that_cannot_be_read_is_answered_under_its_id() {
    let world = World::new().await;
    let (mut pipe, _, _) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    for (line, id) in [
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1e999}}"#,
            json!(7),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"q","method":"ping","params":{"a":"\x"}}"#,
            json!("q"),
        ),
        (r#"{"jsonrpc":"2.0","id":8,"#, Value::Null),
    ] {
        pipe.line(line).await;
        let said = pipe.next().await.unwrap();
        assert_eq!(said["error"]["code"], -32700, "{said}");
        assert_eq!(said["id"], id, "{line}");
    }
}

#[tokio::test]
async fn params_that_do_not_fit_are_explained() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut client = server.client().await;
    client.begin(LEGACY, json!({})).await;
    for params in [
        json!({}),
        json!({"name": 5}),
        json!({"name": "echo", "arguments": [1]}),
    ] {
        let answer = client
            .post(&request(1, "tools/call", params.clone()))
            .await
            .last()
            .await;
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
    }
    let answer = client
        .post(&request(1, "no/such", json!({})))
        .await
        .last()
        .await;
    assert_eq!(answer["error"]["code"], -32601);
    let answer = client
        .post(&request(1, "tools/list", json!({"cursor": "made up"})))
        .await;
    assert_eq!(answer.last().await["error"]["code"], -32602);
    server.end().await;
}

#[tokio::test]
async fn modern_statuses_are_as_specified() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let answer = client.modern(&request(1, "no/such", json!({}))).await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.last().await["error"]["code"], -32601);
    // The header and the body must agree.
    client
        .headers
        .push(("mcp-protocol-version".to_owned(), "2026-07-28".to_owned()));
    let answer = client.post(&call(1, "echo", json!({"text": "x"}))).await;
    assert_eq!(answer.status, 400);
    let _ = answer.last().await;
    // A session is nothing to a modern request, known or not.
    client.headers.clear();
    client
        .headers
        .push(("mcp-session-id".to_owned(), "made-up".to_owned()));
    let answer = client.modern(&call(1, "echo", json!({"text": "x"}))).await;
    assert_eq!(answer.status, 200);
    assert!(answer.headers.get("mcp-session-id").is_none());
    assert_eq!(answer.last().await["result"]["isError"], false);
    server.end().await;
}

#[tokio::test]
async fn refusals_of_the_transport_are_json() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut client = server.client().await;
    client
        .headers
        .push(("mcp-session-id".to_owned(), "nobodys".to_owned()));
    for method in [Method::POST, Method::GET, Method::DELETE] {
        let body = request(1, "tools/list", json!({})).to_string();
        let answer = client.send(method.clone(), "/mcp", Body::from(body)).await;
        assert_eq!(answer.status, 404, "{method}");
        assert_eq!(answer.last().await["error"]["code"], -32001);
    }
    client.headers.clear();
    let answer = client.send(Method::PUT, "/mcp", Body::empty()).await;
    assert_eq!(answer.status, 405);
    assert!(answer.headers.contains_key("allow"));
    assert_eq!(answer.last().await["error"]["code"], -32000);
    let answer = client.send(Method::GET, "/mcp", Body::empty()).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.last().await["error"]["code"], -32000);
    let answer = client.send(Method::GET, "/elsewhere", Body::empty()).await;
    assert_eq!(answer.status, 404);
    server.end().await;
}

/// A session ends with 204, once, and only for the principal that began it.
#[tokio::test]
async fn sessions_belong_to_their_caller() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut client = server.client().await;
    client.begin(LEGACY, json!({})).await;
    let mut thief = client.another().await;
    thief
        .headers
        .push((CALLER.to_owned(), "mallory".to_owned()));
    for method in [Method::POST, Method::GET, Method::DELETE] {
        let body = request(1, "tools/list", json!({})).to_string();
        let answer = thief.send(method, "/mcp", Body::from(body)).await;
        assert_eq!(answer.status, 404);
        assert_eq!(answer.last().await["error"]["code"], -32001);
    }
    // Nor by being modern and legacy at once.
    let victim = client.headers[0].1.clone();
    thief.headers[1].1 = MODERN.to_owned();
    let answer = thief.post(&initialize(MODERN, json!({}))).await;
    let given = answer.headers.get("mcp-session-id");
    assert!(given.is_none_or(|given| given != victim.as_str()));
    assert!(answer.status != 200 || given.is_some(), "{}", answer.status);
    let _ = answer.text().await;
    let answer = client
        .post(&call(1, "echo", json!({"text": "mine"})))
        .await
        .last()
        .await;
    assert_eq!(answer["result"]["content"][0]["text"], "mine");
    let answer = client.send(Method::DELETE, "/mcp", Body::empty()).await;
    assert_eq!(answer.status, 204);
    let answer = client.send(Method::DELETE, "/mcp", Body::empty()).await;
    assert_eq!(answer.status, 404);
    server.end().await;
}

/// Without authentication in front only pages of this machine may call.
#[tokio::test]
async fn pages_of_strangers_are_refused() {
    let world = World::new().await;
    let server = world.serve().await;
    for (origin, status) in [
        ("http://localhost:3000", 200),
        ("http://[::1]:3000", 200),
        ("http://evil.test", 403),
        ("null", 403),
        ("http://localhost.evil.test", 403),
    ] {
        let mut client = server.client().await;
        client
            .headers
            .push(("origin".to_owned(), origin.to_owned()));
        let answer = client.modern(&call(1, "echo", json!({"text": "x"}))).await;
        assert_eq!(answer.status, status, "{origin}");
        assert_eq!(answer.last().await["jsonrpc"], "2.0");
    }
    server.end().await;
}

#[tokio::test]
async fn a_server_without_tools_is_not_ready() {
    let world = World::new().await;
    let server = world.serve().await;
    let mut client = server.client().await;
    std::fs::remove_dir_all(world.home.path.join("tools")).unwrap();
    std::fs::write(world.home.path.join("tools"), "no folder").unwrap();
    let answer = client.send(Method::GET, "/readyz", Body::empty()).await;
    assert_eq!(answer.status, 503);
    assert!(answer.text().await.contains("the tools cannot be read"));
    let answer = client.send(Method::GET, "/healthz", Body::empty()).await;
    assert_eq!(answer.status, 200);
    let _ = answer.text().await;
    server.end().await;
}

/// Where every call is refused, a server is not ready, whatever else is up.
#[tokio::test]
async fn a_server_whose_audit_is_full_is_not_ready() {
    let world = World::with("[audit]\nbytes_max = 1_048_576\n").await;
    let server = world.serve().await;
    let mut client = server.client().await;
    let answer = client.send(Method::GET, "/readyz", Body::empty()).await;
    assert_eq!(
        (
            answer.status.as_u16(),
            answer.text().await.contains("ready")
        ),
        (200, true)
    );
    let message = call(1, "echo", json!({"text": "x".repeat(30_000)}));
    let mut calls = 0;
    loop {
        let said = client.modern(&message).await.last().await;
        if said["result"]["structuredContent"]["code"] == "audit.unavailable" {
            break;
        }
        calls += 1;
        assert!(calls < 1_000, "the audit is never full: {said}");
    }
    assert!(calls > 0);
    let answer = client.send(Method::GET, "/readyz", Body::empty()).await;
    assert_eq!(answer.status, 503);
    let said = answer.text().await;
    assert!(said.contains("the audit cannot be written"), "{said}");
    server.end().await;
}

/// Without a principal nothing is answered, whatever let the request through.
#[tokio::test]
async fn unknown_credentials_are_refused() {
    let world = World::new().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = mcp::Shutdown::default();
    let serving = mcp::http::serve(
        world.door.clone(),
        listener,
        mcp::http::HttpBounds::of(&world.door.engine().registry().current().config.serve),
        |routes| routes.protocol.merge(routes.probes),
        shutdown.clone(),
    );
    let serving = tokio::spawn(serving);
    let mut client = crate::client::Http::connect(address).await;
    let answer = client.modern(&call(1, "echo", json!({"text": "x"}))).await;
    assert_eq!(answer.status, 401);
    let answer = client.send(Method::GET, "/healthz", Body::empty()).await;
    assert_eq!(answer.status, 200);
    let answer = client.send(Method::GET, "/readyz", Body::empty()).await;
    assert_eq!(
        (answer.status.as_u16(), answer.text().await),
        (200, r#"{"status":"ready"}"#.to_owned())
    );
    shutdown.soft.cancel();
    serving.await.unwrap().unwrap();
}

/// What the fuzz target of the JSON-RPC edge starts from. Nothing stops the server,
/// and everything is answered or ignored.
#[tokio::test]
async fn hostile_messages_do_not_stop_the_server() {
    let world = World::new().await;
    let server = world.serve().await;
    let (mut pipe, _, _) = world.pipe();
    pipe.begin(LEGACY, json!({})).await;
    let deep = "[".repeat(5_000);
    let seeds = [
        deep.as_str(),
        r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":-1,"method":"\ud800"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1e309}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"\u{0}\":1}}",
        "\u{0}\u{1}",
    ];
    for seed in seeds {
        let mut client = server.client().await;
        let answer = client
            .send(Method::POST, "/mcp", Body::from(seed.to_owned()))
            .await;
        assert!(answer.status.as_u16() < 500, "{seed}: {}", answer.status);
        pipe.line(seed).await;
    }
    let mut client = server.client().await;
    let answer = client
        .modern(&call(1, "echo", json!({"text": "still"})))
        .await
        .last()
        .await;
    assert_eq!(answer["result"]["content"][0]["text"], "still");
    let answer = pipe
        .ask(&call(1_000, "echo", json!({"text": "here"})))
        .await;
    assert_eq!(answer["result"]["content"][0]["text"], "here");
    server.end().await;
}
