//! The powers of tool code: fetch, files, parsers, crypto, time zones, secrets.
//!
//! Each power is a handle made from a grant; without one there is nothing to
//! call. A power takes a [`message::PowerRequest`], gives a [`message::PowerReply`] and
//! knows nothing of sandboxes: the code that runs the tool carries the data across.

/// The operations every call has, because they reach nothing outside.
pub mod builtin;
/// The network, for servers the owner named.
pub mod client;
/// The threads long computations take turns in, and who pays for them.
pub mod compute;
/// Digests, keys, ciphers and random bytes: `crypto`.
pub mod crypto;
/// The network of child processes: a proxy with the guard of `fetch`.
pub mod egress;
/// The network: `fetch`.
pub mod fetch;
/// The folder of a tool: `safety.fs`.
pub mod files;
/// Dates and numbers as people write them: `Intl`.
pub mod intl;
/// What tool code asks of a power, and what it gets back.
pub mod message;
/// Web pages as text for a model, without what a person would not see.
pub mod page;
/// CSV, HTML, XML and YAML: `safety.parser`.
pub mod parser;
/// Where values of variables come from.
pub mod secrets;
/// Databases: SQLite files and Postgres.
pub mod sql;
/// `URL`, by the WHATWG's rules.
pub mod url;

pub use message::{FaultKind, PowerFault, PowerReply, PowerRequest};
pub use model::network::address;
