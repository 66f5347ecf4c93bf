//! One route: who may use it, what it takes and answers, its front door, then its work.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts as _, RawPathParams, Request};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use model::govern::person::PersonRole;
use model::word::Word as _;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::error::{ApiError, ApiResult};
use crate::request::{Asked, query};
use crate::studio::Studio;
use crate::{limit, session};

/// Where the API is.
pub(crate) const API: &str = "/api/v1/";
/// Where an issuer sends people back to.
pub(crate) const CALLBACK: &str = "/api/v1/session/oauth/callback";

/// What a request must come with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: signing in, and what says how.
    Nothing,
    /// The session of a person with at least this role.
    Role(PersonRole),
}

pub(crate) const VIEW: Needs = Needs::Role(PersonRole::Viewer);
pub(crate) const ANSWER: Needs = Needs::Role(PersonRole::Approver);
pub(crate) const CHANGE: Needs = Needs::Role(PersonRole::Owner);

/// The schema of a type.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

type Working = Pin<Box<dyn Future<Output = ApiResult<Response>> + Send>>;
type Work = Arc<dyn Fn(Studio, Asked) -> Working + Send + Sync>;

/// One route.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
    /// What it does, in one line.
    pub(crate) about: &'static str,
    /// The parameters of its query.
    pub(crate) query: &'static [&'static str],
    /// Whether other parameters are ignored, in place of a refusal.
    ignores_unknown: bool,
    /// What its body is.
    pub(crate) body: Option<SchemaOf>,
    /// What it answers; nothing if that is no JSON.
    pub(crate) answer: Option<SchemaOf>,
    work: Work,
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Route {
    /// A route that reads.
    pub(crate) fn get<T: Serialize + JsonSchema + 'static>(
        path: &'static str,
        needs: Needs,
        about: &'static str,
        query: &'static [&'static str],
        read: fn(&Studio, &Asked) -> ApiResult<T>,
    ) -> Route {
        let work = blocking(move |studio, asked| json(&read(studio, asked)?));
        Route {
            method: Method::GET,
            path,
            needs,
            about,
            query,
            ignores_unknown: false,
            body: None,
            answer: None,
            work,
        }
        .named::<T>()
    }

    /// A route that changes something, or asks with a body.
    pub(crate) fn send<B, T>(
        method: Method,
        path: &'static str,
        needs: Needs,
        about: &'static str,
        act: fn(&Studio, &Asked, B) -> ApiResult<T>,
    ) -> Route
    where
        B: DeserializeOwned + JsonSchema + 'static,
        T: Serialize + JsonSchema + 'static,
    {
        let work = blocking(move |studio, asked| json(&act(studio, asked, asked.read()?)?));
        Route {
            method,
            path,
            needs,
            about,
            query: &[],
            ignores_unknown: false,
            body: Some(subschema::<B>),
            answer: None,
            work,
        }
        .named::<T>()
    }

    /// The same where something is awaited.
    pub(crate) fn send_later<B, T, F>(
        method: Method,
        path: &'static str,
        needs: Needs,
        about: &'static str,
        act: fn(Studio, Asked, B) -> F,
    ) -> Route
    where
        B: DeserializeOwned + JsonSchema + 'static,
        T: Serialize + JsonSchema + 'static,
        F: Future<Output = ApiResult<T>> + Send + 'static,
    {
        let work: Work = Arc::new(move |studio, asked| {
            Box::pin(async move {
                let body = asked.read()?;
                json(&act(studio, asked, body).await?)
            })
        });
        Route {
            method,
            path,
            needs,
            about,
            query: &[],
            ignores_unknown: false,
            body: Some(subschema::<B>),
            answer: None,
            work,
        }
        .named::<T>()
    }

    /// A route that reads, where something is awaited.
    pub(crate) fn get_later<T, F>(
        path: &'static str,
        needs: Needs,
        about: &'static str,
        query: &'static [&'static str],
        read: fn(Studio, Asked) -> F,
    ) -> Route
    where
        T: Serialize + JsonSchema + 'static,
        F: Future<Output = ApiResult<T>> + Send + 'static,
    {
        let work: Work = Arc::new(move |studio, asked| {
            Box::pin(async move { json(&read(studio, asked).await?) })
        });
        Route {
            method: Method::GET,
            path,
            needs,
            about,
            query,
            ignores_unknown: false,
            body: None,
            answer: None,
            work,
        }
        .named::<T>()
    }

    /// A route whose answer is more than JSON, or has headers of its own.
    pub(crate) fn raw<F>(
        method: Method,
        path: &'static str,
        needs: Needs,
        about: &'static str,
        query: &'static [&'static str],
        act: fn(Studio, Asked) -> F,
    ) -> Route
    where
        F: Future<Output = ApiResult<Response>> + Send + 'static,
    {
        let work: Work = Arc::new(move |studio, asked| Box::pin(act(studio, asked)));
        Route {
            method,
            path,
            needs,
            about,
            query,
            ignores_unknown: false,
            body: None,
            answer: None,
            work,
        }
    }

    fn named<T: JsonSchema>(mut self) -> Route {
        self.answer = Some(subschema::<T>);
        self
    }

    /// The same, with what its body is.
    pub(crate) fn taking<B: JsonSchema>(mut self) -> Route {
        self.body = Some(subschema::<B>);
        self
    }

    /// The same, with what it answers.
    pub(crate) fn answering<T: JsonSchema>(self) -> Route {
        self.named::<T>()
    }

    /// The same, but with parameters of the query that it does not know: issuers add some.
    pub(crate) fn ignoring_unknown(mut self) -> Route {
        self.ignores_unknown = true;
        self
    }

    fn changes(&self) -> bool {
        self.method != Method::GET
    }
}

