//! What the fuzz target and its seeds call: any bytes, at the edge where HTTP becomes
//! JSON-RPC. A server that can do nothing stands behind it, so that only the edge answers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{Request, Response, header};
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper::service::Service as _;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use mcp::http::{self, HttpBounds, PATH};
use mcp::{auth, limit};
use model::config::Config;
use rmcp::ServerHandler;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::unlocked;

/// An answer that is not there by then hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Both ends of a connection that is none.
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7464);

/// Bytes of an answer; those of the edge are short.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Answers nothing but what every server must.
struct Nothing;

impl ServerHandler for Nothing {}

/// The bytes as the body of a request of each era, and as all that one connection says.
/// Whatever they are: an answer comes, it is one message of JSON-RPC or none, no client
/// without a session is given a stream, and a connection that says no more is closed.
pub(crate) fn check(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return;
    };
    runtime.block_on(async {
        let config = Config::closed().serve;
        let bounds = HttpBounds::of(&config);
        let transport = http::router(|| Nothing, &bounds);
        let Ok(auth) = unlocked::unlocked(CLIENT, config.clone()) else {
            return;
        };
        let app = auth::agents(transport.router.clone(), &auth);
        let app = app.layer(Extension(ConnectInfo(CLIENT)));
        for version in ["2025-11-25", "2026-07-28"] {
            let message = body(&app, version, data);
            assert!(timeout(PATIENCE, message).await.is_ok(), "no answer came");
        }
        let spoken = connection(&app, data);
        assert!(
            timeout(PATIENCE, spoken).await.is_ok(),
            "a connection hangs"
        );
    });
}

async fn body(app: &Router, version: &str, data: &[u8]) {
    let method = serde_json::from_slice::<Value>(data).ok();
    let method = method.and_then(|message| Some(message.get("method")?.as_str()?.to_owned()));
    let mut request = Request::post(PATH)
        .header(header::HOST, "127.0.0.1")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header("mcp-protocol-version", version);
    // As a client would, so that what lies behind the headers is reached as well.
    if let Some(method) = method.filter(|method| method.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        request = request.header("mcp-method", method);
    }
    let Ok(request) = request.body(Body::from(data.to_vec())) else {
        return;
    };
    let Ok(answer) = TowerToHyperService::new(app.clone()).call(request).await;
    check_answer(answer).await;
}

/// Either nothing, or one message; or the stream of a request that was understood.
async fn check_answer(answer: Response<Body>) {
    let (parts, body) = answer.into_parts();
    let kind = parts.headers.get(header::CONTENT_TYPE);
    let kind = kind.map_or(b"".as_slice(), |kind| kind.as_bytes());
    if kind.starts_with(b"text/event-stream") {
        assert!(parts.status.is_success(), "{} with a stream", parts.status);
        return;
    }
    let bytes = to_bytes(body, ANSWER_BYTES_MAX).await.unwrap_or_default();
    if bytes.is_empty() {
        assert!(!parts.status.is_server_error(), "{}", parts.status);
        return;
    }
    let message: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let shown = String::from_utf8_lossy(&bytes);
    assert!(
        message
            .get("jsonrpc")
            .is_some_and(|version| version == "2.0"),
        "{shown}"
    );
    let is_error = message.get("error").is_some_and(|error| {
        error.get("code").is_some_and(Value::is_i64)
            && error.get("message").is_some_and(Value::is_string)
    });
    assert_ne!(is_error, message.get("result").is_some(), "{shown}");
    assert!(
        is_error || parts.status.is_success(),
        "{} with {shown}",
        parts.status
    );
}

/// All of it on one connection, which then hears no more from us.
async fn connection(app: &Router, data: &[u8]) {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .max_headers(limit::HEADERS_MAX)
        .max_buf_size(limit::CONNECTION_BYTES_MAX)
        .serve_connection(TokioIo::new(theirs), TowerToHyperService::new(app.clone()));
    let (mut reader, mut writer) = tokio::io::split(ours);
    let saying = async {
        let _ = writer.write_all(data).await;
        let _ = writer.shutdown().await;
    };
    let mut heard = Vec::new();
    let hearing = reader.read_to_end(&mut heard);
    let (_, (), _) = tokio::join!(serving, saying, hearing);
    assert!(
        heard.is_empty() || heard.starts_with(b"HTTP/1.1 "),
        "not HTTP"
    );
}
