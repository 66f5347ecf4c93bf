//! Hosts and addresses, classified by spelling alone. `host` resolves names and
//! connects.

/// Classes of addresses.
pub mod address;
/// Patterns of hosts, in one spelling.
pub mod host_pattern;
/// The host names of a server, and the origins that may call it.
pub mod web;
