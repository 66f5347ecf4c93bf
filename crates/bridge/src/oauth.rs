//! Signing in to servers at an address: OAuth 2.1, by hand on the guarded client.
//!
//! Discovery (RFC 9728, RFC 8414), PKCE, registration (RFC 7591), resource indicators
//! (RFC 8707), the issuer of an answer (RFC 9207), client credentials, and tokens in a
//! file of their own that several processes share. A token is never shown, logged or
//! part of an error, and never one of a caller.

/// What a server says when it wants a token.
pub mod challenge;
/// Signing in with a person's account at an issuer that the operator names.
mod code_flow;
mod discover;
mod kept;
mod listen;
mod login;
mod request;
mod source;
mod text;

pub use code_flow::{CodeFlow, CodeRequest, FlowClient};
pub(crate) use kept::TokenStamp;
pub use kept::{TokenFile, TokenFileFault};
pub use login::{LoginSettings, SignedIn, login};
pub use source::{AccessToken, ClientCredentials, TokenSource};
pub use text::TokenText;

use host::fetch::HttpFault;

/// Seconds before its end from which a token counts as over.
pub const TOKEN_SKEW_SECONDS: u64 = 60;
/// A document of an issuer, in bytes.
pub const DOCUMENT_BYTES_MAX: u64 = 256 * 1024;
/// A token, in bytes.
pub const TOKEN_BYTES_MAX: usize = 64 * 1024;

/// Why there is no token.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OAuthFault {
    /// A person has to sign in.
    #[error("a sign-in is needed")]
    SignInRequired,
    /// The server offers no sign-in.
    #[error("the server asks for no sign-in, and names no issuer of tokens")]
    NotOffered,
    /// A request failed.
    #[error("could not {doing}")]
    Request {
        /// What was tried.
        doing: &'static str,
        /// Why not.
        source: HttpFault,
    },
    /// An answer is not what the standards say.
    #[error("could not {doing}: {what}")]
    Answer {
        /// What was tried.
        doing: &'static str,
        /// What is wrong.
        what: String,
    },
    /// A document does not belong to the one that was asked.
    #[error("{0}")]
    Mismatch(String),
    /// An address of the issuer is not https.
    #[error("the {0} is not https; tokens do not travel in the clear")]
    Cleartext(&'static str),
    /// The issuer registers no clients, and none is set.
    #[error("the issuer registers no clients; register one with it and set its id")]
    ClientMissing,
    /// The person said no, or the issuer did.
    #[error("the sign-in was refused: {0}")]
    Refused(String),
    /// The person did not come back in time.
    #[error("the sign-in was not finished within {0} s")]
    TimedOut(u64),
    /// This machine does not let us listen, wait or draw random numbers.
    #[error("could not {doing}: {what}")]
    Machine {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        what: String,
    },
    /// The file of tokens cannot be used.
    #[error("the file of tokens cannot be used")]
    File(#[from] TokenFileFault),
    /// Another process holds the lock for too long.
    #[error("another process has renewed this token for more than {0} s")]
    Locked(u64),
}

impl OAuthFault {
    /// Whether only a person can help.
    #[must_use]
    pub fn is_sign_in_required(&self) -> bool {
        match self {
            OAuthFault::SignInRequired => true,
            OAuthFault::NotOffered
            | OAuthFault::Request { .. }
            | OAuthFault::Answer { .. }
            | OAuthFault::Mismatch(_)
            | OAuthFault::Cleartext(_)
            | OAuthFault::ClientMissing
            | OAuthFault::Refused(_)
            | OAuthFault::TimedOut(_)
            | OAuthFault::Machine { .. }
            | OAuthFault::File(_)
            | OAuthFault::Locked(_) => false,
        }
    }
}
