//! Health and readiness for load balancers, and metrics.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

use crate::auth::Auth;
use crate::metrics::{self, Metrics};
use crate::protocol::door::Door;

/// Milliseconds the sandbox may take to say that it is up.
const POOL_MS_MAX: u64 = 2_000;

/// The process answers.
pub(super) async fn alive() -> Response {
    Json(json!({"status": "alive"})).into_response()
}

/// A call could run now.
pub(super) async fn ready(State(door): State<Door>) -> Response {
    match unready(&door).await {
        None => Json(json!({"status": "ready"})).into_response(),
        Some(why) => {
            let body = Json(json!({"status": "not ready", "reason": why}));
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
}

pub(super) async fn metrics(
    State((metrics, auth, door)): State<(Metrics, Arc<Auth>, Door)>,
) -> Response {
    // Counting open questions reads the database, which can block.
    let load = tokio::task::spawn_blocking(move || door.engine().load()).await;
    let text = metrics.text(&auth.refused(), load.ok().as_ref());
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
}

/// The first obstacle to a call, without details: a probe is not authenticated, and the
/// operator has them in the log.
async fn unready(door: &Door) -> Option<&'static str> {
    if door.inner.closing.is_cancelled() {
        return Some("the server is ending");
    }
    let bound = Duration::from_millis(POOL_MS_MAX);
    door.engine().ready(bound).await.err()
}
