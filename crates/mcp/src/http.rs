//! MCP over HTTP: one address, `/mcp`, for both eras, within bounds.
//!
//! [`router`] makes the transport for any handler, [`listen`] runs any router on a
//! socket, and [`serve`] is both for a [`Door`]. From outside in: connections and
//! heads (here), the gate, bodies and sessions (`translate`), rmcp.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Json, Router, middleware};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use model::config::ServeConfig;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rustix::net::sockopt;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::gate::{Gate, Reached};
use crate::handler::Handler;
use crate::metrics::Metrics;
use crate::patience::Patient;
pub use crate::session::{Most, Sessions};
use crate::translate::{self, Answers, Bounds, Reading};
use crate::unsent::Unsent;
use crate::{Door, DoorError, Shutdown, gate, inbox, limit, news, probe};

/// The address of the protocol.
pub const PATH: &str = "/mcp";

/// The same, as some write it.
const PATH_WITH_SLASH: &str = "/mcp/";

/// Pages that may call a server on loopback.
const LOOPBACK_ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

/// What one connection too many is told.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\
    content-length: 0\r\nconnection: close\r\n\r\n";

/// How much the transport takes.
#[derive(Clone, Debug)]
pub struct HttpBounds {
    /// Connections at one time.
    pub connections_max: usize,
    /// Sessions at one time.
    pub sessions_max: usize,
    /// Sessions of one caller at one time.
    pub sessions_per_caller_max: usize,
    /// Bytes of one request.
    pub body_bytes_max: usize,
    /// How long a session may be idle.
    pub session_idle_max: Duration,
    /// How long a call may take, and so keep its session busy.
    pub call_max: Duration,
    /// How long a connection may take to send the head of its next request.
    pub head_max: Duration,
    /// How long a request may take to send its body.
    pub body_max: Duration,
    /// How long the answer to a modern request may take before its stream begins.
    pub stream_first: Duration,
    /// How long the other side may take to read a piece of an answer.
    pub write_max: Duration,
    /// Whether the transport itself refuses hosts and origins that are not loopback.
    /// Not needed behind a gate that knows the server's names.
    pub loopback_only: bool,
}

impl HttpBounds {
    /// What the operator set.
    #[must_use]
    pub fn of(config: &ServeConfig) -> HttpBounds {
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        HttpBounds {
            connections_max: size(config.connections_max),
            sessions_max: size(config.sessions_max),
            sessions_per_caller_max: size(config.sessions_per_caller_max),
            body_bytes_max: size(config.body_bytes_max),
            session_idle_max: Duration::from_secs(limit::SESSION_IDLE_SECONDS_MAX),
            call_max: Duration::from_secs(config.call_seconds_max),
            head_max: Duration::from_secs(limit::HEAD_SECONDS_MAX),
            body_max: Duration::from_secs(limit::BODY_SECONDS_MAX),
            stream_first: Duration::from_millis(limit::STREAM_FIRST_MS),
            write_max: Duration::from_secs(limit::WRITE_SECONDS_MAX),
            loopback_only: true,
        }
    }
}

/// The transport of one server.
#[derive(Debug)]
pub struct Transport {
    /// Its one route; requests must carry a [`crate::gate::Principal`].
    pub router: Router,
    /// Its legacy sessions.
    pub sessions: Arc<Sessions>,
    /// Ends every stream.
    cut: CancellationToken,
    answers: Answers,
}

/// The transport for a handler, which is made anew for each session and each
/// modern request.
#[must_use]
pub fn router<H: ServerHandler>(
    make: impl Fn() -> H + Send + Sync + 'static,
    bounds: &HttpBounds,
) -> Transport {
    counting(make, bounds, Unsent::default())
}

