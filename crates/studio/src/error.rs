//! What a page is told when something cannot be done: a status, a stable code and one
//! sentence. Why the server itself failed is the operator's, and goes to the alarm.

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// Why a request was not carried out.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    fix: Option<String>,
    details: Option<Box<Value>>,
    retry_seconds: Option<u64>,
}

/// The same as a page reads it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorBody {
    error: ErrorWords,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ErrorWords {
    code: String,
    message: String,
    fix: Option<String>,
    details: Option<Value>,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> ApiError {
        ApiError {
            status,
            code,
            message: message.into(),
            fix: None,
            details: None,
            retry_seconds: None,
        }
    }

    pub(crate) fn with_fix(mut self, fix: impl Into<String>) -> ApiError {
        self.fix = Some(fix.into());
        self
    }

    pub(crate) fn with_details(mut self, details: Value) -> ApiError {
        self.details = Some(Box::new(details));
        self
    }

    /// Not signed in, or no longer.
    pub(crate) fn session() -> ApiError {
        let message = "you are not signed in, or your session is over";
        ApiError::new(StatusCode::UNAUTHORIZED, "studio.session", message)
            .with_fix("`ringfence studio` prints a code to sign in with")
    }

    pub(crate) fn code(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::UNAUTHORIZED, "studio.code", message)
    }

    pub(crate) fn csrf() -> ApiError {
        let message = "the request does not carry the session's own header";
        ApiError::new(StatusCode::FORBIDDEN, "studio.csrf", message)
    }

    pub(crate) fn host() -> ApiError {
        let message = "this server is not known by that host name";
        ApiError::new(StatusCode::FORBIDDEN, "studio.host", message)
            .with_fix("its operator can list it in `serve.hosts`")
    }

    pub(crate) fn insecure() -> ApiError {
        let message = "the Studio is used on this machine, or at an address that begins with https";
        ApiError::new(StatusCode::FORBIDDEN, "studio.insecure", message)
            .with_fix("set `serve.public_url` to the https address of the proxy in front")
    }

    pub(crate) fn origin() -> ApiError {
        let message = "only the Studio's own page may ask this";
        ApiError::new(StatusCode::FORBIDDEN, "studio.origin", message)
    }

    pub(crate) fn role(needed: &str) -> ApiError {
        let message = format!("this takes the role `{needed}`");
        ApiError::new(StatusCode::FORBIDDEN, "studio.role", message)
    }

    pub(crate) fn refused(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "studio.refused", message)
    }

    pub(crate) fn unknown(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "studio.unknown", message)
    }

    pub(crate) fn method() -> ApiError {
        let message = "this address does not take that method";
        ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "studio.method", message)
    }

    /// The request itself is not understood.
    pub(crate) fn request(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "studio.request", message)
    }

    /// Something newer is there; `current` is it.
    pub(crate) fn conflict(message: impl Into<String>, current: &impl Serialize) -> ApiError {
        let current = serde_json::to_value(current).unwrap_or_default();
        ApiError::new(StatusCode::CONFLICT, "studio.conflict", message)
            .with_details(json!({ "current": current }))
    }

    pub(crate) fn content_type() -> ApiError {
        let message = "the body must be `application/json`";
        ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "studio.content_type",
            message,
        )
    }

    pub(crate) fn too_large() -> ApiError {
        let message = "the request is longer than may be";
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "studio.too_large", message)
    }

    /// Understood, and not possible as it stands.
    pub(crate) fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "studio.invalid", message)
    }

    /// The owner has not agreed to what a tool reaches for.
    pub(crate) fn consent(needs: &impl Serialize) -> ApiError {
        let message = "the tool reaches for more than was agreed to";
        let needs = serde_json::to_value(needs).unwrap_or_default();
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "studio.consent", message)
            .with_details(json!({ "needs": needs }))
    }

    pub(crate) fn rate(seconds: u64) -> ApiError {
        let message = format!("too many tries; wait {seconds} s");
        let mut error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "studio.rate", message);
        error.retry_seconds = Some(seconds);
        error.with_details(json!({ "retryAfterSeconds": seconds }))
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> ApiError {
        ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "studio.unavailable",
            message,
        )
    }
}

impl From<ApiError> for Response {
    fn from(error: ApiError) -> Response {
        let body = ErrorBody {
            error: ErrorWords {
                code: error.code.to_owned(),
                message: error.message,
                fix: error.fix,
                details: error.details.map(|details| *details),
            },
        };
        let mut response = (error.status, Json(body)).into_response();
        if let Some(seconds) = error.retry_seconds {
            let seconds = HeaderValue::from(seconds);
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }
}
