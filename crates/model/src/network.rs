//! Hosts and addresses: what a name or a number leads to, by its spelling alone.
//! Looking one up and connecting to it is the business of `host`.

/// What an address stands for.
pub mod address;
/// Patterns of hosts, in one spelling.
pub mod host_pattern;
/// The names a web server goes by, and the pages that may call it.
pub mod web;