/// The same, with what the handler knows of answers that are not sent.
fn counting<H: ServerHandler>(
    make: impl Fn() -> H + Send + Sync + 'static,
    bounds: &HttpBounds,
    unsent: Unsent,
) -> Transport {
    let cut = CancellationToken::new();
    let sessions = Arc::new(Sessions::new(Most {
        together: bounds.sessions_max,
        per_caller: bounds.sessions_per_caller_max,
        idle: bounds.session_idle_max,
        call: bounds.call_max,
    }));
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(true)
        .with_json_response(true)
        .with_sse_keep_alive(Some(Duration::from_secs(limit::KEEP_ALIVE_SECONDS)))
        .with_max_request_body_bytes(bounds.body_bytes_max)
        .with_cancellation_token(cut.clone());
    let config = if bounds.loopback_only {
        config.with_allowed_origins(LOOPBACK_ORIGINS)
    } else {
        config.disable_allowed_hosts()
    };
    let service = StreamableHttpService::new(move || Ok(make()), Arc::clone(&sessions), config);
    let answers = Answers::default();
    let state = Bounds {
        answers: answers.clone(),
        reading: Reading::of(bounds),
        sessions: Arc::clone(&sessions),
        unsent,
        stream_first: bounds.stream_first,
    };
    let router = Router::new()
        .route_service(PATH, service.clone())
        // What people type.
        .route_service(PATH_WITH_SLASH, service)
        .layer(middleware::from_fn_with_state(state, translate::layer));
    Transport {
        router,
        sessions,
        cut,
        answers,
    }
}

/// What a server has routes for.
#[derive(Debug)]
pub struct Routes {
    /// The protocol's; requests must carry a [`crate::gate::Principal`].
    pub protocol: Router,
    /// Those of whoever keeps servers alive.
    pub probes: Router,
}

/// Serves a door until told to end, and ends it well: calls finish or are
/// cancelled, their audit rows are closed. Whatever `guard` puts around the
/// protocol's route must give each request its [`crate::gate::Principal`]; it is
/// told of the sessions, so that it can forget those that ended.
pub async fn serve(
    door: Door,
    listener: TcpListener,
    bounds: HttpBounds,
    guard: impl FnOnce(Routes) -> Router,
    shutdown: Shutdown,
) -> Result<(), DoorError> {
    let for_handler = door.clone();
    let make = move || Handler::behind_gate(for_handler.clone());
    let transport = counting(make, &bounds, door.inner.unsent.clone());
    let of_sessions = door.clone();
    transport.sessions.when_over(move |id| {
        let (door, id) = (of_sessions.clone(), id.to_owned());
        // Whatever was approved for this session counts no more. Should it fail, the
        // name of the session is gone with it, and nobody can speak in it again.
        tokio::task::spawn_blocking(move || door.engine().approvals().end_session(&id));
    });
    let probes = Router::new()
        .route("/healthz", get(probe::alive))
        .route("/readyz", get(probe::ready).with_state(door.clone()));
    let app = guard(Routes {
        protocol: transport.router.clone(),
        probes,
    });
    let watching = tokio::spawn(news::watch(door.clone(), door.inner.closing.clone()));
    let drain = door.drain(&shutdown.hard);
    let served = listen(listener, app, &transport, &bounds, &shutdown.soft, drain).await;
    let _ = watching.await;
    served
}

/// The gate around every route, for [`serve`], with the inbox and the counts of
/// operators beside the protocol.
pub fn behind(
    gate: Arc<Gate>,
    door: &Door,
    metrics: Metrics,
    bounds: &HttpBounds,
) -> impl FnOnce(Routes) -> Router + use<> {
    let operators = inbox::routes(door.clone())
        .route(
            "/metrics",
            get(probe::metrics).with_state((metrics, Arc::clone(&gate))),
        )
        .layer(middleware::from_fn_with_state(
            Reading::of(bounds),
            translate::whole,
        ));
    move |routes| {
        let open = gate::documents(&gate).route("/", get(front));
        let lost = Router::new().fallback(lost);
        gate::agents(routes.protocol, &gate)
            .merge(gate::operators(operators, &gate))
            .merge(gate::open(open, &gate))
            .merge(gate::probes(routes.probes, &gate))
            .fallback_service(gate::open(lost, &gate))
    }
}

/// What is here, for whoever looks with a browser or the wrong address.
async fn front() -> Json<Value> {
    Json(json!({"name": "ringfence", "mcp": PATH, "health": ["/healthz", "/readyz"]}))
}

async fn lost() -> Response {
    let message = format!("there is nothing at this address; MCP is at `{PATH}`");
    translate::refusal(StatusCode::NOT_FOUND, -32000, &message, Value::Null)
}

