//! The inbox over HTTP, for operators: what waits, and yes or no.
//!
//! `GET /api/v1/approvals` (`?which=pending|live|all`), `GET /api/v1/approvals/{id}`,
//! `POST /api/v1/approvals/{id}` with `{"answer": "approve"|"deny", "scope"?, "note"?}`.
//!
//! Invariant 7: a request counts only if the gate put an [`Operator`] on it. An
//! agent's key makes none, so nothing an agent sends is more than a 403 here.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use engine::Engine;
use engine::approve::{AnswerFault, Decision, Inbox, Listing};
use model::caller::Caller;
use serde::Serialize;
use serde_json::json;

/// Where the inbox is.
pub const PATH: &str = "/api/v1/approvals";

/// Bytes of one decision.
const DECISION_BYTES_MAX: usize = 16 * 1024;

/// Characters of an id.
const ID_CHARS: usize = 32;

/// Someone who may answer questions, as the gate knows them.
#[derive(Clone, Debug)]
pub struct Operator(pub Caller);

/// The routes; behind the gate.
pub fn routes(engine: Arc<Engine>) -> Router {
    Router::new()
        .route(PATH, get(list))
        .route(&format!("{PATH}/{{id}}"), get(show).post(decide))
        .layer(DefaultBodyLimit::max(DECISION_BYTES_MAX))
        .with_state(engine)
}

async fn list(
    State(engine): State<Arc<Engine>>,
    operator: Option<Extension<Operator>>,
    RawQuery(query): RawQuery,
) -> Response {
    if operator.is_none() {
        return not_an_operator();
    }
    let listing = match query.as_deref() {
        None | Some("" | "which=pending") => Listing::Pending,
        Some("which=live") => Listing::Live,
        Some("which=all") => Listing::All,
        Some(_) => {
            let message = "the only question here is `which=pending`, `which=live` or `which=all`";
            return refusal(StatusCode::BAD_REQUEST, message);
        }
    };
    on_disk(engine, move |inbox| Ok(inbox.list(listing)?)).await
}

async fn show(
    State(engine): State<Arc<Engine>>,
    operator: Option<Extension<Operator>>,
    Path(id): Path<String>,
) -> Response {
    if operator.is_none() {
        return not_an_operator();
    }
    on_disk(engine, move |inbox| {
        whole(&id).and_then(|id| inbox.find(id))
    })
    .await
}

async fn decide(
    State(engine): State<Arc<Engine>>,
    operator: Option<Extension<Operator>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(Extension(Operator(by))) = operator else {
        return not_an_operator();
    };
    // A form of another site cannot say this without asking the browser first.
    if !is_json(&headers) {
        let message = "the answer must be `application/json`";
        return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
    }
    let decision: Decision = match serde_json::from_slice(&body) {
        Ok(decision) => decision,
        Err(fault) => {
            let message = format!("that is no answer: {fault}");
            return refusal(StatusCode::BAD_REQUEST, &message);
        }
    };
    on_disk(engine, move |inbox| {
        whole(&id).and_then(|id| inbox.decide(id, &by, &decision))
    })
    .await
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// A program names a question whole; beginnings are for people.
fn whole(id: &str) -> Result<&str, AnswerFault> {
    let is_whole = id.len() == ID_CHARS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_whole.then_some(id).ok_or(AnswerFault::Unknown)
}

/// Work on the database waits for the disk, and so on a thread that may.
async fn on_disk<T: Serialize + Send + 'static>(
    engine: Arc<Engine>,
    work: impl FnOnce(Inbox<'_>) -> Result<T, AnswerFault> + Send + 'static,
) -> Response {
    let done = tokio::task::spawn_blocking(move || work(engine.approvals())).await;
    match done {
        Ok(Ok(answer)) => Json(answer).into_response(),
        Ok(Err(fault)) => refusal(status(&fault), &words(&fault)),
        Err(_) => refusal(StatusCode::INTERNAL_SERVER_ERROR, "the inbox failed"),
    }
}

fn status(fault: &AnswerFault) -> StatusCode {
    match fault {
        AnswerFault::Unknown | AnswerFault::NotYours | AnswerFault::Several(_) => {
            StatusCode::NOT_FOUND
        }
        AnswerFault::Answered(_) | AnswerFault::NotApproved(_) => StatusCode::CONFLICT,
        AnswerFault::Expired => StatusCode::GONE,
        AnswerFault::TooWide { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        AnswerFault::Separate => StatusCode::FORBIDDEN,
        AnswerFault::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// What goes wrong with the disk is for the operator of the machine alone.
fn words(fault: &AnswerFault) -> String {
    match fault {
        AnswerFault::Store(_) => "the approvals cannot be read or written now".to_owned(),
        other => other.to_string(),
    }
}

fn not_an_operator() -> Response {
    refusal(
        StatusCode::FORBIDDEN,
        "only an operator's key opens the inbox; make one with `ringfence keys`",
    )
}

fn refusal(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({"error": {"message": message}}))).into_response()
}
