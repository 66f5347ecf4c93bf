//! MCP over HTTP: one address, `/mcp`, for both eras, within bounds.
//!
//! `router` makes the transport for any server, `listen` runs any router on a
//! socket, and `serve` is both for a `Door`. From outside in: connections and
//! heads, authentication, sessions, bodies, rmcp.

/// Several messages in one body.
mod batch;
/// Bodies, and rmcp's answers as the specification has them.
mod body;
/// The bounds of the transport.
mod bounds;
/// Sockets and connections.
mod connection;
/// Streams that begin before their answer is ready.
mod early;
/// The inbox of operators.
pub mod inbox;
/// Calls without a session that get one answer.
mod plain;
/// Health, readiness and metrics.
mod probe;
/// Answers a client comes back for.
mod resume;
/// rmcp's part of sessions.
mod session;
/// The route of the protocol.
mod transport;
/// A witness of other logs.
pub mod witness;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router, middleware};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::auth::{self, Auth};
use crate::http::body::BodyBounds;
use crate::http::plain::PlainCalls;
use crate::http::transport::router_with;
use crate::jsonrpc::TRANSPORT;
use crate::metrics::Metrics;
use crate::protocol::door::{Door, DoorError, Shutdown};
use crate::protocol::list_changed;
use crate::protocol::server::McpServer;

pub use bounds::HttpBounds;
pub use connection::listen;
pub use session::RmcpSessions;
pub use transport::{PATH, Transport, router};

/// The routes of a server.
#[derive(Debug)]
pub struct Routes {
    /// The protocol's; requests must carry a [`crate::auth::Principal`].
    pub protocol: Router,
    /// Those of probes.
    pub probes: Router,
}

/// Serves a door until told to end. Then calls finish or are cancelled, and their
/// audit rows are closed. `guard` must give each request of the protocol its
/// [`crate::auth::Principal`].
pub fn serve(
    door: Door,
    listener: TcpListener,
    bounds: HttpBounds,
    guard: impl FnOnce(Routes) -> Router,
    shutdown: Shutdown,
) -> BoxFuture<'static, Result<(), DoorError>> {
    let (transport, routes) = open(&door, &bounds);
    let app = guard(routes);
    serve_app(door, listener, (bounds, transport, app), shutdown)
}

/// The transport of a door, and its routes before they are guarded.
fn open(door: &Door, bounds: &HttpBounds) -> (Transport, Routes) {
    let of_servers = door.clone();
    let make = move || McpServer::authenticated(of_servers.clone());
    let plain = Some(PlainCalls::new(door.clone(), bounds));
    let transport = router_with(make, bounds, door.inner.unsent.clone(), plain);
    let of_sessions = door.clone();
    transport.sessions.on_end(move |id| {
        let (door, id) = (of_sessions.clone(), id.to_owned());
        // Approvals for this session end with it. If that cannot be written, the id is
        // gone all the same, and no request can use the session.
        tokio::task::spawn_blocking(move || door.engine().approvals().end_session(&id));
    });
    let probes = Router::new()
        .route("/healthz", get(probe::alive))
        .route("/readyz", get(probe::ready).with_state(door.clone()));
    let routes = Routes {
        protocol: transport.router.clone(),
        probes,
    };
    (transport, routes)
}

/// Boxed because rustc compiles a future again in every crate that awaits it.
fn serve_app(
    door: Door,
    listener: TcpListener,
    opened: (HttpBounds, Transport, Router),
    shutdown: Shutdown,
) -> BoxFuture<'static, Result<(), DoorError>> {
    Box::pin(run(door, listener, opened, shutdown))
}

async fn run(
    door: Door,
    listener: TcpListener,
    (bounds, transport, app): (HttpBounds, Transport, Router),
    shutdown: Shutdown,
) -> Result<(), DoorError> {
    let watching = tokio::spawn(list_changed::watch(
        Arc::clone(&door.inner.engine),
        Arc::clone(&door.inner.listeners),
        door.inner.closing.clone(),
    ));
    let drain = door.drain(&shutdown.hard);
    let served = listen(listener, app, &transport, &bounds, &shutdown.soft, drain).await;
    let _ = watching.await;
    served
}

/// Authentication around every route, for `serve`, with the inbox and the metrics of
/// operators beside the protocol. Every other address belongs to the page for people,
/// which has checks of its own; without a page it is not found.
pub fn guarded(
    auth: Arc<Auth>,
    door: &Door,
    metrics: Metrics,
    bounds: &HttpBounds,
    page: Option<Router>,
) -> impl FnOnce(Routes) -> Router + use<> {
    let operators = inbox::routes(door.clone())
        .route(
            "/metrics",
            get(probe::metrics).with_state((metrics, Arc::clone(&auth), door.clone())),
        )
        .layer(middleware::from_fn_with_state(
            BodyBounds::of(bounds),
            body::read_whole,
        ));
    // Anyone may send to it, so its body has the bounds of every other.
    let witness = witness::routes(door.clone()).layer(middleware::from_fn_with_state(
        BodyBounds::of(bounds),
        body::read_whole,
    ));
    move |routes| {
        let mut open = auth::documents(&auth).merge(witness);
        if page.is_none() {
            open = open.route("/", get(front));
        }
        let lost = || auth::open(Router::new().fallback(not_found), &auth);
        auth::agents(routes.protocol, &auth)
            .merge(auth::operators(operators, &auth))
            .merge(auth::open(open, &auth))
            .merge(auth::probes(routes.probes, &auth))
            .fallback_service(page.unwrap_or_else(lost))
    }
}

/// A pointer for a browser or a client with the wrong address.
async fn front() -> Json<Value> {
    Json(json!({"name": "ringfence", "mcp": PATH, "health": ["/healthz", "/readyz"]}))
}

async fn not_found() -> Response {
    let message = format!("there is nothing at this address; MCP is at `{PATH}`");
    body::refusal(StatusCode::NOT_FOUND, TRANSPORT, &message, &Value::Null)
}

/// The address clients connect to.
#[must_use]
pub fn url(address: SocketAddr) -> String {
    format!("http://{address}{PATH}")
}
