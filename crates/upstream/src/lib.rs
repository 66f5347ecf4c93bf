//! Other people's MCP servers: what they declare, how we name it, what the owner
//! accepted of it, what is suspicious in it and how much harm it can do.
//!
//! Invariant 1 holds here too: nothing reads a file, a clock, a variable or the
//! network. The bridge fetches definitions and starts servers; this crate judges them.

/// What a server declares, read as a hostile peer sends it.
pub mod definition;
/// What is suspicious in definitions and in the way servers are started.
pub mod finding;
/// Every bound of this crate.
pub mod limit;
/// The lock file for CI.
pub mod lock;
/// Names of servers and of their tools.
pub mod name;
/// What the owner accepted, and what differs from it.
pub mod pin;
/// How much harm a bridged tool can do, and what a call of it does.
pub mod risk;
/// Whether one JSON Schema accepts no more than another.
pub mod schema;
