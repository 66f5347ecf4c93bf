//! The gate around a router: the only file of the gate that reads requests and
//! writes answers.
//!
//! The server must put the peer's address into each request, as
//! `into_make_service_with_connect_info::<SocketAddr>()` does; a request without one
//! is refused.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use model::govern::key::Role;
use model::reason::Reason;

use crate::gate::refusal::Refusal;
use crate::gate::{Gate, Principal, bearer, cors, limit};

/// Where the document about tokens is, for the server as a whole.
pub const DOCUMENT: &str = "/.well-known/oauth-protected-resource";
/// The same for the MCP endpoint.
pub const DOCUMENT_OF_MCP: &str = "/.well-known/oauth-protected-resource/mcp";

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// From this revision on there are no sessions.
const FIRST_WITHOUT_SESSIONS: &str = "2026-07-28";

/// What is behind the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    /// For everybody: no key is needed.
    Open,
    /// The same for probes, which know the machine by its number.
    Probes,
    /// For agents, who call tools.
    Agents,
    /// For operators, who answer questions.
    Operators,
}

#[derive(Clone, Debug)]
struct Guard {
    gate: Arc<Gate>,
    door: Door,
}

/// Puts the gate around routes that need no key, such as health. `Host`, `Origin`
/// and the limit of an address still count.
pub fn open(router: Router, gate: &Arc<Gate>) -> Router {
    guarded(router, gate, Door::Open)
}

/// The address of ours that a connection reached. The server puts it into each request
/// that may be a probe.
#[derive(Clone, Copy, Debug)]
pub struct Reached(pub SocketAddr);

/// Puts the gate around the routes of probes. No key is needed, and besides the names of
/// the server the address that was reached does as `Host`.
pub fn probes(router: Router, gate: &Arc<Gate>) -> Router {
    guarded(router, gate, Door::Probes)
}

/// Puts the gate around routes of agents. Requests that get through carry a
/// [`Principal`] of role agent, in an extension.
pub fn agents(router: Router, gate: &Arc<Gate>) -> Router {
    guarded(router, gate, Door::Agents)
}

/// Puts the gate around routes of operators. Invariant 7: no agent's key, no token
/// of this machine and no issuer's token gets through here.
pub fn operators(router: Router, gate: &Arc<Gate>) -> Router {
    guarded(router, gate, Door::Operators)
}

/// The documents that tell clients where to get a token. Put [`open`] around them.
pub fn documents(gate: &Arc<Gate>) -> Router {
    Router::new()
        .route(DOCUMENT, get(document))
        .route(DOCUMENT_OF_MCP, get(document))
        .with_state(Arc::clone(gate))
}

fn guarded(router: Router, gate: &Arc<Gate>, door: Door) -> Router {
    let guard = Guard {
        gate: Arc::clone(gate),
        door,
    };
    router.layer(from_fn_with_state(guard, pass))
}

