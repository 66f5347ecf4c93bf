//! The inbox and the counts over HTTP, with all of authentication in front: operators get
//! in, no other role, and their answer lets a waiting call continue.

use std::net::SocketAddr;
use std::sync::Arc;

use mcp::Shutdown;
use mcp::auth::issuer::Fetching;
use mcp::auth::{Auth, AuthClock, AuthMode, AuthParts, AuthSettings, FetchKeys};
use mcp::http::{self, HttpBounds};
use mcp::metrics::Metrics;
use model::caller::{Caller, Origin};
use model::govern::key::Role;
use model::record::audit::Status;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::auth_world::Book;
use crate::world::World;

#[derive(Debug)]
struct NoIssuer;

impl FetchKeys for NoIssuer {
    fn fetch<'a>(&'a self, _: &'a str, _: usize) -> Fetching<'a> {
        Box::pin(async { Err("there is no issuer here".to_owned()) })
    }
}

/// A server behind authentication.
pub(crate) struct Guarded {
    pub(crate) address: SocketAddr,
    operator: String,
    pub(crate) agent: String,
}

pub(crate) async fn serve(world: &World) -> Guarded {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let book = Book::default();
    let operator = book.add("bob", Role::Operator, None).reveal().to_owned();
    let agent = book.add("ann", Role::Agent, None).reveal().to_owned();
    let config = world.door.engine().registry().current().config.clone();
    let settings = AuthSettings {
        listen: address,
        serve: config.serve.clone(),
        oauth: None,
        mode: AuthMode::On,
    };
    let parts = AuthParts {
        local: None,
        keys: Arc::new(book),
        fetch: Arc::new(NoIssuer),
        clock: AuthClock::system(),
    };
    let auth = Arc::new(Auth::new(&settings, parts).unwrap());
    let bounds = HttpBounds::of(&config.serve);
    let guard = http::guarded(auth, &world.door, Metrics::new(), &bounds, None);
    let door = world.door.clone();
    tokio::spawn(http::serve(
        door,
        listener,
        bounds,
        guard,
        Shutdown::default(),
    ));
    Guarded {
        address,
        operator,
        agent,
    }
}

impl Guarded {
    async fn ask(&self, key: Option<&str>, line: &str, kind: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let key = key.map(|key| format!("authorization: Bearer {key}\r\n"));
        let request = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{}content-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
            key.unwrap_or_default(),
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        (status, body.to_owned())
    }

    async fn operator(&self, line: &str, body: &str) -> (u16, Value) {
        let key = Some(self.operator.as_str());
        let (status, body) = self.ask(key, line, JSON, body).await;
        (status, serde_json::from_str(&body).unwrap_or(Value::Null))
    }

