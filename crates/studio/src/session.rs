//! Signing in and out, and whose request it is.

use axum::Json;
use axum::http::HeaderMap;
use axum::http::header::{COOKIE, SET_COOKIE, USER_AGENT};
use axum::response::{IntoResponse as _, Response};
use engine::people::{OpenSession, SessionPlace, SignInFault};
use engine::person_login::LoginFault;
use model::govern::key::{self, Secret};
use model::govern::person::PersonRole;
use model::word::Word as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

use crate::error::{ApiError, ApiResult};
use crate::request::Asked;
use crate::studio::Studio;

/// Cookies of our name that are looked at. Another port of this host can set some too.
const COOKIES_MAX: usize = 8;
/// The header that a page of ours sends with every change.
pub(crate) const CSRF_HEADER: &str = "x-ringfence-csrf";

/// The header's value for a session: a digest of its secret, which only the page that was
/// sent it over this origin knows.
pub(crate) fn csrf(secret: &Secret) -> String {
    let mut digest = Sha256::new();
    // Its own prefix, so that the digest in the page is not the one under which the store
    // keeps the session.
    digest.update(b"ringfence studio csrf\n");
    digest.update(secret.reveal().as_bytes());
    digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Whether a change comes from a page that has the session.
pub(crate) fn check_csrf(secret: &Secret, headers: &HeaderMap) -> ApiResult<()> {
    let mut given = headers.get_all(CSRF_HEADER).iter();
    // Exactly one: of two, the one that is read may be another's.
    let (Some(one), None) = (given.next(), given.next()) else {
        return Err(ApiError::csrf());
    };
    // In constant time, because the header can be tried again and again.
    match bool::from(one.as_bytes().ct_eq(csrf(secret).as_bytes())) {
        true => Ok(()),
        false => Err(ApiError::csrf()),
    }
}

/// The session a request comes with.
pub(crate) fn find(studio: &Studio, headers: &HeaderMap) -> ApiResult<(Secret, OpenSession)> {
    let people = studio.engine().people();
    // Another port of this host can set a cookie of this name. One that opens no session
    // must not hide ours.
    for secret in secrets(studio, headers) {
        let found = people.find(&secret, studio.address());
        let found = found.map_err(|fault| studio.alarm("sessions cannot be read", &fault))?;
        if let Some(session) = found {
            return Ok((secret, session));
        }
    }
    Err(ApiError::session())
}

fn secrets(studio: &Studio, headers: &HeaderMap) -> Vec<Secret> {
    let lines = headers.get_all(COOKIE).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';'));
    let ours = pairs.filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == studio.inner.cookie).then_some(value)
    });
    // Each costs a look at the store, and a browser sends as many as it was given.
    let ours = ours.take(COOKIES_MAX);
    ours.filter_map(key::read_session_secret).collect()
}

