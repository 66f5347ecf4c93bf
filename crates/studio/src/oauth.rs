//! Signing in with an issuer's account. The page asks where to go, the browser goes there
//! and comes back with a code, and gets a session like any other.
//!
//! The cookie of the session is `SameSite=Strict`, so that no other site ever uses it. The
//! one that binds an issuer's answer to this browser cannot be: the answer comes by a link
//! from another site. It is sent to one path, for ten minutes, and opens nothing.

use axum::Json;
use axum::body::Body;
use axum::http::header::{COOKIE, HeaderValue, LOCATION, ORIGIN, SET_COOKIE, USER_AGENT};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use engine::limit as engine_limit;
use engine::people::SessionPlace;
use engine::person_login::{LoginFault, LoginReturn};
use model::govern::key::{self, Secret};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use crate::error::{ApiError, ApiResult};
use crate::request::Asked;
use crate::route::CALLBACK;
use crate::session;
use crate::studio::Studio;

/// What the name of the cookie ends in.
const SUFFIX: &str = "_login";

/// Where the browser goes to sign in.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LoginPage {
    url: String,
}

/// Begins a sign-in.
pub(crate) async fn begin(studio: Studio, asked: Asked) -> ApiResult<Response> {
    // First, because the cookie below would not come back at another name of this host.
    check_address(&studio, &asked.headers)?;
    let login = &studio.inner.login;
    let begun = login.begin(studio.engine(), &back(&studio)).await;
    let begun = begun.map_err(|fault| refused(&studio, &fault))?;
    let mut response = Json(LoginPage { url: begun.url }).into_response();
    let seconds = engine_limit::LOGIN_MINUTES_MAX * 60;
    set_cookie(&mut response, &studio, begun.secret.reveal(), seconds);
    Ok(response)
}

/// The browser comes back. Whatever happens, it is sent to our own page and nowhere else,
/// with a word for what went wrong and nothing of what it brought.
pub(crate) async fn finish(studio: Studio, asked: Asked) -> ApiResult<Response> {
    let began = Instant::now();
    let (place, cookie) = match attempt(&studio, &asked, began).await {
        Ok((secret, seconds)) => {
            studio.inner.tries.forgive(began);
            let cookie = studio.set_cookie(Some(secret.reveal()), seconds);
            ("/".to_owned(), cookie)
        }
        // A word from a fixed list. What the issuer sent is never part of the address.
        Err(code) => (format!("/#/sign-in/{code}"), None),
    };
    let mut response = Response::new(Body::empty());
    // See other: the browser must not send the code a second time.
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(place) = HeaderValue::from_str(&place) {
        response.headers_mut().insert(LOCATION, place);
    }
    // Used or not, the sign-in is over.
    set_cookie(&mut response, &studio, "", 0);
    if let Some(cookie) = cookie {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}

async fn attempt(
    studio: &Studio,
    asked: &Asked,
    began: Instant,
) -> Result<(Secret, i64), &'static str> {
    let login = &studio.inner.login;
    let secret = secret(studio, &asked.headers);
    let word = |name: &str| asked.word(name).ok().flatten();
    // Before anything is asked of the issuer: without our cookie this is not the
    // browser that began.
    let begun = login.recognise(studio.engine(), secret, word("state"));
    let begun = begun.map_err(|fault| fault.code())?;
    // Each that this browser began makes us ask the issuer, so only so many are tried. Others
    // are not counted: any site can send a browser here.
    if studio.inner.tries.begin(began).is_err() {
        return Err("refused");
    }
    let given = LoginReturn {
        raw_code: word("code"),
        raw_issuer: word("iss"),
        raw_error: word("error"),
    };
    let browser = asked.headers.get(USER_AGENT);
    let place = SessionPlace {
        address: studio.address(),
        raw_browser: browser.and_then(|value| value.to_str().ok()).unwrap_or(""),
    };
    let back = back(studio);
    let done = login.finish(studio.engine(), (&begun, given), &back, place);
    let (secret, opened) = done.await.map_err(|fault| {
        say(studio, &fault);
        fault.code()
    })?;
    session::end_others(studio, &asked.headers, &opened).map_err(|_| "server")?;
    let seconds = opened.expires_ms.saturating_sub(opened.started_ms) / 1_000;
    Ok((secret, seconds))
}

/// Our own address at which an issuer's answer is taken.
fn back(studio: &Studio) -> String {
    format!("{}{CALLBACK}", studio.address())
}

/// The answer comes to one address, and a cookie of another host name is not sent there.
fn check_address(studio: &Studio, headers: &HeaderMap) -> ApiResult<()> {
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    match origin == Some(studio.address()) {
        true => Ok(()),
        false => Err(ApiError::invalid(format!(
            "open the Studio at {}/ to sign in with an account",
            studio.address()
        ))),
    }
}

fn secret(studio: &Studio, headers: &HeaderMap) -> Option<Secret> {
    let name = format!("{}{SUFFIX}", studio.inner.cookie);
    let lines = headers.get_all(COOKIE).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';'));
    let pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
    let mut ours = pairs.filter(|(known, _)| *known == name);
    // Attack: a program at another port sets a second one, with a sign-in of its own.
    match (ours.next(), ours.next()) {
        (Some((_, value)), None) => key::read_session_secret(value),
        (None, _) | (Some(_), Some(_)) => None,
    }
}

fn set_cookie(response: &mut Response, studio: &Studio, value: &str, seconds: i64) {
    let is_sealed = studio.address().starts_with("https://");
    let secure = if is_sealed { "; Secure" } else { "" };
    let name = &studio.inner.cookie;
    let text = format!(
        "{name}{SUFFIX}={value}; Path={CALLBACK}; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}"
    );
    if let Ok(mut header) = HeaderValue::from_str(&text) {
        // So that no log of the HTTP library shows it.
        header.set_sensitive(true);
        response.headers_mut().append(SET_COOKIE, header);
    }
}

fn refused(studio: &Studio, fault: &LoginFault) -> ApiError {
    say(studio, fault);
    let sentences = LoginFault::SENTENCES.iter();
    let mut words = sentences.filter(|(code, _)| *code == fault.code());
    let words = words.next().map_or("", |(_, words)| *words);
    ApiError::unavailable(words)
}

/// The operator is told why, except of what anyone can cause by typing an address.
fn say(studio: &Studio, fault: &LoginFault) {
    match fault {
        LoginFault::Off | LoginFault::State => {}
        LoginFault::Issuer(_)
        | LoginFault::Refused(_)
        | LoginFault::Token(_)
        | LoginFault::Role(_)
        | LoginFault::Server(_) => {
            let engine = studio.engine();
            engine.alarm(&format!("a sign-in at the Studio failed: {fault}"));
        }
    }
}
