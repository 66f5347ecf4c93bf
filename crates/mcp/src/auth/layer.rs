//! Authentication around routes: reads requests, writes answers.
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
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use model::caller::Caller;
use model::govern::key::Role;
use model::reason::Reason;

use crate::auth::authenticate::{Auth, DOCUMENT, DOCUMENT_OF_MCP};
use crate::auth::refusal::{AuthRefusal, RefusedWith};
use crate::auth::refusal_page;
use crate::auth::{bearer, cors};

/// The audience of a group of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    /// No key is needed.
    Anyone,
    /// The same for probes, which use the machine's address as `Host`.
    Probes,
    /// Callers of tools.
    Agents,
    /// Holders of operators' keys, who answer questions.
    Operators,
}

#[derive(Clone, Debug)]
struct Guard {
    auth: Arc<Auth>,
    audience: Audience,
}

/// Guards routes that need no key, such as health. `Host`, `Origin` and the rate limit
/// of the address are still checked.
pub fn open(router: Router, auth: &Arc<Auth>) -> Router {
    guard(router, auth, Audience::Anyone)
}

/// The address of ours that a connection reached. The server puts it into each request
/// that may be a probe.
#[derive(Clone, Copy, Debug)]
pub struct ReachedAddress(pub SocketAddr);

/// Guards the routes of probes. No key is needed. `Host` may be a name of the server or
/// the address that was reached.
pub fn probes(router: Router, auth: &Arc<Auth>) -> Router {
    guard(router, auth, Audience::Probes)
}

/// Guards routes of agents. Requests that pass carry a [`crate::auth::Principal`] of
/// role agent, in an extension.
pub fn agents(router: Router, auth: &Arc<Auth>) -> Router {
    guard(router, auth, Audience::Agents)
}

/// Guards routes of operators. Invariant 7: no agent's key, no token of this machine
/// and no issuer's token passes here.
pub fn operators(router: Router, auth: &Arc<Auth>) -> Router {
    guard(router, auth, Audience::Operators)
}

/// The documents that tell clients where to get a token. Put [`open`] around them.
pub fn documents(auth: &Arc<Auth>) -> Router {
    Router::new()
        .route(DOCUMENT, get(document))
        .route(DOCUMENT_OF_MCP, get(document))
        .with_state(Arc::clone(auth))
}

fn guard(router: Router, auth: &Arc<Auth>, audience: Audience) -> Router {
    let guard = Guard {
        auth: Arc::clone(auth),
        audience,
    };
    router.layer(from_fn_with_state(guard, check))
}

