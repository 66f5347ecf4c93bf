//! This server as a witness of other people's logs, by C2SP `tlog-witness`. A request
//! needs no key of ours: it carries the signature of a log the operator named, and what
//! is cosigned only ever grows.

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use model::limits;
use model::record::witness::{WitnessRefusal, WitnessRequest};

use crate::protocol::door::Door;

/// Where heads are shown to this witness.
pub const PATH: &str = "/witness/add-checkpoint";

/// The type of an answer that is only a size.
const SIZE: &str = "text/x.tlog.size";

/// The route of the witness.
pub(super) fn routes(door: Door) -> Router {
    Router::new()
        .route(PATH, post(add))
        .layer(DefaultBodyLimit::max(limits::NOTE_BYTES_MAX))
        .with_state(door)
}

async fn add(State(door): State<Door>, body: String) -> Response {
    let request: WitnessRequest = match body.parse() {
        Ok(request) => request,
        Err(refusal) => return refused(refusal),
    };
    let answered = tokio::task::spawn_blocking(move || door.engine().witness(&request));
    match answered.await {
        Ok(Ok(Ok(signature))) => format!("{signature}\n").into_response(),
        Ok(Ok(Err(refusal))) => refused(refusal),
        // Without a signature: a witness that forgets what it signed would sign a fork
        // later.
        Ok(Err(_)) | Err(_) => {
            let message = "the witness cannot remember the checkpoint now\n";
            (StatusCode::SERVICE_UNAVAILABLE, message).into_response()
        }
    }
}

fn refused(refusal: WitnessRefusal) -> Response {
    let status = match refusal {
        WitnessRefusal::Malformed => StatusCode::BAD_REQUEST,
        WitnessRefusal::UnknownLog => StatusCode::NOT_FOUND,
        WitnessRefusal::Signature => StatusCode::FORBIDDEN,
        WitnessRefusal::Fork => StatusCode::UNPROCESSABLE_ENTITY,
        WitnessRefusal::Conflict(size) => {
            let headers = [(CONTENT_TYPE, SIZE)];
            return (StatusCode::CONFLICT, headers, format!("{size}\n")).into_response();
        }
    };
    (status, format!("{refusal}\n")).into_response()
}
