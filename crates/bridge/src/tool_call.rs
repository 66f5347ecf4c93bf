//! What is asked of a server, by any way.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::caller::{Elicitor, ProgressSink};

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// A tool.
    Tool,
    /// A prompt, whose arguments are texts.
    Prompt,
    /// A resource, whose one argument is `uri`.
    Resource,
}

/// What is to be called.
#[derive(Debug)]
pub struct ToolCall {
    /// What it is.
    pub kind: CallKind,
    /// The server's own name of the tool or the prompt.
    pub tool: String,
    /// The arguments, already checked.
    pub arguments: Map<String, Value>,
    /// How long the server may take. The time a person takes to answer does not count.
    pub timeout: Duration,
    /// Who is told how it goes on.
    pub progress: Option<ProgressSink>,
    /// Who answers questions of the server, if the caller can now.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// Where the call stands in a trace, as W3C's `traceparent`.
    pub trace: Option<String>,
}
