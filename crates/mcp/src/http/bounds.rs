//! The bounds of the transport: counts, bytes and times.

use std::time::Duration;

use model::config::ServeConfig;

use crate::auth::SessionBounds;
use crate::limit;

/// The bounds of the transport.
#[derive(Clone, Debug)]
pub struct HttpBounds {
    /// Connections at one time.
    pub connections_max: usize,
    /// Sessions at one time.
    pub sessions_max: usize,
    /// Sessions of one caller at one time.
    pub sessions_per_caller_max: usize,
    /// Bytes of one request.
    pub body_bytes_max: usize,
    /// How long a session may be idle.
    pub session_idle_max: Duration,
    /// How long a call may take, and so keep its session busy.
    pub call_max: Duration,
    /// How long a connection may take to send the head of its next request.
    pub head_max: Duration,
    /// How long a request may take to send its body.
    pub body_max: Duration,
    /// How long the answer to a modern request may take before its stream begins.
    pub stream_first: Duration,
    /// How long the other side may take to read a piece of an answer.
    pub write_max: Duration,
    /// Whether the transport itself refuses hosts and origins that are not loopback.
    /// Not needed behind [`crate::auth`], which knows the server's names.
    pub loopback_only: bool,
}

impl HttpBounds {
    /// The bounds from the operator's settings.
    #[must_use]
    pub fn of(config: &ServeConfig) -> HttpBounds {
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        HttpBounds {
            connections_max: size(config.connections_max),
            sessions_max: size(config.sessions_max),
            sessions_per_caller_max: size(config.sessions_per_caller_max),
            body_bytes_max: size(config.body_bytes_max),
            session_idle_max: Duration::from_secs(limit::SESSION_IDLE_SECONDS_MAX),
            call_max: Duration::from_secs(config.call_seconds_max),
            head_max: Duration::from_secs(limit::HEAD_SECONDS_MAX),
            body_max: Duration::from_secs(limit::BODY_SECONDS_MAX),
            stream_first: Duration::from_millis(limit::STREAM_FIRST_MS),
            write_max: Duration::from_secs(limit::WRITE_SECONDS_MAX),
            loopback_only: true,
        }
    }

    /// The part of it that is about sessions.
    #[must_use]
    pub fn sessions(&self) -> SessionBounds {
        SessionBounds {
            together: self.sessions_max,
            per_caller: self.sessions_per_caller_max,
            idle: self.session_idle_max,
            call: self.call_max,
        }
    }
}
