//! The one place that says which HTTP transport carries the fixtures.

use std::sync::Arc;

use axum::serve::ListenerExt as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::server::{Fixture, Shared};

/// Serves until standard input ends.
pub(crate) async fn serve() -> std::io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    let shared = Arc::new(Shared::default());
    let mut config = StreamableHttpServerConfig::default();
    config.json_response = true;
    config.allowed_origins = vec![
        "http://localhost:*".to_owned(),
        "http://127.0.0.1:*".to_owned(),
    ];
    let service = StreamableHttpService::new(
        move || Ok(Fixture::new(Arc::clone(&shared))),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let router = axum::Router::new().nest_service("/mcp", service);
    let listener = listener.tap_io(|stream| {
        // Without this every streamed answer waits for the client's acknowledgement.
        let _ = stream.set_nodelay(true);
    });
    println!("{}", json!({"url": format!("http://localhost:{port}/mcp")}));
    tokio::select! {
        ended = async { axum::serve(listener, router).await } => ended,
        () = input_ended() => Ok(()),
    }
}

async fn input_ended() {
    let mut input = tokio::io::stdin();
    let mut piece = [0_u8; 64];
    while matches!(input.read(&mut piece).await, Ok(count) if count > 0) {}
}
