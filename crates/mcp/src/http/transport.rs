//! The one route of the protocol: rmcp's service within our bounds.

use std::sync::Arc;
use std::time::Duration;

use axum::{Router, middleware};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::auth::{self, Sessions};
use crate::http::body::{self, Answers, BodyBounds, BodyState};
use crate::http::bounds::HttpBounds;
use crate::http::plain::PlainCalls;
use crate::http::session::RmcpSessions;
use crate::limit;
use crate::unsent::Unsent;

/// The address of the protocol.
pub const PATH: &str = "/mcp";

/// The same with a slash, which some clients add.
const PATH_WITH_SLASH: &str = "/mcp/";

/// Pages that may call a server on loopback.
const LOOPBACK_ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

/// The transport of one server.
#[derive(Debug)]
pub struct Transport {
    /// Its one route; requests must carry a [`crate::auth::Principal`].
    pub router: Router,
    /// Whose its legacy sessions are.
    pub sessions: Sessions,
    /// rmcp's part of them.
    pub kept: Arc<RmcpSessions>,
    /// Ends every stream.
    pub(super) cut: CancellationToken,
    pub(super) answers: Answers,
}

/// The transport for a server, which is made for each session and each modern
/// request.
#[must_use]
pub fn router<H: ServerHandler>(
    make: impl Fn() -> H + Send + Sync + 'static,
    bounds: &HttpBounds,
) -> Transport {
    router_with(make, bounds, Unsent::default(), None)
}

/// The same, with the server's count of unsent answers and its way to make plain calls.
pub(super) fn router_with<H: ServerHandler>(
    make: impl Fn() -> H + Send + Sync + 'static,
    bounds: &HttpBounds,
    unsent: Unsent,
    plain: Option<PlainCalls>,
) -> Transport {
    let cut = CancellationToken::new();
    let sessions = Sessions::new(bounds.sessions());
    let kept = Arc::new(RmcpSessions::new(sessions.clone()));
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(true)
        .with_json_response(true)
        .with_sse_keep_alive(Some(Duration::from_secs(limit::KEEP_ALIVE_SECONDS)))
        .with_max_request_body_bytes(bounds.body_bytes_max)
        .with_cancellation_token(cut.clone());
    let config = if bounds.loopback_only {
        config.with_allowed_origins(LOOPBACK_ORIGINS)
    } else {
        // `auth` checks `Host` and `Origin` against every name of the server; rmcp
        // knows only loopback.
        config.disable_allowed_hosts()
    };
    let service = StreamableHttpService::new(move || Ok(make()), Arc::clone(&kept), config);
    let answers = Answers::default();
    let state = BodyState {
        answers: answers.clone(),
        bounds: BodyBounds::of(bounds),
        sessions: sessions.clone(),
        unsent,
        plain,
        stream_first: bounds.stream_first,
    };
    let router = Router::new()
        .route_service(PATH, service.clone())
        // People add a slash.
        .route_service(PATH_WITH_SLASH, service)
        .layer(middleware::from_fn_with_state(state, body::layer));
    Transport {
        // Outermost, so that no request gets to a foreign session, whatever layer is in
        // front of the transport.
        router: auth::own_sessions(router, &sessions),
        sessions,
        kept,
        cut,
        answers,
    }
}
