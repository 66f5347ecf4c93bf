//! Which requests are looked at, and the headers of every answer, a refusal included.
//!
//! Attack: a page of another site, or of another port of this host, that has the person's
//! browser send requests here with their cookie; a page whose own name suddenly leads to
//! this machine; a frame around the page. The browser says where a request comes from in
//! headers that no page can change, and they are read strictly.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;

use crate::error::{ApiError, ApiResult};
use crate::limit;
use crate::route::{API, CALLBACK};
use crate::studio::Studio;

/// What a page of ours may do: load our own files, talk to this server, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(HeaderName, &str); 8] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-embedder-policy"),
        "require-corp",
    ),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Puts the checks around routes.
pub(crate) fn around(router: Router, studio: &Studio) -> Router {
    router.layer(from_fn_with_state(studio.clone(), guard))
}

async fn guard(State(studio): State<Studio>, request: Request, next: Next) -> Response {
    let mut response = match check(&studio, &request) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into(),
    };
    // Also over what a handler set: no route may loosen the policy.
    let into = response.headers_mut();
    for (name, value) in HEADERS {
        into.insert(name, HeaderValue::from_static(value));
    }
    // What a person sees here is not for a disk.
    into.entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

fn check(studio: &Studio, request: &Request) -> ApiResult<()> {
    let addresses = &studio.inner.settings.addresses;
    let headers = request.headers();
    if request.uri().to_string().len() > limit::ADDRESS_CHARS_MAX {
        return Err(ApiError::too_large());
    }
    let hosts = all(headers, &HOST);
    let mut names = hosts.clone();
    // A full address in the first line is a second place for the name.
    if let Some(authority) = request.uri().authority() {
        names.push(authority.as_str().as_bytes());
    }
    // Attack: DNS rebinding. A page whose name leads here still sends its own name. Two
    // `Host` lines would let two readers see two names.
    if hosts.len() != 1 || !addresses.host_is_ours(&names) {
        return Err(ApiError::host());
    }
    // Before the cookie is read: over plain HTTP from elsewhere it could be
    // copied on the way.
    if !addresses.is_private_way(&hosts) {
        return Err(ApiError::insecure());
    }
    let origins = all(headers, &ORIGIN);
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let is_own = addresses.is_own_page(&hosts, &origins);
    // A change must say where it comes from. A read may leave it out, as browsers do for
    // plain links.
    if (changes || !origins.is_empty()) && !is_own {
        return Err(ApiError::origin());
    }
    check_site(headers, request.method(), request.uri().path())
}

/// What the browser says about the page that asks. Programs that are no browser say
/// nothing, and have no cookie that they were not given.
fn check_site(headers: &HeaderMap, method: &Method, path: &str) -> ApiResult<()> {
    let sites = all(headers, &FETCH_SITE);
    let is_data = path.starts_with(API) && path != CALLBACK;
    // Exactly once, so that a second header cannot add a harmless word.
    let navigates = all(headers, &FETCH_MODE) == [b"navigate".as_slice()];
    match sites.as_slice() {
        [] | [b"same-origin"] => Ok(()),
        // Typed or from a bookmark.
        [b"none"] if *method == Method::GET => Ok(()),
        // A link elsewhere may open the page, which holds nothing, and an issuer sends
        // people back. Neither reads anything.
        [b"cross-site" | b"same-site"] if *method == Method::GET && !is_data && navigates => Ok(()),
        // Fails closed: a value that a later browser invents is not one of ours.
        _ => Err(ApiError::origin()),
    }
}

fn all<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Vec<&'a [u8]> {
    let values = headers.get_all(name).iter();
    values.map(HeaderValue::as_bytes).collect()
}
