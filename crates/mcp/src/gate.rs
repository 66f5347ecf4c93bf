//! Who is at the door. Until the gate is there, everybody on this machine is the
//! same caller.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use model::caller::Caller;

/// Who was let in.
#[derive(Clone, Debug)]
pub struct Principal {
    /// The caller the engine knows.
    pub caller: Caller,
}

/// Lets everybody in under one name.
pub async fn everybody(mut request: Request, next: Next) -> Response {
    let caller = Caller::named("local");
    request.extensions_mut().insert(Principal { caller });
    next.run(request).await
}
