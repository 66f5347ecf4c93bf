//! A no of the gate: why, in one sentence, and what the client may do about it.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use model::reason::Reason;
use serde_json::json;

/// JSON-RPC's code for an error of the server's own making.
const RPC_CODE: i32 = -32_000;

/// A no of the gate. It holds nothing the client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// Why, for a person, and what helps.
    pub sentence: String,
    /// How long to wait.
    pub wait: Option<Duration>,
    /// What kind of token would do.
    pub challenge: Option<String>,
}

impl Refusal {
    /// A no.
    #[must_use]
    pub fn new(reason: Reason, sentence: impl Into<String>) -> Refusal {
        Refusal {
            reason,
            sentence: sentence.into(),
            wait: None,
            challenge: None,
        }
    }

    /// A no until some time has passed.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Refusal {
        self.wait = Some(wait);
        self
    }

    /// A no until another token is shown.
    #[must_use]
    pub fn challenged(mut self, challenge: String) -> Refusal {
        self.challenge = Some(challenge);
        self
    }

    /// The status of the answer.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self.reason {
            Reason::GateToken => StatusCode::UNAUTHORIZED,
            Reason::GateRequest => StatusCode::BAD_REQUEST,
            Reason::GateSession => StatusCode::NOT_FOUND,
            Reason::GateAddressLimit | Reason::GateCallerLimit | Reason::GateSessionLimit => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Reason::GateUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            // Host, origin, role, scope; and whatever else is a no.
            _ => StatusCode::FORBIDDEN,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": {
                "code": RPC_CODE,
                "message": self.sentence,
                "data": { "reason": self.reason.code() },
            },
        });
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(wait) = self.wait {
            // Rounded up: who waits as told must be let in.
            let seconds = wait.as_secs().saturating_add(1);
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        let challenge = self.challenge.as_deref().map(HeaderValue::from_str);
        if let Some(Ok(challenge)) = challenge {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
