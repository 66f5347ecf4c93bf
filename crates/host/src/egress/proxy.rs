//! The proxy a child sees: HTTP/1.1 with requests for whole addresses, `CONNECT`, and
//! routes. It decides nothing itself; `hop` does.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;

use crate::egress::event::EgressEvent;
use crate::egress::hop::{EgressGuard, strip};
use crate::egress::limits;
use crate::egress::meter::{Direction, EgressMeter, MeteredBody};
use crate::egress::route::{RouteBody, RouteGuard, RouteReply, RouteRequest};
use crate::egress::tunnel::move_bytes;
use crate::fetch::HttpFault;
use crate::fetch::connect::Stream;
use crate::fetch::target::FetchTarget;
use crate::message::FaultKind;

/// The reason for what does not say in HTTP where it wants to go.
const NOT_FOR_PROXY: &str = "not-a-proxy-request";
/// How a path begins that names a route.
const ROUTES: &str = "/-/";

/// What a connection holds while it lasts.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) guard: Arc<EgressGuard>,
    /// Changes when all is to end.
    pub(crate) end: watch::Receiver<bool>,
    pub(crate) _place: Arc<OwnedSemaphorePermit>,
}

impl Hold {
    /// Runs something until it is over, the time is up, or all is to end.
    async fn until_end(mut self, action: impl Future<Output = ()>) {
        let whole = self.guard.settings.limits.connection;
        tokio::select! {
            _ = timeout(whole, action) => {}
            // An error means that the other side is gone: the end as well.
            _ = self.end.wait_for(|is_over| *is_over) => {}
        }
    }
}

