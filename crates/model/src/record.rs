//! The record of a call: its outcome, its audit entry, and the masking of everything
//! that leaves.

/// The rows of the audit and their chain.
pub mod audit;
/// Background jobs of callers.
pub mod job;
/// Masking of secrets in all output.
pub mod mask;
/// Signed heads of a log.
pub mod note;
/// The audit as events of a security schema.
pub mod ocsf;
/// How a call ended.
pub mod outcome;
/// The Merkle tree over a log.
pub mod tree;
/// Cosigning the heads of other logs.
pub mod witness;
