//! Writing the audit, from the bottom up: the `chain` turns records into
//! lines of the log and rows of the index; a `batch` of requests is written
//! and answered together; the `writer` decides which thread does it; the
//! `syncer` gets it onto the disk.

/// Requests taken together, written as one group and answered.
pub(crate) mod batch;
/// Records into the log, and the index behind it.
pub(crate) mod chain;
/// Closing the calls of dead processes.
pub(crate) mod orphan;
/// Requests that wait for the writer.
pub(crate) mod queue;
/// Getting committed records onto the disk.
pub(crate) mod syncer;
/// Which thread writes.
pub(crate) mod writer;
