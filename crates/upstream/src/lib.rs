//! Other people's MCP servers: definitions, names, pins, findings and risk.
//!
//! Invariant 1 holds here too: nothing reads a file, a clock, a variable or the
//! network. The bridge fetches definitions and starts servers; this crate judges them.

/// Definitions of servers, parsed from hostile input.
pub mod definition;
/// Findings about definitions and about the way servers are started.
pub mod finding;
/// Every bound of this crate.
pub mod limit;
/// The lock file for CI.
pub mod lock;
/// Names of servers and of their tools.
pub mod name;
/// Accepted definitions, and differences from them.
pub mod pin;
/// The risk and the actions of a bridged tool.
pub mod risk;
/// Whether one JSON Schema accepts no more than another.
pub mod schema;