fn subschema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Work that waits for the disk or computes, on a thread that may.
fn blocking(work: impl Fn(&Studio, &Asked) -> ApiResult<Response> + Send + Sync + 'static) -> Work {
    let work = Arc::new(work);
    Arc::new(move |studio, asked| {
        let work = Arc::clone(&work);
        Box::pin(on_disk(move || work(&studio, &asked)))
    })
}

/// Does work that waits for the disk, on a thread that may.
pub(crate) async fn on_disk(
    work: impl FnOnce() -> ApiResult<Response> + Send + 'static,
) -> ApiResult<Response> {
    let done = tokio::task::spawn_blocking(work).await;
    // A panic on that thread. The page learns that it failed, the operator sees why
    // on standard error.
    done.unwrap_or_else(|_| Err(ApiError::unavailable("the server could not do that")))
}

pub(crate) fn json(value: &impl Serialize) -> ApiResult<Response> {
    let bytes = serde_json::to_vec(value);
    let bytes = bytes.map_err(|_| ApiError::unavailable("the answer cannot be written"))?;
    let mut response = Response::new(Body::from(bytes));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

/// The front door of a route, then its work.
pub(crate) async fn respond(
    route: &Route,
    studio: Studio,
    request: Request,
) -> ApiResult<Response> {
    // Not waited for: a queue of requests would grow where an answer helps more.
    let place = Arc::clone(&studio.inner.work).try_acquire_owned();
    let _place = place.map_err(|_| ApiError::unavailable("too many requests at one time"))?;
    let (mut parts, body) = request.into_parts();
    let path = RawPathParams::from_request_parts(&mut parts, &()).await;
    let path = path.map_err(|_| ApiError::request("the address is not spelt as addresses are"))?;
    let path = path
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut asked = Asked {
        session: None,
        path: path.collect(),
        query: BTreeMap::new(),
        headers: parts.headers,
        body: Default::default(),
    };
    let bytes_max = match route.needs {
        // Before a session is known, only as much as a code needs is read.
        Needs::Nothing => limit::SIGN_IN_BYTES_MAX,
        Needs::Role(role) => {
            let (of, headers) = (studio.clone(), asked.headers.clone());
            let found = tokio::task::spawn_blocking(move || session::find(&of, &headers)).await;
            let found = found.unwrap_or_else(|_| Err(ApiError::session()))?;
            // The role first, then the header: a viewer with a sound page
            // learns what is missing.
            if found.1.person.role < role {
                return Err(ApiError::role(role.word()));
            }
            // For every change, whatever the route: no handler can forget it.
            if route.changes() {
                session::check_csrf(&found.0, &asked.headers)?;
            }
            asked.session = Some(found);
            limit::BODY_BYTES_MAX
        }
    };
    // After the session, so that a stranger is not told which parameters exist.
    asked.query = query(parts.uri.query(), route.query, route.ignores_unknown)?;
    if route.changes() {
        check_content_type(&asked.headers)?;
        // Attack: a body that comes one byte at a time.
        let bound = Duration::from_secs(limit::BODY_SECONDS_MAX);
        let read = timeout(bound, to_bytes(body, bytes_max)).await;
        asked.body = read
            .map_err(|_| ApiError::request("the body took too long"))?
            .map_err(|_| ApiError::too_large())?;
    }
    (route.work)(studio, asked).await
}

/// Attack: a form of another site sends one of three types without asking first. None of
/// them is this one.
fn check_content_type(headers: &HeaderMap) -> ApiResult<()> {
    let mut given = headers.get_all(CONTENT_TYPE).iter();
    let (Some(one), None) = (given.next(), given.next()) else {
        return Err(ApiError::content_type());
    };
    let one = one.to_str().unwrap_or("").to_ascii_lowercase();
    let mut parts = one.split(';').map(str::trim);
    let is_json = parts.next() == Some("application/json");
    // Other parameters could mean another charset, and so another text.
    let is_plain = parts.all(|part| part == "charset=utf-8");
    match is_json && is_plain {
        true => Ok(()),
        false => Err(ApiError::content_type()),
    }
}
