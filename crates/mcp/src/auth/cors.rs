//! CORS headers for pages of an allowed origin. Other origins get none. The headers
//! grant nothing: the origin was checked before.

use axum::body::Body;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;

use crate::auth::limit;

const METHODS: &str = "GET, POST, DELETE";
const HEADERS: [&str; 8] = [
    "authorization",
    "content-type",
    "accept",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "mcp-session-id",
    "last-event-id",
];
/// Arguments of tools that clients repeat in headers.
const PARAM_PREFIX: &str = "mcp-param-";
const EXPOSED: &str = "Mcp-Session-Id, WWW-Authenticate, Retry-After";

/// Whether a request is a preflight.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to it.
pub(super) fn preflight(headers: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let into = response.headers_mut();
    into.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static(METHODS),
    );
    into.insert(
        ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from(limit::PREFLIGHT_SECONDS),
    );
    if let Ok(allowed) = HeaderValue::from_str(&allowed_headers(headers)) {
        into.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    response
}

/// Marks an answer as meant for this page.
pub(super) fn stamp(response: &mut Response, origin: Option<HeaderValue>) {
    let Some(origin) = origin else {
        return;
    };
    let into = response.headers_mut();
    into.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    into.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(EXPOSED),
    );
    // A cache must not hand this answer to a page of another origin.
    into.append(VARY, HeaderValue::from_static("Origin"));
}

/// Those we know, and those that repeat a tool's argument.
fn allowed_headers(headers: &HeaderMap) -> String {
    let mut allowed: Vec<String> = HEADERS.map(str::to_owned).to_vec();
    let asked = headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let asked = asked.filter_map(|value| value.to_str().ok());
    let asked = asked.flat_map(|value| value.split(','));
    for name in asked.take(limit::PREFLIGHT_HEADERS_MAX) {
        let name = name.trim().to_ascii_lowercase();
        // The name goes into a header of ours, so it may hold nothing but a name.
        let is_plain = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        if name.starts_with(PARAM_PREFIX) && is_plain {
            allowed.push(name);
        }
    }
    allowed.join(", ")
}
