//! Regular expressions in the tree: literals, and methods that make one of text.

use oxc_ast::ast::{Argument, CallExpression, Expression, RegExpFlags, RegExpLiteral};
use oxc_span::{GetSpan as _, Span};

use super::Rules;
use crate::code::IssueCode;
use crate::fold::Constant;
use crate::preset::RegexMode;
use crate::redos::{self, Verdict};

impl<'a> Rules<'_, 'a> {
    pub(super) fn regex_literal(&mut self, literal: &RegExpLiteral<'a>) {
        let pattern = literal.regex.pattern.text.as_str();
        if self.preset.regex == RegexMode::Block {
            self.error(IssueCode::NoRegexLiteral, literal.span, || {
                String::from("regular expressions are not allowed here; use `includes`, `startsWith` or `split` with text")
            });
            return;
        }
        let ignores_case = literal.regex.flags.contains(RegExpFlags::I);
        self.pattern(pattern, ignores_case, literal.span);
    }

    /// A pattern that is about to be used.
    fn pattern(&mut self, pattern: &str, ignores_case: bool, span: Span) {
        let most = self.preset.limits.capped().regex_chars_max;
        if pattern.chars().count() > most {
            self.error(IssueCode::RegexTooLong, span, || {
                format!("a pattern is longer than {most} characters")
            });
            return;
        }
        let (judges, warns) = match self.preset.regex {
            RegexMode::Exponential | RegexMode::Block => (true, false),
            RegexMode::Polynomial => (true, true),
            RegexMode::Allow => (false, false),
        };
        if !judges {
            return;
        }
        match redos::judge(pattern, ignores_case) {
            Verdict::Exponential => self.error(IssueCode::RegexRedosVulnerable, span, || {
                String::from(
                    "this pattern can run practically forever; do not repeat a part that already repeats",
                )
            }),
            Verdict::Polynomial if warns => self.warning(IssueCode::RegexRedosSuspicious, span, || {
                String::from(
                    "this pattern is slow on long texts; let neighbours match different characters",
                )
            }),
            Verdict::Polynomial | Verdict::Linear => {}
        }
    }

    /// `match`, `matchAll` and `search` make a pattern of any text they are given.
    pub(super) fn regex_method(&mut self, method: &str, call: &CallExpression<'a>) {
        let makes_pattern = matches!(method, "match" | "matchAll" | "search");
        let takes_pattern =
            makes_pattern || matches!(method, "replace" | "replaceAll" | "split" | "test" | "exec");
        if !takes_pattern {
            return;
        }
        let Some(first) = call.arguments.first().and_then(Argument::as_expression) else {
            return;
        };
        if matches!(first, Expression::RegExpLiteral(_)) {
            if self.preset.regex == RegexMode::Block {
                self.error(IssueCode::NoRegexMethod, first.span(), || {
                    format!("`{method}` cannot be given a regular expression here; give it text")
                });
            }
            return;
        }
        if !makes_pattern {
            return;
        }
        match self.fold().constant(first) {
            Some(Constant::Text(pattern)) => self.pattern(&pattern, false, first.span()),
            Some(_) => {}
            None => self.warning(IssueCode::RegexMethodDynamic, first.span(), || {
                format!(
                    "`{method}` makes a pattern of what it is given; use `includes` for plain text"
                )
            }),
        }
    }
}
