//! The MCP server: translates requests of clients into calls of the engine, and results
//! back. It never decides.
//!
//! A [`Door`] is one engine behind both transports, [`http`] and [`stdio`]. Both
//! eras of the protocol run through the same [`protocol::server::McpServer`].

/// Who makes a request: credentials, rate limits, whose session is whose.
pub mod auth;
/// Calls under way, counted by caller.
mod call_count;
/// Which era of the protocol a revision belongs to.
pub mod era;
/// The transport over HTTP, with the routes of operators and probes.
pub mod http;
/// Errors of JSON-RPC that the transports write themselves.
mod jsonrpc;
/// The bounds that are not settings.
pub mod limit;
/// Metrics for Prometheus.
pub mod metrics;
/// The methods of the protocol, for both transports.
pub mod protocol;
/// Settings that need a restart.
pub mod restart;
/// The transport over standard input and output.
pub mod stdio;
/// Answers that wait to be sent, and their bounds.
mod unsent;
/// A stream that drops peers who read too slowly.
mod write_timeout;

pub use protocol::door::{Door, DoorError, Shutdown};
