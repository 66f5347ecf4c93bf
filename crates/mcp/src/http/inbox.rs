//! The inbox over HTTP, for operators: see the questions that wait and answer them.
//! Only holders of an operator's key get here.

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use engine::approve::{AnswerFault, ApprovalDecision, Listed, Listing};
use serde_json::json;

use crate::auth::Principal;
use crate::protocol::door::Door;

/// Its address.
pub const PATH: &str = "/api/v1/approvals";

/// The routes. Put [`crate::auth::operators`] around them.
pub(super) fn routes(door: Door) -> Router {
    Router::new()
        .route(PATH, get(list))
        .route("/api/v1/approvals/{id}", get(show).post(decide))
        .route("/api/v1/approvals/{id}/revoke", post(revoke))
        .with_state(door)
}

/// Open questions; with `?all=true` also answered ones.
async fn list(State(door): State<Door>, RawQuery(query): RawQuery) -> Response {
    let listing = match query.as_deref() {
        None | Some("" | "all=false") => Listing::Pending,
        Some("all=true") => Listing::All,
        Some(_) => {
            return told(StatusCode::BAD_REQUEST, "the only query is `all=true`");
        }
    };
    let found = on_thread(door, move |door| {
        let inbox = door.engine().approvals();
        inbox.list(listing).map_err(AnswerFault::from)
    });
    match found.await {
        Ok(found) => Json(found).into_response(),
        Err(fault) => refused(&fault),
    }
}

async fn show(State(door): State<Door>, Path(id): Path<String>) -> Response {
    let found = on_thread(door, move |door| door.engine().approvals().find(&id));
    answered(found.await)
}

/// `{"answer": "approve" | "deny", "scope"?: …, "note"?: …}`.
async fn decide(
    State(door): State<Door>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    decision: Result<Json<ApprovalDecision>, JsonRejection>,
) -> Response {
    let decision = match decision {
        Ok(Json(decision)) => decision,
        Err(rejection) => return told(rejection.status(), &rejection.body_text()),
    };
    let by = principal.caller;
    let decided = on_thread(door, move |door| {
        door.engine().approvals().decide(&id, &by, &decision)
    });
    answered(decided.await)
}

async fn revoke(
    State(door): State<Door>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Response {
    let by = principal.caller;
    let revoked = on_thread(door, move |door| door.engine().approvals().revoke(&id, &by));
    answered(revoked.await)
}

/// Store access waits for the disk, so it runs on a blocking thread.
async fn on_thread<T: Send + 'static>(
    door: Door,
    work: impl FnOnce(&Door) -> Result<T, AnswerFault> + Send + 'static,
) -> Result<T, AnswerFault> {
    let done = tokio::task::spawn_blocking(move || work(&door)).await;
    done.unwrap_or(Err(AnswerFault::Unknown))
}

fn answered(found: Result<Listed, AnswerFault>) -> Response {
    match found {
        Ok(listed) => Json(listed).into_response(),
        Err(fault) => refused(&fault),
    }
}

fn refused(fault: &AnswerFault) -> Response {
    let status = match fault {
        AnswerFault::Unknown | AnswerFault::NotYours => StatusCode::NOT_FOUND,
        AnswerFault::Several(_)
        | AnswerFault::TooWide { .. }
        | AnswerFault::Refused(_)
        | AnswerFault::Masked => StatusCode::BAD_REQUEST,
        AnswerFault::Answered(_)
        | AnswerFault::NotApproved(_)
        | AnswerFault::Expired
        | AnswerFault::TrustChanged => StatusCode::CONFLICT,
        AnswerFault::Separate | AnswerFault::NotByClient | AnswerFault::NotByCommand => {
            StatusCode::FORBIDDEN
        }
        AnswerFault::Store(_) => {
            // The details are in the operator's log.
            return told(
                StatusCode::SERVICE_UNAVAILABLE,
                "the inbox cannot be read just now",
            );
        }
    };
    told(status, &fault.to_string())
}

fn told(status: StatusCode, sentence: &str) -> Response {
    (status, Json(json!({"error": {"message": sentence}}))).into_response()
}