/// A session as its page sees it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionView {
    person: PersonView,
    csrf: String,
    started_at_ms: i64,
    expires_at_ms: i64,
    idle_seconds: i64,
    server: ServerFacts,
    can: Abilities,
    pages: Vec<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PersonView {
    name: String,
    role: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ServerFacts {
    version: &'static str,
    home: String,
    url: String,
    mcp_url: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Abilities {
    approve: bool,
    change: bool,
}

const PAGES: [&str; 12] = [
    "home",
    "inbox",
    "tools",
    "servers",
    "inspector",
    "audit",
    "policy",
    "callers",
    "numbers",
    "secrets",
    "connect",
    "health",
];

fn view(studio: &Studio, secret: &Secret, session: &OpenSession) -> SessionView {
    let role = session.person.role;
    SessionView {
        person: PersonView {
            name: session.person.name.clone(),
            role: role.word(),
        },
        csrf: csrf(secret),
        started_at_ms: session.started_ms,
        expires_at_ms: session.expires_ms,
        idle_seconds: studio.engine().people().idle_seconds(),
        server: ServerFacts {
            version: studio.inner.settings.version,
            home: studio.engine().home().display().to_string(),
            url: studio.address().to_owned(),
            mcp_url: studio.inner.settings.mcp_url.clone(),
        },
        can: Abilities {
            approve: role >= PersonRole::Approver,
            change: role >= PersonRole::Owner,
        },
        pages: PAGES.to_vec(),
    }
}

/// A code, as a person typed it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
    code: String,
}

/// Exchanges a code for a session. The cookie's value exists nowhere before this answer, so
/// a session that was planted in the browser beforehand is not the one that is opened.
pub(crate) fn sign_in(studio: &Studio, asked: &Asked, given: SignIn) -> ApiResult<Response> {
    let began = Instant::now();
    // Counted before the code is looked at, so that many tries at once are many.
    studio.inner.tries.begin(began).map_err(ApiError::rate)?;
    let browser = asked.headers.get(USER_AGENT);
    let browser = browser.and_then(|value| value.to_str().ok()).unwrap_or("");
    let people = studio.engine().people();
    let place = SessionPlace {
        address: studio.address(),
        raw_browser: browser,
    };
    let signed = people.sign_in(&given.code, place);
    let (secret, session) = signed.map_err(|fault| match fault {
        SignInFault::Code => ApiError::code(fault.to_string()),
        SignInFault::Random | SignInFault::Store(_) => {
            studio.alarm("no session could begin", &fault)
        }
    })?;
    // A right code was no guess; otherwise a busy team would lock itself out.
    studio.inner.tries.forgive(began);
    // Before the new cookie goes out: a stolen old session ends when its
    // owner signs in again.
    end_others(studio, &asked.headers, &session)?;
    let seconds = session.expires_ms.saturating_sub(session.started_ms) / 1_000;
    let view = Json(view(studio, &secret, &session)).into_response();
    Ok(with_cookie(view, studio, Some(secret.reveal()), seconds))
}

/// Ends what the browser was signed in as before.
pub(crate) fn end_others(
    studio: &Studio,
    headers: &HeaderMap,
    session: &OpenSession,
) -> ApiResult<()> {
    let people = studio.engine().people();
    for old in secrets(studio, headers) {
        let ended = people.sign_out(&old, &session.person);
        ended.map_err(|fault| studio.alarm("the old session could not be ended", &fault))?;
    }
    Ok(())
}

fn with_cookie(
    mut response: Response,
    studio: &Studio,
    secret: Option<&str>,
    seconds: i64,
) -> Response {
    if let Some(cookie) = studio.set_cookie(secret, seconds) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// Who is signed in, or how one does.
pub(crate) fn show(studio: &Studio, asked: &Asked) -> ApiResult<SessionView> {
    match find(studio, &asked.headers) {
        Ok((secret, session)) => Ok(view(studio, &secret, &session)),
        Err(error) => {
            // Told to those who are not signed in, so it says nothing about
            // people or sessions.
            let ways = json!({"signIn": {"code": true, "oauth": way(studio)}});
            Err(error.with_details(ways))
        }
    }
}

/// How people sign in with an account, for the page; nothing if they do not.
fn way(studio: &Studio) -> Value {
    let Some(issuer) = studio.engine().people().issuer() else {
        return Value::Null;
    };
    let host = issuer.split("://").nth(1).unwrap_or(&issuer);
    let host = host.split('/').next().unwrap_or(host);
    let problems = LoginFault::SENTENCES.iter();
    let problems: Map<_, _> = problems
        .map(|(code, words)| ((*code).to_owned(), json!(words)))
        .collect();
    json!({
        "name": format!("Sign in with {}", model::text::one_line(host)),
        "problems": problems,
    })
}

/// Ends this session.
pub(crate) fn sign_out(studio: &Studio, asked: &Asked) -> ApiResult<Response> {
    let (secret, session) = asked.session.as_ref().ok_or_else(ApiError::session)?;
    let ended = studio.engine().people().sign_out(secret, &session.person);
    ended.map_err(|fault| studio.alarm("the session could not be ended", &fault))?;
    // Streams of this session must end now, not at their next ping.
    studio.inner.events.recheck();
    let done = Json(json!({"ok": true})).into_response();
    Ok(with_cookie(done, studio, None, 0))
}

/// Sessions of all people.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionList {
    items: Vec<SessionRow>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SessionRow {
    id: String,
    person: String,
    role: &'static str,
    started_at_ms: i64,
    last_seen_at_ms: i64,
    expires_at_ms: i64,
    current: bool,
    browser: String,
}

pub(crate) fn list(studio: &Studio, asked: &Asked) -> ApiResult<SessionList> {
    let all = studio.engine().people().sessions();
    let all = all.map_err(|fault| studio.alarm("sessions cannot be read", &fault))?;
    let current = asked
        .session
        .as_ref()
        .map(|(_, session)| session.id.as_str());
    let row = |session: OpenSession| SessionRow {
        current: current == Some(session.id.as_str()),
        id: session.id,
        role: session.person.role.word(),
        person: session.person.name,
        started_at_ms: session.started_ms,
        last_seen_at_ms: session.seen_ms,
        expires_at_ms: session.expires_ms,
        browser: session.browser,
    };
    Ok(SessionList {
        items: all.into_iter().map(row).collect(),
    })
}

/// How many sessions ended.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EndedSessions {
    ended: usize,
}

/// Ends every session of every person, this one included.
pub(crate) fn sign_out_all(studio: &Studio, asked: &Asked) -> ApiResult<EndedSessions> {
    let ended = studio.engine().people().sign_out_all(asked.person()?);
    let ended = ended.map_err(|fault| studio.alarm("the sessions could not be ended", &fault))?;
    studio.inner.events.recheck();
    Ok(EndedSessions { ended })
}
