//! The layer in front of a transport with sessions: a request reaches a session of
//! its own principal, a new one, or none.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use model::reason::Reason;

use crate::auth::limit;
use crate::auth::principal::Principal;
use crate::auth::refusal::AuthRefusal;
use crate::auth::session::Sessions;
use crate::era::Era;

/// The header legacy sessions are known by.
pub const SESSION_HEADER: &str = "mcp-session-id";

/// Puts the check around routes. Their requests must carry a [`Principal`].
pub fn own_sessions(router: Router, sessions: &Sessions) -> Router {
    router.layer(from_fn_with_state(sessions.clone(), check_session))
}

async fn check_session(
    State(sessions): State<Sessions>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(principal) = request.extensions().get::<Principal>() else {
        return unauthenticated().into_response();
    };
    let id = match Era::of_headers(request.headers()) {
        Era::Modern => {
            // Attack: a request that is modern by one header and names another's
            // session by the next would reach it, if the next layer read the headers
            // differently.
            request.headers_mut().remove(SESSION_HEADER);
            return next.run(request).await;
        }
        Era::Legacy => match named_session(request.headers()) {
            Named::None => return next.run(request).await,
            Named::One(id) if sessions.is_owned(id, &principal.id) => id.to_owned(),
            Named::One(_) | Named::Unreadable => return no_session().into_response(),
        },
    };
    let is_end = *request.method() == Method::DELETE;
    let response = next.run(request).await;
    let status = response.status();
    // rmcp does not know it any more, so the table forgets it, too.
    if status == StatusCode::NOT_FOUND || (is_end && status.is_success()) {
        sessions.end(&id);
    }
    response
}

/// The session a request names.
enum Named<'a> {
    None,
    One(&'a str),
    /// Two ids, or one that cannot be ours.
    Unreadable,
}

fn named_session(headers: &HeaderMap) -> Named<'_> {
    let mut ids = headers.get_all(SESSION_HEADER).iter();
    match (ids.next().map(HeaderValue::to_str), ids.next()) {
        (None, _) => Named::None,
        (Some(Ok(id)), None) if id.len() <= limit::SESSION_ID_BYTES_MAX => Named::One(id),
        (Some(_), _) => Named::Unreadable,
    }
}

fn unauthenticated() -> AuthRefusal {
    AuthRefusal::new(Reason::GateToken, "the request was not authenticated")
}

/// The same refusal for an unknown session, one that ended and another principal's.
pub(crate) fn no_session() -> AuthRefusal {
    AuthRefusal::new(
        Reason::GateSession,
        "there is no such session; begin a new one",
    )
}
