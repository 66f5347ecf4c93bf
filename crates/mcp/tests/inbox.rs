//! The inbox over HTTP, on loopback: who may answer, what is taken, and that a
//! call that waits goes on by it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop"
)]

use std::path::PathBuf;
use std::sync::Arc;

use axum::{Extension, Router};
use engine::call::{CallRequest, Target};
use engine::{Alarm, Engine, EngineSettings};
use mcp::inbox::{self, Operator};
use model::Environment;
use model::caller::{Caller, Origin};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn engine(folder: &Folder) -> Arc<Engine> {
    let alarm = Alarm::new(|_| ());
    let settings = EngineSettings::new(folder.0.clone(), Environment::empty(), alarm);
    Arc::new(Engine::open(settings).unwrap())
}

/// A call that must be approved; nothing of it runs here.
fn call(engine: &Engine) -> CallRequest {
    let document = json!({"name": "send", "code": "return 1", "codeType": "Javascript",
        "humanInTheLoop": {"mode": "REQUIRED"}, "sandboxOverrides": {"networkMode": "open"}});
    let mut judged = engine.judge(&document.to_string());
    let sound = judged.pop().and_then(|(_, sound)| sound).expect("a tool");
    let mut call = CallRequest::new(Caller::owner(), Origin::Mcp, "send", json!({}));
    call.target = Target::Document(sound);
    call
}

/// Serves the inbox; every request comes from this operator, or from nobody.
async fn serve(engine: Arc<Engine>, operator: Option<&str>) -> std::net::SocketAddr {
    let mut app: Router = inbox::routes(engine);
    if let Some(name) = operator {
        app = app.layer(Extension(Operator(Caller::named(name))));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

async fn ask(address: std::net::SocketAddr, line: &str, kind: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

const JSON: &str = "application/json";

#[tokio::test]
async fn operators_answer_and_nobody_else() {
    let folder = Folder::new("inbox-operators");
    let settings = "[approvals]\nwait_seconds = 1\n";
    std::fs::write(folder.0.join("ringfence.toml"), settings).unwrap();
    let engine = engine(&folder);
    let outcome = engine.call(call(&engine)).await.into_inner();
    assert_eq!(outcome.error.unwrap().reason.code(), "approval.pending");
    let bob = serve(Arc::clone(&engine), Some("bob")).await;
    let nobody = serve(Arc::clone(&engine), None).await;
    let (status, listed) = ask(bob, "GET /api/v1/approvals", JSON, "").await;
    assert_eq!(status, 200);
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(listed[0]["state"], "pending");
    assert_eq!(listed[0]["risk"]["level"], "L4");
    assert_eq!(listed[0]["scopes"], json!(["once", "same-arguments"]));
    let one = format!("/api/v1/approvals/{id}");
    let yes = r#"{"answer": "approve"}"#;
    for line in [
        "GET /api/v1/approvals".to_owned(),
        format!("GET {one}"),
        format!("POST {one}"),
    ] {
        let (status, body) = ask(nobody, &line, JSON, yes).await;
        assert_eq!(status, 403, "{line}");
        assert!(!body.to_string().contains("send"), "{body}");
    }
    let post = format!("POST {one}");
    let short = format!("POST {}", one.get(..one.len() - 4).unwrap());
    for (line, kind, body, expected) in [
        (post.as_str(), "text/plain", yes, 415),
        (&post, JSON, "{", 400),
        (&post, JSON, r#"{"answer": "maybe"}"#, 400),
        (&post, JSON, r#"{"answer": "approve", "scop": "once"}"#, 400),
        (
            &post,
            JSON,
            r#"{"answer": "approve", "scope": "until-changed"}"#,
            422,
        ),
        (&short, JSON, yes, 404),
        ("GET /api/v1/approvals?which=none", JSON, "", 400),
    ] {
        let (status, answer) = ask(bob, line, kind, body).await;
        assert_eq!(status, expected, "{line} {body}: {answer}");
        assert!(answer["error"]["message"].is_string());
    }
    let large = format!(
        r#"{{"answer": "approve", "note": "{}"}}"#,
        "x".repeat(20_000)
    );
    assert_eq!(ask(bob, &post, JSON, &large).await.0, 413);
    let (_, still) = ask(bob, &format!("GET {one}"), JSON, "").await;
    assert_eq!(still["state"], "pending");
    let (status, given) = ask(bob, &post, "application/json; charset=utf-8", yes).await;
    assert_eq!((status, &given["state"]), (200, &json!("approved")));
    assert_eq!(given["answeredBy"], "bob");
    assert_eq!(ask(bob, &post, JSON, yes).await.0, 409);
    let (_, all) = ask(bob, "GET /api/v1/approvals?which=all", JSON, "").await;
    assert_eq!(all.as_array().unwrap().len(), 1);
    let (_, pending) = ask(bob, "GET /api/v1/approvals?which=pending", JSON, "").await;
    assert_eq!(pending, json!([]));
}

/// The call waits, the operator says no, the call ends with what they said.
#[tokio::test]
async fn a_waiting_call_hears_the_answer() {
    let folder = Folder::new("inbox-waits");
    let settings = "[approvals]\nseparate = true\n";
    std::fs::write(folder.0.join("ringfence.toml"), settings).unwrap();
    let engine = engine(&folder);
    let bob = serve(Arc::clone(&engine), Some("bob")).await;
    let owner = serve(Arc::clone(&engine), Some("owner")).await;
    let waits = call(&engine);
    let answer = async {
        let id = loop {
            let (_, listed) = ask(bob, "GET /api/v1/approvals", JSON, "").await;
            if let Some(id) = listed[0]["id"].as_str() {
                break id.to_owned();
            }
        };
        let post = format!("POST /api/v1/approvals/{id}");
        // An operator who has the caller's name is the caller.
        assert_eq!(
            ask(owner, &post, JSON, r#"{"answer": "approve"}"#).await.0,
            403
        );
        let no = r#"{"answer": "deny", "note": "not today"}"#;
        assert_eq!(ask(bob, &post, JSON, no).await.0, 200);
    };
    let (outcome, ()) = tokio::join!(engine.call(waits), answer);
    let error = outcome.into_inner().error.unwrap();
    assert_eq!(error.reason.code(), "approval.declined");
    assert!(error.message.ends_with(": not today"), "{}", error.message);
}
