//! One violation of a rule, and its place.

use std::fmt;

/// Printed as `file:line: sentence`, which editors can follow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TidyFinding {
    path: String,
    line: usize,
    sentence: String,
}

impl TidyFinding {
    /// `line` counts from one.
    pub(crate) fn new(path: &str, line: usize, sentence: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            sentence: sentence.into(),
        }
    }
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.sentence)
    }
}
