//! Authentication: every check in front of a route that listens on a socket.
//!
//! From the outside in: `Host` and `Origin`, requests of one network address,
//! authentication, requests of one caller, whose session it is. Each is a plain
//! decision in a module of its own; only `layer` and `own_session` know about HTTP. A
//! request that passes carries a `Principal` and no longer carries its token: so no
//! code behind it can leak the token.

/// Authentication itself: which principal a credential belongs to.
mod authenticate;
/// Reading the one credential of a request.
pub mod bearer;
/// Rate limits.
pub mod bucket;
/// The time, which tests can stop.
pub mod clock;
/// CORS headers for browsers.
mod cors;
/// Keys of ours, looked up at every request.
mod key_lookup;
/// The layer around routes.
pub mod layer;
/// The bounds that are not settings.
pub mod limit;
/// Where a server may listen.
pub mod listen;
/// The token of this machine.
pub mod local;
/// Which tokens of an issuer are valid, and for which caller.
pub mod oauth;
/// The layer that keeps requests to their own sessions.
mod own_session;
/// Rate limits of network addresses.
mod peer;
/// The client at a pipe.
mod pipe_client;
/// Who made a request.
mod principal;
/// A refusal, as HTTP.
pub mod refusal;
/// A refusal as a page for a person.
mod refusal_page;
/// The sessions of legacy clients.
pub mod session;

pub use engine::{issuer, jwt};
pub use model::network::web as address;

pub use authenticate::{Auth, AuthParts, AuthSettings};
pub use clock::{AuthClock, AuthMoment};
pub use issuer::FetchKeys;
pub use key_lookup::KeyLookup;
pub(crate) use layer::MessageLimit;
pub use layer::{ReachedAddress, agents, documents, open, operators, probes};
pub use listen::{AuthMode, may_listen};
pub(crate) use own_session::no_session;
pub use own_session::{SESSION_HEADER, own_sessions};
pub use pipe_client::{CALLER, PipeClient};
pub use principal::{Principal, PrincipalId};
pub use refusal::AuthRefusal;
pub use session::{SessionBounds, Sessions};
