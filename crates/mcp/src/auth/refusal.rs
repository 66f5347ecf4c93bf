//! A refused request: why, in one sentence, and what the client may do about it.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use model::reason::Reason;
use serde_json::json;

use crate::jsonrpc;

/// Why an answer is a refusal. It goes along as an extension, so that the outermost
/// layer counts refusals of all layers, and can show a person a page.
#[derive(Clone, Debug)]
pub(crate) struct RefusedWith {
    pub(crate) reason: Reason,
    pub(crate) sentence: String,
}

/// A refused request. It holds nothing the client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthRefusal {
    /// Why.
    pub reason: Reason,
    /// Why, for a person, and what helps.
    pub sentence: String,
    /// How long to wait.
    pub wait: Option<Duration>,
    /// The challenge that names the token needed.
    pub challenge: Option<String>,
}

impl AuthRefusal {
    /// Refuses for good.
    #[must_use]
    pub fn new(reason: Reason, sentence: impl Into<String>) -> AuthRefusal {
        AuthRefusal {
            reason,
            sentence: sentence.into(),
            wait: None,
            challenge: None,
        }
    }

    /// Refuses until some time has passed.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> AuthRefusal {
        self.wait = Some(wait);
        self
    }

    /// Refuses until another token is shown.
    #[must_use]
    pub fn challenged(mut self, challenge: String) -> AuthRefusal {
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
            // Host, origin, role, scope, and every other refusal.
            _ => StatusCode::FORBIDDEN,
        }
    }
}

impl IntoResponse for AuthRefusal {
    fn into_response(self) -> Response {
        let code = match self.reason {
            Reason::GateSession => jsonrpc::NO_SESSION,
            _ => jsonrpc::TRANSPORT,
        };
        let body = json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": {
                "code": code,
                "message": self.sentence,
                "data": { "reason": self.reason.code() },
            },
        });
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.status();
        response.extensions_mut().insert(RefusedWith {
            reason: self.reason,
            sentence: self.sentence,
        });
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // What is gone now may be back at once: the store is asked again every second.
        let is_outage = self.reason == Reason::GateUnavailable;
        if let Some(wait) = self.wait.or(is_outage.then_some(Duration::ZERO)) {
            // Rounded up: a client that waits as told must be let in.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_told_when_to_come_back() {
        let wait = |refusal: AuthRefusal| {
            let response = refusal.into_response();
            let wait = response.headers().get(RETRY_AFTER);
            wait.map(|wait| wait.to_str().expect("digits").to_owned())
        };
        let gone = AuthRefusal::new(Reason::GateUnavailable, "gone");
        assert_eq!(wait(gone).as_deref(), Some("1"));
        let many = AuthRefusal::new(Reason::GateCallerLimit, "many");
        let many = many.after(Duration::from_secs(4));
        assert_eq!(wait(many).as_deref(), Some("5"));
        assert_eq!(wait(AuthRefusal::new(Reason::GateToken, "no")), None);
    }
}
