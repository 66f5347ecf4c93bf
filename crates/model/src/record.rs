//! What is left of a call: how it ended, what the audit keeps of it, and the masking
//! that everything goes through on its way out.

/// The rows of the audit and their chain.
pub mod audit;
/// Background jobs of callers.
pub mod job;
/// Secrets taken out of all that leaves.
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