async fn document(State(auth): State<Arc<Auth>>) -> Response {
    match auth.document() {
        Some(document) => Json(document).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let wants_page = refusal_page::is_wanted(request.headers());
    let response = match check_host_and_origin(&guard, &request) {
        Err(refusal) => refusal.into_response(),
        Ok(origin) => {
            // A browser sends no credential with a preflight, so it is answered before
            // one is wanted.
            let mut response = if cors::is_preflight(request.method(), request.headers()) {
                cors::preflight(request.headers())
            } else {
                let passed = authenticate(&guard, request, next).await;
                passed.unwrap_or_else(AuthRefusal::into_response)
            };
            // Refusals as well: without these headers a page cannot read why.
            cors::stamp(&mut response, origin);
            response
        }
    };
    // Inner layers refuse too, for example a request that names a foreign session.
    if let Some(RefusedWith { reason, .. }) = response.extensions().get() {
        guard.auth.count(*reason);
    }
    match wants_page {
        true => refusal_page::put(response),
        false => response,
    }
}

/// Checks that the request was meant for this server, and comes from no unknown web
/// page. Returns the origin, if a page sent it.
fn check_host_and_origin(
    guard: &Guard,
    request: &Request,
) -> Result<Option<HeaderValue>, AuthRefusal> {
    let addresses = &guard.auth.addresses;
    let mut hosts = all(request.headers(), &HOST);
    // Counted before the next line adds a host: two `Host` headers are refused even if
    // both are ours.
    let count = hosts.len();
    // An absolute URI in the request line names a host too.
    if let Some(authority) = request.uri().authority() {
        hosts.push(authority.as_str().as_bytes());
    }
    let is_ours = match guard.audience {
        Audience::Probes => {
            let reached = request.extensions().get::<ReachedAddress>();
            let reached = reached.map(|ReachedAddress(address)| address.ip());
            addresses.host_is_ours_or(&hosts, reached)
        }
        Audience::Anyone | Audience::Agents | Audience::Operators => addresses.host_is_ours(&hosts),
    };
    if count > 1 || !is_ours {
        let sentence =
            "this server is not known by that host name; its operator can list it in `serve.hosts`";
        return Err(AuthRefusal::new(Reason::GateHost, sentence));
    }
    let origins = all(request.headers(), &ORIGIN);
    if origins.is_empty() {
        return Ok(None);
    }
    if !addresses.origin_is_welcome(&origins) {
        let sentence = "pages of that origin may not call this server; its operator can list it in `serve.origins`";
        return Err(AuthRefusal::new(Reason::GateOrigin, sentence));
    }
    Ok(request.headers().get(ORIGIN).cloned())
}

/// Everything behind `Host` and `Origin`, in order.
async fn authenticate(
    guard: &Guard,
    mut request: Request,
    next: Next,
) -> Result<Response, AuthRefusal> {
    let auth = &guard.auth;
    let now = auth.clock.now();
    let peer = peer(&request)?;
    // Before the credential is read: guessing keys must be limited by address.
    auth.peers.count_request(peer, now.steady)?;
    let role = match guard.audience {
        Audience::Anyone | Audience::Probes => {
            // Code behind these routes knows no caller and must not see a key.
            request.headers_mut().remove(AUTHORIZATION);
            return Ok(next.run(request).await);
        }
        Audience::Agents => Role::Agent,
        Audience::Operators => Role::Operator,
    };
    let principal = {
        let headers = all(request.headers(), &AUTHORIZATION);
        let credential = bearer::read(&headers, request.uri().query())?;
        auth.principal(credential, peer, now).await?
    };
    // Invariant 7: an agent's key opens no route of operators, and the other way round.
    if principal.role != role {
        return Err(wrong_role(principal.role));
    }
    // After authentication, so that no other client can use up a caller's rate.
    auth.take_turn(&principal.caller, now)?;
    // The credential goes no further: code behind this layer never sees it.
    request.headers_mut().remove(AUTHORIZATION);
    let limit = MessageLimit {
        auth: Arc::clone(auth),
        caller: principal.caller.clone(),
    };
    request.extensions_mut().insert(limit);
    request.extensions_mut().insert(principal);
    Ok(next.run(request).await)
}

/// Counts the messages of a request beyond its first, each as a request of its own.
#[derive(Clone, Debug)]
pub(crate) struct MessageLimit {
    auth: Arc<Auth>,
    caller: Caller,
}

impl MessageLimit {
    pub(crate) fn count(&self, more: usize) -> Result<(), AuthRefusal> {
        let now = self.auth.clock.now();
        (0..more).try_for_each(|_| self.auth.take_turn(&self.caller, now))
    }
}

fn peer(request: &Request) -> Result<IpAddr, AuthRefusal> {
    let found = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let found = found.map(|ConnectInfo(address)| address.ip());
    found.ok_or_else(|| {
        let sentence = "the server does not know where the request comes from";
        AuthRefusal::new(Reason::GateUnavailable, sentence)
    })
}

fn all<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Vec<&'a [u8]> {
    let values = headers.get_all(name).iter();
    values.map(HeaderValue::as_bytes).collect()
}

fn wrong_role(role: Role) -> AuthRefusal {
    let sentence = match role {
        Role::Agent => "agents' keys call tools; answering questions needs an operator's key",
        Role::Operator => "operators' keys answer questions; calling tools needs an agent's key",
    };
    AuthRefusal::new(Reason::GateRole, sentence)
}
