//! Who is at the door. Until the gate is there, everybody on this machine is the
//! same caller.

use axum::Router;
use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use model::caller::Caller;

use crate::http::Sessions;

/// Who was let in.
#[derive(Clone, Debug)]
pub struct Principal {
    /// The caller the engine knows.
    pub caller: Caller,
}

/// Puts the gate around a route.
pub fn guard(router: Router, _sessions: &Arc<Sessions>) -> Router {
    router.layer(middleware::from_fn(everybody))
}

/// Lets everybody in under one name.
async fn everybody(mut request: Request, next: Next) -> Response {
    let caller = Caller::named("local");
    request.extensions_mut().insert(Principal { caller });
    next.run(request).await
}
