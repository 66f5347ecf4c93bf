//! One result of validation: an error or a warning.

use serde::Serialize;

use crate::document::json::{Lines, Position, Span};

/// The stable codes of section 15 of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Code {
    /// Not JSON, or not the shape of a tool document.
    #[serde(rename = "SPEC_PARSE")]
    SpecParse,
    /// The shape is right, but two fields contradict each other.
    #[serde(rename = "SPEC_INVARIANT")]
    SpecInvariant,
    /// The operator's policy and the declared overrides contradict each other.
    #[serde(rename = "RESOLVER_REJECT")]
    ResolverReject,
    /// The tool failed its own test.
    #[serde(rename = "LOCAL_PASS_FAILED")]
    LocalPassFailed,
}

impl Code {
    /// All of them.
    pub const ALL: [Code; 4] = [
        Code::SpecParse,
        Code::SpecInvariant,
        Code::ResolverReject,
        Code::LocalPassFailed,
    ];

    /// The word people search for.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Code::SpecParse => "SPEC_PARSE",
            Code::SpecInvariant => "SPEC_INVARIANT",
            Code::ResolverReject => "RESOLVER_REJECT",
            Code::LocalPassFailed => "LOCAL_PASS_FAILED",
        }
    }
}

/// Whether a finding prevents use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document cannot be used.
    Error,
    /// It can, but probably not as its author thinks.
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// One result of validation: an error or a warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which kind of thing.
    pub code: Code,
    /// Where in the document, such as `params[2].testValue`; empty for all of it.
    pub pointer: String,
    /// Whether it prevents use.
    pub severity: Severity,
    /// What is wrong, as a sentence without its full stop.
    pub message: String,
    /// What to do about it, where there is one thing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Where in the file.
    #[serde(flatten)]
    pub position: FilePosition,
    /// Where in the file, in bytes.
    #[serde(skip)]
    pub span: Span,
}

/// A line and a column, both from 1; 0 when a finding is about the whole file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FilePosition {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl From<Position> for FilePosition {
    fn from(position: Position) -> FilePosition {
        FilePosition {
            line: position.line,
            column: position.column,
        }
    }
}

impl Finding {
    /// An error at a pointer; `place` finds it in the file later.
    #[must_use]
    pub fn error(code: Code, pointer: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding {
            code,
            pointer: pointer.into(),
            severity: Severity::Error,
            message: message.into(),
            fix: None,
            position: FilePosition::default(),
            span: Span::default(),
        }
    }

    /// A warning at a pointer.
    #[must_use]
    pub fn warning(code: Code, pointer: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding {
            severity: Severity::Warning,
            ..Finding::error(code, pointer, message)
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Finding {
        self.fix = Some(fix.into());
        self
    }

    /// Adds where in the file it is.
    #[must_use]
    pub fn place(mut self, span: Span, lines: &Lines<'_>) -> Finding {
        self.span = span;
        self.position = lines.position(span.start).into();
        self
    }
}

/// Whether any of them is an error.
#[must_use]
pub fn any_error(findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|finding| finding.severity == Severity::Error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_what_json_says() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).expect("json"), code.word());
        }
        for severity in [Severity::Error, Severity::Warning] {
            assert_eq!(
                serde_json::to_value(severity).expect("json"),
                severity.word()
            );
        }
    }
}