/// Serves one connection of the child.
pub(crate) async fn serve(stream: impl Stream + 'static, hold: Hold) {
    let asked = hold.clone();
    let service = service_fn(move |request| {
        let hold = asked.clone();
        async move { Ok::<_, io::Error>(answer(request, hold).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Attack: a head that comes byte by byte.
        .header_read_timeout(hold.guard.settings.limits.head)
        .max_headers(limits::EGRESS_HEADERS_MAX)
        .max_buf_size(limits::EGRESS_HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let guard = Arc::clone(&hold.guard);
    hold.until_end(async move {
        // How a request ended is in the events; a program that hung up is no fault of ours.
        if connection.await.is_err_and(|error| error.is_parse()) {
            // Without namespaces every connection comes here, whatever address it names. A
            // program that goes past its proxy speaks TLS, or anything else.
            let event = EgressEvent {
                refusal: Some(NOT_FOR_PROXY),
                ..EgressEvent::default()
            };
            drop(EgressMeter::open(&guard.budget, event));
        }
    })
    .await;
}

async fn answer(request: Request<Incoming>, hold: Hold) -> Response<RouteBody> {
    let method = request.method().clone();
    let is_direct = method == Method::CONNECT || request.uri().scheme_str().is_some();
    if is_direct && hold.guard.settings.routes_only {
        let meter = hold.guard.meter(&method, None, None);
        meter.note(|event| event.refusal = Some("routes-only"));
        let sentence = "this program reaches its routes and nothing else";
        return to_response(RouteReply::refused("routes-only", sentence));
    }
    if method == Method::CONNECT {
        return to_response(tunnel(request, hold).await);
    }
    let uri = request.uri().clone();
    if uri.scheme_str().is_some() {
        return to_response(forward(request, &hold.guard).await);
    }
    // Without a scheme the request is for this proxy itself, which serves only routes.
    let rest = uri.path().strip_prefix(ROUTES);
    let (name, path) = match rest.map(|rest| rest.split_once('/').unwrap_or((rest, ""))) {
        Some((name, path)) => (name.to_owned(), path),
        None => {
            let meter = hold.guard.meter(&method, None, None);
            meter.note(|event| event.refusal = Some(NOT_FOR_PROXY));
            return to_response(RouteReply::no(
                StatusCode::BAD_REQUEST,
                "egress_refused",
                NOT_FOR_PROXY,
                "this is a proxy: every connection of this program comes here, whatever address it names",
            ));
        }
    };
    let path = match uri.query() {
        Some(query) => format!("/{path}?{query}"),
        None => format!("/{path}"),
    };
    to_response(go_by_route(request, &hold.guard, name, path).await)
}

fn to_response(reply: RouteReply) -> Response<RouteBody> {
    let mut response = Response::new(reply.body);
    *response.status_mut() = reply.status;
    *response.headers_mut() = reply.headers;
    response
}

/// What a child is told about a hop that failed.
fn refusal(fault: &HttpFault) -> RouteReply {
    let (status, error) = match fault.kind {
        FaultKind::Security => (StatusCode::FORBIDDEN, "egress_refused"),
        FaultKind::InvalidInput => (StatusCode::BAD_REQUEST, "egress_refused"),
        FaultKind::HelperRuntime => (StatusCode::BAD_GATEWAY, "egress_failed"),
    };
    RouteReply::no(status, error, fault.reason, &fault.to_string())
}

/// A request for a whole address, which is plain HTTP: of anything else the child does the
/// TLS itself, through a tunnel.
async fn forward(request: Request<Incoming>, guard: &Arc<EgressGuard>) -> RouteReply {
    let (head, body) = request.into_parts();
    if head.uri.scheme_str() != Some("http") {
        let meter = guard.meter(&head.method, None, None);
        meter.note(|event| event.refusal = Some("unsupported-scheme"));
        let rule = "only http is forwarded; use CONNECT for https".to_owned();
        return refusal(&HttpFault::denied("unsupported-scheme", rule));
    }
    let target = FetchTarget::parse(&head.uri.to_string(), None);
    let meter = guard.meter(&head.method, target.as_ref().ok(), None);
    let body = metered(body, &meter, guard.settings.limits.silence);
    let sent = match target {
        Ok(target) => {
            guard
                .forward(&target, head.method, head.headers, body, &meter)
                .await
        }
        Err(fault) => {
            meter.note(|event| event.refusal = Some(fault.reason));
            Err(fault)
        }
    };
    sent.unwrap_or_else(|fault| refusal(&fault))
}

fn metered(body: Incoming, meter: &Arc<EgressMeter>, silence: Duration) -> RouteBody {
    let meter = Arc::clone(meter);
    RouteBody::stream(MeteredBody::new(body, meter, Direction::FromChild, silence))
}

async fn go_by_route(
    request: Request<Incoming>,
    guard: &Arc<EgressGuard>,
    name: String,
    path: String,
) -> RouteReply {
    let (mut head, body) = request.into_parts();
    let meter = guard.meter(&head.method, None, Some(&name));
    let Some(route) = guard.settings.routes.get(&name) else {
        meter.note(|event| event.refusal = Some("no-such-route"));
        return RouteReply::refused("no-such-route", "there is no such route");
    };
    let route = Arc::clone(route);
    strip(&mut head.headers);
    let request = RouteRequest {
        method: head.method,
        path,
        headers: head.headers,
        body: metered(body, &meter, guard.settings.limits.silence),
    };
    let way = RouteGuard {
        guard: Arc::clone(guard),
        name,
    };
    let reply = route.answer(request, way).await;
    meter.note(|event| event.status = Some(reply.status.as_u16()));
    reply
}

/// `CONNECT`: bytes both ways, of which we see only the number.
async fn tunnel(request: Request<Incoming>, hold: Hold) -> RouteReply {
    let guard = Arc::clone(&hold.guard);
    let target = connect_target(&request);
    let meter = guard.meter(&Method::CONNECT, target.as_ref().ok(), None);
    let opened = match &target {
        Ok(target) => guard.open(target, &meter).await,
        Err(fault) => {
            meter.note(|event| event.refusal = Some(fault.reason));
            Err(fault.clone())
        }
    };
    let stream = match opened {
        Ok(stream) => stream,
        Err(fault) => return refusal(&fault),
    };
    let silence = guard.settings.limits.silence;
    tokio::spawn(hold.until_end(async move {
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            move_bytes(upgraded, stream, &meter, silence).await;
        }
    }));
    RouteReply {
        status: StatusCode::OK,
        headers: hyper::HeaderMap::new(),
        body: RouteBody::empty(),
    }
}

fn connect_target(request: &Request<Incoming>) -> Result<FetchTarget, HttpFault> {
    let authority = request.uri().authority();
    let port = authority.and_then(hyper::http::uri::Authority::port_u16);
    match (authority, port) {
        (Some(authority), Some(_)) => FetchTarget::parse(&format!("https://{authority}/"), None),
        (_, _) => Err(HttpFault::invalid(
            "invalid-url",
            "CONNECT takes a host and a port",
        )),
    }
}
