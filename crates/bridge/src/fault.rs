//! Why a server cannot be used.

use std::time::Duration;

use model::text;
use rmcp::model::ErrorData;

/// Why a server, or a call of one of its tools, failed. Shown to the owner as it is; what
/// a caller is told is [`ServerFault::for_caller`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerFault {
    /// It failed a moment ago.
    #[error("{why}; the next attempt is in {} s", seconds(*retry_in))]
    Waiting {
        /// What happened last.
        why: String,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// It failed too often, or the reviewer stopped it.
    #[error("it is held: {0}")]
    Held(String),
    /// A person has to sign in first.
    #[error("it needs a sign-in: run `ringfence servers login`")]
    SignInRequired,
    /// Secrets it needs are not set.
    #[error("not set: {}", .0.join(", "))]
    SecretsMissing(Vec<String>),
    /// It could not be started.
    #[error("it could not be started: {0}")]
    Start(String),
    /// It did not become ready in time.
    #[error("it was not ready after {} s", seconds(*.0))]
    StartTimeout(Duration),
    /// Its address does not answer; nothing was sent.
    #[error("it could not be reached: {0}")]
    Unreachable(String),
    /// It has forgotten the session, so it did nothing.
    #[error("it has forgotten the session")]
    Forgotten,
    /// It ended or closed the connection.
    #[error("the connection ended: {0}")]
    Closed(String),
    /// It answered with something that is not the protocol.
    #[error("it does not keep to the protocol: {0}")]
    Protocol(String),
    /// Its list breaks a bound.
    #[error("its list of tools cannot be used: {0}")]
    List(String),
    /// It refused a request with an error of the protocol.
    #[error("it answered with error {code}: {message}")]
    Refused {
        /// The number.
        code: i64,
        /// Its words, cut.
        message: String,
    },
    /// The call took too long.
    #[error("no answer after {} s", seconds(*.0))]
    Timeout(Duration),
    /// The result breaks a bound.
    #[error("the result {0}")]
    TooLarge(String),
    /// It asked a person more often than it may.
    #[error("it asked for input more than {0} times")]
    TooManyQuestions(usize),
}

fn seconds(duration: Duration) -> u64 {
    duration.as_secs().max(1)
}

impl ServerFault {
    /// The server's own no.
    pub(crate) fn refused(error: &ErrorData) -> ServerFault {
        ServerFault::Refused {
            code: i64::from(error.code.0),
            message: shown(&error.message),
        }
    }

    /// The same with every text replaced that may have the server's words in it.
    pub(crate) fn map_words(self, map: impl Fn(String) -> String) -> ServerFault {
        match self {
            ServerFault::Waiting { why, retry_in } => ServerFault::Waiting {
                why: map(why),
                retry_in,
            },
            ServerFault::Held(why) => ServerFault::Held(map(why)),
            ServerFault::Start(why) => ServerFault::Start(map(why)),
            ServerFault::Unreachable(why) => ServerFault::Unreachable(map(why)),
            ServerFault::Closed(why) => ServerFault::Closed(map(why)),
            ServerFault::Protocol(why) => ServerFault::Protocol(map(why)),
            ServerFault::List(why) => ServerFault::List(map(why)),
            ServerFault::Refused { code, message } => ServerFault::Refused {
                code,
                message: map(message),
            },
            fault @ (ServerFault::SignInRequired
            | ServerFault::SecretsMissing(_)
            | ServerFault::StartTimeout(_)
            | ServerFault::Forgotten
            | ServerFault::Timeout(_)
            | ServerFault::TooLarge(_)
            | ServerFault::TooManyQuestions(_)) => fault,
        }
    }