async fn document(State(gate): State<Arc<Gate>>) -> Response {
    match gate.document() {
        Some(document) => Json(document).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn pass(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let gate = &guard.gate;
    let origin = match welcome(gate, guard.door, &request) {
        Ok(origin) => origin,
        Err(refusal) => return gate.counted(refusal).into_response(),
    };
    let mut response = if cors::is_preflight(request.method(), request.headers()) {
        cors::preflight(request.headers())
    } else {
        let passed = come_in(&guard, request, next).await;
        passed.unwrap_or_else(|refusal| gate.counted(refusal).into_response())
    };
    cors::stamp(&mut response, origin);
    response
}

/// Whether the request was meant for this server and comes from no stranger's page.
/// Gives the page's origin, if it is a page.
fn welcome(gate: &Gate, door: Door, request: &Request) -> Result<Option<HeaderValue>, Refusal> {
    let mut hosts = all(request.headers(), &HOST);
    // A full address in the first line is a second place for the name.
    if let Some(authority) = request.uri().authority() {
        hosts.push(authority.as_str().as_bytes());
    }
    let count = request.headers().get_all(HOST).iter().count();
    let is_ours = match door {
        Door::Probes => {
            let reached = request.extensions().get::<Reached>();
            let reached = reached.map(|Reached(address)| address.ip());
            gate.addresses.host_is_ours_or(&hosts, reached)
        }
        Door::Open | Door::Agents | Door::Operators => gate.addresses.host_is_ours(&hosts),
    };
    if count > 1 || !is_ours {
        let sentence =
            "this server does not go by that name; its operator can list it in `serve.hosts`";
        return Err(Refusal::new(Reason::GateHost, sentence));
    }
    let origins = all(request.headers(), &ORIGIN);
    if origins.is_empty() {
        return Ok(None);
    }
    if !gate.addresses.origin_is_welcome(&origins) {
        let sentence = "pages of that origin may not talk to this server; its operator can list it in `serve.origins`";
        return Err(Refusal::new(Reason::GateOrigin, sentence));
    }
    Ok(request.headers().get(ORIGIN).cloned())
}

/// Everything behind `Host` and `Origin`, in order.
async fn come_in(guard: &Guard, mut request: Request, next: Next) -> Result<Response, Refusal> {
    let gate = &guard.gate;
    let now = gate.clock.now();
    let peer = peer(&request)?;
    gate.peers.come(peer, now.steady)?;
    let role = match guard.door {
        Door::Open | Door::Probes => {
            request.headers_mut().remove(AUTHORIZATION);
            return Ok(next.run(request).await);
        }
        Door::Agents => Role::Agent,
        Door::Operators => Role::Operator,
    };
    let principal = {
        let headers = all(request.headers(), &AUTHORIZATION);
        let credential = bearer::read(&headers, request.uri().query())?;
        gate.principal(credential, peer, now).await?
    };
    if principal.role != role {
        return Err(wrong_door(principal.role));
    }
    gate.take_turn(&principal.caller, now)?;
    // Invariant: what was shown here goes no further.
    request.headers_mut().remove(AUTHORIZATION);
    request.extensions_mut().insert(principal.clone());
    match guard.door {
        Door::Agents => in_session(gate, &principal, request, next).await,
        Door::Open | Door::Probes | Door::Operators => Ok(next.run(request).await),
    }
}

/// Lets a request through to its own session, to a new one, or to none.
async fn in_session(
    gate: &Gate,
    principal: &Principal,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    if is_without_sessions(request.headers()) {
        // Attack: this header beside the other would get somebody to a session
        // past the check below, if what follows read them differently.
        request.headers_mut().remove(SESSION);
        return Ok(next.run(request).await);
    }
    let ids = all(request.headers(), &SESSION);
    if ids.is_empty() {
        return begin_session(gate, principal, request, next).await;
    }
    let id = match ids.as_slice() {
        [id] if id.len() <= limit::SESSION_ID_BYTES_MAX => std::str::from_utf8(id).ok(),
        _ => None,
    };
    let id = id.filter(|id| gate.sessions.is_owned(id, &principal.id));
    let Some(id) = id.map(str::to_owned) else {
        return Err(no_session());
    };
    let is_end = *request.method() == Method::DELETE;
    let response = next.run(request).await;
    let status = response.status();
    if status == StatusCode::NOT_FOUND || (is_end && status.is_success()) {
        gate.sessions.forget(&id);
    }
    Ok(response)
}

async fn begin_session(
    gate: &Gate,
    principal: &Principal,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    if *request.method() != Method::POST {
        return Ok(next.run(request).await);
    }
    // Whatever keeps sessions says when one begins and when it is over.
    let beginning = gate.sessions.beginning(&principal.id);
    request.extensions_mut().insert(beginning);
    let response = next.run(request).await;
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        gate.count(Reason::GateSessionLimit);
    }
    Ok(response)
}

fn is_without_sessions(headers: &HeaderMap) -> bool {
    let versions = all(headers, &VERSION);
    let [version] = versions.as_slice() else {
        return false;
    };
    let is_date = version.len() == FIRST_WITHOUT_SESSIONS.len()
        && version
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'-');
    is_date && *version >= FIRST_WITHOUT_SESSIONS.as_bytes()
}

fn peer(request: &Request) -> Result<IpAddr, Refusal> {
    let found = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let found = found.map(|ConnectInfo(address)| address.ip());
    found.ok_or_else(|| {
        let sentence = "the server does not know where the request comes from";
        Refusal::new(Reason::GateUnavailable, sentence)
    })
}

fn all<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Vec<&'a [u8]> {
    let values = headers.get_all(name).iter();
    values.map(HeaderValue::as_bytes).collect()
}

fn wrong_door(role: Role) -> Refusal {
    let sentence = match role {
        Role::Agent => "agents' keys call tools; to answer questions takes an operator's key",
        Role::Operator => "operators' keys answer questions; to call tools takes an agent's key",
    };
    Refusal::new(Reason::GateRole, sentence)
}

fn no_session() -> Refusal {
    Refusal::new(
        Reason::GateSession,
        "there is no such session; begin a new one",
    )
}