/// Refuses a head that is too long: the first line and the headers, as they are
/// written, but for white space around values.
async fn bounded_head(request: Request, next: Next) -> Response {
    const LINE: usize = " HTTP/1.1\r\n".len() + 1;
    const BETWEEN: usize = ": \r\n".len();
    let line = request.method().as_str().len() + request.uri().to_string().len() + LINE;
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + BETWEEN);
    if line + headers.sum::<usize>() + 2 <= limit::HEAD_BYTES_MAX {
        return next.run(request).await;
    }
    let most = limit::HEAD_BYTES_MAX;
    let message = format!("the head of the request is longer than {most} bytes");
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    let mut response = translate::refusal(status, -32000, &message, Value::Null);
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

/// Runs a router on a socket until `end`; then waits for `drain`, cuts the streams
/// and lets the connections go.
pub async fn listen(
    listener: TcpListener,
    app: Router,
    transport: &Transport,
    bounds: &HttpBounds,
    end: &CancellationToken,
    drain: impl Future<Output = ()>,
) -> Result<(), DoorError> {
    let room = Arc::new(Semaphore::new(
        bounds.connections_max.min(Semaphore::MAX_PERMITS),
    ));
    let app = app.layer(middleware::from_fn(bounded_head));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = end.cancelled() => break,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, peer)) = accepted else {
            // Out of descriptors: others must end before we can go on.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        prepare(&stream, bounds);
        match Arc::clone(&room).try_acquire_owned() {
            Ok(place) => {
                let reached = stream
                    .local_addr()
                    .map(|address| Extension(Reached(address)));
                let app = app.clone().layer(Extension(ConnectInfo(peer)));
                let app = match reached {
                    Ok(reached) => app.layer(reached),
                    Err(_) => app,
                };
                let end = (end.clone(), transport.cut.clone());
                let stream = Patient::new(stream, bounds.write_max);
                let head_max = bounds.head_max;
                connections.spawn(connection(stream, app, head_max, end, place));
            }
            Err(_) => turn_away(stream).await,
        }
    }
    drop(listener);
    drain.await;
    let bound = Duration::from_secs(limit::SHUTDOWN_ANSWER_SECONDS);
    let _ = timeout(bound, transport.answers.written()).await;
    transport.sessions.close_all().await;
    transport.cut.cancel();
    let bound = Duration::from_secs(limit::SHUTDOWN_CONNECTION_SECONDS);
    let _ = timeout(bound, async {
        while connections.join_next().await.is_some() {}
    })
    .await;
    Ok(())
}

/// What the kernel does for a connection. None of it is needed for the bounds above
/// to hold, so none of it can fail.
fn prepare(stream: &TcpStream, bounds: &HttpBounds) {
    // Without this every streamed answer waits for the reader's kernel.
    let _ = stream.set_nodelay(true);
    // The less is kept here, the sooner it shows that nobody reads.
    let _ = sockopt::set_socket_send_buffer_size(stream, limit::WRITE_KEPT_BYTES_MAX);
    // What is too little to fill that is not kept for ever either.
    let patience_ms = u32::try_from(bounds.write_max.as_millis()).unwrap_or(u32::MAX);
    let _ = sockopt::set_tcp_user_timeout(stream, patience_ms);
}

/// One connection, for as long as it lives. Asked to end, it takes no further
/// request; when the streams are cut, it goes.
async fn connection(
    stream: Patient<TcpStream>,
    app: Router,
    head_max: Duration,
    (end, cut): (CancellationToken, CancellationToken),
    _place: OwnedSemaphorePermit,
) {
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        // Counts between requests too, so that it bounds idling as well.
        .header_read_timeout(head_max)
        .max_headers(limit::HEADERS_MAX)
        .max_buf_size(limit::CONNECTION_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        _ = serving.as_mut() => return,
        () = end.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = serving.as_mut() => {}
        () = cut.cancelled() => {
            // What was cut may still want to say so.
            let _ = timeout(Duration::from_millis(500), serving).await;
        }
    }
}

/// Says that there is no room, to whoever still reads it.
async fn turn_away(mut stream: TcpStream) {
    let said = async {
        let _ = stream.write_all(FULL).await;
        let _ = stream.shutdown().await;
    };
    let _ = timeout(Duration::from_millis(100), said).await;
}

/// The address clients connect to.
#[must_use]
pub fn url(address: SocketAddr) -> String {
    format!("http://{address}{PATH}")
}