    /// What a caller may know: no words of the server's, no paths of this machine.
    #[must_use]
    pub fn for_caller(&self, server: &str) -> String {
        match self {
            ServerFault::Waiting { retry_in, .. } => format!(
                "the server `{server}` is not reachable; the next attempt is in {} s",
                seconds(*retry_in)
            ),
            ServerFault::Held(_) => format!("the server `{server}` is held until its owner acts"),
            ServerFault::SignInRequired => {
                format!("the server `{server}` needs its owner to sign in")
            }
            ServerFault::SecretsMissing(_) => {
                format!("the server `{server}` lacks a secret that its owner has to set")
            }
            ServerFault::Start(_) => format!("the server `{server}` could not be started"),
            ServerFault::StartTimeout(after) => format!(
                "the server `{server}` was not ready within {} s",
                seconds(*after)
            ),
            ServerFault::Unreachable(_) => {
                format!("the server `{server}` could not be reached; the call did not run")
            }
            ServerFault::Forgotten => {
                format!("the server `{server}` forgot the session; the call did not run")
            }
            ServerFault::Closed(_) => {
                format!("the server `{server}` ended the connection during the call")
            }
            ServerFault::Protocol(_) | ServerFault::List(_) => {
                format!("the server `{server}` does not keep to the protocol")
            }
            ServerFault::Refused { code, message } => {
                // The only words of a server that a caller gets. They were cut
                // and masked before.
                format!("the server `{server}` refused the call ({code}): {message}")
            }
            ServerFault::Timeout(after) => format!(
                "the server `{server}` did not answer within {} s",
                seconds(*after)
            ),
            ServerFault::TooLarge(what) => {
                format!("the result of the server `{server}` {what}")
            }
            ServerFault::TooManyQuestions(most) => {
                format!("the server `{server}` asked for input more than {most} times")
            }
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            ServerFault::Waiting { .. }
            | ServerFault::Start(_)
            | ServerFault::StartTimeout(_)
            | ServerFault::Unreachable(_)
            | ServerFault::Forgotten
            | ServerFault::Closed(_)
            | ServerFault::Timeout(_) => true,
            ServerFault::Held(_)
            | ServerFault::SignInRequired
            | ServerFault::SecretsMissing(_)
            | ServerFault::Protocol(_)
            | ServerFault::List(_)
            | ServerFault::Refused { .. }
            | ServerFault::TooLarge(_)
            | ServerFault::TooManyQuestions(_) => false,
        }
    }

    /// Whether the connection is of no use to later calls: its session is gone, its token,
    /// or the server.
    pub(crate) fn ends_connection(&self) -> bool {
        match self {
            ServerFault::SignInRequired | ServerFault::Unreachable(_) | ServerFault::Forgotten => {
                true
            }
            ServerFault::Waiting { .. }
            | ServerFault::Held(_)
            | ServerFault::SecretsMissing(_)
            | ServerFault::Start(_)
            | ServerFault::StartTimeout(_)
            | ServerFault::Closed(_)
            | ServerFault::Protocol(_)
            | ServerFault::List(_)
            | ServerFault::Refused { .. }
            | ServerFault::Timeout(_)
            | ServerFault::TooLarge(_)
            | ServerFault::TooManyQuestions(_) => false,
        }
    }

    /// Whether the server, not the call, is at fault: it is then tried less often.
    #[must_use]
    pub fn is_failure_of_server(&self) -> bool {
        match self {
            ServerFault::Start(_)
            | ServerFault::StartTimeout(_)
            | ServerFault::Unreachable(_)
            | ServerFault::Closed(_)
            | ServerFault::Protocol(_)
            | ServerFault::List(_) => true,
            ServerFault::Waiting { .. }
            | ServerFault::Held(_)
            | ServerFault::SignInRequired
            | ServerFault::SecretsMissing(_)
            | ServerFault::Forgotten
            | ServerFault::Refused { .. }
            | ServerFault::Timeout(_)
            | ServerFault::TooLarge(_)
            | ServerFault::TooManyQuestions(_) => false,
        }
    }

    /// The same when a part of the call ran before: then it is not said that it did not run.
    pub(crate) fn after_a_round(self) -> ServerFault {
        match self {
            fault @ (ServerFault::Unreachable(_) | ServerFault::Forgotten) => {
                ServerFault::Closed(fault.to_string())
            }
            fault => fault,
        }
    }
}

/// The words of a server or a library, on one line and cut.
pub(crate) fn shown(words: &str) -> String {
    text::elided(&text::one_line(words.trim()), 300)
}
