//! `safety.parser`: HTML, XML, CSV and YAML as plain data.
//!
//! Every text comes from a stranger. So each parser knows how much it may read,
//! how deep it may go and how much it may give back, and says so by name when
//! that is passed. Trees travel as a flat list of nodes, each with the index of
//! its parent: depth then costs neither side any stack.

pub mod csv;
pub mod html;
pub mod xml;
pub mod yaml;

use serde_json::Value;

use crate::compute::{Stopped, Turn};
use crate::message::{FaultKind, PowerFault, PowerRequest};

/// The text of one call, in bytes; what one `fetch` may bring.
pub const TEXT_BYTES_MAX: usize = 10 * 1024 * 1024;
/// What one call may give back, in bytes, counted roughly as its JSON.
pub const TREE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Nodes in one tree, cells in one table, values in one document.
pub const NODES_MAX: usize = 250_000;
/// Elements inside elements.
pub const TREE_DEPTH_MAX: usize = 512;
/// Collections inside collections in YAML; what comes out is nested JSON.
pub const YAML_DEPTH_MAX: usize = 100;
/// `*alias` in one YAML document.
pub const YAML_ALIASES_MAX: usize = 1_000;

/// What went wrong, before it has the name of a helper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParseError {
    /// The text is not what it should be.
    Malformed(String),
    /// Nested deeper than the bound.
    TooDeep(usize),
    /// More than the bound; says of what.
    TooLarge(&'static str, usize),
    /// The call does not want it any more.
    Stopped(Stopped),
}

impl From<Stopped> for ParseError {
    fn from(stopped: Stopped) -> ParseError {
        ParseError::Stopped(stopped)
    }
}

impl ParseError {
    pub(crate) fn into_fault(self, helper: &str) -> PowerFault {
        match self {
            ParseError::Malformed(message) => {
                PowerFault::new(FaultKind::HelperRuntime, "parse-failed", helper, message)
            }
            ParseError::TooDeep(depth_max) => PowerFault::new(
                FaultKind::HelperRuntime,
                "too-deep",
                helper,
                format!("nested deeper than {depth_max} levels"),
            ),
            ParseError::TooLarge(what, count_max) => PowerFault::new(
                FaultKind::HelperRuntime,
                "too-large",
                helper,
                format!("more than {count_max} {what}"),
            ),
            ParseError::Stopped(stopped) => stopped.into_fault(helper),
        }
    }
}

/// Nodes between two questions whether to go on.
const NODES_AT_ONCE: usize = 256;

/// Counts what a parser gives back, and stops it in time.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    nodes_count: usize,
    bytes_count: usize,
    turn: Turn,
}

impl Meter {
    /// A meter that also asks a turn whether to go on.
    pub(crate) fn new(turn: &Turn) -> Meter {
        Meter {
            turn: turn.clone(),
            ..Meter::default()
        }
    }

    /// One more node, with so many bytes of text.
    pub(crate) fn node(&mut self, bytes_count: usize) -> Result<(), ParseError> {
        self.nodes_count += 1;
        // What the marks around a node take as JSON.
        // Also for nodes without text: a million empty elements are not free.
        self.bytes_count = self.bytes_count.saturating_add(bytes_count + 8);
        if self.nodes_count.is_multiple_of(NODES_AT_ONCE) {
            self.turn.check()?;
        }
        if self.nodes_count > NODES_MAX {
            return Err(ParseError::TooLarge("nodes", NODES_MAX));
        }
        if self.bytes_count > TREE_BYTES_MAX {
            return Err(ParseError::TooLarge("bytes in the result", TREE_BYTES_MAX));
        }
        Ok(())
    }

    /// More text for a node that is already counted.
    pub(crate) fn bytes(&mut self, bytes_count: usize) -> Result<(), ParseError> {
        self.nodes_count = self.nodes_count.saturating_sub(1);
        self.node(bytes_count)
    }
}

/// The text of a call: `arguments.text`, or the bytes beside it.
pub(crate) fn text<'ask>(ask: &'ask PowerRequest, helper: &str) -> Result<&'ask str, PowerFault> {
    let text = match ask.arguments.get("text") {
        Some(Value::String(text)) => text.as_str(),
        Some(_) | None if !ask.bytes.is_empty() => str::from_utf8(&ask.bytes).map_err(|_| {
            ParseError::Malformed("the text is not UTF-8".into()).into_fault(helper)
        })?,
        Some(_) | None => {
            return Err(PowerFault::new(
                FaultKind::InvalidInput,
                "missing-input",
                helper,
                "the text to parse is missing",
            ));
        }
    };
    if text.len() > TEXT_BYTES_MAX {
        let error = ParseError::TooLarge("bytes of text", TEXT_BYTES_MAX);
        return Err(error.into_fault(helper));
    }
    Ok(text)
}
