//! Other people's MCP servers: their processes and connections, their lists, and the
//! calls made of them.
//!
//! Nothing here decides whether a call may be made, or which definition of a tool is
//! shown: the engine does, with the pins of crate `upstream`. A [`Server`] is started
//! when it is first used. Every list it sends is handed to a [`Reviewer`] before any of
//! it is used.

/// When a server that failed is tried again.
mod backoff;
/// One call of a tool.
mod call;
/// The caller's side of a call.
mod caller;
/// What we answer to a server.
mod client;
/// Opening a connection.
mod connect;
/// The network of a child in the jail.
mod egress_door;
/// What a process writes on its standard error.
mod error_log;
/// Why a server cannot be used.
mod fault;
/// Servers at an address.
pub mod http;
/// The bounds of this crate.
pub mod limit;
/// What a server offers, in bounds.
mod list;
/// What is no message on a server's standard output.
mod noise;
/// Signing in to servers at an address.
pub mod oauth;
/// The process of a server with its network.
mod process;
/// Hides a server's own secrets in what it says.
mod secret_mask;
/// One server: started, listed, called, stopped.
mod server;
/// Listening for changes of the list.
mod subscribe;
/// What is asked of a server.
mod tool_call;

pub use backoff::Backoff;
pub use call::ToolResult;
pub use caller::{ElicitAnswer, ElicitQuestion, Elicitor, ProgressSink};
pub use connect::{ServerSettings, ServerTarget};
pub use egress_door::EgressDoor;
pub use error_log::{KeptLog, kept_logs};
pub use fault::ServerFault;
pub use list::{Offers, SeenTools, ServerIdentity};
pub use process::ServerHosts;
pub use server::{ReviewedTools, Reviewer, Server, ServerStatus};
pub use tool_call::{CallKind, ToolCall};
