//! The words of Ringfence: the tool document, its validation, policy, risk,
//! masking, and the names of everything that can be refused.
//!
//! Invariant 1: nothing here reads a file, a clock, a variable or the network. Their
//! values are arguments, so that every answer can be asked for again and comes out the
//! same.
//!
//! The rooms, from the bottom up: each uses only those above it in this list.

/// The caller of a tool, and its door.
pub mod caller;
/// One spelling for every JSON value, so that it can be hashed.
pub mod canonical;
/// Every bound, as a constant and as a page.
pub mod limits;
/// The nearest known word to one that is not known.
pub mod nearest;
/// Why something was refused or failed, as stable codes.
pub mod reason;
/// Locks whose data is whole at every step.
pub mod sync;
/// Text of others, made safe to show.
pub mod text;
/// Lengths of time.
pub mod time;
/// W3C trace context.
pub mod trace;
/// Invisible characters.
pub mod unseen;
/// Enums that are written as words.
pub mod word;

/// Hosts and addresses, and what they lead to.
pub mod network;

/// The tool document: how it is read, checked, filled and identified.
pub mod document;

/// The record of a call: its outcome, its audit row, and the masking of both.
pub mod record;

/// The policy of a call, and its risk.
pub mod policy;

/// Who may do what: callers' rights, rules, approvals, trust.
pub mod govern;

/// `ringfence.toml`.
pub mod config;

/// The classes of SQL statements.
pub mod sql;

pub use document::Document;
pub use document::environment::Environment;
pub use document::finding::{Code, Finding, Severity};
pub use policy::EffectivePolicy;
pub use policy::risk::{Level, Risk};
