//! Finding tools among many: full-text search, and lists that tell a little first and
//! more when asked.
//!
//! Invariant 1 holds here too: nothing reads a file, a clock, a variable or the
//! network. Who may see a tool is decided elsewhere and comes in as an argument.

/// Every bound of searching.
pub mod limit;
/// Tool cards, shown a little at a time within a budget of tokens.
pub mod progressive;
/// Full-text search over names, descriptions and params.
pub mod search;
