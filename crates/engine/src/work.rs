//! What a body of ours works with: a call that passed every gate. Its result is
//! masked like everything that leaves.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};

use crate::callable::{self, CallableTool};
use crate::engine::Engine;
use crate::powers::Powers;
use crate::refusal::CallRefusal;
use crate::request::CallRequest;
use crate::snapshot::Snapshot;

/// A call that passed every gate, for a body of ours.
#[derive(Debug)]
pub(crate) struct Work<'a> {
    pub(crate) engine: &'a Engine,
    /// The settings and tools the gates looked at.
    pub(crate) now: &'a Snapshot,
    pub(crate) request: &'a CallRequest,
    /// The call, as the audit knows it: the parent of what it calls.
    pub(crate) call_id: &'a str,
    /// As the params say; finer checks are the body's own.
    pub(crate) arguments: Map<String, Value>,
    /// What only computes, and the events of the call's record.
    pub(crate) powers: Arc<Powers>,
    /// When the call began.
    pub(crate) started: Instant,
}

impl Work<'_> {
    /// A tool that a call would reach, as lists show it.
    pub(crate) fn reach(&self, request: &CallRequest) -> Result<CallableTool, CallRefusal> {
        callable::reach(self.now, request, self.engine.variable_source())
    }
}
