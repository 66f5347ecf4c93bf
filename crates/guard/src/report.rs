//! The guard's report: findings with places in the author's own script.

use model::Severity;
use model::document::json::Lines;

use crate::code::IssueCode;

/// Findings kept of one script; the rest are counted.
pub const ISSUES_MAX: usize = 100;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Which rule.
    pub code: IssueCode,
    /// What is wrong and what to write instead, one line without a full stop.
    pub message: String,
    /// The author's line, from 1.
    pub line: usize,
    /// The author's column in characters, from 1.
    pub column: usize,
    /// Whether it is an error.
    pub severity: Severity,
}

/// The answer to `check`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// No finding is an error.
    pub valid: bool,
    /// Findings in the order of the script.
    pub issues: Vec<Issue>,
    /// How many more there were than [`ISSUES_MAX`].
    pub issues_left_out: usize,
}

/// A finding that still knows its place as a byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IssueMark {
    pub(crate) at: usize,
    pub(crate) code: IssueCode,
    pub(crate) severity: Severity,
    pub(crate) message: String,
}

/// Findings while they are gathered. Bounded: a hostile script can be wrong in
/// every byte.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    kept: Vec<IssueMark>,
    left_out: usize,
    errors: usize,
}

impl Marks {
    /// Adds an error.
    pub(crate) fn error(&mut self, code: IssueCode, at: usize, message: impl FnOnce() -> String) {
        self.errors += 1;
        self.keep(code, at, Severity::Error, message);
    }

    /// Adds a warning.
    pub(crate) fn warning(&mut self, code: IssueCode, at: usize, message: impl FnOnce() -> String) {
        self.keep(code, at, Severity::Warning, message);
    }

    /// Whether any finding is an error.
    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    fn keep(
        &mut self,
        code: IssueCode,
        at: usize,
        severity: Severity,
        message: impl FnOnce() -> String,
    ) {
        if self.kept.len() >= ISSUES_MAX {
            self.left_out += 1;
            return;
        }
        self.kept.push(IssueMark {
            at,
            code,
            severity,
            message: message(),
        });
    }

    /// The findings with lines and columns.
    pub(crate) fn report(mut self, source: &str) -> Report {
        self.kept.sort();
        self.kept
            .dedup_by(|later, earlier| later.at == earlier.at && later.code == earlier.code);
        // Attack: a refusal for size must not read the hundred megabytes it refuses.
        let needs_lines = self.kept.iter().any(|mark| mark.at > 0);
        let lines = needs_lines.then(|| Lines::new(source));
        let issues = self.kept.into_iter().map(|mark| {
            let place = lines.as_ref().map(|lines| lines.position(mark.at));
            Issue {
                code: mark.code,
                message: mark.message,
                line: place.map_or(1, |place| place.line),
                column: place.map_or(1, |place| place.column),
                severity: mark.severity,
            }
        });
        Report {
            issues: issues.collect(),
            valid: self.errors == 0,
            issues_left_out: self.left_out,
        }
    }
}