    /// The one question that waits.
    async fn waiting(&self) -> Value {
        loop {
            let (status, listed) = self.operator("GET /api/v1/approvals", "").await;
            assert_eq!(status, 200);
            if listed[0]["id"].is_string() {
                return listed[0].clone();
            }
            // Sleeps: the call has not asked yet.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

const JSON: &str = "application/json";
const YES: &str = r#"{"answer": "approve"}"#;

async fn world() -> World {
    let world = World::with("[approvals]\nwait_seconds = 60\n").await;
    let document = json!({"name": "guarded", "description": "Waits. Returns a word.",
        "code": "return 'ran'", "codeType": "Javascript",
        "humanInTheLoop": {"mode": "REQUIRED"}});
    world.publish(&document).await;
    world
}

async fn call(world: &World) -> model::record::outcome::Outcome {
    let caller = Caller::named("ann");
    let request = engine::call::CallRequest::new(caller, Origin::Mcp, "guarded", json!({}));
    world.door.engine().call(request).await.into_inner()
}

#[tokio::test]
async fn only_operators_answer() {
    let world = world().await;
    let server = serve(&world).await;
    let answering = async {
        let question = server.waiting().await;
        assert_eq!(question["tool"], "guarded");
        assert_eq!(question["caller"], "ann");
        let one = format!("/api/v1/approvals/{}", question["id"].as_str().unwrap());
        let post = format!("POST {one}");
        let get = format!("GET {one}");
        let strangers = [None, Some(server.agent.as_str()), Some("rf_nothing")];
        for line in ["GET /api/v1/approvals", &get, &post, "GET /metrics"] {
            for key in strangers {
                let (status, body) = server.ask(key, line, JSON, YES).await;
                assert!(matches!(status, 401 | 403), "{line}: {status}");
                assert!(!body.contains("guarded"), "{line}: {body}");
            }
        }
        for (line, kind, body, expected) in [
            (post.as_str(), "text/plain", YES, 415),
            (&post, JSON, "{", 400),
            (&post, JSON, r#"{"answer": "maybe"}"#, 422),
            (&post, JSON, r#"{"answer": "approve", "scop": "once"}"#, 422),
            (
                &post,
                JSON,
                r#"{"answer": "approve", "scope": "session"}"#,
                400,
            ),
            ("POST /api/v1/approvals/none", JSON, YES, 404),
            ("GET /api/v1/approvals?which=none", JSON, "", 400),
        ] {
            let key = Some(server.operator.as_str());
            let (status, answer) = server.ask(key, line, kind, body).await;
            assert_eq!(status, expected, "{line} {body}: {answer}");
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert!(answer["error"]["message"].is_string(), "{answer}");
        }
        let (status, given) = server.operator(&post, YES).await;
        assert_eq!(status, 200, "{given}");
        assert_eq!(given["answeredBy"], "bob");
        assert_eq!(server.operator(&post, YES).await.0, 409);
    };
    let (outcome, ()) = tokio::join!(call(&world), answering);
    assert_eq!(outcome.status, Status::Done, "{outcome:?}");
    let (_, pending) = server.operator("GET /api/v1/approvals", "").await;
    assert_eq!(pending, json!([]));
    let (_, all) = server.operator("GET /api/v1/approvals?all=true", "").await;
    assert_eq!(all[0]["state"], "used");
    let key = Some(server.operator.as_str());
    let (status, page) = server.ask(key, "GET /metrics", JSON, "").await;
    assert_eq!(status, 200);
    // The strangers above were counted.
    let line = r#"ringfence_gate_refusals_total{code="gate.role"} 4"#;
    assert!(page.contains(line), "{page}");
}

#[tokio::test]
async fn a_waiting_call_is_told_of_a_denial() {
    let world = world().await;
    let server = serve(&world).await;
    let answering = async {
        let id = server.waiting().await["id"].as_str().unwrap().to_owned();
        let no = r#"{"answer": "deny", "note": "not today"}"#;
        let (status, _) = server
            .operator(&format!("POST /api/v1/approvals/{id}"), no)
            .await;
        assert_eq!(status, 200);
    };
    let (outcome, ()) = tokio::join!(call(&world), answering);
    let error = outcome.error.unwrap();
    assert_eq!(error.reason.code(), "approval.declined");
    assert!(error.message.ends_with(": not today"), "{}", error.message);
}

/// The front, whatever is not there, and the probes: all behind authentication, and each says
/// something a person can go on with.
#[tokio::test]
async fn every_route_is_guarded() {
    let world = World::new().await;
    let gated = serve(&world).await;
    let (status, front) = gated.ask(None, "GET /", JSON, "").await;
    assert_eq!(status, 200);
    assert!(front.contains("\"mcp\":\"/mcp\""), "{front}");
    for line in ["GET /favicon.ico", "POST /sse", "GET /mcp/x"] {
        let (status, said) = gated.ask(None, line, JSON, "").await;
        assert_eq!(status, 404, "{line}");
        assert!(said.contains("MCP is at `/mcp`"), "{line}: {said}");
    }
    for line in ["POST /mcp", "POST /mcp/"] {
        let (status, said) = gated.ask(None, line, JSON, "{}").await;
        assert_eq!(status, 401, "{line}");
        // The token that is already there, and how to make a key.
        assert!(
            said.contains("`token`") && said.contains("keys add"),
            "{said}"
        );
        assert!(
            !said.contains(&world.home.path.display().to_string()),
            "{said}"
        );
    }
    for path in [
        "/", "/nothing", "/mcp", "/mcp/", "/healthz", "/readyz", "/metrics",
    ] {
        let mut stream = TcpStream::connect(gated.address).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 403"), "{path}: {answer}");
        assert!(answer.contains("gate.host"), "{path}: {answer}");
    }
    for path in ["/healthz", "/readyz"] {
        let (status, _) = gated.ask(None, &format!("GET {path}"), JSON, "").await;
        assert_eq!(status, 200, "{path}");
    }
}
